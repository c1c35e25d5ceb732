/* SPDX-License-Identifier: Apache-2.0 */
/* A launch of each kind of device.h, as nvcc compiles them. See test_launches.cc. */
#include "cuda-generic/device/device.h"

static __global__ void kernel(int number, float *to)
{
    *to = (float)number;
}

extern "C" int start(int kind, void *stream, int number, float *to)
{
    const dim3 grid(6, 2), block(64);
    switch (kind) {
    case 0:
        return GPU_LAUNCH(stream, grid, block, 256, kernel, number, to);
    case 1:
        return GPU_LAUNCH_LARGE(stream, grid, block, 256, kernel, number, to);
    case 2:
        return GPU_LAUNCH_GRID(stream, grid, block, 256, kernel, number, to);
    case 3:
        return GPU_LAUNCH_CLUSTER(stream, grid, 2, block, 256, kernel, number, to);
    default:
        return GPU_LAUNCH_CLUSTER(stream, grid, 16, block, 256, kernel, number, to);
    }
}
