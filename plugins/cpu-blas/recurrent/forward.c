/* SPDX-License-Identifier: Apache-2.0 */
/* Forward of the recurrent operation: every block runs through layers, directions and steps.
 *
 * In one step, [x~ | h~] is multiplied by the packed weights, panel by panel. The cell follows each product at once,
 * while the pre-activations of the panel are in the first-level cache (step.c). Then `publish` copies h to y, to xh
 * of the next step, and to the final states of the sequences that end. In training xh and gates are in the reserve;
 * in inference they are in scratch memory for one chunk of steps. */
#include "cpu-blas/recurrent/run.h"

#include <string.h>

#include "cpu-blas/recurrent/recurrent.h"
#include "cpu-blas/recurrent/tiles.h"

struct forward_call {
    const struct blas_recurrent_binding *binding;
    const struct seqlstm_forward *args;
    struct seqlstm_queue *queue;
    struct blas_packed_all packed;
    struct blas_saved saved[BLAS_LD_MAX];
    float *between[2]; /* outputs of inner layers, alternating: [R][y_width] */
    float *apart[2];   /* outputs of both directions before they are merged: [R][O] */
    char *scratch;
    uint64_t scratch_bytes;
};

/* Sequences [first, last) of the block begin: sets their states, and h~ at `xh`. Own columns only. */
static void begin_rows(const struct blas_forward_run *f, int64_t first, int64_t last, float *xh)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t width = op->out_pad, input_pad = op->layers[r->layer].input_pad;
    const float *h0 = blas_state_slot(r, r->slots, SEQLSTM_STATE_H0);
    const float *c0 = op->lstm ? blas_state_slot(r, r->slots, SEQLSTM_STATE_C0) : NULL;
    if (!(op->desc.options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE))
        h0 = c0 = NULL;
    int64_t low = blas_min(r->panel_first * op->panel_units, width);
    int64_t high = r->panel_last == op->panels ? width : blas_min(r->panel_last * op->panel_units, width);
    const int64_t given = h0 ? blas_min(high, op->out) - low : 0;
    for (int64_t i = first; i < last; i++) {
        const float *from = h0 ? h0 + (r->block->first + i) * op->out + low : NULL;
        float *h = r->scratch.h + i * op->h_row + low, *to = xh + i * op->layers[r->layer].xh_row + input_pad + low;
        if (given > 0)
            memcpy(h, from, (size_t)given * sizeof *h);
        memset(h + given, 0, (size_t)(high - low - given) * sizeof *h);
        memcpy(to, h, (size_t)(high - low) * sizeof *to);
        for (int64_t u = 0; r->scratch.mask_h && u < given; u++)
            to[u] *= r->scratch.mask_h[i * width + low + u];
    }
    for (int64_t g = r->panel_first; op->lstm && g < r->panel_last; g++) {
        const int64_t units = c0 ? blas_min(op->units - g * GROUP, GROUP) : 0;
        float *c = r->scratch.c + (g * r->block->rows + first) * GROUP;
        for (int64_t i = first; i < last; i++, c += GROUP)
            blas_copy_group(c, c0 ? c0 + (r->block->first + i) * op->units + g * GROUP : NULL, units, true);
    }
}

/* Panel p of W_x. It is packed here if x_in_time is set. */
static const float *panel_x(const struct blas_forward_run *f, int64_t p)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    if (!op->x_in_time)
        return r->packed->forward + p * (layer->input_pad + op->out_pad) * PANEL;
    const int32_t ld = op->layer_count * op->directions;
    op->kernels->pack_forward(
        &(struct blas_pack){.w = r->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, r->n, SEQLSTM_PARAM_W_X)],
                            .width = layer->input,
                            .width_pad = layer->input_pad,
                            .map = op->rows_x + p * PANEL,
                            .out = r->scratch.weights_x});
    return r->scratch.weights_x;
}

/* Copies x~ of all steps of the chunk that begins with step s. If the batch is one block, its rows are contiguous. */
static void copy_chunk(const struct blas_forward_run *f, int64_t s, int64_t last)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent_layer *layer = &r->op->layers[r->layer];
    const int64_t lowest = r->reverse ? last - 1 : s;
    const bool bulk = r->binding->block_count == 1 && !r->barrier && !r->scratch.mask_x;
    int64_t chunk_rows;
    blas_chunk_q(f, s, &chunk_rows);
    for (int64_t i = bulk ? lowest : s; i < last; i++) {
        if (i % r->members != r->member && r->barrier)
            continue;
        int64_t t = blas_step_at(r, i), rows = bulk ? chunk_rows : blas_block_rows(r->block, t);
        float *to = blas_xh_at(f, i);
        const float *from = f->x.base + blas_packed_row(r->binding, r->block, t) * f->x.row;
        r->op->kernels->copy(&(struct blas_rows){.rows = rows,
                                                 .n = layer->input,
                                                 .x = from,
                                                 .x_row = f->x.row,
                                                 .m = r->scratch.mask_x,
                                                 .m_row = layer->input_pad,
                                                 .y = to,
                                                 .y_row = layer->xh_row});
        if (layer->input_pad > layer->input)
            for (int64_t k = 0; k < rows; k++)
                memset(to + k * layer->xh_row + layer->input, 0,
                       (size_t)(layer->input_pad - layer->input) * sizeof *to);
        if (bulk)
            break;
    }
    blas_run_barrier(r);
}

/* Copies x~ of a chunk, then multiplies it unless the step does so. Tiles are made directly from x where possible. */
static void begin_chunk(const struct blas_forward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t last = blas_min(s + f->chunk_steps, r->binding->steps), lowest = r->reverse ? last - 1 : s;
    const bool direct = op->tile_kernels && !op->training && !r->binding->fused && r->binding->block_count == 1;
    int64_t rows, stride;
    if (!direct)
        copy_chunk(f, s, last);
    if (r->binding->fused)
        return;
    blas_trace_begin(op, "input products");
    blas_chunk_q(f, s, &rows);
    const float *a = blas_xh_at(f, lowest);
    float *gates = blas_gates_at(f, lowest, &stride);
    if (direct)
        blas_tiles_split_x(r, f->x.base + blas_packed_row(r->binding, r->block, blas_step_at(r, lowest)) * f->x.row,
                           f->x.row, rows);
    else if (op->tile_kernels)
        blas_tiles_split(r, a, rows, BLAS_PART_X);
    for (int64_t p = r->panel_first; p < r->panel_last; p++) {
        const struct blas_product product = {
            .rows = rows,
            .a = a,
            .a_row = layer->xh_row,
            .k_blocks = 1,
            .k_inner = blas_product_k(layer->input),
            .b = op->tile_kernels ? NULL : panel_x(f, p),
            .b_row = op->strips ? GROUP : PANEL,
            .b_strip = blas_strip_floats(op, layer->input_pad),
            .groups = op->groups_x.end,
            .c = gates + p * stride,
            .c_row = PANEL,
            .init = op->norm ? NULL : r->packed->bias + p * PANEL,
            .next = op->weights_large && !op->tile_kernels && p + 1 < r->panel_last ? panel_x(f, p + 1) : NULL};
        if (op->tile_kernels)
            blas_tiles_forward(r, &product, p, BLAS_PART_X, BLAS_PART_X);
        else
            op->kernels->product(&product);
    }
    blas_trace_end(op);
}

/* Copies the final states of sequences [first, last), own columns. */
static void end_rows(const struct blas_forward_run *f, int64_t first, int64_t last)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    if (!(op->desc.options & SEQLSTM_BIT_RECURRENT_FINAL_STATE))
        return;
    float *hn = blas_state_slot(r, r->slots, SEQLSTM_STATE_HN);
    float *cn = op->lstm ? blas_state_slot(r, r->slots, SEQLSTM_STATE_CN) : NULL;
    int64_t low = r->panel_first * op->panel_units, high = r->panel_last * op->panel_units;
    int64_t h_low = op->projection ? 0 : low, h_high = op->projection ? op->out : blas_min(high, op->out);
    for (int64_t i = first; i < last; i++) {
        int64_t b = r->block->first + i;
        if (hn && h_high > h_low)
            memcpy(hn + b * op->out + h_low, r->scratch.h + i * op->h_row + h_low,
                   (size_t)(h_high - h_low) * sizeof *hn);
        for (int64_t g = r->panel_first; cn && g < r->panel_last; g++)
            blas_copy_group(cn + b * op->units + g * GROUP, r->scratch.c + (g * r->block->rows + i) * GROUP,
                            blas_min(op->units - g * GROUP, GROUP), false);
    }
}

/* Copies h to y, to the next step and to final states; own columns. Also begins the sequences whose first step is
 * the next one. */
static void publish(const struct blas_forward_run *f, int64_t s)
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
        high = r->panel_last == op->panels ? width : blas_min(r->panel_last * op->panel_units, width);
    }
    int64_t h_row;
    const float *h = blas_h_target(f, s, &h_row);
    struct blas_rows copy = {.rows = rows, .n = blas_min(high, op->out) - low, .x = h + low, .x_row = h_row};
    if (f->y.base && copy.n > 0) {
        copy.y = f->y.base + blas_packed_row(r->binding, r->block, t) * f->y.row + low;
        copy.y_row = f->y.row;
        op->kernels->copy(&copy);
    }
    if (!last && h == r->scratch.h) {
        float *xh = blas_xh_at(f, s + 1);
        copy.rows = blas_min(rows, next_rows);
        copy.n = high - low;
        copy.m = r->scratch.mask_h ? r->scratch.mask_h + low : NULL;
        copy.m_row = width;
        copy.y = xh + layer->input_pad + low;
        copy.y_row = layer->xh_row;
        op->kernels->copy(&copy);
        if (next_rows > rows)
            begin_rows(f, rows, next_rows, xh);
    }
    if (next_rows < rows)
        end_rows(f, next_rows, rows);
}

static void run_direction(struct blas_forward_run *f)
{
    const struct blas_run *r = &f->r;
    const bool fused = r->binding->fused; /* a chunk is one step, too short to be told apart in profiles */
    int64_t rows = r->block->rows, steps = r->binding->steps;
    f->chunk_steps = fused ? 1 : r->binding->chunk_rows / rows;
    if (f->chunk_steps < 1)
        f->chunk_steps = 1;
    blas_masks_fill(r);
    blas_run_barrier(r);
    begin_rows(f, 0, blas_block_rows(r->block, blas_step_at(r, 0)), blas_xh_at(f, 0));
    if (blas_sweep_fits(r)) {
        for (int64_t s = 0; s < steps; s += f->chunk_steps) {
            begin_chunk(f, s);
            blas_trace_begin(r->op, "steps");
            blas_sweep_forward(f, s, blas_min(s + f->chunk_steps, steps));
            blas_trace_end(r->op);
        }
        end_rows(f, 0, rows);
        return;
    }
    for (int64_t s = 0; s < steps; s++) {
        if (s % f->chunk_steps == 0) {
            if (s > 0 && !fused)
                blas_trace_end(r->op);
            begin_chunk(f, s);
            if (s == 0 || !fused)
                blas_trace_begin(r->op, "steps");
        }
        if (blas_block_rows(r->block, blas_step_at(r, s)) > 0)
            blas_step_run(f, s);
        publish(f, s);
        blas_run_barrier(r);
    }
    blas_trace_end(r->op);
}

/* y = merge(h of direction 0, h of direction 1) over the rows of the block. */
static void merge_block(const struct forward_call *call, const struct blas_block *block, const float *first,
                        const float *second, float *y)
{
    const struct blas_recurrent *op = call->binding->op;
    for (int64_t t = 0; y && t < call->binding->steps; t++) {
        int64_t at = blas_packed_row(call->binding, block, t) * op->out;
        int64_t count = blas_block_rows(block, t) * op->out;
        const float *a = first + at, *b = second + at;
        for (int64_t i = 0; i < count; i++)
            y[at + i] = op->desc.merge == SEQLSTM_KIND_MERGE_MUL   ? a[i] * b[i]
                        : op->desc.merge == SEQLSTM_KIND_MERGE_AVE ? 0.5f * (a[i] + b[i])
                                                                   : a[i] + b[i];
    }
}

static void run_block(const struct forward_call *call, const struct blas_block *block, int32_t member, int32_t members,
                      int32_t scratch_index, struct blas_tiles *tiles)
{
    const struct blas_recurrent_binding *binding = call->binding;
    const struct blas_recurrent *op = binding->op;
    struct blas_forward_run f = {0};
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
    f.r.tiles = tiles;
    f.r.barrier = members > 1;
    blas_share(op->panels, member, members, &f.r.panel_first, &f.r.panel_last);
    const float *input = call->args->slots[SEQLSTM_SLOT_RECURRENT_X];
    for (int32_t l = 0; l < op->layer_count; l++) {
        float *y = l + 1 < op->layer_count ? call->between[l & 1] : call->args->slots[SEQLSTM_SLOT_RECURRENT_Y];
        if (l + 1 == op->layer_count && !(op->desc.options & SEQLSTM_BIT_RECURRENT_OUTPUT))
            y = NULL;
        for (int32_t d = 0; d < op->directions; d++) {
            f.r.layer = l;
            f.r.direction = d;
            f.r.n = l * op->directions + d;
            f.r.reverse = op->directions == 2 ? d == 1 : op->desc.direction == SEQLSTM_DIRECTION_BACKWARD;
            const struct blas_packed packed = blas_packed_own(op, &call->packed, f.r.n, scratch_index);
            f.r.packed = &packed;
            f.r.saved = &call->saved[f.r.n];
            f.x = (struct blas_rows_at){(float *)(uintptr_t)input, op->layers[l].input};
            if (op->merge_apart)
                f.y = (struct blas_rows_at){op->training && f.r.saved->merged ? f.r.saved->merged : call->apart[d],
                                            op->out};
            else
                f.y = (struct blas_rows_at){y ? y + d * op->out : NULL, op->y_width};
            run_direction(&f);
        }
        if (op->merge_apart) {
            const struct blas_saved *s = &call->saved[l * op->directions];
            bool kept = op->training && s[0].merged;
            merge_block(call, block, kept ? s[0].merged : call->apart[0], kept ? s[1].merged : call->apart[1], y);
        }
        input = y;
    }
}

static void forward_member(void *argument, int32_t member, int32_t members)
{
    const struct forward_call *call = argument;
    const struct blas_recurrent_binding *binding = call->binding;
    uint32_t saved = blas_flush_denormals_enter();
    struct blas_tiles tiles = {0};
    if (binding->units) {
        for (int32_t i = 0; i < binding->block_count; i++)
            run_block(call, &binding->blocks[i], member, members, 0, &tiles);
    } else if (member < binding->members) {
        for (int32_t i = binding->member_first[member]; i < binding->member_first[member + 1]; i++)
            run_block(call, &binding->blocks[i], 0, 1, member, &tiles);
    }
    if (binding->op->tile_kernels)
        binding->op->tile_kernels->release(&tiles);
    if (binding->puts)
        binding->op->kernels->put_end();
    blas_flush_denormals_leave(saved);
}

static void layout(const struct blas_recurrent *op, int64_t rows, int32_t regions, struct blas_region *region,
                   struct forward_call *call)
{
    const int64_t block_rows = op->block_rows_max, wanted = blas_forward_rows(op);
    for (int i = 0; i < 2; i++) {
        call->between[i] = blas_region_take(region, op->layer_count > 1 + i ? rows * op->y_width : 0);
        call->apart[i] = blas_region_take(region, op->merge_apart ? rows * op->out : 0);
    }
    struct blas_region one = {0};
    struct blas_scratch scratch;
    blas_scratch_forward(op, block_rows, wanted > block_rows ? wanted : block_rows, &one, &scratch);
    call->scratch = region->base ? region->base + region->used : NULL;
    call->scratch_bytes = one.used;
    region->used += one.used * (uint64_t)regions;
}

uint64_t blas_forward_workspace(const struct blas_recurrent *op, int64_t rows, int32_t regions)
{
    struct blas_region region = {0};
    struct forward_call call;
    layout(op, rows, regions, &region, &call);
    return region.used;
}

seqlstm_status blas_recurrent_forward(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                      const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    const struct blas_recurrent *op = binding->op;
    struct forward_call call;
    call.binding = binding;
    call.args = args;
    call.queue = queue;
    if (!args->packed || (op->training && !args->reserve) || !args->workspace)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s is NULL, a buffer of op_sizes was expected",
                     !args->packed      ? "packed"
                     : !args->workspace ? "workspace"
                                        : "reserve");
    struct blas_region saved = {args->reserve, 0};
    blas_packed_open(op, args->packed, &call.packed);
    for (int32_t n = 0; op->training && n < op->layer_count * op->directions; n++)
        blas_saved_layout(op, n / op->directions, binding->rows, binding->block_count, &saved, &call.saved[n]);
    struct blas_region work = {args->workspace, 0};
    layout(op, binding->rows, binding->units ? 1 : binding->members, &work, &call);
    if (binding->units || binding->members > 1)
        queue->services->team(queue, forward_member, &call);
    else
        forward_member(&call, 0, 1);
    return SEQLSTM_OK;
}
