/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant small: the cell with every option. See small.h.
 *
 * All lanes of a unit and sequence take all four sums from each other and compute the whole cell; each stores a part of
 * the records. With LAYER_NORM the inputs are already normalised; sums over the layer go through shared memory. */
#ifndef CG_SMALL_CELL_FORWARD_H
#define CG_SMALL_CELL_FORWARD_H

#include "cuda-generic/recurrent/kernels/small_cell.h"
#include "cuda-generic/recurrent/kernels/small_forward.h"

template <class S_> struct cg_small_cell {
    typedef S_ S;
    static constexpr bool NORMED = S::KIND == CG_SMALL_NORMED;
    cg_small_place<S> place;
    struct cg_small_rules rules;
    const float *u;
    float *room, *room_c;
    int n, gh, b, weights; /* weights: a bit for each of the four sums */
    bool there, records;
    int column[S::GATES];
    float bias[S::GATES], gain[S::GATES], gain_c, bias_c, epsilon, count;
    float c, h, mask;
    /* Records: of the lane's sums z (or n of a GRU) and the product before its normalisation. */
    float *z_to[S::GATES], *v_to, *c_raw_to, *c_to, *h_to, *moments_to;
    int z_stride[S::GATES];
    float z[S::GATES], v[S::GATES], c_raw, moments[4], shift;

    __device__ __forceinline__ cg_small_cell(const struct cg_layer &y, const cg_small_place<S> &p,
                                             const cg_small_walk<S::ROWS> &walk, float *rooms)
        : place(p), rules(y, walk.b, p.unit, p.unit < (int)y.hidden && walk.there), u(NORMED ? y.z : y.u), room(rooms),
          room_c(rooms + cg_small_room_floats<S>()), n((int)y.hidden), gh((int)y.gh), b(walk.b), weights(0),
          there(p.unit < (int)y.hidden && walk.there), records(y.training != 0), epsilon(y.epsilon),
          c_raw(0), moments{0, 0, 0, 0}, shift(0)
    {
        const int64_t at = (int64_t)b * n + p.unit;
        h = there ? cg_or_zero(y.h0, at) : 0.0f;
        c = there ? cg_or_zero(y.c0, at) : 0.0f;
        mask = there ? cg_or_one(y.mask_h, at) : 1.0f;
        u += p.unit;
        v_to = y.v + p.unit;
        c_raw_to = y.c_raw + p.unit;
        c_to = y.c + p.unit;
        h_to = y.h + p.unit;
        moments_to = y.moments;
        count = cg_count_used(&y);
        gain_c = NORMED && there && y.cell == SEQLSTM_CELL_LSTM ? y.norm[8 * n + p.unit] : 1.0f;
        bias_c = NORMED && there && y.cell == SEQLSTM_CELL_LSTM ? y.norm[9 * n + p.unit] : 0.0f;
        CG_UNROLL
        for (int sum = 0; sum < 4; sum++)
            weights |= cg_small_has_weights(y, sum) ? 1 << sum : 0;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            const int sum = p.gate0 + q;
            const bool inner = y.cell == SEQLSTM_CELL_GRU && sum == 3;
            column[q] = cg_small_find_input(y, sum);
            bias[q] = there ? cg_small_find_bias(y, sum, p.unit) : 0.0f;
            gain[q] = NORMED && there && has_weights(sum) ? y.norm[gh + sum * n + p.unit] : 0.0f;
            z_to[q] = inner ? y.n + p.unit : sum < (int)y.gates ? y.z + sum * n + p.unit : nullptr;
            z_stride[q] = inner ? n : gh;
        }
    }

    __device__ __forceinline__ bool has_weights(int sum) const
    {
        return weights >> sum & 1;
    }

    __device__ __forceinline__ bool has_input(int q) const
    {
        return there && column[q] >= 0;
    }

    __device__ __forceinline__ const float *find_input(int row, int q) const
    {
        return u + (int64_t)row * gh + column[q] * n;
    }

    /* Normalises the products of all units with W_h. The mean of the step before is a shift that keeps the sum of
     * squares exact. */
    __device__ __forceinline__ void normalise(float (&sums)[S::GATES])
    {
        constexpr int UNIT_BITS = 31 & ~(S::LANES - 1), PARTS = (1 << S::PART_BITS) - 1;
        float sum = 0, squares = 0;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            v[q] = sums[q];
            const float x = place.unit < n && has_weights(place.gate0 + q) ? sums[q] - shift : 0.0f;
            sum += x;
            squares = fmaf(x, x, squares);
        }
        cg_small_sum_units<S>(&sum, &squares, UNIT_BITS | PARTS,
                              place.copy == 0 && (threadIdx.x % 32 & (UNIT_BITS | PARTS)) == 0, place.row, room);
        sum /= count;
        moments[0] = shift + sum;
        moments[1] = 1.0f / sqrtf(fmaxf(squares / count - sum * sum, 0.0f) + epsilon);
        shift = moments[0];
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            sums[q] = (sums[q] - moments[0]) * moments[1] * gain[q];
    }

    /* The cell state as the output sees it. All lanes of a unit and sequence have the same. */
    __device__ __forceinline__ float normalise_cell(float c_new)
    {
        constexpr int UNIT_BITS = 31 & ~(S::LANES - 1);
        const float mean_before = moments[2], x = place.unit < n ? c_new - mean_before : 0.0f;
        float sum = x, squares = x * x;
        cg_small_sum_units<S>(&sum, &squares, UNIT_BITS,
                              place.part == 0 && place.copy == 0 && (threadIdx.x % 32 & UNIT_BITS) == 0, place.row,
                              room_c);
        sum /= (float)n;
        moments[2] = mean_before + sum;
        moments[3] = 1.0f / sqrtf(fmaxf(squares / (float)n - sum * sum, 0.0f) + epsilon);
        return (c_new - moments[2]) * moments[3] * gain_c + bias_c;
    }

    __device__ __forceinline__ float gate(float x) const
    {
        return cg_small_activate(rules.gate, cg_clip(x, rules.gate_clip));
    }

    __device__ __forceinline__ float candidate(float x) const
    {
        return cg_small_activate(rules.candidate, cg_clip(x, rules.gate_clip));
    }

    /* h^ of an LSTM. */
    __device__ __forceinline__ float run_lstm(float (&x)[4], int t, bool runs)
    {
        x[0] = fmaf(rules.peephole[0], c, x[0]);
        x[1] = rules.coupled ? 0.0f : fmaf(rules.peephole[1], c, x[1]);
        const float i = gate(x[0]), f = rules.coupled ? 1.0f - i : gate(x[1]);
        c_raw = f * c + i * candidate(x[2]);
        const float c_new = cg_clip(c_raw, rules.cell_clip);
        x[3] = fmaf(rules.peephole[2], c_new, x[3]);
        const float q = NORMED ? normalise_cell(c_new) : c_new;
        c = gpu_pick(runs, rules.carry(rules.cell_key, rules.zoneout_cell, t, c, c_new), c);
        return gate(x[3]) * cg_small_activate(rules.output, q);
    }

    /* h^ of a GRU; x[2] and x[3] become the pre-activation of n and what r multiplies. */
    __device__ __forceinline__ float run_gru(float (&x)[4]) const
    {
        const float inner = x[2], r = gate(x[0]), keep = gate(x[1]);
        x[2] = fmaf(r, inner, x[3]);
        x[3] = inner;
        return (1.0f - keep) * candidate(x[2]) + keep * h;
    }

    __device__ __forceinline__ float run(float (&sums)[4], const float (&inputs)[S::GATES], int turn,
                                         const cg_small_walk<S::ROWS> &walk)
    {
        const bool runs = walk.runs(turn);
        const int t = walk.find_step(turn);
        float own[S::GATES], x[4];
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            own[q] = sums[q];
        if (NORMED)
            normalise(own);
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            own[q] += inputs[q] + bias[q];
        cg_small_gather<S>(place, own, x);
        const float h_new = rules.cell == SEQLSTM_CELL_LSTM  ? run_lstm(x, t, runs)
                            : rules.cell == SEQLSTM_CELL_GRU ? run_gru(x)
                                                             : candidate(x[0]);
        h = gpu_pick(runs, rules.carry(rules.hidden_key, rules.zoneout_hidden, t, h, h_new), h);
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            z[q] = S::PART_BITS == 0   ? x[q]
                   : S::PART_BITS == 1 ? gpu_pick(place.part != 0, x[2 + q % 2], x[q % 2])
                                       : gpu_pick(place.part >= 2, gpu_pick(place.part == 3, x[3], x[2]),
                                                  gpu_pick(place.part == 1, x[1], x[0]));
        return h * mask;
    }

    __device__ __forceinline__ void keep(int row, bool runs) const
    {
        const bool stores = runs && there && place.copy == 0, lstm = rules.cell == SEQLSTM_CELL_LSTM;
        const int last = (1 << S::PART_BITS) - 1;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            gpu_store_if(stores && records && z_to[q], z_to[q] + (int64_t)row * z_stride[q], z[q]);
            if (NORMED)
                gpu_store_if(stores && records && has_weights(place.gate0 + q),
                             v_to + (int64_t)row * gh + (place.gate0 + q) * n, v[q]);
        }
        gpu_store_if(stores && place.part == 0, h_to + (int64_t)row * n, h);
        gpu_store_if(stores && records && lstm && place.part == last / 2, c_to + (int64_t)row * n, c);
        gpu_store_if(stores && records && lstm && place.part == last, c_raw_to + (int64_t)row * n, c_raw);
        if (NORMED && stores && records && place.unit == 0 && place.part == 0)
            for (int e = 0; e < 4; e++)
                moments_to[(int64_t)row * 4 + e] = moments[e];
    }

    __device__ __forceinline__ void finish(const struct cg_layer &y) const
    {
        if (!there || place.part != 0 || place.copy != 0)
            return;
        if (y.hn)
            y.hn[b * n + place.unit] = h;
        if (y.cn)
            y.cn[b * n + place.unit] = c;
    }
};

#endif
