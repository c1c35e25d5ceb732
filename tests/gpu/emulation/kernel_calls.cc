/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels call: barriers, shared memory, copies, and the exchanges of a warp. See emulation.h. */
#include <cstdio>
#include <cstring>

#include "launch_state.h"

namespace emulation
{

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
