/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant small: the cell with every option. See small.h.
 *
 * The gradients of a cell are linear in dh, the gradient of h^, and dc, that of c^:
 *
 *   dc = dh to_c + dc',  gradient of a gate = (dc or dh) times a factor,  dc' of the step before = dc back_c + …
 *
 * All factors are known before dh is, so options cost nothing on the way from one turn to the next. With LAYER_NORM two
 * sums over the layer lie on it. */
#ifndef CG_SMALL_CELL_BACKWARD_H
#define CG_SMALL_CELL_BACKWARD_H

#include "cuda-generic/recurrent/kernels/small_backward.h"
#include "cuda-generic/recurrent/kernels/small_cell.h"

/* The words of a record in the ring. */
enum {
    CG_SMALL_Z = 0, /* four sums; of a GRU the last is n */
    CG_SMALL_C_RAW = 4,
    CG_SMALL_BEFORE, /* c of an LSTM, h of a GRU */
    CG_SMALL_DY,
    CG_SMALL_OTHER_H,
    CG_SMALL_MOMENTS, /* four */
    CG_SMALL_V = CG_SMALL_MOMENTS + 4
};

template <class S_> struct cg_small_cell_back {
    typedef S_ S;
    static constexpr bool NORMED = S::KIND == CG_SMALL_NORMED;
    cg_small_back_place<S> place;
    struct cg_small_rules rules;
    const float *z, *c_raw_of, *n_of, *before_of, *before0, *dy, *other_h, *moments_of, *v_of;
    float *pre_u, *pre_v, *dv, *peep, *gain_v, *gain_c_to, *bias_c_to;
    float *room, *room_c;
    int n, gh, gates, dy_stride, b, weights;
    bool there, lstm;
    float dy_scale, mask, direct, dc, dh_end, gain[S::GATES], gain_c, bias_c, count;
    /* Of the turn: what prepare finds, */
    bool keeps_h, keeps_c;
    float d, to_c, back_c, to_direct, factor_u[S::GATES], factor_v[S::GATES], factor_peep[S::GATES];
    float normal[S::GATES], scale, normal_c, scale_c, by_output; /* NORMED */
    /* and what run finds. */
    float of_u[S::GATES], of_v[S::GATES], of_peep[S::GATES], of_q;

    __device__ __forceinline__ cg_small_cell_back(const struct cg_layer &y, const cg_small_back_place<S> &p,
                                                  const cg_small_walk<S::ROWS> &walk, float *rooms)
        : place(p), rules(y, walk.b, p.unit, p.own && p.unit < (int)y.hidden && walk.there), room(rooms),
          room_c(rooms + cg_small_room_floats<S>()), n((int)y.hidden), gh((int)y.gh), gates((int)y.gates),
          dy_stride((int)y.dy_stride), b(walk.b), weights(0), there(p.own && p.unit < (int)y.hidden && walk.there),
          lstm(y.cell == SEQLSTM_CELL_LSTM), dy_scale(y.dy_scale), dh_end(0), gain_c(0), bias_c(0), normal_c(0),
          scale_c(0), by_output(0), of_q(0)
    {
        const int64_t at = (int64_t)b * n + p.unit;
        const float *first = lstm ? y.c0 : y.h0;
        z = y.z + p.unit;
        c_raw_of = y.c_raw + p.unit;
        n_of = y.n + p.unit;
        before_of = (lstm ? y.c : y.h) + p.unit;
        before0 = first ? first + at : nullptr;
        dy = y.dy ? y.dy + y.dy_offset + p.unit : nullptr;
        other_h = y.other_h ? y.other_h + p.unit : nullptr;
        mask = there ? cg_or_one(y.mask_h, at) : 1.0f;
        direct = there ? cg_or_zero(y.dhn, at) : 0.0f;
        dc = there ? cg_or_zero(y.dcn, at) : 0.0f;
        pre_u = y.pre_u + p.unit;
        pre_v = y.pre_v != y.pre_u ? y.pre_v + p.unit : nullptr;
        peep = y.peephole && y.peep ? y.peep + p.unit : nullptr;
        CG_UNROLL
        for (int sum = 0; sum < 4; sum++)
            weights |= cg_small_has_weights(y, sum) ? 1 << sum : 0;
        if (NORMED)
            begin_normed(y);
    }

    __device__ __forceinline__ void begin_normed(const struct cg_layer &y)
    {
        moments_of = y.moments;
        v_of = y.v + place.unit;
        dv = y.dv + place.unit;
        gain_v = y.gain_v + place.unit;
        gain_c_to = y.gain_c + place.unit;
        bias_c_to = y.bias_c + place.unit;
        count = cg_count_used(&y);
        if (there && lstm) {
            gain_c = y.norm[8 * n + place.unit];
            bias_c = y.norm[9 * n + place.unit];
        }
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            gain[q] = there && has_weights(get_gate(q)) ? y.norm[gh + get_gate(q) * n + place.unit] : 0.0f;
    }

    __device__ __forceinline__ bool has_weights(int sum) const
    {
        return weights >> sum & 1;
    }

    /* The gate with number q of this lane. */
    __device__ __forceinline__ int get_gate(int q) const
    {
        return place.copy * S::GATES + q;
    }

    /* Of four values that of the lane's gate q. */
    __device__ __forceinline__ float choose(const float (&all)[4], int q) const
    {
        return S::COPY_BITS == 0   ? all[q]
               : S::COPY_BITS == 1 ? gpu_pick(place.copy != 0, all[2 + q % 2], all[q % 2])
                                   : gpu_pick((place.copy & 2) != 0, gpu_pick((place.copy & 1) != 0, all[3], all[2]),
                                              gpu_pick((place.copy & 1) != 0, all[1], all[0]));
    }

    __device__ __forceinline__ void copy(float *to, int row, int before, int turn,
                                         const cg_small_walk<S::ROWS> &walk) const
    {
        constexpr int APART = S::THREADS;
        const bool has = there && walk.runs(turn), goes_on = walk.runs(turn + 1);
        CG_UNROLL
        for (int q = 0; q < 4; q++)
            gpu_copy_async_word(to + (CG_SMALL_Z + q) * APART,
                                q < gates ? z + (int64_t)row * gh + q * n : n_of + (int64_t)row * n,
                                has && (q < gates || (rules.cell == SEQLSTM_CELL_GRU && q == 3)));
        gpu_copy_async_word(to + CG_SMALL_C_RAW * APART, c_raw_of + (int64_t)row * n, has && lstm);
        gpu_copy_async_word(to + CG_SMALL_BEFORE * APART, goes_on ? before_of + (int64_t)before * n : before0,
                            has && (goes_on || before0));
        gpu_copy_async_word(to + CG_SMALL_DY * APART, dy + (int64_t)row * dy_stride, has && dy);
        if (other_h)
            gpu_copy_async_word(to + CG_SMALL_OTHER_H * APART, other_h + (int64_t)row * n, has);
        if (NORMED) {
            CG_UNROLL
            for (int e = 0; e < 4; e++)
                gpu_copy_async_word(to + (CG_SMALL_MOMENTS + e) * APART, moments_of + (int64_t)row * 4 + e, has);
            CG_UNROLL
            for (int q = 0; q < S::GATES; q++)
                gpu_copy_async_word(to + (CG_SMALL_V + q) * APART, v_of + (int64_t)row * gh + get_gate(q) * n,
                                    has && has_weights(get_gate(q)));
        }
        gpu_copy_close();
    }

    __device__ __forceinline__ void prepare_lstm(const float *x, float before, float (&by)[4], float (&by_peep)[4])
    {
        constexpr int APART = S::THREADS;
        const float raw = x[CG_SMALL_C_RAW * APART], c = cg_clip(raw, rules.cell_clip);
        struct cg_small_point i = cg_small_evaluate(rules.gate, x[0], rules.gate_clip);
        struct cg_small_point f = cg_small_evaluate(rules.gate, x[APART], rules.gate_clip);
        struct cg_small_point g = cg_small_evaluate(rules.candidate, x[2 * APART], rules.gate_clip);
        struct cg_small_point o = cg_small_evaluate(rules.gate, x[3 * APART], rules.gate_clip);
        if (rules.coupled)
            f = {1.0f - i.value, 0.0f};
        float q = c;
        if (NORMED) {
            normal_c = (c - x[(CG_SMALL_MOMENTS + 2) * APART]) * x[(CG_SMALL_MOMENTS + 3) * APART];
            scale_c = x[(CG_SMALL_MOMENTS + 3) * APART];
            q = normal_c * gain_c + bias_c;
        }
        const struct cg_small_point out = cg_small_evaluate(rules.output, q, 0.0f);
        const float behind = cg_clip_slope(raw, rules.cell_clip);
        by[0] = (g.value - (rules.coupled ? before : 0.0f)) * i.slope * behind;
        by[1] = before * f.slope * behind;
        by[2] = i.value * g.slope * behind;
        by[3] = out.value * o.slope;
        by_peep[0] = by[0] * before;
        by_peep[1] = by[1] * before;
        by_peep[2] = 0.0f;
        by_peep[3] = by[3] * c;
        by_output = o.value * out.slope;
        to_c = (NORMED ? 0.0f : by_output) + rules.peephole[2] * by[3];
        back_c = f.value * behind + rules.peephole[0] * by[0] + rules.peephole[1] * by[1];
        to_direct = 0.0f;
    }

    __device__ __forceinline__ void prepare_gru(const float *x, float before, float (&by)[4], float (&by_u)[4])
    {
        constexpr int APART = S::THREADS;
        const struct cg_small_point r = cg_small_evaluate(rules.gate, x[0], rules.gate_clip);
        const struct cg_small_point keep = cg_small_evaluate(rules.gate, x[APART], rules.gate_clip);
        const struct cg_small_point now = cg_small_evaluate(rules.candidate, x[2 * APART], rules.gate_clip);
        by_u[2] = (1.0f - keep.value) * now.slope;
        by_u[0] = by[0] = by_u[2] * x[3 * APART] * r.slope;
        by_u[1] = by[1] = (before - now.value) * keep.slope;
        by[2] = by_u[2] * r.value;
        to_direct = keep.value;
    }

    __device__ __forceinline__ void prepare(const float *x, int turn, const cg_small_walk<S::ROWS> &walk)
    {
        constexpr int APART = S::THREADS;
        const bool runs = walk.runs(turn);
        const int t = walk.find_step(turn);
        const float before = x[CG_SMALL_BEFORE * APART], other = other_h ? x[CG_SMALL_OTHER_H * APART] : 1.0f;
        float by[4] = {}, by_u[4] = {}, by_peep[4] = {};
        d = fmaf(x[CG_SMALL_DY * APART] * dy_scale, other, direct);
        keeps_h = rules.is_kept(rules.hidden_key, rules.zoneout_hidden, t);
        keeps_c = rules.is_kept(rules.cell_key, rules.zoneout_cell, t);
        to_c = back_c = to_direct = 0.0f;
        if (lstm)
            prepare_lstm(x, before, by, by_peep);
        else if (rules.cell == SEQLSTM_CELL_GRU)
            prepare_gru(x, before, by, by_u);
        else
            by[0] = cg_small_evaluate(rules.candidate, x[0], rules.gate_clip).slope;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            factor_v[q] = gpu_pick(runs, choose(by, q), 0.0f);
            factor_u[q] = rules.cell == SEQLSTM_CELL_GRU ? gpu_pick(runs, choose(by_u, q), 0.0f) : factor_v[q];
            factor_peep[q] = gpu_pick(runs, choose(by_peep, q), 0.0f);
        }
        if (NORMED) {
            scale = x[(CG_SMALL_MOMENTS + 1) * APART];
            CG_UNROLL
            for (int q = 0; q < S::GATES; q++)
                normal[q] = has_weights(get_gate(q))
                                ? (x[(CG_SMALL_V + q) * APART] - x[CG_SMALL_MOMENTS * APART]) * scale
                                : 0.0f;
        }
    }

    /* From the gradient of q, the normalised c^, to that of c^. */
    __device__ __forceinline__ float normalise_cell(float dh_new)
    {
        of_q = dh_new * by_output;
        const float by_gain = there ? of_q * gain_c : 0.0f;
        float sum = by_gain, product = by_gain * normal_c;
        cg_small_sum_units<S>(&sum, &product, 3 | 16, place.copy == 0 && (threadIdx.x % 32 & 19) == 0, place.row,
                              room_c);
        return scale_c * (by_gain - (sum + normal_c * product) / (float)n);
    }

    /* From the gradients of the normalised products with W_h to those of the products. */
    __device__ __forceinline__ void normalise(float (&out)[S::GATES])
    {
        constexpr int COPIES = ((1 << S::COPY_BITS) - 1) << (2 + S::ROW_BITS), OVER = 3 | 16 | COPIES;
        float sum = 0, product = 0;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            out[q] *= gain[q];
            sum += out[q];
            product = fmaf(out[q], normal[q], product);
        }
        cg_small_sum_units<S>(&sum, &product, OVER, (threadIdx.x % 32 & OVER) == 0, place.row, room);
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            out[q] = there && has_weights(get_gate(q)) ? scale * (out[q] - (sum + normal[q] * product) / count) : 0.0f;
    }

    __device__ __forceinline__ void run(float sum, bool runs, float (&out)[S::GATES])
    {
        const float dh = fmaf(sum, mask, d), dh_new = gpu_pick(keeps_h, 0.0f, dh);
        float dc_now = fmaf(dh_new, to_c, gpu_pick(keeps_c, 0.0f, dc));
        direct = gpu_pick(runs, gpu_pick(keeps_h, dh, 0.0f) + dh_new * to_direct, direct);
        if (NORMED && lstm)
            dc_now += normalise_cell(dh_new);
        dc = gpu_pick(runs, fmaf(dc_now, back_c, gpu_pick(keeps_c, dc, 0.0f)), dc);
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            const float base = gpu_pick(lstm && get_gate(q) < 3, dc_now, dh_new);
            of_u[q] = base * factor_u[q];
            of_peep[q] = base * factor_peep[q];
            of_v[q] = out[q] = base * factor_v[q];
        }
        if (NORMED)
            normalise(out);
    }

    __device__ __forceinline__ void keep(int row, bool runs, const float (&out)[S::GATES]) const
    {
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            const int gate = get_gate(q);
            const bool stores = runs && there && gate < gates;
            const int64_t at = (int64_t)row * gh + gate * n;
            gpu_store_if(stores, pre_u + at, of_u[q]);
            gpu_store_if(stores && pre_v, pre_v + at, of_v[q]);
            gpu_store_if(stores && peep && gate != 2, peep + (int64_t)row * (3 * n) + (gate == 3 ? 2 : gate) * n,
                         of_peep[q]);
            if (NORMED) {
                gpu_store_if(stores, gain_v + at, of_v[q] * normal[q]);
                gpu_store_if(stores, dv + at, out[q]);
            }
        }
        if (NORMED) {
            const bool stores = runs && there && lstm && place.copy == 0;
            gpu_store_if(stores, gain_c_to + (int64_t)row * n, of_q * normal_c);
            gpu_store_if(stores, bias_c_to + (int64_t)row * n, of_q);
        }
    }

    __device__ __forceinline__ void end(bool is_end, float sum)
    {
        dh_end = gpu_pick(is_end, fmaf(sum, mask, direct), dh_end);
    }

    __device__ __forceinline__ void finish(const struct cg_layer &y) const
    {
        if (!there || place.copy != 0)
            return;
        if (y.dh0)
            y.dh0[b * n + place.unit] = dh_end;
        if (y.dc0)
            y.dc0[b * n + place.unit] = dc;
    }
};

#endif
