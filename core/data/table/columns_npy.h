/* SPDX-License-Identifier: Apache-2.0 */
/* The features of the training arrays x and y, as columns. Private to columns.c. */
#ifndef SL_DATA_TABLE_COLUMNS_NPY_H
#define SL_DATA_TABLE_COLUMNS_NPY_H

#include "data/table/columns.h"

/* Counts what sequences hold: with `lengths` nothing behind their ends. A NaN is a missing value. The arrays have been
 * read before, so their shapes fit the model. Errors: those of reading a file; NO_MEMORY. */
seqlstm_status sl_columns_read_npy(const struct sl_model *model, struct sl_columns *out_columns,
                                   struct seqlstm_error *err);

#endif
