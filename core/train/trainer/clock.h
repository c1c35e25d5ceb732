/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a training run, with its time. */
#ifndef SL_TRAIN_TRAINER_CLOCK_H
#define SL_TRAIN_TRAINER_CLOCK_H

#include "train/trainer/state.h"

/* In nanoseconds. */
int64_t sl_trainer_read_clock(const struct sl_trainer *trainer);
/* The progress with these numbers of the running epoch, at this time. */
struct sl_progress sl_trainer_make_progress(const struct sl_trainer *trainer, int64_t updates, int64_t ordinal,
                                            int64_t tokens);
/* After an update: the progress of the state, now. */
void sl_trainer_update_progress(struct sl_trainer *trainer);
/* Is `max_time` over? */
bool sl_trainer_is_time_over(const struct sl_trainer *trainer, const struct sl_progress *progress);
/* Do limits of updates or time end the run at this progress, within an epoch? */
bool sl_trainer_ends(const struct sl_trainer *trainer, const struct sl_progress *progress);

#endif
