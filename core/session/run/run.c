/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run: run folder → data → plan → train → evaluate → save. */
#include "session/run/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/value/buf.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "session/evaluate/evaluate.h"
#include "session/finding/mismatch.h"
#include "session/predict/values.h"
#include "session/prepare/division.h"
#include "session/prepare/training.h"
#include "session/record/session_record.h"
#include "session/run/timeline.h"
#include "session/run/turn.h"
#include "session/run_files/new_folder.h"
#include "session/run_files/run_lock.h"
#include "session/run_folder/plan_json.h"
#include "session/report/examples.h"
#include "session/report/report.h"
#include "session/run_folder/setup.h"
#include "session/run_folder/stored_plan.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/initial.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checksums.h"
#include "train/checkpoint/weights.h"
#include "train/trainer/trainer.h"

enum { PREFETCH = 4 };

/* Rank 0 writes the run folder, and no other rank. */
static bool writes(const struct sl_session *session)
{
    return session->ranks.rank == 0;
}

/* A run that has final weights but no checkpoint was not trained here: its weights were imported. */
static seqlstm_status refuse_imported(const struct sl_session *session, struct seqlstm_error *err)
{
    if (!sl_file_is_in(session->folder, "final.safetensors"))
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                 "%s holds imported weights: there is nothing to resume; a run with `train: {init_from: %s}` trains on",
                 session->folder, session->folder);
}

/* The newest checkpoint of a run that is resumed; NULL if there is none. */
static seqlstm_status open_checkpoint(struct sl_session *session, struct sl_safetensors **out_file, char **out_path,
                                      struct seqlstm_error *err)
{
    char *folder = sl_path_join(session->folder, "checkpoints");
    if (folder == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = SEQLSTM_OK;
    if (sl_file_is_folder(folder))
        status = sl_checkpoint_open_latest(folder, session->options.log, out_file, out_path, err);
    free(folder);
    return status;
}

/* Opens the checkpoint that the run begins with, `*out_file` and `*out_path`, or else loads initial weights. */
static seqlstm_status begin(struct sl_session *session, struct sl_safetensors **out_file, char **out_path,
                            struct seqlstm_error *err)
{
    if (session->is_run)
        SEQLSTM_TRY(open_checkpoint(session, out_file, out_path, err));
    if (*out_file) {
        sl_checksums_compare_weights(session->folder, *out_path, session->options.log);
        sl_log_printf(session->options.log, SL_LOG_INFO, "resuming from %s", *out_path);
        return SEQLSTM_OK;
    }
    if (session->is_run) {
        SEQLSTM_TRY(refuse_imported(session, err));
        sl_log_printf(session->options.log, SL_LOG_INFO, "%s has no checkpoint: starting at the beginning",
                      session->folder);
    }
    return sl_session_load_initial(session, err);
}

/* From here on a new run follows its own plan, as a resumed one does: what is planned later (the test split) follows
 * the same choices. */
static seqlstm_status follow_own_plan(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->stored.phases.count > 0)
        return SEQLSTM_OK;
    char *path = sl_path_join(session->folder, "plan.json");
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = sl_stored_plan_read(path, &session->stored, err);
    free(path);
    return status;
}

static seqlstm_status create_trainer(struct sl_session *session, const struct sl_train_observer *observer,
                                     struct sl_trainer **out_trainer, struct seqlstm_error *err)
{
    struct sl_buf plan = {0};
    sl_session_write_choices(session, &plan);
    if (plan.failed) {
        sl_buf_deinit(&plan);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    }
    struct sl_safetensors_text texts[] = {{"plan", sl_buf_text(&plan)}};
    struct sl_trainer_request request = {
        .model = session->model,
        .state = session->state,
        .facts = sl_data_state_get_facts(session->state),
        .exec = session->train.exec,
        .evaluate = session->evaluate.exec,
        .decoder = session->decoding.decoder,
        .sampler = session->sampling.sampler,
        .params = session->params,
        .train = session->train_batcher,
        .valid = session->valid_batcher,
        .is_logits = session->train.graph->output_is_logits,
        .weighted_classes = session->class_weights != NULL,
        .scales_loss = sl_session_scales_loss(session),
        .prefetch = PREFETCH,
        .folder = writes(session) ? session->folder : NULL,
        .texts = texts,
        .text_count = 1,
        .recorder = session->recorder,
        .observer = *observer,
        .owners = session->pipeline.stages > 0 ? &session->owners : NULL,
        .ranks = sl_session_is_divided(session) ? &session->ranks : NULL,
        .interrupt = sl_session_is_divided(session) ? &session->ranks.agreed : session->options.interrupt,
        .log = session->options.log,
        .memory = &session->memory,
        .lock = session->lock,
        .clock_ns = session->connection ? sl_ranks_read_clock : NULL,
        .clock_context = &session->ranks,
    };
    seqlstm_status status = sl_trainer_create(&request, out_trainer, err);
    sl_buf_deinit(&plan);
    return status;
}

/* Makes the trainer, at the state of the checkpoint if there is one; *out_trainer may be set on failure, too. */
static seqlstm_status open_trainer(struct sl_session *session, const struct sl_run_observer *observer,
                                   struct sl_trainer **out_trainer, struct seqlstm_error *err)
{
    struct sl_safetensors *checkpoint = NULL;
    char *path = NULL;
    seqlstm_status status = begin(session, &checkpoint, &path, err);
    if (status == SEQLSTM_OK)
        status = create_trainer(session, &observer->train, out_trainer, err);
    if (status == SEQLSTM_OK && checkpoint)
        status = sl_session_add_mismatch(session, path, sl_trainer_restore(*out_trainer, checkpoint, err), err);
    sl_safetensors_close(checkpoint);
    free(path);
    return status;
}

/* Writes the data state, the plan, and the configuration if --set changed it. */
static seqlstm_status store(struct sl_session *session, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_run_lock_check(session, err));
    SEQLSTM_TRY(sl_checksums_forget(session->folder, "metrics.jsonl", NULL, err)); /* it grows from now on */
    SEQLSTM_TRY(sl_run_folder_write_setup(session, err));
    SEQLSTM_TRY(follow_own_plan(session, err));
    return session->changed ? sl_run_folder_write_config(session, err) : SEQLSTM_OK;
}

/* The metrics of training were taken while the weights changed. Restored or averaged weights are others: all splits are
 * measured with these. */
static seqlstm_status measure_train(struct sl_session *session, struct sl_run_result *result, struct seqlstm_error *err)
{
    if (!result->train.restored && !result->train.averaged)
        return SEQLSTM_OK;
    const struct sl_evaluation_watch watch = {.metrics = &session->model->train.metrics};
    struct sl_evaluation evaluation;
    sl_exec_destroy(session->evaluate.exec); /* validation is over: room for the buffers of this one */
    session->evaluate.exec = NULL;
    SEQLSTM_TRY(sl_session_evaluate_watched(session, SL_SPLIT_TRAIN, &watch, &evaluation, err));
    result->train.train = evaluation.values;
    result->measured_again = true;
    return SEQLSTM_OK;
}

static seqlstm_status measure_test(struct sl_session *session, struct sl_run_result *result,
                                   struct sl_examples *examples, struct seqlstm_error *err)
{
    if (!sl_dataset_has_split(session->model, SL_SPLIT_TEST))
        return SEQLSTM_OK;
    const struct sl_evaluation_watch watch = {
        .quantization = sl_session_find_quantization(session), .on_batch = sl_examples_add, .batch_context = examples};
    struct sl_evaluation evaluation;
    SEQLSTM_TRY(sl_session_evaluate_watched(session, SL_SPLIT_TEST, &watch, &evaluation, err));
    result->has_test = true;
    result->test = evaluation.values;
    return SEQLSTM_OK;
}

/* Where the measurement of the test split has not shown the answers, since its metrics do not need them or there is no
 * such split: measures it, or the validation split, once more. */
static seqlstm_status collect_examples(struct sl_session *session, struct sl_examples *examples,
                                       struct seqlstm_error *err)
{
    static const enum sl_metric accuracy = SL_METRIC_ACCURACY, error = SL_METRIC_MAE;
    const struct sl_metric_list metrics = {examples->kind == SL_EXAMPLES_CLASSES ? &accuracy : &error, 1};
    const struct sl_evaluation_watch watch = {
        .metrics = &metrics, .on_batch = sl_examples_add, .batch_context = examples};
    struct sl_evaluation evaluation;
    if (examples->kind == SL_EXAMPLES_NONE || examples->rows > 0 ||
        !sl_dataset_has_split(session->model, examples->split))
        return SEQLSTM_OK;
    return sl_session_evaluate_watched(session, examples->split, &watch, &evaluation, err);
}

/* A run whose final weights give no number on a split has diverged. */
static void judge(struct sl_train_result *train, const struct sl_metric_values *values, enum sl_split split)
{
    const struct sl_metric_value *unsound = sl_metric_values_find_unsound(values);
    if (unsound == NULL)
        return;
    train->end = SL_END_DIVERGED;
    sl_text_snprintf(train->reason, sizeof train->reason, "the %s of the %s split is %s with the final weights",
                     unsound->name, sl_split_get_name(split), isnan(unsound->value) ? "not a number" : "infinite");
}

/* Writes weights, final metrics and summary of a run that has ended. */
static seqlstm_status finish(struct sl_session *session, struct sl_run_result *result, struct sl_examples *examples,
                             int64_t start_ns, struct seqlstm_error *err)
{
    bool over = result->train.end == SL_END_EPOCHS || result->train.end == SL_END_UPDATES ||
                result->train.end == SL_END_EARLY_STOPPING;
    session->has_weights = true;
    SEQLSTM_TRY(sl_run_lock_check(session, err));
    if (over) {
        char *path = sl_path_join(session->folder, "final.safetensors");
        if (path == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
        seqlstm_status status = sl_checksums_forget(session->folder, "final.safetensors", NULL, err);
        if (status == SEQLSTM_OK)
            status = sl_weights_save(session->params, path, NULL, 0, err);
        if (status == SEQLSTM_OK)
            status = sl_checksums_note_weights(session->folder, "final.safetensors", err);
        free(path);
        SEQLSTM_TRY(status);
        SEQLSTM_TRY(measure_train(session, result, err));
        SEQLSTM_TRY(measure_test(session, result, examples, err));
        SEQLSTM_TRY(collect_examples(session, examples, err));
        result->examples = examples;
        if (result->has_test)
            judge(&result->train, &result->test, SL_SPLIT_TEST);
        if (result->measured_again)
            judge(&result->train, &result->train.train, SL_SPLIT_TRAIN);
    }
    result->seconds = (double)(sl_clock_ns() - start_ns) * 1e-9;
    SEQLSTM_TRY(sl_run_lock_check(session, err));
    SEQLSTM_TRY(sl_run_folder_write_summary(session, result, err));
    if (over)
        SEQLSTM_TRY(sl_checksums_note_bytes(session->folder, "metrics.jsonl", err));
    sl_report_write(session, result);
    return sl_run_lock_check(session, err);
}

/* The same with room for what the report shows of the answers. */
static seqlstm_status conclude(struct sl_session *session, struct sl_run_result *result, int64_t start_ns,
                               struct seqlstm_error *err)
{
    const enum sl_split split = sl_dataset_has_split(session->model, SL_SPLIT_TEST) ? SL_SPLIT_TEST : SL_SPLIT_VALID;
    struct sl_examples *examples = malloc(sizeof *examples);
    if (examples == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the report");
    sl_examples_init(examples, session->model, session->state, split);
    seqlstm_status status = finish(session, result, examples, start_ns, err);
    result->examples = NULL;
    free(examples);
    return status;
}

/* Everything before the first step: data, plan, the trainer at its state, and the files that a run begins with. A new
 * run that fails on its data or its plan leaves no folder. */
static seqlstm_status prepare(struct sl_session *session, const struct sl_run_observer *observer,
                              struct sl_trainer **out_trainer, struct seqlstm_error *err)
{
    sl_kept_predictor_deinit(&session->kept); /* its weights are the old ones */
    seqlstm_status status = sl_session_prepare_training(session, err);
    if (status != SEQLSTM_OK) {
        if (status != SEQLSTM_CANCELLED)
            sl_new_folder_discard(session);
        return status;
    }
    SEQLSTM_TRY(open_trainer(session, observer, out_trainer, err));
    if (!writes(session))
        return SEQLSTM_OK;
    return store(session, err); /* the checkpoint fits the configuration: from here on the run has this configuration */
}

seqlstm_status sl_session_run(struct sl_session *session, const struct sl_run_observer *observer,
                              struct sl_run_result *out_result, struct seqlstm_error *err)
{
    int64_t start_ns = sl_clock_ns();
    struct sl_run_result result = {0};
    SEQLSTM_TRY(sl_session_join(session, err));
    session->replay |= session->is_run;
    session->quantization.layers.count = 0; /* training and its evaluations are in the model's precision */
    seqlstm_status status = !writes(session)  ? SEQLSTM_OK
                            : session->folder ? sl_run_lock_take(session, err)
                                              : sl_new_folder_begin(session, err);
    result.folder = session->folder;
    if (status == SEQLSTM_OK && observer->on_folder)
        observer->on_folder(observer->train.context, session->folder);
    struct sl_trainer *trainer = NULL;
    if (status == SEQLSTM_OK)
        status = sl_session_open_recorder(session, err);
    if (status == SEQLSTM_OK)
        status = prepare(session, observer, &trainer, err);
    if (status == SEQLSTM_OK && observer->on_start)
        observer->on_start(observer->train.context, session, session->train.plan, session->folder);
    if (status == SEQLSTM_OK)
        status = sl_trainer_run(trainer, &result.train, err);
    sl_trainer_destroy(trainer);
    if (status == SEQLSTM_OK && session->recorder)
        sl_session_note_timeline(session);
    sl_session_leave(session);
    if (status != SEQLSTM_OK && sl_run_lock_check(session, err) != SEQLSTM_OK)
        return SEQLSTM_IO; /* whatever failed first, it failed because the folder is gone */
    SEQLSTM_TRY(status);
    if (writes(session))
        SEQLSTM_TRY(conclude(session, &result, start_ns, err));
    *out_result = result;
    return SEQLSTM_OK;
}
