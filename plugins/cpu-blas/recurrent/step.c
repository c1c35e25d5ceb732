/* SPDX-License-Identifier: Apache-2.0 */
/* One step forward: multiplies [x~ | h~] by the packed weights, panel by panel, and runs the cell. step_norm.c has
 * cells with layer norm. */
#include "cpu-blas/recurrent/step.h"

#include "cpu-blas/recurrent/ahead.h"
#include "cpu-blas/recurrent/tiles.h"

static int64_t chunk_of(const struct blas_forward_run *f, int64_t s)
{
    return s / f->chunk_steps;
}

int64_t blas_chunk_q(const struct blas_forward_run *f, int64_t s, int64_t *out_rows)
{
    const struct blas_block *block = f->r.block;
    int64_t first = chunk_of(f, s) * f->chunk_steps;
    int64_t last = blas_min(first + f->chunk_steps, f->r.binding->steps) - 1;
    int64_t low = f->r.reverse ? blas_step_at(&f->r, last) : first;
    int64_t high = f->r.reverse ? blas_step_at(&f->r, first) : last;
    *out_rows = block->q_of[high + 1] - block->q_of[low];
    return block->q_of[low];
}

float *blas_xh_at(const struct blas_forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    int64_t row = r->op->layers[r->layer].xh_row, q = r->block->q_of[blas_step_at(r, s)], rows;
    if (r->op->training)
        return r->saved->xh + (r->block->q_base + q) * row;
    q -= blas_chunk_q(f, s, &rows);
    int64_t parity = chunk_of(f, s) & 1;
    return r->scratch.xh + (parity * (int64_t)f->r.binding->chunk_rows + q) * row;
}

float *blas_gates_at(const struct blas_forward_run *f, int64_t s, int64_t *out_panel_stride)
{
    const struct blas_run *r = &f->r;
    const int64_t columns = (int64_t)r->op->panels * PANEL;
    int64_t q = r->block->q_of[blas_step_at(r, s)], rows;
    if (r->op->training) {
        *out_panel_stride = r->block->gate_rows * PANEL;
        return r->saved->gates + r->block->gate_base * columns + q * PANEL;
    }
    q -= blas_chunk_q(f, s, &rows);
    *out_panel_stride = rows * PANEL;
    return r->scratch.gates + q * PANEL;
}

static void step_bits(const struct blas_run *r, int64_t t, int64_t steps, uint32_t purpose, float rate, int64_t width,
                      uint16_t *bits)
{
    const struct seqlstm_axis *axis = r->binding->axis;
    uint64_t key = blas_mask_key(r->op, r->step, r->layer, r->direction, purpose);
    r->op->kernels->keep_bits(&(struct blas_keep){.key = key,
                                                  .steps = steps,
                                                  .rows = blas_block_rows(r->block, t),
                                                  .sequence = axis->sequence_id + r->block->first,
                                                  .position0 = axis->position0 + r->block->first,
                                                  .step = (uint32_t)(r->binding->t0 + t),
                                                  .elements = width,
                                                  .rate = rate,
                                                  .bits = bits,
                                                  .bits_row = blas_bits_row(r->op)});
}

void blas_zoneout_bits(const struct blas_run *r, int64_t t, int64_t steps)
{
    const struct blas_recurrent *op = r->op;
    const int64_t at = (r->block->q_base + r->block->q_of[t]) * blas_bits_row(op);
    if (r->saved->new_c)
        step_bits(r, t, steps, SEQLSTM_MASK_ZONEOUT_CELL, op->desc.zoneout_cell, op->units, r->saved->new_c + at);
    if (r->saved->new_h)
        step_bits(r, t, steps, SEQLSTM_MASK_ZONEOUT_HIDDEN, op->desc.zoneout_hidden, op->out, r->saved->new_h + at);
}

/* The projection, and zoneout after it: raw -> h. */
static void project(const struct blas_forward_run *f, const float *raw, int64_t rows, const uint16_t *new_h)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    float rate = seqlstm_mask_rate(op->desc.zoneout_hidden), *out = rate > 0.0f ? r->scratch.projected : r->scratch.h;
    for (int64_t n = 0; n < op->out_pad; n += PANEL) {
        int64_t wide = blas_min(PANEL, op->out_pad - n);
        op->kernels->product(&(struct blas_product){.rows = rows,
                                                    .a = raw,
                                                    .a_row = op->units_pad,
                                                    .k_blocks = 1,
                                                    .k_inner = blas_product_k(op->units),
                                                    .b = r->packed->projection + n * op->units_pad,
                                                    .b_row = wide,
                                                    .groups = (int32_t)(wide / GROUP),
                                                    .c = out + n,
                                                    .c_row = op->h_row});
    }
    if (!(rate > 0.0f))
        return;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t u = 0; u < op->out; u++) {
            float *h = r->scratch.h + i * op->h_row + u, now = out[i * op->h_row + u];
            if (!op->training)
                *h = rate * *h + (1.0f - rate) * now;
            else if (new_h[i * blas_bits_row(op) + u / 16] >> (u % 16) & 1)
                *h = now;
        }
}

/* r h~ and its product, for a GRU whose reset comes before. */
static void reset_product(const struct blas_forward_run *f, float *gates, int64_t panel_stride, const float *xh,
                          float *rh, int64_t rows)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    for (int64_t p = 0; p < op->panels; p++)
        op->kernels->gru_before_forward_1(
            &(struct blas_cell_forward){.cell = &op->cell[r->direction],
                                        .rows = rows,
                                        .units = (int32_t)blas_min(GROUP, op->units - p * GROUP),
                                        .gates = gates + p * panel_stride,
                                        .extra = rh + p * GROUP,
                                        .extra_row = op->out_pad,
                                        .h_masked = xh + op->layers[r->layer].input_pad + p * GROUP,
                                        .h_masked_row = op->layers[r->layer].xh_row});
    for (int64_t n = 0; n < op->units_pad; n += PANEL) {
        int64_t wide = blas_min(PANEL, op->units_pad - n);
        op->kernels->product(&(struct blas_product){.rows = rows,
                                                    .a = rh,
                                                    .a_row = op->out_pad,
                                                    .k_blocks = 1,
                                                    .k_inner = blas_product_k(op->out),
                                                    .b = r->packed->rh + n * op->out_pad,
                                                    .b_row = wide,
                                                    .groups = (int32_t)(wide / GROUP),
                                                    .c = r->scratch.product + n,
                                                    .c_row = op->units_pad});
    }
}

float *blas_h_target(const struct blas_forward_run *f, int64_t s, int64_t *out_row)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    *out_row = op->h_row;
    if (!op->lstm || op->projection || r->scratch.mask_h || op->desc.zoneout_hidden > 0.0f ||
        s + 1 == r->binding->steps ||
        blas_block_rows(r->block, blas_step_at(r, s)) != blas_block_rows(r->block, blas_step_at(r, s + 1)))
        return r->scratch.h;
    *out_row = op->layers[r->layer].xh_row;
    return blas_xh_at(f, s + 1) + op->layers[r->layer].input_pad;
}

/* Runs the cell on one panel. */
static void cell_panel(const struct blas_forward_run *f, const struct blas_step *step, int64_t p)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    struct blas_cell_forward cell = step->cell;
    cell.gates += p * step->stride;
    if (step->kept >= 0)
        cell.gates_out = r->saved->gates + step->kept + p * r->block->gate_rows * PANEL;
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
    (op->lstm                            ? op->kernels->lstm_forward
     : op->desc.cell == SEQLSTM_CELL_GRU ? op->kernels->gru_forward
                                         : op->kernels->rnn_forward)(&cell);
}

/* Runs the LSTM cell on all own panels of one row. With few rows, the panels are computed side by side. */
static void cell_row(const struct blas_forward_run *f, const struct blas_step *step, int64_t i)
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

/* Collects what the rest of this step and the next one, with as many rows, read and write, except gates. */
static void look_ahead(const struct blas_forward_run *f, const struct blas_step *step, struct blas_ahead *ahead)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    if (step->s + 1 < r->binding->steps) {
        const int64_t t = blas_step_at(r, step->s + 1);
        blas_ahead_add(ahead, blas_xh_at(f, step->s + 1), step->rows * op->layers[r->layer].xh_row);
        blas_ahead_add(ahead, f->x.base + blas_packed_row(r->binding, r->block, t) * f->x.row, step->rows * f->x.row);
        for (int64_t p = r->panel_first; step->cell.c_saved && p < r->panel_last; p++)
            blas_ahead_add(ahead,
                           r->saved->state + r->block->q_base * op->units_pad +
                               (p * r->block->q_rows + r->block->q_of[t]) * GROUP,
                           step->rows * GROUP);
        int64_t stride;
        const float *gates =
            blas_gates_at(f, step->s + 1, &stride); /* products on vectors prefetch theirs themselves */
        for (int64_t p = r->panel_first; op->tiled_steps && op->training && step->kept < 0 && p < r->panel_last; p++) {
            const int64_t at = gates + p * stride - r->saved->gates;
            blas_ahead_add(ahead, r->saved->gates + at, step->rows * PANEL);
            if (op->norm)
                blas_ahead_add(ahead, r->saved->gates_h + at, step->rows * PANEL);
            if (op->norm_keeps)
                blas_ahead_add(ahead, r->saved->z + at, step->rows * PANEL);
        }
    }
    if (f->y.base)
        blas_ahead_add(ahead, f->y.base + blas_packed_row(r->binding, r->block, step->t) * f->y.row,
                       step->rows * f->y.row);
}

/* Runs one product, which prefetches its share of what comes later. */
static void product_ahead(const struct blas_recurrent *op, struct blas_product *product)
{
    op->kernels->product(product);
    const int32_t used = (int32_t)blas_min(product->ahead_count, (product->rows + 5) / 6);
    product->ahead += used;
    product->ahead_count -= used;
}

/* k of the product with x~, h~ or both. h~ comes after the padding of x~. */
static int32_t part_k(const struct blas_recurrent *op, const struct blas_recurrent_layer *layer, unsigned parts)
{
    if (!(parts & BLAS_PART_H))
        return blas_product_k(layer->input);
    return (int32_t)(parts & BLAS_PART_X ? layer->input_pad : 0) + blas_product_k(op->out);
}

/* Multiplies the columns of a panel by x~, h~ or both (`parts`). Rows, prefetching and initial sums are as `product`
 * says; `panel` is the first column of C of the panel. */
static void panel_product(const struct blas_forward_run *f, const struct blas_step *step, int64_t p, unsigned parts,
                          struct blas_groups groups, float *panel, struct blas_product *product)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t x_floats = blas_x_floats(op, layer->input_pad), panel_floats = x_floats + blas_h_floats(op);
    const int64_t column = groups.first * GROUP;
    if (groups.first >= groups.end)
        return;
    const float *weights = r->packed->forward + p * panel_floats;
    product->a = blas_xh_at(f, step->s);
    product->a_row = layer->xh_row;
    product->k_blocks = 1;
    product->k_inner = part_k(op, layer, parts);
    if (!(parts & BLAS_PART_X)) {
        product->a += layer->input_pad;
        weights += op->strips ? layer->input_pad * GROUP : x_floats;
    }
    product->b_row = op->strips ? GROUP : PANEL;
    product->b_strip = blas_strip_floats(op, layer->input_pad);
    product->b = weights + (op->strips ? groups.first * product->b_strip : column);
    product->groups = groups.end - groups.first;
    product->c = panel + column;
    product->c_row = PANEL;
    const int64_t next = step->s & 1 ? p - 1 : p + 1;
    const bool fetches = op->weights_large && next >= r->panel_first && next < r->panel_last;
    product->next = fetches ? product->b + (next - p) * panel_floats : NULL;
    product_ahead(op, product);
}

/* The products of a panel without layer norm. Sums begin with the bias or, where the products with x are already
 * there, with those. */
static void panel_sums(const struct blas_forward_run *f, const struct blas_step *step, int64_t p,
                       struct blas_product *product)
{
    const struct blas_run *r = &f->r;
    const struct blas_groups x = r->op->groups_x, h = r->op->groups_h, both = {h.first, x.end};
    const float *bias = r->packed->bias + p * PANEL;
    float *panel = step->gates + p * step->stride;
    const bool fused = r->binding->fused;
    product->init = bias + x.first * GROUP;
    if (fused)
        panel_product(f, step, p, BLAS_PART_X, (struct blas_groups){x.first, h.first}, panel, product);
    product->init = fused ? bias + both.first * GROUP : NULL;
    product->accumulate = !fused;
    panel_product(f, step, p, fused ? BLAS_PART_X | BLAS_PART_H : BLAS_PART_H, both, panel, product);
    product->init = bias + x.end * GROUP;
    product->accumulate = false;
    panel_product(f, step, p, BLAS_PART_H, (struct blas_groups){x.end, h.end}, panel, product);
}

/* Fetches h~ of one sequence: other members have just written most of it. */
static void fetch_h(const struct blas_forward_run *f, const struct blas_step *step)
{
    const struct blas_recurrent *op = f->r.op;
    const float *h = blas_xh_at(f, step->s) + op->layers[f->r.layer].input_pad;
    for (int64_t k = 0; f->r.barrier && step->rows == 1 && k < op->out_pad; k += GROUP)
        __builtin_prefetch(h + k);
}

/* Multiplies all own panels, and runs the cell after each one if it needs no other panel. */
static void step_panels(const struct blas_forward_run *f, const struct blas_step *step)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t count = r->panel_last - r->panel_first;
    /* Every other step runs its panels in reverse order, to reuse what is still in the caches. */
    const int64_t way = step->s & 1 ? -1 : 1;
    const bool narrow = op->lstm && !op->norm && step->rows <= NARROW_ROWS;
    int64_t p = way > 0 ? r->panel_first : r->panel_last - 1;
    struct blas_ahead ahead;
    fetch_h(f, step);
    blas_ahead_init(&ahead);
    if (r->binding->fused && step->rows > 8) {
        look_ahead(f, step, &ahead);
        blas_ahead_cut(&ahead, (step->rows + 5) / 6 * count * (op->norm ? 2 : 1),
                       op->norm ? blas_min(part_k(op, layer, BLAS_PART_X), part_k(op, layer, BLAS_PART_H))
                                : part_k(op, layer, BLAS_PART_X | BLAS_PART_H));
    }
    struct blas_product product = {
        .ahead = ahead.places, .ahead_count = ahead.count, .ahead_rate = ahead.rate, .rows = step->rows};
    for (int64_t i = 0; i < count; i++, p += way) {
        if (op->norm && r->binding->fused)
            panel_product(f, step, p, BLAS_PART_X, op->groups_x, step->gates + p * step->stride, &product);
        if (op->norm)
            panel_product(f, step, p, BLAS_PART_H, op->groups_h, step->gates_h + p * step->h_stride, &product);
        else
            panel_sums(f, step, p, &product);
        if (!narrow && !op->norm && !op->gru_before)
            cell_panel(f, step, p);
    }
    for (int64_t i = 0; narrow && i < step->rows; i++)
        cell_row(f, step, i);
}

/* Lets a product over k blocks prefetch from `ahead`, of which `used` places are done; returns the number then done. */
static int64_t fetch_ahead(struct blas_product *product, const struct blas_ahead *ahead, int64_t used, int64_t k)
{
    product->ahead = ahead->places + used;
    product->ahead_count = ahead->count - (int32_t)used;
    product->ahead_rate = ahead->rate;
    return blas_min(ahead->count, used + blas_tile_slots(product->rows, PANEL / GROUP, k));
}

/* The same on tiles. */
static void step_on_tiles(const struct blas_forward_run *f, const struct blas_step *step)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const bool narrow = op->lstm && !op->norm && step->rows <= NARROW_ROWS;
    const unsigned split = r->binding->fused ? BLAS_PART_X | BLAS_PART_H : BLAS_PART_H;
    const unsigned inside = op->norm ? BLAS_PART_H : split;
    const int64_t way = step->s & 1 ? -1 : 1; /* see step_panels */
    int64_t p = way > 0 ? r->panel_first : r->panel_last - 1;
    const int64_t x_blocks = r->binding->fused ? blas_tiles_blocks(op, op->layers[r->layer].input_pad) : 0;
    const int64_t k = x_blocks + blas_tiles_blocks(op, op->out_pad);
    struct blas_ahead ahead;
    blas_ahead_init(&ahead);
    if (r->binding->fused && blas_leaves_cache(r)) {
        const int64_t slots = blas_tile_slots(step->rows, PANEL / GROUP, k);
        look_ahead(f, step, &ahead);
        blas_ahead_spread(&ahead, slots * (r->panel_last - r->panel_first), k);
    }
    blas_tiles_split(r, blas_xh_at(f, step->s), step->rows, split);
    int64_t used = 0;
    for (int64_t i = r->panel_first; i < r->panel_last; i++, p += way) {
        struct blas_product product = {.rows = step->rows, .c_row = PANEL, .c = step->gates + p * step->stride};
        if (op->norm && r->binding->fused) {
            used = fetch_ahead(&product, &ahead, used, x_blocks);
            blas_tiles_forward(r, &product, p, split, BLAS_PART_X);
        }
        used = fetch_ahead(&product, &ahead, used, op->norm ? k - x_blocks : k);
        if (op->norm)
            product.c = step->gates_h + p * step->h_stride;
        else if (r->binding->fused)
            product.init = r->packed->bias + p * PANEL;
        else
            product.accumulate = true;
        blas_tiles_forward(r, &product, p, split, inside);
        if (!narrow && !op->norm)
            cell_panel(f, step, p);
    }
    for (int64_t i = 0; narrow && i < step->rows; i++)
        cell_row(f, step, i);
}

/* Where the gates of a step and their part from h lie. */
static void find_gates(const struct blas_forward_run *f, struct blas_step *step)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = op->training ? r->saved : NULL;
    step->gates = blas_gates_at(f, step->s, &step->stride);
    step->gates_h = r->scratch.gates_h;
    step->h_stride = r->block->rows * PANEL;
    if (op->norm && saved) {
        step->gates_h = saved->gates_h + r->block->gate_base * op->panels * PANEL + step->q * PANEL;
        step->h_stride = step->stride;
    }
    step->kept = -1;
    if (r->binding->puts && step->rows > NARROW_ROWS) {
        step->kept = step->gates - saved->gates;
        step->gates = r->scratch.gates;
        step->gates_h = r->scratch.gates_h;
        step->stride = step->h_stride = op->norm ? r->block->rows * PANEL : 0;
    }
}

static void make_cell(const struct blas_forward_run *f, struct blas_step *step)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = op->training ? r->saved : NULL;
    int64_t h_row;
    float *h = blas_h_target(f, step->s, &h_row);
    step->cell = (struct blas_cell_forward){.cell = &op->cell[r->direction],
                                            .rows = step->rows,
                                            .gates = step->gates,
                                            .gates_row = PANEL,
                                            .c = r->scratch.c,
                                            .c_row = GROUP,
                                            .saved_row = GROUP,
                                            .h = step->raw ? step->raw : h,
                                            .h_row = step->raw ? op->units_pad : h_row,
                                            .peephole = r->packed->peephole,
                                            .peephole_row = op->units_pad,
                                            .new_c = step->new_c,
                                            .new_h = step->raw ? NULL : step->new_h,
                                            .bits_row = blas_bits_row(op)};
    if (saved && saved->state)
        step->cell.c_saved = saved->state + r->block->q_base * op->units_pad + step->q * GROUP;
}

void blas_step_run(const struct blas_forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_saved *saved = op->training ? r->saved : NULL;
    struct blas_step step = {.s = s, .t = blas_step_at(r, s)};
    step.rows = blas_block_rows(r->block, step.t);
    step.q = r->block->q_of[step.t];
    step.q_all = r->block->q_base + step.q;
    find_gates(f, &step);
    if (saved && saved->new_c)
        step.new_c = saved->new_c + step.q_all * blas_bits_row(op);
    if (saved && saved->new_h)
        step.new_h = saved->new_h + step.q_all * blas_bits_row(op);
    if (step.new_c || step.new_h)
        blas_zoneout_bits(r, step.t, 1);
    if (op->projection)
        step.raw = saved ? saved->raw + step.q_all * op->units_pad : r->scratch.raw;
    make_cell(f, &step);
    if (op->tiled_steps)
        step_on_tiles(f, &step);
    else
        step_panels(f, &step);
    if (op->gru_before) {
        reset_product(f, step.gates, step.stride, blas_xh_at(f, s),
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
        blas_step_norm(f, &step, saved ? saved->stats + 4 * step.q_all : r->scratch.stats, c_mean, c_rstd);
    }
    if (step.raw)
        project(f, step.raw, step.rows, step.new_h);
}
