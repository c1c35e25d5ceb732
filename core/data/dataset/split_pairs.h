/* SPDX-License-Identifier: Apache-2.0 */
/* `on_overflow: split` for pairs. Private to core/data. */
#ifndef SL_DATA_DATASET_SPLIT_PAIRS_H
#define SL_DATA_DATASET_SPLIT_PAIRS_H

#include "data/read/raw.h"

/* For pairs whose two sides are one text: a pair with a side of more than `longest` steps becomes several pairs, each
 * as long as it can be. Errors: NO_MEMORY. */
seqlstm_status sl_raw_split_pairs(struct sl_raw *raw, const struct sl_data_config *config, int64_t longest,
                                  struct seqlstm_error *err);

#endif
