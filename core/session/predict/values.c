/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions for sequences of numbers in memory, all of them packed into one batch. The predictor of the last call is
 * kept: a call with as many sequences, steps and rows uses it again. */
#include "session/predict/values.h"

#include <stdlib.h>
#include <string.h>

#include "predict/whole.h"
#include "session/evaluate/clipping.h"
#include "session/predict/predictor.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

void sl_kept_predictor_deinit(struct sl_kept_predictor *kept)
{
    sl_context_close(kept->context);
    sl_predictor_destroy(kept->predictor);
    *kept = (struct sl_kept_predictor){.predictor = NULL};
}

static seqlstm_status provide(struct sl_session *session, const struct sl_envelope *envelope, struct seqlstm_error *err)
{
    struct sl_kept_predictor *kept = &session->kept;
    const struct sl_predictor_wish wish = {.envelopes = {[SL_USE_WHOLE] = *envelope}};
    if (kept->context && kept->version == session->params->version && kept->envelope.sequences == envelope->sequences &&
        kept->envelope.steps == envelope->steps && kept->envelope.rows == envelope->rows)
        return SEQLSTM_OK;
    sl_kept_predictor_deinit(kept);
    SEQLSTM_TRY(sl_session_make_predictor(session, &wish, &kept->predictor, err));
    kept->envelope = *envelope;
    kept->version = session->params->version;
    return sl_context_open(kept->predictor, &kept->context, err);
}

static seqlstm_status count_rows(const int64_t *lengths, int64_t count, struct sl_envelope *out,
                                 struct seqlstm_error *err)
{
    *out = (struct sl_envelope){.sequences = count};
    for (int64_t k = 0; k < count; k++) {
        if (lengths[k] < 0 || lengths[k] > INT32_MAX)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "sequence %lld has the length %lld", (long long)k,
                         (long long)lengths[k]);
        out->steps = lengths[k] > out->steps ? lengths[k] : out->steps;
        out->rows += lengths[k];
    }
    if (out->rows == 0) /* only empty sequences: descriptors need at least one row */
        out->rows = out->steps = 1;
    return SEQLSTM_OK;
}

static seqlstm_status hand_out(const struct sl_session *session, const float *y, const bool *none,
                               const int64_t *lengths, int64_t count, sl_prediction_fn *write, void *context,
                               struct seqlstm_error *err)
{
    const struct sl_predictor *predictor = session->kept.predictor;
    struct sl_prediction prediction = {.features = sl_predictor_get_features(predictor), .none = none};
    if (!sl_predictor_gives_values(predictor))
        prediction.classes = sl_data_state_find_classes(session->state);
    for (int64_t k = 0; k < count; k++) {
        prediction.record = k;
        prediction.rows = sl_predictor_has_step_output(predictor) ? lengths[k] : 1;
        prediction.values = y;
        SEQLSTM_TRY(write(context, &prediction, err));
        y += prediction.rows * prediction.features;
    }
    return SEQLSTM_OK;
}

static seqlstm_status predict(struct sl_session *session, const float *values, const int64_t *lengths, int64_t count,
                              float *y, struct seqlstm_error *err)
{
    struct sl_clipping clipping = {0};
    struct sl_exec *exec;
    SEQLSTM_TRY(sl_context_provide_exec(session->kept.context, SL_USE_WHOLE, &exec, err));
    SEQLSTM_TRY(sl_clipping_init(&clipping, sl_session_find_quantization(session), err));
    sl_clipping_watch(&clipping, exec);
    const seqlstm_status status = sl_context_predict(session->kept.context, values, lengths, count, y, err);
    sl_exec_watch(exec, NULL, NULL);
    sl_clipping_warn(&clipping, session);
    sl_clipping_deinit(&clipping);
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
    struct sl_envelope envelope;
    if (count < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "there are %lld sequences, expected at least 0", (long long)count);
    SEQLSTM_TRY(count_rows(lengths, count, &envelope, err));
    if (count == 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(provide(session, &envelope, err));
    const struct sl_predictor *predictor = session->kept.predictor;
    const int64_t rows = sl_predictor_has_step_output(predictor) ? envelope.rows : count;
    float *y = malloc((size_t)(rows * sl_predictor_get_features(predictor) + 1) * sizeof *y);
    bool *none = calloc((size_t)envelope.steps + 1, sizeof *none);
    seqlstm_status status = SEQLSTM_OK;
    if (y == NULL || none == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the predictions");
    if (status == SEQLSTM_OK)
        status = predict(session, values, lengths, count, y, err);
    if (status == SEQLSTM_OK)
        status = hand_out(session, y, none, lengths, count, write, context, err);
    free(none);
    free(y);
    return status;
}
