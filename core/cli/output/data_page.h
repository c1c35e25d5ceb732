/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `seqlstm data stats --html`. */
#ifndef SL_CLI_OUTPUT_DATA_PAGE_H
#define SL_CLI_OUTPUT_DATA_PAGE_H

#include "base/value/buf.h"
#include "base/operation/cost.h"
#include "data/batch/stats.h"

/* Appends one self-contained page: the histogram of lengths with the bucket edges of the chosen strategy (or of "auto"
 * if that has none), and the table of strategies. `cost` is NULL if it was not measured. */
void cli_write_data_page(struct sl_buf *out, const char *model, const struct sl_data_stats *stats,
                         const struct sl_step_cost *cost);

#endif
