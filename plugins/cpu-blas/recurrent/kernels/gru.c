/* SPDX-License-Identifier: Apache-2.0 */
/* The GRU (reset after and before) on one panel of 16 units. Pre-activations are kept for backward. The state before
 * the step (h') is stored in c_saved. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/cell.h"
#include "cpu-blas/recurrent/kernels/unit.h"

/* Where the four groups of a row begin. */
enum { GRU_N_X = 0, GRU_R = 16, GRU_Z = 32, GRU_N_H = 48 };

void kernel_gru_before_forward_1(const struct blas_cell_forward *f)
{
    const struct blas_cell *cell = f->cell;
    for (int64_t r = 0; r < f->rows; r++)
        for (int v = 0; v < GROUP; v += VW) {
            vf zr = v_load(f->gates + r * PANEL + GRU_R + v);
            vf reset = v_activate(&cell->gate, v_clip(cell->gate_clip, zr));
            vf hm = v_load(f->h_masked + r * f->h_masked_row + v);
            v_store(f->extra + r * f->extra_row + v, v_first(v_mul(reset, hm), f->units - v));
        }
}

/* One row: pre-activations before the clip (n's with all its terms), after the clip, and gates. r is zero without
 * reset_after. */
struct gru_row {
    vf zr[VECTORS], zz[VECTORS], zn[VECTORS];
    vf rc[VECTORS], zc[VECTORS], nc[VECTORS];
    vf r[VECTORS], z[VECTORS], n[VECTORS];
};

INLINE void gru_gates(const struct blas_cell *cell, const float *gates, struct gru_row *s)
{
    const float clip = cell->gate_clip;
    vf x[2 * VECTORS], y[2 * VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        s->zz[v] = v_load(gates + GRU_Z + v * VW);
        s->zr[v] = v_load(gates + GRU_R + v * VW);
        x[v] = s->zc[v] = v_clip(clip, s->zz[v]);
        x[VECTORS + v] = s->rc[v] = v_clip(clip, s->zr[v]);
    }
    if (cell->reset_after)
        v_activate_all(2 * VECTORS, &cell->gate, x, y);
    else
        v_activate_all(VECTORS, &cell->gate, x, y);
    for (int v = 0; v < VECTORS; v++) {
        s->z[v] = y[v];
        s->r[v] = cell->reset_after ? y[VECTORS + v] : v_zero();
        s->zn[v] = v_load(gates + GRU_N_X + v * VW);
        if (cell->reset_after)
            s->zn[v] = v_fma(s->r[v], v_load(gates + GRU_N_H + v * VW), s->zn[v]);
        s->nc[v] = v_clip(clip, s->zn[v]);
    }
    v_activate_all(VECTORS, &cell->candidate, s->nc, s->n);
}

void kernel_gru_forward(const struct blas_cell_forward *f)
{
    const struct blas_cell *cell = f->cell;
    for (int64_t r = 0; r < f->rows; r++) {
        float *gates = f->gates + r * PANEL, *h = f->h + r * f->h_row;
        const uint16_t *new_h = f->new_h ? f->new_h + r * f->bits_row : NULL;
        for (int v = 0; v < GROUP && !cell->reset_after; v += VW)
            add_to(gates + GRU_N_X + v, v_load(f->extra + r * f->extra_row + v));
        struct gru_row s;
        gru_gates(cell, gates, &s);
        for (int i = 0, v = 0; i < VECTORS; i++, v += VW) {
            vf old = v_load(h + v), hv = v_fma(s.z[i], v_sub(old, s.n[i]), s.n[i]);
            if (cell->zoneout_hidden > 0.0f)
                hv = zoneout_mix(cell, new_h, v, cell->zoneout_hidden, old, hv);
            if (f->units < GROUP)
                hv = v_first(hv, f->units - v);
            if (f->c_saved)
                v_store(f->c_saved + r * GROUP + v, old);
            v_store(h + v, hv);
        }
    }
}

/* Gradients of the i-th vector of a row. */
INLINE void gru_backward_vector(const struct blas_cell_backward *b, const struct gru_row *s, int64_t row, int i)
{
    const struct blas_cell *cell = b->cell;
    const float clip = cell->gate_clip;
    const int v = i * VW, lanes = b->units - v;
    float *gates = b->gates + row * PANEL + v, *dhs = b->dh + row * b->dh_row + v, *dbias = b->dbias + v;
    const uint16_t *new_h = b->new_h ? b->new_h + row * b->bits_row : NULL;
    const vf old = v_load(b->c_saved + row * GROUP + v), z = s->z[i], n = s->n[i];
    vf carry, dh = zoneout_split(new_h, v, v_load(dhs), &carry);
    vf dn = v_mul(v_mul(dh, v_sub(v_set(1.0f), z)), v_derivative(&cell->candidate, s->nc[i], n));
    dn = v_first(v_clip_gradient(clip, s->zn[i], dn), lanes);
    vf dz = v_mul(v_mul(dh, v_sub(old, n)), v_derivative(&cell->gate, s->zc[i], z));
    dz = v_first(v_clip_gradient(clip, s->zz[i], dz), lanes);
    v_store(dhs, v_first(v_fma(dh, z, carry), lanes));
    add_to(dbias + GRU_Z, dz);
    add_to(dbias + GRU_N_X, dn);
    vf dn_h = v_zero();
    if (cell->reset_after) {
        vf dr = v_mul(v_mul(dn, v_load(gates + GRU_N_H)), v_derivative(&cell->gate, s->rc[i], s->r[i]));
        dr = v_first(v_clip_gradient(clip, s->zr[i], dr), lanes);
        dn_h = v_mul(dn, s->r[i]);
        v_store(gates + GRU_R, dr);
        add_to(dbias + GRU_R, dr);
        add_to(dbias + GRU_N_H, dn_h);
    }
    v_store(gates + GRU_N_X, dn);
    v_store(gates + GRU_Z, dz);
    v_store(gates + GRU_N_H, dn_h);
}

void kernel_gru_backward(const struct blas_cell_backward *b)
{
    for (int64_t r = 0; r < b->rows; r++) {
        struct gru_row s;
        gru_gates(b->cell, b->gates + r * PANEL, &s);
        for (int i = 0; i < VECTORS; i++)
            gru_backward_vector(b, &s, r, i);
    }
}

/* extra: in: d(r h~); out: its part of dh~. */
void kernel_gru_before_backward_2(const struct blas_cell_backward *b)
{
    const struct blas_cell *cell = b->cell;
    float clip = cell->gate_clip;
    for (int64_t r = 0; r < b->rows; r++) {
        float *gates = b->gates + r * PANEL, *extra = b->extra + r * b->extra_row;
        for (int v = 0; v < GROUP; v += VW) {
            vf zr = v_load(gates + GRU_R + v), rc = v_clip(clip, zr), d = v_load(extra + v);
            vf reset = v_activate(&cell->gate, rc);
            vf hm = v_load(b->h_masked + r * b->h_masked_row + v);
            vf dr = v_mul(v_mul(d, hm), v_derivative(&cell->gate, rc, reset));
            dr = v_first(v_clip_gradient(clip, zr, dr), b->units - v);
            v_store(gates + GRU_R + v, dr);
            add_to(b->dbias + GRU_R + v, dr);
            v_store(extra + v, v_first(v_mul(d, reset), b->units - v));
        }
    }
}
