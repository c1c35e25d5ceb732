/* SPDX-License-Identifier: Apache-2.0 */
/* The probability that a decoder reads the target's token: a pure function of the configuration and the progress before
 * the update (Bengio et al. 2015, section 2.4).
 *
 *   always            1
 *   constant          probability
 *   linear            from + (to - from) min(t / over, 1); without `over` it is the whole run
 *   exponential       k^i               i = t / every
 *   inverse_sigmoid   k / (k + exp(i / k))
 */
#ifndef SL_TRAIN_SCHEDULE_TEACHER_H
#define SL_TRAIN_SCHEDULE_TEACHER_H

#include "model/train_config.h"
#include "train/schedule/progress.h"

/* In [0, 1]. [any thread] */
double sl_teacher_probability(const struct sl_train_config *config, const struct sl_progress *progress);

#endif
