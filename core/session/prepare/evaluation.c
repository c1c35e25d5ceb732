/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the evaluation of a split. */
#include "session/prepare/evaluation.h"

#include <stdlib.h>

#include "session/data/read_data.h"
#include "session/measure/tuning.h"
#include "session/prepare/decoding.h"
#include "session/prepare/pair.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "train/metrics/metric.h"

/* Streams of test text are read with one row, as for published results: every position counts. */
static int64_t get_batch_size(const struct sl_session *session, enum sl_split split)
{
    return session->model->data.batching.unit == SL_UNIT_STREAM && split == SL_SPLIT_TEST ? 1 : 0;
}

seqlstm_status sl_session_prepare_evaluation(struct sl_session *session, const struct sl_evaluation_request *request,
                                             struct sl_batcher **out_batcher, struct sl_stage *stage,
                                             struct seqlstm_error *err)
{
    const struct sl_train_config *train = &session->model->train;
    const struct sl_metric_list *metrics = request->metrics ? request->metrics : &train->validate.metrics;
    const bool planned_alone = !request->with_exec;
    struct sl_batcher_request batches = {.phase = SL_BATCHING_EVALUATE,
                                         .seed = session->model->seed,
                                         .batch_size = get_batch_size(session, request->split)};
    SEQLSTM_TRY(sl_batcher_open(request->data, &batches, out_batcher, err));
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    struct sl_profiles profiles = {0};
    facts.envelope = sl_batcher_envelope(*out_batcher);
    struct sl_graph_request graph = {.model = session->model,
                                     .facts = &facts,
                                     .phase = SL_PHASE_EVALUATE,
                                     .need_output = sl_metric_needs_output(train, metrics, false),
                                     .quantization = request->quantization};
    if (planned_alone)
        SEQLSTM_TRY(sl_batcher_sample(*out_batcher, &profiles, err));
    seqlstm_status status = sl_session_prepare_stage(session, &graph, planned_alone ? &profiles : NULL,
                                                     request->choices, request->with_exec, stage, err);
    sl_profiles_deinit(&profiles);
    return status;
}

seqlstm_status sl_session_plan_evaluation(struct sl_session *session, enum sl_split split,
                                          const struct sl_plan **out_plan, struct seqlstm_error *err)
{
    struct sl_dataset *data = NULL;
    struct sl_batcher *batcher = NULL;
    sl_stage_deinit(&session->evaluate);
    sl_decoding_deinit(&session->decoding);
    SEQLSTM_TRY(sl_session_open_split(session, split, &data, err));
    const struct sl_evaluation_request request = {
        .data = data, .split = split, .quantization = sl_session_find_quantization(session)};
    seqlstm_status status = sl_session_prepare_evaluation(session, &request, &batcher, &session->evaluate, err);
    if (status == SEQLSTM_OK && sl_metric_needs_texts(&session->model->train.validate.metrics))
        status = sl_decoding_plan(session, batcher, false, true, &session->decoding, err);
    if (status == SEQLSTM_OK)
        sl_session_measure_process(session->evaluate.plan);
    sl_batcher_close(batcher);
    sl_dataset_close(data);
    *out_plan = session->evaluate.plan;
    return status;
}

/* Follows the choices of training, as the evaluation at the end of the run does, when they are the stored ones. */
seqlstm_status sl_session_plan_test(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_choices none = {0};
    struct sl_choices choices = {0};
    struct sl_dataset *data = NULL;
    struct sl_batcher *batcher = NULL;
    SEQLSTM_TRY(sl_session_read_split(session, SL_SPLIT_TEST, &data, err));
    const struct sl_evaluation_request request = {.data = data, .split = SL_SPLIT_TEST, .choices = &choices};
    seqlstm_status status = sl_session_list_choices(session, &none, false, &choices, err);
    if (status == SEQLSTM_OK)
        status = sl_session_prepare_evaluation(session, &request, &batcher, &session->test, err);
    if (status == SEQLSTM_OK && sl_metric_needs_texts(&session->model->train.validate.metrics))
        status = sl_decoding_plan(session, batcher, false, true, &session->test_decoding, err);
    free(choices.items);
    sl_batcher_close(batcher);
    sl_dataset_close(data);
    return status;
}
