/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sample/repeat.h"

#include <stdlib.h>
#include <string.h>

/* Sequence k of the longer batch is a copy of this sequence of the short one. Neighbours stay neighbours, so lengths
 * stay sorted. */
static int64_t origin_of(const struct sl_batch *from, int64_t sequences, int64_t k)
{
    return k * from->sequences / sequences;
}

static void copy_row(const struct sl_field *from, int64_t from_row, const struct sl_field *to, int64_t to_row)
{
    if (from->kind == SL_FIELD_IDS)
        ((int32_t *)(uintptr_t)to->ids)[to_row] = from->ids[from_row];
    else if (from->kind == SL_FIELD_VALUES)
        memcpy((float *)(uintptr_t)to->values + to_row * to->features, from->values + from_row * from->features,
               (size_t)from->features * sizeof *from->values);
}

static void copy_field(const struct sl_batch *from, const struct sl_field *source, const struct sl_batch *to,
                       const struct sl_field *target)
{
    if (source->kind == SL_FIELD_NONE)
        return;
    for (int64_t k = 0; k < to->sequences; k++) {
        int64_t origin = origin_of(from, to->sequences, k);
        if (!source->on_steps) {
            copy_row(source, origin, target, k);
            continue;
        }
        int64_t length = k < to->axis.sequences ? to->axis.lengths[k] : 0;
        for (int64_t t = 0; t < length; t++)
            copy_row(source, sl_batch_row(from, origin, t), target, sl_batch_row(to, k, t));
    }
}

static int32_t get_source_length(const struct sl_batch *batch, int64_t k)
{
    int64_t place = batch->source.present ? batch->source.place[k] : batch->source.axis.sequences;
    return place < batch->source.axis.sequences ? batch->source.axis.lengths[place] : 0;
}

static void copy_source(const struct sl_batch *from, const struct sl_batch *to)
{
    uint64_t *ids = (uint64_t *)(uintptr_t)to->source.axis.sequence_id;
    for (int64_t k = 0; k < to->sequences; k++) {
        int64_t origin = origin_of(from, to->sequences, k), length = get_source_length(from, origin);
        ids[to->source.place[k]] = (uint64_t)k;
        for (int64_t t = 0; t < length; t++)
            copy_row(&from->source.input, sl_batch_source_row(from, origin, t), &to->source.input,
                     sl_batch_source_row(to, k, t));
    }
}

seqlstm_status sl_batch_repeat(const struct sl_batch *batch, int64_t sequences, struct sl_batch **out_batch,
                               struct seqlstm_error *err)
{
    struct sl_batch *made = NULL;
    int32_t *lengths = malloc((size_t)sequences * 2 * sizeof *lengths);
    if (!lengths)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batch of %lld sequences", (long long)sequences);
    for (int64_t k = 0; k < sequences; k++) {
        int64_t origin = origin_of(batch, sequences, k);
        lengths[k] = origin < batch->axis.sequences ? batch->axis.lengths[origin] : 0;
        lengths[sequences + k] = get_source_length(batch, origin);
    }
    struct sl_batch_shape shape = {
        .sequences = sequences,
        .lengths = batch->has_steps ? lengths : NULL,
        .input_kind = batch->input.kind,
        .input_features = batch->input.features,
        .input_on_steps = batch->input.on_steps,
        .target_kind = batch->target.kind,
        .target_features = batch->target.features,
        .target_on_steps = batch->target.on_steps,
        .has_weight = batch->weight.kind == SL_FIELD_VALUES,
        .source_lengths = batch->source.present ? lengths + sequences : NULL,
        .source_kind = batch->source.input.kind,
        .source_features = batch->source.input.features,
    };
    seqlstm_status status = sl_batch_create(&shape, &made, err);
    free(lengths);
    SEQLSTM_TRY(status);
    copy_field(batch, &batch->input, made, &made->input);
    copy_field(batch, &batch->target, made, &made->target);
    copy_field(batch, &batch->weight, made, &made->weight);
    if (batch->source.present)
        copy_source(batch, made);
    uint64_t *ids = (uint64_t *)(uintptr_t)made->axis.sequence_id;
    for (int64_t k = 0; ids && k < sequences; k++)
        ids[k] = (uint64_t)k;
    made->axis.flags |= batch->axis.flags & SEQLSTM_BIT_AXIS_STREAM;
    made->last_segment = true;
    *out_batch = made;
    return SEQLSTM_OK;
}
