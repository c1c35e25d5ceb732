/* SPDX-License-Identifier: Apache-2.0 */
/* Backward of the recurrent operation: every block runs its layers, directions and steps in reverse.
 *
 * In one step, dy is added to dh, and the cell replaces the stored pre-activations by their gradients. The product
 * of these with W_h is dh of the step before. Weight gradients (weights.c) and dx are computed for a *chunk* of
 * steps at a time, about 256 rows, while its gradients are still in the second-level cache. Each member has its own
 * weight gradients; they are summed at the end, in the order of the members. */
#include "cpu-blas/recurrent/run.h"

#include <string.h>

#include "cpu-blas/recurrent/pack.h"
#include "cpu-blas/recurrent/recurrent.h"
#include "cpu-blas/recurrent/tiles.h"

struct backward_call {
    const struct blas_recurrent_binding *binding;
    const struct seqlstm_backward *args;
    struct seqlstm_queue *queue;
    struct blas_packed_all packed;
    struct blas_saved saved[BLAS_LD_MAX];
    struct blas_gradients gradients[BLAS_LD_MAX]; /* those of member 0 */
    int64_t gradients_stride;                     /* floats from one member's gradients to the next member's */
    float *between[2];                            /* gradients of the outputs of inner layers: [R][y_width] */
    float *apart[2];                              /* dy of each direction where outputs are merged: [R][O] */
    char *scratch;
    uint64_t scratch_bytes;
    bool direct;           /* each gradient is computed by one member only */
    bool wants_dx;         /* of layer 0 */
    float *x_back[2];      /* W_x of layer 0, packed for dx: [copy][blas_x_back_floats] */
    int32_t x_back_copies; /* one, or one for each member (blas_packed_all) */
    bool x_in_place;       /* W_x of layer 0 is read in its canonical layout */
};

/* Sequences [first, last) begin in backward: dh and dc are the gradients of their final states, or zero. */
static void enter_rows(const struct blas_backward_run *f, int64_t first, int64_t last)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const float *dhn = NULL, *dcn = NULL;
    if (op->desc.options & SEQLSTM_BIT_RECURRENT_FINAL_STATE) {
        dhn = blas_state_slot(r, f->grads, SEQLSTM_STATE_HN);
        dcn = op->lstm ? blas_state_slot(r, f->grads, SEQLSTM_STATE_CN) : NULL;
    }
    int64_t low, high;
    blas_own_columns(r, &low, &high);
    const int64_t all = high - low, wanted = blas_min(high, op->out) - low, given = dhn && wanted > 0 ? wanted : 0;
    for (int64_t i = first; i < last; i++) {
        float *dh = r->scratch.h + i * op->h_row + low;
        if (given > 0)
            memcpy(dh, dhn + (r->block->first + i) * op->out + low, (size_t)given * sizeof *dh);
        if (all > given)
            memset(dh + given, 0, (size_t)(all - given) * sizeof *dh);
    }
    for (int64_t g = r->panel_first; op->lstm && g < r->panel_last; g++) {
        const int64_t units = dcn ? blas_min(op->units - g * GROUP, GROUP) : 0;
        float *dc = r->scratch.c + (g * r->block->rows + first) * GROUP;
        for (int64_t i = first; i < last; i++, dc += GROUP)
            blas_copy_group(dc, dcn ? dcn + (r->block->first + i) * op->units + g * GROUP : NULL, units, true);
    }
}

/* Sequences [first, last) end in backward: dh and dc are the gradients of their initial states. */
static void leave_rows(const struct blas_backward_run *f, int64_t first, int64_t last)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    if (!(f->parts & SEQLSTM_BIT_BACKWARD_STATES) || !(op->desc.options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE))
        return;
    float *dh0 = blas_state_slot(r, f->grads, SEQLSTM_STATE_H0);
    float *dc0 = op->lstm ? blas_state_slot(r, f->grads, SEQLSTM_STATE_C0) : NULL;
    int64_t low, high;
    blas_own_columns(r, &low, &high);
    const int64_t wanted = dh0 ? blas_min(high, op->out) - low : 0;
    for (int64_t i = first; i < last; i++) {
        const int64_t b = r->block->first + i;
        if (wanted > 0)
            memcpy(dh0 + b * op->out + low, r->scratch.h + i * op->h_row + low, (size_t)wanted * sizeof *dh0);
        for (int64_t g = r->panel_first; dc0 && g < r->panel_last; g++)
            blas_copy_group(dc0 + b * op->units + g * GROUP, r->scratch.c + (g * r->block->rows + i) * GROUP,
                            blas_min(op->units - g * GROUP, GROUP), false);
    }
}

/* One member's part of dx of a chunk: rows counted from q `low`, and columns. */
struct input_part {
    int64_t low, first, last, column, end;
    float *c; /* at row `low`, column 0 */
    int64_t c_row;
    bool accumulate;
};

/* Computes dx for the rows and columns of `part`. */
static void input_products(const struct blas_backward_run *f, const struct input_part *part)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t input_pad = op->layers[r->layer].input_pad;
    const float *gates = r->saved->gates + (r->block->gate_base * op->panels + part->low) * PANEL;
    /* For a large layer, as many rows at once as fit the second-level cache together with 16 panels. Products on
     * tiles cut their rows themselves. */
    const int64_t at_once = op->weights_large && !op->tile_kernels ? 128 : part->last - part->first;
    for (int64_t row = part->first; row < part->last; row += at_once) {
        struct blas_product product = {.rows = blas_min(at_once, part->last - row),
                                       .a = gates + row * PANEL,
                                       .a_row = PANEL,
                                       .a_block = r->block->gate_rows * PANEL,
                                       .c = part->c + row * part->c_row,
                                       .c_row = part->c_row,
                                       .accumulate = part->accumulate};
        if (op->tile_kernels)
            blas_tiles_back(r, &product, f->x_back, input_pad, part->column, part->end);
        else
            blas_product_back(op, &product, op->groups_x, f->x_back, input_pad, part->column, part->end, 16);
    }
}

/* The same for layer 0 and one sequence, with W_x in its canonical layout. There the rows of one gate are contiguous
 * over all panels. */
static void input_products_in_place(const struct blas_backward_run *f, const struct input_part *part)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const int64_t input = op->layers[0].input;
    const float *w = r->slots[SEQLSTM_SLOT_RECURRENT_PARAM(op->layer_count * op->directions, r->n, SEQLSTM_PARAM_W_X)];
    const float *gates = r->saved->gates + (r->block->gate_base * op->panels + part->low) * PANEL;
    struct blas_product product = {.rows = part->last,
                                   .a_row = PANEL,
                                   .a_block = r->block->gate_rows * PANEL,
                                   .k_blocks = op->panels,
                                   .k_inner = GROUP,
                                   .b_row = input,
                                   .c_row = part->c_row};
    for (int64_t gate = 0; gate < PANEL / GROUP; gate++, product.accumulate = true) {
        if (gate == 1 && op->coupled) /* coupled gates have no forget gate */
            continue;
        product.a = gates + gate * GROUP;
        for (int64_t n = 0; n < input; n += PANEL) {
            product.b = w + gate * op->units * input + n;
            product.groups = (int32_t)(blas_min(PANEL, input - n) / GROUP);
            product.c = part->c + n;
            op->kernels->product(&product);
        }
    }
}

/* Returns true if products may write dx directly to its destination. That needs contiguous rows of the chunk, each
 * in cache lines of its own (otherwise a copy is cheaper), and no mask. */
static bool writes_dx(const struct blas_backward_run *f)
{
    const struct blas_run *r = &f->r;
    return f->x_back && !r->op->tile_kernels && !r->scratch.mask_x && r->binding->block_count == 1 &&
           f->dx.row % GROUP == 0 && r->op->layers[r->layer].input % GROUP == 0;
}

/* Copies steps [first, last] from scratch to their destination. */
static void input_store(const struct blas_backward_run *f, int64_t first, int64_t last, const struct input_part *part)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent_layer *layer = &r->op->layers[r->layer];
    const int64_t c0 = part->column, count = blas_min(part->end, layer->input) - c0;
    for (int64_t t = first; t <= last && count > 0; t++) {
        const int64_t q = r->block->q_of[t] - part->low, skip = part->first > q ? part->first - q : 0;
        const int64_t own_rows = blas_min(blas_block_rows(r->block, t), part->last - q) - skip;
        if (own_rows <= 0)
            continue;
        struct blas_rows rows = {.rows = own_rows,
                                 .n = count,
                                 .x = part->c + (q + skip) * part->c_row + c0,
                                 .x_row = part->c_row,
                                 .m = r->scratch.mask_x ? r->scratch.mask_x + skip * layer->input_pad + c0 : NULL,
                                 .m_row = layer->input_pad,
                                 .y = f->dx.base + (blas_packed_row(r->binding, r->block, t) + skip) * f->dx.row + c0,
                                 .y_row = f->dx.row};
        if (f->dx_add)
            r->op->kernels->add(&rows);
        else
            r->op->kernels->copy(&rows);
    }
}

/* Computes dx of steps [first, last] (in order of time). Members share the rows, so that each converts only its own
 * rows to tiles; if there are few rows, they share the columns. */
static void chunk_input(const struct blas_backward_run *f, int64_t first, int64_t last)
{
    const struct blas_run *r = &f->r;
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t low = r->block->q_of[first], all = r->block->q_of[last + 1] - low;
    struct input_part part = {.low = low, .last = all, .end = layer->input_pad};
    struct blas_backward_run own = *f;
    if (blas_shares_rows(r->members, all)) {
        blas_share(all, r->member, r->members, &part.first, &part.last);
        own.r.member = 0;
        own.r.members = 1;
        own.r.barrier = false;
        if (op->tile_kernels)
            own.r.scratch.tiles += blas_tiles_own(op, r->member, r->members, all);
        blas_run_barrier(r); /* until no member reads the tiles in scratch */
    } else {
        int64_t g0, g1;
        blas_share(layer->input_pad / GROUP, r->member, r->members, &g0, &g1);
        part.column = g0 * GROUP;
        part.end = g1 * GROUP;
    }
    if (writes_dx(f)) {
        part.c = f->dx.base + blas_packed_row(r->binding, r->block, first) * f->dx.row;
        part.c_row = f->dx.row;
        part.accumulate = f->dx_add;
        input_products(&own, &part);
        return;
    }
    part.c = r->scratch.dx;
    part.c_row = blas_stride(layer->input_pad);
    (f->x_back ? input_products : input_products_in_place)(&own, &part);
    input_store(f, first, last, &part);
}

/* The last step (in the order of backward) of the chunk that begins with step s. */
static int64_t chunk_end(const struct blas_backward_run *f, int64_t s)
{
    const struct blas_run *r = &f->r;
    int64_t rows = 0, steps = r->binding->steps;
    while (s < steps) {
        rows += blas_block_rows(r->block, blas_step_at(r, steps - 1 - s));
        if (rows >= blas_chunk_rows(r->op))
            break;
        s++;
    }
    return s < steps ? s : steps - 1;
}

static void run_direction(struct blas_backward_run *f)
{
    const struct blas_run *r = &f->r;
    const int64_t steps = r->binding->steps;
    const bool sweep = blas_sweep_fits(r) && !r->barrier && !r->op->weights_large;
    int64_t alive = 0;
    f->fresh = !f->keep_sums;
    blas_masks_fill(r);
    /* Stepwise: the gradients of the segments are added up, and the last segment is run first. */
    bool begins = !r->op->stepwise || r->binding->t0 + steps == r->binding->axis->steps;
    if (r->member == 0 && f->fresh && begins)
        memset(f->gradients.sums, 0, (size_t)f->gradients.sums_count * sizeof(float));
    blas_run_barrier(r);
    for (int64_t s = 0; s < steps;) {
        int64_t end = chunk_end(f, s);
        int64_t ta = blas_step_at(r, steps - 1 - s), tb = blas_step_at(r, steps - 1 - end);
        int64_t first = ta < tb ? ta : tb, last = ta < tb ? tb : ta;
        f->chunk_low = r->block->q_of[first];
        f->chunk_high = r->block->q_of[last + 1];
        if (sweep && alive == 0)
            enter_rows(f, 0, alive = r->block->rows);
        blas_trace_begin(r->op, "steps");
        if (sweep)
            blas_sweep_backward(f, s, end + 1);
        s = sweep ? end + 1 : s;
        for (; s <= end; s++) {
            int64_t t = blas_step_at(r, steps - 1 - s), rows = blas_block_rows(r->block, t);
            if (rows < alive)
                leave_rows(f, rows, alive);
            else if (rows > alive)
                enter_rows(f, alive, rows);
            alive = rows;
            if (rows > 0)
                blas_step_back(f, t, s + 1 < steps ? blas_step_at(r, steps - 2 - s) : t);
        }
        blas_trace_end(r->op);
        if (f->chunk_high > f->chunk_low && f->weights) {
            blas_trace_begin(r->op, "weight gradients");
            blas_chunk_weights(f, f->chunk_low, f->chunk_high);
            blas_trace_end(r->op);
        }
        if (f->chunk_high > f->chunk_low && f->dx.base) {
            blas_trace_begin(r->op, "input gradients");
            chunk_input(f, first, last);
            blas_run_barrier(r);
            blas_trace_end(r->op);
        }
    }
    leave_rows(f, 0, alive);
    blas_run_barrier(r);
}

/* The own panels whose dW are computed one group after the other, each over all steps: so many that their dW, and the
 * rows of a chunk, stay in the second-level cache. All of them, where a chunk is more than products of panels. */
static int64_t panels_of_weights(const struct blas_run *r)
{
    const struct blas_recurrent *op = r->op;
    const struct blas_recurrent_layer *layer = &op->layers[r->layer];
    const int64_t all = r->panel_last - r->panel_first, bytes = PANEL * layer->xh_row * (int64_t)sizeof(float);
    if (op->tile_kernels || op->projection || blas_copies_strips(op, layer) || 128 * 1024 < bytes)
        return all > 0 ? all : 1;
    return 128 * 1024 / bytes;
}

/* Stepwise: computes dW for all steps of the block, whose gates now hold their gradients. */
static void run_weights(struct blas_backward_run *f)
{
    const int64_t rows = f->r.block->q_rows, at_once = blas_chunk_rows(f->r.op), together = panels_of_weights(&f->r);
    const int64_t first = f->r.panel_first, last = f->r.panel_last;
    int64_t p = first;
    do {
        f->r.panel_first = p;
        f->r.panel_last = p = blas_min(p + together, last);
        f->fresh = !f->keep_sums;
        for (int64_t low = 0; low < rows; low += at_once)
            blas_chunk_weights(f, low, blas_min(low + at_once, rows));
    } while (p < last);
    f->r.panel_first = first;
    f->r.panel_last = last;
}

/* Computes dy of one direction from dy of the merged output. */
static void split_block(const struct backward_call *call, const struct blas_block *block, const float *dy,
                        const float *other, float *out)
{
    const struct blas_recurrent *op = call->binding->op;
    for (int64_t t = 0; t < call->binding->steps; t++) {
        int64_t at = blas_packed_row(call->binding, block, t) * op->out;
        int64_t count = blas_block_rows(block, t) * op->out;
        for (int64_t i = at; i < at + count; i++)
            out[i] = op->desc.merge == SEQLSTM_KIND_MERGE_MUL   ? dy[i] * other[i]
                     : op->desc.merge == SEQLSTM_KIND_MERGE_AVE ? 0.5f * dy[i]
                                                                : dy[i];
    }
}

struct block_share {
    int32_t member, members;  /* of those that share the block */
    int32_t region;           /* index of the scratch memory and gradients to use */
    bool first;               /* this is the first block of the region: it overwrites dW */
    struct blas_tiles *tiles; /* those of this thread */
};

static float *own_x_back(const struct backward_call *call, int32_t direction, int32_t member)
{
    const struct blas_recurrent *op = call->binding->op;
    return call->x_back[direction] +
           (call->x_back_copies > 1 ? member * blas_x_back_floats(op, op->layers[0].input_pad) : 0);
}

static void run_block(const struct backward_call *call, const struct blas_block *block, const struct block_share *share)
{
    const struct blas_recurrent_binding *binding = call->binding;
    const struct blas_recurrent *op = binding->op;
    const struct seqlstm_backward *args = call->args;
    struct blas_backward_run f = {0};
    struct blas_region region = {call->scratch + (uint64_t)share->region * call->scratch_bytes, 0};
    blas_scratch_backward(op, block->rows, blas_chunk_rows_max(op), &region, &f.r.scratch);
    f.r.op = op;
    f.r.binding = binding;
    f.r.block = block;
    f.r.queue = call->queue;
    f.r.step = args->step;
    f.r.slots = args->slots;
    f.r.member = share->member;
    f.r.members = share->members;
    f.r.tiles = share->tiles;
    f.r.barrier = share->members > 1;
    f.grads = args->grads;
    f.parts = args->parts;
    f.weights = (args->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) != 0;
    const bool later = op->stepwise && f.weights;
    blas_share(op->panels, share->member, share->members, &f.r.panel_first, &f.r.panel_last);
    const float *dy = args->grads[SEQLSTM_SLOT_RECURRENT_Y];
    if (!(op->desc.options & SEQLSTM_BIT_RECURRENT_OUTPUT))
        dy = NULL;
    for (int32_t l = op->layer_count - 1; l >= 0; l--) {
        float *dx = l > 0                                       ? call->between[(l - 1) & 1]
                    : args->parts & SEQLSTM_BIT_BACKWARD_INPUTS ? args->grads[SEQLSTM_SLOT_RECURRENT_X]
                                                                : NULL;
        for (int32_t d = 0; d < op->directions; d++) {
            f.r.layer = l;
            f.r.direction = d;
            f.r.n = l * op->directions + d;
            f.r.reverse = op->directions == 2 ? d == 1 : op->desc.direction == SEQLSTM_DIRECTION_BACKWARD;
            const struct blas_packed packed = blas_packed_own(op, &call->packed, f.r.n, share->region);
            f.r.packed = &packed;
            f.x_back = blas_keeps_x_back(op, l) ? packed.x_back
                       : call->x_in_place       ? NULL
                                                : own_x_back(call, d, share->region);
            f.r.saved = &call->saved[f.r.n];
            f.gradients = call->gradients[f.r.n];
            blas_gradients_move(&f.gradients, share->region * call->gradients_stride);
            f.dy = (struct blas_rows_at){dy ? (float *)(uintptr_t)dy + d * op->out : NULL, op->y_width};
            if (op->merge_apart && dy && !later) {
                split_block(call, block, dy, call->saved[l * 2 + 1 - d].merged, call->apart[d]);
                f.dy = (struct blas_rows_at){call->apart[d], op->out};
            } else if (op->merge_apart) {
                f.dy.base = NULL;
            }
            f.dx = (struct blas_rows_at){dx, op->layers[l].input};
            f.dx_add = d > 0;
            f.keep_sums = !share->first;
            f.direct = call->direct;
            if (later)
                run_weights(&f);
            else
                run_direction(&f);
        }
        dy = dx;
    }
}

static void reduce_all(const struct backward_call *call, int32_t member, int32_t members)
{
    const struct blas_recurrent *op = call->binding->op;
    const int32_t ld = op->layer_count * op->directions;
    for (int32_t n = 0; n < ld; n++) {
        struct blas_reduce reduce = {.gradients = call->gradients[n],
                                     .first = call->gradients[n].w,
                                     .stride = call->gradients_stride,
                                     .sources = call->binding->units ? 1 : call->binding->members,
                                     .direct = call->direct,
                                     .accumulate = (call->args->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0};
        float *grads[SEQLSTM_PARAM_COUNT];
        for (int k = 0; k < SEQLSTM_PARAM_COUNT; k++)
            grads[k] = call->args->grads[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, k)];
        const struct blas_packed packed = blas_packed_own(op, &call->packed, n, 0);
        blas_gradients_reduce(op, &reduce, &packed, n / op->directions, member, members, grads);
    }
}

/* Packs W_x of layer 0 for dx. Each member packs some panels of the single copy, or its own copy. */
static void pack_input(const struct backward_call *call, int32_t member, int32_t members)
{
    const struct blas_recurrent *op = call->binding->op;
    const int32_t ld = op->layer_count * op->directions;
    const bool own = call->x_back_copies > 1;
    int64_t first, last;
    if (own && member >= call->x_back_copies)
        return;
    blas_share(op->panels, own ? 0 : member, own ? 1 : members, &first, &last);
    for (int32_t d = 0; d < op->directions; d++)
        for (int64_t p = first; p < last; p++)
            blas_pack_back(
                op, op->tile_kernels,
                &(struct blas_pack){.w = call->args->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, d, SEQLSTM_PARAM_W_X)],
                                    .width = op->layers[0].input,
                                    .width_pad = op->layers[0].input_pad,
                                    .map = op->rows_x + p * PANEL,
                                    .k0 = p * PANEL,
                                    .k_all = (int64_t)op->panels * PANEL,
                                    .strip = op->strips ? GROUP : 0,
                                    .out = own_x_back(call, d, member),
                                    .stream = op->weights_large});
    if (members > 1 && !own)
        call->queue->services->team_barrier(call->queue);
}

static void backward_member(void *argument, int32_t member, int32_t members)
{
    const struct backward_call *call = argument;
    const struct blas_recurrent_binding *binding = call->binding;
    uint32_t saved = blas_flush_denormals_enter();
    if (call->wants_dx && !call->x_in_place && !blas_keeps_x_back(binding->op, 0))
        pack_input(call, member, members);
    struct blas_tiles tiles = {0};
    struct block_share share = {0, 1, member, true, &tiles};
    if (binding->units) {
        share = (struct block_share){member, members, 0, true, &tiles};
        for (int32_t i = 0; i < binding->block_count; i++, share.first = false)
            run_block(call, &binding->blocks[i], &share);
    } else if (member < binding->members) {
        for (int32_t i = binding->member_first[member]; i < binding->member_first[member + 1]; i++) {
            run_block(call, &binding->blocks[i], &share);
            share.first = false;
        }
    }
    if (binding->op->tile_kernels)
        binding->op->tile_kernels->release(&tiles);
    if (call->args->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) {
        if (members > 1)
            call->queue->services->team_barrier(call->queue);
        reduce_all(call, member, members);
    }
    blas_flush_denormals_leave(saved);
}

static void layout(const struct blas_recurrent *op, int64_t rows, int32_t regions, struct blas_region *region,
                   struct blas_region *kept, struct backward_call *call)
{
    call->x_back_copies = blas_packed_copies(op, regions) > 1 ? regions : 1;
    for (int i = 0; i < 2; i++) {
        call->between[i] = blas_region_take(region, op->layer_count > 1 + i ? rows * op->y_width : 0);
        call->apart[i] = blas_region_take(region, op->merge_apart ? rows * op->out : 0);
        call->x_back[i] =
            blas_region_take(region, i < op->directions && !blas_keeps_x_back(op, 0)
                                         ? call->x_back_copies * blas_x_back_floats(op, op->layers[0].input_pad)
                                         : 0);
    }
    call->gradients_stride = blas_gradients_all(op, regions, op->stepwise ? kept : region, call->gradients);
    struct blas_region one = {0};
    struct blas_scratch scratch;
    blas_scratch_backward(op, op->block_rows_max, blas_chunk_rows_max(op), &one, &scratch);
    call->scratch = region->base ? region->base + region->used : NULL;
    call->scratch_bytes = one.used;
    region->used += one.used * (uint64_t)regions;
}

uint64_t blas_backward_workspace(const struct blas_recurrent *op, int64_t rows, int32_t regions)
{
    struct blas_region region = {0}, kept = {0};
    struct backward_call call;
    layout(op, rows, regions, &region, &kept, &call);
    return region.used;
}

seqlstm_status blas_recurrent_backward(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                       const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    const struct blas_recurrent *op = binding->op;
    struct backward_call call;
    if (!op->training)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "backward was called on an operation made for inference");
    if (!args->packed || !args->reserve || !args->workspace)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s is NULL, a buffer of op_sizes was expected",
                     !args->packed      ? "packed"
                     : !args->workspace ? "workspace"
                                        : "reserve");
    if (op->stepwise && (args->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS)) {
        if (args->parts & (SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "stepwise: weight gradients are asked for by a call of their own");
        if (binding->steps != binding->axis->steps)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "stepwise: weight gradients need a binding of the whole axis");
    }
    call.wants_dx = (args->parts & SEQLSTM_BIT_BACKWARD_INPUTS) && args->grads[SEQLSTM_SLOT_RECURRENT_X];
    /* One product for each gate reads and writes dx four times; for few rows that is faster than packing. */
    call.x_in_place = op->h_in_place && !op->tile_kernels && op->layers[0].input % GROUP == 0 && binding->rows <= 64;
    /* The weight mask is applied to dW_h as a whole, which is not possible where dW_h is added to earlier gradients. */
    call.direct = op->direct && (binding->units || binding->members == 1) &&
                  !(op->desc.weight_drop > 0.0f && (args->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE));
    call.binding = binding;
    call.args = args;
    call.queue = queue;
    struct blas_region saved = {args->reserve, 0};
    blas_packed_open(op, args->packed, &call.packed);
    for (int32_t n = 0; n < op->layer_count * op->directions; n++)
        blas_saved_layout(op, n / op->directions, binding->rows, binding->block_count, &saved, &call.saved[n]);
    struct blas_region work = {args->workspace, 0};
    layout(op, binding->rows, binding->units ? 1 : binding->members, &work, &saved, &call);
    if (binding->units || binding->members > 1)
        queue->services->team(queue, backward_member, &call);
    else
        backward_member(&call, 0, 1);
    return SEQLSTM_OK;
}
