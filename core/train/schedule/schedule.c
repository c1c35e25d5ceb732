/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates as closed forms of the progress. */
#include "train/schedule/schedule.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static bool is_set(const struct sl_period *period)
{
    return period->unit != SL_PERIOD_NONE;
}

seqlstm_status sl_schedule_check(const struct sl_train_config *config, struct seqlstm_error *err)
{
    const struct sl_schedule *schedule = &config->schedule;
    bool steps = schedule->kind == SL_SCHEDULE_STEP || schedule->kind == SL_SCHEDULE_EXPONENTIAL;
    if (steps && !(is_set(&schedule->every) && schedule->every.count > 0))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "the schedule `%s` needs a period `every` above 0",
                     sl_schedule_kind_get_name(schedule->kind));
    if (steps && is_set(&schedule->start) && schedule->start.unit != schedule->every.unit)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "`start` and `every` of the schedule are in different units");
    bool over = schedule->kind == SL_SCHEDULE_COSINE || schedule->kind == SL_SCHEDULE_ONE_CYCLE;
    if (over && !is_set(&schedule->over) && config->epochs == 0 && config->updates == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "the schedule `%s` needs a period `over` in a run that only max_time ends",
                     sl_schedule_kind_get_name(schedule->kind));
    return SEQLSTM_OK;
}

/* Periods that have passed since `start`, negative before it. */
static double periods_since(const struct sl_schedule *schedule, const struct sl_period *start,
                            const struct sl_progress *progress)
{
    double t = sl_progress_get(progress, schedule->every.unit);
    double from = is_set(start) ? start->count : 0;
    return (t - from) / schedule->every.count;
}

/* The share of `over` that has passed, at most 1. */
static double share_of_run(const struct sl_train_config *config, const struct sl_progress *progress)
{
    const struct sl_period *over = &config->schedule.over;
    double share = 0;
    if (is_set(over)) {
        share = over->count > 0 ? sl_progress_get(progress, over->unit) / over->count : 1;
    } else {
        if (config->updates > 0)
            share = (double)progress->updates / (double)config->updates;
        if (config->epochs > 0)
            share = fmax(share, progress->epochs / (double)config->epochs);
    }
    return fmin(share, 1);
}

static double one_cycle(const struct sl_schedule *schedule, double x)
{
    double low = schedule->max / schedule->divide_start;
    double end = schedule->max / schedule->divide_end;
    if (x < schedule->rise)
        return low + (schedule->max - low) * x / schedule->rise;
    double down = schedule->rise < 1 ? (x - schedule->rise) / (1 - schedule->rise) : 1;
    return end + (schedule->max - end) * (1 + cos(PI * down)) / 2;
}

static double warm_up(const struct sl_period *warmup, const struct sl_progress *progress)
{
    if (!is_set(warmup) || !(warmup->count > 0))
        return 1;
    double t = sl_progress_get(progress, warmup->unit);
    if (warmup->unit == SL_PERIOD_UPDATES)
        t += 1;
    return fmin(1, t / warmup->count);
}

double sl_schedule_rate(const struct sl_train_config *config, const struct sl_schedule_state *state,
                        const struct sl_progress *progress)
{
    const struct sl_schedule *schedule = &config->schedule;
    double rate = config->optimizer.learning_rate;
    /* Multiples of a period are exact in updates, tokens and whole epochs; a share of an epoch is a rounded
     * quotient. */
    const double rounding = 1e-9;
    switch (schedule->kind) {
    case SL_SCHEDULE_CONSTANT:
        break;
    case SL_SCHEDULE_STEP: {
        const struct sl_period *start = is_set(&schedule->start) ? &schedule->start : &schedule->every;
        double n = floor(periods_since(schedule, start, progress) + rounding);
        rate *= n < 0 ? 1 : pow(schedule->factor, 1 + n);
        break;
    }
    case SL_SCHEDULE_EXPONENTIAL: {
        double n = periods_since(schedule, &schedule->start, progress);
        rate *= n < 0 ? 1 : pow(schedule->factor, n);
        break;
    }
    case SL_SCHEDULE_PLATEAU: {
        double reduced = rate * pow(schedule->factor, (double)state->reductions);
        rate = fmin(rate, fmax(reduced, schedule->min_learning_rate));
        break;
    }
    case SL_SCHEDULE_COSINE: {
        double low = schedule->min_learning_rate;
        rate = low + (rate - low) * (1 + cos(PI * share_of_run(config, progress))) / 2;
        break;
    }
    case SL_SCHEDULE_ONE_CYCLE:
        rate = one_cycle(schedule, share_of_run(config, progress));
        break;
    }
    return rate * warm_up(&schedule->warmup, progress);
}

bool sl_schedule_observe(const struct sl_train_config *config, struct sl_schedule_state *state, double value)
{
    const struct sl_schedule *schedule = &config->schedule;
    if (schedule->kind != SL_SCHEDULE_PLATEAU)
        return false;
    enum sl_split split = SL_SPLIT_VALID;
    enum sl_metric metric = SL_METRIC_LOSS;
    if (schedule->monitor)
        sl_monitor_parse(schedule->monitor, &split, &metric);
    struct sl_monitor_rule rule = {sl_metric_get_mode(metric), schedule->min_delta};
    bool cooling = state->cooldown > 0;
    if (cooling)
        state->cooldown--;
    bool improved = sl_monitor_update(&state->monitor, &rule, value);
    if (cooling)
        state->monitor.waited = 0;
    int64_t patience = schedule->patience > 1 ? schedule->patience : 1;
    if (improved || state->monitor.waited < patience)
        return false;
    state->reductions++;
    state->monitor.waited = 0;
    state->cooldown = schedule->cooldown;
    return true;
}
