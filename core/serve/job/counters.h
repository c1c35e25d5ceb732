/* SPDX-License-Identifier: Apache-2.0 */
/* What a server counts, for /metrics and its status page. */
#ifndef SL_SERVE_JOB_COUNTERS_H
#define SL_SERVE_JOB_COUNTERS_H

#include <pthread.h>
#include <stdint.h>

#include "base/value/buf.h"

enum { SL_COUNTER_BUCKETS = 16 };

/* Observations by size; the last bucket has no limit. */
struct sl_counter_histogram {
    int64_t counts[SL_COUNTER_BUCKETS + 1];
    double sum;
};

/* Any thread may call any of these. */
struct sl_counters {
    pthread_mutex_t lock;
    int64_t answered[6]; /* replies by the first digit of their status */
    int64_t rows, sequences, batches, gone, followed;
    int64_t busy;                                            /* workers that compute */
    struct sl_counter_histogram queued_s, computed_s, width; /* of jobs, of batches, sequences of batches */
};

void sl_counters_init(struct sl_counters *counters);
void sl_counters_deinit(struct sl_counters *counters);
void sl_counters_note_reply(struct sl_counters *counters, int status);
void sl_counters_note_queued(struct sl_counters *counters, double seconds);
/* A worker begins to compute (+1) or ends (-1). */
void sl_counters_note_busy(struct sl_counters *counters, int change);
/* A batch of steps of so many sequences. */
void sl_counters_note_batch(struct sl_counters *counters, int64_t sequences, int64_t rows, double seconds);
/* A request of so many sequences is computed. */
void sl_counters_note_sequences(struct sl_counters *counters, int64_t count);
void sl_counters_note_gone(struct sl_counters *counters);
/* Newer weights are taken over. */
void sl_counters_note_followed(struct sl_counters *counters);

/* What others count. */
struct sl_counter_gauges {
    int64_t waiting;          /* jobs in the queue */
    int64_t streams, expired; /* that are open, and that have ended because they were not used */
};

/* Appends them in the text format of Prometheus (version 0.0.4). */
void sl_counters_write(struct sl_counters *counters, const struct sl_counter_gauges *gauges, struct sl_buf *out);

#endif
