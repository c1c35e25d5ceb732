/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `seqlstm data stats --html`. */
#ifndef SL_CLI_OUTPUT_DATA_PAGE_H
#define SL_CLI_OUTPUT_DATA_PAGE_H

#include "base/value/buf.h"
#include "base/operation/cost.h"
#include "data/batch/stats.h"
#include "data/table/columns.h"
#include "data/text/vocabulary.h"

/* What the data hold, besides their lengths. */
struct cli_data_content {
    struct sl_columns columns;
    int64_t *counts; /* of each class; NULL: none */
    int64_t classes;
    const struct sl_vocabulary *names;
};

/* Appends one self-contained page: the histogram of lengths with the bucket edges of the chosen strategy (or of "auto"
 * if that has none), classes, columns, and the table of strategies. `cost` is NULL if it was not measured. */
void cli_write_data_page(struct sl_buf *out, const char *model, const struct sl_data_stats *stats,
                         const struct cli_data_content *content, const struct sl_step_cost *cost);

#endif
