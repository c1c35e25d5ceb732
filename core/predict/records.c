/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on the predictions of a batch in the order of its records. */
#include "predict/records.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "predict/predictor_private.h"

/* Steps of one record, gathered from packed rows; grows. Of steps that the input has but the batch has not, NaN. */
struct rows {
    float *values;
    bool *none; /* [rows] */
    int64_t capacity;
};

static seqlstm_status make_room(struct rows *rows, int64_t count, int64_t features, struct seqlstm_error *err)
{
    if (count * features <= rows->capacity)
        return SEQLSTM_OK;
    float *values = realloc(rows->values, (size_t)(2 * count * features) * sizeof *values);
    rows->values = values ? values : rows->values;
    bool *none = realloc(rows->none, (size_t)(2 * count * features) * sizeof *none);
    rows->none = none ? none : rows->none;
    if (values == NULL || none == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a prediction");
    rows->capacity = 2 * count * features;
    return SEQLSTM_OK;
}

static seqlstm_status gather(struct rows *rows, const struct sl_dataset *data, const struct sl_batch *batch,
                             const struct sl_field *output, int64_t sequence, int64_t *out_rows,
                             struct seqlstm_error *err)
{
    /* A batch without a target has the order of its source. */
    const struct seqlstm_axis *axis = batch->source.present && !batch->has_steps ? &batch->source.axis : &batch->axis;
    int64_t features = output->features;
    int64_t record = batch->sample[sequence];
    int64_t length = !output->on_steps ? 1 : sequence < axis->sequences ? axis->lengths[sequence] : 0;
    int64_t shown = data && output->on_steps && batch->has_steps ? sl_dataset_get_file_steps(data, record) : length;
    bool known = data == NULL || sl_dataset_has_prediction(data, record);
    shown = shown > length ? shown : length;
    SEQLSTM_TRY(make_room(rows, shown, features, err));
    for (int64_t i = 0; i < shown * features && !(known && shown == length); i++)
        rows->values[i] = NAN;
    for (int64_t t = 0; t < shown; t++)
        rows->none[t] = !(known && shown == length);
    for (int64_t t = 0; t < length && known; t++) {
        int64_t row = output->on_steps ? axis->row_offsets[t] + sequence : sequence;
        int64_t place = shown == length ? t : sl_dataset_get_file_step(data, record, t);
        rows->none[place] = false;
        memcpy(rows->values + place * features, output->values + row * features, (size_t)features * sizeof(float));
    }
    *out_rows = shown;
    return SEQLSTM_OK;
}

seqlstm_status sl_records_find_order(const struct sl_batch *batch, int64_t first_record, int64_t **out_sequences,
                                     struct seqlstm_error *err)
{
    int64_t *sequences = malloc(((size_t)batch->sequences + 1) * sizeof *sequences);
    if (sequences == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the order of a batch");
    for (int64_t k = 0; k < batch->sequences; k++)
        sequences[k] = -1;
    for (int64_t k = 0; k < batch->sequences; k++)
        if (batch->sample[k] >= first_record && batch->sample[k] < first_record + batch->sequences)
            sequences[batch->sample[k] - first_record] = k;
    for (int64_t n = 0; n < batch->sequences; n++)
        if (sequences[n] < 0) {
            free(sequences);
            SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "record %lld is not in its batch", (long long)(first_record + n));
        }
    *out_sequences = sequences;
    return SEQLSTM_OK;
}

static seqlstm_status hand_out_one(const struct sl_predictor *predictor, const struct sl_outlet *outlet,
                                   const struct sl_batch *batch, const struct sl_field *output, int64_t sequence,
                                   struct rows *rows, struct seqlstm_error *err)
{
    const struct sl_data_state *state = predictor->made.state;
    struct sl_prediction prediction = {.record = batch->sample[sequence],
                                       .data = outlet->data,
                                       .on_steps = output->on_steps,
                                       .features = output->features};
    SEQLSTM_TRY(gather(rows, outlet->data, batch, output, sequence, &prediction.rows, err));
    if (predictor->undoes_targets)
        sl_data_state_undo_targets(state, rows->values, prediction.rows);
    prediction.values = rows->values;
    prediction.none = rows->none;
    prediction.classes = sl_predictor_gives_values(predictor) ? NULL : sl_data_state_find_classes(state);
    if (outlet->data)
        prediction.input = sl_dataset_find_text(outlet->data, prediction.record, &prediction.input_bytes);
    return outlet->write(outlet->context, &prediction, err);
}

seqlstm_status sl_records_hand_out(const struct sl_predictor *predictor, const struct sl_outlet *outlet,
                                   const struct sl_batch *batch, const struct sl_field *output, int64_t first_record,
                                   struct seqlstm_error *err)
{
    struct rows rows = {0};
    int64_t *sequences;
    SEQLSTM_TRY(sl_records_find_order(batch, first_record, &sequences, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int64_t n = 0; n < batch->sequences && status == SEQLSTM_OK; n++)
        status = hand_out_one(predictor, outlet, batch, output, sequences[n], &rows, err);
    free(rows.values);
    free(rows.none);
    free(sequences);
    return status;
}
