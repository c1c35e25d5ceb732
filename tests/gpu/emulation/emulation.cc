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

__thread place *here;

namespace
{

enum { STACK_BYTES = 64 * 1024, GUARD_BYTES = 64, IDLE_ROUNDS = 200000 };
/* Stacks begin at different places of a page, so that they do not share the same few lines of the cache. */
enum { STAGGER_STEP = 320, STAGGER_BYTES = 4096 };

/* ---- stacks ---------------------------------------------------------------------------------------------- */

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

/* ---- one launch ----------------------------------------------------------------------------------------- */

struct fiber;

/* The first of those that wait, who name each other. */
struct barrier {
    unsigned arrived = 0;
    fiber *waiting = nullptr;
};

/* Lanes meet, and the last one to arrive gives each lane its result. So a lane that continues may arrive again before
 * the others have read theirs. Lanes that are not ready wait or are done; fresh ones have not begun. */
struct warp {
    uint32_t ready, fresh;
    uint64_t values[32] = {}, taken[32];
    unsigned char from[32] = {};
    unsigned came, mask = 0;
    bool vote = false;
    work_fn *work = nullptr;
    brought goods[32], received[32];
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
    warp *mates;
    unsigned index; /* in the block */
    size_t stack;   /* on which it runs */
    fiber *next;    /* that waits at the same barrier */
    std::vector<parcel> parcels;
    unsigned groups; /* of copies, closed */
};

struct block {
    std::vector<fiber> fibers;
    std::vector<warp> warps;
    dim3 at;
    barrier gate, named[16];
    unsigned char *shared = nullptr;
};

/* The state of the scheduler, which goes from thread to thread, again and again, until all are done. */
struct sweep {
    size_t block = 0, warp = 0;
    uint32_t lanes = ~0u; /* that have not had their turn in this pass over the warp */
    unsigned alive = 0, idle = 0;
    bool moved = false, spun = false; /* since this sweep began */
    bool warp_moved = false;          /* since this pass over the warp began */
    bool block_moved = false;         /* the same for the block */
};

/* Blocks and what they hold are kept from launch to launch; the first `count` run. */
struct run {
    std::function<void()> *kernel;
    std::vector<block> blocks;
    size_t count = 0;
    barrier gate;
    size_t shared_bytes = 0;
    unsigned threads = 0, warps = 0; /* of a block */
    dim3 grid_size, block_size;
    bool cooperative = false, backwards = false;
    unsigned cluster = 1;
    std::unordered_map<const mbarrier *, std::vector<letter>> letters; /* by the barrier that counts them */
    sweep at;
    context scheduler;
    fiber *current = nullptr;
    size_t stacks_begun = 0;
    std::vector<size_t> stacks_left; /* by threads that are done */
    char failure[256] = "";
};

__thread run *running __attribute__((tls_model("initial-exec")));

uint32_t get_bit(const fiber *f)
{
    return 1u << f->index % 32;
}

void fail_waiting(run *r)
{
    const unsigned threads = (unsigned)r->count * r->threads;
    unsigned waiting = r->at.alive;
    for (size_t k = 0; k < r->count; k++)
        for (unsigned w = 0; w < r->warps; w++)
            waiting -= (unsigned)__builtin_popcount(r->blocks[k].warps[w].ready);
    snprintf(r->failure, sizeof r->failure, "%u threads wait at a barrier that not all reach: %u of %u have ended%s",
             waiting, threads - r->at.alive, threads, r->at.idle > IDLE_ROUNDS ? ", others spin" : "");
}

/* The next thread of the block whose turn it is, or NULL. The threads of a warp have their turns again and again until
 * all of them wait for other warps: what they use remains in the cache, and a warp runs ahead as far as it can. */
fiber *find_in_block(run *r, block *b)
{
    sweep *s = &r->at;
    while (s->warp < r->warps) {
        const unsigned number = (unsigned)(r->backwards ? r->warps - 1 - s->warp : s->warp);
        const uint32_t ready = b->warps[number].ready & s->lanes;
        if (ready != 0) {
            const unsigned lane = (unsigned)(r->backwards ? 31 - __builtin_clz(ready) : __builtin_ctz(ready));
            s->lanes = r->backwards ? (1u << lane) - 1 : ~1u << lane;
            return &b->fibers[number * 32 + lane];
        }
        s->warp += !s->warp_moved;
        s->warp_moved = false;
        s->lanes = ~0u;
    }
    return nullptr;
}

/* The thread whose turn it is; NULL if all are done or the launch has failed. A block runs ahead, too, as far as it can
 * without the others: if it does not wait for them, it finds nothing of theirs. */
fiber *find_next(run *r)
{
    sweep *s = &r->at;
    while (r->failure[0] == 0) {
        for (; s->block < r->count; s->block += !s->block_moved, s->block_moved = false, s->warp = 0) {
            fiber *f = find_in_block(r, &r->blocks[r->backwards ? r->count - 1 - s->block : s->block]);
            if (f)
                return f;
        }
        if (s->alive == 0)
            return nullptr;
        s->idle = s->moved ? 0 : s->idle + 1;
        if ((!s->moved && !s->spun) || s->idle > IDLE_ROUNDS)
            fail_waiting(r);
        s->block = s->warp = 0;
        s->moved = s->spun = false;
    }
    return nullptr;
}

/* The thread goes on, or begins. */
void take_turn(run *r, fiber *f)
{
    r->current = f;
    here = &f->where;
}

void begin(run *r, fiber *f, size_t stack)
{
    const unsigned t = f->index;
    const dim3 size = r->block_size;
    f->mates->fresh &= ~get_bit(f);
    f->stack = stack;
    f->groups = 0;
    f->parcels.clear();
    f->where.thread = size.x == r->threads ? dim3(t, 0, 0) : dim3(t % size.x, t / size.x % size.y, t / size.x / size.y);
    f->where.block = f->home->at;
    f->where.block_size = size;
    f->where.grid_size = r->grid_size;
}

void enter();

/* Threads begin on the stack of one that is done, if there is any. */
void begin_on_free_stack(run *r, fiber *f)
{
    size_t stack = r->stacks_begun;
    if (r->stacks_left.empty())
        r->stacks_begun++;
    else {
        stack = r->stacks_left.back();
        r->stacks_left.pop_back();
    }
    begin(r, f, stack);
    prepare(&f->self, pool.base + stack * STACK_BYTES, STACK_BYTES - stack * STAGGER_STEP % STAGGER_BYTES, enter);
}

/* Switches from one thread, or from the launching one, to the next. */
void go_on(run *r, context *from, fiber *next)
{
    if (next) {
        if (next->mates->fresh & get_bit(next))
            begin_on_free_stack(r, next);
        take_turn(r, next);
    }
    context *to = next ? &next->self : &r->scheduler;
    if (to != from)
        switch_to(from, to);
}

void note_move(run *r)
{
    r->at.moved = r->at.warp_moved = r->at.block_moved = true;
}

/* Lets the others run. A failed launch is never switched to again: its fibers are abandoned. */
void leave(fiber *f)
{
    run *r = running;
    note_move(r);
    go_on(r, &f->self, find_next(r));
}

void wait(barrier *gate, unsigned expected)
{
    fiber *f = running->current;
    if (++gate->arrived == expected) {
        for (fiber *other = gate->waiting; other; other = other->next)
            other->mates->ready |= get_bit(other);
        *gate = barrier();
        return;
    }
    f->next = gate->waiting;
    gate->waiting = f;
    f->mates->ready &= ~get_bit(f);
    leave(f);
}

/* Runs one thread after another while those whose turn it is have not begun; so threads that never wait need no
 * switch. */
void enter()
{
    run *r = running;
    for (;;) {
        (*r->kernel)();
        fiber *f = r->current;
        f->mates->ready &= ~get_bit(f);
        r->at.alive--;
        note_move(r);
        fiber *next = find_next(r);
        if (next && next->mates->fresh & get_bit(next)) {
            begin(r, next, f->stack);
            take_turn(r, next);
        } else {
            r->stacks_left.push_back(f->stack);
            go_on(r, &f->self, next);
            abort(); /* not reached */
        }
    }
}

/* Runs the blocks of `r` together until all threads are done. */
void schedule(run *r)
{
    r->at = sweep();
    r->letters.clear();
    r->stacks_begun = 0;
    r->stacks_left.clear();
    r->at.alive = (unsigned)r->count * r->threads;
    go_on(r, &r->scheduler, find_next(r));
    size_t left = 0;
    for (const auto &entry : r->letters)
        left += entry.second.size();
    if (left > 0 && r->failure[0] == 0)
        snprintf(r->failure, sizeof r->failure, "%zu stores are on their way to blocks that have ended", left);
}

/* The memory of a launch, kept for the next one of this thread. */
thread_local std::vector<block> kept_blocks;
thread_local std::vector<unsigned char> kept_shared;

void grow(run *r, size_t count)
{
    if (r->blocks.size() < count)
        r->blocks.resize(count);
    for (size_t k = 0; k < count; k++) {
        block *b = &r->blocks[k];
        if (b->fibers.size() < r->threads) {
            b->fibers.resize(r->threads);
            b->warps.resize(r->warps);
        }
    }
    /* Blocks of shared memory are aligned as on the device. */
    const size_t stride = (r->shared_bytes + GUARD_BYTES + 15) / 16 * 16;
    if (kept_shared.size() < count * stride + 16)
        kept_shared.resize(count * stride + 16);
    unsigned char *first = kept_shared.data() + (16 - reinterpret_cast<uintptr_t>(kept_shared.data()) % 16) % 16;
    for (size_t k = 0; k < count; k++)
        r->blocks[k].shared = first + k * stride;
    pool.grow(count * (size_t)r->threads * STACK_BYTES);
}

void fill(block *b, run *r, dim3 at)
{
    b->at = at;
    b->gate = barrier();
    std::fill(b->named, b->named + 16, barrier());
    memset(b->shared, 0xFF, r->shared_bytes + GUARD_BYTES); /* NaN, as in all unwritten memory */
    for (unsigned w = 0; w < r->warps; w++) {
        const unsigned lanes = r->threads - w * 32;
        b->warps[w].ready = b->warps[w].fresh = lanes < 32 ? (1u << lanes) - 1 : ~0u;
        b->warps[w].came = 0;
    }
    for (unsigned t = 0; t < r->threads; t++) {
        b->fibers[t].home = b;
        b->fibers[t].mates = &b->warps[t / 32];
        b->fibers[t].index = t;
    }
}

void check_shared(run *r)
{
    for (size_t b = 0; b < r->count; b++)
        for (size_t k = 0; k < GUARD_BYTES; k++)
            if (r->blocks[b].shared[r->shared_bytes + k] != 0xFF && r->failure[0] == 0)
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
    r.warps = (r.threads + 31) / 32;
    r.grid_size = grid;
    r.block_size = request.block;
    r.shared_bytes = request.shared_bytes;
    r.cooperative = request.cooperative;
    r.backwards = backwards;
    r.cluster = request.cluster;
    r.blocks.swap(kept_blocks);
    const size_t together = request.cooperative ? count : request.cluster;
    grow(&r, together);
    running = &r;
    for (size_t done = 0; done < count && r.failure[0] == 0; done += r.count) {
        r.count = std::min(together, count - done);
        for (size_t k = 0; k < r.count; k++) {
            const size_t turn = done + k, b = backwards ? count - 1 - turn : turn;
            fill(&r.blocks[k], &r,
                 dim3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)));
        }
        schedule(&r);
        check_shared(&r);
    }
    r.blocks.swap(kept_blocks);
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
    wait(&running->gate, running->threads * (unsigned)running->count);
}

void barrier_cluster()
{
    wait(&running->gate, running->threads * (unsigned)running->count);
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
    for (size_t k = 0; k < running->count; k++)
        if (running->blocks[k].at.x % running->cluster == (unsigned)rank)
            return running->blocks[k].shared + offset;
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
    run *r = running;
    r->at.spun = true;
    go_on(r, &r->current->self, find_next(r));
}

/* Gives each lane of the meeting the value of the lane that it named, or gives all of them the votes. */
static void deal(warp *w)
{
    unsigned votes = 0;
    for (unsigned l = 0; w->vote && l < 32; l++)
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
    warp *w = f->mates;
    const unsigned lane = f->index % 32, last = running->threads - f->index / 32 * 32;
    if (last < 32)
        mask &= (1u << last) - 1;
    if (w->came == 0) {
        w->mask = mask;
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
        w->ready |= mask;
    } else {
        w->ready &= ~(1u << lane);
        leave(f);
    }
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
    warp *w = f->mates;
    if (running->threads % 32 != 0)
        fail("tensor cores want whole warps");
    memcpy(w->goods[f->index % 32].bytes, mine, bytes);
    meet(0xFFFFFFFFu, 0, f->index % 32, false, work);
    return w->received[f->index % 32].bytes;
}

} // namespace emulation
