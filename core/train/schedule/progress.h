/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, and when something periodic is due. Pure functions. [any thread] */
#ifndef SL_TRAIN_SCHEDULE_PROGRESS_H
#define SL_TRAIN_SCHEDULE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/train_config.h"

/* The progress of a run, counted from its first start over every resume. */
struct sl_progress {
    int64_t updates;
    double epochs;  /* a whole number at the end of an epoch; within one, plus the share of its batches */
    int64_t tokens; /* real time steps trained on (sequences for models without steps) */
    double seconds;
};

/* In the unit of a period; 0 for SL_PERIOD_NONE. */
double sl_progress_get(const struct sl_progress *progress, enum sl_period_unit unit);

/* True when a multiple of the period was reached or crossed in (before, now]. NONE is never due. */
bool sl_period_is_due(const struct sl_period *period, const struct sl_progress *before, const struct sl_progress *now);

/* True from the period's end on; NONE has always ended. */
bool sl_period_is_over(const struct sl_period *period, const struct sl_progress *now);

#endif
