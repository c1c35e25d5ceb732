/* SPDX-License-Identifier: Apache-2.0 */
/* One step backward: the cell replaces its pre-activations by their gradients, which are then multiplied by W_h. */
#include <string.h>

#include "cpu-blas/recurrent/ahead.h"
#include "cpu-blas/recurrent/tiles.h"

void blas_own_columns(const struct blas_run *r, int64_t *low, int64_t *high)
{
    const struct blas_recurrent *op = r->op;
    *low = 0;
    *high = op->out_pad;
    if (!r->barrier)
        return;
    *low = blas_min(r->panel_first * op->panel_units, op->out_pad);
    if (r->panel_last < op->panels)
        *high = blas_min(r->panel_last * op->panel_units, op->out_pad);
}

/* From dh of the projected output computes dh of the cell (dm). Keeps dh^ for the gradient of W_p. */
static void project_back(const struct blas_backward_run *f, int64_t q, int64_t rows)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t width = op->out_pad;
    float *kept = r->saved->dprojected ? r->saved->dprojected + (r->block->q_base + q) * width
                                       : r->scratch.dprojected + (q - f->chunk_low) * width;
    op->kernels->copy(&(struct blas_rows){
        .rows = rows, .n = width, .x = r->scratch.h, .x_row = op->h_row, .y = kept, .y_row = width});
    if (r->saved->new_h) {
        const uint16_t *bits = r->saved->new_h + (r->block->q_base + q) * blas_bits_row(op);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t u = 0; u < width; u++) {
                bool fresh = bits[i * blas_bits_row(op) + u / 16] >> (u % 16) & 1;
                *(fresh ? &r->scratch.h[i * op->h_row + u] : &kept[i * width + u]) = 0.0f;
            }
    }
    for (int64_t n = 0; n < op->units_pad; n += PANEL) {
        int64_t wide = blas_min(PANEL, op->units_pad - n);
        op->kernels->product(&(struct blas_product){.rows = rows,
                                                    .a = kept,
                                                    .a_row = width,
                                                    .k_blocks = 1,
                                                    .k_inner = (int32_t)width,
                                                    .b = r->packed->projection_back + n * width,
                                                    .b_row = wide,
                                                    .groups = (int32_t)(wide / GROUP),
                                                    .c = r->scratch.dm + n,
                                                    .c_row = op->units_pad});
    }
}

/* Runs the LSTM cell on all own panels of row i. With few rows, the panels are computed side by side. */
static void cell_row_back(const struct blas_backward_run *f, float *gates, int64_t stride, int64_t q, int64_t i,
                          const float *dy)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = r->saved;
    const int64_t p = r->panel_first, bits = (r->block->q_base + q + i) * blas_bits_row(op) + p;
    op->kernels->lstm_backward(&(struct blas_cell_backward){
        .cell = &op->cell[r->direction],
        .rows = r->panel_last - p,
        .units = (int32_t)(op->units - p * GROUP),
        .unit_step = GROUP,
        .gates = gates + p * stride + i * PANEL,
        .gates_row = stride,
        .c_saved = saved->state + r->block->q_base * op->units_pad + (p * r->block->q_rows + q + i) * GROUP,
        .saved_row = r->block->q_rows * GROUP,
        .dc = r->scratch.c + (p * r->block->rows + i) * GROUP,
        .c_row = r->block->rows * GROUP,
        .dh = r->scratch.h + i * op->h_row + p * GROUP,
        .dh_row = GROUP,
        .dy = dy ? dy + i * f->dy.row + p * GROUP : NULL,
        .dy_row = GROUP,
        .peephole = r->packed->peephole + p * GROUP,
        .peephole_row = op->units_pad,
        .dpeephole = op->peephole ? f->gradients.peephole + p * GROUP : NULL,
        .dbias = f->gradients.bias + p * PANEL,
        .new_c = saved->new_c ? saved->new_c + bits : NULL,
        .new_h = saved->new_h ? saved->new_h + bits : NULL,
        .bits_row = 1});
}

/* One phase of the LSTM cell with layer norm, on all panels of row i. */
static void norm_row_back(const struct blas_backward_run *f, int phase, float *gates, int64_t stride, int64_t q,
                          int64_t i, const float *dy)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = r->saved;
    const int64_t row = r->block->q_base + q + i, bits = row * blas_bits_row(op), apart = r->block->rows * GROUP;
    struct blas_cell_backward b = {.cell = &op->cell[r->direction],
                                   .rows = op->panels,
                                   .units = (int32_t)op->units,
                                   .unit_step = GROUP,
                                   .gates = gates + i * PANEL,
                                   .gates_row = stride,
                                   .c_saved = saved->state + r->block->q_base * op->units_pad + (q + i) * GROUP,
                                   .saved_row = r->block->q_rows * GROUP,
                                   .dc = r->scratch.c + i * GROUP,
                                   .c_row = apart,
                                   .dh = op->projection ? r->scratch.dm + i * op->units_pad
                                                        : r->scratch.h + i * op->h_row,
                                   .dh_row = GROUP,
                                   .dy = dy ? dy + i * f->dy.row : NULL,
                                   .dy_row = GROUP,
                                   .peephole = r->packed->peephole,
                                   .peephole_row = op->units_pad,
                                   .dpeephole = op->peephole ? f->gradients.peephole : NULL,
                                   .dbias = f->gradients.bias,
                                   .new_c = saved->new_c ? saved->new_c + bits : NULL,
                                   .new_h = saved->new_h && !op->projection ? saved->new_h + bits : NULL,
                                   .bits_row = 1,
                                   .extra = r->scratch.extra + i * GROUP,
                                   .extra_row = apart,
                                   .dq = r->scratch.dq + i * GROUP,
                                   .mean = saved->c_stats + row,
                                   .rstd = saved->c_stats + r->binding->rows + row,
                                   .sums = r->scratch.sums + (phase == 1 ? 2 * GROUP : 2) * i,
                                   .norm_gain = r->packed->gain_c,
                                   .norm_bias = r->packed->bias_c,
                                   .dnorm_gain = f->gradients.norm_c,
                                   .dnorm_bias = f->gradients.norm_c + op->units_pad};
    (phase == 1 ? op->kernels->lstm_norm_backward_1 : op->kernels->lstm_norm_backward_2)(&b);
}

/* Moves all pointers from one panel to the next. `apart`, `saved_apart`: floats from panel to panel of the scratch
 * memory and of the saved state. */
static void move_to_next_panel(struct blas_cell_backward *b, int phase, int64_t units, int64_t stride, int64_t apart,
                               int64_t saved_apart)
{
    b->gates += stride;
    if (b->c_saved)
        b->c_saved += saved_apart;
    b->dc += apart;
    b->dh += units;
    if (b->dy)
        b->dy += GROUP;
    b->peephole += units;
    if (b->dpeephole)
        b->dpeephole += GROUP;
    b->dbias += PANEL;
    if (b->new_c)
        b->new_c++;
    if (b->new_h)
        b->new_h += units / GROUP;
    if (!phase)
        return;
    b->extra += apart;
    b->dq += apart;
    b->norm_gain += GROUP;
    b->norm_bias += GROUP;
    b->dnorm_gain += GROUP;
    b->dnorm_bias += GROUP;
}

/* Runs the cell on all own panels, one after the other. phase: 0 for the whole cell, 1 or 2 for a phase of the LSTM
 * with layer norm. */
static void panels_back(const struct blas_backward_run *f, int phase, float *gates, int64_t stride, int64_t q,
                        int64_t rows, const float *dy)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = r->saved;
    const int64_t q_all = r->block->q_base + q, bits_row = blas_bits_row(op), first = r->panel_first;
    const int64_t units = op->panel_units, apart = r->block->rows * GROUP, saved_apart = r->block->q_rows * GROUP;
    const int64_t state = r->block->q_base * op->units_pad + q * GROUP + first * saved_apart;
    struct blas_cell_backward b = {
        .cell = &op->cell[r->direction],
        .rows = rows,
        .gates = gates + first * stride,
        .gates_row = PANEL,
        .c_saved = saved->state ? saved->state + state : NULL,
        .saved_row = GROUP,
        .dc = r->scratch.c + first * apart,
        .c_row = GROUP,
        .dh = op->projection ? r->scratch.dm + first * GROUP : r->scratch.h + first * units,
        .dh_row = op->projection ? op->units_pad : op->h_row,
        .dy = dy ? dy + first * GROUP : NULL,
        .dy_row = f->dy.row,
        .peephole = r->packed->peephole + first * units,
        .peephole_row = op->units_pad,
        .dpeephole = op->peephole ? f->gradients.peephole + first * GROUP : NULL,
        .dbias = f->gradients.bias + first * PANEL,
        .bits_row = bits_row,
        .new_c = saved->new_c ? saved->new_c + q_all * bits_row + first : NULL,
        .new_h = saved->new_h && !op->projection ? saved->new_h + q_all * bits_row + first * (units / GROUP) : NULL};
    if (phase) {
        b.extra = r->scratch.extra + first * apart;
        b.extra_row = GROUP;
        b.dq = r->scratch.dq + first * apart;
        b.mean = saved->c_stats + q_all;
        b.rstd = saved->c_stats + r->binding->rows + q_all;
        b.sums = r->scratch.sums;
        b.norm_gain = r->packed->gain_c + first * GROUP;
        b.norm_bias = r->packed->bias_c + first * GROUP;
        b.dnorm_gain = f->gradients.norm_c + first * GROUP;
        b.dnorm_bias = f->gradients.norm_c + op->units_pad + first * GROUP;
    }
    for (int64_t p = first; p < r->panel_last; p++) {
        b.units = (int32_t)blas_min(units, op->units - p * units);
        (phase == 1                          ? op->kernels->lstm_norm_backward_1
         : phase == 2                        ? op->kernels->lstm_norm_backward_2
         : op->lstm                          ? op->kernels->lstm_backward
         : op->desc.cell == SEQLSTM_CELL_GRU ? op->kernels->gru_backward
                                             : op->kernels->rnn_backward)(&b);
        move_to_next_panel(&b, phase, units, stride, apart, saved_apart);
    }
}

/* GRU that resets before the product: d(r h~) = dn W_hn, then the reset gate. */
static void reset_back(const struct blas_backward_run *f, float *gates, int64_t stride, int64_t q, int64_t rows)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const float *xh = r->saved->xh + (r->block->q_base + q) * layer->xh_row;
    for (int64_t n = 0; n < op->out_pad; n += PANEL) {
        int64_t wide = blas_min(PANEL, op->out_pad - n);
        op->kernels->product(&(struct blas_product){.rows = rows,
                                                    .a = gates,
                                                    .a_row = PANEL,
                                                    .a_block = stride,
                                                    .k_blocks = op->panels,
                                                    .k_inner = GROUP,
                                                    .b = r->packed->rh_back + n * op->units_pad,
                                                    .b_row = wide,
                                                    .groups = (int32_t)(wide / GROUP),
                                                    .c = r->scratch.extra + n,
                                                    .c_row = op->out_pad});
    }
    for (int64_t p = 0; p < op->panels; p++)
        op->kernels->gru_before_backward_2(
            &(struct blas_cell_backward){.cell = &op->cell[r->direction],
                                         .rows = rows,
                                         .units = (int32_t)blas_min(GROUP, op->units - p * GROUP),
                                         .gates = gates + p * stride,
                                         .dbias = f->gradients.bias + p * PANEL,
                                         .extra = r->scratch.extra + p * GROUP,
                                         .extra_row = op->out_pad,
                                         .h_masked = xh + layer->input_pad + p * GROUP,
                                         .h_masked_row = layer->xh_row});
}

/* Runs the cell of one step on the panels of this member. With norm, gates are in z. `dy`: at the first row of the
 * step, where the cell adds it. */
static void cells_back(const struct blas_backward_run *f, int64_t q, int64_t rows, const float *dy)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = r->saved;
    const int64_t columns = (int64_t)op->panels * PANEL;
    const bool apart = op->norm && !op->norm_keeps;
    const int64_t stride = apart ? r->block->rows * PANEL : r->block->gate_rows * PANEL;
    float *gates =
        apart ? r->scratch.z : (op->norm ? saved->z : saved->gates) + r->block->gate_base * columns + q * PANEL;
    if (op->lstm && !op->norm && !op->projection && rows <= NARROW_ROWS) {
        for (int64_t i = 0; i < rows; i++)
            cell_row_back(f, gates, stride, q, i, dy);
        return;
    }
    int phases = op->norm && op->lstm ? 2 : 1;
    if (phases == 2)
        memset(r->scratch.sums, 0, (size_t)(rows * 2 * GROUP) * sizeof(float));
    for (int phase = 1; phase <= phases; phase++) {
        if (phase == 2)
            op->kernels->fold(2 * rows, r->scratch.sums, 1.0f / (float)op->units, r->scratch.sums);
        const bool narrow = phases == 2 && rows <= NARROW_ROWS;
        for (int64_t i = 0; narrow && i < rows; i++)
            norm_row_back(f, phase, gates, stride, q, i, dy);
        if (!narrow)
            panels_back(f, phases == 2 ? phase : 0, gates, stride, q, rows, dy);
    }
    if (op->gru_before)
        reset_back(f, gates, stride, q, rows);
}

/* Computes the gates of one step again, in z, from their pre-activations, if layer norm does not keep them. */
static void gates_again(const struct blas_backward_run *f, int64_t q, int64_t rows)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    float *state = r->saved->state + r->block->q_base * op->units_pad + q * GROUP;
    for (int64_t p = 0; p < op->panels; p++)
        op->kernels->lstm_norm_forward_1(
            &(struct blas_cell_forward){.cell = &op->cell[r->direction],
                                        .rows = rows,
                                        .units = (int32_t)blas_min(GROUP, op->units - p * GROUP),
                                        .gates = r->scratch.z + p * r->block->rows * PANEL,
                                        .gates_row = PANEL,
                                        .c = state + p * r->block->q_rows * GROUP,
                                        .c_row = GROUP,
                                        .peephole = r->packed->peephole + p * GROUP,
                                        .peephole_row = op->units_pad,
                                        .extra = r->scratch.extra + p * r->block->rows * GROUP,
                                        .extra_row = GROUP});
}

struct blas_norm blas_norm_at(const struct blas_run *r, int64_t q, int64_t rows)
{
    const struct blas_recurrent *op = r->op;
    const int64_t at = r->block->gate_base * op->panels * PANEL + q * PANEL, stride = r->block->gate_rows * PANEL;
    return (struct blas_norm){.rows = rows,
                              .panels = op->panels,
                              .u = r->saved->gates + at,
                              .v = r->saved->gates_h + at,
                              .panel_stride = stride,
                              .v_stride = stride,
                              .z = op->norm_keeps ? r->saved->z + at : r->scratch.z,
                              .z_stride = op->norm_keeps ? stride : r->block->rows * PANEL,
                              .valid_u = r->packed->valid_u,
                              .valid_v = r->packed->valid_v,
                              .gain_u = r->packed->gain_u,
                              .gain_v = r->packed->gain_v,
                              .bias = r->packed->bias,
                              .inverse_count = 1.0f / (float)op->norm_count,
                              .whole = op->norm_count == (int64_t)op->panels * PANEL,
                              .epsilon = op->desc.layer_norm_epsilon,
                              .stats = r->saved->stats + 4 * (r->block->q_base + q)};
}

/* Collects what the next step (and this one's chunk of dW) reads, in this order. `dy`: of the next step, or NULL. */
static void look_ahead(const struct blas_backward_run *f, int64_t q, int64_t q_next, int64_t rows, const float *dy,
                       struct blas_ahead *ahead)
{
    const struct blas_run *r = &f->r;
    const int64_t k_all = (int64_t)r->op->panels * PANEL;
    const int64_t xh_row = r->op->layers[r->layer].xh_row;
    if (dy)
        blas_ahead_add(ahead, dy, rows * f->dy.row);
    for (int64_t p = r->panel_first; p < r->panel_last; p++) {
        const int64_t at = r->block->gate_base * k_all + (p * r->block->gate_rows + q_next) * PANEL;
        if (r->op->norm_keeps)
            blas_ahead_add(ahead, r->saved->z + at, rows * PANEL);
        if (r->saved->state)
            blas_ahead_add(
                ahead, r->saved->state + r->block->q_base * r->op->units_pad + (p * r->block->q_rows + q_next) * GROUP,
                rows * GROUP);
    }
    for (int64_t p = r->panel_first; p < r->panel_last; p++) {
        const int64_t at = r->block->gate_base * k_all + (p * r->block->gate_rows + q_next) * PANEL;
        blas_ahead_add(ahead, r->saved->gates + at, rows * PANEL);
        if (r->op->norm)
            blas_ahead_add(ahead, r->saved->gates_h + at, rows * PANEL);
    }
    if (!r->op->weights_large) /* its chunks are larger than the caches */
        blas_ahead_add(ahead, r->saved->xh + (r->block->q_base + q) * xh_row, rows * xh_row);
}

/* Packed weights for a product in backward, whose columns [low, high) are wanted. */
struct back_weights {
    const float *b;
    int64_t width, low, high;
    bool backward; /* take the last panel of columns first */
};

/* Multiplies by blocks of k, beginning with row k of the weights, `skip` rows apart. */
static void back_columns(const struct blas_recurrent *op, const struct back_weights *w, int64_t k, int64_t skip,
                         struct blas_product *p)
{
    const int64_t k_all = (int64_t)op->panels * PANEL;
    const int64_t count = w->high > w->low ? (w->high - 1) / PANEL - w->low / PANEL + 1 : 0;
    const int32_t tiles = (int32_t)((p->rows + 5) / 6);
    float *const c = p->c;
    for (int64_t i = 0; i < count; i++) {
        const int64_t panel = (w->backward ? (w->high - 1) / PANEL - i : w->low / PANEL + i) * PANEL;
        const int64_t n = panel < w->low ? w->low : panel, wide = blas_min(PANEL, w->width - panel);
        const int64_t end = blas_min(panel + wide, w->high), next = w->backward ? panel - PANEL : panel + PANEL;
        const int64_t row = op->strips ? GROUP : wide;
        const int64_t next_row = op->strips ? GROUP : blas_min(PANEL, w->width - next);
        const bool fetches = op->weights_large && i + 1 < count;
        p->b = w->b + panel * k_all + k * row + (n - panel) * (op->strips ? k_all : 1);
        p->b_row = row;
        p->b_skip = skip * row;
        p->b_strip = op->strips ? k_all * GROUP : 0;
        p->groups = (int32_t)((end - n) / GROUP);
        p->c = c + n;
        p->next = fetches ? w->b + next * k_all + k * next_row : NULL;
        op->kernels->product(p);
        if (fetches) /* and leaves the places of p->ahead */
            continue;
        const int32_t used = (int32_t)blas_min(p->ahead_count, (int64_t)tiles * p->k_blocks);
        p->ahead += used;
        p->ahead_count -= used;
    }
    p->c = c;
    p->accumulate = true;
}

/* k of each group of the last panel, if skipping the padding of the others is worth a pass of its own; otherwise 0. */
static int32_t short_panel_k(const struct blas_recurrent *op)
{
    const int32_t k = blas_product_k(op->units - (op->panels - 1) * (int64_t)op->panel_units);
    return op->panel_units == GROUP && op->panels > 1 && !op->weights_large && k <= GROUP / 2 ? k : 0;
}

/* The panels that are multiplied as a whole. */
static int32_t whole_panels(const struct blas_recurrent *op)
{
    return op->panels - (short_panel_k(op) > 0);
}

void blas_product_back(const struct blas_recurrent *op, struct blas_product *p, struct blas_groups groups,
                       const float *b, int64_t width, int64_t low, int64_t high, int32_t together)
{
    const int64_t k_first = groups.first * GROUP;
    const int32_t short_k = short_panel_k(op), panels = whole_panels(op);
    /* Every other step runs its panels in reverse order, to reuse what is still in the caches. */
    const struct back_weights w = {b, width, low, high, op->weights_large && p->descending};
    const float *a = p->a + k_first;
    p->k_inner = (groups.end - groups.first) * GROUP;
    if (!op->weights_large || together > panels)
        together = panels;
    for (int32_t first = 0; first < panels; first += together) {
        p->k_blocks = panels - first < together ? panels - first : together;
        p->a = a + first * p->a_block;
        back_columns(op, &w, first * PANEL + k_first, PANEL - p->k_inner, p);
    }
    if (short_k == 0)
        return;
    p->a = a + panels * p->a_block;
    p->a_block = GROUP;
    p->k_blocks = groups.end - groups.first;
    p->k_inner = short_k;
    p->ahead_count = 0;
    back_columns(op, &w, panels * PANEL + k_first, GROUP - short_k, p);
}

/* dh of the step before: gate gradients times W_h, own columns. */
static void recur_back(const struct blas_backward_run *f, int64_t t, int64_t t_next)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t stride = r->block->gate_rows * PANEL, k_all = (int64_t)op->panels * PANEL;
    const int64_t q = r->block->q_of[t], rows = blas_block_rows(r->block, t);
    const float *gates = (op->norm ? r->saved->gates_h : r->saved->gates) + r->block->gate_base * k_all + q * PANEL;
    bool masked = r->scratch.mask_h != NULL;
    float *to = op->gru_before ? r->scratch.extra : masked ? r->scratch.projected : r->scratch.h;
    const int64_t to_row = op->gru_before ? op->out_pad : op->h_row;
    int64_t low, high;
    blas_own_columns(r, &low, &high);
    struct blas_ahead ahead;
    blas_ahead_init(&ahead);
    /* The weights of a large layer would evict the prefetched data, except during the last panel. A second-level
     * cache of less than 1 MiB, where kernels use strips, is too small even then. */
    if (rows > 8 && !(op->weights_large && op->strips) && !op->tiled_steps) {
        look_ahead(f, q, r->block->q_of[t_next], rows,
                   f->dy.base ? f->dy.base + blas_packed_row(r->binding, r->block, t_next) * f->dy.row : NULL, &ahead);
        blas_ahead_cut(&ahead,
                       (rows + 5) / 6 * whole_panels(op) * (op->weights_large ? 1 : (high - low + PANEL - 1) / PANEL),
                       (op->groups_h.end - op->groups_h.first) * GROUP);
    }
    struct blas_product product = {.ahead = ahead.places,
                                   .ahead_count = ahead.count,
                                   .ahead_rate = ahead.rate,
                                   .rows = rows,
                                   .a = gates,
                                   .a_row = PANEL,
                                   .a_block = stride,
                                   .c = to,
                                   .c_row = to_row,
                                   .descending = (r->binding->t0 + t) & 1,
                                   .accumulate = op->gru_before || (!masked && op->has_carry)};
    if (op->tiled_steps)
        blas_tiles_back(r, &product, r->packed->h_back, op->out_pad, low, high);
    else
        blas_product_back(op, &product, op->groups_h, r->packed->h_back, op->out_pad, low, high,
                          rows > 48 ? 16 : op->panels);
    if (to == r->scratch.h)
        return;
    struct blas_rows join = {.rows = rows,
                             .n = high - low,
                             .x = to + low,
                             .x_row = to_row,
                             .m = masked ? r->scratch.mask_h + low : NULL,
                             .m_row = op->out_pad,
                             .y = r->scratch.h + low,
                             .y_row = op->h_row};
    if (op->has_carry)
        op->kernels->add(&join);
    else
        op->kernels->copy(&join);
}

void blas_step_back(struct blas_backward_run *f, int64_t t, int64_t t_next)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t q = r->block->q_of[t], rows = blas_block_rows(r->block, t);
    const float *dy = f->dy.base ? f->dy.base + blas_packed_row(r->binding, r->block, t) * f->dy.row : NULL;
    bool in_cell = op->lstm && !op->projection;
    if (dy && !in_cell) {
        int64_t low, high;
        blas_own_columns(r, &low, &high);
        int64_t n = blas_min(high, op->out) - low;
        if (n > 0)
            op->kernels->add(&(struct blas_rows){
                .rows = rows, .n = n, .x = dy + low, .x_row = f->dy.row, .y = r->scratch.h + low, .y_row = op->h_row});
    }
    if (op->projection)
        project_back(f, q, rows);
    struct blas_norm norm;
    if (op->norm) {
        norm = blas_norm_at(r, q, rows);
        norm.dgain_u = f->gradients.norm_u;
        norm.dgain_v = f->gradients.norm_v;
        if (!op->norm_keeps)
            op->kernels->norm_restore(&norm);
        if (!op->norm_keeps && op->cell[r->direction].keeps_gates)
            gates_again(f, q, rows);
    }
    cells_back(f, q, rows, in_cell ? dy : NULL);
    if (op->norm)
        op->kernels->norm_backward(&norm);
    blas_run_barrier(r);
    recur_back(f, t, t_next);
}
