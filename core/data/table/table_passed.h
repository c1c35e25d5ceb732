/* SPDX-License-Identifier: Apache-2.0 */
/* Private to core/data. */
#ifndef SL_DATA_TABLE_TABLE_PASSED_H
#define SL_DATA_TABLE_TABLE_PASSED_H

#include <seqlstm/status.h>

#include "data/read/passed.h"
#include "model/data_config.h"

struct sl_table;

/* Copies the columns of these names. INVALID_CONFIG: there is no such column; NO_MEMORY. */
seqlstm_status sl_table_keep_passed(const struct sl_table *table, const struct sl_string_list *names,
                                    struct sl_passed *out_passed, struct seqlstm_error *err);

#endif
