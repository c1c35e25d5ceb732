/* SPDX-License-Identifier: Apache-2.0 */
/* Copies rows of a dataset into the packed order of a batch. */
#include "data/batch/batch_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset_private.h"
#include "data/no_memory.h"

/* Whether sequence k ends in this segment and so has its target here. */
static bool ends_here(const struct sl_dataset *d, const struct sl_batch_rows *chosen, int64_t k)
{
    int64_t total = d->length[chosen->record[k]];
    return chosen->offset + chosen->real[k] >= total && (chosen->offset < total || chosen->offset == 0);
}

/* Ids of `count` rows: a part of the dataset's rows, or read into `scratch`. */
static seqlstm_status get_ids(const struct sl_dataset *d, int64_t first, int64_t count, int32_t *scratch,
                              const int32_t **out, struct seqlstm_error *err)
{
    *out = d->input_ids ? d->input_ids + first : scratch;
    if (d->input_ids || count == 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_token_file_read(d->token_file, first, count, scratch, err));
    for (int64_t i = 0; i < count; i++)
        scratch[i] = d->id_map[scratch[i]];
    return SEQLSTM_OK;
}

static const char *get_name(const struct sl_dataset *d)
{
    return d->file_count > 0 ? d->files[0] : "input";
}

/* Values of `count` rows, likewise: another process may truncate a mapped file. */
static seqlstm_status get_values(const struct sl_dataset *d, int64_t first, int64_t count, float *scratch,
                                 const float **out, struct seqlstm_error *err)
{
    size_t features = (size_t)d->facts.input.features;
    const float *values = d->input_values + (size_t)first * features;
    *out = d->map.size_bytes > 0 ? scratch : values;
    return d->map.size_bytes > 0
               ? sl_file_map_read(&d->map, get_name(d), values, (size_t)count * features * sizeof *values, scratch, err)
               : SEQLSTM_OK;
}

/* Where the target values of a row or record begin. */
static const float *target_values(const struct sl_dataset *d, int64_t row)
{
    return d->target_values + (row + (d->form == SL_TARGET_AHEAD)) * d->target_columns;
}

/* Copies the target of a row or record; false, and zeros, where a value of it is missing. */
static bool copy_target(const struct sl_dataset *d, int64_t row, float *out, int64_t count)
{
    const float *values = target_values(d, row);
    bool known = true;
    for (int64_t c = 0; c < count; c++)
        known = known && !isnan(values[c]);
    if (known)
        memcpy(out, values, (size_t)count * sizeof *out);
    else
        memset(out, 0, (size_t)count * sizeof *out);
    return known;
}

/* Weights on the steps axis tell real rows from padded ones where the target is a value. */
static void fill_weights(const struct sl_batch_rows *chosen, struct sl_batch *batch)
{
    float *weight = (float *)(uintptr_t)batch->weight.values;
    if (batch->weight.kind != SL_FIELD_VALUES || !batch->weight.on_steps)
        return;
    for (int64_t k = 0; k < chosen->sequences; k++)
        for (int64_t t = 0; t < chosen->real[k]; t++)
            weight[sl_batch_row(batch, k, t)] = 1.0f;
}

/* The steps of sequence k. `scratch` has room for the inputs of the longest and one more. */
static seqlstm_status fill_sequence(const struct sl_dataset *d, const struct sl_batch_rows *chosen, int64_t k,
                                    struct sl_batch *batch, void *scratch, struct seqlstm_error *err)
{
    int64_t F = batch->input.features, O = batch->target.features, first = chosen->first[k], real = chosen->real[k];
    int32_t *ids = (int32_t *)(uintptr_t)batch->input.ids, *out_ids = (int32_t *)(uintptr_t)batch->target.ids;
    float *values = (float *)(uintptr_t)batch->input.values, *out = (float *)(uintptr_t)batch->target.values;
    bool next = d->form == SL_TARGET_NEXT, has_ids = batch->input.kind == SL_FIELD_IDS;
    bool on_steps = batch->target.kind != SL_FIELD_NONE && batch->target.on_steps;
    const int32_t *from = NULL;
    const float *rows = NULL;
    if (has_ids)
        SEQLSTM_TRY(get_ids(d, first, real > 0 ? real + next : 0, scratch, &from, err));
    else
        SEQLSTM_TRY(get_values(d, first, real, scratch, &rows, err));
    for (int64_t t = 0; t < real; t++) {
        int64_t row = sl_batch_row(batch, k, t);
        if (has_ids)
            ids[row] = from[t];
        else
            memcpy(values + row * F, rows + t * F, (size_t)F * sizeof *values);
        if (on_steps && next)
            out_ids[row] = from[t + 1] == d->state->ignore_id ? -1 : from[t + 1];
        else if (on_steps && batch->target.kind == SL_FIELD_IDS)
            out_ids[row] = d->target_ids[first + t];
        else if (on_steps && !copy_target(d, first + t, out + row * O, O))
            ((float *)(uintptr_t)batch->weight.values)[row] = 0.0f;
    }
    for (int64_t t = real; t < chosen->length[k]; t++) {
        int64_t row = sl_batch_row(batch, k, t);
        if (has_ids)
            ids[row] = -1;
        if (on_steps && batch->target.kind == SL_FIELD_IDS)
            out_ids[row] = -1;
    }
    batch->padded_rows += chosen->length[k] - real;
    return SEQLSTM_OK;
}

static seqlstm_status fill_steps(const struct sl_dataset *d, const struct sl_batch_rows *chosen, struct sl_batch *batch,
                                 struct seqlstm_error *err)
{
    int64_t longest = 0;
    for (int64_t k = 0; k < chosen->sequences; k++)
        longest = chosen->real[k] > longest ? chosen->real[k] : longest;
    bool reads = d->token_file || d->map.size_bytes > 0;
    void *scratch = reads ? malloc(((size_t)longest + 1) * (size_t)d->facts.input.features * 4) : NULL;
    seqlstm_status status = reads && !scratch ? SL_DATA_NO_MEMORY(err) : SEQLSTM_OK;
    fill_weights(chosen, batch);
    for (int64_t k = 0; status == SEQLSTM_OK && k < chosen->sequences; k++)
        status = fill_sequence(d, chosen, k, batch, scratch, err);
    free(scratch);
    return status;
}

/* Inputs without steps, and one target per sequence. */
static seqlstm_status fill_sequences(const struct sl_dataset *d, const struct sl_batch_rows *chosen,
                                     struct sl_batch *batch, struct seqlstm_error *err)
{
    int64_t F = batch->input.features, O = batch->target.features;
    float *weight = (float *)(uintptr_t)batch->weight.values;
    for (int64_t k = 0; k < chosen->sequences; k++) {
        int64_t record = chosen->record[k];
        float *input = (float *)(uintptr_t)batch->input.values + k * F;
        const float *values;
        if (!batch->has_steps && batch->input.kind == SL_FIELD_VALUES) {
            SEQLSTM_TRY(get_values(d, chosen->first[k], 1, input, &values, err));
            if (values != input)
                memcpy(input, values, (size_t)F * sizeof *input);
        } else if (!batch->has_steps) {
            ((int32_t *)(uintptr_t)batch->input.ids)[k] = d->input_ids[chosen->first[k]];
        }
        if (batch->target.kind == SL_FIELD_NONE || batch->target.on_steps)
            continue;
        int64_t row = d->target_row ? d->target_row[record] : d->start[record] + d->length[record] - 1;
        bool here = ends_here(d, chosen, k);
        if (batch->target.kind == SL_FIELD_IDS)
            ((int32_t *)(uintptr_t)batch->target.ids)[k] = here ? d->target_ids[row] : -1;
        else
            here = copy_target(d, row, (float *)(uintptr_t)batch->target.values + k * O, O) && here;
        if (batch->weight.kind == SL_FIELD_VALUES)
            weight[k] = here ? 1.0f : 0.0f;
    }
    return SEQLSTM_OK;
}

/* The encoder's side. It was sorted when the batch was made. */
static void fill_source(const struct sl_dataset *d, const struct sl_batch_rows *chosen, struct sl_batch *batch)
{
    const struct sl_dataset_source *source = &d->source;
    int32_t *ids = (int32_t *)(uintptr_t)batch->source.input.ids;
    for (int64_t k = 0; k < chosen->sequences; k++) {
        const int64_t record = chosen->record[k];
        for (int64_t t = 0; t < source->length[record]; t++)
            ids[sl_batch_source_row(batch, k, t)] = source->ids[source->start[record] + t];
        ((uint64_t *)(uintptr_t)batch->source.axis.sequence_id)[batch->source.place[k]] = (uint64_t)record;
    }
}

seqlstm_status sl_batch_rows_gather(const struct sl_dataset *d, const struct sl_batch_rows *chosen,
                                    struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &d->facts;
    bool targets = d->form != SL_TARGET_NONE, pairs = d->source.present, decodes = !pairs || targets;
    int32_t *source_lengths = pairs ? malloc(((size_t)chosen->sequences + 1) * sizeof *source_lengths) : NULL;
    if (pairs && !source_lengths)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t k = 0; pairs && k < chosen->sequences; k++)
        source_lengths[k] = d->source.length[chosen->record[k]];
    struct sl_batch_shape shape = {
        .sequences = chosen->sequences,
        .lengths = facts->has_steps && decodes ? chosen->length : NULL,
        .input_kind = decodes ? facts->input.kind : SL_FIELD_NONE,
        .input_features = facts->input.features,
        .input_on_steps = facts->input.on_steps,
        .target_kind = targets ? facts->target.kind : SL_FIELD_NONE,
        .target_features = facts->target.features,
        .target_on_steps = facts->target.on_steps,
        .has_weight = targets && facts->has_weight,
        .source_lengths = source_lengths,
        .source_kind = facts->source.kind,
        .source_features = facts->source.features,
    };
    struct sl_batch *batch;
    seqlstm_status status = sl_batch_create(&shape, &batch, err);
    free(source_lengths);
    SEQLSTM_TRY(status);
    for (int64_t k = 0; k < chosen->sequences; k++) {
        int64_t sample = d->stream ? k : chosen->record[k];
        ((int64_t *)(uintptr_t)batch->sample)[k] = sample;
        ((int64_t *)(uintptr_t)batch->sample_step)[k] = chosen->offset;
        ((uint64_t *)(uintptr_t)batch->axis.sequence_id)[k] = (uint64_t)sample;
        ((uint32_t *)(uintptr_t)batch->axis.position0)[k] = (uint32_t)chosen->offset;
    }
    status = batch->has_steps ? fill_steps(d, chosen, batch, err) : SEQLSTM_OK;
    if (status == SEQLSTM_OK && !pairs && !d->stream)
        status = fill_sequences(d, chosen, batch, err);
    if (status == SEQLSTM_OK)
        status = sl_file_map_check(&d->map, get_name(d), err);
    if (status != SEQLSTM_OK) {
        sl_batch_destroy(batch);
        return status;
    }
    if (pairs)
        fill_source(d, chosen, batch);
    batch->carry_state = chosen->offset > 0;
    batch->last_segment = chosen->last;
    batch->ordinal = chosen->ordinal;
    *out_batch = batch;
    return SEQLSTM_OK;
}
