/* SPDX-License-Identifier: Apache-2.0 */
/* Watches one number over the validations: is it the best so far, and for how long has it not improved? Used by early
 * stopping, the plateau schedule and the choice of the best checkpoints.
 *
 * The state is plain and is saved with checkpoints. [any thread, pure]
 */
#ifndef SL_TRAIN_SCHEDULE_MONITOR_H
#define SL_TRAIN_SCHEDULE_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

#include "model/data_config.h"
#include "model/train_config.h"

struct sl_monitor_rule {
    enum sl_monitor_mode mode;
    double min_delta; /* an improvement is larger than this */
};

struct sl_monitor {
    bool has_best;
    double best;
    int64_t waited; /* values since the best one */
};

/* Takes one value and returns true when it is an improvement: better than the best by more than min_delta, or the
 * first. NaN and infinity never are. */
bool sl_monitor_update(struct sl_monitor *monitor, const struct sl_monitor_rule *rule, double value);

/* "valid.loss" -> split and metric. False for any other text. */
bool sl_monitor_parse(const char *text, enum sl_split *out_split, enum sl_metric *out_metric);

enum { SL_NON_MONOTONE_MOST = 64 };

/* The trigger of NT-ASGD (Merity et al. 2017): fires once a value is worse than the best of all values except the
 * `patience` ones before it. Ring of the last values, oldest first from `next`. */
struct sl_non_monotone {
    bool fired;
    int64_t count;     /* values seen */
    double older_best; /* best of those that left the ring */
    double recent[SL_NON_MONOTONE_MOST];
};

/* `patience` 1 .. SL_NON_MONOTONE_MOST. Returns true in the call that fires. */
bool sl_non_monotone_update(struct sl_non_monotone *trigger, int64_t patience, enum sl_monitor_mode mode, double value);

#endif
