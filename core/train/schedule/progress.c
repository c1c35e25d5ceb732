/* SPDX-License-Identifier: Apache-2.0 */
/* Progress in each unit, and periods against it. */
#include "train/schedule/progress.h"

#include <math.h>

/* Shares of an epoch are quotients: 3 * 0.1 must equal 0.3. */
static const double ROUNDING = 1e-9;

double sl_progress_get(const struct sl_progress *progress, enum sl_period_unit unit)
{
    switch (unit) {
    case SL_PERIOD_UPDATES:
        return (double)progress->updates;
    case SL_PERIOD_EPOCHS:
        return progress->epochs;
    case SL_PERIOD_TOKENS:
        return (double)progress->tokens;
    case SL_PERIOD_SECONDS:
        return progress->seconds;
    case SL_PERIOD_NONE:
        break;
    }
    return 0;
}

bool sl_period_is_due(const struct sl_period *period, const struct sl_progress *before, const struct sl_progress *now)
{
    if (period->unit == SL_PERIOD_NONE || !(period->count > 0))
        return false;
    double from = sl_progress_get(before, period->unit) / period->count;
    double to = sl_progress_get(now, period->unit) / period->count;
    return floor(to + ROUNDING) > floor(from + ROUNDING);
}

bool sl_period_is_over(const struct sl_period *period, const struct sl_progress *now)
{
    return period->unit == SL_PERIOD_NONE || sl_progress_get(now, period->unit) >= period->count * (1 - ROUNDING);
}
