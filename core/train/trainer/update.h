/* SPDX-License-Identifier: Apache-2.0 */
/* An update: its batches, and its steps. */
#ifndef SL_TRAIN_TRAINER_UPDATE_H
#define SL_TRAIN_TRAINER_UPDATE_H

#include "train/trainer/state.h"

/* Fetches the batches of an update and finds its numbers, which depend on the progress before it.
 * CORRUPT_DATA for an epoch without batches. */
seqlstm_status sl_update_prepare(struct sl_trainer *trainer, struct sl_update *update,
                                 const struct sl_progress *progress, struct seqlstm_error *err);
/* Starts or runs all its steps. Some may still be under way afterwards. */
seqlstm_status sl_update_run(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err);
/* Starts its next step, if the executor can go on without waiting for it. */
seqlstm_status sl_update_start_step(struct sl_trainer *trainer, struct sl_update *update, bool *out_started,
                                    struct seqlstm_error *err);
/* Waits until at most `most` of its steps are under way. */
seqlstm_status sl_update_wait(struct sl_trainer *trainer, struct sl_update *update, int32_t most,
                              struct seqlstm_error *err);
void sl_update_clear(struct sl_update *update);

#endif
