/* SPDX-License-Identifier: Apache-2.0 */
/* What both passes of the variant small have in common: the place of a lane, activations. See small.h. */
#ifndef CG_SMALL_LANE_H
#define CG_SMALL_LANE_H

#include "cuda-generic/device/mbarrier.h"
#include "cuda-generic/recurrent/kernels/layer.h"

/* Kinds of kernels: an LSTM without options of its cell; the same where the layer has exactly as many units as the
 * shape, so that distances in memory are constants; any cell; any cell with LAYER_NORM. */
enum { CG_SMALL_PLAIN, CG_SMALL_FULL, CG_SMALL_CELL, CG_SMALL_NORMED };

static constexpr int cg_small_bits(int n)
{
    return n == 1 ? 0 : 1 + cg_small_bits(n / 2);
}

static constexpr int cg_small_lower(int a, int b)
{
    return a < b ? a : b;
}

/* The sequence of a lane and the order of its steps. Turns count from 0 in the order in which the kernel takes the
 * steps, over those of the longest sequence of the block. The sequence runs in turns begin … end - 1; with one sequence
 * per block, in all. */
template <int ROWS> struct cg_small_walk {
    const int32_t *offsets; /* the low halves of row_offsets, at even places: rows fit into 32 bits */
    int first, sign, steps, begin, end, b;
    bool there;

    __device__ __forceinline__ cg_small_walk(const struct cg_layer &y, int64_t b0, int row, bool downwards)
    {
        there = ROWS == 1 || b0 + row < y.axis.sequences;
        offsets = reinterpret_cast<const int32_t *>(y.axis.row_offsets);
        b = there ? (int)b0 + row : 0;
        steps = y.axis.lengths[b0];
        const int length = ROWS == 1 ? steps : there ? y.axis.lengths[b] : 0;
        first = downwards ? steps - 1 : 0;
        sign = downwards ? -1 : 1;
        begin = ROWS > 1 && downwards ? steps - length : 0;
        end = downwards ? steps : length;
    }

    /* The packed row at this turn; that of the last turn after the end, so that it may be asked for in advance. */
    __device__ __forceinline__ int find_row(int turn) const
    {
        return offsets[2 * find_step(turn < steps ? turn : steps - 1)] + b;
    }

    __device__ __forceinline__ int find_step(int turn) const
    {
        return first + sign * turn;
    }

    __device__ __forceinline__ bool runs(int turn) const
    {
        return (turn < end) & ((ROWS == 1) | (turn >= begin));
    }
};

/* Shared memory for sums over all units: [warps][ROWS][2], twice. */
template <class S> static __device__ __forceinline__ constexpr int cg_small_room_floats()
{
    return S::ROWS * 2 * (S::THREADS / 32);
}

/* The sums of a and b over lanes whose numbers differ in the bits `over`, and over all warps: for each sequence.
 * `writes`: one of the lanes with the same sums. All threads of the block call, once per turn. */
template <class S>
static __device__ __forceinline__ void cg_small_sum_units(float *a, float *b, int over, bool writes, int row,
                                                          float *room)
{
    static_assert(S::BLOCKS == 1, "a block has all units");
    CG_UNROLL
    for (int bit = 1; bit < 32; bit *= 2) {
        if (!(over & bit))
            continue;
        const float x = __shfl_xor_sync(0xFFFFFFFFu, *a, bit), y = __shfl_xor_sync(0xFFFFFFFFu, *b, bit);
        *a += x;
        *b += y;
    }
    if (writes) {
        room[((int)threadIdx.x / 32 * S::ROWS + row) * 2] = *a;
        room[((int)threadIdx.x / 32 * S::ROWS + row) * 2 + 1] = *b;
    }
    __syncthreads();
    *a = *b = 0.0f;
    CG_UNROLL
    for (int w = 0; w < S::THREADS / 32; w++) {
        *a += room[(w * S::ROWS + row) * 2];
        *b += room[(w * S::ROWS + row) * 2 + 1];
    }
}

template <class S> static __device__ __forceinline__ void cg_small_begin_barriers(uint64_t *barriers)
{
    if (S::BLOCKS > 1 && threadIdx.x == 0) {
        for (int k = 0; k < 2; k++) {
            gpu_mbarrier_init(barriers + k);
            gpu_mbarrier_fence();
            gpu_mbarrier_expect(barriers + k, S::BYTES_IN);
        }
    }
    if (S::BLOCKS > 1)
        gpu_barrier_cluster();
    else
        __syncthreads();
}

/* ---- activations without branches ---------------------------------------------------------------------------------
 */

static constexpr float CG_LOG2_E = 1.4426950408889634f, CG_TANH_SMALL = 0.6f;

/* tanh where |x| < CG_TANH_SMALL: an odd polynomial, which keeps the relative error small near 0. */
static __device__ __forceinline__ float cg_small_tanh_near(float x)
{
    const float q = x * x;
    float p = 0.01573968f;
    p = fmaf(p, q, -0.05230396f);
    p = fmaf(p, q, 0.13315296f);
    p = fmaf(p, q, -0.33332768f);
    return fmaf(p * q, x, x);
}

static __device__ __forceinline__ float cg_small_sigmoid(float x)
{
    return gpu_reciprocal(1.0f + gpu_exp2(-CG_LOG2_E * x));
}

static __device__ __forceinline__ float cg_small_tanh(float x)
{
    const float far = fmaf(gpu_reciprocal(1.0f + gpu_exp2(2.0f * CG_LOG2_E * x)), -2.0f, 1.0f);
    return gpu_pick(fabsf(x) < CG_TANH_SMALL, cg_small_tanh_near(x), far);
}

/* The sigmoid, or tanh in lanes with the candidate, with one exponential for both. */
static __device__ __forceinline__ float cg_small_gate(float x, bool candidate)
{
    const float r = gpu_reciprocal(1.0f + gpu_exp2(x * (candidate ? -2.0f * CG_LOG2_E : -CG_LOG2_E)));
    const float far = fmaf(r, candidate ? 2.0f : 1.0f, candidate ? -1.0f : 0.0f);
    return candidate && fabsf(x) < CG_TANH_SMALL ? cg_small_tanh_near(x) : far;
}

#endif
