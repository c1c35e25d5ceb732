/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a dataset: series, windows of series, or one stream. Private to core/data. */
#ifndef SL_DATA_DATASET_RECORDS_H
#define SL_DATA_DATASET_RECORDS_H

#include "data/read/raw.h"

struct sl_dataset;

/* Makes the dataset's list of records from the series of `raw`. Errors: CORRUPT_DATA, NO_MEMORY. */
seqlstm_status sl_dataset_cut_records(struct sl_dataset *dataset, struct sl_raw *raw, struct seqlstm_error *err);

#endif
