/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of metrics.jsonl (train/metrics_log.h). */
#ifndef SL_RUNS_METRIC_ROWS_H
#define SL_RUNS_METRIC_ROWS_H

struct json_t;

/* All rows of a run, as a JSON array; lines that are no JSON are left out, and a missing file has none. Released with
 * json_decref. NULL: no memory. */
struct json_t *sl_metric_rows_read(const char *folder);

/* A number of an object, such as a row; NaN: it has none. */
double sl_metric_row_find_number(struct json_t *object, const char *key);
/* A text of a row, borrowed; "": it has none. */
const char *sl_metric_row_get_text(struct json_t *row, const char *key);
/* A metric of a row; NaN: it has none. */
double sl_metric_row_find_metric(struct json_t *row, const char *name);

#endif
