/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers and their scheduler: one launch at a time on the thread of its stream. See emulation.h. */
#include "emulation.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

#include "emulated_runtime.h"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulation {

thread_local place *here;

namespace {

enum { STACK_BYTES = 64 * 1024, GUARD_BYTES = 64, IDLE_ROUNDS = 200000 };

/* ---- switching ------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
struct context {
    void *stack_pointer;
};

extern "C" void seqlstm_emulation_switch(void **save, void *load);
asm(".text\n"
    ".type seqlstm_emulation_switch, @function\n"
    "seqlstm_emulation_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size seqlstm_emulation_switch, .-seqlstm_emulation_switch\n");

void switch_to(context *from, context *to) { seqlstm_emulation_switch(&from->stack_pointer, to->stack_pointer); }

void prepare(context *c, unsigned char *stack, void (*entry)())
{
    void **top = reinterpret_cast<void **>(stack + STACK_BYTES - 64);
    *--top = nullptr; /* where entry would return to: it never does */
    *--top = reinterpret_cast<void *>(entry);
    for (int k = 0; k < 6; k++)
        *--top = nullptr;
    c->stack_pointer = top;
}
#else
typedef ucontext_t context;
void switch_to(context *from, context *to) { swapcontext(from, to); }
void prepare(context *c, unsigned char *stack, void (*entry)())
{
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK_BYTES;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
}
#endif

/* ---- one launch ----------------------------------------------------------------------------------------- */

struct barrier {
    unsigned arrived = 0;
    unsigned generation = 0;
};

struct warp {
    uint64_t values[32];
    brought goods[32];
    unsigned votes = 0, came = 0, mask = 0, left = 0;
    barrier gate;
};

/* A copy on its way into shared memory. */
struct parcel {
    void *to;
    const void *from; /* NULL: zeros */
    unsigned group;
};

struct block;

struct fiber {
    context self;
    place where;
    block *home;
    unsigned index;  /* in the block */
    bool done = false, spinning = false;
    barrier *waits = nullptr;
    unsigned generation = 0;
    std::vector<parcel> parcels;
    unsigned groups = 0; /* of copies, closed */
};

struct block {
    std::vector<fiber> fibers;
    std::vector<warp> warps;
    barrier gate;
    unsigned char *shared = nullptr;
    unsigned alive = 0;
};

struct run {
    std::function<void()> *kernel;
    std::vector<block> blocks;
    barrier gate;
    size_t shared_bytes = 0;
    unsigned threads = 0;
    bool cooperative = false, late = false; /* late: copies arrive when they are waited for */
    unsigned cluster = 1;
    context scheduler;
    fiber *current = nullptr;
    char failure[256] = "";
};

thread_local run *running;

/* Back to the scheduler. A launch that failed is never switched to again: its fibers are forgotten. */
void leave(fiber *f)
{
    switch_to(&f->self, &running->scheduler);
}

void wait(barrier *gate, unsigned expected)
{
    fiber *f = running->current;
    if (++gate->arrived == expected) {
        gate->arrived = 0;
        gate->generation++;
        return;
    }
    f->waits = gate;
    f->generation = gate->generation;
    leave(f);
}

void enter()
{
    fiber *f = running->current;
    (*running->kernel)();
    f->done = true;
    f->home->alive--;
    leave(f);
    abort(); /* not reached */
}

bool is_ready(fiber *f)
{
    if (f->done)
        return false;
    if (f->waits && f->waits->generation != f->generation)
        f->waits = nullptr;
    return f->waits == nullptr;
}

/* Runs the blocks of `r` together until all threads are done. */
void schedule(run *r, bool backwards)
{
    unsigned alive = 0, idle = 0;
    for (block &b : r->blocks)
        alive += b.alive;
    while (alive > 0 && r->failure[0] == 0) {
        bool moved = false, spun = false;
        for (size_t k = 0; k < r->blocks.size() && r->failure[0] == 0; k++) {
            block &b = r->blocks[backwards ? r->blocks.size() - 1 - k : k];
            for (size_t j = 0; j < b.fibers.size() && r->failure[0] == 0; j++) {
                fiber *f = &b.fibers[backwards ? b.fibers.size() - 1 - j : j];
                if (!is_ready(f))
                    continue;
                r->current = f;
                here = &f->where;
                f->spinning = false;
                switch_to(&r->scheduler, &f->self);
                moved = moved || !f->spinning;
                spun = spun || f->spinning;
                alive -= f->done;
            }
        }
        idle = moved ? 0 : idle + 1;
        if (alive > 0 && r->failure[0] == 0 && ((!moved && !spun) || idle > IDLE_ROUNDS)) {
            unsigned waiting = 0;
            for (block &b : r->blocks)
                for (fiber &f : b.fibers)
                    waiting += !f.done && f.waits != nullptr;
            snprintf(r->failure, sizeof r->failure,
                     "%u threads wait at a barrier that not all reach: %u of %u have ended%s", waiting,
                     (unsigned)(r->blocks.size() * r->threads) - alive, (unsigned)(r->blocks.size() * r->threads),
                     idle > IDLE_ROUNDS ? ", others spin" : "");
        }
    }
}

struct stacks {
    unsigned char *base = nullptr;
    size_t bytes = 0;
    ~stacks()
    {
        if (base)
            munmap(base, bytes);
    }
    void grow(size_t wanted)
    {
        if (wanted <= bytes)
            return;
        if (base)
            munmap(base, bytes);
        base = static_cast<unsigned char *>(
            mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        bytes = wanted;
    }
};

thread_local stacks pool;

void fill(block *b, run *r, dim3 at, dim3 grid, dim3 size, unsigned char *stack)
{
    b->fibers.resize(r->threads);
    b->warps.assign((r->threads + 31) / 32, warp());
    b->alive = r->threads;
    b->gate = barrier();
    memset(b->shared, 0xFF, r->shared_bytes + GUARD_BYTES); /* NaN, as is whatever nobody wrote */
    for (unsigned t = 0; t < r->threads; t++) {
        fiber *f = &b->fibers[t];
        *f = fiber();
        f->where.thread = dim3(t % size.x, t / size.x % size.y, t / size.x / size.y);
        f->where.block = at;
        f->where.block_size = size;
        f->where.grid_size = grid;
        f->home = b;
        f->index = t;
        prepare(&f->self, stack + (size_t)t * STACK_BYTES, enter);
    }
}

void check_shared(run *r)
{
    for (block &b : r->blocks)
        for (size_t k = 0; k < GUARD_BYTES; k++)
            if (b.shared[r->shared_bytes + k] != 0xFF && r->failure[0] == 0)
                snprintf(r->failure, sizeof r->failure, "byte %zu behind the %zu bytes of shared memory was written", k,
                         r->shared_bytes);
}

} // namespace

/* How many blocks run together. */
static size_t count_together(const launch_request &request, unsigned launches, size_t blocks)
{
    if (request.cooperative)
        return blocks;
    if (!request.tickets)
        return request.cluster;
    const char *wanted = getenv("SEQLSTM_EMULATED_TOGETHER");
    const size_t together = wanted ? (size_t)atoi(wanted) : 1 + launches % 5;
    return together < 1 ? 1 : together < blocks ? together : blocks;
}

bool run_launch(const launch_request &request, char *out_failure, size_t capacity)
{
    static thread_local unsigned launches;
    const bool backwards = launches++ % 2;
    const dim3 grid = request.grid;
    const size_t count = (size_t)grid.x * grid.y * grid.z;
    run r;
    std::function<void()> kernel = request.kernel;
    r.kernel = &kernel;
    r.threads = request.block.x * request.block.y * request.block.z;
    r.shared_bytes = request.shared_bytes;
    r.cooperative = request.cooperative;
    r.late = backwards;
    r.cluster = request.cluster;
    r.blocks.resize(count_together(request, launches, count));
    /* Aligned as on the device. */
    const size_t stride = (r.shared_bytes + GUARD_BYTES + 15) / 16 * 16;
    std::vector<unsigned char> shared(r.blocks.size() * stride + 16);
    unsigned char *first = shared.data() + (16 - reinterpret_cast<uintptr_t>(shared.data()) % 16) % 16;
    for (size_t k = 0; k < r.blocks.size(); k++)
        r.blocks[k].shared = first + k * stride;
    pool.grow(r.blocks.size() * (size_t)r.threads * STACK_BYTES);
    running = &r;
    for (size_t done = 0; done < count && r.failure[0] == 0; done += r.blocks.size()) {
        if (r.blocks.size() > count - done)
            r.blocks.resize(count - done);
        for (size_t k = 0; k < r.blocks.size(); k++) {
            const size_t turn = done + k, b = backwards ? count - 1 - turn : turn;
            const dim3 at((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y));
            fill(&r.blocks[k], &r, at, grid, request.block, pool.base + k * r.threads * (size_t)STACK_BYTES);
        }
        schedule(&r, backwards);
        check_shared(&r);
    }
    running = nullptr;
    here = nullptr;
    snprintf(out_failure, capacity, "%s", r.failure);
    return r.failure[0] == 0;
}

/* ---- what kernels call ------------------------------------------------------------------------------------ */

void fail(const char *text)
{
    if (running->failure[0] == 0)
        snprintf(running->failure, sizeof running->failure, "%s (block %u, thread %u)", text,
                 running->current->where.block.x, running->current->index);
}

void *shared_memory() { return running->current->home->shared; }

void barrier_block() { wait(&running->current->home->gate, running->threads); }

void barrier_grid()
{
    if (!running->cooperative) {
        fail("a grid barrier in a launch that is not cooperative");
        leave(running->current);
    }
    wait(&running->gate, running->threads * (unsigned)running->blocks.size());
}

void barrier_cluster() { wait(&running->gate, running->threads * (unsigned)running->blocks.size()); }

void *map_shared(void *mine, int rank)
{
    const block *home = running->current->home;
    const ptrdiff_t offset = static_cast<unsigned char *>(mine) - home->shared;
    if (running->cooperative || rank < 0 || (unsigned)rank >= running->cluster || offset < 0 ||
        (size_t)offset >= running->shared_bytes) {
        fail("no shared memory of a block of this cluster");
        leave(running->current);
    }
    for (block &b : running->blocks)
        if (b.fibers[0].where.block.x % running->cluster == (unsigned)rank)
            return b.shared + offset;
    return mine; /* not reached: a cluster has every rank */
}

static void deliver(const parcel &p)
{
    if (p.from)
        memcpy(p.to, p.from, 16);
    else
        memset(p.to, 0, 16);
}

void copy_async(void *to, const void *from, bool inside)
{
    fiber *f = running->current;
    const ptrdiff_t offset = static_cast<unsigned char *>(to) - f->home->shared;
    if (offset < 0 || (size_t)offset + 16 > running->shared_bytes || offset % 16 != 0 ||
        reinterpret_cast<uintptr_t>(from) % 16 != 0) {
        fail("an asynchronous copy that is not aligned, or not into the block's shared memory");
        leave(f);
    }
    const parcel p = {to, inside ? from : nullptr, f->groups};
    if (running->late)
        f->parcels.push_back(p);
    else
        deliver(p);
}

void copy_close() { running->current->groups++; }

void copy_wait(unsigned latest)
{
    fiber *f = running->current;
    size_t arrived = 0;
    while (arrived < f->parcels.size() && f->parcels[arrived].group + latest < f->groups)
        deliver(f->parcels[arrived++]);
    f->parcels.erase(f->parcels.begin(), f->parcels.begin() + (ptrdiff_t)arrived);
}

void yield()
{
    running->current->spinning = true;
    leave(running->current);
}

/* All lanes of the mask bring a value and go on when all have taken what they came for. */
static warp *gather(unsigned mask, uint64_t value, bool vote)
{
    fiber *f = running->current;
    block *b = f->home;
    warp *w = &b->warps[f->index / 32];
    const unsigned lane = f->index % 32, last = running->threads - f->index / 32 * 32;
    if (last < 32)
        mask &= (1u << last) - 1;
    if (!(mask >> lane & 1))
        fail("a thread takes part in a shuffle or vote whose mask leaves it out");
    if (w->came == 0) {
        w->mask = mask;
        w->votes = 0;
    } else if (w->mask != mask) {
        fail("threads of a warp meet with different masks");
    }
    if (running->failure[0])
        leave(f);
    w->values[lane] = value;
    w->votes |= vote ? 1u << lane : 0;
    w->came |= 1u << lane;
    wait(&w->gate, (unsigned)__builtin_popcount(mask));
    return w;
}

static void scatter(warp *w)
{
    const unsigned expected = (unsigned)__builtin_popcount(w->mask);
    if (++w->left == expected) {
        w->left = 0;
        w->came = 0;
    }
    wait(&w->gate, expected);
}

void barrier_warp(unsigned mask) { scatter(gather(mask, 0, false)); }

unsigned ballot(unsigned mask, bool vote)
{
    warp *w = gather(mask, 0, vote);
    const unsigned votes = w->votes;
    scatter(w);
    return votes;
}

const void *bring(const void *mine, size_t bytes)
{
    fiber *f = running->current;
    warp *w = &f->home->warps[f->index / 32];
    if (running->threads % 32 != 0)
        fail("tensor cores want whole warps");
    memcpy(w->goods[f->index % 32].bytes, mine, bytes);
    gather(0xFFFFFFFFu, 0, false);
    return w->goods;
}

void carry_off() { scatter(&running->current->home->warps[running->current->index / 32]); }

uint64_t exchange(unsigned mask, uint64_t mine, unsigned from)
{
    warp *w = gather(mask, mine, false);
    if (!(w->mask >> from & 1)) {
        fail("a shuffle reads from a lane that its mask leaves out");
        leave(running->current);
    }
    const uint64_t value = w->values[from];
    scatter(w);
    return value;
}

} // namespace emulation
