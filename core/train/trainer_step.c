/* SPDX-License-Identifier: Apache-2.0 */
/* One update: its batches, its normaliser, and what happens if a number is not finite. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "decode/sampler.h"
#include "train/schedule/teacher.h"
#include "train/trainer_private.h"

/* ---- batches ------------------------------------------------------------------------------------------ */

void sl_trainer_drop_group(struct sl_trainer *trainer)
{
    for (int32_t i = 0; i < trainer->group_count; i++)
        sl_batch_destroy(trainer->group[i]);
    trainer->group_count = 0;
}

static seqlstm_status group_add(struct sl_trainer *trainer, struct sl_batch *batch, struct seqlstm_error *err)
{
    if (trainer->group_count == trainer->group_capacity) {
        int32_t capacity = trainer->group_capacity ? 2 * trainer->group_capacity : 8;
        struct sl_batch **grown = realloc(trainer->group, (size_t)capacity * sizeof(struct sl_batch *));
        if (!grown) {
            sl_batch_destroy(batch);
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %d batches of one update", capacity);
        }
        trainer->group = grown;
        trainer->group_capacity = capacity;
    }
    trainer->group[trainer->group_count++] = batch;
    return SEQLSTM_OK;
}

/* With bptt in unit: sequence a batch comes in segments, which belong to one update. */
static bool has_segments(const struct sl_trainer *trainer)
{
    const struct sl_batching *batching = &trainer->request.model->data.batching;
    return batching->unit == SL_UNIT_SEQUENCE && batching->bptt > 0;
}

seqlstm_status sl_trainer_fetch(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    int64_t wanted = trainer->config->accumulate > 1 ? trainer->config->accumulate : 1;
    struct sl_batch *next = trainer->pending;
    trainer->pending = NULL;
    trainer->epoch_ended = false;
    if (!next)
        SEQLSTM_TRY(sl_prefetch_next(trainer->prefetch, &next, err));
    if (!next)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the training split has no batch in epoch %" PRId64,
                     trainer->state.epoch);
    while (next && wanted > 0) {
        wanted -= !has_segments(trainer) || next->last_segment;
        SEQLSTM_TRY(group_add(trainer, next, err));
        next = NULL;
        SEQLSTM_TRY(sl_prefetch_next(trainer->prefetch, &next, err));
    }
    trainer->pending = next;
    trainer->epoch_ended = next == NULL;
    return SEQLSTM_OK;
}

/* ---- forward and backward ----------------------------------------------------------------------------- */

/* Target steps of a mean update: a function of the data and the model, not of the batches. */
static double get_mean_steps(const struct sl_trainer *trainer)
{
    const struct sl_data_config *data = &trainer->request.model->data;
    const struct sl_data_facts *facts = trainer->request.facts;
    double batches = (double)trainer->config->accumulate;
    if (data->batching.unit == SL_UNIT_SEQUENCE && data->batching.max_tokens == 0)
        return batches * (double)data->batch_size * (double)facts->rows / (double)facts->records;
    if (has_segments(trainer)) /* epoch_batches counts them */
        batches = (double)trainer->group_count;
    return batches * (double)facts->rows / (double)trainer->state.epoch_batches;
}

/* The factor of the gradient of the summed loss; 0 when all weights are 0. */
static double compute_normaliser(const struct sl_trainer *trainer)
{
    enum sl_loss_reduction reduction = trainer->config->loss.reduction;
    bool stream = trainer->request.model->data.batching.unit == SL_UNIT_STREAM;
    double weight = 0, sequences = 0;
    for (int32_t i = 0; i < trainer->group_count; i++) {
        const struct sl_batch *batch = trainer->group[i];
        weight += sl_exec_weigh(trainer->request.exec, batch);
        if (stream)
            sequences = fmax(sequences, (double)batch->sequences);
        else if (!batch->carry_state)
            sequences += (double)batch->sequences;
    }
    double by = reduction == SL_REDUCTION_SEQUENCE_MEAN ? sequences : weight;
    if (reduction == SL_REDUCTION_STEP_MEAN && trainer->group[0]->target.on_steps)
        by = get_mean_steps(trainer);
    return weight > 0 && by > 0 ? 1 / by : 0;
}

static seqlstm_status run_group(struct sl_trainer *trainer, double normaliser, struct sl_metric_sums *sums,
                                struct seqlstm_error *err)
{
    uint64_t mask_step = 0;
    for (int32_t i = 0; i < trainer->group_count; i++) {
        struct sl_batch *batch = trainer->group[i];
        int64_t own = 0;
        if (trainer->request.sampler)
            SEQLSTM_TRY(sl_sampler_mix(trainer->request.sampler, batch, trainer->teacher,
                                       (uint64_t)trainer->state.epoch, &own, err));
        bool segment = has_segments(trainer) && batch->carry_state;
        mask_step = segment ? mask_step : batch->ordinal;
        /* Cases that the last run does not notice: batches without weight, or an earlier loss that is not finite. */
        const struct sl_exec_update update = {.count = (uint64_t)trainer->state.applied + 1,
                                              .learning_rate = trainer->rate,
                                              .skip = normaliser <= 0 || !isfinite(sums->loss)};
        struct sl_exec_step step = {
            .epoch = (uint64_t)trainer->state.epoch,
            .normaliser = normaliser,
            .loss_scale = trainer->request.scales_loss ? sl_loss_scale_get(&trainer->state.loss_scale) : 1,
            .accumulate = i > 0,
            .update = i + 1 == trainer->group_count ? &update : NULL,
            .weight_mask_step = (uint32_t)mask_step,
            /* what is staged for the devices is the batch before sampling changed it */
            .next = trainer->request.sampler       ? NULL
                    : i + 1 < trainer->group_count ? trainer->group[i + 1]
                                                   : trainer->pending,
        };
        struct sl_exec_result result;
        struct sl_field output = {0};
        SEQLSTM_TRY(sl_exec_run(trainer->request.exec, batch, &step, &result, err));
        if (sl_metric_rule_reads_output(&trainer->train_rule))
            output = sl_exec_get_output(trainer->request.exec);
        sl_metric_add(&trainer->train_rule, sums, batch, &output, &result);
        trainer->squares = result.squares;
    }
    return SEQLSTM_OK;
}

/* ---- after the update ------------------------------------------------------------------------------------- */

static seqlstm_status follow_average(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_average *average = &trainer->average;
    if (average->kind == SL_AVERAGE_EMA && !average->active) {
        struct sl_progress now = trainer->progress;
        now.updates++;
        if (sl_period_is_over(&trainer->config->ema.start, &now)) {
            SEQLSTM_TRY(sl_params_pull(trainer->request.params, err));
            sl_average_start(average);
        }
        return SEQLSTM_OK;
    }
    return sl_average_update(average, trainer->request.exec, err);
}

/* Loss or gradient is NaN or infinite. */
static void diverge(struct sl_trainer *trainer, const char *what, double value)
{
    struct sl_train_state *state = &trainer->state;
    bool skip = trainer->config->on_divergence == SL_DIVERGENCE_SKIP;
    state->skipped++;
    state->skipped_in_row++;
    trainer->diverged = !skip || state->skipped_in_row >= SL_SKIPS_MOST;
    const char *number = isnan(value) ? "not a number" : "infinite";
    sl_text_snprintf(trainer->reason, sizeof trainer->reason, "the %s is %s at update %" PRId64, what, number,
                     state->updates + 1);
    if (skip) {
        size_t used = strlen(trainer->reason);
        sl_text_snprintf(trainer->reason + used, sizeof trainer->reason - used,
                         ", the %dth update in a row to be skipped", (int)state->skipped_in_row);
        sl_log_printf(trainer->request.log, SL_LOG_WARN, "%s", trainer->reason);
    }
    /* A state that contains NaN would spoil every later batch. */
    if (skip)
        sl_exec_reset_state(trainer->request.exec);
}

/* The loss is finite: if the parameters have changed, so were the gradients. */
static seqlstm_status follow_update(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    if (trainer->request.scales_loss && sl_loss_scale_settle(&state->loss_scale, trainer->squares)) {
        sl_log_printf(trainer->request.log, SL_LOG_INFO,
                      "float16 overflowed at update %" PRId64 ", which is skipped; the loss is scaled by %.0f now",
                      state->updates + 1, state->loss_scale.scale);
        return SEQLSTM_OK;
    }
    trainer->gradient_norm = sl_text_unsign_nan(sqrt(trainer->squares));
    if (!isfinite(trainer->gradient_norm)) {
        diverge(trainer, "norm of the gradient", trainer->gradient_norm);
        return SEQLSTM_OK;
    }
    state->applied++;
    state->skipped_in_row = 0;
    return follow_average(trainer, err);
}

static void advance(struct sl_trainer *trainer, const struct sl_metric_sums *sums)
{
    struct sl_train_state *state = &trainer->state;
    state->updates++;
    state->tokens += (int64_t)sums->rows;
    state->ordinal = (int64_t)trainer->group[trainer->group_count - 1]->ordinal + 1;
    if (trainer->epoch_ended) {
        state->epoch++;
        state->ordinal = 0;
    }
    trainer->changed = true;
}

seqlstm_status sl_trainer_step(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    struct sl_metric_sums sums;
    memset(&sums, 0, sizeof sums);
    int64_t skipped = state->skipped;
    double normaliser = compute_normaliser(trainer);
    if (trainer->request.sampler)
        trainer->teacher = sl_teacher_probability(trainer->config, &trainer->progress);
    trainer->rate = sl_schedule_rate(trainer->config, &state->schedule, &trainer->progress);
    SEQLSTM_TRY(run_group(trainer, normaliser, &sums, err));
    if (sums.loss_weight > 0) {
        trainer->loss = sl_text_unsign_nan(sums.loss / sums.loss_weight);
        trainer->gradient_norm = NAN;
        if (!isfinite(trainer->loss))
            diverge(trainer, "loss", trainer->loss);
        else
            SEQLSTM_TRY(follow_update(trainer, err));
    }
    if (trainer->diverged)
        return SEQLSTM_OK;
    if (state->skipped == skipped) {
        sl_metric_sums_add(&state->epoch_sums, &sums);
        sl_metric_sums_add(&state->interval_sums, &sums);
    }
    advance(trainer, &sums);
    sl_trainer_drop_group(trainer);
    return SEQLSTM_OK;
}
