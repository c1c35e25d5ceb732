/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.jsonl: one JSON object a line, {"update", "epoch", "seconds", "split", "metrics", …}.
 *
 * A line is written in one write, so that after a crash at most the last one is incomplete. Opening for a resumed run
 * removes an incomplete line and every line that was written after the checkpoint; other lines stay byte for byte.
 */
#ifndef SL_TRAIN_METRICS_LOG_H
#define SL_TRAIN_METRICS_LOG_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "train/metrics/metric.h"

struct sl_metrics_log;

/* Opens or makes the file. Removes lines with "update" > last_update, and of the span "validation" those with "update"
 * > last_validation; also lines that are no rows, with a warning in `messages` (may be NULL). `*out_seconds` (may be
 * NULL) is the largest "seconds" that stays, 0 if none. Errors: IO, NO_MEMORY. */
struct sl_log;
seqlstm_status sl_metrics_log_open(const char *path, int64_t last_update, int64_t last_validation,
                                   const struct sl_log *messages, struct sl_metrics_log **out_log, double *out_seconds,
                                   struct seqlstm_error *err);

/* One row. NaN and infinities are written as null. */
struct sl_metrics_row {
    int64_t update;
    double epoch; /* whole at the end of an epoch */
    double seconds;
    const char *split;    /* "train", "valid", "test" */
    const char *span;     /* "report" (since the last one), "epoch", "validation" */
    double learning_rate; /* left out when NaN, as the next three */
    double teacher_forcing;
    double gradient_norm;
    double rows_per_second;
    const struct sl_metric_values *values;
};

seqlstm_status sl_metrics_log_append(struct sl_metrics_log *log, const struct sl_metrics_row *row,
                                     struct seqlstm_error *err);

/* fsync: before a checkpoint that comes after the rows. */
seqlstm_status sl_metrics_log_sync(struct sl_metrics_log *log, struct seqlstm_error *err);
void sl_metrics_log_close(struct sl_metrics_log *log);

#endif
