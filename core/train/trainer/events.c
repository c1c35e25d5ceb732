/* SPDX-License-Identifier: Apache-2.0 */
/* What happens between updates: reports, validation, checkpoints. */
#include "train/trainer/events.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/trace.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "train/checkpoint/checksums.h"
#include "train/evaluate.h"
#include "train/trainer/clock.h"
#include "train/trainer/shards.h"
#include "train/trainer/stages.h"

static struct sl_train_report make_report(const struct sl_trainer *trainer, const struct sl_metric_values *values)
{
    const struct sl_train_state *state = &trainer->state;
    double seconds = trainer->progress.seconds - trainer->report_seconds;
    return (struct sl_train_report){
        .progress = trainer->progress,
        .epoch = state->epoch,
        .batch = state->ordinal,
        .epoch_batches = state->epoch_batches,
        .epochs = trainer->config->epochs,
        .updates = trainer->config->updates,
        .learning_rate = trainer->rate,
        .teacher_forcing = trainer->teacher,
        .gradient_norm = trainer->gradient_norm,
        .loss = trainer->loss,
        .rows_per_second = seconds > 0 ? (double)(state->tokens - trainer->report_tokens) / seconds : NAN,
        .skipped = state->skipped,
        .values = values,
    };
}

static void notify(const struct sl_trainer *trainer, void (*tell)(void *, const struct sl_train_report *),
                   const struct sl_train_report *report)
{
    if (tell)
        tell(trainer->request.observer.context, report);
}

seqlstm_status sl_trainer_fail_lock(const char *folder, const struct sl_file_lock *lock, struct seqlstm_error *err)
{
    if (sl_file_lock_is_closed(lock))
        SEQLSTM_FAIL(err, SEQLSTM_IO,
                     "something in this process, such as a plugin, has closed the lock of the run folder %s: nothing "
                     "more is saved; use `seqlstm resume` without it",
                     folder);
    SEQLSTM_FAIL(err, SEQLSTM_IO,
                 "the run folder %s was moved or removed while the run went on: nothing more is saved; use `seqlstm "
                 "resume` with its new place",
                 folder);
}

static seqlstm_status check_folder(const struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_trainer_request *request = &trainer->request;
    if (request->lock == NULL || sl_file_lock_is_there(request->lock))
        return SEQLSTM_OK;
    return sl_trainer_fail_lock(request->folder, request->lock, err);
}

static seqlstm_status append_row(struct sl_trainer *trainer, const char *split, const char *span,
                                 const struct sl_train_report *report, struct seqlstm_error *err)
{
    if (!trainer->metrics && !trainer->tensorboard)
        return SEQLSTM_OK;
    SEQLSTM_TRY(check_folder(trainer, err));
    bool train = strcmp(split, "train") == 0, reports = strcmp(span, "report") == 0;
    struct sl_metrics_row row = {
        .update = report->progress.updates,
        .epoch = report->progress.epochs,
        .seconds = report->progress.seconds,
        .split = split,
        .span = span,
        .learning_rate = train ? report->learning_rate : NAN,
        .teacher_forcing = train ? report->teacher_forcing : NAN,
        .gradient_norm = train ? report->gradient_norm : NAN,
        .rows_per_second = reports ? report->rows_per_second : NAN,
        .values = report->values,
    };
    if (trainer->metrics)
        SEQLSTM_TRY(sl_metrics_log_append(trainer->metrics, &row, err));
    return trainer->tensorboard ? sl_tensorboard_log_append(trainer->tensorboard, &row, err) : SEQLSTM_OK;
}

static seqlstm_status append_weights(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    if (!trainer->request.model->output.weight_histograms)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_trainer_gather_weights(trainer, err)); /* rank 0 alone has a file */
    if (!trainer->tensorboard)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_params_pull(trainer->request.params, err));
    return sl_tensorboard_log_append_params(trainer->tensorboard, trainer->state.updates, trainer->request.params, err);
}

static seqlstm_status write_reports(struct sl_trainer *trainer, const struct sl_progress *before, bool epoch_ended,
                                    struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    struct sl_metric_values values;
    struct sl_train_report report;
    if (sl_period_is_due(&trainer->request.model->log.every, before, &trainer->progress)) {
        sl_metric_finish(&trainer->train_rule, &state->interval_sums, &values);
        report = make_report(trainer, &values);
        SEQLSTM_TRY(append_row(trainer, "train", "report", &report, err));
        notify(trainer, trainer->request.observer.on_report, &report);
        memset(&state->interval_sums, 0, sizeof state->interval_sums);
        trainer->report_tokens = state->tokens;
        trainer->report_seconds = trainer->progress.seconds;
    }
    if (epoch_ended) {
        state->last_epoch_sums = state->epoch_sums;
        memset(&state->epoch_sums, 0, sizeof state->epoch_sums);
        sl_metric_finish(&trainer->train_rule, &state->last_epoch_sums, &values);
        report = make_report(trainer, &values);
        report.epoch = state->epoch - 1;
        report.batch = report.epoch_batches;
        SEQLSTM_TRY(append_row(trainer, "train", "epoch", &report, err));
        SEQLSTM_TRY(append_weights(trainer, err));
        notify(trainer, trainer->request.observer.on_epoch, &report);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_report(struct sl_trainer *trainer, const struct sl_progress *before, bool epoch_ended,
                                 struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_REPORT, NULL);
    const struct sl_train_report report = make_report(trainer, NULL);
    notify(trainer, trainer->request.observer.on_step, &report);
    const seqlstm_status status = write_reports(trainer, before, epoch_ended, err);
    sl_trace_end(begin, SL_ACTIVITY_REPORT, NULL, NULL, 0);
    return status;
}

/* ---- validation --------------------------------------------------------------------------------------- */

/* The watched value: of the last validation, or of the epoch's training. */
static double find_watched(const struct sl_trainer *trainer, const char *monitor)
{
    enum sl_split split = SL_SPLIT_VALID;
    enum sl_metric metric = SL_METRIC_LOSS;
    const struct sl_train_state *state = &trainer->state;
    struct sl_metric_values values;
    if (monitor && !sl_monitor_parse(monitor, &split, &metric))
        return NAN;
    if (!monitor && !trainer->request.valid)
        split = SL_SPLIT_TRAIN;
    if (split == SL_SPLIT_VALID)
        sl_metric_finish(&trainer->valid_rule, &state->valid_sums, &values);
    else
        sl_metric_finish(&trainer->train_rule, state->ordinal ? &state->epoch_sums : &state->last_epoch_sums, &values);
    return sl_metric_values_get(&values, metric);
}

/* The weights that were just evaluated. */
static void keep_weights(struct sl_trainer *trainer)
{
    const struct sl_params *params = trainer->request.params;
    memcpy(trainer->best, params->values, (size_t)params->elems * sizeof(float));
    if (trainer->average.active)
        memcpy(trainer->best, trainer->average.values, (size_t)params->trainable_elems * sizeof(float));
    trainer->state.best_sums = trainer->state.valid_sums;
    trainer->state.best_update = trainer->state.updates;
    trainer->state.best_epochs = trainer->progress.epochs;
}

bool sl_trainer_judge_sums(struct sl_trainer *trainer, const struct sl_metric_rule *rule,
                           const struct sl_metric_sums *sums, const char *measurement)
{
    struct sl_metric_values values;
    sl_metric_finish(rule, sums, &values);
    const struct sl_metric_value *unsound = sl_metric_values_find_unsound(&values);
    if (unsound == NULL)
        return true;
    const struct sl_train_state *state = &trainer->state;
    char why[128] = "";
    if (state->skipped > 0)
        sl_text_snprintf(why, sizeof why, "; %" PRId64 " of %" PRId64 " update%s skipped", state->skipped,
                         state->updates, state->updates == 1 ? " was" : "s were");
    else if (sums->loss_weight == 0)
        sl_text_snprintf(why, sizeof why, ": no row counts, because all have weight 0 or no target");
    sl_text_snprintf(trainer->reason, sizeof trainer->reason, "the %s of the last %s is %s%s", unsound->name,
                     measurement, isnan(unsound->value) ? "not a number" : "infinite", why);
    return false;
}

/* Once in a run: more would hide what else is logged. */
static void warn_of_unsound(struct sl_trainer *trainer)
{
    const struct sl_train_state *state = &trainer->state;
    if (trainer->warned || sl_trainer_judge_sums(trainer, &trainer->valid_rule, &state->valid_sums, "validation"))
        return;
    trainer->warned = true;
    sl_log_printf(trainer->request.log, SL_LOG_WARN,
                  "%s (update %" PRId64 "); it never counts as the best, and a run that ends like this has diverged",
                  trainer->reason, state->updates);
    trainer->reason[0] = '\0';
}

static bool observe_stopping(struct sl_trainer *trainer)
{
    const struct sl_early_stopping *stopping = &trainer->config->early_stopping;
    if (!stopping->enabled || !sl_period_is_over(&stopping->start, &trainer->progress))
        return false;
    struct sl_monitor_rule rule = {stopping->mode, stopping->min_delta};
    bool improved = sl_monitor_update(&trainer->state.stopping, &rule, find_watched(trainer, stopping->monitor));
    if (improved && trainer->best)
        keep_weights(trainer);
    return improved;
}

/* Inserts the update into the list of the best; true if it is among them. */
static bool observe_best(struct sl_trainer *trainer)
{
    const struct sl_checkpoint *config = &trainer->config->checkpoint;
    struct sl_train_state *state = &trainer->state;
    if (config->keep_best <= 0)
        return false;
    double value = find_watched(trainer, config->monitor);
    if (!isfinite(value))
        return false;
    int64_t place = 0;
    for (; place < state->best_count; place++) {
        double other = state->best_entries[place].value;
        if (config->mode == SL_MODE_MAX ? value > other : value < other)
            break;
    }
    if (place >= config->keep_best)
        return false;
    int64_t moved = state->best_count - place - (state->best_count == config->keep_best);
    memmove(&state->best_entries[place + 1], &state->best_entries[place], (size_t)moved * sizeof *state->best_entries);
    state->best_entries[place] = (struct sl_best_entry){state->updates, value};
    state->best_count += state->best_count < config->keep_best;
    return true;
}

static void observe_trigger(struct sl_trainer *trainer)
{
    if (trainer->average.kind != SL_AVERAGE_MEAN || trainer->average.active)
        return;
    if (sl_non_monotone_update(&trainer->state.trigger, trainer->config->optimizer.patience, SL_MODE_MIN,
                               find_watched(trainer, NULL)))
        sl_average_start(&trainer->average);
}

static seqlstm_status evaluate(struct sl_trainer *trainer, struct sl_evaluation *out, struct seqlstm_error *err)
{
    const struct sl_trainer_request *request = &trainer->request;
    const struct sl_batching *batching = &request->model->data.batching;
    const struct sl_evaluation_ranks divided = {.exec = request->evaluate,
                                                .decoder = request->decoder,
                                                .batcher = request->valid,
                                                .rule = &trainer->valid_rule,
                                                .carries = batching->unit == SL_UNIT_STREAM || batching->bptt > 0};
    return request->ranks ? sl_evaluate_on_ranks(&divided, request->ranks, out, err)
                          : sl_evaluate(request->evaluate, request->decoder, request->valid, &trainer->valid_rule,
                                        request->interrupt, out, err);
}

/* Measures, and tells all that depend on the result. Not if it is interrupted: then `validation_pending` stays. */
static seqlstm_status validate(struct sl_trainer *trainer, struct sl_evaluation *out_evaluation, bool *out_improved,
                               bool *out_kept, struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    trainer->changed = true;
    SEQLSTM_TRY(sl_trainer_gather_weights(trainer, err));
    if (trainer->request.valid) {
        SEQLSTM_TRY(sl_params_pull(trainer->request.params, err)); /* for all that reads weights below */
        sl_average_swap(&trainer->average);
        seqlstm_status status = evaluate(trainer, out_evaluation, err);
        sl_average_swap(&trainer->average);
        if (status == SEQLSTM_CANCELLED && sl_interrupt_get_stop(trainer->request.interrupt)) {
            state->validation_pending = true;
            return SEQLSTM_OK;
        }
        SEQLSTM_TRY(status);
        state->valid_sums = out_evaluation->sums;
        warn_of_unsound(trainer);
    }
    state->validation_pending = false;
    state->validations++;
    state->validated_at = state->updates;
    *out_improved = observe_stopping(trainer);
    *out_kept = observe_best(trainer);
    sl_schedule_observe(trainer->config, &state->schedule, find_watched(trainer, trainer->config->schedule.monitor));
    observe_trigger(trainer);
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_validate(struct sl_trainer *trainer, bool *out_kept, struct seqlstm_error *err)
{
    struct sl_evaluation evaluation;
    bool improved = false;
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_VALIDATION, NULL);
    const seqlstm_status status = validate(trainer, &evaluation, &improved, out_kept, err);
    sl_trace_end(begin, SL_ACTIVITY_VALIDATION, NULL, NULL, 0);
    if (status != SEQLSTM_OK || !trainer->request.valid || trainer->state.validation_pending)
        return status;
    double begun = trainer->progress.seconds;
    sl_trainer_update_progress(trainer);
    trainer->report_seconds += trainer->progress.seconds - begun; /* rows per second are those of training */
    trainer->validation_seconds += trainer->progress.seconds - begun;
    struct sl_train_report report = make_report(trainer, &evaluation.values);
    report.improved = improved;
    SEQLSTM_TRY(append_row(trainer, "valid", "validation", &report, err));
    notify(trainer, trainer->request.observer.on_validation, &report);
    return SEQLSTM_OK;
}

/* ---- checkpoints -------------------------------------------------------------------------------------- */

static seqlstm_status note_checksum(const struct sl_trainer *trainer, const char *path, struct seqlstm_error *err)
{
    struct sl_buf name = {0};
    sl_buf_printf(&name, "checkpoints/%s", sl_path_name(path));
    seqlstm_status status = name.failed
                                ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path")
                                : sl_checksums_note_weights(trainer->request.folder, sl_buf_text(&name), err);
    sl_buf_deinit(&name);
    return status;
}

static seqlstm_status save(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_trainer_gather_weights(trainer, err));
    SEQLSTM_TRY(sl_trainer_collect_carried(trainer, err));
    SEQLSTM_TRY(sl_trainer_collect_errors(trainer, err));
    if (!trainer->checkpoints) {
        trainer->changed = false;
        return SEQLSTM_OK;
    }
    SEQLSTM_TRY(check_folder(trainer, err));
    struct sl_train_state state = trainer->state;
    state.averaging = trainer->average.active;
    state.averaged = trainer->average.active ? trainer->average.count : 0;
    /* What depends on the time is not saved. */
    if (trainer->request.model->log.every.unit == SL_PERIOD_SECONDS)
        memset(&state.interval_sums, 0, sizeof state.interval_sums);
    float *carried = NULL;
    struct sl_checkpoint_content content = {
        .params = trainer->request.params,
        .average = trainer->average.active ? trainer->average.values : NULL,
        .best = trainer->best && state.stopping.has_best ? trainer->best : NULL,
        .errors = sl_trainer_get_errors(trainer),
        .state = &state,
        .texts = trainer->request.texts,
        .text_count = trainer->request.text_count,
    };
    if (trainer->request.model->data.batching.unit == SL_UNIT_STREAM)
        SEQLSTM_TRY(sl_trainer_get_carried(trainer, &carried, &content.carried_elems, err));
    content.carried = carried;
    SEQLSTM_TRY(sl_params_pull(trainer->request.params, err));
    SEQLSTM_TRY(sl_params_pull_states(trainer->request.params, err));
    if (trainer->metrics)
        SEQLSTM_TRY(sl_metrics_log_sync(trainer->metrics, err));
    char *path = NULL;
    SEQLSTM_TRY(sl_checkpoint_write(trainer->checkpoints, &content, &path, err));
    sl_checkpoint_prune(trainer->checkpoints, trainer->config->checkpoint.keep_last, &state, trainer->request.log);
    seqlstm_status status = note_checksum(trainer, path, err);
    if (status == SEQLSTM_OK)
        status = check_folder(trainer, err);
    if (status != SEQLSTM_OK) {
        free(path);
        return status;
    }
    trainer->changed = false;
    struct sl_train_report report = make_report(trainer, NULL);
    report.path = path;
    notify(trainer, trainer->request.observer.on_checkpoint, &report);
    free(path);
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_save(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_CHECKPOINT, NULL);
    const seqlstm_status status = save(trainer, err);
    sl_trace_end(begin, SL_ACTIVITY_CHECKPOINT, NULL, NULL, 0);
    return status;
}
