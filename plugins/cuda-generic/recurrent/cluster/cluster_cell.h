/* SPDX-License-Identifier: Apache-2.0 */
/* The cell of one unit and sequence with all its values in registers: the equations of cell.h, divided into what can be
 * computed before the sums of the step have arrived and what needs them. See cluster.h. */
#ifndef CG_CLUSTER_CELL_H
#define CG_CLUSTER_CELL_H

#include "cuda-generic/device/device.h"
#include "cuda-generic/recurrent/kernels/layer.h"

/* Does the layer compute with this gate? Not with that of f if gates are coupled. */
static __device__ __forceinline__ bool cg_cluster_has_gate(const struct cg_layer &y, int gate)
{
    return gate < (int)y.gates && !(cg_is_coupled(&y) && gate == 1);
}

/* Constant k of a unit: biases (0 to 3), peepholes, LAYER_NORM: gains of W_h h (7 to 10), gain and bias of c. */
static __device__ __forceinline__ float cg_cluster_constant(const struct cg_layer &y, int k, int unit)
{
    const int n = (int)y.hidden, biases = y.cell == SEQLSTM_CELL_RNN ? 1 : y.late ? 3 : 4, gate = k - 7;
    if (unit >= n)
        return 0.0f;
    if (k < 4)
        return y.bias && k < biases ? y.bias[k * n + unit] : 0.0f;
    if (k < 7)
        return y.peephole ? y.peephole[(k - 4) * n + unit] : 0.0f;
    if (gate < 4)
        return y.normed && cg_cluster_has_gate(y, gate) ? y.norm[y.gh + gate * n + unit] : 0.0f;
    return y.normed && y.cell == SEQLSTM_CELL_LSTM ? y.norm[(k - 3) * n + unit] : 0.0f;
}

/* ---- activations ----------------------------------------------------------------------------------------------- */

/* The usual activations without clip have a short form, with the device's approximations. */
static __device__ __forceinline__ bool cg_cluster_is_usual(const struct cg_layer &y)
{
    return y.gate.kind == SEQLSTM_ACT_SIGMOID && y.candidate.kind == SEQLSTM_ACT_TANH &&
           y.output.kind == SEQLSTM_ACT_TANH && y.gate_clip == 0;
}

static __device__ __forceinline__ float cg_cluster_sigmoid(float x)
{
    return gpu_reciprocal(1.0f + gpu_exp2(x * -1.4426950408889634f));
}

/* A polynomial near 0, where the difference would lose digits. */
static __device__ __forceinline__ float cg_cluster_tanh(float x)
{
    const float size = fabsf(x), e = gpu_exp2(size * -2.8853900817779268f), q = x * x;
    float near = -1382.0f / 155925.0f;
    near = near * q + 62.0f / 2835.0f;
    near = near * q - 17.0f / 315.0f;
    near = near * q + 2.0f / 15.0f;
    near = near * q - 1.0f / 3.0f;
    near = near * q * x + x;
    const float far = copysignf((1.0f - e) * gpu_reciprocal(1.0f + e), x);
    return size < 0.35f ? near : far;
}

template <bool USUAL> static __device__ __forceinline__ float cg_cluster_gate(const struct cg_layer &y, float z)
{
    return USUAL ? cg_cluster_sigmoid(z) : cg_gate(&y, z);
}

template <bool USUAL> static __device__ __forceinline__ float cg_cluster_candidate(const struct cg_layer &y, float z)
{
    return USUAL ? cg_cluster_tanh(z) : cg_candidate(&y, z);
}

template <bool USUAL> static __device__ __forceinline__ float cg_cluster_output(const struct cg_layer &y, float c)
{
    return USUAL ? cg_cluster_tanh(c) : cg_activate(y.output, c);
}

/* An activation and its derivative at z, whose activated value is a. */
template <bool USUAL>
static __device__ __forceinline__ float cg_cluster_gate_slope(const struct cg_layer &y, float z, float a)
{
    return USUAL ? a * (1.0f - a) : cg_gate_slope(&y, z);
}

template <bool USUAL>
static __device__ __forceinline__ float cg_cluster_candidate_slope(const struct cg_layer &y, float z, float a)
{
    return USUAL ? 1.0f - a * a : cg_candidate_slope(&y, z);
}

/* ---- zoneout --------------------------------------------------------------------------------------------------- */

/* How much of the value before stays: 0, 1 in training where zoneout keeps it, or the rate. */
static __device__ __forceinline__ float cg_cluster_stay(const struct cg_layer &y, uint64_t key, float rate, int t,
                                                        int b, int unit)
{
    if (rate == 0)
        return 0.0f;
    if (!y.training)
        return rate;
    return cg_is_kept(&y, key, rate, t, b, unit) ? 1.0f : 0.0f;
}

static __device__ __forceinline__ float cg_cluster_carry(float stay, float before, float now)
{
    return stay == 0 ? now : stay == 1.0f ? before : stay * before + (1.0f - stay) * now;
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

struct cg_cluster_state {
    float c, h, stay_c, stay_h;
};

/* What a step records, as in layer.h. `inner` is c_raw of an LSTM, n of a GRU. */
struct cg_cluster_record {
    float z[4], inner;
};

/* What a cell needs of other units within its step: nothing. cluster_link.h has the opposite. */
struct cg_cluster_no_links {
    static constexpr bool ANY = false;
    /* What the output of an LSTM sees of c. */
    __device__ __forceinline__ float find_q(float c)
    {
        return c;
    }
    /* The sum of a late GRU's candidate over r h; r: that of the unit. */
    __device__ __forceinline__ float find_late(float)
    {
        return 0.0f;
    }
};

/* `v`: the sums over h; `u`: the contribution of the input with the bias; `bias_n`: the GRU's bias of v_n; `p`: [3],
 * `pitch` apart, NULL without peepholes. Updates c and h. */
template <bool USUAL, class LINKS>
static __device__ __forceinline__ struct cg_cluster_record cg_cluster_cell(const struct cg_layer &y,
                                                                           const float (&v)[4], const float (&u)[4],
                                                                           const float *p, int pitch, float bias_n,
                                                                           LINKS links, struct cg_cluster_state *state)
{
    struct cg_cluster_record r = {{v[0] + u[0], v[1] + u[1], v[2] + u[2], v[3] + u[3]}, 0.0f};
    float h;
    if (y.cell == SEQLSTM_CELL_LSTM) {
        const float before = state->c;
        r.z[0] += p ? p[0] * before : 0.0f;
        r.z[1] = cg_is_coupled(&y) ? 0.0f : p ? r.z[1] + p[pitch] * before : r.z[1];
        const float i = cg_cluster_gate<USUAL>(y, r.z[0]);
        const float f = cg_is_coupled(&y) ? 1.0f - i : cg_cluster_gate<USUAL>(y, r.z[1]);
        r.inner = f * before + i * cg_cluster_candidate<USUAL>(y, r.z[2]);
        const float c = cg_clip(r.inner, y.cell_clip);
        r.z[3] += p ? p[2 * pitch] * c : 0.0f;
        h = cg_cluster_gate<USUAL>(y, r.z[3]) * cg_cluster_output<USUAL>(y, links.find_q(c));
        state->c = cg_cluster_carry(state->stay_c, before, c);
    } else if (y.cell == SEQLSTM_CELL_GRU) {
        const float reset = cg_cluster_gate<USUAL>(y, r.z[0]);
        r.inner = v[2] + bias_n;
        r.z[2] = u[2] + (LINKS::ANY && y.late ? links.find_late(reset) : reset * r.inner);
        const float keep = cg_cluster_gate<USUAL>(y, r.z[1]);
        h = (1.0f - keep) * cg_cluster_candidate<USUAL>(y, r.z[2]) + keep * state->h;
    } else {
        h = cg_cluster_candidate<USUAL>(y, r.z[0]);
    }
    state->h = cg_cluster_carry(state->stay_h, state->h, h);
    return r;
}

template <bool USUAL>
static __device__ __forceinline__ struct cg_cluster_record cg_cluster_cell(const struct cg_layer &y,
                                                                           const float (&v)[4], const float (&u)[4],
                                                                           const float *p, int pitch, float bias_n,
                                                                           struct cg_cluster_state *state)
{
    return cg_cluster_cell<USUAL>(y, v, u, p, pitch, bias_n, cg_cluster_no_links(), state);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

/* What backward reads of a step. `inner` as above; `before`: c before of an LSTM, h before of a GRU. */
struct cg_cluster_past {
    float z[4], inner, before, dy, other;
};

/* The cell's derivative: with dh, the gradient of the carried h, and new = (1 - stay_h) dh,
 *   d = new * to_c + from_c, dz[0 .. 2] = d * gate[0 .. 2], dz[3] = new * gate[3]
 * and the gradients of the states before: c: d * f + from_kept, directly of h: stay_h dh + new * pass.
 * The sum of the candidate over h has the gradient dz[2] * reset; of a late GRU, that over r h has dz[2], and dz[0] is
 * the gradient of r h times gate[0].
 * LAYER_NORM: new * to_q is the gradient of the normalised c, and to_c lacks it; `clip` passes on what follows of it.
 */
struct cg_cluster_slopes {
    float stay_h, to_c, from_c, gate[4], f, from_kept, pass, reset, to_q, clip;
};

template <bool USUAL>
static __device__ __forceinline__ void cg_cluster_slope_lstm(const struct cg_layer &y, const struct cg_cluster_past &x,
                                                             float q, bool normed, const float *p, int pitch,
                                                             float stay_c, float dc, struct cg_cluster_slopes *s)
{
    const bool coupled = cg_is_coupled(&y);
    const float clip = cg_clip_slope(x.inner, y.cell_clip);
    const float i = cg_cluster_gate<USUAL>(y, x.z[0]), o = cg_cluster_gate<USUAL>(y, x.z[3]);
    const float f = coupled ? 1.0f - i : cg_cluster_gate<USUAL>(y, x.z[1]);
    const float g = cg_cluster_candidate<USUAL>(y, x.z[2]), a = cg_cluster_output<USUAL>(y, q);
    s->gate[0] = (g - (coupled ? x.before : 0.0f)) * cg_cluster_gate_slope<USUAL>(y, x.z[0], i);
    s->gate[1] = coupled ? 0.0f : x.before * cg_cluster_gate_slope<USUAL>(y, x.z[1], f);
    s->gate[2] = i * cg_cluster_candidate_slope<USUAL>(y, x.z[2], g);
    s->gate[3] = a * cg_cluster_gate_slope<USUAL>(y, x.z[3], o);
    s->to_q = o * (USUAL ? 1.0f - a * a : cg_slope(y.output, q));
    s->clip = clip;
    s->to_c = ((normed ? 0.0f : s->to_q) + (p ? p[2 * pitch] * s->gate[3] : 0.0f)) * clip;
    s->from_c = stay_c > 0 ? 0.0f : dc * clip;
    s->from_kept = stay_c > 0 ? dc : 0.0f;
    s->f = f + (p ? p[0] * s->gate[0] + p[pitch] * s->gate[1] : 0.0f);
}

template <bool USUAL, bool LINKED>
static __device__ __forceinline__ void cg_cluster_slope_gru(const struct cg_layer &y, const struct cg_cluster_past &x,
                                                            struct cg_cluster_slopes *s)
{
    const float r = cg_cluster_gate<USUAL>(y, x.z[0]), keep = cg_cluster_gate<USUAL>(y, x.z[1]);
    const float n = cg_cluster_candidate<USUAL>(y, x.z[2]);
    s->gate[1] = (x.before - n) * cg_cluster_gate_slope<USUAL>(y, x.z[1], keep);
    s->gate[2] = (1.0f - keep) * cg_cluster_candidate_slope<USUAL>(y, x.z[2], n);
    s->gate[0] = (LINKED && y.late ? 1.0f : s->gate[2] * x.inner) * cg_cluster_gate_slope<USUAL>(y, x.z[0], r);
    s->pass = keep;
    s->reset = r;
}

/* `q`: what the output of an LSTM saw of c. */
template <bool USUAL, bool LINKED>
static __device__ __forceinline__ struct cg_cluster_slopes cg_cluster_slope(const struct cg_layer &y,
                                                                            const struct cg_cluster_past &x, float q,
                                                                            const float *p, int pitch, float stay_c,
                                                                            float stay_h, float dc)
{
    struct cg_cluster_slopes s = {stay_h, 1.0f, 0.0f, {0.0f, 0.0f, 0.0f, 0.0f}, 0.0f, 0.0f, 0.0f, 1.0f, 0.0f, 1.0f};
    if (y.cell == SEQLSTM_CELL_LSTM)
        cg_cluster_slope_lstm<USUAL>(y, x, q, LINKED && y.normed, p, pitch, stay_c, dc, &s);
    else if (y.cell == SEQLSTM_CELL_GRU)
        cg_cluster_slope_gru<USUAL, LINKED>(y, x, &s);
    else
        s.gate[0] = cg_cluster_candidate_slope<USUAL>(y, x.z[0], cg_cluster_candidate<USUAL>(y, x.z[0]));
    return s;
}

template <bool USUAL>
static __device__ __forceinline__ struct cg_cluster_slopes cg_cluster_slope(const struct cg_layer &y,
                                                                            const struct cg_cluster_past &x,
                                                                            const float *p, int pitch, float stay_c,
                                                                            float stay_h, float dc)
{
    return cg_cluster_slope<USUAL, false>(y, x, cg_clip(x.inner, y.cell_clip), p, pitch, stay_c, stay_h, dc);
}

/* ---- rows of memory ------------------------------------------------------------------------------------------- */

/* The record z holds the contribution of the input, with LAYER_NORM normalised. */
static __device__ __forceinline__ void cg_cluster_load_input(const struct cg_layer &y, bool runs, int row, int unit,
                                                             float (&u)[4])
{
    const float *from = y.z + (int64_t)row * y.gh + unit;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        u[j] = gpu_load_if(runs && j < (int)y.gates, from + j * y.hidden);
}

static __device__ __forceinline__ void cg_cluster_store(const struct cg_layer &y, int row, int unit,
                                                        const struct cg_cluster_record &r,
                                                        const struct cg_cluster_state &state)
{
    const int64_t n = y.hidden, at = row * n + unit;
    float *z = y.z + row * y.gh + unit;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        if (j < (int)y.gates)
            z[j * n] = r.z[j];
    if (y.c_raw) {
        y.c_raw[at] = r.inner;
        y.c[at] = state.c;
    }
    if (y.n)
        y.n[at] = r.inner;
    y.h[at] = state.h;
}

/* Loads what the step of `row` needs of the unit of sequence b, if it `runs`. `before`: the row of the step that
 * forward took before, of which there is none for the first one. */
static __device__ __forceinline__ void cg_cluster_load_past(const struct cg_layer &y, bool runs, bool first, int row,
                                                            int before, int b, int unit, struct cg_cluster_past *x)
{
    const int64_t n = y.hidden, at = (int64_t)row * n + unit;
    const bool lstm = y.cell == SEQLSTM_CELL_LSTM, gru = y.cell == SEQLSTM_CELL_GRU;
    const float *z = y.z + (int64_t)row * y.gh + unit, *inner = lstm ? y.c_raw : y.n;
    const float *records = lstm ? y.c : y.h, *initial = lstm ? y.c0 : y.h0;
    const float *from = first ? initial + (int64_t)b * n : records + (int64_t)before * n;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        x->z[j] = gpu_load_if(runs && j < (int)y.gates, z + j * n);
    x->inner = gpu_load_if(runs && (lstm || gru) && inner, inner + at);
    x->before = gpu_load_if(runs && (lstm || gru) && !(first && initial == nullptr), from + unit);
    x->dy = gpu_load_if(runs && y.dy, y.dy + (int64_t)row * y.dy_stride + y.dy_offset + unit);
    x->other = gpu_load_if(runs && y.other_h, y.other_h + at);
}

static __device__ __forceinline__ void cg_cluster_store_gradients(const struct cg_layer &y, int row, int unit,
                                                                  const float (&dz)[4], float reset,
                                                                  const struct cg_cluster_past &x)
{
    const int64_t n = y.hidden;
    float *u = y.pre_u + (int64_t)row * y.gh + unit, *v = y.pre_v + (int64_t)row * y.gh + unit;
    CG_UNROLL
    for (int j = 0; j < 4; j++)
        if (j < (int)y.gates) {
            u[j * n] = dz[j];
            if (y.pre_v != y.pre_u)
                v[j * n] = j == 2 ? dz[j] * reset : dz[j];
        }
    if (y.peep) {
        float *peep = y.peep + (int64_t)row * 3 * n + unit;
        peep[0] = dz[0] * x.before;
        peep[n] = dz[1] * x.before;
        peep[2 * n] = dz[3] * cg_clip(x.inner, y.cell_clip);
    }
}

#endif
