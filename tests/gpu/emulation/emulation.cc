/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers and their scheduler: one launch at a time on the thread of its stream. See emulation.h. */
#include "emulation.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

#include "emulated_runtime.h"
#include "launch_state.h"

namespace emulation
{

__thread place *here;
__thread run *running __attribute__((tls_model("initial-exec")));

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

/* ---- turns --------------------------------------------------------------------------------------------------- */

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

} // namespace

void leave(fiber *f)
{
    run *r = running;
    note_move(r);
    go_on(r, &f->self, find_next(r));
}

void yield()
{
    run *r = running;
    r->at.spun = true;
    go_on(r, &r->current->self, find_next(r));
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

namespace
{

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

} // namespace emulation
