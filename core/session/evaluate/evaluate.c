/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of a split with the weights of the run. */
#include <stdlib.h>

#include "base/system/file.h"
#include "session/session_private.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/weights.h"

seqlstm_status sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err)
{
    if (session->state != NULL)
        return SEQLSTM_OK;
    if (session->folder == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has not been trained");
    SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND,
                 "%s has not been trained: nothing of its data was learned yet; `seqlstm resume %s` begins it",
                 session->folder, session->folder);
}

seqlstm_status sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->has_weights)
        return SEQLSTM_OK;
    if (session->folder == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has not been trained");
    char *path = sl_path_join(session->folder, "final.safetensors");
    char *folder = sl_path_join(session->folder, "checkpoints");
    seqlstm_status status = SEQLSTM_OK;
    if (path == NULL || folder == NULL) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
        goto out;
    }
    if (!sl_file_exists(path)) {
        struct sl_safetensors *file = NULL;
        free(path);
        path = NULL;
        if (sl_file_is_folder(folder))
            status = sl_checkpoint_open_latest(folder, session->options.log, &file, &path, err);
        sl_safetensors_close(file);
        if (status == SEQLSTM_OK && path == NULL)
            status = seqlstm_error_set(err, SEQLSTM_NOT_FOUND, __FILE__, __LINE__,
                                       "%s holds no weights yet: neither final.safetensors nor a checkpoint; "
                                       "`seqlstm resume %s` trains it",
                                       session->folder, session->folder);
        if (status == SEQLSTM_OK)
            sl_log_printf(session->options.log, SL_LOG_WARN, "the run is not finished; using %s", path);
    }
    if (status == SEQLSTM_OK)
        status = sl_session_find_misfit(session, path, sl_weights_load(session->params, path, 0, NULL, err), err);
    if (status == SEQLSTM_OK)
        status = sl_stored_quantization_check(session, err);
    session->has_weights = status == SEQLSTM_OK;
out:
    free(path);
    free(folder);
    return status;
}

/* Streams of test text are read with one row, as published results are: every position counts. */
static int64_t get_batch_size(const struct sl_session *session, enum sl_split split)
{
    return session->model->data.batching.unit == SL_UNIT_STREAM && split == SL_SPLIT_TEST ? 1 : 0;
}

/* Batches of the data, and graph and plan for them: with `with_exec` the executor, else what whoever says the memory
 * wants to know. `choices` as for sl_session_prepare_stage. */
static seqlstm_status prepare(struct sl_session *session, const struct sl_dataset *data, enum sl_split split,
                              const struct sl_quantization *quantization, const struct sl_choices *choices,
                              bool with_exec, struct sl_batcher **out_batcher, struct sl_stage *stage,
                              struct seqlstm_error *err)
{
    const struct sl_train_config *train = &session->model->train;
    struct sl_batcher_request request = {
        .phase = SL_BATCHING_EVALUATE, .seed = session->model->seed, .batch_size = get_batch_size(session, split)};
    SEQLSTM_TRY(sl_batcher_open(data, &request, out_batcher, err));
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    struct sl_profiles profiles = {0};
    facts.envelope = sl_batcher_envelope(*out_batcher);
    struct sl_graph_request graph = {.model = session->model,
                                     .facts = &facts,
                                     .phase = SL_PHASE_EVALUATE,
                                     .need_output = sl_metric_needs_output(train, &train->validate.metrics, false),
                                     .quantization = quantization};
    if (!with_exec)
        SEQLSTM_TRY(sl_batcher_sample(*out_batcher, &profiles, err));
    seqlstm_status status =
        sl_session_prepare_stage(session, &graph, with_exec ? NULL : &profiles, choices, with_exec, stage, err);
    sl_profiles_deinit(&profiles);
    return status;
}

static seqlstm_status evaluate(struct sl_session *session, const struct sl_dataset *data, enum sl_split split,
                               const struct sl_evaluation_watch *watch, struct sl_evaluation *out_evaluation,
                               struct seqlstm_error *err)
{
    const struct sl_train_config *train = &session->model->train;
    struct sl_batcher *batcher = NULL;
    struct sl_stage stage = {0};
    seqlstm_status status = prepare(session, data, split, watch->quantization, NULL, true, &batcher, &stage, err);
    bool texts = sl_metric_needs_texts(&train->validate.metrics);
    struct sl_decoding decoding = {0};
    sl_decoding_close(&session->decoding); /* of the validation, which is over */
    if (status == SEQLSTM_OK && texts)
        status = sl_decoding_plan(session, batcher, false, false, &decoding, err);
    if (status == SEQLSTM_OK && texts)
        status = sl_decoding_open(session, &decoding, err);
    if (status == SEQLSTM_OK)
        status = sl_session_load_weights(session, err);
    if (status == SEQLSTM_OK) {
        struct sl_metric_rule rule;
        sl_metric_rule_init(&rule, train, &train->validate.metrics, stage.graph->output_is_logits, false,
                            session->state);
        sl_exec_watch(stage.exec, watch->on_call, watch->context);
        status =
            sl_evaluate(stage.exec, decoding.decoder, batcher, &rule, session->options.interrupt, out_evaluation, err);
        if (status == SEQLSTM_OK && watch->on_end)
            status = watch->on_end(watch->context, &stage, err);
    }
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

static seqlstm_status read_split(struct sl_session *session, enum sl_split split, struct sl_dataset **out_data,
                                 struct seqlstm_error *err)
{
    seqlstm_status status =
        sl_session_blame_data(sl_dataset_open(session->model, split, session->state, out_data, err), err);
    return status == SEQLSTM_OK ? status : sl_session_find_data_error(session, split, status, err);
}

static seqlstm_status open_split(struct sl_session *session, enum sl_split split, struct sl_dataset **out_data,
                                 struct seqlstm_error *err)
{
    if (session->state == NULL)
        SEQLSTM_TRY(sl_session_read_data(session, err));
    if (!sl_dataset_has_split(session->model, split))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the model file has no data.%s", sl_split_get_name(split));
    SEQLSTM_TRY(read_split(session, split, out_data, err));
    /* a part cut off `train` lies in its file, which training looks at by itself */
    bool cut = session->model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN;
    if (!cut || session->train_data == NULL)
        sl_sources_check(session, cut ? SL_SPLIT_TRAIN : split);
    sl_session_note_split(session, split, *out_data);
    return SEQLSTM_OK;
}

seqlstm_status sl_session_evaluate_watched(struct sl_session *session, enum sl_split split,
                                           const struct sl_evaluation_watch *watch,
                                           struct sl_evaluation *out_evaluation, struct seqlstm_error *err)
{
    struct sl_dataset *data = NULL;
    SEQLSTM_TRY(open_split(session, split, &data, err));
    seqlstm_status status = evaluate(session, data, split, watch, out_evaluation, err);
    sl_dataset_close(data);
    return status;
}

seqlstm_status sl_session_plan_evaluation(struct sl_session *session, enum sl_split split,
                                          const struct sl_plan **out_plan, struct seqlstm_error *err)
{
    struct sl_dataset *data = NULL;
    struct sl_batcher *batcher = NULL;
    sl_stage_deinit(&session->evaluate);
    sl_decoding_deinit(&session->decoding);
    SEQLSTM_TRY(open_split(session, split, &data, err));
    seqlstm_status status = prepare(session, data, split, sl_session_find_quantization(session), NULL, false, &batcher,
                                    &session->evaluate, err);
    if (status == SEQLSTM_OK && sl_metric_needs_texts(&session->model->train.validate.metrics))
        status = sl_decoding_plan(session, batcher, false, true, &session->decoding, err);
    if (status == SEQLSTM_OK)
        sl_session_measure_process(session->evaluate.plan);
    sl_batcher_close(batcher);
    sl_dataset_close(data);
    *out_plan = session->evaluate.plan;
    return status;
}

/* Who runs it follows from the choices of training, as it does at the end, when they are the stored ones. */
seqlstm_status sl_session_plan_test(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_choices none = {0};
    struct sl_choices choices = {0};
    struct sl_dataset *data = NULL;
    struct sl_batcher *batcher = NULL;
    SEQLSTM_TRY(read_split(session, SL_SPLIT_TEST, &data, err));
    seqlstm_status status = sl_session_list_choices(session, &none, false, &choices, err);
    if (status == SEQLSTM_OK)
        status = prepare(session, data, SL_SPLIT_TEST, NULL, &choices, false, &batcher, &session->test, err);
    if (status == SEQLSTM_OK && sl_metric_needs_texts(&session->model->train.validate.metrics))
        status = sl_decoding_plan(session, batcher, false, true, &session->test_decoding, err);
    free(choices.items);
    sl_batcher_close(batcher);
    sl_dataset_close(data);
    return status;
}
