/* SPDX-License-Identifier: Apache-2.0 */
/* See teacher.h. */
#include "train/schedule/teacher.h"

#include <math.h>

/* The share of `over` that has passed. */
static double get_share(const struct sl_train_config *config, const struct sl_progress *progress)
{
    const struct sl_period *over = &config->teacher_forcing.over;
    double share = 0;
    if (over->unit != SL_PERIOD_NONE)
        return over->count > 0 ? fmin(sl_progress_get(progress, over->unit) / over->count, 1) : 1;
    if (config->updates > 0)
        share = (double)progress->updates / (double)config->updates;
    if (config->epochs > 0)
        share = fmax(share, progress->epochs / (double)config->epochs);
    return fmin(share, 1);
}

double sl_teacher_probability(const struct sl_train_config *config, const struct sl_progress *progress)
{
    const struct sl_teacher_forcing *teacher = &config->teacher_forcing;
    double share;
    double i = teacher->every.count > 0 ? sl_progress_get(progress, teacher->every.unit) / teacher->every.count : 0;
    switch (teacher->kind) {
    case SL_TEACHER_ALWAYS:
        break;
    case SL_TEACHER_CONSTANT:
        return teacher->probability;
    case SL_TEACHER_LINEAR:
        share = get_share(config, progress);
        return share < 1 ? teacher->from + (teacher->to - teacher->from) * share : teacher->to;
    case SL_TEACHER_EXPONENTIAL:
        return pow(teacher->k, i);
    case SL_TEACHER_INVERSE_SIGMOID:
        return teacher->k / (teacher->k + exp(i / teacher->k));
    }
    return 1;
}
