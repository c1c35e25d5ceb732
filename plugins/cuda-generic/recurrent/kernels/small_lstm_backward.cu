/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the variant small: an LSTM without options that concern its cell. See small.h. */
#include "cuda-generic/recurrent/kernels/small.h"
#include "cuda-generic/recurrent/kernels/small_backward.h"
#include "cuda-generic/recurrent/kernels/small_launch.h"

/* Activated gates, c of the step and of the step before, gradient of the output. */
struct cg_small_lstm_record {
    float i, f, g, o, c, before, dy; /* c: with several sequences; otherwise it is known from the turn before */
};

template <class S_> struct cg_small_lstm_back {
    typedef S_ S;
    typedef struct cg_small_lstm_record record;
    cg_small_back_place<S> place;
    const float *z, *c_of, *c0, *dy;
    float *pre;
    int n, dy_stride, b;
    bool there;
    float dy_scale, mask, direct, dc, dh_end;
    float c, to_c, f, d,
        factor[S::GATES]; /* of the turn: dc += dh to_c; a gate's gradient is dc or dh times its factor */

    __device__ __forceinline__ cg_small_lstm_back(const struct cg_layer &y, const cg_small_back_place<S> &p,
                                                  const cg_small_walk<S::ROWS> &walk, float *)
        : place(p), n(S::count_units(y)), dy_stride((int)y.dy_stride), b(walk.b),
          there(p.own && p.unit < S::count_units(y) && walk.there), dy_scale(y.dy_scale), dh_end(0), to_c(0), f(0), d(0)
    {
        const int64_t at = (int64_t)b * n + p.unit;
        z = y.z + p.unit;
        c_of = y.c + p.unit;
        c = there && S::ROWS == 1 ? c_of[(int64_t)walk.find_row(0) * n] : 0.0f;
        c0 = y.c0 ? y.c0 + at : nullptr;
        dy = y.dy ? y.dy + y.dy_offset + p.unit : nullptr;
        pre = y.pre_u + p.copy * S::GATES * n + p.unit;
        mask = there ? cg_or_one(y.mask_h, at) : 1.0f;
        direct = there ? cg_or_zero(y.dhn, at) : 0.0f;
        dc = there ? cg_or_zero(y.dcn, at) : 0.0f;
    }

    __device__ __forceinline__ bool has_weights(int) const
    {
        return true;
    }

    __device__ __forceinline__ void load(record &x, int row, int before, int turn,
                                         const cg_small_walk<S::ROWS> &walk) const
    {
        const bool has = there & walk.runs(turn), goes_on = walk.runs(turn + 1); /* & and |: no branches */
        const float *at = z + (int64_t)row * (4 * n);
        x.i = gpu_load_if(has, at);
        x.f = gpu_load_if(has, at + n);
        x.g = gpu_load_if(has, at + 2 * n);
        x.o = gpu_load_if(has, at + 3 * n);
        x.dy = gpu_load_if(has & (dy != nullptr), dy + (int64_t)row * dy_stride);
        if (S::ROWS > 1)
            x.c = gpu_load_if(has, c_of + (int64_t)row * n);
        x.before = gpu_load_if(has & (goes_on | (c0 != nullptr)), goes_on ? c_of + (int64_t)before * n : c0);
    }

    __device__ __forceinline__ const float *find_line(int row, int part, int unit) const
    {
        const int64_t k = (unit < n ? unit : n - 1) - place.unit;
        return part < 4                     ? z + (int64_t)row * (4 * n) + part * n + k
               : part == 4 || dy == nullptr ? c_of + (int64_t)row * n + k
                                            : dy + (int64_t)row * dy_stride + k;
    }

    __device__ __forceinline__ void prepare(const record &x, int, const cg_small_walk<S::ROWS> &)
    {
        const float q = cg_small_tanh(S::ROWS > 1 ? x.c : c);
        const float by_i = x.g * x.i * (1.0f - x.i), by_f = x.before * x.f * (1.0f - x.f);
        const float by_g = x.i * fmaf(-x.g, x.g, 1.0f), by_o = q * x.o * (1.0f - x.o);
        to_c = x.o * fmaf(-q, q, 1.0f);
        if (S::COPY_BITS == 2) {
            factor[0] = gpu_pick((place.copy & 2) != 0, gpu_pick((place.copy & 1) != 0, by_o, by_g),
                                 gpu_pick((place.copy & 1) != 0, by_f, by_i));
        } else if (S::COPY_BITS == 1) {
            factor[0] = gpu_pick(place.copy != 0, by_g, by_i);
            factor[1 % S::GATES] = gpu_pick(place.copy != 0, by_o, by_f);
        } else {
            factor[0] = by_i;
            factor[1 % S::GATES] = by_f;
            factor[2 % S::GATES] = by_g;
            factor[3 % S::GATES] = by_o;
        }
        f = x.f;
        d = fmaf(x.dy, dy_scale, direct);
        c = x.before;
    }

    __device__ __forceinline__ void run(float sum, bool runs, float (&out)[S::GATES])
    {
        const float dh = fmaf(sum, mask, d), dc_now = fmaf(dh, to_c, dc);
        direct = gpu_pick(runs, 0.0f, direct);
        dc = gpu_pick(runs, dc_now * f, dc);
        CG_UNROLL
        for (int e = 0; e < S::GATES; e++) {
            const bool is_output = place.copy * S::GATES + e == 3;
            out[e] = gpu_pick(is_output, dh, dc_now) * factor[e];
        }
    }

    __device__ __forceinline__ void keep(int row, bool runs, const float (&out)[S::GATES]) const
    {
        CG_UNROLL
        for (int e = 0; e < S::GATES; e++)
            gpu_store_if(runs & there, pre + (int64_t)row * (4 * n) + e * n, out[e]);
    }

    __device__ __forceinline__ void end(bool is_end, float sum)
    {
        dh_end = gpu_pick(is_end, sum * mask, dh_end);
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

template <class S>
static __global__ void __launch_bounds__(S::THREADS, S::LEAST_BLOCKS) backward(const struct cg_layer *layers)
{
    cg_small_run_backward<cg_small_lstm_back<S>>(layers);
}

template <int WIDTH, int ROWS> using any_shape = cg_small_back_shape<WIDTH, ROWS, CG_SMALL_PLAIN>;
template <int WIDTH, int ROWS> using full_shape = cg_small_back_shape<WIDTH, ROWS, CG_SMALL_FULL>;

template <class S> using starter = cg_small_starter<S, backward<S>>;

extern "C" int cg_small_lstm_backward_make(int64_t hidden, int32_t multiprocessors, struct cg_small *out_small)
{
    return cg_small_is_full(hidden) ? cg_small_ask_all<starter, full_shape>(hidden, multiprocessors, out_small)
                                    : cg_small_ask_all<starter, any_shape>(hidden, multiprocessors, out_small);
}

extern "C" int cg_small_lstm_backward(void *stream, const struct cg_layer *layer, int64_t directions,
                                      const struct cg_small *small, int64_t hidden, int64_t sequences)
{
    return cg_small_is_full(hidden)
               ? cg_small_start<starter, full_shape>(stream, layer, directions, small, hidden, sequences)
               : cg_small_start<starter, any_shape>(stream, layer, directions, small, hidden, sequences);
}
