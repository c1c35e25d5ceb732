/* SPDX-License-Identifier: Apache-2.0 */
/* Included by all files with kernels. It includes CUDA, or the emulation of tests/gpu, with which the same files are
 * compiled for the host. Kernels use only names that both define: GPU_SHARED for shared memory, GPU_LAUNCH to start
 * a kernel. */
#ifndef GPU_CUDA_KERNEL_H
#define GPU_CUDA_KERNEL_H

#include <stdint.h>

#ifdef SEQLSTM_EMULATED
#include "emulation.h"
#else
#include <cuda_runtime.h>

#define GPU_SHARED(type, name)                                                                                         \
    extern __shared__ __align__(16) unsigned char gpu_shared_memory[];                                                 \
    type *name = reinterpret_cast<type *>(gpu_shared_memory)
#define GPU_LAUNCH(stream, grid, block, shared_bytes, kernel, ...)                                                     \
    (kernel<<<(grid), (block), (shared_bytes), static_cast<cudaStream_t>(stream)>>>(__VA_ARGS__),                      \
     static_cast<int>(cudaGetLastError()))
#endif

static const unsigned GPU_THREADS = 256;

/* The blocks of GPU_THREADS threads for n elements. Each thread continues at a distance of the grid's size. */
static inline unsigned gpu_blocks(int64_t n)
{
    const int64_t blocks = (n + GPU_THREADS - 1) / GPU_THREADS;
    return (unsigned)(blocks < 1 ? 1 : blocks < 16384 ? blocks : 16384);
}

#define GPU_FOR_EACH(index, n)                                                                                         \
    for (int64_t index = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; index < (n);                                  \
         index += (int64_t)blockDim.x * gridDim.x)

#endif
