/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for sequences of numbers in memory, all of them packed into one batch. */
#include "session/predict/values.h"

#include <stdlib.h>
#include <string.h>

#include "session/evaluate/clipping.h"
#include "session/predict/records.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

/* A sequence, and the offset of its values. */
struct sequence {
    int64_t record;
    int64_t length;
    int64_t begin; /* steps before it */
};

static int compare_sequences(const void *a, const void *b)
{
    const struct sequence *x = a, *y = b;
    if (x->length != y->length)
        return x->length > y->length ? -1 : 1;
    return x->record < y->record ? -1 : 1;
}

static void fill(struct sl_batch *batch, const struct sl_data_state *state, const struct sequence *sequences,
                 const float *values)
{
    const struct sl_scaling *scaling = sl_data_state_find_input_scaling(state);
    int64_t features = batch->input.features;
    float *out = (float *)batch->input.values;
    for (int64_t k = 0; k < batch->sequences; k++) {
        ((int64_t *)batch->sample)[k] = sequences[k].record;
        ((uint64_t *)batch->axis.sequence_id)[k] = (uint64_t)sequences[k].record;
        for (int64_t t = 0; t < sequences[k].length; t++)
            for (int64_t f = 0; f < features; f++) {
                double value = (double)values[(sequences[k].begin + t) * features + f];
                if (scaling && f < scaling->columns)
                    value = (value - scaling->offset[f]) / scaling->factor[f];
                out[sl_batch_row(batch, k, t) * features + f] = (float)value;
            }
    }
}

static seqlstm_status make_batch(const struct sl_session *session, const float *values, const int64_t *lengths,
                                 int64_t count, struct sl_batch **out_batch, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    struct sequence *sequences = malloc((size_t)count * sizeof *sequences);
    int32_t *sorted = malloc((size_t)count * sizeof *sorted);
    seqlstm_status status = SEQLSTM_OK;
    if (sequences == NULL || sorted == NULL) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the input");
        goto out;
    }
    for (int64_t k = 0, begin = 0; k < count; begin += lengths[k++]) {
        if (lengths[k] < 0 || lengths[k] > INT32_MAX) {
            status = seqlstm_error_set(err, SEQLSTM_INVALID_ARGUMENT, __FILE__, __LINE__,
                                       "sequence %lld has the length %lld", (long long)k, (long long)lengths[k]);
            goto out;
        }
        sequences[k] = (struct sequence){k, lengths[k], begin};
    }
    qsort(sequences, (size_t)count, sizeof *sequences, compare_sequences);
    for (int64_t k = 0; k < count; k++)
        sorted[k] = (int32_t)sequences[k].length;
    struct sl_batch_shape shape = {.sequences = count,
                                   .lengths = sorted,
                                   .input_kind = SL_FIELD_VALUES,
                                   .input_features = facts->input.features,
                                   .input_on_steps = true};
    status = sl_batch_create(&shape, out_batch, err);
    if (status == SEQLSTM_OK)
        fill(*out_batch, session->state, sequences, values);
out:
    free(sequences);
    free(sorted);
    return status;
}

seqlstm_status sl_session_predict_values(struct sl_session *session, const float *values, const int64_t *lengths,
                                         int64_t count, sl_prediction_fn *write, void *context,
                                         struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    if (facts->input.kind != SL_FIELD_VALUES || !facts->input.on_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model reads %s, not sequences of numbers",
                     facts->input.kind == SL_FIELD_IDS ? "text" : "single rows");
    if (count <= 0)
        return SEQLSTM_OK;
    struct sl_batch *batch = NULL;
    SEQLSTM_TRY(make_batch(session, values, lengths, count, &batch, err));
    struct sl_envelope envelope = {.sequences = count, .steps = batch->axis.steps, .rows = batch->axis.rows};
    struct sl_exec_step step = {0};
    struct sl_exec_result result;
    struct sl_clipping clipping = {0};
    seqlstm_status status = SEQLSTM_OK;
    if (envelope.rows == 0) /* only empty sequences: descriptors need at least one row */
        envelope.rows = envelope.steps = 1;
    status = sl_session_prepare_prediction(session, &envelope, false, NULL, err);
    if (status == SEQLSTM_OK)
        status = sl_session_load_weights(session, err);
    if (status == SEQLSTM_OK)
        status = sl_clipping_init(&clipping, sl_session_find_quantization(session), err);
    if (status == SEQLSTM_OK) {
        sl_clipping_watch(&clipping, session->predict.exec);
        status = sl_exec_run(session->predict.exec, batch, &step, &result, err);
    }
    if (status == SEQLSTM_OK)
        status = sl_session_hand_out(session, NULL, batch, 0, write, context, err);
    sl_clipping_warn(&clipping, session);
    sl_clipping_deinit(&clipping);
    sl_stage_deinit(&session->predict);
    sl_batch_destroy(batch);
    return status;
}
