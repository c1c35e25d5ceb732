/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the variant small: an LSTM without options that concern its cell. See small.h. */
#include "cuda-generic/recurrent/kernels/small.h"
#include "cuda-generic/recurrent/kernels/small_forward.h"
#include "cuda-generic/recurrent/kernels/small_launch.h"

/* A lane with one gate of its unit computes the activation of this gate, and takes those of the others from its
 * neighbours. */
template <class S_> struct cg_small_lstm {
    typedef S_ S;
    cg_small_place<S> place;
    const float *u;
    float *z, *c_to, *h_to;
    int n, b;
    bool there, records;
    float bias[S::GATES], gates[S::GATES], c, h, mask;

    __device__ __forceinline__ cg_small_lstm(const struct cg_layer &y, const cg_small_place<S> &p,
                                             const cg_small_walk<S::ROWS> &walk, float *)
        : place(p), n(S::count_units(y)), b(walk.b), there(p.unit < S::count_units(y) && walk.there),
          records(y.training != 0)
    {
        const int64_t at = (int64_t)b * n + p.unit;
        u = y.u + p.gate0 * n + p.unit;
        z = y.z + p.gate0 * n + p.unit;
        c_to = y.c + p.unit;
        h_to = y.h + p.unit;
        h = there ? cg_or_zero(y.h0, at) : 0.0f;
        c = there ? cg_or_zero(y.c0, at) : 0.0f;
        mask = there ? cg_or_one(y.mask_h, at) : 1.0f;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            bias[q] = there && (!S::AHEAD || p.copy == 0) ? cg_or_zero(y.bias, (p.gate0 + q) * n + p.unit) : 0.0f;
    }

    __device__ __forceinline__ bool has_weights(int) const
    {
        return true;
    }

    __device__ __forceinline__ bool has_input(int) const
    {
        return there && (!S::AHEAD || place.copy == 0);
    }

    __device__ __forceinline__ const float *find_input(int row, int q) const
    {
        return u + (int64_t)row * (4 * n) + q * n;
    }

    __device__ __forceinline__ float start(float input, int q) const
    {
        return input + bias[q];
    }

    __device__ __forceinline__ float run(const float (&sums)[4], const float (&inputs)[S::GATES], int turn,
                                         const cg_small_walk<S::ROWS> &walk)
    {
        const bool runs = walk.runs(turn);
        float all[4];
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++) {
            const float x = S::AHEAD ? sums[q] : sums[q] + start(inputs[q], q);
            if (S::PART_BITS == 0)
                gates[q] = q == 2 ? cg_small_tanh(x) : cg_small_sigmoid(x);
            else
                gates[q] = q == 0 ? cg_small_gate(x, place.gate0 == 2) : cg_small_sigmoid(x);
        }
        cg_small_gather<S>(place, gates, all);
        const float c_new = fmaf(all[1], c, all[0] * all[2]), h_new = all[3] * cg_small_tanh(c_new);
        c = runs ? c_new : c;
        h = runs ? h_new : h;
        return h_new * mask;
    }

    __device__ __forceinline__ void keep(int row, bool runs) const
    {
        const bool stores = runs && there && place.copy == 0;
        CG_UNROLL
        for (int q = 0; q < S::GATES; q++)
            gpu_store_if(stores && records, z + (int64_t)row * (4 * n) + q * n, gates[q]);
        gpu_store_if(stores && place.part == 0, h_to + (int64_t)row * n, h);
        gpu_store_if(stores && records && place.part == (S::PART_BITS > 0), c_to + (int64_t)row * n, c);
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

template <class S>
static __global__ void __launch_bounds__(S::THREADS, S::LEAST_BLOCKS) forward(const struct cg_layer *layers)
{
    cg_small_run_forward<cg_small_lstm<S>>(layers);
}

template <int WIDTH, int ROWS> using any_shape = cg_small_shape<WIDTH, ROWS, CG_SMALL_PLAIN>;
template <int WIDTH, int ROWS> using full_shape = cg_small_shape<WIDTH, ROWS, CG_SMALL_FULL>;

template <class S> using starter = cg_small_starter<S, forward<S>>;

extern "C" int cg_small_lstm_forward_make(int64_t hidden, int32_t multiprocessors, struct cg_small *out_small)
{
    return cg_small_is_full(hidden) ? cg_small_ask_all<starter, full_shape>(hidden, multiprocessors, out_small)
                                    : cg_small_ask_all<starter, any_shape>(hidden, multiprocessors, out_small);
}

extern "C" int cg_small_lstm_forward(void *stream, const struct cg_layer *layer, int64_t directions,
                                     const struct cg_small *small, int64_t hidden, int64_t sequences)
{
    return cg_small_is_full(hidden)
               ? cg_small_start<starter, full_shape>(stream, layer, directions, small, hidden, sequences)
               : cg_small_start<starter, any_shape>(stream, layer, directions, small, hidden, sequences);
}
