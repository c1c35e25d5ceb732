/* SPDX-License-Identifier: Apache-2.0 */
/* Making a dataset out of what was read. Private to core/data. */
#ifndef SL_DATA_DATASET_ASSEMBLE_H
#define SL_DATA_DATASET_ASSEMBLE_H

#include "data/read/raw.h"

struct sl_dataset;

/* Applies the dataset's state to a sliced raw: ids, scaled numbers, records. `dataset` has its model, state, facts and
 * form, all else zero. Moves arrays out of the raw where it can. On failure the dataset may be half filled: close it.
 */
seqlstm_status sl_dataset_assemble(struct sl_dataset *dataset, struct sl_raw *raw, struct seqlstm_error *err);

#endif
