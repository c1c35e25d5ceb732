/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange of a recurrent layer in a cluster, without its arithmetic: in each step every block sends stores of 16
 * bytes to every block, and waits for its own. Both the number of blocks and that of the stores which a block receives
 * vary, so a device shows which of them a step depends on. */
#ifndef SEQLSTM_TESTS_GPU_EXCHANGE_H
#define SEQLSTM_TESTS_GPU_EXCHANGE_H

#include "cuda-generic/device/mbarrier.h"

enum { EXCHANGE_THREADS = 128, EXCHANGE_BLOCKS_MOST = 16, EXCHANGE_BARRIERS = 16 /* bytes before the stores */ };

static size_t count_exchange_bytes(int stores)
{
    return EXCHANGE_BARRIERS + 2 * (size_t)stores * 16; /* the step that is read and the one that arrives */
}

/* stores: that a block receives per step, a multiple of EXCHANGE_THREADS. *wrong is set where one is not of the last
 * step. */
static __global__ void exchange(int blocks, int stores, int steps, uint32_t *wrong)
{
    GPU_SHARED(unsigned char, shared);
    uint64_t *barriers = reinterpret_cast<uint64_t *>(shared);
    const int tid = (int)threadIdx.x, rank = gpu_cluster_rank(), share = stores / blocks, bytes = stores * 16;
    if (tid == 0) {
        for (int k = 0; k < 2; k++)
            gpu_mbarrier_init(&barriers[k]);
        gpu_mbarrier_fence();
        for (int k = 0; k < 2; k++)
            gpu_mbarrier_expect(&barriers[k], bytes);
    }
    gpu_barrier_cluster();
    for (int t = 0; t < steps; t++) {
        const int half = t & 1;
        uint32_t different = 0;
        if (t > 0) {
            gpu_mbarrier_wait(&barriers[half], (t - 1) / 2 & 1);
            if (tid == 0 && t + 2 < steps)
                gpu_mbarrier_expect(&barriers[half], bytes);
            for (int s = tid; s < stores; s += EXCHANGE_THREADS)
                different |=
                    *reinterpret_cast<uint32_t *>(shared + EXCHANGE_BARRIERS + half * bytes + s * 16) ^ (uint32_t)t;
        }
        if (different != 0)
            *wrong = 1;
        const uint32_t words[4] = {(uint32_t)t + 1, different, 0, 0};
        for (int s = tid; t + 1 < steps && s < stores; s += EXCHANGE_THREADS)
            gpu_send(gpu_find_peer(shared, s / share),
                     (uint32_t)(EXCHANGE_BARRIERS + (1 - half) * bytes + (rank * share + s % share) * 16), words,
                     (uint32_t)(8 * (1 - half)));
    }
    gpu_barrier_cluster();
}

#endif
