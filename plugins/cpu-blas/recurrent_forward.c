/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the recurrent operation: every block runs through layers, directions and steps.
 *
 * One step: product of [x~ | h~] with the packed weights, panel by panel, each followed at once by the cell while
 * the panel's pre-activations are in the first-level cache; then *publish*: h goes to y, to the
 * next step's xh, and to
 * the final state of sequences that end. In inference xh and gates live in scratch that two chunks of steps share in
 * turn; in training they are the reserve.
 */
#include "recurrent_run.h"

#include <string.h>

struct forward_call {
    const struct blas_recurrent_binding *binding;
    const struct seqlstm_forward *args;
    struct seqlstm_queue *queue;
    struct blas_packed packed[BLAS_LD_MAX];
    struct blas_saved saved[BLAS_LD_MAX];
    float *between[2]; /* outputs of inner layers, in turn: [R][y_width] */
    float *apart[2];   /* outputs of the two directions before they are merged: [R][O] */
    char *scratch;
    uint64_t scratch_bytes;
};

/* Up to this many rows a step, the panels of a row run side by side instead of the rows of a panel. */
enum { NARROW_ROWS = 3 };

struct forward_run {
    struct blas_run r;
    int64_t chunk_steps; /* steps of a chunk */
    int64_t chunk;       /* the current one */
    struct blas_rows_at x, y;
    bool y_later;        /* few rows: y is copied out of xh after the last step */
};

static int64_t chunk_of(const struct forward_run *f, int64_t s) { return s / f->chunk_steps; }

/* First q of the chunk that step s belongs to, and the rows it has. */
static int64_t chunk_q(const struct forward_run *f, int64_t s, int64_t *out_rows)
{
    const struct blas_block *block = f->r.block;
    int64_t first = chunk_of(f, s) * f->chunk_steps;
    int64_t last = blas_min(first + f->chunk_steps, f->r.binding->steps) - 1;
    int64_t low = f->r.reverse ? blas_step_at(&f->r, last) : first;
    int64_t high = f->r.reverse ? blas_step_at(&f->r, first) : last;
    *out_rows = block->q_of[high + 1] - block->q_of[low];
    return block->q_of[low];
}

/* Row of xh of the block's first sequence at the s-th step. */
static float *xh_at(const struct forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    int64_t row = r->op->layers[r->layer].xh_row, q = r->block->q_of[blas_step_at(r, s)], rows;
    if (r->op->training)
        return r->saved->xh + (r->block->q_base + q) * row;
    q -= chunk_q(f, s, &rows);
    int64_t parity = chunk_of(f, s) & 1;
    return r->scratch.xh + (parity * (int64_t)f->r.binding->chunk_rows + q) * row;
}

/* Pre-activations of panel 0 at the s-th step, and the stride between panels. */
static float *gates_at(const struct forward_run *f, int64_t s, int64_t *out_panel_stride)
{
    const struct blas_run *r = &f->r;
    const int64_t columns = (int64_t)r->op->panels * PANEL;
    int64_t q = r->block->q_of[blas_step_at(r, s)], rows;
    if (r->op->training) {
        *out_panel_stride = r->block->q_rows * PANEL;
        return r->saved->gates + r->block->q_base * columns + q * PANEL;
    }
    q -= chunk_q(f, s, &rows);
    *out_panel_stride = rows * PANEL;
    return r->scratch.gates + q * PANEL;
}

/* Rows [first, last) of the block begin here: their states, and h~ at `xh`. Own columns only. */
static void begin_rows(const struct forward_run *f, int64_t first, int64_t last, float *xh)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t width = op->out_pad, input_pad = op->layers[r->layer].input_pad;
    const float *h0 = blas_state_slot(r, r->slots, SEQLSTM_STATE_H0);
    const float *c0 = op->lstm ? blas_state_slot(r, r->slots, SEQLSTM_STATE_C0) : NULL;
    if (!(op->desc.options & SEQLSTM_RECURRENT_INITIAL_STATE))
        h0 = c0 = NULL;
    int64_t low = blas_min(r->panel_first * op->panel_units, width);
    int64_t high = r->panel_last == op->panels ? width
                                               : blas_min(r->panel_last * op->panel_units, width);
    for (int64_t i = first; i < last; i++) {
        int64_t b = r->block->first + i;
        float *h = r->scratch.h + i * width, *to = xh + i * op->layers[r->layer].xh_row + input_pad;
        for (int64_t u = low; u < high; u++) {
            h[u] = h0 && u < op->out ? h0[b * op->out + u] : 0.0f;
            to[u] = r->scratch.mask_h ? h[u] * r->scratch.mask_h[i * width + u] : h[u];
        }
        for (int64_t g = r->panel_first; op->lstm && g < r->panel_last; g++)
            for (int64_t k = 0; k < GROUP; k++) {
                int64_t u = g * GROUP + k;
                r->scratch.c[(g * r->block->rows + i) * GROUP + k] =
                    c0 && u < op->units ? c0[b * op->units + u] : 0.0f;
            }
    }
}

/* x~ of all steps of the chunk that begins with step s; then its product where that is not part of the step. */
static void begin_chunk(const struct forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    int64_t last = blas_min(s + f->chunk_steps, r->binding->steps);
    int64_t chunk_rows, lowest = r->reverse ? last - 1 : s;
    chunk_q(f, s, &chunk_rows);
    bool bulk = r->binding->block_count == 1 && !r->barrier && !r->scratch.mask_x;
    for (int64_t i = bulk ? lowest : s; i < last; i++) {
        if (i % r->members != r->member && r->barrier)
            continue;
        int64_t t = blas_step_at(r, i), rows = bulk ? chunk_rows : blas_block_rows(r->block, t);
        float *to = xh_at(f, i);
        const float *from = f->x.base + blas_packed_row(r->binding, r->block, t) * f->x.row;
        op->kernels->copy(&(struct blas_rows){.rows = rows, .n = layer->input, .x = from,
                                              .x_row = f->x.row, .m = r->scratch.mask_x,
                                              .m_row = layer->input_pad, .y = to,
                                              .y_row = layer->xh_row});
        if (layer->input_pad > layer->input)
            for (int64_t k = 0; k < rows; k++)
                memset(to + k * layer->xh_row + layer->input, 0,
                       (size_t)(layer->input_pad - layer->input) * sizeof *to);
        if (bulk)
            break;
    }
    blas_run_barrier(r);
    if (r->binding->fused)
        return;
    int64_t rows = chunk_rows, stride;
    const float *a = xh_at(f, lowest);
    float *gates = gates_at(f, lowest, &stride);
    for (int64_t p = r->panel_first; p < r->panel_last; p++)
        op->kernels->product(&(struct blas_product){
            .rows = rows, .a = a, .a_row = layer->xh_row, .k_blocks = 1,
            .k_inner = (int32_t)layer->input_pad,
            .b = r->packed->forward + p * (layer->input_pad + op->out_pad) * PANEL, .b_row = PANEL,
            .groups = 4, .c = gates + p * stride, .c_row = PANEL,
            .init = op->norm ? NULL : r->packed->bias + p * PANEL});
}

static void step_bits(const struct blas_run *r, int64_t t, int64_t rows, uint32_t purpose,
                      float rate, int64_t width, uint16_t *bits)
{
    const struct seqlstm_axis *axis = r->binding->axis;
    uint64_t key = blas_mask_key(r->op, r->step, r->layer, r->direction, purpose);
    for (int64_t i = 0; i < rows; i++) {
        int64_t b = r->block->first + i;
        uint32_t step = axis->position0[b] + (uint32_t)(r->binding->t0 + t);
        r->op->kernels->keep_bits(key, step, axis->sequence_id[b], width, rate,
                                  bits + i * blas_bits_row(r->op));
    }
}

/* Projection and the zoneout behind it: raw -> h. */
static void project(const struct forward_run *f, const float *raw, int64_t rows, const uint16_t *new_h)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    float rate = op->desc.zoneout_hidden, *out = rate > 0.0f ? r->scratch.projected : r->scratch.h;
    for (int64_t n = 0; n < op->out_pad; n += PANEL) {
        int64_t wide = blas_min(PANEL, op->out_pad - n);
        op->kernels->product(&(struct blas_product){
            .rows = rows, .a = raw, .a_row = op->units_pad, .k_blocks = 1,
            .k_inner = (int32_t)op->units_pad, .b = r->packed->projection + n * op->units_pad,
            .b_row = wide, .groups = (int32_t)(wide / GROUP), .c = out + n, .c_row = op->out_pad});
    }
    if (!(rate > 0.0f))
        return;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t u = 0; u < op->out; u++) {
            float *h = r->scratch.h + i * op->out_pad + u, now = out[i * op->out_pad + u];
            if (!op->training)
                *h = rate * *h + (1.0f - rate) * now;
            else if (new_h[i * blas_bits_row(op) + u / 16] >> (u % 16) & 1)
                *h = now;
        }
}

/* Cells with layer norm: both products stand apart, every row needs its statistics first. */
static void norm_step(const struct forward_run *f, struct blas_cell_forward *cell, float *gates,
                      float *gates_h, int64_t panel_stride, int64_t h_stride, float *stats,
                      float *c_mean, float *c_rstd)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t z_stride = r->block->rows * PANEL;
    struct blas_norm norm = {.rows = cell->rows, .panels = op->panels, .u = gates, .v = gates_h,
                             .panel_stride = panel_stride, .v_stride = h_stride, .z = r->scratch.z,
                             .z_stride = z_stride, .valid_u = r->packed->valid_u,
                             .valid_v = r->packed->valid_v, .gain_u = r->packed->gain_u,
                             .gain_v = r->packed->gain_v, .bias = r->packed->bias,
                             .inverse_count = 1.0f / (float)op->norm_count,
                             .epsilon = op->desc.layer_norm_epsilon, .stats = stats};
    op->kernels->norm_forward(&norm);
    struct blas_cell_forward base = *cell;
    for (int phase = 1; phase <= 2; phase++) {
        for (int64_t p = 0; p < op->panels; p++) {
            struct blas_cell_forward c = base;
            c.gates = r->scratch.z + p * z_stride;
            c.gates_row = PANEL;
            c.units = (int32_t)blas_min(op->panel_units, op->units - p * op->panel_units);
            c.c = r->scratch.c + p * r->block->rows * GROUP;
            c.h = base.h + p * op->panel_units;
            if (base.c_saved)
                c.c_saved = base.c_saved + p * r->block->q_rows * GROUP;
            c.new_c = base.new_c ? base.new_c + p : NULL;
            c.new_h = base.new_h ? base.new_h + p * (op->panel_units / GROUP) : NULL;
            c.peephole = r->packed->peephole + p * op->panel_units;
            c.mean = c_mean;
            c.rstd = c_rstd;
            if (!op->lstm) {
                (op->desc.cell == SEQLSTM_CELL_GRU ? op->kernels->gru_forward
                                                   : op->kernels->rnn_forward)(&c);
                continue;
            }
            c.extra = r->scratch.extra + p * r->block->rows * GROUP;
            c.extra_row = GROUP;
            c.norm_gain = r->packed->gain_c + p * GROUP;
            c.norm_bias = r->packed->bias_c + p * GROUP;
            (phase == 1 ? op->kernels->lstm_norm_forward_1 : op->kernels->lstm_norm_forward_2)(&c);
        }
        if (!op->lstm)
            return;
        if (phase == 1)
            op->kernels->row_stats(r->scratch.extra, r->block->rows * GROUP, cell->rows, op->units,
                                   op->desc.layer_norm_epsilon, c_mean, c_rstd);
    }
}

/* r h~ and its product, for the GRU whose reset comes before. */
static void reset_product(const struct forward_run *f, float *gates, int64_t panel_stride,
                          const float *xh, float *rh, int64_t rows)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    for (int64_t p = 0; p < op->panels; p++)
        op->kernels->gru_before_forward_1(&(struct blas_cell_forward){
            .cell = &op->cell[r->direction], .rows = rows,
            .units = (int32_t)blas_min(GROUP, op->units - p * GROUP),
            .gates = gates + p * panel_stride, .extra = rh + p * GROUP, .extra_row = op->out_pad,
            .h_masked = xh + op->layers[r->layer].input_pad + p * GROUP,
            .h_masked_row = op->layers[r->layer].xh_row});
    for (int64_t n = 0; n < op->units_pad; n += PANEL) {
        int64_t wide = blas_min(PANEL, op->units_pad - n);
        op->kernels->product(&(struct blas_product){
            .rows = rows, .a = rh, .a_row = op->out_pad, .k_blocks = 1,
            .k_inner = (int32_t)op->out_pad, .b = r->packed->rh + n * op->out_pad, .b_row = wide,
            .groups = (int32_t)(wide / GROUP), .c = r->scratch.product + n, .c_row = op->units_pad});
    }
}

/* Where h of the s-th step goes: into the next step's xh if every row goes on and takes it as it is. */
static float *h_target(const struct forward_run *f, int64_t s, int64_t *out_row)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    *out_row = op->out_pad;
    if (!op->lstm || op->projection || r->scratch.mask_h || op->desc.zoneout_hidden > 0.0f ||
        s + 1 == r->binding->steps ||
        blas_block_rows(r->block, blas_step_at(r, s)) !=
            blas_block_rows(r->block, blas_step_at(r, s + 1)))
        return r->scratch.h;
    *out_row = op->layers[r->layer].xh_row;
    return xh_at(f, s + 1) + op->layers[r->layer].input_pad;
}

/* One step in progress. */
struct step {
    int64_t s, t, rows, q, q_all;
    float *gates, *gates_h; /* panel 0 */
    int64_t stride, h_stride; /* between panels */
    float *raw, *rh;
    uint16_t *new_c, *new_h;
    struct blas_cell_forward cell; /* of panel 0 */
};

/* The cell on one panel. */
static void cell_panel(const struct forward_run *f, const struct step *step, int64_t p)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    struct blas_cell_forward cell = step->cell;
    cell.gates += p * step->stride;
    cell.units = (int32_t)blas_min(op->panel_units, op->units - p * op->panel_units);
    cell.c += p * r->block->rows * GROUP;
    cell.h += p * op->panel_units;
    if (cell.c_saved)
        cell.c_saved += p * r->block->q_rows * GROUP;
    cell.peephole += p * op->panel_units;
    if (cell.new_c)
        cell.new_c += p;
    if (cell.new_h)
        cell.new_h += p * (op->panel_units / GROUP);
    if (op->gru_before) {
        cell.extra = r->scratch.product + p * GROUP;
        cell.extra_row = op->units_pad;
    }
    (op->lstm                              ? op->kernels->lstm_forward
     : op->desc.cell == SEQLSTM_CELL_GRU ? op->kernels->gru_forward
                                           : op->kernels->rnn_forward)(&cell);
}

/* The LSTM cell on all own panels of one row: with few rows the panels are what runs side by side. */
static void cell_row(const struct forward_run *f, const struct step *step, int64_t i)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t p = r->panel_first;
    struct blas_cell_forward cell = step->cell;
    cell.rows = r->panel_last - p;
    cell.units = (int32_t)(op->units - p * GROUP);
    cell.unit_step = GROUP;
    cell.gates += p * step->stride + i * PANEL;
    cell.gates_row = step->stride;
    cell.c += (p * r->block->rows + i) * GROUP;
    cell.c_row = r->block->rows * GROUP;
    if (cell.c_saved)
        cell.c_saved += (p * r->block->q_rows + i) * GROUP;
    cell.saved_row = r->block->q_rows * GROUP;
    cell.h += i * cell.h_row + p * GROUP;
    cell.h_row = GROUP;
    cell.peephole += p * GROUP;
    if (cell.new_c)
        cell.new_c += i * cell.bits_row + p;
    if (cell.new_h)
        cell.new_h += i * cell.bits_row + p;
    cell.bits_row = 1;
    op->kernels->lstm_forward(&cell);
}

/* Products of all own panels, each followed by its cell where the cell needs no other panel. */
static void step_panels(const struct forward_run *f, const struct step *step)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t panel_floats = (layer->input_pad + op->out_pad) * PANEL;
    const int64_t count = r->panel_last - r->panel_first;
    /* Every other step runs its panels backward: what the caches still hold is used first. */
    const int64_t way = step->s & 1 ? -1 : 1;
    const bool narrow = op->lstm && !op->norm && step->rows <= NARROW_ROWS;
    const bool x_inside = r->binding->fused && !op->norm;
    const float *xh = xh_at(f, step->s);
    int64_t p = way > 0 ? r->panel_first : r->panel_last - 1;
    struct blas_product product = {
        .rows = step->rows, .a = x_inside ? xh : xh + layer->input_pad, .a_row = layer->xh_row,
        .k_blocks = 1, .k_inner = (int32_t)(x_inside ? layer->input_pad + op->out_pad : op->out_pad),
        .b_row = PANEL, .groups = 4, .c_row = PANEL, .accumulate = !x_inside && !op->norm};
    for (int64_t i = 0; i < count; i++, p += way) {
        const float *weights = r->packed->forward + p * panel_floats;
        if (op->norm && r->binding->fused) {
            struct blas_product x = product;
            x.a = xh;
            x.k_inner = (int32_t)layer->input_pad;
            x.b = weights;
            x.c = step->gates + p * step->stride;
            op->kernels->product(&x);
        }
        product.b = x_inside ? weights : weights + layer->input_pad * PANEL;
        product.c = op->norm ? step->gates_h + p * step->h_stride : step->gates + p * step->stride;
        product.init = x_inside ? r->packed->bias + p * PANEL : NULL;
        product.next = op->weights_large && i + 1 < count ? product.b + way * panel_floats : NULL;
        op->kernels->product(&product);
        if (!narrow && !op->norm && !op->gru_before)
            cell_panel(f, step, p);
    }
    for (int64_t i = 0; narrow && i < step->rows; i++)
        cell_row(f, step, i);
}

/* Products and cells of one step. */
static void run_step(const struct forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = op->training ? r->saved : NULL;
    const int64_t columns = (int64_t)op->panels * PANEL, bits_row = blas_bits_row(op);
    struct step step = {.s = s, .t = blas_step_at(r, s)};
    step.rows = blas_block_rows(r->block, step.t);
    step.q = r->block->q_of[step.t];
    step.q_all = r->block->q_base + step.q;
    step.gates = gates_at(f, s, &step.stride);
    step.gates_h = r->scratch.gates_h;
    step.h_stride = r->block->rows * PANEL;
    if (op->norm && saved) {
        step.gates_h = saved->gates_h + r->block->q_base * columns + step.q * PANEL;
        step.h_stride = step.stride;
    }
    if (saved && saved->new_c) {
        step.new_c = saved->new_c + step.q_all * bits_row;
        step_bits(r, step.t, step.rows, SEQLSTM_MASK_ZONEOUT_CELL, op->desc.zoneout_cell, op->units,
                  step.new_c);
    }
    if (saved && saved->new_h) {
        step.new_h = saved->new_h + step.q_all * bits_row;
        step_bits(r, step.t, step.rows, SEQLSTM_MASK_ZONEOUT_HIDDEN, op->desc.zoneout_hidden,
                  op->out, step.new_h);
    }
    if (op->projection)
        step.raw = saved ? saved->raw + step.q_all * op->units_pad : r->scratch.raw;
    int64_t h_row;
    float *h = h_target(f, s, &h_row);
    step.cell = (struct blas_cell_forward){
        .cell = &op->cell[r->direction], .rows = step.rows, .gates = step.gates, .gates_row = PANEL,
        .c = r->scratch.c, .c_row = GROUP, .saved_row = GROUP, .h = step.raw ? step.raw : h,
        .h_row = step.raw ? op->units_pad : h_row, .peephole = r->packed->peephole,
        .peephole_row = op->units_pad, .new_c = step.new_c, .new_h = step.raw ? NULL : step.new_h,
        .bits_row = bits_row};
    if (saved && saved->state)
        step.cell.c_saved = saved->state + r->block->q_base * op->units_pad + step.q * GROUP;
    step_panels(f, &step);
    if (op->gru_before) {
        reset_product(f, step.gates, step.stride, xh_at(f, s),
                      saved ? saved->rh + step.q_all * op->out_pad : r->scratch.extra, step.rows);
        for (int64_t p = 0; p < op->panels; p++)
            cell_panel(f, &step, p);
    }
    if (op->norm) {
        float *c_mean = r->scratch.c_stats, *c_rstd = c_mean ? c_mean + r->block->rows : NULL;
        if (saved && saved->c_stats) {
            c_mean = saved->c_stats + step.q_all;
            c_rstd = saved->c_stats + r->binding->rows + step.q_all;
        }
        norm_step(f, &step.cell, step.gates, step.gates_h, step.stride, step.h_stride,
                  saved ? saved->stats + 4 * step.q_all : r->scratch.stats, c_mean, c_rstd);
    }
    if (step.raw)
        project(f, step.raw, step.rows, step.new_h);
}

/* Final states of rows [first, last), own columns. */
static void end_rows(const struct forward_run *f, int64_t first, int64_t last)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    if (!(op->desc.options & SEQLSTM_RECURRENT_FINAL_STATE))
        return;
    float *hn = blas_state_slot(r, r->slots, SEQLSTM_STATE_HN);
    float *cn = op->lstm ? blas_state_slot(r, r->slots, SEQLSTM_STATE_CN) : NULL;
    int64_t low = r->panel_first * op->panel_units, high = r->panel_last * op->panel_units;
    int64_t h_low = op->projection ? 0 : low, h_high = op->projection ? op->out
                                                                      : blas_min(high, op->out);
    for (int64_t i = first; i < last; i++) {
        int64_t b = r->block->first + i;
        for (int64_t u = h_low; hn && u < h_high; u++)
            hn[b * op->out + u] = r->scratch.h[i * op->out_pad + u];
        for (int64_t u = low; cn && u < blas_min(high, op->units); u++)
            cn[b * op->units + u] =
                r->scratch.c[(u / GROUP * r->block->rows + i) * GROUP + u % GROUP];
    }
}

/* h to y, to the next step and to final states; own columns. Also begins the rows that start at the next step. */
static void publish(const struct forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t t = blas_step_at(r, s), rows = blas_block_rows(r->block, t), width = op->out_pad;
    bool last = s + 1 == r->binding->steps;
    int64_t next_rows = last ? 0 : blas_block_rows(r->block, blas_step_at(r, s + 1));
    int64_t low = 0, high = width;
    if (!op->projection) {
        low = blas_min(r->panel_first * op->panel_units, width);
        high = r->panel_last == op->panels ? width
                                           : blas_min(r->panel_last * op->panel_units, width);
    }
    int64_t h_row;
    const float *h = h_target(f, s, &h_row);
    struct blas_rows copy = {.rows = rows, .n = blas_min(high, op->out) - low, .x = h + low,
                             .x_row = h_row};
    if (f->y.base && copy.n > 0 && (!f->y_later || h == r->scratch.h)) {
        copy.y = f->y.base + blas_packed_row(r->binding, r->block, t) * f->y.row + low;
        copy.y_row = f->y.row;
        op->kernels->copy(&copy);
    }
    if (!last && h == r->scratch.h) {
        float *xh = xh_at(f, s + 1);
        copy.rows = blas_min(rows, next_rows);
        copy.n = high - low;
        copy.m = r->scratch.mask_h ? r->scratch.mask_h + low : NULL;
        copy.m_row = width;
        copy.y = xh + layer->input_pad + low;
        copy.y_row = layer->xh_row;
        op->kernels->copy(&copy);
        begin_rows(f, rows, next_rows, xh);
    }
    if (next_rows < rows)
        end_rows(f, next_rows, rows);
}

/* y of all steps but the last run, whose h went into xh: the h~ of the step that followed. */
static void copy_outputs(const struct forward_run *f)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t row = op->layers[r->layer].xh_row, batch = r->block->rows;
    const float *h = r->saved->xh + op->layers[r->layer].input_pad;
    float *y = f->y.base;
    if (r->reverse)
        y += batch * f->y.row;
    else
        h += batch * row;
    op->kernels->copy(&(struct blas_rows){.rows = r->block->q_rows - batch, .n = op->out, .x = h,
                                          .x_row = row, .y = y, .y_row = f->y.row});
}

static void run_direction(struct forward_run *f)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    int64_t rows = r->block->rows, steps = r->binding->steps;
    f->chunk_steps = r->binding->fused ? 1 : r->binding->chunk_rows / rows;
    if (f->chunk_steps < 1)
        f->chunk_steps = 1;
    f->y_later = op->training && f->y.base && !r->barrier && rows <= NARROW_ROWS &&
                 r->binding->block_count == 1 && r->block->q_rows == rows * steps && op->lstm &&
                 !op->projection && !r->scratch.mask_h && op->desc.zoneout_hidden == 0.0f;
    blas_masks_fill(r);
    blas_run_barrier(r);
    begin_rows(f, 0, blas_block_rows(r->block, blas_step_at(r, 0)), xh_at(f, 0));
    for (int64_t s = 0; s < steps; s++) {
        if (s % f->chunk_steps == 0)
            begin_chunk(f, s);
        if (blas_block_rows(r->block, blas_step_at(r, s)) > 0)
            run_step(f, s);
        publish(f, s);
        blas_run_barrier(r);
    }
    if (f->y_later)
        copy_outputs(f);
}

/* y = join(h of direction 0, h of direction 1) over the block's rows. */
static void merge_block(const struct forward_call *call, const struct blas_block *block,
                        const float *first, const float *second, float *y)
{
    const struct blas_recurrent *op = call->binding->op;
    for (int64_t t = 0; y && t < call->binding->steps; t++) {
        int64_t at = blas_packed_row(call->binding, block, t) * op->out;
        int64_t count = blas_block_rows(block, t) * op->out;
        const float *a = first + at, *b = second + at;
        for (int64_t i = 0; i < count; i++)
            y[at + i] = op->desc.merge == SEQLSTM_MERGE_MUL   ? a[i] * b[i]
                        : op->desc.merge == SEQLSTM_MERGE_AVE ? 0.5f * (a[i] + b[i])
                                                              : a[i] + b[i];
    }
}

static void run_block(const struct forward_call *call, const struct blas_block *block,
                      int32_t member, int32_t members, int32_t scratch_index)
{
    const struct blas_recurrent_binding *binding = call->binding;
    const struct blas_recurrent *op = binding->op;
    struct forward_run f = {0};
    struct blas_region region = {call->scratch + (uint64_t)scratch_index * call->scratch_bytes, 0};
    blas_scratch_forward(op, block->rows, binding->chunk_rows, &region, &f.r.scratch);
    f.r.op = op;
    f.r.binding = binding;
    f.r.block = block;
    f.r.queue = call->queue;
    f.r.step = call->args->step;
    f.r.slots = call->args->slots;
    f.r.member = member;
    f.r.members = members;
    f.r.barrier = members > 1;
    blas_share(op->panels, member, members, &f.r.panel_first, &f.r.panel_last);
    const float *input = call->args->slots[SEQLSTM_RECURRENT_X];
    for (int32_t l = 0; l < op->layer_count; l++) {
        float *y = l + 1 < op->layer_count ? call->between[l & 1]
                                           : call->args->slots[SEQLSTM_RECURRENT_Y];
        if (l + 1 == op->layer_count && !(op->desc.options & SEQLSTM_RECURRENT_OUTPUT))
            y = NULL;
        for (int32_t d = 0; d < op->directions; d++) {
            f.r.layer = l;
            f.r.direction = d;
            f.r.n = l * op->directions + d;
            f.r.reverse = op->directions == 2 ? d == 1
                                              : op->desc.direction == SEQLSTM_DIRECTION_BACKWARD;
            f.r.packed = &call->packed[f.r.n];
            f.r.saved = &call->saved[f.r.n];
            f.x = (struct blas_rows_at){(float *)(uintptr_t)input, op->layers[l].input};
            if (op->merge_apart)
                f.y = (struct blas_rows_at){
                    op->training && f.r.saved->merged ? f.r.saved->merged : call->apart[d], op->out};
            else
                f.y = (struct blas_rows_at){y ? y + d * op->out : NULL, op->y_width};
            run_direction(&f);
        }
        if (op->merge_apart) {
            const struct blas_saved *s = &call->saved[l * op->directions];
            bool kept = op->training && s[0].merged;
            merge_block(call, block, kept ? s[0].merged : call->apart[0],
                        kept ? s[1].merged : call->apart[1], y);
        }
        input = y;
    }
}

static void forward_member(void *argument, int32_t member, int32_t members)
{
    const struct forward_call *call = argument;
    const struct blas_recurrent_binding *binding = call->binding;
    uint32_t saved = blas_flush_denormals_enter();
    if (binding->units) {
        for (int32_t i = 0; i < binding->block_count; i++)
            run_block(call, &binding->blocks[i], member, members, 0);
    } else if (member < binding->members) {
        for (int32_t i = binding->member_first[member]; i < binding->member_first[member + 1]; i++)
            run_block(call, &binding->blocks[i], 0, 1, member);
    }
    blas_flush_denormals_leave(saved);
}

static void layout(const struct blas_recurrent *op, int64_t rows, int64_t block_rows,
                   int64_t chunk_rows, int32_t members, struct blas_region *region,
                   struct forward_call *call)
{
    for (int i = 0; i < 2; i++) {
        call->between[i] = blas_region_take(
            region, op->layer_count > 1 + i ? rows * op->y_width : 0);
        call->apart[i] = blas_region_take(region, op->merge_apart ? rows * op->out : 0);
    }
    struct blas_region one = {0};
    struct blas_scratch scratch;
    blas_scratch_forward(op, block_rows, chunk_rows, &one, &scratch);
    call->scratch = region->base ? region->base + region->used : NULL;
    call->scratch_bytes = one.used;
    region->used += one.used * (uint64_t)members;
}

uint64_t blas_forward_workspace(const struct blas_recurrent *op)
{
    struct blas_region region = {0};
    struct forward_call call;
    layout(op, op->desc.head.max_rows, op->block_rows_max, blas_chunk_rows_max(op), op->members_max,
           &region, &call);
    return region.used;
}

seqlstm_status blas_recurrent_forward(struct blas_recurrent_binding *binding,
                                      struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    const struct blas_recurrent *op = binding->op;
    struct forward_call call;
    call.binding = binding;
    call.args = args;
    call.queue = queue;
    if (!args->packed || (op->training && !args->reserve) || !args->workspace)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s is NULL, a buffer of op_sizes was expected",
                     !args->packed ? "packed" : !args->workspace ? "workspace" : "reserve");
    struct blas_region packed = {(char *)(uintptr_t)args->packed, 0}, saved = {args->reserve, 0};
    for (int32_t n = 0; n < op->layer_count * op->directions; n++) {
        blas_packed_layout(op, n / op->directions, &packed, &call.packed[n]);
        if (op->training)
            blas_saved_layout(op, n / op->directions, binding->rows, &saved, &call.saved[n]);
    }
    struct blas_region work = {args->workspace, 0};
    layout(op, binding->rows, op->block_rows_max, blas_chunk_rows_max(op), binding->members, &work,
           &call);
    if (binding->units || binding->members > 1)
        queue->services->team(queue, forward_member, &call);
    else
        forward_member(&call, 0, 1);
    return SEQLSTM_OK;
}
