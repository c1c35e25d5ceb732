/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM cell with layer norm of the cell, on one panel. q = N(c^) gain + bias needs the whole row of c^ first,
 * which divides the cell into two phases. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/lstm_gates.h"
#include "cpu-blas/recurrent/kernels/unit.h"

/* Rows computed side by side; two denominators share one reciprocal. */
enum { NORM_LANES = 4 };

/* What is known about a cell at compile time: nothing, its activations, or that it has the default activations and
 * no option except the norm. */
enum lstm_norm_kind { NORM_ANY, NORM_USUAL, NORM_PLAIN };

INLINE enum lstm_norm_kind lstm_norm_kind(const struct blas_cell *c)
{
    if (!c->usual)
        return NORM_ANY;
    return !c->peephole && !c->coupled && c->gate_clip == 0.0f && c->cell_clip == 0.0f && c->zoneout_cell == 0.0f &&
                   c->zoneout_hidden == 0.0f && c->keeps_gates
               ? NORM_PLAIN
               : NORM_USUAL;
}

INLINE struct blas_cell lstm_norm_known(const enum lstm_norm_kind kind, const struct blas_cell *cell)
{
    struct blas_cell known = cell_known(kind != NORM_ANY, cell);
    if (kind == NORM_PLAIN) {
        known.peephole = known.coupled = false;
        known.gate_clip = known.cell_clip = known.zoneout_cell = known.zoneout_hidden = 0.0f;
        known.keeps_gates = true;
    }
    return known;
}

/* kernel_NAME(x) calls NAME with the kind of x's cell as a constant. */
#define LSTM_NORM_KERNEL(kernel, phase, type)                                                                          \
    void kernel(const struct type *x)                                                                                  \
    {                                                                                                                  \
        const enum lstm_norm_kind kind = lstm_norm_kind(x->cell);                                                      \
        if (kind == NORM_PLAIN)                                                                                        \
            phase(NORM_PLAIN, x);                                                                                      \
        else if (kind == NORM_USUAL)                                                                                   \
            phase(NORM_USUAL, x);                                                                                      \
        else                                                                                                           \
            phase(NORM_ANY, x);                                                                                        \
    }

INLINE void lstm_norm_forward_gates(const enum lstm_norm_kind kind, const struct blas_cell_forward *f)
{
    const struct blas_cell known = lstm_norm_known(kind, f->cell);
    for (int64_t r = 0; r < f->rows; r++) {
        float *gates = f->gates + r * f->gates_row;
        for (int v = 0; v < GROUP; v += VW) {
            struct lstm_gates s = lstm_gates_compute(&known, gates + v, f->peephole + r * f->unit_step + v,
                                                     f->peephole_row, v_load(f->c + r * f->c_row + v), true);
            v_store(f->extra + r * f->extra_row + v, v_first(s.now, lanes_left(f->units, f->unit_step, r, v)));
            if (known.keeps_gates)
                lstm_gates_keep(false, &known, &s, gates + v);
            else
                v_store(gates + 48 + v, s.o);
        }
    }
}

LSTM_NORM_KERNEL(kernel_lstm_norm_forward_1, lstm_norm_forward_gates, blas_cell_forward)

INLINE void lstm_norm_output_rows(const int lanes, const struct blas_cell *cell, const struct blas_cell_forward *f,
                                  int64_t first, int v)
{
    vf q[NORM_LANES], a[NORM_LANES];
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        const int64_t r = first + i, row = f->unit_step ? 0 : r, unit = r * f->unit_step + v;
        vf hat = v_sub(v_load(f->extra + r * f->extra_row + v), v_set(f->mean[row]));
        q[i] = v_fma(v_mul(hat, v_set(f->rstd[row])), v_load(f->norm_gain + unit), v_load(f->norm_bias + unit));
    }
    v_activate_all(lanes, &cell->output, q, a);
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        const int64_t r = first + i;
        float *c = f->c + r * f->c_row + v, *h = f->h + r * f->h_row + v;
        const uint16_t *new_c = f->new_c ? f->new_c + r * f->bits_row : NULL;
        const uint16_t *new_h = f->new_h ? f->new_h + r * f->bits_row : NULL;
        vf old = v_load(c), now = v_load(f->extra + r * f->extra_row + v);
        vf hv = v_mul(v_load(f->gates + r * f->gates_row + 48 + v), a[i]);
        now = zoneout_mix(cell, new_c, v, cell->zoneout_cell, old, now);
        if (cell->zoneout_hidden > 0.0f)
            hv = zoneout_mix(cell, new_h, v, cell->zoneout_hidden, v_load(h), hv);
        if (f->c_saved)
            v_store(f->c_saved + r * f->saved_row + v, old);
        v_store(c, now);
        v_store(h, v_first(hv, lanes_left(f->units, f->unit_step, r, v)));
    }
}

INLINE void lstm_norm_forward_output(const enum lstm_norm_kind kind, const struct blas_cell_forward *f)
{
    const struct blas_cell known = lstm_norm_known(kind, f->cell);
    for (int v = 0; v < GROUP; v += VW) {
        int64_t r = 0;
        for (; kind == NORM_PLAIN && r + NORM_LANES <= f->rows; r += NORM_LANES)
            lstm_norm_output_rows(NORM_LANES, &known, f, r, v);
        for (; r < f->rows; r++)
            lstm_norm_output_rows(1, &known, f, r, v);
    }
}

LSTM_NORM_KERNEL(kernel_lstm_norm_forward_2, lstm_norm_forward_output, blas_cell_forward)

/* Sums over rows for one vector of units. */
struct lstm_norm_sums {
    struct lstm_sums cell;
    vf gain, shift;
};

INLINE void lstm_norm_sums_clear(struct lstm_norm_sums *s)
{
    lstm_sums_clear(&s->cell);
    s->gain = s->shift = v_zero();
}

INLINE void lstm_norm_output_rows_back(const int lanes, const struct blas_cell *cell,
                                       const struct blas_cell_backward *b, int64_t first, int v,
                                       struct lstm_norm_sums *sums)
{
    struct lstm_gates s[NORM_LANES];
    vf hat[NORM_LANES], q[NORM_LANES], a[NORM_LANES];
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        const int64_t r = first + i, row = b->unit_step ? 0 : r, unit = r * b->unit_step + v;
        const float *gates = b->gates + r * b->gates_row + v;
        const vf old = v_load(b->c_saved + r * b->saved_row + v);
        s[i] = lstm_gates_again(cell, gates, b->peephole + unit, b->peephole_row, old, true);
        hat[i] = v_mul(v_sub(s[i].now, v_set(b->mean[row])), v_set(b->rstd[row]));
        hat[i] = v_first(hat[i], lanes_left(b->units, b->unit_step, r, v));
        q[i] = v_fma(hat[i], v_load(b->norm_gain + unit), v_load(b->norm_bias + unit));
    }
    v_activate_all(lanes, &cell->output, q, a);
    UNROLL_FOR (int i = 0; i < lanes; i++) {
        const int64_t r = first + i, row = b->unit_step ? 0 : r, unit = r * b->unit_step + v;
        float *gates = b->gates + r * b->gates_row, *row_sums = b->sums + 2 * GROUP * row + v;
        const uint16_t *new_h = b->new_h ? b->new_h + r * b->bits_row : NULL;
        vf carry_h, dnow = v_zero();
        v_store(b->extra + r * b->extra_row + v, hat[i]);
        vf dh = zoneout_split(new_h, v, lstm_dh(b, r, v), &carry_h);
        vf dq = v_mul(v_mul(dh, s[i].o), v_derivative(&cell->output, q[i], a[i]));
        dq = v_first(dq, lanes_left(b->units, b->unit_step, r, v));
        sums->gain = v_fma(dq, hat[i], sums->gain);
        sums->shift = v_add(sums->shift, dq);
        dq = v_mul(dq, v_load(b->norm_gain + unit));
        add_to(row_sums, dq);
        v_store(row_sums + GROUP, v_fma(dq, hat[i], v_load(row_sums + GROUP)));
        v_store(b->dq + r * b->extra_row + v, dq);
        /* The peephole's part of dc^ is computed in phase 2, from dzo in gates and the weight. */
        lstm_output_backward(cell, b, gates, r, v, s[i].zo, s[i].o, v_mul(dh, a[i]), s[i].now, &dnow, &sums->cell);
        if (new_h)
            v_store(b->dh + r * b->dh_row + v, carry_h);
        if (b->unit_step || r + 1 == b->rows) { /* the next row has other units, or there is none */
            add_to(b->dnorm_gain + unit, sums->gain);
            add_to(b->dnorm_bias + unit, sums->shift);
            lstm_sums_add(b, &sums->cell, r, v);
            lstm_norm_sums_clear(sums);
        }
    }
}

INLINE void lstm_norm_backward_output(const enum lstm_norm_kind kind, const struct blas_cell_backward *b)
{
    struct blas_cell known = lstm_norm_known(kind, b->cell);
    struct blas_cell_backward local = *b;
    if (kind == NORM_PLAIN)
        local.new_h = NULL;
    for (int v = 0; v < GROUP; v += VW) {
        struct lstm_norm_sums sums;
        lstm_norm_sums_clear(&sums);
        int64_t r = 0;
        for (; kind == NORM_PLAIN && r + NORM_LANES <= b->rows; r += NORM_LANES)
            lstm_norm_output_rows_back(NORM_LANES, &known, &local, r, v, &sums);
        for (; r < b->rows; r++)
            lstm_norm_output_rows_back(1, &known, &local, r, v, &sums);
    }
}

LSTM_NORM_KERNEL(kernel_lstm_norm_backward_1, lstm_norm_backward_output, blas_cell_backward)

INLINE void lstm_norm_backward_gates(const enum lstm_norm_kind kind, const struct blas_cell_backward *b)
{
    const struct blas_cell known = lstm_norm_known(kind, b->cell), *cell = &known;
    for (int v = 0; v < GROUP; v += VW) {
        struct lstm_sums sums;
        lstm_sums_clear(&sums);
        for (int64_t r = 0; r < b->rows; r++) {
            float *gates = b->gates + r * b->gates_row, *dcs = b->dc + r * b->c_row;
            const uint16_t *new_c = kind != NORM_PLAIN && b->new_c ? b->new_c + r * b->bits_row : NULL;
            const int64_t row = b->unit_step ? 0 : r;
            const float *peephole = b->peephole + r * b->unit_step + v;
            const vf mean_1 = v_set(b->sums[2 * row]), mean_2 = v_set(b->sums[2 * row + 1]);
            vf old = v_load(b->c_saved + r * b->saved_row + v), carry_c;
            struct lstm_gates s = lstm_gates_again(cell, gates + v, peephole, b->peephole_row, old, false);
            vf hat = v_load(b->extra + r * b->extra_row + v);
            vf d = v_fnma(hat, mean_2, v_sub(v_load(b->dq + r * b->extra_row + v), mean_1));
            vf dnow = zoneout_split(new_c, v, v_load(dcs + v), &carry_c);
            dnow = v_fma(d, v_set(b->rstd[row]), dnow);
            if (cell->peephole)
                dnow = v_fma(v_load(peephole + 2 * b->peephole_row), v_load(gates + 48 + v), dnow);
            dnow = v_first(dnow, lanes_left(b->units, b->unit_step, r, v));
            vf dold = lstm_gates_backward(cell, b, &s, gates, r, v, old, dnow, &sums);
            v_store(dcs + v, v_add(dold, carry_c));
            if (b->unit_step || r + 1 == b->rows) {
                lstm_sums_add(b, &sums, r, v);
                lstm_sums_clear(&sums);
            }
        }
    }
}

LSTM_NORM_KERNEL(kernel_lstm_norm_backward_2, lstm_norm_backward_gates, blas_cell_backward)
