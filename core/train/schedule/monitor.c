/* SPDX-License-Identifier: Apache-2.0 */
/* The best value and how long ago it was. */
#include "train/schedule/monitor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Comparisons with NaN are false. */
static bool is_better(enum sl_monitor_mode mode, double value, double than, double by)
{
    return mode == SL_MODE_MAX ? value > than + by : value < than - by;
}

bool sl_monitor_update(struct sl_monitor *monitor, const struct sl_monitor_rule *rule, double value)
{
    bool improved =
        isfinite(value) && (!monitor->has_best || is_better(rule->mode, value, monitor->best, rule->min_delta));
    if (improved) {
        monitor->has_best = true;
        monitor->best = value;
        monitor->waited = 0;
    } else {
        monitor->waited++;
    }
    return improved;
}

bool sl_monitor_parse(const char *text, enum sl_split *out_split, enum sl_metric *out_metric)
{
    const char *dot = strchr(text, '.');
    if (!dot)
        return false;
    size_t length = (size_t)(dot - text);
    for (int split = 0; split < SL_SPLIT_COUNT; split++) {
        const char *name = sl_split_get_name((enum sl_split)split);
        if (strlen(name) != length || memcmp(name, text, length) != 0)
            continue;
        for (int metric = 0; metric < SL_METRIC_COUNT; metric++)
            if (strcmp(dot + 1, sl_metric_get_name((enum sl_metric)metric)) == 0) {
                *out_split = (enum sl_split)split;
                *out_metric = (enum sl_metric)metric;
                return true;
            }
    }
    return false;
}

bool sl_non_monotone_update(struct sl_non_monotone *trigger, int64_t patience, enum sl_monitor_mode mode, double value)
{
    assert(patience >= 1 && patience <= SL_NON_MONOTONE_MOST);
    bool fires = !trigger->fired && trigger->count > patience && is_better(mode, trigger->older_best, value, 0);
    double *slot = &trigger->recent[trigger->count % patience];
    if (trigger->count >= patience) {
        bool first = trigger->count == patience;
        if (first || is_better(mode, *slot, trigger->older_best, 0) || isnan(trigger->older_best))
            trigger->older_best = *slot;
    }
    *slot = value;
    trigger->count++;
    trigger->fired = trigger->fired || fires;
    return fires;
}
