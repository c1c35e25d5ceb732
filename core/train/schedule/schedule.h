/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate: a pure function of the configuration, the progress and, for `plateau`, a small state.
 *
 * t is the progress before the update, in the unit of the periods; lr the optimizer's rate.
 *
 *   constant      lr
 *   step          t < start: lr; else lr * factor^(1 + floor((t - start) / every))
 *   exponential   t < start: lr; else lr * factor^((t - start) / every)
 *   plateau       lr * factor^n after n reductions, not below min_learning_rate
 *   cosine        min + (lr - min) (1 + cos(pi x)) / 2, x = min(t / over, 1)
 *   one_cycle     x = min(t / over, 1); x < rise: linear from max / divide_start to max; then
 *                 half a cosine from max down to max / divide_end
 *   warm-up       any of them times min(1, t / warmup), in updates min(1, (t + 1) / warmup)
 *
 * Without `over` it is the whole run: the larger of the shares of `updates` and `epochs`.
 */
#ifndef SL_TRAIN_SCHEDULE_SCHEDULE_H
#define SL_TRAIN_SCHEDULE_SCHEDULE_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "model/train_config.h"
#include "train/schedule/monitor.h"
#include "train/schedule/progress.h"

/* State of `plateau`; zeroed at the start, saved with checkpoints. */
struct sl_schedule_state {
    struct sl_monitor monitor;
    int64_t reductions;
    int64_t cooldown; /* validations still to wait */
};

/* INVALID_CONFIG for what cannot be computed: `start` and `every` in different units, `over` missing in a run that only
 * max_time ends. */
seqlstm_status sl_schedule_check(const struct sl_train_config *config, struct seqlstm_error *err);

double sl_schedule_rate(const struct sl_train_config *config, const struct sl_schedule_state *state,
                        const struct sl_progress *progress);

/* Gives `plateau` a new value of the number that it watches; other kinds ignore it. True when the rate was reduced. */
bool sl_schedule_observe(const struct sl_train_config *config, struct sl_schedule_state *state, double value);

#endif
