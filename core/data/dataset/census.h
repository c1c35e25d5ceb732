/* SPDX-License-Identifier: Apache-2.0 */
/* What a dataset holds, counted: its lengths, and how often each class occurs. */
#ifndef SL_DATA_DATASET_CENSUS_H
#define SL_DATA_DATASET_CENSUS_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "data/dataset/lengths.h"

struct sl_dataset;

/* The lengths of its records; freed with sl_lengths_deinit. NO_MEMORY. */
seqlstm_status sl_census_take_lengths(const struct sl_dataset *dataset, struct sl_lengths *out_lengths,
                                      struct seqlstm_error *err);

/* Targets of each class, [classes], freed by the caller; NULL: there are no classes, or they are tokens. Targets that
 * do not count in the loss are left out. NO_MEMORY. */
seqlstm_status sl_census_count_classes(const struct sl_dataset *dataset, int64_t **out_counts, int64_t *out_classes,
                                       struct seqlstm_error *err);

#endif
