/* SPDX-License-Identifier: Apache-2.0 */
/* Packed batches: one allocation, arrays behind the struct in the order of `layout`. */
#include "base/batch/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/checked.h"

/* Byte offsets of an axis's arrays from the start of the allocation, and its counts. */
struct axis_layout {
    size_t row_offsets, sequence_id, lengths, batch_sizes, position0;
    int64_t alive, steps, rows;
};

/* Byte offsets of the other arrays. */
struct layout {
    struct axis_layout axis, source;
    size_t sample, sample_step, input, target, weight, source_input, place, sequence;
    size_t total_bytes;
};

/* Appends count * element_bytes at the next multiple of the contract's alignment. */
static bool append(size_t *total_bytes, int64_t count, size_t element_bytes, size_t *out_offset)
{
    size_t elements, bytes;
    if (!sl_checked_round_up_size(*total_bytes, SEQLSTM_ALIGNMENT, out_offset) ||
        !sl_checked_i64_to_size(count, &elements) || !sl_checked_mul_size(elements, element_bytes, &bytes))
        return false;
    return sl_checked_add_size(*out_offset, bytes, total_bytes);
}

static bool append_field(struct layout *l, enum sl_field_kind kind, int64_t rows, int64_t features, size_t *out_offset)
{
    int64_t values;
    if (!sl_checked_mul_i64(kind == SL_FIELD_NONE ? 0 : rows, kind == SL_FIELD_VALUES ? features : 1, &values))
        return false;
    return append(&l->total_bytes, values, 4, out_offset);
}

/* `sorted`: lengths that increase are refused. */
static seqlstm_status count_axis(const int32_t *lengths, int64_t sequences, bool sorted, struct axis_layout *a,
                                 struct seqlstm_error *err)
{
    for (int64_t k = 0; lengths && k < sequences; k++) {
        if (lengths[k] < 0 || (sorted && k > 0 && lengths[k] > lengths[k - 1]))
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                         "length %lld of the batch is %d, expected lengths that do not increase and are not negative",
                         (long long)k, lengths[k]);
        a->alive += lengths[k] > 0;
        a->rows += lengths[k];
        a->steps = lengths[k] > a->steps ? lengths[k] : a->steps;
    }
    return SEQLSTM_OK;
}

static bool append_axis(struct layout *l, struct axis_layout *a, int64_t sequences)
{
    size_t *total = &l->total_bytes;
    return append(total, a->steps + 1, 8, &a->row_offsets) && append(total, sequences, 8, &a->sequence_id) &&
           append(total, sequences, 4, &a->lengths) && append(total, a->steps, 4, &a->batch_sizes) &&
           append(total, sequences, 4, &a->position0);
}

static bool append_source(const struct sl_batch_shape *s, struct layout *l)
{
    return append_axis(l, &l->source, s->sequences) && append(&l->total_bytes, s->sequences, 4, &l->place) &&
           append(&l->total_bytes, s->sequences, 4, &l->sequence) &&
           append_field(l, s->source_kind, l->source.rows, s->source_features, &l->source_input);
}

static seqlstm_status measure(const struct sl_batch_shape *s, struct layout *l, struct seqlstm_error *err)
{
    const int64_t B = s->sequences;
    *l = (struct layout){.total_bytes = sizeof(struct sl_batch)};
    SEQLSTM_TRY(count_axis(s->lengths, B, true, &l->axis, err));
    SEQLSTM_TRY(count_axis(s->source_lengths, B, !s->lengths, &l->source, err));
    const int64_t R = l->axis.rows, input_rows = s->input_on_steps ? R : B, target_rows = s->target_on_steps ? R : B;
    size_t *total = &l->total_bytes;
    if (!append_axis(l, &l->axis, B) || !append(total, B, 8, &l->sample) || !append(total, B, 8, &l->sample_step) ||
        !append_field(l, s->input_kind, input_rows, s->input_features, &l->input) ||
        !append_field(l, s->target_kind, target_rows, s->target_features, &l->target) ||
        !append_field(l, s->has_weight ? SL_FIELD_VALUES : SL_FIELD_NONE, target_rows, 1, &l->weight) ||
        (s->source_lengths && !append_source(s, l)) || !sl_checked_round_up_size(*total, SEQLSTM_ALIGNMENT, total))
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "a batch of %lld sequences and %lld rows is too large for memory",
                     (long long)B, (long long)R + (long long)l->source.rows);
    return SEQLSTM_OK;
}

static seqlstm_status check_field(const char *name, enum sl_field_kind kind, bool on_steps, int64_t features,
                                  bool has_steps, struct seqlstm_error *err)
{
    if (kind == SL_FIELD_VALUES && features < 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s of the batch has %lld features, expected at least 1", name,
                     (long long)features);
    if (kind != SL_FIELD_NONE && on_steps && !has_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s of the batch is on the steps axis, but there are no lengths",
                     name);
    return SEQLSTM_OK;
}

/* lengths, which are in place -> batch_sizes and row_offsets. Sequence b is alive at step t iff lengths[b] > t. */
static struct seqlstm_axis make_axis(char *base, const struct axis_layout *l)
{
    const int32_t *lengths = (int32_t *)(void *)(base + l->lengths);
    int32_t *batch_sizes = (int32_t *)(void *)(base + l->batch_sizes);
    int64_t *row_offsets = (int64_t *)(void *)(base + l->row_offsets);
    int64_t alive = l->alive;
    for (int64_t t = 0; t < l->steps; t++) {
        while (alive > 0 && lengths[alive - 1] <= t)
            alive--;
        batch_sizes[t] = (int32_t)alive;
        row_offsets[t + 1] = row_offsets[t] + alive;
    }
    return (struct seqlstm_axis){
        .struct_size = (uint32_t)sizeof(struct seqlstm_axis),
        .flags = l->alive > 0 && lengths[l->alive - 1] == l->steps ? SEQLSTM_BIT_AXIS_UNIFORM : 0,
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

/* Both permutations and the lengths in the source's order, longest first, equal ones in the batch's order: counting
 * sort. `longer`, the still empty batch_sizes, tells at length - 1 how many sequences are longer than that. */
static void sort_source(char *base, const struct layout *l, const struct sl_batch_shape *s)
{
    int32_t *lengths = (int32_t *)(void *)(base + l->source.lengths);
    int32_t *longer = (int32_t *)(void *)(base + l->source.batch_sizes);
    int32_t *place = (int32_t *)(void *)(base + l->place), *sequence = (int32_t *)(void *)(base + l->sequence);
    int32_t empty = (int32_t)l->source.alive;
    for (int64_t k = 0; k < s->sequences; k++)
        if (s->source_lengths[k] > 1)
            longer[s->source_lengths[k] - 2]++;
    for (int64_t t = l->source.steps - 2; t >= 0; t--)
        longer[t] += longer[t + 1];
    for (int32_t k = 0; k < s->sequences; k++) {
        const int32_t length = s->source_lengths[k], j = length > 0 ? longer[length - 1]++ : empty++;
        place[k] = j;
        sequence[j] = k;
        lengths[j] = length;
    }
}

static struct sl_field make_field(char *base, size_t offset, enum sl_field_kind kind, bool on_steps, int64_t features)
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

static void fill_source(struct sl_batch *batch, char *base, const struct layout *l, const struct sl_batch_shape *s)
{
    sort_source(base, l, s);
    batch->source = (struct sl_source_side){
        .present = true,
        .axis = make_axis(base, &l->source),
        .sequences = s->sequences,
        .input = make_field(base, l->source_input, s->source_kind, true, s->source_features),
        .place = (int32_t *)(void *)(base + l->place),
        .sequence = (int32_t *)(void *)(base + l->sequence),
    };
}

seqlstm_status sl_batch_create(const struct sl_batch_shape *shape, struct sl_batch **out_batch,
                               struct seqlstm_error *err)
{
    const bool has_steps = shape->lengths != NULL;
    if (shape->sequences < 0 || shape->sequences > INT32_MAX)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a batch of %lld sequences, expected 0 to %d",
                     (long long)shape->sequences, INT32_MAX);
    SEQLSTM_TRY(
        check_field("the input", shape->input_kind, shape->input_on_steps, shape->input_features, has_steps, err));
    SEQLSTM_TRY(
        check_field("the target", shape->target_kind, shape->target_on_steps, shape->target_features, has_steps, err));
    SEQLSTM_TRY(check_field("the source", shape->source_kind, true, shape->source_features,
                            shape->source_lengths != NULL, err));
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
    if (has_steps && shape->sequences > 0)
        memcpy(base + l.axis.lengths, shape->lengths, (size_t)shape->sequences * sizeof *shape->lengths);
    batch->axis = make_axis(base, &l.axis);
    batch->input = make_field(base, l.input, shape->input_kind, shape->input_on_steps, shape->input_features);
    batch->target = make_field(base, l.target, shape->target_kind, shape->target_on_steps, shape->target_features);
    batch->weight =
        make_field(base, l.weight, shape->has_weight ? SL_FIELD_VALUES : SL_FIELD_NONE, shape->target_on_steps, 1);
    if (shape->source_lengths)
        fill_source(batch, base, &l, shape);
    batch->sample = (int64_t *)(void *)(base + l.sample);
    batch->sample_step = (int64_t *)(void *)(base + l.sample_step);
    *out_batch = batch;
    return SEQLSTM_OK;
}

void sl_batch_destroy(struct sl_batch *batch)
{
    if (batch)
        free(batch->storage);
}

/* Arrays of an axis that agree with each other and with the lengths of `sequences`, empty ones included. */
static seqlstm_status check_axis(const struct seqlstm_axis *a, int64_t sequences, const char *name,
                                 struct seqlstm_error *err)
{
    if (a->sequences > sequences)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the %s has %lld sequences, the batch %lld", name, (long long)a->sequences,
                     (long long)sequences);
    for (int64_t k = 0; k < sequences; k++)
        if ((k < a->sequences) != (a->lengths[k] > 0) || (k > 0 && a->lengths[k] > a->lengths[k - 1]))
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "length %lld of the %s is %d, which is out of order", (long long)k,
                         name, a->lengths[k]);
    int64_t rows = 0;
    for (int64_t t = 0; t < a->steps; t++) {
        int64_t alive = 0;
        while (alive < a->sequences && a->lengths[alive] > t)
            alive++;
        if (a->row_offsets[t] != rows || a->batch_sizes[t] != alive || alive == 0)
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "step %lld of the %s has %d rows from %lld, expected %lld from %lld",
                         (long long)t, name, a->batch_sizes[t], (long long)a->row_offsets[t], (long long)alive,
                         (long long)rows);
        rows += alive;
    }
    if (a->rows != rows)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the %s has %lld rows, expected %lld", name, (long long)a->rows,
                     (long long)rows);
    if (a->row_offsets[a->steps] != rows)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the %s ends at row %lld, expected %lld", name,
                     (long long)a->row_offsets[a->steps], (long long)rows);
    return SEQLSTM_OK;
}

static seqlstm_status check_source(const struct sl_batch *batch, struct seqlstm_error *err)
{
    const struct sl_source_side *s = &batch->source;
    if (s->sequences != batch->sequences)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the source has %lld sequences, the batch %lld", (long long)s->sequences,
                     (long long)batch->sequences);
    SEQLSTM_TRY(check_axis(&s->axis, s->sequences, "source's axis", err));
    for (int64_t k = 0; k < s->sequences; k++) {
        const int32_t j = s->place[k];
        if (j < 0 || j >= s->sequences || s->sequence[j] != k)
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "place %d of sequence %lld is not undone by the source's sequences", j,
                         (long long)k);
        if (!batch->has_steps && j != k)
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                         "sequence %lld is at place %d of the source, expected one order without decoder steps",
                         (long long)k, j);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_batch_check(const struct sl_batch *batch, struct seqlstm_error *err)
{
    if (batch->has_steps)
        SEQLSTM_TRY(check_axis(&batch->axis, batch->sequences, "axis", err));
    else if (batch->axis.steps != 0 || batch->axis.sequences != 0)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "the axis has %lld sequences and %lld steps, expected none",
                     (long long)batch->axis.sequences, (long long)batch->axis.steps);
    return batch->source.present ? check_source(batch, err) : SEQLSTM_OK;
}
