/* SPDX-License-Identifier: Apache-2.0 */
/* A few sequences of an LSTM: one kernel call (recurrent/kernels/sweep.c) runs all steps of a chunk. */
#include "cpu-blas/recurrent/tiles.h"
#include "cpu-blas/recurrent/run.h"

bool blas_sweep_fits(const struct blas_run *r)
{
    const struct blas_recurrent_binding *binding = r->binding;
    const int64_t rows = r->block->rows, steps = binding->steps;
    if (rows > blas_sweep_rows(r->op) || binding->fused || r->block->q_of[steps] - r->block->q_of[0] != rows * steps)
        return false;
    /* The rows must have equal distances in packed tensors. The numbers of rows fall from step to step, so the mean
     * equals the first one only if all are equal. */
    const int64_t first = blas_packed_row(binding, r->block, 0);
    return steps < 3 || blas_packed_row(binding, r->block, steps - 1) - first ==
                            (steps - 1) * (blas_packed_row(binding, r->block, 1) - first);
}

/* Rows in packed tensors from one step to the next. */
static int64_t packed_step(const struct blas_run *r)
{
    return r->binding->steps < 2 ? 0
                                 : blas_packed_row(r->binding, r->block, 1) - blas_packed_row(r->binding, r->block, 0);
}

static void meet(const void *run)
{
    blas_run_barrier(run);
}

void blas_sweep_forward(const struct blas_forward_run *f, int64_t s, int64_t end)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const struct blas_saved *saved = op->training ? r->saved : NULL;
    const int64_t t = blas_step_at(r, s), rows = r->block->rows, q = r->block->q_of[t];
    const int64_t bits = (r->block->q_base + q) * blas_bits_row(op);
    const int64_t p = r->panel_first, panel = blas_x_floats(op, layer->input_pad) + blas_h_floats(op);
    int64_t low, high, stride;
    blas_own_columns(r, &low, &high);
    float *gates = blas_gates_at(f, s, &stride);
    struct blas_sweep_forward w = {.steps = end - s,
                                   .rows = (int32_t)rows,
                                   .panels = (int32_t)(r->panel_last - p),
                                   .k = (int32_t)op->out_pad,
                                   .low = (int32_t)low,
                                   .width = (int32_t)(high - low),
                                   .way = r->reverse ? -1 : 1,
                                   .position = r->binding->axis->position0[r->block->first] + r->binding->t0 + s,
                                   .bits_row = blas_bits_row(op),
                                   .cell = {.cell = &op->cell[r->direction],
                                            .rows = r->panel_last - p,
                                            .units = (int32_t)(op->units - p * GROUP),
                                            .unit_step = GROUP,
                                            .gates = gates + p * stride,
                                            .gates_row = stride,
                                            .c = r->scratch.c + p * rows * GROUP,
                                            .c_row = rows * GROUP,
                                            .h_row = GROUP,
                                            .peephole = r->packed->peephole + p * GROUP,
                                            .peephole_row = op->units_pad,
                                            .bits_row = 1},
                                   .weights = r->packed->forward + p * panel + blas_x_floats(op, layer->input_pad),
                                   .weights_panel = panel,
                                   .xh = blas_xh_at(f, s) + layer->input_pad,
                                   .xh_row = layer->xh_row,
                                   .straight = !r->scratch.mask_h && op->desc.zoneout_hidden == 0.0f,
                                   .h = r->scratch.h + low,
                                   .h_row = op->h_row,
                                   .mask = r->scratch.mask_h ? r->scratch.mask_h + low : NULL,
                                   .meet = r->barrier ? meet : NULL,
                                   .meeting = r};
    struct blas_norm norm;
    if (op->norm) {
        norm = blas_norm_at(r, q, rows);
        w.norm = &norm;
        w.cell.gates = norm.z;
        w.cell.extra = r->scratch.extra;
        w.cell.extra_row = rows * GROUP;
        w.cell.norm_gain = r->packed->gain_c;
        w.cell.norm_bias = r->packed->bias_c;
        w.c_mean = saved->c_stats + r->block->q_base + q;
        w.c_rstd = w.c_mean + r->binding->rows;
    }
    w.xh_step = w.way * rows * layer->xh_row;
    if (end < r->binding->steps)
        w.xh_after = blas_xh_at(f, end) + layer->input_pad;
    if (saved) {
        w.cell.c_saved = saved->state + r->block->q_base * op->units_pad + (p * r->block->q_rows + q) * GROUP;
        w.cell.saved_row = r->block->q_rows * GROUP;
    }
    if (saved && saved->new_c)
        w.cell.new_c = saved->new_c + bits;
    if (saved && saved->new_h)
        w.cell.new_h = saved->new_h + bits;
    if (saved && (saved->new_c || saved->new_h))
        blas_zoneout_bits(r, r->reverse ? blas_step_at(r, end - 1) : t, end - s);
    if (f->y.base) {
        w.y = f->y.base + blas_packed_row(r->binding, r->block, t) * f->y.row + low;
        w.y_row = f->y.row;
        w.y_step = w.way * packed_step(r) * f->y.row;
        w.y_count = blas_min(high, op->out) - low;
    }
    op->kernels->sweep_forward(&w);
}

static const float *recurrent_weights(const struct blas_run *r)
{
    const int32_t ld = r->op->layer_count * r->op->directions;
    return r->packed->masked ? r->packed->masked : r->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, r->n, SEQLSTM_PARAM_W_H)];
}

void blas_sweep_backward(const struct blas_backward_run *f, int64_t s, int64_t end)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = r->saved;
    const int64_t t = blas_step_at(r, r->binding->steps - 1 - s), rows = r->block->rows, q = r->block->q_of[t];
    const int64_t bits = (r->block->q_base + q) * blas_bits_row(op);
    struct blas_sweep_backward w = {
        .steps = end - s,
        .rows = (int32_t)rows,
        .panels = op->panels,
        .width = (int32_t)op->out_pad,
        .way = r->reverse ? 1 : -1,
        .bits_row = blas_bits_row(op),
        .cell = {.cell = &op->cell[r->direction],
                 .rows = op->panels,
                 .units = (int32_t)op->units,
                 .unit_step = GROUP,
                 .gates = saved->gates + r->block->gate_base * op->panels * PANEL + q * PANEL,
                 .gates_row = r->block->gate_rows * PANEL,
                 .c_saved = saved->state + r->block->q_base * op->units_pad + q * GROUP,
                 .saved_row = r->block->q_rows * GROUP,
                 .dc = r->scratch.c,
                 .c_row = rows * GROUP,
                 .dh_row = GROUP,
                 .dy_row = GROUP,
                 .peephole = r->packed->peephole,
                 .peephole_row = op->units_pad,
                 .dpeephole = op->peephole ? f->gradients.peephole : NULL,
                 .dbias = f->gradients.bias,
                 .new_c = saved->new_c ? saved->new_c + bits : NULL,
                 .new_h = saved->new_h ? saved->new_h + bits : NULL,
                 .bits_row = 1},
        .weights = op->h_in_place ? recurrent_weights(r) : r->packed->h_back,
        .in_place = op->h_in_place,
        .dh = r->scratch.h,
        .dh_row = op->h_row,
        .carry = op->has_carry,
        .mask = r->scratch.mask_h,
        .product = r->scratch.projected};
    struct blas_norm norm;
    if (op->norm) {
        norm = blas_norm_at(r, q, rows);
        norm.dgain_u = f->gradients.norm_u;
        norm.dgain_v = f->gradients.norm_v;
        w.norm = &norm;
        w.cell.gates = norm.z;
        w.cell.extra = r->scratch.extra;
        w.cell.extra_row = rows * GROUP;
        w.cell.dq = r->scratch.dq;
        w.cell.mean = saved->c_stats + r->block->q_base + q;
        w.cell.rstd = w.cell.mean + r->binding->rows;
        w.cell.sums = r->scratch.sums;
        w.cell.norm_gain = r->packed->gain_c;
        w.cell.norm_bias = r->packed->bias_c;
        w.cell.dnorm_gain = f->gradients.norm_c;
        w.cell.dnorm_bias = f->gradients.norm_c + op->units_pad;
    }
    if (f->dy.base) {
        w.cell.dy = f->dy.base + blas_packed_row(r->binding, r->block, t) * f->dy.row;
        w.dy_row = f->dy.row;
        w.dy_step = w.way * packed_step(r) * f->dy.row;
    }
    op->kernels->sweep_backward(&w);
}
