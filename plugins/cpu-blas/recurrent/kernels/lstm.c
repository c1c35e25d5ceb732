/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM cell with every option, on one panel of 16 units. lstm_plain.c has the cell without options, lstm_norm.c
 * the one with layer norm of the cell. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/lstm_gates.h"
#include "cpu-blas/recurrent/kernels/unit.h"

/* Writes what backward reads: the gates, or their pre-activations. */
INLINE void lstm_gates_put(const struct blas_cell *cell, const float *gates, const struct lstm_gates *s, float *out)
{
    if (cell->keeps_gates)
        lstm_gates_keep(true, cell, s, out);
    else
        lstm_gates_leave(true, out, v_load(gates), v_load(gates + 16), v_load(gates + 32), v_load(gates + 48));
}

/* Completes one vector of a row. a: output activation of its new c. */
INLINE void lstm_forward_rest(const struct blas_cell *cell, const struct blas_cell_forward *f, int64_t r, int v,
                              const struct lstm_gates *s, vf old, vf a)
{
    float *gates = f->gates + r * f->gates_row + v, *c = f->c + r * f->c_row + v, *h = f->h + r * f->h_row + v;
    const uint16_t *new_c = f->new_c ? f->new_c + r * f->bits_row : NULL;
    const uint16_t *new_h = f->new_h ? f->new_h + r * f->bits_row : NULL;
    const int left = lanes_left(f->units, f->unit_step, r, v);
    vf hv = v_mul(s->o, a), now = zoneout_mix(cell, new_c, v, cell->zoneout_cell, old, s->now);
    if (cell->zoneout_hidden > 0.0f)
        hv = zoneout_mix(cell, new_h, v, cell->zoneout_hidden, v_load(h), hv);
    if (left < VW) {
        hv = v_first(hv, left);
        now = v_first(now, left);
    }
    if (f->c_saved) {
        v_store(f->c_saved + r * f->saved_row + v, old);
        if (f->gates_out)
            lstm_gates_put(cell, gates, s, f->gates_out + r * PANEL + v);
        else if (cell->keeps_gates)
            lstm_gates_keep(false, cell, s, gates);
    }
    v_store(c, now);
    v_store(h, hv);
}

INLINE void lstm_forward_options(const bool usual, const struct blas_cell_forward *f)
{
    const struct blas_cell known = cell_known(usual, f->cell), *cell = &known;
    for (int64_t r = 0; r < f->rows; r++) {
        struct lstm_gates s[VECTORS];
        vf old[VECTORS], now[VECTORS], a[VECTORS];
        UNROLL_FOR (int n = 0; n < VECTORS; n++) {
            const int v = n * VW;
            old[n] = v_load(f->c + r * f->c_row + v);
            s[n] = lstm_gates_compute(cell, f->gates + r * f->gates_row + v, f->peephole + r * f->unit_step + v,
                                      f->peephole_row, old[n], true);
            now[n] = s[n].now;
        }
        v_activate_all(VECTORS, &cell->output, now, a);
        UNROLL_FOR (int n = 0; n < VECTORS; n++)
            lstm_forward_rest(cell, f, r, n * VW, &s[n], old[n], a[n]);
    }
}

static void lstm_forward_general(const struct blas_cell_forward *f)
{
    const struct blas_cell_forward own = *f;
    if (own.cell->usual)
        lstm_forward_options(true, &own);
    else
        lstm_forward_options(false, &own);
}

/* Completes one vector of a row. a: output activation of its new c. */
INLINE void lstm_backward_rest(const struct blas_cell *cell, const struct blas_cell_backward *b, int64_t r, int v,
                               const struct lstm_gates *s, vf a, struct lstm_sums *sums)
{
    float *gates = b->gates + r * b->gates_row, *dcs = b->dc + r * b->c_row;
    const uint16_t *new_c = b->new_c ? b->new_c + r * b->bits_row : NULL;
    const uint16_t *new_h = b->new_h ? b->new_h + r * b->bits_row : NULL;
    vf old = v_load(b->c_saved + r * b->saved_row + v), carry_h, carry_c;
    vf dh = zoneout_split(new_h, v, lstm_dh(b, r, v), &carry_h);
    vf dnow = zoneout_split(new_c, v, v_load(dcs + v), &carry_c);
    dnow = v_fma(v_mul(dh, s->o), v_derivative(&cell->output, s->now, a), dnow);
    lstm_output_backward(cell, b, gates, r, v, s->zo, s->o, v_mul(dh, a), s->now, &dnow, sums);
    vf dold = lstm_gates_backward(cell, b, s, gates, r, v, old, dnow, sums);
    v_store(dcs + v, v_add(dold, carry_c));
    if (new_h)
        v_store(b->dh + r * b->dh_row + v, carry_h);
}

INLINE void lstm_backward_options(const bool usual, const struct blas_cell_backward *b)
{
    const struct blas_cell known = cell_known(usual, b->cell), *cell = &known;
    struct lstm_sums sums[VECTORS];
    for (int n = 0; n < VECTORS; n++)
        lstm_sums_clear(&sums[n]);
    for (int64_t r = 0; r < b->rows; r++) {
        struct lstm_gates s[VECTORS];
        vf now[VECTORS], a[VECTORS];
        UNROLL_FOR (int n = 0; n < VECTORS; n++) {
            const int v = n * VW;
            s[n] = lstm_gates_again(cell, b->gates + r * b->gates_row + v, b->peephole + r * b->unit_step + v,
                                    b->peephole_row, v_load(b->c_saved + r * b->saved_row + v), true);
            now[n] = s[n].now;
        }
        v_activate_all(VECTORS, &cell->output, now, a);
        UNROLL_FOR (int n = 0; n < VECTORS; n++) {
            lstm_backward_rest(cell, b, r, n * VW, &s[n], a[n], &sums[n]);
            if (!b->unit_step && r + 1 < b->rows)
                continue; /* The next row has the same units. */
            lstm_sums_add(b, &sums[n], r, n * VW);
            lstm_sums_clear(&sums[n]);
        }
    }
}

static void lstm_backward_general(const struct blas_cell_backward *b)
{
    const struct blas_cell_backward own = *b;
    if (own.cell->usual)
        lstm_backward_options(true, &own);
    else
        lstm_backward_options(false, &own);
}

void kernel_lstm_forward(const struct blas_cell_forward *f)
{
    if (f->cell->plain)
        kernel_lstm_plain_forward(f);
    else
        lstm_forward_general(f);
}

void kernel_lstm_backward(const struct blas_cell_backward *b)
{
    if (b->cell->plain)
        kernel_lstm_plain_backward(b);
    else
        lstm_backward_general(b);
}
