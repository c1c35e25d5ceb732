/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm of one step forward: the statistics, then the cells in their phases. */
#include "cpu-blas/recurrent/step.h"

/* One phase of the cells with layer norm, panel by panel. */
static void norm_panels(const struct blas_run *r, int phase, struct blas_cell_forward c, int64_t z_stride)
{
    const struct blas_recurrent *op = r->op;
    for (int64_t p = 0; p < op->panels; p++) {
        c.units = (int32_t)blas_min(op->panel_units, op->units - p * op->panel_units);
        (op->desc.cell == SEQLSTM_CELL_GRU   ? op->kernels->gru_forward
         : op->desc.cell == SEQLSTM_CELL_RNN ? op->kernels->rnn_forward
         : phase == 1                        ? op->kernels->lstm_norm_forward_1
                                             : op->kernels->lstm_norm_forward_2)(&c);
        c.gates += z_stride;
        c.c += r->block->rows * GROUP;
        c.h += op->panel_units;
        if (c.c_saved)
            c.c_saved += r->block->q_rows * GROUP;
        if (c.new_c)
            c.new_c++;
        if (c.new_h)
            c.new_h += op->panel_units / GROUP;
        c.peephole += op->panel_units;
        if (op->lstm) {
            c.extra += r->block->rows * GROUP;
            c.norm_gain += GROUP;
            c.norm_bias += GROUP;
        }
    }
}

/* The same for an LSTM, row by row. With few rows, the panels are computed side by side. */
static void norm_rows(const struct blas_run *r, int phase, struct blas_cell_forward c, int64_t z_stride)
{
    const struct blas_recurrent *op = r->op;
    const int64_t rows = c.rows, h_row = c.h_row, bits_row = c.bits_row;
    c.rows = op->panels;
    c.units = (int32_t)op->units;
    c.unit_step = GROUP;
    c.gates_row = z_stride;
    c.c_row = c.extra_row = r->block->rows * GROUP;
    c.saved_row = r->block->q_rows * GROUP;
    c.h_row = GROUP;
    c.bits_row = 1;
    for (int64_t i = 0; i < rows; i++) {
        (phase == 1 ? op->kernels->lstm_norm_forward_1 : op->kernels->lstm_norm_forward_2)(&c);
        c.gates += PANEL;
        c.c += GROUP;
        c.extra += GROUP;
        c.h += h_row;
        c.mean++;
        c.rstd++;
        if (c.c_saved)
            c.c_saved += GROUP;
        if (c.new_c)
            c.new_c += bits_row;
        if (c.new_h)
            c.new_h += bits_row;
    }
}

void blas_step_norm(const struct blas_forward_run *f, const struct blas_step *step, float *stats, float *c_mean,
                    float *c_rstd)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_cell_forward *cell = &step->cell;
    const bool put = step->kept >= 0;
    const int64_t kept = put ? step->kept : op->training ? step->gates - r->saved->gates : 0;
    const int64_t kept_stride = r->block->gate_rows * PANEL;
    float *z = op->norm_keeps ? r->saved->z + kept : r->scratch.z;
    const int64_t z_stride = op->norm_keeps ? kept_stride : r->block->rows * PANEL;
    struct blas_norm norm = {.rows = cell->rows,
                             .panels = op->panels,
                             .u = step->gates,
                             .v = step->gates_h,
                             .panel_stride = step->stride,
                             .v_stride = step->h_stride,
                             .z = z,
                             .z_stride = z_stride,
                             .u_out = put ? r->saved->gates + kept : NULL,
                             .v_out = put ? r->saved->gates_h + kept : NULL,
                             .out_stride = kept_stride,
                             .valid_u = r->packed->valid_u,
                             .valid_v = r->packed->valid_v,
                             .gain_u = r->packed->gain_u,
                             .gain_v = r->packed->gain_v,
                             .bias = r->packed->bias,
                             .inverse_count = 1.0f / (float)op->norm_count,
                             .whole = op->norm_count == (int64_t)op->panels * PANEL,
                             .epsilon = op->desc.layer_norm_epsilon,
                             .stats = stats};
    op->kernels->norm_forward(&norm);
    for (int phase = 1; phase <= (op->lstm ? 2 : 1); phase++) {
        struct blas_cell_forward c = *cell;
        c.gates = z;
        c.c = r->scratch.c;
        c.extra = r->scratch.extra;
        c.extra_row = GROUP;
        c.peephole = r->packed->peephole;
        c.mean = c_mean;
        c.rstd = c_rstd;
        c.norm_gain = r->packed->gain_c;
        c.norm_bias = r->packed->bias_c;
        if (op->lstm && cell->rows <= NARROW_ROWS)
            norm_rows(r, phase, c, z_stride);
        else
            norm_panels(r, phase, c, z_stride);
        if (phase == 1 && op->lstm)
            op->kernels->row_stats(r->scratch.extra, r->block->rows * GROUP, cell->rows, op->units,
                                   op->desc.layer_norm_epsilon, c_mean, c_rstd);
    }
}
