/* SPDX-License-Identifier: Apache-2.0 */
/* What both passes of the variant small have in common: the place of a lane, activations. See small.h. */
#ifndef CG_SMALL_LANE_H
#define CG_SMALL_LANE_H

#include "cuda-generic/device/mbarrier.h"
#include "cuda-generic/recurrent/kernels/layer.h"

static constexpr int cg_small_bits(int n)
{
    return n == 1 ? 0 : 1 + cg_small_bits(n / 2);
}

static constexpr int cg_small_lower(int a, int b)
{
    return a < b ? a : b;
}

/* The sequence of a lane and the order of its steps. Turns count from 0 in the order in which the kernel takes the
 * steps, over those of the longest sequence of the block. */
struct cg_small_walk {
    const int32_t *offsets; /* the low halves of row_offsets, at even places: rows fit into 32 bits */
    int first, sign, steps, length, b;

    __device__ __forceinline__ cg_small_walk(const struct cg_layer &y, int64_t b0, int row, bool downwards)
    {
        const bool there = b0 + row < y.axis.sequences;
        offsets = reinterpret_cast<const int32_t *>(y.axis.row_offsets);
        b = there ? (int)b0 + row : 0;
        steps = y.axis.lengths[b0];
        length = there ? y.axis.lengths[b] : 0;
        first = downwards ? steps - 1 : 0;
        sign = downwards ? -1 : 1;
    }

    /* The packed row at this turn; that of the last turn after the end, so that it may be asked for in advance. */
    __device__ __forceinline__ int find_row(int turn) const
    {
        return offsets[2 * (first + sign * (turn < steps ? turn : steps - 1))] + b;
    }

    __device__ __forceinline__ bool runs(int turn) const
    {
        return turn < steps && first + sign * turn < length;
    }
};

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
    return gpu_pick(candidate && fabsf(x) < CG_TANH_SMALL, cg_small_tanh_near(x), far);
}

#endif
