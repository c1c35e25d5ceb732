/* SPDX-License-Identifier: Apache-2.0 */
/* The axis of a binding on the device: one block, filled at bind except for ids and positions.
 *
 *   row_offsets [T+1] | ids [B] | positions [B] | lengths [B] | batch_sizes [T] | row_sequence [R] | row_step [R] */
#include <string.h>

#include "cuda-generic/plugin.h"

struct shape {
    int64_t sequences, steps, rows;
    uint64_t ids, positions, lengths, batch_sizes, row_sequence, row_step, bytes; /* offsets */
};

static struct shape measure(const struct seqlstm_bind *bind)
{
    const struct seqlstm_axis *axis = bind->axis;
    struct shape s = {.sequences = axis->batch_sizes[bind->t0], .steps = bind->t1 - bind->t0};
    s.rows = axis->row_offsets[bind->t1] - axis->row_offsets[bind->t0];
    if (bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES) /* one row per sequence */
        s = (struct shape){.sequences = bind->rows, .steps = 1, .rows = bind->rows};
    s.ids = (uint64_t)(s.steps + 1) * 8;
    s.positions = s.ids + (uint64_t)s.sequences * 8;
    s.lengths = s.positions + (uint64_t)s.sequences * 4;
    s.batch_sizes = s.lengths + (uint64_t)s.sequences * 4;
    s.row_sequence = s.batch_sizes + (uint64_t)s.steps * 4;
    s.row_step = s.row_sequence + (uint64_t)s.rows * 4;
    s.bytes = s.row_step + (uint64_t)s.rows * 4;
    return s;
}

static void fill(const struct shape *s, const struct seqlstm_bind *bind, unsigned char *host)
{
    const struct seqlstm_axis *axis = bind->axis;
    const bool on_sequences = bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES;
    int64_t *offsets = (int64_t *)(void *)host, row = 0;
    int32_t *lengths = (int32_t *)(void *)(host + s->lengths), *sizes = (int32_t *)(void *)(host + s->batch_sizes);
    int32_t *sequence = (int32_t *)(void *)(host + s->row_sequence), *step = (int32_t *)(void *)(host + s->row_step);
    memset(lengths, 0, (size_t)s->sequences * sizeof *lengths);
    for (int64_t t = 0; t < s->steps; t++) {
        sizes[t] = on_sequences ? (int32_t)s->sequences : axis->batch_sizes[bind->t0 + t];
        offsets[t] = row;
        for (int32_t b = 0; b < sizes[t]; b++, row++) {
            sequence[row] = b;
            step[row] = (int32_t)t;
            lengths[b]++;
        }
    }
    offsets[s->steps] = row;
}

/* Does the host keep copies of ids and positions on the device? */
static bool has_copies(const struct seqlstm_axis *axis)
{
    return SEQLSTM_HAS(axis, device_position0) && axis->device_sequence_id && axis->device_position0;
}

seqlstm_status cg_axis_open(struct cg_bound_axis *axis, const struct seqlstm_op *op, const struct seqlstm_bind *bind,
                            void *stream, struct seqlstm_error *err)
{
    const struct seqlstm_host *services = &op->instance->domain.host;
    const struct shape s = measure(bind);
    void *block = NULL;
    const bool given = has_copies(bind->axis);
    if (!given)
        axis->staging = services->allocate(services->context, s.lengths - s.ids);
    unsigned char *host = services->allocate(services->context, s.bytes);
    if ((!given && axis->staging == NULL) || host == NULL) {
        services->release(services->context, host);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the axis of a binding");
    }
    memset(host, 0, s.bytes);
    fill(&s, bind, host);
    seqlstm_status status = cg_blocks_take(op->instance->blocks, op->ordinal, stream, s.bytes, &block, err);
    axis->block = block;
    axis->bytes = s.bytes;
    if (status == SEQLSTM_OK)
        status = gpu_copy(op->ordinal, stream, SEQLSTM_COPY_TO_DEVICE, block, host, s.bytes, err);
    services->release(services->context, host);
    if (status != SEQLSTM_OK)
        return status;
    axis->device = (struct cg_axis){
        .sequences = s.sequences,
        .steps = s.steps,
        .rows = s.rows,
        .t0 = (uint32_t)bind->t0,
        .row_offsets = (const int64_t *)block,
        .sequence_id = (const uint64_t *)(const void *)(axis->block + s.ids),
        .position0 = (const uint32_t *)(const void *)(axis->block + s.positions),
        .lengths = (const int32_t *)(const void *)(axis->block + s.lengths),
        .batch_sizes = (const int32_t *)(const void *)(axis->block + s.batch_sizes),
        .row_sequence = (const int32_t *)(const void *)(axis->block + s.row_sequence),
        .row_step = (const int32_t *)(const void *)(axis->block + s.row_step),
    };
    if (given) {
        axis->device.sequence_id = bind->axis->device_sequence_id;
        axis->device.position0 = bind->axis->device_position0;
    }
    return SEQLSTM_OK;
}

void cg_axis_close(struct cg_bound_axis *axis, const struct seqlstm_op *op, void *stream)
{
    const struct seqlstm_host *services = &op->instance->domain.host;
    services->release(services->context, axis->staging);
    cg_blocks_give(op->instance->blocks, op->ordinal, stream, axis->bytes, axis->block);
}

seqlstm_status cg_axis_renew(struct cg_bound_axis *axis, const struct seqlstm_op *op, const struct seqlstm_axis *host,
                             void *stream, struct seqlstm_error *err)
{
    const size_t ids = (size_t)axis->device.sequences * 8, positions = (size_t)axis->device.sequences * 4;
    axis->device.stream = host->flags & SEQLSTM_BIT_AXIS_STREAM ? 1 : 0;
    if (axis->staging == NULL)
        return SEQLSTM_OK;
    memcpy(axis->staging, host->sequence_id, ids);
    memcpy(axis->staging + ids, host->position0, positions);
    return gpu_copy(op->ordinal, stream, SEQLSTM_COPY_TO_DEVICE, (void *)(uintptr_t)axis->device.sequence_id,
                    axis->staging, ids + positions, err);
}
