/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a split with the weights of the run. */
#include "session/evaluate/evaluate.h"

#include <stdlib.h>

#include "base/system/file.h"
#include "session/data/read_data.h"
#include "session/evaluate/clipping.h"
#include "session/prepare/decoding.h"
#include "session/prepare/evaluation.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/weights.h"

static seqlstm_status evaluate(struct sl_session *session, const struct sl_dataset *data, enum sl_split split,
                               const struct sl_evaluation_watch *watch, struct sl_evaluation *out_evaluation,
                               struct seqlstm_error *err)
{
    const struct sl_train_config *train = &session->model->train;
    struct sl_batcher *batcher = NULL;
    struct sl_stage stage = {0};
    const struct sl_evaluation_request request = {.data = data,
                                                  .split = split,
                                                  .quantization = watch->quantization,
                                                  .metrics = watch->metrics,
                                                  .with_exec = true};
    seqlstm_status status = sl_session_prepare_evaluation(session, &request, &batcher, &stage, err);
    bool texts = !watch->metrics && sl_metric_needs_texts(&train->validate.metrics);
    struct sl_decoding decoding = {0};
    struct sl_clipping clipping = {0};
    sl_decoding_close(&session->decoding); /* of the validation, which is over */
    if (status == SEQLSTM_OK && texts)
        status = sl_decoding_plan(session, batcher, false, false, &decoding, err);
    if (status == SEQLSTM_OK && texts)
        status = sl_decoding_open(session, &decoding, err);
    if (status == SEQLSTM_OK)
        status = sl_session_load_weights(session, err);
    if (status == SEQLSTM_OK)
        status = sl_clipping_init(&clipping, watch->quantization, err);
    if (status == SEQLSTM_OK) {
        struct sl_metric_rule rule;
        sl_metric_rule_init(&rule, train, watch->metrics ? watch->metrics : &train->validate.metrics,
                            stage.graph->output_is_logits, false, session->state);
        if (!texts)
            sl_metric_rule_drop_texts(&rule);
        sl_exec_watch(stage.exec, watch->on_call, watch->context);
        if (watch->on_call == NULL)
            sl_clipping_watch(&clipping, stage.exec);
        struct sl_evaluator evaluator;
        sl_evaluator_init(&evaluator, stage.exec, decoding.decoder, batcher, &rule);
        evaluator.on_batch = watch->on_batch;
        evaluator.context = watch->batch_context;
        status = sl_evaluate_all(&evaluator, batcher, session->options.interrupt, out_evaluation, err);
        if (status == SEQLSTM_OK && watch->on_end)
            status = watch->on_end(watch->context, &stage, err);
    }
    if (status == SEQLSTM_OK && watch->clipped)
        *watch->clipped = sl_clipping_sum(&clipping);
    else if (status == SEQLSTM_OK)
        sl_clipping_warn(&clipping, session);
    sl_clipping_deinit(&clipping);
    if (texts && status == SEQLSTM_OK)
        sl_session_note_decoding(session, decoding.decoder);
    sl_decoding_deinit(&decoding);
    sl_stage_deinit(&stage);
    sl_batcher_close(batcher);
    return status;
}

seqlstm_status sl_session_evaluate(struct sl_session *session, enum sl_split split,
                                   struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    const struct sl_evaluation_watch plain = {.quantization = sl_session_find_quantization(session)};
    return sl_session_evaluate_watched(session, split, &plain, out_evaluation, err);
}

seqlstm_status sl_session_evaluate_watched(struct sl_session *session, enum sl_split split,
                                           const struct sl_evaluation_watch *watch,
                                           struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    struct sl_dataset *data = NULL;
    if (split == SL_SPLIT_TRAIN && session->train_data)
        return evaluate(session, session->train_data, split, watch, out_evaluation, err);
    SEQLSTM_TRY(sl_session_open_split(session, split, &data, err));
    seqlstm_status status = evaluate(session, data, split, watch, out_evaluation, err);
    sl_dataset_close(data);
    return status;
}
