/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a training run: create, restore, loop, end. step.c has the updates, events.c what happens
 * between them. */
#include "train/trainer/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/trace.h"
#include "train/trainer/clock.h"
#include "train/trainer/events.h"
#include "train/trainer/shards.h"
#include "train/trainer/stages.h"
#include "train/trainer/step.h"
#include "train/trainer/update.h"

/* ---- create ------------------------------------------------------------------------------------------- */

static seqlstm_status check_config(const struct sl_trainer_request *request, struct seqlstm_error *err)
{
    const struct sl_train_config *config = &request->model->train;
    if (config->epochs <= 0 && config->updates <= 0 && config->max_time.unit == SL_PERIOD_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "nothing ends the training: set `epochs`, `updates` or `max_time`");
    if (config->ema.enabled && config->optimizer.kind == SL_OPTIMIZER_NT_ASGD)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`ema` and the optimizer `nt_asgd` both average the weights");
    if (config->optimizer.kind == SL_OPTIMIZER_NT_ASGD &&
        (config->optimizer.patience < 1 || config->optimizer.patience > SL_NON_MONOTONE_MOST))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the patience of nt_asgd is %" PRId64 ", it must be 1 to %d",
                     config->optimizer.patience, SL_NON_MONOTONE_MOST);
    if (config->checkpoint.keep_best > SL_KEEP_BEST_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "keep_best is %" PRId64 ", at most %d are kept",
                     config->checkpoint.keep_best, SL_KEEP_BEST_MOST);
    if (!request->valid != !request->evaluate)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "`valid` and `evaluate` go together");
    return sl_schedule_check(config, err);
}

static seqlstm_status copy_texts(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_trainer_request *request = &trainer->request;
    struct sl_safetensors_text *texts =
        SL_ARENA_ARRAY(&trainer->arena, struct sl_safetensors_text, (size_t)request->text_count + 1);
    bool room = texts != NULL;
    for (int32_t i = 0; room && i < request->text_count; i++) {
        texts[i].key = sl_arena_strdup(&trainer->arena, request->texts[i].key);
        texts[i].value = sl_arena_strdup(&trainer->arena, request->texts[i].value);
        room = texts[i].key && texts[i].value;
    }
    if (request->folder && room) {
        trainer->checkpoints = sl_arena_printf(&trainer->arena, "%s/checkpoints", request->folder);
        trainer->metrics_path = sl_arena_printf(&trainer->arena, "%s/metrics.jsonl", request->folder);
        room = trainer->checkpoints && trainer->metrics_path;
    }
    if (!room)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trainer");
    trainer->request.texts = texts;
    return SEQLSTM_OK;
}

static seqlstm_status make_copies(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_train_config *config = trainer->config;
    struct sl_params *params = trainer->request.params;
    enum sl_average_kind kind = config->ema.enabled                              ? SL_AVERAGE_EMA
                                : config->optimizer.kind == SL_OPTIMIZER_NT_ASGD ? SL_AVERAGE_MEAN
                                                                                 : SL_AVERAGE_NONE;
    SEQLSTM_TRY(sl_average_init(&trainer->average, kind, config->ema.decay, params, trainer->request.memory, err));
    if (config->early_stopping.enabled && config->early_stopping.restore_best) {
        trainer->best = sl_memory_alloc_zeroed(trainer->request.memory, (size_t)params->elems * sizeof(float));
        if (!trainer->best)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the best weights");
    }
    if (config->optimizer.kind == SL_OPTIMIZER_ADAGRAD && params->states[0])
        for (int64_t i = 0; i < params->trainable_elems; i++)
            params->states[0][i] = (float)config->optimizer.initial_accumulator;
    sl_params_touch_states(params);
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_create(const struct sl_trainer_request *request, struct sl_trainer **out_trainer,
                                 struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_config(request, err));
    struct sl_trainer *trainer = calloc(1, sizeof *trainer);
    if (!trainer)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trainer");
    trainer->request = *request;
    trainer->config = &request->model->train;
    trainer->loss = trainer->gradient_norm = trainer->rate = trainer->teacher = NAN;
    trainer->changed = true;
    const struct sl_train_config *config = trainer->config;
    sl_metric_rule_init(&trainer->train_rule, config, &config->metrics, request->is_logits, request->weighted_classes,
                        request->state);
    sl_metric_rule_drop_texts(&trainer->train_rule);
    /* The executor of phase EVALUATE has no class weights. */
    sl_metric_rule_init(&trainer->valid_rule, config, &config->validate.metrics, request->is_logits, false,
                        request->state);
    int64_t batches = sl_batcher_get_batches(request->train);
    trainer->state.epoch_batches = batches > 1 ? batches : 1;
    seqlstm_status status = copy_texts(trainer, err);
    if (status == SEQLSTM_OK)
        status = make_copies(trainer, err);
    if (status == SEQLSTM_OK && request->owners)
        status = sl_trainer_open_stages(trainer, err);
    if (status == SEQLSTM_OK && request->ranks)
        status = sl_trainer_open_shards(trainer, err);
    if (status != SEQLSTM_OK) {
        sl_trainer_destroy(trainer);
        return status;
    }
    *out_trainer = trainer;
    return SEQLSTM_OK;
}

void sl_trainer_destroy(struct sl_trainer *trainer)
{
    if (!trainer)
        return;
    for (int k = 0; k < 2; k++) {
        sl_update_clear(&trainer->updates[k]);
        free(trainer->updates[k].group);
    }
    sl_trainer_close_shards(trainer);
    sl_trainer_close_stages(trainer);
    sl_batch_destroy(trainer->pending);
    sl_prefetch_destroy(trainer->prefetch);
    sl_metrics_log_close(trainer->metrics);
    sl_tensorboard_log_close(trainer->tensorboard);
    sl_average_deinit(&trainer->average);
    sl_memory_free(trainer->request.memory, trainer->best);
    sl_arena_deinit(&trainer->arena);
    free(trainer);
}

seqlstm_status sl_trainer_restore(struct sl_trainer *trainer, const struct sl_safetensors *checkpoint,
                                  struct seqlstm_error *err)
{
    struct sl_checkpoint_target target = {
        .params = trainer->request.params,
        .average = trainer->average.values,
        .best = trainer->best,
        .state = &trainer->state,
        .errors = sl_trainer_get_errors(trainer),
    };
    if (trainer->request.model->data.batching.unit == SL_UNIT_STREAM)
        SEQLSTM_TRY(sl_trainer_get_carried(trainer, &target.carried, &target.carried_elems, err));
    SEQLSTM_TRY(sl_checkpoint_load(checkpoint, &target, err));
    sl_trainer_spread_carried(trainer);
    sl_trainer_spread_errors(trainer);
    trainer->average.active = trainer->state.averaging && trainer->average.kind != SL_AVERAGE_NONE;
    trainer->average.count = trainer->state.averaged;
    if (trainer->state.epoch_batches < 1)
        trainer->state.epoch_batches = 1;
    trainer->changed = trainer->state.validation_pending;
    trainer->restored = true;
    return SEQLSTM_OK;
}

/* ---- the loop ----------------------------------------------------------------------------------------- */

/* Have all epochs or updates been made? */
static bool is_complete(const struct sl_trainer *trainer)
{
    const struct sl_train_config *config = trainer->config;
    return (config->epochs > 0 && trainer->state.epoch >= config->epochs) ||
           (config->updates > 0 && trainer->state.updates >= config->updates);
}

/* Has the run ended? */
static bool find_end(const struct sl_trainer *trainer, enum sl_train_end *out_end)
{
    const struct sl_train_config *config = trainer->config;
    const struct sl_train_state *state = &trainer->state;
    int64_t patience = config->early_stopping.patience > 1 ? config->early_stopping.patience : 1;
    bool interrupted = sl_interrupt_get_stop(trainer->request.interrupt) != 0;
    if (trainer->diverged)
        *out_end = SL_END_DIVERGED;
    else if (state->validation_pending && interrupted)
        *out_end = SL_END_INTERRUPTED;
    else if (config->early_stopping.enabled && state->stopping.waited >= patience)
        *out_end = SL_END_EARLY_STOPPING;
    else if (is_complete(trainer))
        *out_end = config->epochs > 0 && state->epoch >= config->epochs ? SL_END_EPOCHS : SL_END_UPDATES;
    else if (interrupted)
        *out_end = SL_END_INTERRUPTED;
    else if (sl_trainer_is_time_over(trainer, &trainer->progress))
        *out_end = SL_END_TIME;
    else
        return false;
    return true;
}

/* Did the run end by itself? */
static bool is_natural(enum sl_train_end end)
{
    return end == SL_END_EPOCHS || end == SL_END_UPDATES || end == SL_END_EARLY_STOPPING;
}

static bool restores_best(const struct sl_trainer *trainer)
{
    return trainer->best && trainer->state.stopping.has_best;
}

/* The last whole epoch, or the running one if there was none. */
static const struct sl_metric_sums *get_train_sums(const struct sl_trainer *trainer)
{
    return trainer->state.epoch > 0 ? &trainer->state.last_epoch_sums : &trainer->state.epoch_sums;
}

/* Is what was measured last about the final weights sound? If not, `reason` says why. */
static bool judge(struct sl_trainer *trainer)
{
    const struct sl_train_state *state = &trainer->state;
    const bool restores = restores_best(trainer);
    if (!restores && !sl_trainer_judge_sums(trainer, &trainer->train_rule, get_train_sums(trainer), "epoch"))
        return false;
    return !trainer->request.valid || state->validations == 0 ||
           sl_trainer_judge_sums(trainer, &trainer->valid_rule, restores ? &state->best_sums : &state->valid_sums,
                                 "validation");
}

static seqlstm_status run_update(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_train_config *config = trainer->config;
    const struct sl_train_state *state = &trainer->state;
    struct sl_progress before = trainer->progress;
    bool kept = false, epoch_ended;
    SEQLSTM_TRY(sl_trainer_step(trainer, &epoch_ended, err));
    if (trainer->diverged)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_trainer_report(trainer, &before, epoch_ended, err));
    if (sl_trainer_is_ahead(trainer)) /* nothing else is due */
        return SEQLSTM_OK;
    struct sl_progress now = trainer->progress;
    if (sl_period_is_due(&config->validate.every, &before, &now) || is_complete(trainer))
        SEQLSTM_TRY(sl_trainer_validate(trainer, &kept, err));
    bool save = sl_period_is_due(&config->checkpoint.every, &before, &now);
    save |= sl_interrupt_take_save(trainer->request.interrupt);
    if (save || kept)
        SEQLSTM_TRY(sl_trainer_save(trainer, err));
    if (epoch_ended || save || kept || state->validated_at == now.updates)
        sl_exec_pause(trainer->request.exec);
    /* Validation takes time, but periods in seconds count from this update, so that none is skipped. */
    trainer->progress.seconds = now.seconds;
    return SEQLSTM_OK;
}

static seqlstm_status loop(struct sl_trainer *trainer, enum sl_train_end *out_end, struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    bool kept = false;
    if (state->validation_pending) {
        SEQLSTM_TRY(sl_trainer_validate(trainer, &kept, err));
        if (!state->validation_pending)
            SEQLSTM_TRY(sl_trainer_save(trainer, err));
    }
    struct sl_recorder *recorder = trainer->request.recorder;
    if (recorder)
        SEQLSTM_TRY(sl_recorder_begin(recorder, sl_exec_can_capture(trainer->request.exec), err));
    while (sl_trainer_is_ahead(trainer) || !find_end(trainer, out_end)) {
        const int64_t begin = sl_trace_begin(SL_ACTIVITY_UPDATE, NULL), tokens = state->tokens;
        const seqlstm_status status = run_update(trainer, err);
        if (begin)
            sl_trace_sample_memory();
        sl_trace_end(begin, SL_ACTIVITY_UPDATE, NULL, NULL, state->tokens - tokens);
        SEQLSTM_TRY(status);
        if (recorder)
            SEQLSTM_TRY(sl_recorder_note(recorder, state->tokens - tokens, err));
    }
    if (is_natural(*out_end) && trainer->state.updates > 0 && !judge(trainer))
        *out_end = SL_END_DIVERGED;
    if (*out_end != SL_END_DIVERGED && trainer->changed)
        SEQLSTM_TRY(sl_trainer_save(trainer, err));
    return SEQLSTM_OK;
}

static seqlstm_status start(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    if (trainer->metrics_path) {
        SEQLSTM_TRY(sl_file_make_folders(trainer->request.folder, err));
        if (trainer->request.model->log.jsonl)
            SEQLSTM_TRY(sl_metrics_log_open(trainer->metrics_path, state->updates, state->validated_at,
                                            trainer->request.log, &trainer->metrics, &trainer->seconds_before, err));
        if (trainer->request.model->output.tensorboard)
            SEQLSTM_TRY(sl_tensorboard_log_open(trainer->request.folder, state->updates, &trainer->tensorboard, err));
    }
    /* Removes what a crash between writing and removing has left. */
    if (trainer->checkpoints && trainer->restored)
        sl_checkpoint_prune(trainer->checkpoints, trainer->config->checkpoint.keep_last, state, trainer->request.log);
    SEQLSTM_TRY(sl_batcher_seek(trainer->request.train, (uint64_t)state->epoch, (uint64_t)state->ordinal, err));
    SEQLSTM_TRY(sl_prefetch_create(trainer->request.train, trainer->request.prefetch, &trainer->prefetch, err));
    if (trainer->request.ranks)
        SEQLSTM_TRY(sl_trainer_compare_ranks(trainer, err));
    trainer->start_ns = sl_trainer_read_clock(trainer);
    sl_trainer_update_progress(trainer);
    trainer->report_tokens = state->tokens;
    trainer->report_seconds = trainer->progress.seconds;
    return SEQLSTM_OK;
}

/* Leaves in params the weights to be saved as the result. */
static void settle(struct sl_trainer *trainer, struct sl_train_result *result)
{
    struct sl_params *params = trainer->request.params;
    if (is_natural(result->end) && restores_best(trainer)) {
        memcpy(params->values, trainer->best, (size_t)params->elems * sizeof(float));
        sl_params_touch(params);
        trainer->state.valid_sums = trainer->state.best_sums;
        result->restored = true;
        result->best_update = trainer->state.best_update;
        result->best_epochs = trainer->state.best_epochs;
    } else {
        result->averaged = trainer->average.active;
        sl_average_swap(&trainer->average);
    }
}

seqlstm_status sl_trainer_run(struct sl_trainer *trainer, struct sl_train_result *out_result, struct seqlstm_error *err)
{
    struct sl_train_result result;
    const struct sl_train_state *state = &trainer->state;
    memset(&result, 0, sizeof result);
    int64_t before = state->updates;
    SEQLSTM_TRY(start(trainer, err));
    const seqlstm_status looped = loop(trainer, &result.end, err);
    if (trainer->request.recorder)
        sl_recorder_end(trainer->request.recorder);
    SEQLSTM_TRY(looped);
    SEQLSTM_TRY(sl_trainer_gather_weights(trainer, err));
    sl_trainer_update_progress(trainer);
    SEQLSTM_TRY(sl_params_pull(trainer->request.params, err));
    settle(trainer, &result);
    if (result.end == SL_END_INTERRUPTED)
        result.signal = sl_interrupt_get_stop(trainer->request.interrupt);
    result.progress = trainer->progress;
    result.made = state->updates - before;
    result.skipped = state->skipped;
    result.overflows = state->loss_scale.overflows;
    result.loss_scale = trainer->request.scales_loss ? state->loss_scale.scale : 1;
    sl_metric_finish(&trainer->train_rule, get_train_sums(trainer), &result.train);
    result.has_valid = trainer->request.valid && state->validations > 0;
    sl_metric_finish(&trainer->valid_rule, &state->valid_sums, &result.valid);
    result.wait_seconds = (double)sl_prefetch_get_wait_ns(trainer->prefetch) * 1e-9;
    result.validation_seconds = trainer->validation_seconds;
    result.spent_seconds = trainer->progress.seconds - trainer->seconds_before - trainer->validation_seconds;
    result.wait_share = result.spent_seconds > 0 ? fmin(result.wait_seconds / result.spent_seconds, 1) : 0;
    memcpy(result.reason, trainer->reason, sizeof result.reason);
    *out_result = result;
    return SEQLSTM_OK;
}
