/* SPDX-License-Identifier: Apache-2.0 */
/* The header that kernel files of cuda-generic include first: CUDA or its emulation (common/cuda_kernel.h), launches of
 * many blocks at once, sums over threads. GPU_LAUNCH, GPU_LAUNCH_LARGE, GPU_LAUNCH_GRID and GPU_LAUNCH_CLUSTER
 * start kernels; CG_HD marks functions for both host and device. */
#ifndef CG_DEVICE_H
#define CG_DEVICE_H

#include "common/cuda_kernel.h"

#ifdef SEQLSTM_EMULATED
#define CG_UNROLL
#define CG_UNROLL_8
#define CG_NO_UNROLL
#else
#define CG_NO_UNROLL _Pragma("unroll 1")
#define CG_UNROLL    _Pragma("unroll")   /* for the next loop: arrays which it indexes stay in registers */
#define CG_UNROLL_8  _Pragma("unroll 8") /* loads of eight turns are under way at the same time */
#define GPU_LAUNCH_GRID(stream, grid, block, shared_bytes, kernel, ...)                                                \
    gpu_launch_grid(stream, grid, block, shared_bytes, kernel, __VA_ARGS__)

template <typename T> struct gpu_same {
    typedef T type;
};

#define GPU_LAUNCH_LARGE(stream, grid, block, shared_bytes, kernel, ...)                                               \
    gpu_launch_large(stream, grid, block, shared_bytes, kernel, __VA_ARGS__)

/* Launches with more shared memory than a kernel has by default. */
template <typename... P>
static inline int gpu_launch_large(void *stream, dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(P...),
                                   typename gpu_same<P>::type... arguments)
{
    const int code = static_cast<int>(cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                           static_cast<int>(shared_bytes)));
    return code != 0 ? code : GPU_LAUNCH(stream, grid, block, shared_bytes, kernel, arguments...);
}

/* Launches all blocks at once or fails; with more shared memory than a kernel has by default. */
template <typename... P>
static inline int gpu_launch_grid(void *stream, dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(P...),
                                  typename gpu_same<P>::type... arguments)
{
    void *list[] = {const_cast<void *>(static_cast<const void *>(&arguments))...};
    const void *entry = reinterpret_cast<const void *>(kernel);
    const int code = static_cast<int>(
        cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
    return code != 0 ? code
                     : static_cast<int>(cudaLaunchCooperativeKernel(entry, grid, block, list, shared_bytes,
                                                                    static_cast<cudaStream_t>(stream)));
}

#define GPU_LAUNCH_CLUSTER(stream, grid, cluster, block, shared_bytes, kernel, ...)                                    \
    gpu_launch_cluster(stream, grid, cluster, block, shared_bytes, kernel, __VA_ARGS__)
/* Lets a kernel have so much shared memory and so large a cluster. */
static inline int gpu_allow_cluster(const void *entry, int cluster, size_t shared_bytes)
{
    int code = static_cast<int>(
        cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
    if (code == 0 && cluster > 8) /* every such device supports 8 */
        code = static_cast<int>(cudaFuncSetAttribute(entry, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    return code;
}

static inline cudaLaunchAttribute gpu_cluster_size(int cluster)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    return attribute;
}

/* Launches clusters of `cluster` blocks, which can access each other's shared memory. */
template <typename... P>
static inline int gpu_launch_cluster(void *stream, dim3 grid, int cluster, dim3 block, size_t shared_bytes,
                                     void (*kernel)(P...), typename gpu_same<P>::type... arguments)
{
    void *list[] = {const_cast<void *>(static_cast<const void *>(&arguments))...};
    const void *entry = reinterpret_cast<const void *>(kernel);
    const int code = gpu_allow_cluster(entry, cluster, shared_bytes);
    if (code != 0)
        return code;
    cudaLaunchAttribute attribute = gpu_cluster_size(cluster);
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = &attribute;
    config.numAttrs = 1;
    return static_cast<int>(cudaLaunchKernelExC(&config, entry, list));
}

/* How many blocks, or clusters of blocks, of a kernel the current device runs at the same time. No clusters if the
 * kernel was compiled for devices without them, even if this device has them. */
template <typename... P>
static inline int gpu_count_together(void (*kernel)(P...), int cluster, int threads, size_t shared_bytes,
                                     int multiprocessors, int *out_count)
{
    const void *entry = reinterpret_cast<const void *>(kernel);
    int code = gpu_allow_cluster(entry, cluster, shared_bytes);
    cudaLaunchAttribute attribute = gpu_cluster_size(cluster);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(cluster * multiprocessors));
    config.blockDim = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaFuncAttributes compiled = {};
    *out_count = 0;
    if (code == 0)
        code = static_cast<int>(cudaFuncGetAttributes(&compiled, entry));
    if (code == 0 && cluster > 1 && compiled.ptxVersion >= 90)
        code = static_cast<int>(cudaOccupancyMaxActiveClusters(out_count, entry, &config));
    else if (code == 0 && cluster == 1)
        code = static_cast<int>(cudaOccupancyMaxActiveBlocksPerMultiprocessor(out_count, entry, threads, shared_bytes));
    if (cluster == 1)
        *out_count *= multiprocessors;
    cudaGetLastError(); /* the next launch must not report it */
    return code;
}

/* A barrier for all threads of the cluster: all see what was written before it. Does nothing on devices without
 * clusters, where no kernel that calls it is ever launched. */
static __device__ __forceinline__ void gpu_barrier_cluster()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" : : : "memory");
#endif
}

/* A barrier for `threads` threads of a block, whole warps; number 1 to 15. */
static __device__ __forceinline__ void gpu_barrier_threads(int number, int threads)
{
    asm volatile("bar.sync %0, %1;" : : "r"(number), "r"(threads) : "memory");
}

/* The largest value of the warp's lanes, all of which call. */
static __device__ __forceinline__ uint32_t gpu_warp_max(uint32_t value)
{
    return __reduce_max_sync(0xFFFFFFFFu, value);
}

/* Copies 16 bytes from global to shared memory while the thread continues; both addresses are aligned. If not `inside`,
 * writes zeros and reads nothing. Copies belong to the group that the next gpu_copy_close ends; gpu_copy_wait<N> waits
 * for all groups of the thread except the latest N. Other threads see the data after a barrier. */
static __device__ __forceinline__ void gpu_copy_async(void *to, const void *from, bool inside)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

/* The same for 4 bytes. */
static __device__ __forceinline__ void gpu_copy_async_word(float *to, const float *from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 4 : 0)
                 : "memory");
}

/* The same for BYTES, 16 or 4, of which only the first `bytes` are read; the rest becomes zeros. */
template <int BYTES> static __device__ __forceinline__ void gpu_copy_some(void *to, const void *from, int bytes)
{
    const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(at), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(at), "l"(from), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void gpu_copy_close()
{
    asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int LATEST> static __device__ __forceinline__ void gpu_copy_wait()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(LATEST) : "memory");
}

/* Announces a read of the line of 128 bytes around `at`. */
static __device__ __forceinline__ void gpu_prefetch(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

/* 2^x and 1 / x by the device's approximations, with relative errors of about 2^-22 and 2^-23. */
static __device__ __forceinline__ float gpu_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ __forceinline__ float gpu_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* first ? a : b, a load or 0, and a store or nothing: never by a branch, behind which the compiler would move loads
 * that are to be under way early. */
static __device__ __forceinline__ float gpu_pick(bool first, float a, float b)
{
    float y;
    asm("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %3, 0;\n\tselp.f32 %0, %1, %2, p;\n\t}"
        : "=f"(y)
        : "f"(a), "f"(b), "r"(static_cast<int>(first)));
    return y;
}

static __device__ __forceinline__ float gpu_load_if(bool wanted, const float *at)
{
    float y;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\tmov.f32 %0, 0f00000000;\n\t@p ld.global.f32 %0, [%1];\n\t}"
        : "=f"(y)
        : "l"(at), "r"(static_cast<int>(wanted))
        : "memory");
    return y;
}

static __device__ __forceinline__ void gpu_store_if(bool wanted, float *at, float value)
{
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p st.global.f32 [%0], %1;\n\t}"
                 :
                 : "l"(at), "f"(value), "r"(static_cast<int>(wanted))
                 : "memory");
}

/* Counters of the blocks of a launch whose blocks all run at once. */
static __device__ __forceinline__ unsigned gpu_load_acquire(const unsigned *at)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}

static __device__ __forceinline__ void gpu_add_release(unsigned *at, unsigned value)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}

/* Adds 1 to a counter and returns what it was: what the caller wrote before is visible to threads that count
 * later, and what threads that counted earlier wrote is visible to the caller. */
static __device__ __forceinline__ unsigned gpu_count(unsigned *at)
{
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(at) : "memory");
    return before;
}

/* Waits until a counter has reached `least`. A wait that lasts for seconds ends the kernel with an error. */
static __device__ __forceinline__ void gpu_wait_for(const unsigned *at, unsigned least)
{
    if (gpu_load_acquire(at) >= least)
        return;
    const long long begin = clock64(), most = 10ll << 31; /* ten seconds or more */
    while (gpu_load_acquire(at) < least)
        if (clock64() - begin > most)
            __trap();
}

/* A value, if wanted, that another block has stored since the launch; otherwise 0. */
static __device__ __forceinline__ float gpu_load_fresh(bool wanted, const float *at)
{
    float y;
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\tmov.f32 %0, 0f00000000;\n\t@p ld.relaxed.gpu.global.f32 "
        "%0, [%1];\n\t}"
        : "=f"(y)
        : "l"(at), "r"(static_cast<int>(wanted)));
    return y;
}
#endif

#include "cuda-generic/device/element.h"

static const unsigned CG_WARP = 32, CG_THREADS = GPU_THREADS, CG_ROW_THREADS = 128;
static const int64_t CG_BLOCKS_MOST = 65535;

static inline unsigned cg_blocks(int64_t n)
{
    return gpu_blocks(n);
}

/* One block per row; a block continues with every row that lies a multiple of the grid's size further on. */
static inline unsigned cg_row_blocks(int64_t rows)
{
    return (unsigned)(rows < CG_BLOCKS_MOST ? rows : CG_BLOCKS_MOST);
}

#define CG_FOR_EACH GPU_FOR_EACH

static __device__ __forceinline__ float cg_warp_sum(float x)
{
    for (int step = (int)CG_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

/* Is this the last block of the launch to call? It sees what all blocks have written before, and has set the counter
 * back to 0, which is its value before a launch. All threads call; `room`: shared memory for an int. */
static __device__ __forceinline__ bool cg_is_last_block(unsigned *counter, void *room)
{
    volatile int *const last = static_cast<int *>(room);
    __syncthreads(); /* threads may still be reading what is there */
    if (threadIdx.x == 0) {
        *last = gpu_count(counter) + 1 == gridDim.x;
        if (*last)
            *counter = 0;
    }
    __syncthreads();
    return *last != 0;
}

/* The sum (or maximum) over the threads of a block, returned to each; `room` has blockDim.x / 32 values. All threads
 * call. */
template <typename T> static __device__ T cg_block_sum(T x, T *room)
{
    for (int step = (int)CG_WARP / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    __syncthreads(); /* threads may still be reading the sum before */
    if (threadIdx.x % CG_WARP == 0)
        room[threadIdx.x / CG_WARP] = x;
    __syncthreads();
    T sum = 0;
    for (unsigned w = 0; w < blockDim.x / CG_WARP; w++)
        sum += room[w];
    return sum;
}

static __device__ inline float cg_block_max(float x, float *room)
{
    for (int step = (int)CG_WARP / 2; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    __syncthreads();
    if (threadIdx.x % CG_WARP == 0)
        room[threadIdx.x / CG_WARP] = x;
    __syncthreads();
    float most = room[0];
    for (unsigned w = 1; w < blockDim.x / CG_WARP; w++)
        most = fmaxf(most, room[w]);
    return most;
}

#endif
