/* SPDX-License-Identifier: Apache-2.0 */
/* A layer for tests of kernels that run all its steps: an RNN without activation, h(t) = u(t) + W_h h(t - 1), so that
 * its states may have any size; and whether a step is right, against float64. */
#ifndef TEST_STEP_LAYER_H
#define TEST_STEP_LAYER_H

#include <cmath>
#include <cstdio>
#include <vector>

#include "common/cuda_runtime.h"
#include "cuda-generic/recurrent/kernels/layer.h"
#include "seqlstm/ops.h"

enum { UNITS = 70, SEQUENCES = 4, STEPS = 3, ROWS = SEQUENCES * STEPS };

inline float draw()
{
    static uint64_t seed = 5;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(seed >> 32) * 0x1p-31f;
}

/* `sizes`: of the states, or of the gradients, of each sequence. */
struct step_layer {
    std::vector<float> w, h0, z, h, dy, dz, dh0, direct, back, dc;
    std::vector<int32_t> lengths, batch_sizes;
    std::vector<int64_t> offsets;
    std::vector<uint32_t> exchange;
    cg_layer layer = {};

    explicit step_layer(const float sizes[SEQUENCES])
    {
        w.resize(UNITS * UNITS);
        h0.resize(SEQUENCES * UNITS);
        z.resize(ROWS * UNITS);
        h.resize(ROWS * UNITS);
        dh0.resize(SEQUENCES * UNITS);
        direct = back = dc = dh0;
        for (float &x : w)
            x = draw() * 0.2f;
        for (int k = 0; k < SEQUENCES * UNITS; k++)
            h0[(size_t)k] = draw() * sizes[k / UNITS];
        for (int k = 0; k < ROWS * UNITS; k++)
            z[(size_t)k] = draw() * sizes[k / UNITS % SEQUENCES];
        dy = z;
        dz.resize(ROWS * UNITS);
        lengths.assign(SEQUENCES, STEPS);
        batch_sizes.assign(STEPS, SEQUENCES);
        for (int t = 0; t <= STEPS; t++)
            offsets.push_back(t * SEQUENCES);
        layer.cell = SEQLSTM_CELL_RNN;
        layer.training = 1;
        layer.candidate.kind = SEQLSTM_ACT_NONE;
        layer.input = layer.hidden = layer.out = layer.gh = UNITS;
        layer.gates = 1;
        layer.axis.sequences = SEQUENCES;
        layer.axis.steps = STEPS;
        layer.axis.rows = ROWS;
        layer.dy_stride = UNITS;
        layer.dy_scale = 1;
    }
    /* Lets the layer point to all that. */
    void bind()
    {
        layer.axis.lengths = lengths.data();
        layer.axis.batch_sizes = batch_sizes.data();
        layer.axis.row_offsets = offsets.data();
        layer.w_h = w.data();
        layer.h0 = h0.data();
        layer.z = layer.u = z.data();
        layer.h = h.data();
        layer.dy = dy.data();
        layer.pre_u = layer.pre_v = dz.data();
        layer.dh0 = dh0.data();
        layer.direct = direct.data();
        layer.back = back.data();
        layer.dc = dc.data();
    }
    static seqlstm_recurrent_desc describe()
    {
        seqlstm_recurrent_desc desc = {};
        desc.head.max_sequences = SEQUENCES;
        desc.cell = SEQLSTM_CELL_RNN;
        desc.hidden = UNITS;
        desc.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = SEQLSTM_ACT_NONE;
        return desc;
    }
};

/* Is `got` what float32 gives, but for `allowed`? Where float32 has no number, the kind of what it has must be the
 * same. */
inline bool is_close(float got, float plain, double exact, double allowed)
{
    if (std::isnan(plain))
        return std::isnan(got);
    if (std::isinf(plain))
        return got == plain;
    return fabs((double)got - exact) <= allowed;
}

/* to = from + W x of a sequence; with `back` the transpose of W. The error is at most 1e-6 of the sum of the sizes of
 * all products. The weights of a warp share a scale, so that each may be off by 2^-50 of the largest. */
inline bool check_step(const step_layer &p, bool back, const float *x, const float *from, const float *to)
{
    bool good = true;
    double most = 0;
    for (float weight : p.w)
        most = std::isfinite(weight) ? fmax(most, fabs((double)weight)) : most;
    for (int i = 0; i < UNITS; i++) {
        float plain = from ? from[i] : 0.0f;
        double exact = (double)plain, allowed = 1e-6 * fabs(exact);
        for (int j = 0; j < UNITS; j++) {
            const float weight = p.w[(size_t)(back ? j * UNITS + i : i * UNITS + j)];
            plain += weight * x[j];
            exact += (double)weight * (double)x[j];
            allowed += (1e-6 * fabs((double)weight) + 0x1p-50 * most) * fabs((double)x[j]);
        }
        if (good && !is_close(to[i], plain, exact, allowed))
            printf("# %s, unit %d: %g, expected %g\n", back ? "backward" : "forward", i, (double)to[i], (double)plain);
        good = good && is_close(to[i], plain, exact, allowed);
    }
    return good;
}

#endif
