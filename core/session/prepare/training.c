/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares training: data, batchers, class weights, plans and executors. */
#include "session/prepare/training.h"

#include "base/batch/slice.h"
#include "session/data/check_data.h"
#include "session/data/notes.h"
#include "session/data/read_data.h"
#include "session/finding/finding.h"
#include "session/measure/tuning.h"
#include "session/prepare/batching.h"
#include "session/prepare/decoding.h"
#include "session/prepare/division.h"
#include "session/prepare/evaluation.h"
#include "session/prepare/pipeline.h"
#include "session/prepare/sampling.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/sources.h"
#include "train/class_weight.h"
#include "train/metrics/metric.h"

static seqlstm_status open_batchers(struct sl_session *session, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_session_read_data(session, err));
    if (session->train_batcher == NULL)
        SEQLSTM_TRY(sl_session_open_train_batcher(session, err));
    sl_session_note_batches(session, SL_SPLIT_TRAIN, session->train_batcher);
    if (session->valid_batcher || !sl_dataset_has_split(session->model, SL_SPLIT_VALID))
        return SEQLSTM_OK;
    seqlstm_status status = sl_session_blame_data(
        sl_dataset_open(session->model, SL_SPLIT_VALID, session->state, &session->valid_data, err), err);
    if (status != SEQLSTM_OK)
        return sl_session_add_data_finding(session, SL_SPLIT_VALID, status, err);
    sl_sources_check(session, SL_SPLIT_VALID);
    sl_session_note_split(session, SL_SPLIT_VALID, session->valid_data);
    session->noted[SL_SPLIT_VALID] = true;
    return sl_session_open_valid_batcher(session, err);
}

seqlstm_status sl_session_weigh_classes(struct sl_session *session, const float **out_weights,
                                        struct seqlstm_error *err)
{
    *out_weights = session->class_weights;
    if (session->class_weights || !sl_class_weights_are_on(session->model))
        return SEQLSTM_OK;
    struct sl_batcher *counting = NULL;
    struct sl_batcher_request request = {.phase = SL_BATCHING_EVALUATE, .seed = session->model->seed};
    SEQLSTM_TRY(sl_batcher_open(session->train_data, &request, &counting, err));
    int64_t count;
    seqlstm_status status =
        sl_class_weights_create(session->model, session->state, counting, &session->class_weights, &count, err);
    sl_batcher_close(counting);
    *out_weights = session->class_weights;
    return sl_session_add_finding(session, "E0502", "train.class_weight", status, err);
}

/* Makes the graphs and plans of everything that training runs, before any of their buffers. */
static seqlstm_status plan_phases(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_train_config *train = &session->model->train;
    bool weighted = sl_class_weights_are_on(session->model);
    SEQLSTM_TRY(sl_session_check_metrics(session, session->state, err));
    struct sl_envelope envelope = sl_batcher_envelope(session->train_batcher);
    if (sl_session_is_divided(session))
        envelope = sl_envelope_slice(&envelope, sl_session_count_shards(session));
    SEQLSTM_TRY(sl_session_prepare(session, SL_PHASE_TRAIN, &envelope,
                                   sl_metric_needs_output(train, &train->metrics, weighted), false, NULL,
                                   &session->train, err));
    SEQLSTM_TRY(sl_session_check_division(session, err));
    SEQLSTM_TRY(sl_sampling_plan(session, &session->sampling, err));
    if (session->valid_batcher) {
        envelope = sl_batcher_envelope(session->valid_batcher);
        SEQLSTM_TRY(sl_session_prepare(session, SL_PHASE_EVALUATE, &envelope,
                                       sl_metric_needs_output(train, &train->validate.metrics, false), false, NULL,
                                       &session->evaluate, err));
        if (sl_metric_needs_texts(&train->validate.metrics))
            SEQLSTM_TRY(sl_decoding_plan(session, session->valid_batcher, false, true, &session->decoding, err));
    } else if (sl_dataset_has_split(session->model, SL_SPLIT_TEST)) {
        SEQLSTM_TRY(sl_session_plan_test(session, err));
    }
    sl_session_measure_process(session->train.plan); /* now that all of them are made */
    return SEQLSTM_OK;
}

static void drop_phases(struct sl_session *session)
{
    sl_stage_deinit(&session->train);
    sl_stage_deinit(&session->evaluate);
    sl_stage_deinit(&session->test);
    sl_sampling_deinit(&session->sampling);
    sl_decoding_deinit(&session->decoding);
    sl_decoding_deinit(&session->test_decoding);
    sl_params_destroy(session->params); /* those of an evaluation have no room for gradients */
    session->params = NULL;
    session->has_weights = false;
}

seqlstm_status sl_session_prepare_training(struct sl_session *session, struct seqlstm_error *err)
{
    const float *weights;
    SEQLSTM_TRY(sl_session_divide_threads(session, err));
    SEQLSTM_TRY(sl_session_take_plan(session, err));
    SEQLSTM_TRY(open_batchers(session, err));
    SEQLSTM_TRY(sl_session_scan_test(session, err));
    SEQLSTM_TRY(sl_session_weigh_classes(session, &weights, err));
    drop_phases(session);
    SEQLSTM_TRY(plan_phases(session, err));
    sl_session_choose_overlap(session);
    SEQLSTM_TRY(sl_session_send_plan(session, err));
    SEQLSTM_TRY(sl_session_plan_pipeline(session, err));
    SEQLSTM_TRY(sl_session_open_exec(session, &session->train, err));
    SEQLSTM_TRY(sl_sampling_open(session, &session->sampling, err));
    if (session->evaluate.plan)
        SEQLSTM_TRY(sl_session_open_exec(session, &session->evaluate, err));
    if (session->decoding.pair.step.plan)
        SEQLSTM_TRY(sl_decoding_open(session, &session->decoding, err));
    SEQLSTM_TRY(sl_params_init(session->params, session->train.graph, session->model->seed, session->pool, err));
    sl_memory_trim(); /* frees the copies in which orthogonal weights were made */
    return SEQLSTM_OK;
}

seqlstm_status sl_session_make_plan(struct sl_session *session, const struct sl_plan **out_plan,
                                    struct seqlstm_error *err)
{
    if (session->train.plan == NULL) {
        SEQLSTM_TRY(sl_session_divide_threads(session, err));
        SEQLSTM_TRY(open_batchers(session, err));
        SEQLSTM_TRY(plan_phases(session, err));
        SEQLSTM_TRY(sl_session_plan_pipeline(session, err));
    }
    *out_plan = session->train.plan;
    return SEQLSTM_OK;
}
