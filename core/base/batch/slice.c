/* SPDX-License-Identifier: Apache-2.0 */
/* See slice.h. */
#include "base/batch/slice.h"

#include <stdlib.h>
#include <string.h>

struct slicing {
    const struct sl_batch *from;
    struct sl_batch *to;
    int64_t first, stride;
};

int64_t sl_slice_count(int64_t sequences, int64_t first, int64_t stride)
{
    return first < sequences ? (sequences - first - 1) / stride + 1 : 0;
}

/* Copies row `from` of a field to row `to` of the other. */
static void copy_row(const struct sl_field *from, int64_t from_row, const struct sl_field *to, int64_t to_row)
{
    const int64_t elems = from->kind == SL_FIELD_VALUES ? from->features : 1;
    if (from->kind == SL_FIELD_IDS)
        ((int32_t *)(uintptr_t)to->ids)[to_row] = from->ids[from_row];
    else if (from->kind == SL_FIELD_VALUES)
        memcpy((float *)(uintptr_t)to->values + to_row * elems, from->values + from_row * elems,
               (size_t)elems * sizeof(float));
}

static void copy_field(const struct slicing *s, const struct sl_field *from, const struct sl_field *to)
{
    for (int64_t j = 0; !from->on_steps && j < s->to->sequences; j++)
        copy_row(from, s->first + j * s->stride, to, j);
    for (int64_t t = 0; from->on_steps && t < s->to->axis.steps; t++)
        for (int64_t j = 0; j < s->to->axis.batch_sizes[t]; j++)
            copy_row(from, sl_batch_row(s->from, s->first + j * s->stride, t), to, sl_batch_row(s->to, j, t));
}

static void copy_source(const struct slicing *s)
{
    const struct sl_source_side *from = &s->from->source, *to = &s->to->source;
    for (int64_t j = 0; j < to->sequences; j++) {
        const int64_t k = s->first + j * s->stride;
        ((uint64_t *)(uintptr_t)to->axis.sequence_id)[to->place[j]] = from->axis.sequence_id[from->place[k]];
        ((uint32_t *)(uintptr_t)to->axis.position0)[to->place[j]] = from->axis.position0[from->place[k]];
        for (int64_t t = 0; t < to->axis.lengths[to->place[j]]; t++)
            copy_row(&from->input, sl_batch_source_row(s->from, k, t), &to->input, sl_batch_source_row(s->to, j, t));
    }
    s->to->source.axis.flags |= from->axis.flags & SEQLSTM_BIT_AXIS_STREAM;
}

static void copy_all(const struct slicing *s)
{
    const struct sl_batch *from = s->from;
    struct sl_batch *to = s->to;
    copy_field(s, &from->input, &to->input);
    copy_field(s, &from->target, &to->target);
    copy_field(s, &from->weight, &to->weight);
    if (from->source.present)
        copy_source(s);
    for (int64_t j = 0; j < to->sequences; j++) {
        const int64_t k = s->first + j * s->stride;
        ((int64_t *)(uintptr_t)to->sample)[j] = from->sample[k];
        ((int64_t *)(uintptr_t)to->sample_step)[j] = from->sample_step[k];
        ((uint64_t *)(uintptr_t)to->axis.sequence_id)[j] = from->axis.sequence_id[k];
        ((uint32_t *)(uintptr_t)to->axis.position0)[j] = from->axis.position0[k];
    }
    to->axis.flags |= from->axis.flags & SEQLSTM_BIT_AXIS_STREAM;
    to->carry_state = from->carry_state;
    to->last_segment = from->last_segment;
    to->ordinal = from->ordinal;
    to->padded_rows = s->first == 0 ? from->padded_rows : 0;
}

seqlstm_status sl_batch_slice(const struct sl_batch *batch, int64_t first, int64_t stride, struct sl_batch **out_slice,
                              struct seqlstm_error *err)
{
    const int64_t count = sl_slice_count(batch->sequences, first, stride);
    int32_t *lengths = calloc(2 * (size_t)count + 1, sizeof *lengths);
    if (!lengths)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a slice of a batch");
    int32_t *source_lengths = lengths + count;
    for (int64_t j = 0; j < count; j++) {
        const int64_t k = first + j * stride;
        lengths[j] = batch->has_steps ? batch->axis.lengths[k] : 0;
        source_lengths[j] = batch->source.present ? batch->source.axis.lengths[batch->source.place[k]] : 0;
    }
    const struct sl_batch_shape shape = {
        .sequences = count,
        .lengths = batch->has_steps ? lengths : NULL,
        .input_kind = batch->input.kind,
        .input_on_steps = batch->input.on_steps,
        .input_features = batch->input.features,
        .target_kind = batch->target.kind,
        .target_on_steps = batch->target.on_steps,
        .target_features = batch->target.features,
        .has_weight = batch->weight.kind != SL_FIELD_NONE,
        .source_lengths = batch->source.present ? source_lengths : NULL,
        .source_kind = batch->source.input.kind,
        .source_features = batch->source.input.features,
    };
    struct slicing slicing = {.from = batch, .first = first, .stride = stride};
    seqlstm_status status = sl_batch_create(&shape, &slicing.to, err);
    free(lengths);
    SEQLSTM_TRY(status);
    copy_all(&slicing);
    *out_slice = slicing.to;
    return SEQLSTM_OK;
}

static void slice_profile(struct sl_profile *profile, int64_t stride)
{
    const int64_t count = sl_slice_count(profile->sequences, 0, stride);
    for (int64_t j = 0; j < count; j++) {
        if (profile->lengths)
            profile->lengths[j] = profile->lengths[j * stride];
        if (profile->source_lengths)
            profile->source_lengths[j] = profile->source_lengths[j * stride];
    }
    profile->sequences = count;
}

void sl_profiles_slice(struct sl_profiles *profiles, int64_t stride)
{
    for (int32_t p = 0; p < profiles->count; p++)
        slice_profile(&profiles->items[p], stride);
    for (int32_t p = 0; p < profiles->epoch_count; p++)
        slice_profile(&profiles->epoch[p], stride);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct sl_envelope sl_envelope_slice(const struct sl_envelope *envelope, int64_t stride)
{
    struct sl_envelope slice = *envelope;
    slice.sequences = sl_slice_count(envelope->sequences, 0, stride);
    /* Of each `stride` neighbours, the first slice has the longest. */
    slice.rows = least(slice.sequences * envelope->steps, envelope->rows / stride + envelope->steps);
    slice.rows = least(slice.rows, envelope->rows);
    slice.source_rows = least(slice.sequences * envelope->source_steps, envelope->source_rows);
    return slice;
}
