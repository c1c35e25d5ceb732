/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on clusters whose units need sums of each other within a step: LAYER_NORM. See cluster.h.
 *
 * The lanes of a sequence add what they have; a record holds two such sums for two sequences. Each block sends its
 * records to all blocks, which add them in order: forward one of each block, which its warps have made together,
 * backward one of each warp. There is room for two kinds of sums, each with a barrier of its own: forward, and backward
 * the other way round, W_h h is normalised (kind 0 forward, 1 backward) and then c (1 and 0). The room for the sums of
 * a step is free when h of the step, or its gradient, has arrived, since all warps send these after they have read the
 * sums. */
#ifndef CG_CLUSTER_LINK_H
#define CG_CLUSTER_LINK_H

#include "cuda-generic/recurrent/cluster/cluster_block.h"

/* What backward of LAYER_NORM reads of a step: the sums over h before they were normalised, and the moments. */
struct cg_cluster_norm_past {
    float v[4], moments[4];
};

/* A bit for each gate that the layer computes with. */
static __device__ __forceinline__ int cg_cluster_gates(const struct cg_layer &y)
{
    return ((1 << y.gates) - 1) & ~(cg_is_coupled(&y) ? 2 : 0);
}

/* Bytes that a block receives for a kind of sums. */
template <class S> static __device__ __forceinline__ int cg_cluster_sum_bytes(const struct cg_cluster_place &p)
{
    return S::RECORDS * 16 * ((p.slots + 1) / 2);
}

/* Adds a and b over the lanes of the warp that have the same sequence. */
template <class S> static __device__ __forceinline__ void cg_cluster_add_lanes(float *a, float *b)
{
    CG_UNROLL
    for (int bit = S::BACK ? 2 : 4; bit <= (S::BACK ? 16 : 8); bit *= 2) {
        const float x = __shfl_xor_sync(0xFFFFFFFFu, *a, bit), y = __shfl_xor_sync(0xFFFFFFFFu, *b, bit);
        *a += x;
        *b += y;
    }
}

/* Sends what the warps of the block have, through the first one. */
template <class S>
static __device__ __forceinline__ void cg_cluster_send_together(const struct cg_cluster_place &p, uint32_t to,
                                                                uint32_t barrier, float a, float b)
{
    float *const room = reinterpret_cast<float *>(p.shared + S::WARP_SUMS_AT);
    if ((p.lane & 12) == 0) {
        room[(p.warp * 8 + p.column) * 2] = a;
        room[(p.warp * 8 + p.column) * 2 + 1] = b;
    }
    __syncthreads();
    if (p.warp != 0)
        return;
    const int pair = p.lane % 4;
    float sums[4] = {0, 0, 0, 0};
    CG_UNROLL
    for (int w = 0; w < S::WARPS; w++)
        CG_UNROLL
    for (int e = 0; e < 4; e++)
        sums[e] += room[w * 16 + pair * 4 + e];
    const uint32_t words[4] = {gpu_float_bits(sums[0]), gpu_float_bits(sums[1]), gpu_float_bits(sums[2]),
                               gpu_float_bits(sums[3])};
    for (int i = p.lane / 4; i < S::BLOCKS && 2 * pair < p.slots; i += 8)
        gpu_send(gpu_find_peer(p.shared, (i + p.rank) % S::BLOCKS), to + (uint32_t)(p.rank * 64 + pair * 16), words,
                 barrier);
}

/* Sends what the warp has for its two sequences. */
template <class S>
static __device__ __forceinline__ void cg_cluster_send_alone(const struct cg_cluster_place &p, uint32_t to,
                                                             uint32_t barrier, float a, float b)
{
    const float other_a = __shfl_xor_sync(0xFFFFFFFFu, a, 1), other_b = __shfl_xor_sync(0xFFFFFFFFu, b, 1);
    const bool second = p.lane & 1;
    const uint32_t words[4] = {gpu_float_bits(second ? other_a : a), gpu_float_bits(second ? other_b : b),
                               gpu_float_bits(second ? a : other_a), gpu_float_bits(second ? b : other_b)};
    const int record = p.rank * S::HALVES + p.warp / 4, pair = p.warp % 4;
    if (p.lane < S::BLOCKS && 2 * pair < p.slots)
        gpu_send(gpu_find_peer(p.shared, (p.lane + p.rank) % S::BLOCKS), to + (uint32_t)(record * 64 + pair * 16),
                 words, barrier);
}

/* The sums of a and b over all units of the cluster, for the sequence of the lane. All threads of the cluster call,
 * once per turn, group and kind. */
template <class S>
static __device__ __forceinline__ void cg_cluster_add_units(const struct cg_cluster_place &p, int group, int kind,
                                                            int turn, float *a, float *b)
{
    const uint32_t at = (uint32_t)(S::HEAD + group * S::GROUP + S::LINKS_AT + kind * S::RECORDS * 64);
    const uint32_t barrier = cg_cluster_link_at(group, kind);
    static_assert(2 * S::RECORDS * 64 <= S::RECEIVED, "room for two kinds of sums");
    __syncwarp();
    cg_cluster_add_lanes<S>(a, b);
    if constexpr (S::BACK)
        cg_cluster_send_alone<S>(p, at, barrier, *a, *b);
    else
        cg_cluster_send_together<S>(p, at, barrier, *a, *b);
    cg_cluster_wait_at(p, barrier, turn, cg_cluster_sum_bytes<S>(p));
    const float *from = reinterpret_cast<const float *>(p.shared + at) + 2 * p.column;
    *a = *b = 0.0f;
    CG_UNROLL_8
    for (int i = 0; i < S::RECORDS; i++) {
        *a += from[16 * i];
        *b += from[16 * i + 1];
    }
}

/* The mean and 1 / deviation of up to four values of each unit; `which`: a bit for each. *shift is a guess of the mean,
 * which keeps the sum of squares exact, and becomes the mean. */
template <class S>
static __device__ __forceinline__ void cg_cluster_find_moments(const struct cg_cluster_place &p, int group, int kind,
                                                               int turn, const float (&x)[4], int which, float count,
                                                               float *shift, float *moments)
{
    const float before = *shift;
    float sum = 0, squares = 0;
    CG_UNROLL
    for (int j = 0; j < 4; j++) {
        const float d = which >> j & 1 ? x[j] - before : 0.0f;
        sum += d;
        squares += d * d;
    }
    cg_cluster_add_units<S>(p, group, kind, turn, &sum, &squares);
    sum /= count;
    moments[0] = *shift = before + sum;
    moments[1] = 1.0f / sqrtf(fmaxf(squares / count - sum * sum, 0.0f) + p.y->epsilon);
}

/* From `d`, the gradient of the normalised c times its gain, to what c gets of it. */
template <class S>
static __device__ __forceinline__ float cg_cluster_normal_back(const struct cg_cluster_place &p, int group, int turn,
                                                               float d, float normal, float scale)
{
    float sum = d, product = d * normal;
    cg_cluster_add_units<S>(p, group, 0, turn, &sum, &product);
    return scale * (d - (sum + normal * product) / (float)p.y->hidden);
}

/* From the gradients of the normalised sums over h to those of the sums; `which`: a bit for each gate that the cell
 * has. normal: the normalised sums. */
template <class S>
static __device__ __forceinline__ void cg_cluster_normalise_back(const struct cg_cluster_place &p, int group, int turn,
                                                                 int which, float count,
                                                                 const struct cg_cluster_norm_past &x,
                                                                 const float *constants, float (&d)[4],
                                                                 float (&normal)[4])
{
    float sum = 0, product = 0;
    CG_UNROLL
    for (int j = 0; j < 4; j++) {
        normal[j] = which >> j & 1 ? (x.v[j] - x.moments[0]) * x.moments[1] : 0.0f;
        d[j] *= constants[(7 + j) * S::UNITS];
        sum += d[j];
        product += d[j] * normal[j];
    }
    cg_cluster_add_units<S>(p, group, 1, turn, &sum, &product);
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        d[j] = which >> j & 1 ? x.moments[1] * (d[j] - (sum + normal[j] * product) / count) : 0.0f;
}

/* ---- rows of memory ------------------------------------------------------------------------------------------- */

/* `v`: the sums over h before they are normalised. */
static __device__ __forceinline__ void cg_cluster_store_norm(const struct cg_layer &y, int row, int unit, int gates,
                                                             const float (&v)[4], const float (&moments)[4])
{
    float *to = y.v + (int64_t)row * y.gh + unit;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        if (gates >> j & 1)
            to[j * y.hidden] = v[j];
    if (unit == 0)
        CG_UNROLL
    for (int e = 0; e < 4; e++)
        y.moments[(int64_t)row * 4 + e] = moments[e];
}

static __device__ __forceinline__ struct cg_cluster_norm_past cg_cluster_load_norm(const struct cg_layer &y, bool runs,
                                                                                   int row, int unit)
{
    struct cg_cluster_norm_past x;
    CG_UNROLL
    for (int j = 0; j < 4; j++) {
        x.v[j] = gpu_load_if(runs && cg_cluster_has_gate(y, j), y.v + (int64_t)row * y.gh + j * y.hidden + unit);
        x.moments[j] = gpu_load_if(runs, y.moments + (int64_t)row * 4 + j);
    }
    return x;
}

/* Asks the L2 cache for the same, so that registers need not wait for it. */
static __device__ __forceinline__ void cg_cluster_announce_norm(const struct cg_layer &y, bool runs, int row, int unit)
{
    for (int j = 0; runs && j < (int)y.gates; j++)
        gpu_prefetch(y.v + (int64_t)row * y.gh + j * y.hidden + unit);
    if (runs)
        gpu_prefetch(y.moments + (int64_t)row * 4);
}

/* dv: gradients of the sums over h; sent: of the normalised sums with their gains; dq: of the normalised c. */
static __device__ __forceinline__ void cg_cluster_store_norm_gradients(const struct cg_layer &y, int row, int unit,
                                                                       const float (&dv)[4], const float (&sent)[4],
                                                                       const float (&normal)[4], float dq,
                                                                       float normal_c)
{
    const int64_t at = (int64_t)row * y.gh + unit, at_c = (int64_t)row * y.hidden + unit;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        if (j < (int)y.gates) {
            y.dv[at + j * y.hidden] = dv[j];
            y.gain_v[at + j * y.hidden] = sent[j] * normal[j];
        }
    if (y.cell == SEQLSTM_CELL_LSTM) {
        y.gain_c[at_c] = dq * normal_c;
        y.bias_c[at_c] = dq;
    }
}

#endif
