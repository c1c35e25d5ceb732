/* SPDX-License-Identifier: Apache-2.0 */
/* What both passes of the variant small need of the options of a cell. See small.h; the equations are those of ops.h.
 *
 * A unit has four sums, of which each may have weights of W_h and an input:
 *
 *        LSTM                       GRU                        RNN
 *   0    i                          r                          h
 *   1    f (coupled gates: none)    z                          none
 *   2    g                          n, weights alone           none
 *   3    o                          n, input alone             none */
#ifndef CG_SMALL_CELL_H
#define CG_SMALL_CELL_H

#include "cuda-generic/recurrent/kernels/small_lane.h"

static __device__ __forceinline__ bool cg_small_has_weights(const struct cg_layer &y, int sum)
{
    return y.cell == SEQLSTM_CELL_LSTM ? sum != 1 || !cg_is_coupled(&y) : sum < (y.cell == SEQLSTM_CELL_GRU ? 3 : 1);
}

/* The column of the input of a sum, in units of the hidden size; -1: none. */
static __device__ __forceinline__ int cg_small_find_input(const struct cg_layer &y, int sum)
{
    if (y.cell == SEQLSTM_CELL_GRU)
        return sum == 2 ? -1 : sum == 3 ? 2 : sum;
    return cg_small_has_weights(y, sum) ? sum : -1;
}

/* The bias of a sum of unit k. */
static __device__ __forceinline__ float cg_small_find_bias(const struct cg_layer &y, int sum, int k)
{
    if (y.cell == SEQLSTM_CELL_GRU)
        return cg_or_zero(y.bias, (sum < 2 ? sum : 5 - sum) * y.hidden + k);
    return cg_small_has_weights(y, sum) ? cg_or_zero(y.bias, sum * y.hidden + k) : 0.0f;
}

static __device__ __forceinline__ float cg_small_activate(struct seqlstm_activation a, float x)
{
    return a.kind == SEQLSTM_ACT_SIGMOID ? cg_small_sigmoid(x)
           : a.kind == SEQLSTM_ACT_TANH  ? cg_small_tanh(x)
                                         : cg_activate(a, x);
}

struct cg_small_point {
    float value, slope;
};

/* An activation behind a clip (0: none), and its derivative. */
static __device__ __forceinline__ struct cg_small_point cg_small_evaluate(struct seqlstm_activation a, float z,
                                                                          float clip)
{
    const float x = cg_clip(z, clip), v = cg_small_activate(a, x), behind = cg_clip_slope(z, clip);
    const float slope = a.kind == SEQLSTM_ACT_SIGMOID ? v * (1.0f - v)
                        : a.kind == SEQLSTM_ACT_TANH  ? fmaf(-v, v, 1.0f)
                                                      : cg_slope(a, x);
    return {v, slope * behind};
}

/* The options of one unit of one sequence. */
struct cg_small_rules {
    struct seqlstm_activation gate, candidate, output;
    float gate_clip, cell_clip, zoneout_cell, zoneout_hidden;
    uint64_t cell_key, hidden_key, sequence;
    uint32_t cell, position;
    int unit;
    bool coupled, training, has_peephole;
    float peephole[3];

    __device__ __forceinline__ cg_small_rules(const struct cg_layer &y, int b, int k, bool there)
        : gate(y.gate), candidate(y.candidate), output(y.output), gate_clip(y.gate_clip), cell_clip(y.cell_clip),
          zoneout_cell(y.zoneout_cell), zoneout_hidden(y.zoneout_hidden), cell_key(y.zoneout_cell_key),
          hidden_key(y.zoneout_hidden_key), sequence(there ? y.axis.sequence_id[b] : 0), cell(y.cell),
          position(there ? y.axis.position0[b] + y.axis.t0 : 0), unit(k), coupled(cg_is_coupled(&y)),
          training(y.training != 0), has_peephole(y.peephole != nullptr)
    {
        CG_UNROLL
        for (int e = 0; e < 3; e++)
            peephole[e] = there && y.peephole ? y.peephole[e * y.hidden + k] : 0.0f;
    }

    /* Does zoneout keep the value before step t? In training. */
    __device__ __forceinline__ bool is_kept(uint64_t key, float rate, int t) const
    {
        return rate > 0 && seqlstm_mask_drops(key, (uint64_t)unit, position + (uint32_t)t, sequence, rate);
    }

    __device__ __forceinline__ float carry(uint64_t key, float rate, int t, float before, float now) const
    {
        if (rate == 0)
            return now;
        if (training)
            return is_kept(key, rate, t) ? before : now;
        return rate * before + (1.0f - rate) * now;
    }
};

#endif
