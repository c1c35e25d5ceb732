/* SPDX-License-Identifier: Apache-2.0 */
/* Reading one split: a source of its own, or its share of the training split. Private to core/data. */
#ifndef SL_DATA_DATASET_SPLIT_READ_H
#define SL_DATA_DATASET_SPLIT_READ_H

#include "data/read/raw.h"

/* The source that a split is read from: its own, or that of the training split. */
const struct sl_source *sl_split_find_source(const struct sl_model *model, enum sl_split split);

/* Reads the split read->split of read->model (read->source is found here) and keeps the split's share. NOT_FOUND where
 * the model has no such split; else the errors of sl_raw_read. */
seqlstm_status sl_split_read(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err);

#endif
