/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM cell with sigmoid, tanh, tanh and no option, on one panel of 16 units.
 *
 * The fields of a call are copied into local variables. Otherwise the compiler must assume that any store may change
 * them. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/lstm_gates.h"
#include "cpu-blas/recurrent/kernels/unit.h"

enum { LSTM_TANHS = 1 << 2 | 1 << 4 }; /* activations of i, f, g, o and c: those that are tanh */

/* A vector of units whose h still needs the tanh of its cell. */
struct lstm_wait {
    vf o, cell;
    float *h;
};

INLINE void lstm_plain_begin(const float *gates, vf cell, vf d[5])
{
    const vf x[5] = {v_load(gates), v_load(gates + 16), v_load(gates + 32), v_load(gates + 48), cell};
    v_curves_begin(5, LSTM_TANHS, x, d);
}

/* The tanh of a vector's cell is computed together with the gates of a later vector, so that five independent chains
 * of operations run side by side. For the first vector it is the tanh of zero, and h is overwritten later. The later
 * vector is the next one or, with `ahead`, the one after it. Then the gates of the next vector begin while those of
 * this one end, for processors that would otherwise wait for one chain of both. */
INLINE void lstm_forward_loop(const bool ahead, const struct blas_cell_forward *f)
{
    const int waits = ahead ? 2 : 1;
    struct lstm_wait wait[2] = {{v_zero(), v_zero(), f->h}, {v_zero(), v_zero(), f->h}};
    vf d[5], next[5], y[5];
    if (ahead)
        lstm_plain_begin(f->gates, v_zero(), d);
    for (int64_t r = 0; r < f->rows; r++) {
        UNROLL_FOR (int v = 0; v < GROUP; v += VW) {
            float *gates = f->gates + r * f->gates_row + v, *c = f->c + r * f->c_row + v;
            const int64_t row = v + VW == GROUP && r + 1 < f->rows
                                    ? r + 1
                                    : r; /* of the next vector, or of this one if it is the last */
            if (ahead)
                lstm_plain_begin(f->gates + row * f->gates_row + (v + VW) % GROUP, wait[0].cell, next);
            else
                lstm_plain_begin(gates, wait[0].cell, d);
            v_curves_end(5, LSTM_TANHS, d, y);
            v_store(wait[waits - 1].h, v_mul(wait[waits - 1].o, y[4]));
            const vf old = v_load(c);
            wait[1] = wait[0];
            wait[0] = (struct lstm_wait){y[3], v_fma(y[1], old, v_mul(y[0], y[2])), f->h + r * f->h_row + v};
            v_store(c, wait[0].cell);
            if (f->c_saved) {
                v_store(f->c_saved + r * f->saved_row + v, old);
                if (f->gates_out)
                    lstm_gates_leave(true, f->gates_out + r * PANEL + v, y[0], y[1], y[2], y[3]);
                else
                    lstm_gates_leave(false, gates, y[0], y[1], y[2], y[3]);
            }
            UNROLL_FOR (int k = 0; k < 5 && ahead; k++)
                d[k] = next[k];
        }
    }
    const vf cells[2] = {wait[0].cell, wait[1].cell};
    v_curves(waits, ~0u, cells, y);
    UNROLL_FOR (int k = waits - 1; k >= 0; k--)
        v_store(wait[k].h, v_mul(wait[k].o, y[k]));
}

/* With 16 lanes, the operations of one vector fill the two ports of AVX-512. */
void kernel_lstm_plain_forward(const struct blas_cell_forward *f)
{
    const struct blas_cell_forward own = *f;
    if (own.rows > 0)
        lstm_forward_loop(VW < 16, &own);
}

/* A row of each operand in the gradients of the plain cell. */
struct lstm_back_row {
    float *gates, *dc, *dbias;
    const float *c_saved, *dh, *dy;
    int64_t units; /* counted from the first unit of the row */
};

INLINE void lstm_back_row_next(const struct blas_cell_backward *b, struct lstm_back_row *row)
{
    row->gates += b->gates_row;
    row->dc += b->c_row;
    row->dbias += b->unit_step ? PANEL : 0;
    row->c_saved += b->saved_row;
    row->dh += b->dh_row;
    row->dy += b->dy_row;
    row->units -= b->unit_step;
}

/* Computes the tanh of a row's new c. */
INLINE void lstm_back_tanh(const struct lstm_back_row *row, vf out[VECTORS])
{
    vf now[VECTORS];
    UNROLL_FOR (int n = 0; n < VECTORS; n++) {
        const float *gates = row->gates + n * VW;
        now[n] = v_fma(v_load(gates + 16), v_load(row->c_saved + n * VW), v_mul(v_load(gates), v_load(gates + 32)));
    }
    v_curves(VECTORS, ~0u, now, out);
}

/* Completes one vector of a row. a: tanh of its new c. `whole`: dy has all of its units. */
INLINE void lstm_back_rest(const bool whole, const struct lstm_back_row *row, int v, vf a)
{
    const vf one = v_set(1.0f);
    float *gates = row->gates + v, *dcs = row->dc + v;
    vf i = v_load(gates), f = v_load(gates + 16), g = v_load(gates + 32), o = v_load(gates + 48);
    vf old = v_load(row->c_saved + v);
    vf dy = whole ? v_load(row->dy + v) : v_load_first(row->dy + v, (int)(row->units - v));
    vf dh = v_add(v_load(row->dh + v), dy);
    vf dzo = v_mul(v_mul(dh, a), v_fnma(o, o, o));
    vf dc = v_fma(v_mul(dh, o), v_fnma(a, a, one), v_load(dcs));
    vf dzi = v_mul(v_mul(dc, g), v_fnma(i, i, i));
    vf dzf = v_mul(v_mul(dc, old), v_fnma(f, f, f));
    vf dzg = v_mul(v_mul(dc, i), v_fnma(g, g, one));
    v_store(dcs, v_mul(dc, f));
    lstm_gates_leave(false, gates, dzi, dzf, dzg, dzo);
    float *dbias = row->dbias + v;
    add_to(dbias, dzi);
    add_to(dbias + 16, dzf);
    add_to(dbias + 32, dzg);
    add_to(dbias + 48, dzo);
}

/* The tanh of a row is computed together with the rest of the row before it. */
INLINE void lstm_backward_loop(const bool whole, const struct blas_cell_backward *b)
{
    struct lstm_back_row row = {b->gates, b->dc, b->dbias, b->c_saved, b->dh, b->dy, b->units}, next = row;
    vf a[VECTORS], a_next[VECTORS];
    lstm_back_tanh(&row, a);
    for (int64_t left = b->rows; left > 1; left--) {
        lstm_back_row_next(b, &next);
        lstm_back_tanh(&next, a_next);
        UNROLL_FOR (int n = 0; n < VECTORS; n++)
            lstm_back_rest(whole, &row, n * VW, a[n]);
        UNROLL_FOR (int n = 0; n < VECTORS; n++)
            a[n] = a_next[n];
        row = next;
    }
    UNROLL_FOR (int n = 0; n < VECTORS; n++)
        lstm_back_rest(whole, &row, n * VW, a[n]);
}

void kernel_lstm_plain_backward(const struct blas_cell_backward *b)
{
    static const float zeros[GROUP];
    struct blas_cell_backward own = *b;
    if (own.rows < 1)
        return;
    if (!own.dy) {
        own.dy = zeros;
        own.dy_row = 0;
    }
    if (!b->dy || own.units - (own.rows - 1) * own.unit_step >= GROUP)
        lstm_backward_loop(true, &own);
    else
        lstm_backward_loop(false, &own);
}
