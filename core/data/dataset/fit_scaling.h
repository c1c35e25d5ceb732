/* SPDX-License-Identifier: Apache-2.0 */
/* Learning from columns of numbers: scaling, values that replace missing ones, the naive forecast. Private to
 * core/data. */
#ifndef SL_DATA_DATASET_FIT_SCALING_H
#define SL_DATA_DATASET_FIT_SCALING_H

#include "data/read/raw.h"

struct sl_data_state;

/* Sets the offsets, factors and fill values of the inputs and targets, as far as the source asks for them. A column
 * without a value, or with values that are too large: CORRUPT_DATA. */
seqlstm_status sl_fit_scaling(struct sl_data_state *state, const struct sl_raw *raw, const struct sl_raw *const *others,
                              int other_count, struct seqlstm_error *err);

/* Sets the error of the naive forecast: how far a target is from the one before it, on average, column by column. */
seqlstm_status sl_fit_naive(struct sl_data_state *state, const struct sl_raw *raw, struct seqlstm_error *err);

#endif
