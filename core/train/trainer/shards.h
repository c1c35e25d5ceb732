/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a rank in an update, and what ranks exchange. For request.ranks. */
#ifndef SL_TRAIN_TRAINER_SHARDS_H
#define SL_TRAIN_TRAINER_SHARDS_H

#include "train/trainer/state.h"

seqlstm_status sl_trainer_open_shards(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_close_shards(struct sl_trainer *trainer);
/* sl_update_run: computes this rank's shards, and makes the update with the gradients of all. */
seqlstm_status sl_trainer_run_shards(struct sl_trainer *trainer, struct sl_update *update, struct seqlstm_error *err);
/* Carried states of all sequences become zero, also without ranks. */
void sl_trainer_reset_states(struct sl_trainer *trainer);
/* INVALID_CONFIG if another rank has begun with other data or weights than rank 0. Also the first agreement. */
seqlstm_status sl_trainer_compare_ranks(struct sl_trainer *trainer, struct seqlstm_error *err);
/* The carried states of the whole batch, as a single rank has them: a checkpoint does not know its ranks. With ranks,
 * `collect` fills them (all ranks call it), and `spread` gives this rank its own. */
seqlstm_status sl_trainer_get_carried(struct sl_trainer *trainer, float **out_carried, int64_t *out_elems,
                                      struct seqlstm_error *err);
seqlstm_status sl_trainer_collect_carried(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_spread_carried(struct sl_trainer *trainer);
/* What the compression of gradients has missed, summed over all ranks, likewise. NULL: there is none. */
float *sl_trainer_get_errors(struct sl_trainer *trainer);
seqlstm_status sl_trainer_collect_errors(struct sl_trainer *trainer, struct seqlstm_error *err);
void sl_trainer_spread_errors(struct sl_trainer *trainer);

#endif
