/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers and their scheduler: one launch at a time on the thread of its stream. See emulation.h. */
#include "emulation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unordered_map>
#include <vector>

#include "emulated_runtime.h"
#include "fiber_context.h"

namespace emulation
{

thread_local place *here;

namespace
{

enum { STACK_BYTES = 64 * 1024, GUARD_BYTES = 64, IDLE_ROUNDS = 200000 };
/* Stacks begin at different places of a page, so that they do not share the same few lines of the cache. */
enum { STAGGER_STEP = 320, STAGGER_BYTES = 4096 };

/* ---- one launch ----------------------------------------------------------------------------------------- */

struct barrier {
    unsigned arrived = 0;
    unsigned generation = 0;
};

/* Lanes meet, and the last one to arrive gives each lane its result. So a lane that continues may arrive again before
 * the others have read theirs. */
struct warp {
    uint64_t values[32] = {}, taken[32];
    unsigned char from[32] = {};
    unsigned came = 0, mask = 0, expected = 0;
    bool vote = false;
    work_fn *work = nullptr;
    brought goods[32], received[32];
    barrier gate;
};

/* A copy on its way to shared memory. */
struct parcel {
    void *to;
    const void *from;
    size_t bytes, zeros;
    unsigned group;
};

/* A barrier in shared memory, in the 8 bytes that are its own on a device. */
struct mbarrier {
    int32_t missing; /* bytes that are expected and have not arrived */
    int16_t phase, arrivals;
};

/* A store on its way to the shared memory of another block. */
struct letter {
    unsigned char *to;
    unsigned char value[16];
    size_t bytes;
    mbarrier *counter;
};

struct block;

struct fiber {
    context self;
    place where;
    block *home;
    unsigned index; /* in the block */
    bool done = false, spinning = false;
    barrier *waits = nullptr;
    unsigned generation = 0;
    std::vector<parcel> parcels;
    unsigned groups = 0; /* of copies, closed */
};

struct block {
    std::vector<fiber> fibers;
    std::vector<warp> warps;
    barrier gate, named[16];
    unsigned char *shared = nullptr;
};

/* The state of the scheduler, which goes from thread to thread, again and again, until all are done. */
struct sweep {
    size_t block = 0, fiber = 0;
    unsigned alive = 0, idle = 0;
    bool moved = false, spun = false; /* since this sweep began */
    bool warp_moved = false;          /* since this pass over the warp began */
    bool block_moved = false;         /* the same for the block */
};

struct run {
    std::function<void()> *kernel;
    std::vector<block> blocks;
    barrier gate;
    size_t shared_bytes = 0;
    unsigned threads = 0;
    bool cooperative = false, backwards = false;
    unsigned cluster = 1;
    std::unordered_map<const mbarrier *, std::vector<letter>> letters; /* by the barrier that counts them */
    sweep at;
    context scheduler;
    fiber *current = nullptr;
    char failure[256] = "";
};

thread_local run *running __attribute__((tls_model("initial-exec")));

bool is_ready(fiber *f)
{
    if (f->done)
        return false;
    if (f->waits && f->waits->generation != f->generation)
        f->waits = nullptr;
    return f->waits == nullptr;
}

void fail_waiting(run *r)
{
    const unsigned threads = (unsigned)r->blocks.size() * r->threads;
    unsigned waiting = 0;
    for (block &b : r->blocks)
        for (fiber &f : b.fibers)
            waiting += !f.done && f.waits != nullptr;
    snprintf(r->failure, sizeof r->failure, "%u threads wait at a barrier that not all reach: %u of %u have ended%s",
             waiting, threads - r->at.alive, threads, r->at.idle > IDLE_ROUNDS ? ", others spin" : "");
}

/* The next thread of the block whose turn it is, or NULL. The threads of a warp have their turns again and again until
 * all of them wait for other warps: what they use remains in the cache, and a warp runs ahead as far as it can. */
fiber *find_in_block(run *r, std::vector<fiber> &fibers)
{
    sweep *s = &r->at;
    for (;;) {
        if (s->fiber % 32 == 0 || s->fiber == fibers.size()) {
            if (s->warp_moved)
                s->fiber = (s->fiber - 1) / 32 * 32;
            s->warp_moved = false;
            if (s->fiber == fibers.size())
                return nullptr;
        }
        fiber *f = &fibers[r->backwards ? fibers.size() - 1 - s->fiber : s->fiber];
        s->fiber++;
        if (is_ready(f))
            return f;
    }
}

/* The thread whose turn it is; NULL if all are done or the launch has failed. A block runs ahead, too, as far as it can
 * without the others: if it does not wait for them, it finds nothing of theirs. */
fiber *find_next(run *r)
{
    sweep *s = &r->at;
    while (r->failure[0] == 0) {
        for (; s->block < r->blocks.size(); s->block += !s->block_moved, s->block_moved = false, s->fiber = 0) {
            std::vector<fiber> &fibers = r->blocks[r->backwards ? r->blocks.size() - 1 - s->block : s->block].fibers;
            fiber *f = find_in_block(r, fibers);
            if (f)
                return f;
        }
        if (s->alive == 0)
            return nullptr;
        s->idle = s->moved ? 0 : s->idle + 1;
        if ((!s->moved && !s->spun) || s->idle > IDLE_ROUNDS)
            fail_waiting(r);
        s->block = s->fiber = 0;
        s->moved = s->spun = false;
    }
    return nullptr;
}

/* Switches from one thread, or from the launching one, to the next. */
void go_on(run *r, context *from)
{
    fiber *next = find_next(r);
    if (next) {
        r->current = next;
        here = &next->where;
        next->spinning = false;
    }
    context *to = next ? &next->self : &r->scheduler;
    if (to != from)
        switch_to(from, to);
}

/* Lets the others run. A failed launch is never switched to again: its fibers are abandoned. */
void leave(fiber *f)
{
    run *r = running;
    r->at.moved = r->at.moved || !f->spinning;
    r->at.warp_moved = r->at.warp_moved || !f->spinning;
    r->at.block_moved = r->at.block_moved || !f->spinning;
    r->at.spun = r->at.spun || f->spinning;
    r->at.alive -= f->done;
    go_on(r, &f->self);
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
    leave(f);
    abort(); /* not reached */
}

/* Runs the blocks of `r` together until all threads are done. */
void schedule(run *r)
{
    r->at = sweep();
    r->letters.clear();
    r->at.alive = (unsigned)r->blocks.size() * r->threads;
    go_on(r, &r->scheduler);
    size_t left = 0;
    for (const auto &entry : r->letters)
        left += entry.second.size();
    if (left > 0 && r->failure[0] == 0)
        snprintf(r->failure, sizeof r->failure, "%zu stores are on their way to blocks that have ended", left);
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
    b->gate = barrier();
    std::fill(b->named, b->named + 16, barrier());
    memset(b->shared, 0xFF, r->shared_bytes + GUARD_BYTES); /* NaN, as in all unwritten memory */
    for (unsigned t = 0; t < r->threads; t++) {
        fiber *f = &b->fibers[t];
        *f = fiber();
        f->where.thread = dim3(t % size.x, t / size.x % size.y, t / size.x / size.y);
        f->where.block = at;
        f->where.block_size = size;
        f->where.grid_size = grid;
        f->home = b;
        f->index = t;
        prepare(&f->self, stack + (size_t)t * STACK_BYTES, STACK_BYTES - t * STAGGER_STEP % STAGGER_BYTES, enter);
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
    r.backwards = backwards;
    r.cluster = request.cluster;
    r.blocks.resize(request.cooperative ? count : request.cluster);
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
        schedule(&r);
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

void *shared_memory()
{
    return running->current->home->shared;
}

void barrier_block()
{
    wait(&running->current->home->gate, running->threads);
}

void barrier_threads(int number, unsigned threads)
{
    if (number < 1 || number > 15 || threads % 32 != 0)
        fail("a barrier of some threads with a number that does not exist, or of parts of warps");
    wait(&running->current->home->named[number & 15], threads);
}

void barrier_grid()
{
    if (!running->cooperative) {
        fail("a grid barrier in a launch that is not cooperative");
        leave(running->current);
    }
    wait(&running->gate, running->threads * (unsigned)running->blocks.size());
}

void barrier_cluster()
{
    wait(&running->gate, running->threads * (unsigned)running->blocks.size());
}

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

int cluster_rank()
{
    return (int)(running->current->where.block.x % running->cluster);
}

static mbarrier *find_mbarrier(uint64_t *barrier)
{
    const block *home = running->current->home;
    const ptrdiff_t offset = reinterpret_cast<unsigned char *>(barrier) - home->shared;
    if (offset < 0 || (size_t)offset + sizeof(mbarrier) > running->shared_bytes || offset % 8 != 0) {
        fail("a barrier outside the block's shared memory");
        leave(running->current);
    }
    return reinterpret_cast<mbarrier *>(barrier);
}

/* One arrival and all expected bytes end a phase. */
static void settle(mbarrier *m)
{
    if (m->arrivals > 0 || m->missing != 0)
        return;
    m->phase++;
    m->arrivals = 1;
}

static void deliver(const letter &l)
{
    memcpy(l.to, l.value, l.bytes);
    l.counter->missing -= (int32_t)l.bytes;
    settle(l.counter);
}

void mbarrier_init(uint64_t *barrier)
{
    *find_mbarrier(barrier) = {0, 0, 1};
}

void mbarrier_expect(uint64_t *barrier, int bytes)
{
    mbarrier *m = find_mbarrier(barrier);
    if (m->arrivals != 1)
        fail("a phase of a barrier expects bytes twice");
    m->missing += bytes;
    m->arrivals--;
    settle(m);
}

void mbarrier_wait(uint64_t *barrier, int parity)
{
    const mbarrier *m = find_mbarrier(barrier);
    while ((m->phase & 1) == parity) {
        const auto mine = running->letters.find(m);
        if (mine != running->letters.end()) {
            for (const letter &l : mine->second)
                deliver(l);
            mine->second.clear();
        }
        if ((m->phase & 1) == parity)
            yield();
    }
}

void store_async(void *at, const void *value, size_t bytes, uint64_t *barrier, int rank)
{
    letter l = {static_cast<unsigned char *>(map_shared(at, rank)),
                {0},
                bytes,
                static_cast<mbarrier *>(map_shared(find_mbarrier(barrier), rank))};
    memcpy(l.value, value, bytes);
    if (running->backwards) /* stores arrive when they are waited for */
        running->letters[l.counter].push_back(l);
    else
        deliver(l);
}

static void deliver(const parcel &p)
{
    memcpy(p.to, p.from, p.bytes);
    memset(static_cast<unsigned char *>(p.to) + p.bytes, 0, p.zeros);
}

void copy_async(void *to, const void *from, size_t bytes, size_t zeros)
{
    fiber *f = running->current;
    const ptrdiff_t offset = static_cast<unsigned char *>(to) - f->home->shared;
    const size_t all = bytes + zeros;
    if (offset < 0 || (size_t)offset + all > running->shared_bytes || (size_t)offset % all != 0 ||
        reinterpret_cast<uintptr_t>(from) % all != 0) {
        fail("an asynchronous copy that is not aligned, or not into the block's shared memory");
        leave(f);
    }
    const parcel p = {to, from, bytes, zeros, f->groups};
    if (running->backwards) /* copies arrive when they are waited for */
        f->parcels.push_back(p);
    else
        deliver(p);
}

void copy_close()
{
    running->current->groups++;
}

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

/* Gives each lane of the meeting the value of the lane that it named, or gives all of them the votes. */
static void deal(warp *w)
{
    unsigned votes = 0;
    for (unsigned l = 0; l < 32; l++)
        votes |= (unsigned)(w->values[l] != 0) << l;
    for (unsigned l = 0; l < 32; l++)
        w->taken[l] = w->vote ? votes & w->mask : w->values[w->from[l]];
    w->came = 0;
}

/* All lanes of the mask pass a value and continue when the last one has arrived, which does the work, if any. Returns
 * the value of lane `from`, or the votes. */
static uint64_t meet(unsigned mask, uint64_t value, unsigned from, bool vote, work_fn *work = nullptr)
{
    fiber *f = running->current;
    warp *w = &f->home->warps[f->index / 32];
    const unsigned lane = f->index % 32, last = running->threads - f->index / 32 * 32;
    if (last < 32)
        mask &= (1u << last) - 1;
    if (w->came == 0) {
        w->mask = mask;
        w->expected = (unsigned)__builtin_popcount(mask);
        w->vote = vote;
        w->work = work;
    }
    if (!(mask >> lane & 1))
        fail("a thread takes part in a shuffle or vote whose mask leaves it out");
    if (!(mask >> from & 1))
        fail("a shuffle reads from a lane that its mask leaves out");
    if (w->mask != mask)
        fail("threads of a warp meet with different masks");
    if (w->vote != vote)
        fail("threads of a warp meet where some vote and others shuffle");
    if (w->work != work)
        fail("threads of a warp meet where they do different things");
    if (running->failure[0])
        leave(f);
    w->values[lane] = value;
    w->from[lane] = (unsigned char)from;
    w->came |= 1u << lane;
    if (w->came == mask) {
        if (work)
            work(w->goods, w->received);
        deal(w);
    }
    wait(&w->gate, w->expected);
    return w->taken[lane];
}

static unsigned own_lane()
{
    return running->current->index % 32;
}

void barrier_warp(unsigned mask)
{
    meet(mask, 0, own_lane(), false);
}

unsigned ballot(unsigned mask, bool vote)
{
    return (unsigned)meet(mask, vote, own_lane(), true);
}

uint64_t exchange(unsigned mask, uint64_t mine, unsigned from)
{
    return meet(mask, mine, from, false);
}

const void *work_together(const void *mine, size_t bytes, work_fn *work)
{
    fiber *f = running->current;
    warp *w = &f->home->warps[f->index / 32];
    if (running->threads % 32 != 0)
        fail("tensor cores want whole warps");
    memcpy(w->goods[f->index % 32].bytes, mine, bytes);
    meet(0xFFFFFFFFu, 0, f->index % 32, false, work);
    return w->received[f->index % 32].bytes;
}

} // namespace emulation
