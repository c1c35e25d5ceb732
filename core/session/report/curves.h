/* SPDX-License-Identifier: Apache-2.0 */
/* The curves of a report: each metric, the learning rate and the norm of the gradients over the updates. */
#ifndef SL_SESSION_REPORT_CURVES_H
#define SL_SESSION_REPORT_CURVES_H

#include <stdint.h>

#include "base/value/buf.h"

struct json_t;

/* Writes a chart for each of them that has at least two points in `rows` (runs/metric_rows.h). A line marks the best
 * update: `best_update`, or, if that is 0, the one with the lowest loss on validation data. */
void sl_report_write_curves(struct sl_buf *out, struct json_t *rows, int64_t best_update);

#endif
