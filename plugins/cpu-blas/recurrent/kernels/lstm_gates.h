/* SPDX-License-Identifier: Apache-2.0 */
/* The gates of an LSTM with every option on one vector of units, forward and backward. Used by the cell (lstm.c) and
 * by the two phases of the cell with layer norm (lstm_norm.c). */
#ifndef BLAS_RECURRENT_LSTM_GATES_H
#define BLAS_RECURRENT_LSTM_GATES_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu-blas/recurrent/kernels/cell.h"

/* Writes the four gates of one vector of units; `put`: past the caches. */
INLINE void lstm_gates_leave(const bool put, float *to, vf i, vf f, vf g, vf o)
{
    v_put(put, to, i);
    v_put(put, to + 16, f);
    v_put(put, to + 32, g);
    v_put(put, to + 48, o);
}

/* dh of one vector, plus dy. */
INLINE vf lstm_dh(const struct blas_cell_backward *b, int64_t r, int v)
{
    vf dh = v_load(b->dh + r * b->dh_row + v);
    if (!b->dy)
        return dh;
    int left = lanes_left(b->units, b->unit_step, r, v);
    const float *dy = b->dy + r * b->dy_row + v;
    return v_add(dh, left >= VW ? v_load(dy) : v_load_first(dy, left));
}

/* A copy of the cell whose activations are compile-time constants if they are the default ones. */
INLINE struct blas_cell cell_known(const bool usual, const struct blas_cell *cell)
{
    struct blas_cell known = *cell;
    if (usual) {
        known.gate.kind = SEQLSTM_ACT_SIGMOID;
        known.candidate.kind = known.output.kind = SEQLSTM_ACT_TANH;
    }
    return known;
}

/* One vector of units: pre-activations before the clip, gates, c^ before and after its limit. */
struct lstm_gates {
    vf zi, zf, zg, zo;
    vf i, f, g, o;
    vf raw, now;
};

/* Computes i, f, g and, if `with_o`, o from clipped pre-activations. */
INLINE void lstm_activate(const struct blas_cell *cell, struct lstm_gates *s, bool with_o)
{
    const float clip = cell->gate_clip;
    vf zi = v_clip(clip, s->zi), zf = v_clip(clip, s->zf), zg = v_clip(clip, s->zg);
    vf zo = v_clip(clip, s->zo);
    if (cell->gate.kind == SEQLSTM_ACT_SIGMOID) {
        vf x[4] = {zi, zf, zo, zg}, y[4];
        v_curves(4, 1u << 3, x, y);
        s->i = y[0];
        s->f = y[1];
        s->o = y[2];
        s->g = y[3];
        if (cell->candidate.kind != SEQLSTM_ACT_TANH)
            s->g = v_activate(&cell->candidate, zg);
    } else {
        s->i = v_activate(&cell->gate, zi);
        s->f = v_activate(&cell->gate, zf);
        s->g = v_activate(&cell->candidate, zg);
        if (with_o)
            s->o = v_activate(&cell->gate, zo);
    }
}

/* `with_o`: also the output gate. With a peephole it must wait for c^. */
INLINE struct lstm_gates lstm_gates_compute(const struct blas_cell *cell, const float *gates, const float *peephole,
                                            int64_t peephole_row, vf old, bool with_o)
{
    struct lstm_gates s;
    s.zi = v_load(gates);
    s.zf = v_load(gates + 16);
    s.zg = v_load(gates + 32);
    s.zo = v_load(gates + 48);
    s.o = v_zero();
    if (cell->peephole) {
        s.zi = v_fma(v_load(peephole), old, s.zi);
        s.zf = v_fma(v_load(peephole + peephole_row), old, s.zf);
    }
    lstm_activate(cell, &s, with_o && !cell->peephole);
    if (cell->coupled)
        s.f = v_sub(v_set(1.0f), s.i);
    s.raw = v_fma(s.f, old, v_mul(s.i, s.g));
    s.now = v_clip(cell->cell_clip, s.raw);
    if (cell->peephole) {
        s.zo = v_fma(v_load(peephole + 2 * peephole_row), s.now, s.zo);
        if (with_o)
            s.o = v_activate(&cell->gate, v_clip(cell->gate_clip, s.zo));
    }
    return s;
}

/* The gate value that forward stores; z is its pre-activation. With gate_clip, its last bit is set if z is within
 * the clip. */
INLINE vf lstm_gate_mark(float limit, vf z, vf y)
{
    return limit > 0.0f ? v_mark(v_le(v_abs(z), v_set(limit)), y) : y;
}

/* The stored gate value without its mark: a marked 0 is above 0 where denormals are not zero. */
INLINE vf lstm_gate_value(float limit, vf y)
{
    return limit > 0.0f ? v_mark(v_gt(v_zero(), v_zero()), y) : y;
}

/* A number with the sign of the gate's pre-activation that is within the clip exactly if the pre-activation was.
 * Made from the stored value. */
INLINE vf lstm_gate_argument(float limit, vf y)
{
    return limit > 0.0f ? v_select(v_marked(y), v_clip(limit, lstm_gate_value(limit, y)), v_set(2.0f * limit)) : y;
}

/* Reads the stored gates if forward left them activated. Their derivatives follow from the values, and v_derivative
 * gets the value in place of its argument. */
INLINE struct lstm_gates lstm_gates_recall(const struct blas_cell *cell, const float *gates, vf old)
{
    struct lstm_gates s;
    const float limit = cell->gate_clip;
    const vf i = v_load(gates), f = v_load(gates + 16), g = v_load(gates + 32), o = v_load(gates + 48);
    s.zi = lstm_gate_argument(limit, i);
    s.zf = lstm_gate_argument(limit, f);
    s.zg = lstm_gate_argument(limit, g);
    s.zo = lstm_gate_argument(limit, o);
    s.i = lstm_gate_value(limit, i);
    s.f = lstm_gate_value(limit, f);
    s.g = lstm_gate_value(limit, g);
    s.o = lstm_gate_value(limit, o);
    s.raw = v_fma(s.f, old, v_mul(s.i, s.g));
    s.now = v_clip(cell->cell_clip, s.raw);
    return s;
}

/* Stores activated gates. */
INLINE void lstm_gates_keep(const bool put, const struct blas_cell *cell, const struct lstm_gates *s, float *to)
{
    const float limit = cell->gate_clip;
    lstm_gates_leave(put, to, lstm_gate_mark(limit, s->zi, s->i), lstm_gate_mark(limit, s->zf, s->f),
                     lstm_gate_mark(limit, s->zg, s->g), lstm_gate_mark(limit, s->zo, s->o));
}

/* The gates of a row in backward: read, or computed from their pre-activations. */
INLINE struct lstm_gates lstm_gates_again(const struct blas_cell *cell, const float *gates, const float *peephole,
                                          int64_t peephole_row, vf old, bool with_o)
{
    if (cell->keeps_gates)
        return lstm_gates_recall(cell, gates, old);
    return lstm_gates_compute(cell, gates, peephole, peephole_row, old, with_o);
}

/* Gradients of the bias (i f g o) and of the peepholes (i f o) of one vector of units, summed over rows. */
struct lstm_sums {
    vf bias[4], peephole[3];
};

INLINE void lstm_sums_clear(struct lstm_sums *s)
{
    for (int k = 0; k < 4; k++)
        s->bias[k] = v_zero();
    for (int k = 0; k < 3; k++)
        s->peephole[k] = v_zero();
}

/* Adds the sums to the gradients of the units of row r. */
INLINE void lstm_sums_add(const struct blas_cell_backward *b, const struct lstm_sums *s, int64_t r, int v)
{
    for (int k = 0; k < 4; k++)
        add_to(b->dbias + r * (b->unit_step * 4) + 16 * k + v, s->bias[k]);
    for (int k = 0; b->cell->peephole && k < 3; k++)
        add_to(b->dpeephole + k * b->peephole_row + r * b->unit_step + v, s->peephole[k]);
}

/* From dc^ (of the limited cell value) computes the gradients of i, f, g; returns dc' without its zoneout part. */
INLINE vf lstm_gates_backward(const struct blas_cell *cell, const struct blas_cell_backward *b,
                              const struct lstm_gates *s, float *gates, int64_t r, int v, vf old, vf dnow,
                              struct lstm_sums *sums)
{
    const int left = lanes_left(b->units, b->unit_step, r, v);
    vf draw = v_clip_gradient(cell->cell_clip, s->raw, dnow);
    vf di = v_mul(draw, s->g), df = v_mul(draw, old), dg = v_mul(draw, s->i);
    vf dold = v_mul(draw, s->f), dzf = v_zero();
    float clip = cell->gate_clip;
    if (cell->coupled)
        di = v_sub(di, df);
    else
        dzf = v_clip_gradient(clip, s->zf, v_mul(df, v_derivative(&cell->gate, v_clip(clip, s->zf), s->f)));
    vf dzi = v_clip_gradient(clip, s->zi, v_mul(di, v_derivative(&cell->gate, v_clip(clip, s->zi), s->i)));
    vf dzg = v_clip_gradient(clip, s->zg, v_mul(dg, v_derivative(&cell->candidate, v_clip(clip, s->zg), s->g)));
    if (left < VW) {
        dzi = v_first(dzi, left);
        dzf = v_first(dzf, left);
        dzg = v_first(dzg, left);
        dold = v_first(dold, left);
    }
    if (cell->peephole) {
        const float *p = b->peephole + r * b->unit_step + v;
        dold = v_fma(v_load(p), dzi, dold);
        dold = v_fma(v_load(p + b->peephole_row), dzf, dold);
        sums->peephole[0] = v_fma(dzi, old, sums->peephole[0]);
        sums->peephole[1] = v_fma(dzf, old, sums->peephole[1]);
    }
    v_store(gates + v, dzi);
    v_store(gates + 16 + v, dzf);
    v_store(gates + 32 + v, dzg);
    sums->bias[0] = v_add(sums->bias[0], dzi);
    sums->bias[1] = v_add(sums->bias[1], dzf);
    sums->bias[2] = v_add(sums->bias[2], dzg);
    return dold;
}

/* Computes dzo from do, and adds the part of the peephole to *dnow. */
INLINE void lstm_output_backward(const struct blas_cell *cell, const struct blas_cell_backward *b, float *gates,
                                 int64_t r, int v, vf zo, vf o, vf dov, vf now, vf *dnow, struct lstm_sums *sums)
{
    float clip = cell->gate_clip;
    vf dzo = v_clip_gradient(clip, zo, v_mul(dov, v_derivative(&cell->gate, v_clip(clip, zo), o)));
    const int left = lanes_left(b->units, b->unit_step, r, v);
    if (left < VW)
        dzo = v_first(dzo, left);
    if (cell->peephole) {
        int64_t at = 2 * b->peephole_row + r * b->unit_step + v;
        *dnow = v_fma(v_load(b->peephole + at), dzo, *dnow);
        sums->peephole[2] = v_fma(dzo, now, sums->peephole[2]);
    }
    v_store(gates + 48 + v, dzo);
    sums->bias[3] = v_add(sums->bias[3], dzo);
}

#endif
