/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `seqlstm data stats --html`. */
#ifndef SL_CLI_OUTPUT_DATA_PAGE_H
#define SL_CLI_OUTPUT_DATA_PAGE_H

#include "base/value/buf.h"
#include "base/operation/cost.h"
#include "data/batch/stats.h"

/* Appends one self-contained page: the histogram of lengths with the edges of the buckets (of the chosen strategy, else
 * of "auto"), and the table. `cost` NULL: not measured. */
void cli_write_data_page(struct sl_buf *out, const char *model, const struct sl_data_stats *stats,
                         const struct sl_step_cost *cost);

#endif
