/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a stage of the pipeline, which its rank trains. For request.owners. */
#ifndef SL_TRAIN_TRAINER_STAGES_H
#define SL_TRAIN_TRAINER_STAGES_H

#include "train/trainer/state.h"

seqlstm_status sl_trainer_open_stages(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_close_stages(struct sl_trainer *trainer);
/* The elements of the gradients that it adds with its replicas. Without stages, or with one: those of all. */
int64_t sl_trainer_count_own(const struct sl_trainer *trainer);
/* Copies them to one vector, which stays as it is until the next call; and back. */
float *sl_trainer_take_own(struct sl_trainer *trainer);
void sl_trainer_put_own(struct sl_trainer *trainer);
seqlstm_status sl_trainer_update_own(struct sl_trainer *trainer, const struct sl_exec_update *update,
                                     double *out_squares, struct seqlstm_error *err);
/* The sums of the loss are in the last stage: all get them. */
seqlstm_status sl_trainer_share_sums(struct sl_trainer *trainer, struct sl_metric_sums *sums,
                                     struct seqlstm_error *err);
bool sl_trainer_is_last_stage(const struct sl_trainer *trainer);
/* Weights, states of the optimizer and averages of all stages, before any of them is read. All ranks call it. */
seqlstm_status sl_trainer_gather_weights(struct sl_trainer *trainer, struct seqlstm_error *err);

#endif
