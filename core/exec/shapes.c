/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings by shape. A shape is the list of lengths (and the number of sequences); ids and positions are copied
 * into it at every run. The least recently used shape makes room for a new one. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "exec/exec_private.h"

static uint64_t hash_shape(const struct sl_batch *batch)
{
    uint64_t hash = sl_hash_combine((uint64_t)batch->sequences, (uint64_t)batch->axis.rows);
    if (batch->axis.steps > 0)
        hash = sl_hash_bytes(batch->axis.lengths, (size_t)batch->axis.sequences * sizeof(int32_t), hash);
    return hash;
}

static bool matches(const struct sl_exec_shape *shape, const struct sl_batch *batch, uint64_t hash)
{
    return shape->used && shape->hash == hash && shape->sequences == batch->sequences &&
           shape->steps.sequences == batch->axis.sequences && shape->steps.rows == batch->axis.rows &&
           (batch->axis.steps == 0 ||
            memcmp(shape->steps.lengths, batch->axis.lengths,
                   (size_t)batch->axis.sequences * sizeof(int32_t)) == 0);
}

static void release(struct sl_exec *exec, struct sl_exec_shape *shape)
{
    for (int32_t c = 0; shape->bindings && c < exec->plan->call_count; c++) {
        if (shape->bindings[c])
            sl_backend_get_table(exec->plan->calls[c].backend)->binding_destroy(shape->bindings[c]);
        shape->bindings[c] = NULL;
    }
    shape->used = false;
}

void sl_exec_unbind_all(struct sl_exec *exec)
{
    for (int s = 0; s < SL_EXEC_SHAPES; s++) {
        release(exec, &exec->shapes[s]);
        free(exec->shapes[s].bindings);
        sl_memory_free(exec->memory, exec->shapes[s].storage);
    }
}

/* Room for the arrays of both axes:
 *   row_offsets [T+1] | ids [N] | positions [N] | lengths [N] | batch_sizes [T] || row_offsets [2] | ones [N] | N */
static seqlstm_status copy_axes(struct sl_exec *exec, struct sl_exec_shape *shape, const struct sl_batch *batch,
                                struct seqlstm_error *err)
{
    int64_t n = batch->sequences, steps = batch->axis.steps;
    int64_t bytes = 8 * (steps + 1) + 8 * n + 4 * n + 4 * n + 4 * (steps + 1) + 8 * 2 + 4 * n + 4 + 64;
    if (bytes > shape->capacity_bytes) {
        sl_memory_free(exec->memory, shape->storage);
        shape->capacity_bytes = 0;
        shape->storage = sl_memory_alloc(exec->memory, (size_t)(2 * bytes));
        if (shape->storage == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shape of a batch");
        shape->capacity_bytes = 2 * bytes;
    }
    int64_t *row_offsets = shape->storage;
    uint64_t *ids = (uint64_t *)(row_offsets + steps + 1);
    int64_t *one_offsets = (int64_t *)(ids + n);
    uint32_t *positions = (uint32_t *)(one_offsets + 2);
    int32_t *lengths = (int32_t *)(positions + n);
    int32_t *batch_sizes = lengths + n;
    int32_t *ones = batch_sizes + steps + 1;
    int32_t *all = ones + n;
    memset(row_offsets, 0, 8);
    if (steps > 0) {
        memcpy(row_offsets, batch->axis.row_offsets, (size_t)(steps + 1) * 8);
        memcpy(batch_sizes, batch->axis.batch_sizes, (size_t)steps * 4);
        memcpy(lengths, batch->axis.lengths, (size_t)n * 4);
    }
    for (int64_t k = 0; k < n; k++)
        ones[k] = 1;
    all[0] = (int32_t)n;
    one_offsets[0] = 0;
    one_offsets[1] = n;
    shape->steps = batch->axis;
    shape->steps.lengths = lengths;
    shape->steps.batch_sizes = batch_sizes;
    shape->steps.row_offsets = row_offsets;
    shape->steps.sequence_id = ids;
    shape->steps.position0 = positions;
    shape->rows = (struct seqlstm_axis){.struct_size = sizeof(struct seqlstm_axis),
                                        .flags = SEQLSTM_AXIS_UNIFORM,
                                        .sequences = n, .steps = 1, .rows = n,
                                        .lengths = ones, .batch_sizes = all,
                                        .row_offsets = one_offsets,
                                        .sequence_id = ids, .position0 = positions};
    shape->sequences = n;
    return SEQLSTM_OK;
}

static seqlstm_status bind_call(struct sl_exec *exec, struct sl_exec_shape *shape, int32_t c,
                                struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    bool on_steps = exec->calls[c].axis == SL_AXIS_STEPS;
    const struct seqlstm_axis *axis = on_steps ? &shape->steps : &shape->rows;
    if (axis->rows == 0)
        return SEQLSTM_OK; /* never called */
    struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                .flags = on_steps ? 0 : SEQLSTM_BIND_ON_SEQUENCES,
                                .rows = axis->rows, .rows_in = axis->rows,
                                .axis = axis, .t0 = 0, .t1 = axis->steps};
    struct sl_domain *domain = exec->places[exec->calls[c].place].domain;
    seqlstm_status status = sl_backend_get_table(call->backend)
                                ->op_bind(call->op, &domain->queue.queue, &bind, &shape->bindings[c], err);
    return status == SEQLSTM_OK ? status : sl_exec_blame(call, status, err);
}

static struct sl_exec_shape *find_oldest(struct sl_exec *exec)
{
    struct sl_exec_shape *oldest = &exec->shapes[0];
    for (int s = 1; s < SL_EXEC_SHAPES; s++)
        if (oldest->used && (!exec->shapes[s].used || exec->shapes[s].last_use < oldest->last_use))
            oldest = &exec->shapes[s];
    return oldest;
}

seqlstm_status sl_exec_bind(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    uint64_t hash = hash_shape(batch);
    struct sl_exec_shape *shape = NULL;
    for (int s = 0; s < SL_EXEC_SHAPES && shape == NULL; s++)
        if (matches(&exec->shapes[s], batch, hash))
            shape = &exec->shapes[s];
    if (shape == NULL) {
        shape = find_oldest(exec);
        release(exec, shape);
        if (shape->bindings == NULL)
            shape->bindings = calloc((size_t)exec->plan->call_count + 1, sizeof(void *));
        if (shape->bindings == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the shape of a batch");
        SEQLSTM_TRY(copy_axes(exec, shape, batch, err));
        for (int32_t c = 0; c < exec->plan->call_count; c++) {
            seqlstm_status status = bind_call(exec, shape, c, err);
            if (status != SEQLSTM_OK) {
                release(exec, shape);
                return status;
            }
        }
        shape->used = true;
        shape->hash = hash;
    }
    shape->last_use = ++exec->clock;
    shape->steps.flags = batch->axis.flags;
    shape->rows.flags = SEQLSTM_AXIS_UNIFORM | (batch->axis.flags & SEQLSTM_AXIS_STREAM);
    memcpy((void *)shape->steps.sequence_id, batch->axis.sequence_id, (size_t)batch->sequences * 8);
    memcpy((void *)shape->steps.position0, batch->axis.position0, (size_t)batch->sequences * 4);
    exec->shape = shape;
    exec->batch = batch;
    return SEQLSTM_OK;
}
