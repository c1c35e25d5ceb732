/* SPDX-License-Identifier: Apache-2.0 */
/* See sample.h. */
#include "compare/sample.h"

#include <stdlib.h>
#include <string.h>

#include "data/batch/batcher.h"

int64_t sl_batch_get_rows(const struct sl_batch *batch)
{
    return batch->has_steps ? batch->axis.rows + batch->source.axis.rows : batch->sequences;
}

/* ---- repeating ---------------------------------------------------------------------------------------- */

/* Sequence k of the longer batch is this one of the short one: neighbours stay neighbours, so lengths stay sorted. */
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

/* ---- sampling ----------------------------------------------------------------------------------------- */

static void widen_to(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

static void widen(struct sl_envelope *envelope, const struct sl_batch *batch)
{
    widen_to(&envelope->sequences, batch->sequences);
    widen_to(&envelope->steps, batch->axis.steps);
    widen_to(&envelope->rows, batch->axis.rows);
    widen_to(&envelope->source_steps, batch->source.axis.steps);
    widen_to(&envelope->source_rows, batch->source.axis.rows);
}

/* Batch `ordinal`, filled up to `wanted` sequences; NULL where nothing is in it. */
static seqlstm_status take(struct sl_batcher *batcher, uint64_t ordinal, int64_t wanted, struct sl_batch **out_batch,
                           struct seqlstm_error *err)
{
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(sl_batcher_seek(batcher, 0, ordinal, err));
    SEQLSTM_TRY(sl_batcher_next(batcher, &batch, err));
    *out_batch = batch;
    if (!batch)
        return SEQLSTM_OK;
    batch->carry_state = false;
    bool empty = batch->source.present && (batch->source.axis.rows == 0 || batch->axis.rows == 0);
    if (batch->sequences == 0 || sl_batch_get_rows(batch) == 0 || empty) {
        sl_batch_destroy(batch);
        *out_batch = NULL;
    } else if (batch->sequences < wanted) {
        seqlstm_status status = sl_batch_repeat(batch, wanted, out_batch, err);
        sl_batch_destroy(batch);
        return status;
    }
    return SEQLSTM_OK;
}

static seqlstm_status fill(struct sl_sample *sample, struct sl_batcher *batcher, int64_t wanted, int32_t most,
                           struct seqlstm_error *err)
{
    int64_t batches = sl_batcher_get_batches(batcher);
    int32_t count = batches < most ? (int32_t)batches : most;
    for (int32_t i = 0; i < count; i++) {
        struct sl_batch *batch = NULL;
        SEQLSTM_TRY(take(batcher, (uint64_t)(i * batches / count), wanted, &batch, err));
        if (!batch)
            continue;
        sample->batches[sample->count++] = batch;
        widen(&sample->envelope, batch);
    }
    if (sample->count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the training split has no batch with a row in it");
    return SEQLSTM_OK;
}

seqlstm_status sl_sample_create(const struct sl_dataset *data, uint64_t seed, int64_t batch_size, int32_t most,
                                struct sl_sample *out_sample, struct seqlstm_error *err)
{
    struct sl_sample sample = {.count = 0};
    struct sl_batcher *batcher = NULL;
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = seed, .batch_size = batch_size};
    int64_t records = sl_dataset_get_records(data), longest = sl_dataset_get_facts(data)->rows;
    bool stream = sl_dataset_get_model(data)->data.batching.unit == SL_UNIT_STREAM;
    if (batch_size > 0 && stream && batch_size > longest / 4)
        request.batch_size = longest / 4 > 0 ? longest / 4 : 1; /* too short a text for so many streams */
    else if (batch_size > 0 && !stream && batch_size > records)
        request.batch_size = records > 0 ? records : 1;
    SEQLSTM_TRY(sl_batcher_open(data, &request, &batcher, err));
    struct sl_envelope all = sl_batcher_envelope(batcher);
    sample.envelope.uniform = all.uniform;
    sample.envelope.stream = all.stream;
    seqlstm_status status = fill(&sample, batcher, batch_size, most, err);
    sl_batcher_close(batcher);
    if (status != SEQLSTM_OK) {
        sl_sample_deinit(&sample);
        return status;
    }
    *out_sample = sample;
    return SEQLSTM_OK;
}

void sl_sample_deinit(struct sl_sample *sample)
{
    for (int32_t b = 0; b < sample->count; b++)
        sl_batch_destroy(sample->batches[b]);
    *sample = (struct sl_sample){.count = 0};
}
