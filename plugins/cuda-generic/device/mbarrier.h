/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange between the blocks of a cluster: stores into the shared memory of another block, and barriers in shared
 * memory (the PTX ISA's mbarrier) that count the bytes which have arrived. Devices of sm_90 and later; on others the
 * functions do nothing, and no kernel that calls them is ever launched. The emulation has the same functions.
 *
 *   gpu_mbarrier_init     one thread, then gpu_mbarrier_fence, then a barrier of the cluster
 *   gpu_mbarrier_expect   once per phase, one thread of the owner: the phase ends when so many bytes have arrived
 *   gpu_store_async       stores at the same place of block `rank`, and counts 4 bytes on its copy of the barrier
 *   gpu_mbarrier_wait     until the phase of this parity (0, 1, 0, …) has ended. A wait that lasts for seconds ends the
 *                         kernel with an error
 *   gpu_find_peer         the shared memory of block `rank`, which begins at `shared` in each block
 *   gpu_send              stores 2 or 4 words at a byte of a peer's shared memory, aligned to their size, and counts
 *                         their bytes on its barrier */
#ifndef CG_MBARRIER_H
#define CG_MBARRIER_H

#include "cuda-generic/device/device.h"

#ifndef SEQLSTM_EMULATED
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define GPU_HAS_CLUSTERS 1
#else
#define GPU_HAS_CLUSTERS 0
#endif

static __device__ __forceinline__ uint32_t gpu_shared_address(const void *at)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

static __device__ __forceinline__ int gpu_cluster_rank()
{
    uint32_t rank = 0;
#if GPU_HAS_CLUSTERS
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return static_cast<int>(rank);
}

static __device__ __forceinline__ void gpu_mbarrier_init(uint64_t *barrier)
{
#if GPU_HAS_CLUSTERS
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(gpu_shared_address(barrier)) : "memory");
#endif
    (void)barrier;
}

static __device__ __forceinline__ void gpu_mbarrier_fence()
{
#if GPU_HAS_CLUSTERS
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

static __device__ __forceinline__ void gpu_mbarrier_expect(uint64_t *barrier, int bytes)
{
#if GPU_HAS_CLUSTERS
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(gpu_shared_address(barrier)), "r"(bytes)
                 : "memory");
#endif
    (void)barrier;
    (void)bytes;
}

/* The instruction itself waits for a while, up to a limit of the system. It has the default scope: what st.async has
 * stored is visible, and an acquire by the cluster would discard the L1 cache in every step. */
static __device__ __forceinline__ bool gpu_mbarrier_try(uint32_t barrier, int parity)
{
    uint32_t done = 1;
#if GPU_HAS_CLUSTERS
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
#endif
    (void)barrier;
    (void)parity;
    return done != 0;
}

static __device__ __forceinline__ void gpu_mbarrier_wait(uint64_t *barrier, int parity)
{
    const uint32_t address = gpu_shared_address(barrier);
    if (gpu_mbarrier_try(address, parity))
        return;
    const long long begin = clock64(), most = 10ll << 31; /* ten seconds or more */
    while (!gpu_mbarrier_try(address, parity))
        if (clock64() - begin > most)
            __trap();
}

static __device__ __forceinline__ void gpu_store_async(float *at, float value, uint64_t *barrier, int rank)
{
#if GPU_HAS_CLUSTERS
    uint32_t there, counter;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(gpu_shared_address(at)), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(counter) : "r"(gpu_shared_address(barrier)), "r"(rank));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
                 :
                 : "r"(there), "r"(__float_as_uint(value)), "r"(counter)
                 : "memory");
#endif
    (void)at;
    (void)value;
    (void)barrier;
    (void)rank;
}

typedef uint32_t gpu_peer;

static __device__ __forceinline__ gpu_peer gpu_find_peer(const void *shared, int rank)
{
    gpu_peer peer = 0;
#if GPU_HAS_CLUSTERS
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer) : "r"(gpu_shared_address(shared)), "r"(rank));
#endif
    (void)shared;
    (void)rank;
    return peer;
}

static __device__ __forceinline__ void gpu_send(gpu_peer peer, uint32_t to, const uint32_t (&words)[4],
                                                uint32_t barrier)
{
#if GPU_HAS_CLUSTERS
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
                 :
                 : "r"(peer + to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(peer + barrier)
                 : "memory");
#endif
    (void)peer;
    (void)to;
    (void)words;
    (void)barrier;
}

static __device__ __forceinline__ void gpu_send(gpu_peer peer, uint32_t to, const uint32_t (&words)[2],
                                                uint32_t barrier)
{
#if GPU_HAS_CLUSTERS
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];"
                 :
                 : "r"(peer + to), "r"(words[0]), "r"(words[1]), "r"(peer + barrier)
                 : "memory");
#endif
    (void)peer;
    (void)to;
    (void)words;
    (void)barrier;
}
#else
#define GPU_HAS_CLUSTERS 1
#endif

#endif
