/* SPDX-License-Identifier: Apache-2.0 */
/* What happens between updates: reports, validation and checkpoints. */
#ifndef SL_TRAIN_TRAINER_EVENTS_H
#define SL_TRAIN_TRAINER_EVENTS_H

#include "train/trainer/state.h"

/* Does what is due after an update that led from `before` to trainer->progress. */
seqlstm_status sl_trainer_report(struct sl_trainer *trainer, const struct sl_progress *before, bool epoch_ended,
                                 struct seqlstm_error *err);
/* False, with a `reason`, if the sums of the last measurement ("epoch", "validation") are not those of a sound model.
 */
bool sl_trainer_judge_sums(struct sl_trainer *trainer, const struct sl_metric_rule *rule,
                           const struct sl_metric_sums *sums, const char *measurement);
/* Sets validation_pending instead when interrupted. `*out_kept`: the result is among the best, so a checkpoint is
 * kept. */
seqlstm_status sl_trainer_validate(struct sl_trainer *trainer, bool *out_kept, struct seqlstm_error *err);
seqlstm_status sl_trainer_save(struct sl_trainer *trainer, struct seqlstm_error *err);

/* Returns IO: the run folder was moved or removed while the run went on, or its lock was closed. */
seqlstm_status sl_trainer_fail_lock(const char *folder, const struct sl_file_lock *lock, struct seqlstm_error *err);

#endif
