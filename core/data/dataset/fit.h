/* SPDX-License-Identifier: Apache-2.0 */
/* Learning the data state from the training split. Private to core/data. */
#ifndef SL_DATA_DATASET_FIT_H
#define SL_DATA_DATASET_FIT_H

#include <stdbool.h>

#include "data/dataset/state.h"
#include "data/read/raw.h"

/* Learns from the raw training split (sliced). `others` are the raws of the other splits, which `fit: all` scales by
 * too. */
seqlstm_status sl_data_state_fit(const struct sl_model *model, const struct sl_raw *raw,
                                 const struct sl_raw *const *others, int other_count, struct sl_data_state **out_state,
                                 struct seqlstm_error *err);

/* Do batches of this model carry a weight of each target? Only the segment in which a sequence ends has its target,
 * only real steps have theirs (batcher.h), and only those whose target is not missing. */
bool sl_data_state_needs_weight(const struct sl_data_state *state, const struct sl_model *model);

#endif
