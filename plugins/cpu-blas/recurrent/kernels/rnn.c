/* SPDX-License-Identifier: Apache-2.0 */
/* The simple RNN, on one panel of 64 units. Pre-activations are kept for backward. */
#include <stddef.h>

#include "cpu-blas/recurrent/kernels/cell.h"
#include "cpu-blas/recurrent/kernels/unit.h"

void kernel_rnn_forward(const struct blas_cell_forward *f)
{
    const struct blas_cell *cell = f->cell;
    for (int64_t r = 0; r < f->rows; r++) {
        float *gates = f->gates + r * PANEL, *h = f->h + r * f->h_row;
        const uint16_t *new_h = f->new_h ? f->new_h + r * f->bits_row : NULL;
        for (int v = 0; v < f->units; v += VW) {
            vf hv = v_activate(&cell->candidate, v_clip(cell->gate_clip, v_load(gates + v)));
            if (cell->zoneout_hidden > 0.0f)
                hv = zoneout_mix(cell, new_h ? new_h + v / GROUP : NULL, v % GROUP, cell->zoneout_hidden, v_load(h + v),
                                 hv);
            v_store(h + v, v_first(hv, f->units - v));
        }
    }
}

void kernel_rnn_backward(const struct blas_cell_backward *b)
{
    const struct blas_cell *cell = b->cell;
    for (int64_t r = 0; r < b->rows; r++) {
        float *gates = b->gates + r * PANEL, *dhs = b->dh + r * b->dh_row;
        const uint16_t *new_h = b->new_h ? b->new_h + r * b->bits_row : NULL;
        for (int v = 0; v < PANEL; v += VW) {
            if (v >= b->units) {
                v_store(gates + v, v_zero());
                continue;
            }
            vf z = v_load(gates + v), zc = v_clip(cell->gate_clip, z), carry;
            vf h = v_activate(&cell->candidate, zc);
            vf dh = zoneout_split(new_h ? new_h + v / GROUP : NULL, v % GROUP, v_load(dhs + v), &carry);
            vf dz = v_mul(dh, v_derivative(&cell->candidate, zc, h));
            dz = v_first(v_clip_gradient(cell->gate_clip, z, dz), b->units - v);
            v_store(gates + v, dz);
            add_to(b->dbias + v, dz);
            if (new_h)
                v_store(dhs + v, carry);
        }
    }
}
