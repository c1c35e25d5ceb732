/* SPDX-License-Identifier: Apache-2.0 */
/* One update after the other, the next one started ahead where nothing is due between them. */
#ifndef SL_TRAIN_TRAINER_STEP_H
#define SL_TRAIN_TRAINER_STEP_H

#include "train/trainer/state.h"

/* One update; leaves state and progress after it. The next one may have been started. */
seqlstm_status sl_trainer_step(struct sl_trainer *trainer, bool *out_epoch_ended, struct seqlstm_error *err);
/* Has the update that comes next been started? Then nothing may be due before it. */
bool sl_trainer_is_ahead(const struct sl_trainer *trainer);

#endif
