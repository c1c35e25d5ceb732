/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings (how a batch is cut and shared), masks and scratch memory of the recurrent operation. */
#include "cpu-blas/recurrent/run.h"

#include <string.h>

#include <seqlstm/philox.h>

#include "cpu-blas/recurrent/tiles.h"

/* ---- sharing --------------------------------------------------------------------------------------- */

/* Returns true if members share units: with few rows for each member, or weights that each member alone would read
 * from memory in every step. Only possible if no step needs a sum over all units. */
bool blas_shares_units(const struct blas_recurrent *op, int64_t sequences, int32_t members)
{
    if (members < 2 || op->norm || op->projection || op->gru_before || op->merge_apart ||
        op->desc.zoneout_cell > 0.0f || op->desc.zoneout_hidden > 0.0f || op->panels < 2 * members)
        return false;
    if (op->weights_large)
        return sequences <= 256;
    return op->units >= 128 && sequences < 4 * (int64_t)members;
}

static void blocks_fill(struct blas_recurrent_binding *binding, const int32_t *sizes)
{
    const int64_t steps = binding->steps;
    int64_t *q = binding->q_storage, base = 0, gate_base = 0;
    for (int32_t i = 0; i < binding->block_count; i++) {
        struct blas_block *block = &binding->blocks[i];
        block->q_of = q;
        block->q_base = base;
        q[0] = 0;
        for (int64_t t = 0; t < steps; t++) {
            int64_t rows = sizes[t] - block->first;
            rows = rows < 0 ? 0 : blas_min(rows, block->rows);
            q[t + 1] = q[t] + rows;
        }
        block->q_rows = q[steps];
        block->gate_base = gate_base;
        block->gate_rows = blas_gate_rows(binding->op, block->q_rows);
        base += block->q_rows;
        gate_base += block->gate_rows;
        q += steps + 1;
    }
}

/* Cuts [first, first + rows) into blocks of at most block_rows_max, as even as possible. Only counts them if blocks
 * is NULL. */
static int32_t cut_rows(const struct blas_recurrent *op, int64_t first, int64_t rows, struct blas_block *blocks)
{
    int32_t count = (int32_t)((rows + op->block_rows_max - 1) / op->block_rows_max);
    for (int32_t i = 0; blocks && i < count; i++) {
        int64_t left = count - i, n = (rows + left - 1) / left;
        blocks[i].first = first;
        blocks[i].rows = n;
        first += n;
        rows -= n;
    }
    return count;
}

/* Finds the first sequence of each member: about equal shares of the rows of all steps, at least one sequence each. */
static void member_bounds(const struct blas_recurrent_binding *binding, const int32_t *sizes, int64_t *bounds)
{
    const int64_t sequences = binding->sequences, members = binding->members;
    int64_t t = binding->steps, done = 0, b = 0;
    bounds[0] = 0;
    for (int64_t m = 1; m < members; m++) {
        int64_t least = bounds[m - 1] + 1, most = sequences - (members - m);
        while (b < most && (b < least || done * members < binding->rows * m)) {
            while (t > 0 && sizes[t - 1] <= b) /* sequence b has t steps in the range */
                t--;
            done += t;
            b++;
        }
        bounds[m] = b;
    }
    bounds[members] = sequences;
}

static void plan_chunks(struct blas_recurrent_binding *binding)
{
    const struct blas_recurrent *op = binding->op;
    int64_t widest = 0;
    for (int32_t i = 0; i < binding->block_count; i++)
        if (binding->blocks[i].rows > widest)
            widest = binding->blocks[i].rows;
    binding->fused = !op->weights_large && widest > NARROW_ROWS && widest > blas_sweep_rows(op) &&
                     (!op->tile_kernels || op->tiled_steps);
    /* Products on vectors prefetch the lines of gates, so that writing past the caches gains nothing. */
    binding->puts = op->training && op->lstm && op->tiled_steps && binding->fused &&
                    blas_gates_leave(op, binding->rows / binding->members);
    int64_t wanted = blas_forward_rows(op);
    binding->chunk_rows = binding->fused ? widest : wanted > widest ? wanted : widest;
}

/* How a batch is cut: a binding without its blocks. */
struct cut {
    struct blas_recurrent_binding made;
    int64_t bounds[CPU_MEMBERS_MOST + 1]; /* first sequence of each share */
    int32_t shares;
    int64_t t0, t1; /* of the steps that are cut */
    uint64_t block_bytes, bytes;
};

static seqlstm_status cut_batch(const struct blas_recurrent *op, const struct seqlstm_queue *queue,
                                const struct seqlstm_bind *bind, struct cut *cut, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = bind->axis;
    const struct seqlstm_desc *head = &op->desc.head;
    struct blas_recurrent_binding *made = &cut->made;
    memset(cut, 0, sizeof *cut);
    /* Stepwise: all segments are cut like the whole axis, since their rows share one reserve. */
    cut->t0 = op->stepwise ? 0 : bind->t0;
    cut->t1 = op->stepwise ? axis->steps : bind->t1;
    const int32_t *sizes = axis->batch_sizes + cut->t0;
    const int64_t rows = axis->row_offsets[cut->t1] - axis->row_offsets[cut->t0];
    if (op->stepwise && (rows > head->max_rows || sizes[0] > head->max_sequences || cut->t1 > head->max_steps))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "%lld rows of %d sequences and %lld steps are more than the bounds %lld, %lld and %lld",
                     (long long)rows, sizes[0], (long long)cut->t1, (long long)head->max_rows,
                     (long long)head->max_sequences, (long long)head->max_steps);
    *made = (struct blas_recurrent_binding){
        .op = op, .axis = axis, .t0 = cut->t0, .steps = cut->t1 - cut->t0, .rows = rows, .sequences = sizes[0]};
    made->members = (int32_t)blas_min(blas_min(queue->members, op->members_max), CPU_MEMBERS_MOST);
    made->units = blas_shares_units(op, made->sequences, made->members) && made->members == queue->members;
    cut->shares = 1;
    cut->bounds[1] = made->sequences;
    if (!made->units) {
        made->members = (int32_t)blas_min(made->members, blas_min(made->sequences, blas_members_worth(op, rows)));
        cut->shares = made->members;
        member_bounds(made, sizes, cut->bounds);
    }
    for (int32_t m = 0; m < cut->shares; m++) {
        made->member_first[m] = made->block_count;
        made->block_count += cut_rows(op, cut->bounds[m], cut->bounds[m + 1] - cut->bounds[m], NULL);
        made->member_first[m + 1] = made->block_count;
    }
    cut->block_bytes = (uint64_t)made->block_count * sizeof(struct blas_block);
    cut->bytes = cut->block_bytes + (uint64_t)made->block_count * (uint64_t)(made->steps + 1) * sizeof(int64_t);
    return SEQLSTM_OK;
}

/* The binding of `cut`, whose blocks lie behind it. */
static void finish_cut(struct cut *cut, const struct seqlstm_bind *bind, uint64_t room,
                       struct blas_recurrent_binding *out)
{
    struct blas_recurrent_binding *made = &cut->made;
    char *memory = (char *)(out + 1);
    made->room = room;
    made->blocks = (struct blas_block *)(void *)memory;
    made->q_storage = (int64_t *)(void *)(memory + cut->block_bytes);
    memset(made->blocks, 0, cut->block_bytes);
    for (int32_t m = 0; m < cut->shares; m++)
        cut_rows(made->op, cut->bounds[m], cut->bounds[m + 1] - cut->bounds[m], made->blocks + made->member_first[m]);
    blocks_fill(made, bind->axis->batch_sizes + cut->t0);
    plan_chunks(made);
    made->t0 = bind->t0;
    made->steps = bind->t1 - bind->t0;
    for (int32_t i = 0; i < made->block_count; i++)
        made->blocks[i].q_of += bind->t0 - cut->t0;
    *out = *made;
}

seqlstm_status blas_recurrent_bind(const struct blas_recurrent *op, struct seqlstm_queue *queue,
                                   const struct seqlstm_bind *bind, struct blas_recurrent_binding **out_binding,
                                   struct seqlstm_error *err)
{
    struct cut cut;
    SEQLSTM_TRY(cut_batch(op, queue, bind, &cut, err));
    struct blas_recurrent_binding *binding = op->host->allocate(op->host->context, sizeof *binding + cut.bytes);
    if (!binding)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of %lld steps", (long long)cut.made.steps);
    finish_cut(&cut, bind, cut.bytes, binding);
    *out_binding = binding;
    return SEQLSTM_OK;
}

seqlstm_status blas_recurrent_rebind(struct blas_recurrent_binding *binding, struct seqlstm_queue *queue,
                                     const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    struct cut cut;
    SEQLSTM_TRY(cut_batch(binding->op, queue, bind, &cut, err));
    if (cut.bytes > binding->room)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the binding has no room for %lld steps in %d blocks",
                     (long long)cut.made.steps, cut.made.block_count);
    finish_cut(&cut, bind, binding->room, binding);
    return SEQLSTM_OK;
}

void blas_recurrent_unbind(struct blas_recurrent_binding *binding)
{
    if (binding)
        binding->op->host->release(binding->op->host->context, binding);
}

/* ---- prefetching ------------------------------------------------------------------------------------ */

static int64_t places_of(const struct blas_ahead *ahead, int64_t lines)
{
    int64_t places = 0;
    for (int32_t i = 0; i < ahead->region_count; i++)
        places += (ahead->regions[i].lines + lines - 1) / lines;
    return places;
}

static void cut(struct blas_ahead *ahead, int64_t most, int64_t lines)
{
    ahead->count = 0;
    for (int32_t i = 0; i < ahead->region_count; i++)
        for (int64_t at = 0; at < ahead->regions[i].lines && ahead->count < most; at += lines)
            ahead->places[ahead->count++] = ahead->regions[i].from + at * GROUP;
}

void blas_ahead_cut(struct blas_ahead *ahead, int64_t tiles, int64_t k)
{
    const int64_t most = blas_min(tiles, BLAS_AHEAD_PLACES);
    ahead->rate = places_of(ahead, k / 4 * BLAS_FETCH_SLOW) <= most ? BLAS_FETCH_SLOW : BLAS_FETCH_FAST;
    cut(ahead, most, k / 4 * ahead->rate);
}

void blas_ahead_spread(struct blas_ahead *ahead, int64_t slots, int64_t k)
{
    const int64_t most = blas_min(slots, BLAS_AHEAD_PLACES) / k * k;
    if (ahead->region_count == 0 || ahead->region_count > most)
        return;
    int64_t lines = 0;
    for (int32_t i = 0; i < ahead->region_count; i++)
        lines += ahead->regions[i].lines;
    lines = (lines + most - 1) / most;
    while (places_of(ahead, lines) > most)
        lines++;
    ahead->rate = (int32_t)lines;
    cut(ahead, most, lines);
    for (; ahead->count % k > 0; ahead->count++) /* a part of a product gets k places or none */
        ahead->places[ahead->count] = ahead->places[ahead->count - 1];
}

/* ---- masks ------------------------------------------------------------------------------------------- */

static void mask_rows(const struct blas_run *run, uint32_t purpose, float rate, int64_t width, int64_t width_pad,
                      float *mask)
{
    const struct seqlstm_axis *axis = run->binding->axis;
    const float scale = seqlstm_mask_scale(rate);
    uint64_t key = blas_mask_key(run->op, run->step, run->layer, run->direction, purpose);
    for (int64_t r = 0; r < run->block->rows; r++) {
        int64_t b = run->block->first + r;
        run->op->kernels->keep_bits(
            &(struct blas_keep){.key = key,
                                .steps = 1,
                                .rows = 1,
                                .sequence = axis->sequence_id + b,
                                .position0 = axis->flags & SEQLSTM_BIT_AXIS_STREAM ? axis->position0 + b : NULL,
                                .elements = width,
                                .rate = rate,
                                .bits = run->scratch.bits});
        for (int64_t i = 0; i < width_pad; i++) {
            bool keep = i < width && (run->scratch.bits[i / 16] >> (i % 16) & 1);
            mask[r * width_pad + i] = keep ? scale : 0.0f;
        }
    }
}

void blas_masks_fill(const struct blas_run *run)
{
    const struct blas_recurrent *op = run->op;
    const struct blas_recurrent_layer *layer = &op->layers[run->layer];
    if (run->member != 0)
        return;
    if (run->scratch.mask_x)
        mask_rows(run, SEQLSTM_MASK_INPUT, op->desc.dropout, layer->input, layer->input_pad, run->scratch.mask_x);
    if (run->scratch.mask_h)
        mask_rows(run, SEQLSTM_MASK_RECURRENT, op->desc.recurrent_dropout, op->out, op->out_pad, run->scratch.mask_h);
}

/* ---- scratch ------------------------------------------------------------------------------------------ */

static int64_t widest_input(const struct blas_recurrent *op)
{
    int64_t first = op->layers[0].input_pad;
    int64_t next = op->layer_count > 1 ? op->layers[1].input_pad : 0;
    return first > next ? first : next;
}

/* The columns of x~ or h~, whichever has more, in the layers whose strips are copied; 0 if there are none. */
static int64_t widest_strips(const struct blas_recurrent *op)
{
    int64_t widest = 0;
    for (int32_t l = 0; l < op->layer_count; l++) {
        const struct blas_recurrent_layer *layer = &op->layers[l];
        const int64_t columns = layer->input_pad > op->out_pad ? layer->input_pad : op->out_pad;
        if (blas_copies_strips(op, layer) && columns > widest)
            widest = columns;
    }
    return blas_round(widest, PANEL);
}

static void scratch_common(const struct blas_recurrent *op, int64_t rows, struct blas_region *region,
                           struct blas_scratch *out)
{
    const int64_t columns = (int64_t)op->panels * PANEL, up = op->units_pad;
    const int64_t input = widest_input(op);
    memset(out, 0, sizeof *out);
    /* One more vector: padded rows are read and written whole. */
    out->h = blas_region_take(region, rows * op->h_row + PANEL);
    out->c = blas_region_take(region, rows * up);
    if (op->training && op->desc.dropout > 0.0f)
        out->mask_x = blas_region_take(region, rows * input);
    if (op->training && op->desc.recurrent_dropout > 0.0f)
        out->mask_h = blas_region_take(region, rows * op->out_pad);
    int64_t widest = input > op->out_pad ? input : op->out_pad;
    out->bits = (uint16_t *)(void *)blas_region_take(region, blas_round(widest, PANEL) / 32 + 1);
    out->z = blas_region_take(region, op->norm ? rows * columns : 0);
    if (op->norm || op->gru_before)
        out->extra = blas_region_take(region, rows * (up > op->out_pad ? up : op->out_pad));
    out->product = blas_region_take(region, op->gru_before ? rows * up : 0);
    out->projected = blas_region_take(region, rows * op->h_row);
    out->sums = blas_region_take(region, op->norm ? rows * 2 * GROUP : 0);
}

void blas_scratch_forward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows, struct blas_region *region,
                          struct blas_scratch *out)
{
    const int64_t columns = (int64_t)op->panels * PANEL;
    scratch_common(op, rows, region, out);
    out->tiles = blas_region_take(region, op->tile_kernels ? blas_tiles_forward_floats(op, rows, chunk_rows) : 0);
    out->weights_x = blas_region_take(region, op->x_in_time ? widest_input(op) * PANEL : 0);
    if (op->training && op->lstm && op->tiled_steps && blas_gates_leave(op, op->desc.head.max_rows)) {
        out->gates = blas_region_take(region, rows * (op->norm ? columns : PANEL));
        out->gates_h = blas_region_take(region, op->norm ? rows * columns : 0);
    }
    if (op->training)
        return;
    int64_t xh_row = op->layers[0].xh_row;
    for (int32_t l = 1; l < op->layer_count; l++)
        xh_row = op->layers[l].xh_row > xh_row ? op->layers[l].xh_row : xh_row;
    out->xh = blas_region_take(region, 2 * chunk_rows * xh_row);
    out->gates = blas_region_take(region, chunk_rows * columns);
    out->gates_h = blas_region_take(region, op->norm ? rows * columns : 0);
    out->raw = blas_region_take(region, op->projection ? rows * op->units_pad : 0);
    out->stats = blas_region_take(region, op->norm ? rows * 4 : 0);
    out->c_stats = blas_region_take(region, op->norm && op->lstm ? rows * 2 : 0);
}

void blas_scratch_backward(const struct blas_recurrent *op, int64_t rows, int64_t chunk_rows,
                           struct blas_region *region, struct blas_scratch *out)
{
    scratch_common(op, rows, region, out);
    out->dq = blas_region_take(region, op->norm && op->lstm ? rows * op->units_pad : 0);
    out->dm = blas_region_take(region, op->projection ? rows * op->units_pad : 0);
    out->dprojected = blas_region_take(region, op->projection ? chunk_rows * op->out_pad : 0);
    out->dx = blas_region_take(region, chunk_rows * blas_stride(widest_input(op)));
    const int64_t strips = op->tile_kernels ? 0 : widest_strips(op),
                  sharing = blas_may_share_units(op) ? op->members_max : 1;
    out->strips = blas_region_take(region, chunk_rows * strips);
    if (strips && op->kernels->strips)
        out->gate_tiles = blas_region_take(region, sharing * chunk_rows * PANEL);
    out->tiles = blas_region_take(region, op->tile_kernels ? blas_tiles_backward_floats(op, rows, chunk_rows) : 0);
    out->tiles_gates = blas_region_take(region, op->tile_kernels ? blas_tiles_gates_floats(op, chunk_rows) : 0);
}
