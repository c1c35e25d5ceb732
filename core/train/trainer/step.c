/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an update, and what happens if a number is not finite.
 *
 * While the device computes an update, the first step of the next one is started, if the next one does not depend on
 * anything that the host does in between. trainer->updates holds both.
 */
#include "train/trainer/step.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/system/trace.h"
#include "base/value/text.h"
#include "train/trainer/clock.h"
#include "train/trainer/shards.h"
#include "train/trainer/update.h"

static struct sl_update *get_next(struct sl_trainer *trainer)
{
    return &trainer->updates[1 - trainer->turn];
}

/* Has a step of the next update been started? */
static bool is_ahead(const struct sl_trainer *trainer)
{
    return trainer->updates[1 - trainer->turn].started > 0;
}

/* ---- going ahead --------------------------------------------------------------------------------------- */

/* The progress after the running update. */
static struct sl_progress foresee(const struct sl_trainer *trainer, const struct sl_update *update)
{
    const int64_t ordinal = (int64_t)update->group[update->count - 1]->ordinal + 1;
    return sl_trainer_make_progress(trainer, trainer->state.updates + 1, ordinal, trainer->state.tokens + update->rows);
}

/* Is the update under way, and does nothing follow it in any case? */
static bool may_go_ahead(const struct sl_trainer *trainer, const struct sl_update *update)
{
    return update->done < update->started && !update->epoch_ended && trainer->state.skipped_in_row == 0 &&
           trainer->average.kind != SL_AVERAGE_EMA && !trainer->average.active &&
           !sl_interrupt_is_pending(trainer->request.interrupt);
}

/* Is nothing due after the update? */
static bool is_nothing_due(const struct sl_trainer *trainer, const struct sl_progress *after)
{
    const struct sl_train_config *config = trainer->config;
    return !sl_period_is_due(&config->validate.every, &trainer->progress, after) &&
           !sl_period_is_due(&config->checkpoint.every, &trainer->progress, after) && !sl_trainer_ends(trainer, after);
}

/* Starts the first step of the next update, if that is possible. */
static seqlstm_status go_ahead(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    struct sl_update *next = get_next(trainer);
    bool started;
    SEQLSTM_TRY(sl_update_wait(trainer, update, SL_EXEC_AHEAD - 1, err));
    if (!may_go_ahead(trainer, update))
        return SEQLSTM_OK;
    const struct sl_progress after = foresee(trainer, update);
    if (!is_nothing_due(trainer, &after))
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_update_prepare(trainer, next, &after, err));
    SEQLSTM_TRY(sl_update_start_step(trainer, next, &started, err));
    next->began = after;
    return SEQLSTM_OK;
}

/* The run has ended: what has been started ahead does not count. The device has changed nothing. */
static seqlstm_status drop_next(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_update_wait(trainer, get_next(trainer), 0, err));
    sl_update_clear(get_next(trainer));
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

/* Where values that are no numbers come from: a watcher that ends the step there. */
struct search {
    const struct sl_node *node; /* NULL: not found */
};

static seqlstm_status look(void *context, struct sl_exec *exec, const struct sl_node *node, struct seqlstm_error *err)
{
    struct search *search = context;
    const struct sl_graph *graph = sl_exec_get_graph(exec);
    for (int32_t s = 0; s < node->slot_count; s++) {
        const struct sl_tensor *tensor = node->slots[s] >= 0 ? &graph->tensors[node->slots[s]] : NULL;
        const float *values;
        int64_t elems;
        if (tensor == NULL || tensor->dtype != SEQLSTM_DTYPE_FLOAT32 ||
            (tensor->role != SL_TENSOR_ACTIVATION && tensor->role != SL_TENSOR_STATE_OUT))
            continue;
        SEQLSTM_TRY(sl_exec_read(exec, node->slots[s], &values, &elems, err));
        for (int64_t i = 0; i < elems; i++)
            if (!isfinite(values[i])) {
                search->node = node;
                SEQLSTM_FAIL(err, SEQLSTM_NUMERIC, "found");
            }
    }
    return SEQLSTM_OK;
}

/* The run ends, and nothing else of it is needed: the last batch runs once more, without an update. What is wrong may
 * be in an earlier batch of the group; then nothing is found, and nothing said. */
static void name_source(struct sl_trainer *trainer, const struct sl_update *update)
{
    struct search search = {NULL};
    struct sl_exec *exec = trainer->request.exec;
    const struct sl_batch *batch = update->group[update->count - 1];
    const struct sl_exec_step step = {
        .epoch = (uint64_t)trainer->state.epoch, .loss_scale = 1, .weight_mask_step = (uint32_t)batch->ordinal};
    struct sl_exec_result result;
    if (trainer->shards) /* a rank has only a part of the batch */
        return;
    sl_exec_watch(exec, look, &search);
    (void)sl_exec_run(exec, batch, &step, &result, NULL);
    sl_exec_watch(exec, NULL, NULL);
    const size_t used = strlen(trainer->reason);
    if (search.node)
        sl_text_snprintf(trainer->reason + used, sizeof trainer->reason - used,
                         "; the first values that are no numbers come out of `%.100s`, which %.60s runs",
                         search.node->name, sl_exec_get_backend(exec, search.node));
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
        sl_text_snprintf(trainer->reason + used, sizeof trainer->reason - used, ", which is skipped (%d in a row)",
                         (int)state->skipped_in_row);
        sl_log_printf(trainer->request.log, SL_LOG_WARN, "%s", trainer->reason);
    }
    /* A state that contains NaN would spoil every later batch. If one is under way, the device has done it. */
    if (skip && !is_ahead(trainer))
        sl_trainer_reset_states(trainer);
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

static void advance(struct sl_trainer *trainer, const struct sl_update *update)
{
    struct sl_train_state *state = &trainer->state;
    state->updates++;
    state->tokens += (int64_t)update->sums.rows;
    state->ordinal = (int64_t)update->group[update->count - 1]->ordinal + 1;
    if (update->epoch_ended) {
        state->epoch++;
        state->ordinal = 0;
    }
    trainer->changed = true;
}

/* What follows from the results of all steps. */
static seqlstm_status settle(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err)
{
    struct sl_train_state *state = &trainer->state;
    const struct sl_metric_sums *sums = &update->sums;
    const int64_t skipped = state->skipped;
    trainer->teacher = update->teacher;
    trainer->rate = update->rate;
    trainer->squares = update->squares;
    if (sums->loss_weight > 0) {
        trainer->loss = sl_text_unsign_nan(sums->loss / sums->loss_weight);
        trainer->gradient_norm = NAN;
        if (!isfinite(trainer->loss))
            diverge(trainer, "loss", trainer->loss);
        else
            SEQLSTM_TRY(follow_update(trainer, err));
    }
    if (trainer->diverged) {
        SEQLSTM_TRY(drop_next(trainer, err));
        name_source(trainer, update);
        return SEQLSTM_OK;
    }
    if (state->skipped == skipped) {
        sl_metric_sums_add(&state->epoch_sums, sums);
        sl_metric_sums_add(&state->interval_sums, sums);
    }
    advance(trainer, update);
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_step(struct sl_trainer *trainer, bool *out_epoch_ended, struct seqlstm_error *err)
{
    struct sl_update *update = &trainer->updates[trainer->turn];
    if (update->count == 0)
        SEQLSTM_TRY(sl_update_prepare(trainer, update, &trainer->progress, err));
    SEQLSTM_TRY(sl_update_run(trainer, update, err));
    SEQLSTM_TRY(go_ahead(trainer, update, err));
    SEQLSTM_TRY(sl_update_wait(trainer, update, 0, err));
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_METRIC, NULL);
    const seqlstm_status status = settle(trainer, update, err);
    sl_trace_end(begin, SL_ACTIVITY_METRIC, NULL, NULL, 0);
    SEQLSTM_TRY(status);
    *out_epoch_ended = update->epoch_ended;
    if (is_ahead(trainer))
        trainer->progress = get_next(trainer)->began;
    else if (!trainer->diverged)
        sl_trainer_update_progress(trainer);
    sl_update_clear(update);
    trainer->turn = 1 - trainer->turn;
    return SEQLSTM_OK;
}

bool sl_trainer_is_ahead(const struct sl_trainer *trainer)
{
    return trainer->updates[trainer->turn].started > 0;
}
