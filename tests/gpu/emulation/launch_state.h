/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a running launch: its blocks, warps and threads, and what they wait for. For emulation.cc, which
 * gives the threads their turns, and kernel_calls.cc. */
#ifndef SEQLSTM_LAUNCH_STATE_H
#define SEQLSTM_LAUNCH_STATE_H

#include <functional>
#include <unordered_map>
#include <vector>

#include "emulation.h"
#include "fiber_context.h"

namespace emulation
{

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

/* The launch of this thread. */
extern __thread run *running __attribute__((tls_model("initial-exec")));

inline uint32_t get_bit(const fiber *f)
{
    return 1u << f->index % 32;
}

/* Lets the others run. A failed launch is never switched to again: its fibers are abandoned. */
void leave(fiber *f);

/* Returns when so many have come, of which the current thread is one. */
void wait(barrier *gate, unsigned expected);

} // namespace emulation

#endif
