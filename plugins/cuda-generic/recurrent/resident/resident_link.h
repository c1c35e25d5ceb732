/* SPDX-License-Identifier: Apache-2.0 */
/* What units of the variant resident need of each other within a step: sums for LAYER_NORM. See resident.h.
 *
 * Each block publishes two numbers per sequence, and after a barrier every block adds those of all blocks in the same
 * order. There is room for two kinds of sums, [2][blocks][columns][2]: forward, and backward the other way round, W_h h
 * is normalised (kind 0 forward, 1 backward) and then c (1 and 0). A kind is written again only after the barrier of
 * the next step, which no block reaches before it has read.
 *
 * A step is divided into phases with a barrier between them. In each, a thread runs all its cells; what a phase has
 * found, the next one reads from the records of the layer. The records of the first cell are loaded before the wait.
 *
 *   LAYER_NORM   W_h h and its moments | z, c and the moments of c (LSTM only) | h
 *   late GRU     r and z; r h is published | W_hn multiplies it; h
 *
 * Backward takes the same phases in the opposite order. */
#ifndef CG_RESIDENT_LINK_H
#define CG_RESIDENT_LINK_H

#include "cuda-generic/recurrent/cluster/cluster_link.h"
#include "cuda-generic/recurrent/resident/resident_block.h"

/* Where block `block` has put its two numbers for a column. */
static __device__ __forceinline__ float *cg_resident_get_link(const struct cg_resident_place &p,
                                                              const struct cg_resident_call &call, int kind, int block,
                                                              int column)
{
    return p.links + 2 * ((int64_t)(kind * call.r.blocks + block) * call.columns + column);
}

/* Publishes the block's two numbers for a column. */
static __device__ __forceinline__ void cg_resident_put_link(const struct cg_resident_place &p,
                                                            const struct cg_resident_call &call, int kind, int column,
                                                            float a, float b)
{
    float *to = cg_resident_get_link(p, call, kind, p.block, column);
    to[0] = a;
    to[1] = b;
}

/* The sum over the lanes of the same sequence: `units` neighbouring lanes. All of them receive the same. */
static __device__ __forceinline__ float cg_resident_add_units(float value, int units)
{
    for (int step = 1; step < units; step *= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    return value;
}

/* How many values block `block` has of a sequence, if each unit has `each`. */
static __device__ __forceinline__ float cg_resident_count_values(const struct cg_resident_place &p,
                                                                 const struct cg_resident &r, int block, int each)
{
    const int left = (int)p.y->hidden - block * r.units;
    return (float)((left < r.units ? left : r.units) * each);
}

/* ---- moments ---------------------------------------------------------------------------------------------------- */

/* Publishes the mean of what the block's units have of a sequence, and the sum of the squares of the distances from it.
 * x: of the lane's unit; `which`: a bit for each of them, none if there is no such unit; each: how many they are. All
 * lanes of the warp call. */
static __device__ __forceinline__ void cg_resident_put_moments(const struct cg_resident_place &p,
                                                               const struct cg_resident_call &call, int kind,
                                                               int column, int own, bool there, const float (&x)[4],
                                                               int which, int each)
{
    float sum = 0, squares = 0;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        sum += which >> j & 1 ? x[j] : 0.0f;
    const float mean = cg_resident_add_units(sum, call.r.units) / cg_resident_count_values(p, call.r, p.block, each);
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        squares += which >> j & 1 ? (x[j] - mean) * (x[j] - mean) : 0.0f;
    squares = cg_resident_add_units(squares, call.r.units);
    if (there && own == 0)
        cg_resident_put_link(p, call, kind, column, mean, squares);
}

/* The mean and 1 / deviation of what all units have of a sequence. Distances from the mean of the first block keep the
 * sum of squares exact. All lanes of the warp call. */
static __device__ __forceinline__ void cg_resident_find_moments(const struct cg_resident_place &p,
                                                                const struct cg_resident_call &call, int kind,
                                                                int column, int own, bool there, int each,
                                                                float *moments)
{
    const struct cg_resident &r = call.r;
    const float shift = gpu_load_fresh(there, cg_resident_get_link(p, call, kind, 0, column));
    const float count = (float)((int)p.y->hidden * each);
    float sum = 0, squares = 0;
    CG_UNROLL_8
    for (int block = own; block < r.blocks; block += r.units) {
        const float *from = cg_resident_get_link(p, call, kind, block, column);
        const float distance = gpu_load_fresh(there, from) - shift;
        const float values = cg_resident_count_values(p, r, block, each) * distance;
        sum += values;
        squares += gpu_load_fresh(there, from + 1) + values * distance;
    }
    sum = cg_resident_add_units(sum, r.units) / count;
    squares = cg_resident_add_units(squares, r.units) / count;
    moments[0] = shift + sum;
    moments[1] = 1.0f / sqrtf(fmaxf(squares - sum * sum, 0.0f) + p.y->epsilon);
}

/* ---- plain sums ------------------------------------------------------------------------------------------------- */

/* Publishes the sums of a and b over the block's units. All lanes of the warp call. */
static __device__ __forceinline__ void cg_resident_put_sums(const struct cg_resident_place &p,
                                                            const struct cg_resident_call &call, int kind, int column,
                                                            int own, bool there, float a, float b)
{
    a = cg_resident_add_units(a, call.r.units);
    b = cg_resident_add_units(b, call.r.units);
    if (there && own == 0)
        cg_resident_put_link(p, call, kind, column, a, b);
}

/* Their sums over all units. All lanes of the warp call. */
static __device__ __forceinline__ void cg_resident_find_sums(const struct cg_resident_place &p,
                                                             const struct cg_resident_call &call, int kind, int column,
                                                             int own, bool there, float *a, float *b)
{
    *a = *b = 0.0f;
    CG_UNROLL_8
    for (int block = own; block < call.r.blocks; block += call.r.units) {
        const float *from = cg_resident_get_link(p, call, kind, block, column);
        *a += gpu_load_fresh(there, from);
        *b += gpu_load_fresh(there, from + 1);
    }
    *a = cg_resident_add_units(*a, call.r.units);
    *b = cg_resident_add_units(*b, call.r.units);
}

#endif
