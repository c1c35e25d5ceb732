/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings by shape. A shape is the list of lengths (and the number of sequences); ids and positions are copied into it
 * at every run. A new shape replaces the least recently used one. */
#include "exec/shape/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "base/batch/pieces.h"
#include "base/system/trace.h"
#include "base/value/hash.h"
#include "registry/plugin.h"
#include "dispatch/plan/blame.h"
#include "exec/capture/capture.h"
#include "exec/shape/indices.h"
#include "exec/capture/frame.h"
#include "exec/rows.h"

static uint64_t hash_axis(const struct seqlstm_axis *axis, uint64_t hash)
{
    hash = sl_hash_combine(hash, (uint64_t)axis->rows);
    return axis->steps > 0 ? sl_hash_bytes(axis->lengths, (size_t)axis->sequences * sizeof(int32_t), hash) : hash;
}

static uint64_t hash_shape(const struct sl_batch *batch)
{
    return hash_axis(&batch->source.axis, hash_axis(&batch->axis, (uint64_t)batch->sequences));
}

static bool is_equal(const struct seqlstm_axis *a, const struct seqlstm_axis *b)
{
    return a->sequences == b->sequences && a->rows == b->rows &&
           (a->steps == 0 || memcmp(a->lengths, b->lengths, (size_t)a->sequences * sizeof(int32_t)) == 0);
}

static bool matches(const struct sl_exec_shape *shape, const struct sl_batch *batch, uint64_t hash)
{
    return shape->used && shape->hash == hash && shape->sequences == batch->sequences &&
           is_equal(&shape->sides[SL_EXEC_TARGET].steps, &batch->axis) &&
           is_equal(&shape->sides[SL_EXEC_SOURCE].steps, &batch->source.axis);
}

static void release_loop(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    int32_t width = exec->loop.end - exec->loop.first;
    for (int64_t k = 0; k < shape->step_binding_count; k++)
        if (shape->step_bindings[k])
            sl_plugin_destroy_binding(sl_backend_get_table(exec->plan->calls[exec->loop.first + k % width].backend),
                                      shape->step_bindings[k]);
    free(shape->step_bindings);
    shape->step_bindings = NULL;
    shape->step_binding_count = 0;
}

static void release_pieces(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    const int32_t calls = exec->plan->call_count;
    for (int64_t k = 0; k < (int64_t)shape->piece_count * calls; k++)
        if (shape->piece_bindings[k])
            sl_plugin_destroy_binding(sl_backend_get_table(exec->plan->calls[k % calls].backend),
                                      shape->piece_bindings[k]);
    free(shape->piece_bindings);
    free(shape->piece_bounds);
    shape->piece_bindings = NULL;
    shape->piece_bounds = NULL;
    shape->piece_count = 0;
}

static void release_call(struct sl_exec *exec, struct sl_exec_shape *shape, int32_t c)
{
    if (shape->bindings[c])
        sl_plugin_destroy_binding(sl_backend_get_table(exec->plan->calls[c].backend), shape->bindings[c]);
    shape->bindings[c] = NULL;
}

/* All but the bindings of whole calls that another shape can take over. The others go while their axis is there. */
static void clear(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    for (int32_t c = 0; shape->bindings && c < exec->plan->call_count; c++)
        if (exec->calls[c].rebind == NULL)
            release_call(exec, shape, c);
    sl_exec_drop_captures(exec, shape);
    release_loop(exec, shape);
    release_pieces(exec, shape);
    shape->used = shape->ran = false;
    shape->uses = 0;
}

static void release(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    for (int32_t c = 0; shape->bindings && c < exec->plan->call_count; c++)
        release_call(exec, shape, c);
    clear(exec, shape);
}

void sl_exec_unbind_all(struct sl_exec *exec)
{
    for (int s = 0; s < SL_EXEC_SHAPES; s++) {
        release(exec, &exec->shapes[s]);
        free(exec->shapes[s].bindings);
        for (int side = 0; side < SL_EXEC_SIDES; side++)
            sl_memory_free(exec->memory, exec->shapes[s].sides[side].storage);
    }
}

/* Room for the arrays of both axes:
 *   row_offsets [T+1] | ids [N] | positions [N] | lengths [N] | batch_sizes [T] || row_offsets [2] | ones [N] | N */
static seqlstm_status copy_axes(struct sl_exec *exec, struct sl_exec_axes *axes, const struct seqlstm_axis *from,
                                int64_t n, struct seqlstm_error *err)
{
    int64_t steps = from->steps;
    int64_t bytes = 8 * (steps + 1) + 8 * n + 4 * n + 4 * n + 4 * (steps + 1) + 8 * 2 + 4 * n + 4 + 64;
    if (bytes > axes->capacity_bytes) {
        sl_memory_free(exec->memory, axes->storage);
        axes->capacity_bytes = 0;
        axes->storage = sl_memory_alloc(exec->memory, (size_t)(2 * bytes));
        if (axes->storage == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shape of a batch");
        axes->capacity_bytes = 2 * bytes;
    }
    int64_t *row_offsets = axes->storage;
    uint64_t *ids = (uint64_t *)(row_offsets + steps + 1);
    int64_t *one_offsets = (int64_t *)(ids + n);
    uint32_t *positions = (uint32_t *)(one_offsets + 2);
    int32_t *lengths = (int32_t *)(positions + n);
    int32_t *batch_sizes = lengths + n;
    int32_t *ones = batch_sizes + steps + 1;
    int32_t *all = ones + n;
    memset(row_offsets, 0, 8);
    if (steps > 0) {
        memcpy(row_offsets, from->row_offsets, (size_t)(steps + 1) * 8);
        memcpy(batch_sizes, from->batch_sizes, (size_t)steps * 4);
        memcpy(lengths, from->lengths, (size_t)from->sequences * 4);
    }
    for (int64_t k = 0; k < n; k++)
        ones[k] = 1;
    all[0] = (int32_t)n;
    one_offsets[0] = 0;
    one_offsets[1] = n;
    axes->steps = *from;
    axes->steps.lengths = lengths;
    axes->steps.batch_sizes = batch_sizes;
    axes->steps.row_offsets = row_offsets;
    axes->steps.sequence_id = ids;
    axes->steps.position0 = positions;
    axes->steps.device_sequence_id = NULL;
    axes->steps.device_position0 = NULL;
    axes->id_count = n;
    memset(ids, 0, (size_t)n * sizeof *ids);
    memset(positions, 0, (size_t)n * sizeof *positions);
    axes->rows = (struct seqlstm_axis){.struct_size = sizeof(struct seqlstm_axis),
                                       .flags = SEQLSTM_BIT_AXIS_UNIFORM,
                                       .sequences = n,
                                       .steps = 1,
                                       .rows = n,
                                       .lengths = ones,
                                       .batch_sizes = all,
                                       .row_offsets = one_offsets,
                                       .sequence_id = ids,
                                       .position0 = positions};
    return SEQLSTM_OK;
}

static bool is_in_stage(const struct sl_exec *exec, int32_t c)
{
    return c >= exec->stage.first && c < exec->stage.end;
}

/* Gives the binding of the shape that was here before the new shape. Whatever the reason why it cannot, another binding
 * is made. */
static bool is_rebound(struct sl_exec *exec, struct sl_exec_shape *shape, int32_t c, struct seqlstm_queue *queue,
                       const struct seqlstm_bind *bind)
{
    struct seqlstm_error ignored = SEQLSTM_ERROR_INIT;
    const struct seqlstm_rebind *extension = exec->calls[c].rebind;
    return extension && shape->bindings[c] &&
           sl_plugin_rebind(sl_backend_get_table(exec->plan->calls[c].backend), extension, shape->bindings[c], queue,
                            bind, &ignored) == SEQLSTM_OK;
}

static seqlstm_status bind_call(struct sl_exec *exec, struct sl_exec_shape *shape, int32_t c, struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    bool on_steps = sl_axis_is_steps(exec->calls[c].axis);
    const struct seqlstm_axis *axis = sl_exec_get_axis(shape, exec->calls[c].axis);
    bool loops = c >= exec->loop.first && c < exec->loop.end;
    bool pieced = shape->piece_count > 0 && exec->units[c].pieced;
    if (!is_in_stage(exec, c) || axis->rows == 0 || ((loops || pieced) && !exec->calls[c].gathers_weights)) {
        release_call(exec, shape, c); /* never called here */
        return SEQLSTM_OK;
    }
    struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                .flags = on_steps ? 0 : SEQLSTM_BIT_BIND_ON_SEQUENCES,
                                .rows = axis->rows,
                                .rows_in = sl_exec_get_rows_in(exec, shape, c, axis->rows),
                                .axis = axis,
                                .t0 = 0,
                                .t1 = axis->steps};
    struct sl_domain *domain = exec->places[exec->calls[c].place].domain;
    if (is_rebound(exec, shape, c, &domain->queue.queue, &bind))
        return SEQLSTM_OK;
    release_call(exec, shape, c);
    seqlstm_status status = sl_plugin_bind(sl_backend_get_table(call->backend), call->op, &domain->queue.queue, &bind,
                                           &shape->bindings[c], err);
    return status == SEQLSTM_OK ? status : sl_plan_blame(call, SL_FUNCTION_OP_BIND, status, err);
}

/* Bindings of the loop's calls for every step of a shape. */
static seqlstm_status bind_loop(struct sl_exec *exec, struct sl_exec_shape *shape, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = sl_exec_get_axis(shape, SL_AXIS_STEPS);
    int32_t width = exec->loop.end - exec->loop.first;
    int64_t count = axis->rows > 0 ? axis->steps * width : 0;
    if (count == 0 || !is_in_stage(exec, exec->loop.first))
        return SEQLSTM_OK;
    shape->step_bindings = calloc((size_t)count, sizeof *shape->step_bindings);
    if (shape->step_bindings == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shape of a batch");
    shape->step_binding_count = count;
    for (int64_t k = 0; k < count; k++) {
        int32_t c = exec->loop.first + (int32_t)(k % width);
        const struct sl_call *call = &exec->plan->calls[c];
        int64_t t = k / width, rows = axis->batch_sizes[t];
        struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                    .rows = rows,
                                    .rows_in = sl_exec_get_rows_in(exec, shape, c, rows),
                                    .axis = axis,
                                    .t0 = t,
                                    .t1 = t + 1};
        struct seqlstm_queue *queue = &exec->places[exec->calls[c].place].domain->queue.queue;
        seqlstm_status status =
            sl_plugin_bind(sl_backend_get_table(call->backend), call->op, queue, &bind, &shape->step_bindings[k], err);
        if (status != SEQLSTM_OK)
            return sl_plan_blame(call, SL_FUNCTION_OP_BIND, status, err);
    }
    return SEQLSTM_OK;
}

/* Bindings of the calls that run in pieces, for each piece of a shape. */
static seqlstm_status bind_pieces(struct sl_exec *exec, struct sl_exec_shape *shape, struct seqlstm_error *err)
{
    const struct seqlstm_axis *axis = sl_exec_get_axis(shape, SL_AXIS_STEPS);
    const int32_t calls = exec->plan->call_count;
    if (shape->piece_count == 0)
        return SEQLSTM_OK;
    for (int64_t k = 0; k < (int64_t)shape->piece_count * calls; k++) {
        const int32_t c = (int32_t)(k % calls);
        const struct sl_call *call = &exec->plan->calls[c];
        const int64_t t0 = shape->piece_bounds[k / calls], t1 = shape->piece_bounds[k / calls + 1];
        const int64_t rows = axis->row_offsets[t1] - axis->row_offsets[t0];
        const struct seqlstm_bind bind = {
            .struct_size = sizeof bind, .rows = rows, .rows_in = rows, .axis = axis, .t0 = t0, .t1 = t1};
        if (!exec->units[c].pieced || !is_in_stage(exec, c))
            continue;
        struct seqlstm_queue *queue = &exec->places[exec->calls[c].place].domain->queue.queue;
        const seqlstm_status status =
            sl_plugin_bind(sl_backend_get_table(call->backend), call->op, queue, &bind, &shape->piece_bindings[k], err);
        if (status != SEQLSTM_OK)
            return sl_plan_blame(call, SL_FUNCTION_OP_BIND, status, err);
    }
    return SEQLSTM_OK;
}

/* Cuts the steps of a new shape. */
static seqlstm_status cut_pieces(const struct sl_exec *exec, struct sl_exec_shape *shape, struct seqlstm_error *err)
{
    const int32_t pieces = exec->pieces.count;
    if (exec->graph->pieces == 0)
        return SEQLSTM_OK;
    shape->piece_bounds = calloc((size_t)pieces + 1, sizeof *shape->piece_bounds);
    shape->piece_bindings = calloc((size_t)pieces * (size_t)exec->plan->call_count + 1, sizeof *shape->piece_bindings);
    if (!shape->piece_bounds || !shape->piece_bindings)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shape of a batch");
    shape->piece_count = sl_steps_cut(sl_exec_get_axis(shape, SL_AXIS_STEPS), pieces, shape->piece_bounds);
    return SEQLSTM_OK;
}

/* A call that writes beyond its buffers nearly always does so whenever it has that shape. */
enum { FENCED_FIRST = 4, FENCED_LATER = 8 };

static struct sl_exec_shape *find_oldest(struct sl_exec *exec)
{
    struct sl_exec_shape *oldest = &exec->shapes[0];
    for (int s = 1; s < SL_EXEC_SHAPES; s++)
        if (oldest->used && (!exec->shapes[s].used || exec->shapes[s].last_use < oldest->last_use))
            oldest = &exec->shapes[s];
    return oldest;
}

static struct sl_exec_shape *find(struct sl_exec *exec, const struct sl_batch *batch, uint64_t hash)
{
    for (int s = 0; s < SL_EXEC_SHAPES; s++)
        if (matches(&exec->shapes[s], batch, hash))
            return &exec->shapes[s];
    return NULL;
}

const struct sl_exec_shape *sl_exec_find_shape(const struct sl_exec *exec, const struct sl_batch *batch)
{
    return find((struct sl_exec *)exec, batch, hash_shape(batch));
}

/* Copies what differs between batches of one shape. */
static void copy_ids(struct sl_exec_axes *axes, const struct seqlstm_axis *from, int64_t n)
{
    axes->steps.flags = from->flags;
    axes->rows.flags = SEQLSTM_BIT_AXIS_UNIFORM | (from->flags & SEQLSTM_BIT_AXIS_STREAM);
    memcpy((void *)axes->steps.sequence_id, from->sequence_id, (size_t)n * 8);
    memcpy((void *)axes->steps.position0, from->position0, (size_t)n * 4);
}

/* How many sequences the source has: hypotheses of a decoder share sources, so not as many as the target. */
static int64_t count_sources(const struct sl_batch *batch)
{
    return batch->source.present ? batch->source.sequences : batch->sequences;
}

static seqlstm_status bind_calls(struct sl_exec *exec, struct sl_exec_shape *shape, const struct sl_batch *batch,
                                 struct seqlstm_error *err)
{
    SEQLSTM_TRY(copy_axes(exec, &shape->sides[SL_EXEC_TARGET], &batch->axis, batch->sequences, err));
    SEQLSTM_TRY(copy_axes(exec, &shape->sides[SL_EXEC_SOURCE], &batch->source.axis, count_sources(batch), err));
    sl_exec_attach_live(exec, shape);
    SEQLSTM_TRY(cut_pieces(exec, shape, err));
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        SEQLSTM_TRY(bind_call(exec, shape, c, err));
    SEQLSTM_TRY(bind_loop(exec, shape, err));
    return bind_pieces(exec, shape, err);
}

/* Makes a shape in place of the oldest one. */
static seqlstm_status replace_oldest(struct sl_exec *exec, const struct sl_batch *batch, uint64_t hash,
                                     struct sl_exec_shape **out_shape, struct seqlstm_error *err)
{
    struct sl_exec_shape *shape = find_oldest(exec);
    clear(exec, shape);
    if (shape->bindings == NULL)
        shape->bindings = calloc((size_t)exec->plan->call_count + 1, sizeof(void *));
    if (shape->bindings == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shape of a batch");
    shape->sequences = batch->sequences;
    const seqlstm_status status = bind_calls(exec, shape, batch, err);
    if (status != SEQLSTM_OK) {
        release(exec, shape);
        return status;
    }
    shape->used = true;
    shape->hash = hash;
    shape->last_use = ++exec->clock;
    *out_shape = shape;
    return SEQLSTM_OK;
}

static seqlstm_status make_shape(struct sl_exec *exec, const struct sl_batch *batch, uint64_t hash,
                                 struct sl_exec_shape **out_shape, struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_BIND, "new shape of batch");
    const seqlstm_status status = replace_oldest(exec, batch, hash, out_shape, err);
    sl_trace_end(begin, SL_ACTIVITY_BIND, "new shape of batch", NULL, batch->axis.rows);
    return status;
}

seqlstm_status sl_exec_prepare_shape(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    const uint64_t hash = hash_shape(batch);
    struct sl_exec_shape *shape;
    return find(exec, batch, hash) ? SEQLSTM_OK : make_shape(exec, batch, hash, &shape, err);
}

seqlstm_status sl_exec_bind(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    const uint64_t hash = hash_shape(batch);
    struct sl_exec_shape *shape = find(exec, batch, hash);
    if (shape == NULL)
        SEQLSTM_TRY(make_shape(exec, batch, hash, &shape, err));
    shape->last_use = ++exec->clock;
    exec->runs++;
    copy_ids(&shape->sides[SL_EXEC_TARGET], &batch->axis, batch->sequences);
    if (batch->source.present)
        copy_ids(&shape->sides[SL_EXEC_SOURCE], &batch->source.axis, count_sources(batch));
    sl_exec_fill_indices(exec, batch);
    shape->uses++;
    exec->is_fenced = shape->uses <= FENCED_FIRST || shape->uses % FENCED_LATER == 0;
    exec->shape = shape;
    exec->batch = batch;
    return SEQLSTM_OK;
}
