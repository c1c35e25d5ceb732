/* SPDX-License-Identifier: Apache-2.0 */
/* One update: its batches, its numbers and its steps. */
#include "train/trainer/update.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/trace.h"
#include "decode/sampler.h"
#include "train/schedule/teacher.h"
#include "train/trainer/shards.h"

/* ---- batches ------------------------------------------------------------------------------------------ */

void sl_update_clear(struct sl_update *update)
{
    struct sl_batch **const group = update->group;
    const int32_t capacity = update->capacity;
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_PREPARE, "batches are released");
    for (int32_t i = 0; i < update->count; i++)
        sl_batch_destroy(group[i]);
    *update = (struct sl_update){.group = group, .capacity = capacity};
    sl_trace_end(begin, SL_ACTIVITY_PREPARE, "batches are released", NULL, 0);
}

static seqlstm_status group_add(struct sl_update *update, struct sl_batch *batch, struct seqlstm_error *err)
{
    if (update->count == update->capacity) {
        int32_t capacity = update->capacity ? 2 * update->capacity : 8;
        struct sl_batch **grown = realloc(update->group, (size_t)capacity * sizeof(struct sl_batch *));
        if (!grown) {
            sl_batch_destroy(batch);
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %d batches of one update", capacity);
        }
        update->group = grown;
        update->capacity = capacity;
    }
    update->group[update->count++] = batch;
    return SEQLSTM_OK;
}

/* Fetches the batches of the update; there is at least one. CORRUPT_DATA for an epoch without batches. */
static seqlstm_status fetch(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    int64_t wanted = trainer->config->accumulate > 1 ? trainer->config->accumulate : 1;
    struct sl_batch *next = trainer->pending;
    trainer->pending = NULL;
    if (!next)
        SEQLSTM_TRY(sl_prefetch_next(trainer->prefetch, &next, err));
    if (!next)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the training split has no batch in epoch %" PRId64,
                     trainer->state.epoch);
    while (next && wanted > 0) {
        wanted -= !sl_update_has_segments(trainer) || next->last_segment;
        SEQLSTM_TRY(group_add(update, next, err));
        next = NULL;
        SEQLSTM_TRY(sl_prefetch_next(trainer->prefetch, &next, err));
    }
    trainer->pending = next;
    update->epoch_ended = next == NULL;
    return SEQLSTM_OK;
}

/* ---- its numbers -------------------------------------------------------------------------------------- */

/* Target steps of a mean update: a function of the data and the model, not of the batches. */
static double get_mean_steps(const struct sl_trainer *trainer, const struct sl_update *update)
{
    const struct sl_data_config *data = &trainer->request.model->data;
    const struct sl_data_facts *facts = trainer->request.facts;
    double batches = (double)trainer->config->accumulate;
    if (data->batching.unit == SL_UNIT_SEQUENCE && data->batching.max_tokens == 0)
        return batches * (double)data->batch_size * (double)facts->rows / (double)facts->records;
    if (sl_update_has_segments(trainer)) /* epoch_batches counts them */
        batches = (double)update->count;
    return batches * (double)facts->rows / (double)trainer->state.epoch_batches;
}

/* The factor of the gradient of the summed loss; 0 when all weights are 0. */
static double compute_normaliser(const struct sl_trainer *trainer, const struct sl_update *update)
{
    enum sl_loss_reduction reduction = trainer->config->loss.reduction;
    bool stream = trainer->request.model->data.batching.unit == SL_UNIT_STREAM;
    double weight = 0, sequences = 0;
    for (int32_t i = 0; i < update->count; i++) {
        const struct sl_batch *batch = update->group[i];
        weight += sl_exec_weigh(trainer->request.exec, batch);
        if (stream)
            sequences = fmax(sequences, (double)batch->sequences);
        else if (!batch->carry_state)
            sequences += (double)batch->sequences;
    }
    double by = reduction == SL_REDUCTION_SEQUENCE_MEAN ? sequences : weight;
    if (reduction == SL_REDUCTION_STEP_MEAN && update->group[0]->target.on_steps)
        by = get_mean_steps(trainer, update);
    return weight > 0 && by > 0 ? 1 / by : 0;
}

seqlstm_status sl_update_prepare(struct sl_trainer *trainer, struct sl_update *update,
                                 const struct sl_progress *progress, struct seqlstm_error *err)
{
    SEQLSTM_TRY(fetch(trainer, update, err));
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_PREPARE, "numbers of the update");
    update->normaliser = compute_normaliser(trainer, update);
    update->teacher = trainer->request.sampler ? sl_teacher_probability(trainer->config, progress) : NAN;
    update->rate = sl_schedule_rate(trainer->config, &trainer->state.schedule, progress);
    for (int32_t i = 0; i < update->count; i++)
        update->rows += sl_batch_count_real_rows(update->group[i]);
    sl_trace_end(begin, SL_ACTIVITY_PREPARE, "numbers of the update", NULL, update->rows);
    return SEQLSTM_OK;
}

/* ---- steps -------------------------------------------------------------------------------------------- */

static struct sl_exec_course make_course(const struct sl_trainer *trainer, const struct sl_update *update)
{
    return (struct sl_exec_course){
        .updates = (uint64_t)trainer->state.applied,
        .loss = update->sums.loss,
        .weight = update->sums.loss_weight,
        .goes_on = trainer->config->on_divergence == SL_DIVERGENCE_SKIP,
        .good_enough = trainer->request.scales_loss ? SL_LOSS_SCALE_GOOD_ENOUGH : 0,
        .good = trainer->state.loss_scale.good,
        .scale_most = SL_LOSS_SCALE_LARGEST,
    };
}

/* Numbers of the update's next step; `making` is filled if it makes the update. */
static struct sl_exec_step make_step(struct sl_trainer *trainer, const struct sl_update *update,
                                     struct sl_exec_update *making)
{
    const int32_t i = update->started;
    const struct sl_batch *batch = update->group[i];
    /* Cases that the last run does not notice: batches without weight, or an earlier loss that is not finite. */
    *making = (struct sl_exec_update){.count = (uint64_t)trainer->state.applied + 1,
                                      .learning_rate = update->rate,
                                      .skip = update->normaliser <= 0 || !isfinite(update->sums.loss)};
    const bool segment = sl_update_has_segments(trainer) && batch->carry_state;
    return (struct sl_exec_step){
        .epoch = (uint64_t)trainer->state.epoch,
        .normaliser = update->normaliser,
        .loss_scale = trainer->request.scales_loss ? sl_loss_scale_get(&trainer->state.loss_scale) : 1,
        .accumulate = i > 0,
        .update = i + 1 == update->count ? making : NULL,
        .weight_mask_step = segment ? update->mask_step : (uint32_t)batch->ordinal,
        .course = make_course(trainer, update),
        /* what is staged for the devices is the batch before sampling changed it */
        .next = trainer->request.sampler ? NULL
                : i + 1 < update->count  ? update->group[i + 1]
                                         : trainer->pending,
    };
}

static void add_result(struct sl_trainer *trainer, struct sl_update *update, const struct sl_exec_result *result)
{
    struct sl_field output = {0};
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_METRIC, NULL);
    if (sl_metric_rule_reads_output(&trainer->train_rule))
        output = sl_exec_get_output(trainer->request.exec);
    sl_metric_add(&trainer->train_rule, &update->sums, update->group[update->done], &output, result);
    sl_trace_end(begin, SL_ACTIVITY_METRIC, NULL, NULL, result->rows);
    update->squares = result->squares;
    update->done++;
}

/* Waits for the oldest step under way. */
static seqlstm_status wait_for_one(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    struct sl_exec_result result;
    SEQLSTM_TRY(sl_exec_wait(trainer->request.exec, &result, err));
    add_result(trainer, update, &result);
    return SEQLSTM_OK;
}

seqlstm_status sl_update_wait(struct sl_trainer *trainer, struct sl_update *update, int32_t most,
                              struct seqlstm_error *err)
{
    while (update->started - update->done > most)
        SEQLSTM_TRY(wait_for_one(trainer, update, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_update_start_step(struct sl_trainer *trainer, struct sl_update *update, bool *out_started,
                                    struct seqlstm_error *err)
{
    struct sl_exec_update making;
    const struct sl_exec_step step = make_step(trainer, update, &making);
    SEQLSTM_TRY(sl_exec_start(trainer->request.exec, update->group[update->started], &step, out_started, err));
    update->mask_step = step.weight_mask_step;
    update->started += *out_started;
    return SEQLSTM_OK;
}

/* Runs the next step to its end; no other is under way. */
static seqlstm_status run_step(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    struct sl_batch *batch = update->group[update->started];
    struct sl_exec_update making;
    struct sl_exec_result result;
    int64_t own = 0;
    if (trainer->request.sampler) {
        const int64_t begin = sl_trace_begin(SL_ACTIVITY_SAMPLE, NULL);
        const seqlstm_status status =
            sl_sampler_mix(trainer->request.sampler, batch, update->teacher, (uint64_t)trainer->state.epoch, &own, err);
        sl_trace_end(begin, SL_ACTIVITY_SAMPLE, NULL, NULL, 0);
        SEQLSTM_TRY(status);
    }
    const struct sl_exec_step step = make_step(trainer, update, &making);
    SEQLSTM_TRY(sl_exec_run(trainer->request.exec, batch, &step, &result, err));
    update->mask_step = step.weight_mask_step;
    update->started++;
    add_result(trainer, update, &result);
    return SEQLSTM_OK;
}

seqlstm_status sl_update_run(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    const bool may_start = trainer->request.sampler == NULL && !sl_metric_rule_reads_output(&trainer->train_rule);
    if (trainer->shards)
        return sl_trainer_run_shards(trainer, update, err);
    while (update->started < update->count) {
        bool started = false;
        SEQLSTM_TRY(sl_update_wait(trainer, update, SL_EXEC_AHEAD - 1, err));
        if (may_start)
            SEQLSTM_TRY(sl_update_start_step(trainer, update, &started, err));
        if (started)
            continue;
        SEQLSTM_TRY(sl_update_wait(trainer, update, 0, err));
        SEQLSTM_TRY(run_step(trainer, update, err));
    }
    return SEQLSTM_OK;
}
