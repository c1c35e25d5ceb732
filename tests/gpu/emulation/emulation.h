/* SPDX-License-Identifier: Apache-2.0 */
/* The part of CUDA C++ that the kernels of plugins/cuda-generic use, on the host.
 *
 * A launch runs its blocks one after another (a cooperative one: all at once; with clusters: one cluster at once). The
 * threads of a block are fibers, which switch where they wait. So barriers, shuffles, votes, shared memory and atomics
 * work as on a device. Everything between them runs in an order that a device may choose too: forward or backward,
 * alternating from launch to launch, so that a missing barrier is noticed. Asynchronous copies arrive at once or as
 * late as possible.
 *
 * What blocks of a cluster store in each other's shared memory arrives at once or, like copies, when it is waited for.
 *
 * These errors end the launch and its stream: a barrier that not all threads reach, a shuffle whose mask names threads
 * that do not take part, a write beyond the shared memory, a spin loop that never ends.
 *
 * Not emulated: warps in lockstep (kernels must not rely on them), caches, and reordering of memory accesses. */
#ifndef SEQLSTM_TESTS_GPU_EMULATION_H
#define SEQLSTM_TESTS_GPU_EMULATION_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

namespace emulation
{

struct place {
    dim3 thread, block, block_size, grid_size;
};

/* The place of the running thread. initial-exec and __thread, because kernels read it all the time: access takes no
 * function call and no look at whether it is to be constructed. */
extern __thread place *here __attribute__((tls_model("initial-exec")));

void *shared_memory();
void barrier_block();
void barrier_threads(int number, unsigned threads);
void barrier_warp(unsigned mask);
void barrier_grid();
void barrier_cluster();
/* The same place in the shared memory of block `rank` of the cluster. */
void *map_shared(void *mine, int rank);
void yield(); /* called by a thread that waits for a value in memory */
unsigned ballot(unsigned mask, bool vote);
/* Returns the 8 bytes that lane `from` of the warp passed; `from` must be in the mask. */
uint64_t exchange(unsigned mask, uint64_t mine, unsigned from);

/* All 32 lanes of the warp pass up to 64 bytes each. When the last one has arrived, `work` turns what all have brought
 * into what each of them receives. The result is valid until the lane meets others again. */
struct alignas(16) brought {
    unsigned char bytes[64];
};
typedef void work_fn(const brought *all, brought *received);
const void *work_together(const void *mine, size_t bytes, work_fn *work);
/* Ends the launch with this reason. */
void fail(const char *text);

/* Copies `bytes` bytes and `zeros` zeros, 16 or 4 together, into shared memory, in the group that copy_close ends.
 * copy_wait waits for all groups of the thread except the latest. Copies arrive at once or, in launches whose threads
 * run backward, only when they are waited for. */
void copy_async(void *to, const void *from, size_t bytes, size_t zeros);
void copy_close();
void copy_wait(unsigned latest);

/* Barriers in shared memory that count bytes: plugins/cuda-generic/device/mbarrier.h. */
void mbarrier_init(uint64_t *barrier);
void mbarrier_expect(uint64_t *barrier, int bytes);
void mbarrier_wait(uint64_t *barrier, int parity);
void store_async(void *at, const void *value, size_t bytes, uint64_t *barrier, int rank);
int cluster_rank();

/* Launches a kernel on an emulated stream, or adds it to the capture of that stream. Returns 0, or a code as of
 * cudaError_t. */
int launch(const char *name, void *stream, dim3 grid, dim3 block, size_t shared_bytes, bool cooperative,
           std::function<void()> kernel, unsigned cluster = 1);

template <typename T> T exchange_value(unsigned mask, T value, unsigned from)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = exchange(mask, bits, from);
    memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace emulation

#define threadIdx (emulation::here->thread)
#define blockIdx  (emulation::here->block)
#define blockDim  (emulation::here->block_size)
#define gridDim   (emulation::here->grid_size)

#define GPU_SHARED(type, name) type *name = static_cast<type *>(emulation::shared_memory())
#define GPU_LAUNCH(stream, grid, block, shared_bytes, kernel, ...)                                                     \
    emulation::launch(#kernel, stream, grid, block, shared_bytes, false, [=] { kernel(__VA_ARGS__); })
#define GPU_LAUNCH_LARGE GPU_LAUNCH
#define GPU_LAUNCH_GRID(stream, grid, block, shared_bytes, kernel, ...)                                                \
    emulation::launch(#kernel, stream, grid, block, shared_bytes, true, [=] { kernel(__VA_ARGS__); })
#define GPU_LAUNCH_CLUSTER(stream, grid, cluster, block, shared_bytes, kernel, ...)                                    \
    emulation::launch(                                                                                                 \
        #kernel, stream, grid, block, shared_bytes, false, [=] { kernel(__VA_ARGS__); }, (unsigned)(cluster))

template <typename KERNEL>
static inline int gpu_count_together(KERNEL, int cluster, int, size_t, int multiprocessors, int *out_count)
{
    *out_count = multiprocessors / cluster;
    return 0;
}

static inline void __syncthreads()
{
    emulation::barrier_block();
}
static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu)
{
    emulation::barrier_warp(mask);
}
static inline unsigned __ballot_sync(unsigned mask, bool vote)
{
    return emulation::ballot(mask, vote);
}

static inline unsigned gpu_lane()
{
    const emulation::place *p = emulation::here;
    return (p->thread.x + p->block_size.x * (p->thread.y + p->block_size.y * p->thread.z)) % 32;
}

template <typename T> static inline T __shfl_sync(unsigned mask, T value, int lane)
{
    return emulation::exchange_value(mask, value, (unsigned)lane % 32);
}

template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int lanes)
{
    return emulation::exchange_value(mask, value, gpu_lane() ^ (unsigned)lanes);
}

template <typename T> static inline T atomicAdd(T *at, T value)
{
    T old = *at; /* fibers of one launch never run at the same time */
    *at = old + value;
    return old;
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}
static inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}
static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void gpu_barrier_cluster()
{
    emulation::barrier_cluster();
}

static inline void gpu_barrier_threads(int number, int threads)
{
    emulation::barrier_threads(number, (unsigned)threads);
}

static inline uint32_t gpu_warp_max(uint32_t value)
{
    for (int step = 16; step > 0; step /= 2) {
        const uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, value, step);
        value = other > value ? other : value;
    }
    return value;
}

static inline void gpu_copy_async(void *to, const void *from, bool inside)
{
    emulation::copy_async(to, from, inside ? 16 : 0, inside ? 0 : 16);
}

template <int BYTES> static inline void gpu_copy_some(void *to, const void *from, int bytes)
{
    emulation::copy_async(to, from, (size_t)bytes, (size_t)(BYTES - bytes));
}

static inline void gpu_copy_async_word(float *to, const float *from, bool inside)
{
    emulation::copy_async(to, from, inside ? 4 : 0, inside ? 0 : 4);
}

static inline void gpu_copy_close()
{
    emulation::copy_close();
}
template <int LATEST> static inline void gpu_copy_wait()
{
    emulation::copy_wait(LATEST);
}
static inline void gpu_prefetch(const void *)
{
}

static inline int gpu_cluster_rank()
{
    return emulation::cluster_rank();
}
static inline void gpu_mbarrier_init(uint64_t *barrier)
{
    emulation::mbarrier_init(barrier);
}
static inline void gpu_mbarrier_fence()
{
}
static inline void gpu_mbarrier_expect(uint64_t *barrier, int bytes)
{
    emulation::mbarrier_expect(barrier, bytes);
}
static inline void gpu_mbarrier_wait(uint64_t *barrier, int parity)
{
    emulation::mbarrier_wait(barrier, parity);
}
static inline void gpu_store_async(float *at, float value, uint64_t *barrier, int rank)
{
    emulation::store_async(at, &value, sizeof value, barrier, rank);
}

/* What gpu_find_peer returns: where the shared memory of this block begins, and the rank of the other. */
struct gpu_peer {
    unsigned char *mine;
    int rank;
};
static inline gpu_peer gpu_find_peer(void *shared, int rank)
{
    return {static_cast<unsigned char *>(shared), rank};
}
template <size_t WORDS>
static inline void gpu_send(gpu_peer peer, uint32_t to, const uint32_t (&words)[WORDS], uint32_t barrier)
{
    if (to % sizeof words != 0)
        emulation::fail("a store into another block's shared memory is not aligned");
    emulation::store_async(peer.mine + to, words, sizeof words, reinterpret_cast<uint64_t *>(peer.mine + barrier),
                           peer.rank);
}

/* The device's approximations, which turn denormal numbers into zeros. */
static inline float gpu_flush(float x)
{
    return fabsf(x) < 1.17549435e-38f ? copysignf(0.0f, x) : x;
}
static inline float gpu_exp2(float x)
{
    return gpu_flush(exp2f(gpu_flush(x)));
}
static inline float gpu_reciprocal(float x)
{
    return gpu_flush(1.0f / gpu_flush(x));
}
static inline float gpu_pick(bool first, float a, float b)
{
    return first ? a : b;
}
static inline float gpu_load_if(bool wanted, const float *at)
{
    return wanted ? *at : 0.0f;
}
static inline void gpu_store_if(bool wanted, float *at, float value)
{
    if (wanted)
        *at = value;
}

struct alignas(16) float4 {
    float x, y, z, w;
};

/* Counters of the blocks of a cooperative launch. */
static inline unsigned gpu_load_acquire(const unsigned *at)
{
    emulation::yield();
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static inline unsigned gpu_add_release(unsigned *at, unsigned value)
{
    return __atomic_fetch_add(at, value, __ATOMIC_RELEASE);
}

static inline unsigned gpu_count(unsigned *at)
{
    return __atomic_fetch_add(at, 1, __ATOMIC_ACQ_REL);
}

static inline void gpu_wait_for(const unsigned *at, unsigned least)
{
    while (gpu_load_acquire(at) < least) {
    }
}

static inline float gpu_load_fresh(bool wanted, const float *at)
{
    return wanted ? *at : 0.0f;
}

#endif
