/* SPDX-License-Identifier: Apache-2.0 */
/* Packed batches: one allocation, arrays behind the struct in the order of `layout`. */
#include "base/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Byte offsets of the arrays from the start of the allocation. */
struct layout {
    size_t row_offsets, sequence_id, sample, sample_step, lengths, batch_sizes, position0, input, target, weight;
    size_t total_bytes;
    int64_t alive, steps, rows;
};

/* Appends count * element_bytes at the next multiple of the contract's alignment. */
static bool
append(size_t *total_bytes, int64_t count, size_t element_bytes, size_t *out_offset)
{
    size_t elements, bytes;
    if (!sl_checked_round_up_size(*total_bytes, SEQLSTM_ALIGNMENT, out_offset) ||
        !sl_checked_i64_to_size(count, &elements) || !sl_checked_mul_size(elements, element_bytes, &bytes))
        return false;
    return sl_checked_add_size(*out_offset, bytes, total_bytes);
}

static bool
append_field(struct layout *l, enum sl_field_kind kind, bool on_steps, int64_t sequences, int64_t features,
             size_t *out_offset)
{
    int64_t values;
    const int64_t rows = kind == SL_FIELD_NONE ? 0 : on_steps ? l->rows : sequences;
    if (!sl_checked_mul_i64(rows, kind == SL_FIELD_VALUES ? features : 1, &values))
        return false;
    return append(&l->total_bytes, values, 4, out_offset);
}

static seqlstm_status
measure(const struct sl_batch_shape *s, struct layout *l, struct seqlstm_error *err)
{
    *l = (struct layout){.total_bytes = sizeof(struct sl_batch)};
    for (int64_t k = 0; s->lengths && k < s->sequences; k++) {
        if (s->lengths[k] < 0 || (k > 0 && s->lengths[k] > s->lengths[k - 1]))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "length %lld of the batch is %d, expected lengths that do not increase and are not negative",
                         (long long)k, s->lengths[k]);
        l->alive += s->lengths[k] > 0;
        l->rows += s->lengths[k];
    }
    l->steps = s->lengths && s->sequences > 0 ? s->lengths[0] : 0;
    size_t *total = &l->total_bytes;
    if (!append(total, l->steps + 1, 8, &l->row_offsets) || !append(total, s->sequences, 8, &l->sequence_id) ||
        !append(total, s->sequences, 8, &l->sample) || !append(total, s->sequences, 8, &l->sample_step) ||
        !append(total, s->sequences, 4, &l->lengths) || !append(total, l->steps, 4, &l->batch_sizes) ||
        !append(total, s->sequences, 4, &l->position0) ||
        !append_field(l, s->input_kind, s->input_on_steps, s->sequences, s->input_features, &l->input) ||
        !append_field(l, s->target_kind, s->target_on_steps, s->sequences, s->target_features, &l->target) ||
        !append_field(l, s->has_weight ? SL_FIELD_VALUES : SL_FIELD_NONE, s->target_on_steps, s->sequences, 1,
                      &l->weight) ||
        !sl_checked_round_up_size(*total, SEQLSTM_ALIGNMENT, total))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "a batch of %lld sequences and %lld rows is too large for memory",
                     (long long)s->sequences, (long long)l->rows);
    return SEQLSTM_OK;
}

static seqlstm_status
check_field(const char *name, enum sl_field_kind kind, bool on_steps, int64_t features, bool has_steps,
            struct seqlstm_error *err)
{
    if (kind == SL_FIELD_VALUES && features < 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s of the batch has %lld features, expected at least 1", name,
                     (long long)features);
    if (kind != SL_FIELD_NONE && on_steps && !has_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s of the batch is on the steps axis, but there are no lengths",
                     name);
    return SEQLSTM_OK;
}

/* lengths -> batch_sizes and row_offsets. Sequence b is alive at step t iff lengths[b] > t. */
static void
fill_axis(struct sl_batch *batch, const struct sl_batch_shape *s, const struct layout *l)
{
    char *base = (char *)batch;
    int32_t *lengths = (int32_t *)(void *)(base + l->lengths);
    int32_t *batch_sizes = (int32_t *)(void *)(base + l->batch_sizes);
    int64_t *row_offsets = (int64_t *)(void *)(base + l->row_offsets);
    if (s->sequences > 0)
        memcpy(lengths, s->lengths, (size_t)s->sequences * sizeof *lengths);
    int64_t alive = l->alive;
    for (int64_t t = 0; t < l->steps; t++) {
        while (alive > 0 && lengths[alive - 1] <= t)
            alive--;
        batch_sizes[t] = (int32_t)alive;
        row_offsets[t + 1] = row_offsets[t] + alive;
    }
    batch->axis = (struct seqlstm_axis){
        .struct_size = (uint32_t)sizeof(struct seqlstm_axis),
        .flags = l->alive > 0 && lengths[l->alive - 1] == l->steps ? SEQLSTM_AXIS_UNIFORM : 0,
        .sequences = l->alive,
        .steps = l->steps,
        .rows = l->rows,
        .lengths = lengths,
        .batch_sizes = batch_sizes,
        .row_offsets = row_offsets,
        .sequence_id = (uint64_t *)(void *)(base + l->sequence_id),
        .position0 = (uint32_t *)(void *)(base + l->position0),
    };
}

static struct sl_field
make_field(char *base, size_t offset, enum sl_field_kind kind, bool on_steps, int64_t features)
{
    struct sl_field field = {.kind = kind, .on_steps = kind != SL_FIELD_NONE && on_steps};
    if (kind == SL_FIELD_NONE)
        return field;
    field.features = kind == SL_FIELD_IDS ? 1 : features;
    if (kind == SL_FIELD_IDS)
        field.ids = (int32_t *)(void *)(base + offset);
    else
        field.values = (float *)(void *)(base + offset);
    return field;
}

seqlstm_status
sl_batch_create(const struct sl_batch_shape *shape, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const bool has_steps = shape->lengths != NULL;
    if (shape->sequences < 0 || shape->sequences > INT32_MAX)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a batch of %lld sequences, expected 0 to %d",
                     (long long)shape->sequences, INT32_MAX);
    SEQLSTM_TRY(check_field("the input", shape->input_kind, shape->input_on_steps, shape->input_features, has_steps,
                            err));
    SEQLSTM_TRY(check_field("the target", shape->target_kind, shape->target_on_steps, shape->target_features,
                            has_steps, err));
    struct layout l;
    SEQLSTM_TRY(measure(shape, &l, err));
    char *base = aligned_alloc(SEQLSTM_ALIGNMENT, l.total_bytes);
    if (!base)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batch of %zu bytes", l.total_bytes);
    memset(base, 0, l.total_bytes);
    struct sl_batch *batch = (struct sl_batch *)(void *)base;
    batch->storage = base;
    batch->has_steps = has_steps;
    batch->sequences = shape->sequences;
    if (has_steps)
        fill_axis(batch, shape, &l);
    else
        batch->axis = (struct seqlstm_axis){
            .struct_size = (uint32_t)sizeof(struct seqlstm_axis),
            .lengths = (int32_t *)(void *)(base + l.lengths),
            .batch_sizes = (int32_t *)(void *)(base + l.batch_sizes),
            .row_offsets = (int64_t *)(void *)(base + l.row_offsets),
            .sequence_id = (uint64_t *)(void *)(base + l.sequence_id),
            .position0 = (uint32_t *)(void *)(base + l.position0),
        };
    batch->input = make_field(base, l.input, shape->input_kind, shape->input_on_steps, shape->input_features);
    batch->target = make_field(base, l.target, shape->target_kind, shape->target_on_steps, shape->target_features);
    batch->weight = make_field(base, l.weight, shape->has_weight ? SL_FIELD_VALUES : SL_FIELD_NONE,
                               shape->target_on_steps, 1);
    batch->sample = (int64_t *)(void *)(base + l.sample);
    batch->sample_step = (int64_t *)(void *)(base + l.sample_step);
    *out_batch = batch;
    return SEQLSTM_OK;
}

void
sl_batch_destroy(struct sl_batch *batch)
{
    if (batch)
        free(batch->storage);
}

seqlstm_status
sl_batch_check(const struct sl_batch *batch, struct seqlstm_error *err)
{
    const struct seqlstm_axis *a = &batch->axis;
    if (a->sequences > batch->sequences || (batch->has_steps ? 0 : a->steps != 0))
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the axis has %lld sequences and %lld steps, the batch %lld sequences",
                     (long long)a->sequences, (long long)a->steps, (long long)batch->sequences);
    for (int64_t k = 0; batch->has_steps && k < batch->sequences; k++)
        if ((k < a->sequences) != (a->lengths[k] > 0) || (k > 0 && a->lengths[k] > a->lengths[k - 1]))
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "length %lld of the axis is %d, which is out of order", (long long)k,
                         a->lengths[k]);
    int64_t rows = 0;
    for (int64_t t = 0; t < a->steps; t++) {
        int64_t alive = 0;
        while (alive < a->sequences && a->lengths[alive] > t)
            alive++;
        if (a->row_offsets[t] != rows || a->batch_sizes[t] != alive || alive == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "step %lld of the axis has %d rows from %lld, expected %lld from %lld",
                         (long long)t, a->batch_sizes[t], (long long)a->row_offsets[t], (long long)alive,
                         (long long)rows);
        rows += alive;
    }
    if (a->rows != rows || a->row_offsets[a->steps] != rows)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the axis has %lld rows, expected %lld", (long long)a->rows,
                     (long long)rows);
    return SEQLSTM_OK;
}
