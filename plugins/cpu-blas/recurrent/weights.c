/* SPDX-License-Identifier: Apache-2.0 */
/* Weight gradients: sums of outer products over the rows of a chunk of steps, while the gate gradients of the chunk
 * are still in the second-level cache. On tiles (tiles.h) if the operation uses them. */
#include "cpu-blas/recurrent/tiles.h"
#include "cpu-blas/recurrent/run.h"

/* Strips of 64 columns each of a chunk of x~h~. The first is at `base`, the next one `step` floats on. Rows are
 * `row` floats apart, groups of 16 columns `strip` floats (0: 16). */
struct strips {
    const float *base;
    int64_t row, step, strip;
};

/* Gets columns [column, column + width) of rows q in [low, high). If each row lies on a page of its own, the columns
 * are copied first, so that the rows of a strip are contiguous: the sums pass over them many times, and the TLB has
 * few entries. Members that share the block share the copy. */
static struct strips strips_get(const struct blas_backward_run *f, int64_t low, int64_t high, int64_t column,
                                int64_t width)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent_layer *layer = &r->op->layers[r->layer];
    const float *xh = r->saved->xh + (r->block->q_base + low) * layer->xh_row + column;
    const int64_t rows = high - low;
    if (!blas_copies_strips(r->op, layer))
        return (struct strips){xh, layer->xh_row, PANEL, 0};
    const int64_t wide = r->op->kernels->strips ? GROUP : PANEL;
    int64_t first, last;
    blas_share((width + PANEL - 1) / PANEL, r->member, r->members, &first, &last);
    blas_run_barrier(r); /* until no member reads the earlier strips */
    for (int64_t n = first * PANEL; n < blas_min(last * PANEL, width); n += wide)
        r->op->kernels->copy(&(struct blas_rows){.rows = rows,
                                                 .n = blas_min(wide, width - n),
                                                 .x = xh + n,
                                                 .x_row = layer->xh_row,
                                                 .y = r->scratch.strips + n * rows,
                                                 .y_row = wide});
    blas_run_barrier(r);
    return (struct strips){r->scratch.strips, wide, rows * PANEL, wide == GROUP ? rows * GROUP : 0};
}

/* The panels of gates that weight gradients use together. Where strips of 16 columns are copied into tiles, it is
 * one panel, whose gradients lie on few pages. Otherwise it is so many that they stay in the second-level cache,
 * with room for the panels that follow. Each strip is then read once for all of them. */
static int64_t panels_together(const struct blas_run *r, int64_t rows)
{
    if (r->op->kernels->strips && blas_copies_strips(r->op, &r->op->layers[r->layer]))
        return 1;
    int64_t count = 384 * 1024 / (rows * PANEL * (int64_t)sizeof(float));
    return count < 1 ? 1 : count;
}

/* One part of the sums: gates of q in [low, high), times columns [column, column + width) of x~h~. */
struct outer_part {
    int64_t low, high, column, width;
    struct blas_groups groups; /* wanted in each panel */
    const float *gates;        /* at the block's first panel and row */
    float *c;                  /* at the first column of the first panel, and the first row of a panel */
    int64_t c_panel, c_row, c_group;
    bool direct; /* C has no padding */
    bool accumulate;
};

/* The sums of panels [first, last) with all strips. */
struct outer_group {
    const float *a; /* panel 0, or the only one */
    int64_t a_panel, first, last;
    int64_t following; /* panels of the next group */
    bool tiled;        /* a is in tiles, and b in strips of 16 columns */
    bool back;         /* goes from the last strip to the first, which is still in the cache from the group before */
};

/* The panel of the next group that is prefetched during the sums of panel p, after which `left` strips remain; or
 * NULL. During those of a group's first panel, its strips are prefetched. */
static const float *panel_beside(const struct outer_group *group, const struct strips *strips, int64_t p, int64_t left)
{
    const int64_t panel = group->last - 1 - p + left * (group->last - group->first - 1);
    if (group->tiled || p == group->first || panel >= group->following || strips->row != PANEL)
        return NULL;
    return group->a + (group->last + panel) * group->a_panel;
}

static void group_run(const struct blas_recurrent *op, const struct outer_part *part, const struct strips *strips,
                      const struct outer_group *group)
{
    const int32_t m_first = part->groups.first * GROUP;
    const int64_t step = group->back ? -strips->step : strips->step;
    for (int64_t left = (part->width + PANEL - 1) / PANEL - 1, i = 0; left >= 0; left--, i++) {
        const int64_t strip = group->back ? left : i, n = strip * PANEL;
        const int64_t wanted = blas_min(PANEL, part->width - n), columns = blas_round(wanted, GROUP);
        const float *b = strips->base + strip * strips->step;
        for (int64_t p = group->first; p < group->last; p++)
            op->kernels->outer(&(struct blas_outer){
                .rows = part->high - part->low,
                .a = group->a + p * group->a_panel,
                .a_row = PANEL,
                .a_tiled = group->tiled,
                .m_count = part->groups.end * GROUP - m_first,
                .b = b,
                .b_row = strips->row,
                .b_strip = strips->strip,
                .groups = (int32_t)(columns / GROUP),
                .n_skip = part->direct ? (int32_t)(columns - wanted) : 0,
                .c = part->c + p * part->c_panel + m_first * part->c_row + n,
                .c_row = part->c_row,
                .c_group = part->c_group,
                .m_skip = part->direct ? (int32_t)(GROUP - blas_min(GROUP, op->units - p * GROUP)) : 0,
                .accumulate = part->accumulate,
                .next = p + 1 < group->last || left == 0 ? NULL : b + step,
                .beside = panel_beside(group, strips, p, left)});
    }
}

/* Runs one product of own panels and strips. */
static void part_run(const struct blas_backward_run *f, const struct outer_part *part)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t rows = part->high - part->low, together = panels_together(r, rows);
    const struct strips strips = strips_get(f, part->low, part->high, part->column, blas_round(part->width, GROUP));
    const int64_t a_panel = r->block->gate_rows * PANEL;
    const float *a = part->gates + part->low * PANEL + part->groups.first * GROUP;
    const bool tiled = strips.strip > 0; /* then each panel is alone */
    float *const tiles = tiled ? r->scratch.gate_tiles + r->member * rows * PANEL : NULL;
    bool back = false;
    for (int64_t first = r->panel_first, last; first < r->panel_last; first = last, back = !back) {
        last = blas_min(first + together, r->panel_last);
        if (tiled)
            op->kernels->outer_tile_a(&(struct blas_outer){.rows = rows,
                                                           .a = a + first * a_panel,
                                                           .a_row = PANEL,
                                                           .m_count = (part->groups.end - part->groups.first) * GROUP},
                                      tiles);
        group_run(op, part, &strips,
                  &(struct outer_group){.a = tiled ? tiles : a,
                                        .a_panel = tiled ? 0 : a_panel,
                                        .first = first,
                                        .last = last,
                                        .following = blas_min(together, r->panel_last - last),
                                        .tiled = tiled,
                                        .back = back});
    }
}

/* dW (+)= gates' x~h~ over q in [low, high), directly into the canonical gradients, where 16 rows of each gate are
 * contiguous. */
static void chunk_weights_direct(const struct blas_backward_run *f, int64_t low, int64_t high)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int32_t ld = op->layer_count * op->directions;
    const int64_t gates = r->block->gate_base * op->panels * PANEL;
    for (int part = 0; part < 2; part++) {
        float *dw = f->grads[SEQLSTM_SLOT_RECURRENT_PARAM(ld, r->n, part == 0 ? SEQLSTM_PARAM_W_X : SEQLSTM_PARAM_W_H)];
        const int64_t width = part == 0 ? layer->input : op->out;
        if (dw)
            part_run(
                f, &(struct outer_part){.low = low,
                                        .high = high,
                                        .column = part == 0 ? 0 : layer->input_pad,
                                        .width = width,
                                        .groups = part == 0 ? op->groups_x : op->groups_h,
                                        .gates = (op->norm && part == 1 ? r->saved->gates_h : r->saved->gates) + gates,
                                        .c = dw,
                                        .c_panel = GROUP * width,
                                        .c_row = width,
                                        .c_group = op->units * width,
                                        .direct = true,
                                        .accumulate = !f->fresh || (f->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE)});
    }
}

/* The same into the member's own gradients. W_x and W_h have separate sums with norm, or if some groups have only
 * one of the two products. */
static void chunk_weights_apart(const struct blas_backward_run *f, int64_t low, int64_t high)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t row = layer->input_pad + op->out_pad, gates = r->block->gate_base * op->panels * PANEL;
    const bool whole = op->groups_x.end - op->groups_h.first == PANEL / GROUP;
    const bool together = !op->norm && whole && !blas_copies_strips(op, layer);
    for (int part = 0; part < (together ? 1 : 2); part++) {
        const int64_t column = part == 0 ? 0 : layer->input_pad;
        part_run(f, &(struct outer_part){.low = low,
                                         .high = high,
                                         .column = column,
                                         .groups = part == 0 ? op->groups_x : op->groups_h,
                                         .width = together    ? row
                                                  : part == 0 ? layer->input_pad
                                                              : op->out_pad,
                                         .gates = (op->norm && part == 1 ? r->saved->gates_h : r->saved->gates) + gates,
                                         .c = f->gradients.w + column,
                                         .c_panel = PANEL * row,
                                         .c_row = row,
                                         .accumulate = !f->fresh});
    }
}

/* The same on tiles. */
static void chunk_weights_on_tiles(const struct blas_backward_run *f, int64_t low, int64_t high)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t row = layer->input_pad + op->out_pad, gates = r->block->gate_base * op->panels * PANEL;
    for (int part = 0; part < (op->norm ? 2 : 1); part++)
        blas_tiles_weights(
            r, &(struct blas_tiles_outer){.low = low,
                                          .high = high,
                                          .column = part == 0 ? 0 : layer->input_pad,
                                          .width = !op->norm   ? row
                                                   : part == 0 ? layer->input_pad
                                                               : op->out_pad,
                                          .gates = (part == 1 ? r->saved->gates_h : r->saved->gates) + gates,
                                          .w = f->gradients.w,
                                          .accumulate = !f->fresh});
}

/* dW of the candidate's W_h, own panels, for a GRU whose reset comes before: it is multiplied by r h~. */
static void chunk_weights_reset(const struct blas_backward_run *f, int64_t low, int64_t high)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t k_all = (int64_t)op->panels * PANEL, q_all = r->block->q_base + low;
    for (int64_t n = 0; n < op->out_pad; n += PANEL)
        for (int64_t p = r->panel_first; p < r->panel_last; p++)
            op->kernels->outer(&(struct blas_outer){.rows = high - low,
                                                    .a = r->saved->gates + r->block->gate_base * k_all +
                                                         (p * r->block->gate_rows + low) * PANEL,
                                                    .a_row = PANEL,
                                                    .m_count = GROUP,
                                                    .b = r->saved->rh + q_all * op->out_pad + n,
                                                    .b_row = op->out_pad,
                                                    .groups = (int32_t)(blas_min(PANEL, op->out_pad - n) / GROUP),
                                                    .c = f->gradients.rh + p * GROUP * op->out_pad + n,
                                                    .c_row = op->out_pad,
                                                    .accumulate = !f->fresh});
}

void blas_chunk_weights(struct blas_backward_run *f, int64_t low, int64_t high)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t q_all = r->block->q_base + low;
    if (op->tile_kernels)
        chunk_weights_on_tiles(f, low, high);
    else if (f->direct)
        chunk_weights_direct(f, low, high);
    else
        chunk_weights_apart(f, low, high);
    if (op->gru_before)
        chunk_weights_reset(f, low, high);
    const float *dprojected = r->saved->dprojected ? r->saved->dprojected + q_all * op->out_pad : r->scratch.dprojected;
    for (int64_t n = 0; op->projection && n < op->units_pad; n += PANEL)
        for (int64_t m = 0; m < op->out_pad; m += PANEL)
            op->kernels->outer(&(struct blas_outer){.rows = high - low,
                                                    .a = dprojected + m,
                                                    .a_row = op->out_pad,
                                                    .m_count = (int32_t)blas_min(PANEL, op->out_pad - m),
                                                    .b = r->saved->raw + q_all * op->units_pad + n,
                                                    .b_row = op->units_pad,
                                                    .groups = (int32_t)(blas_min(PANEL, op->units_pad - n) / GROUP),
                                                    .c = f->gradients.projection + m * op->units_pad + n,
                                                    .c_row = op->units_pad,
                                                    .accumulate = !f->fresh});
    f->fresh = false;
}
