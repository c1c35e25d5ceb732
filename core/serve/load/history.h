/* SPDX-License-Identifier: Apache-2.0 */
/* When each request of a load was to be sent and was answered, and when the workers computed which batches: what is
 * needed to tell why an answer was late. */
#ifndef SL_SERVE_LOAD_HISTORY_H
#define SL_SERVE_LOAD_HISTORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/value/buf.h"

/* A request (number >= 0), or a batch. Times are those of sl_clock_ns. */
struct sl_history_event {
    int32_t number; /* of the load: 0 is that of one connection, 1 the closed loop, 2 the first open one; -1: a batch */
    int64_t begin_ns, end_ns;       /* of a request, when it was to be sent; of a batch with writing its answers */
    int64_t steps, sequences, rows; /* steps: the most of one sequence; of decoders, the tokens of each */
};

/* Any thread may note. */
struct sl_history {
    pthread_mutex_t lock;
    struct sl_history_event *events;
    int64_t count, room;
    bool failed; /* there was no memory for all */
};

void sl_history_init(struct sl_history *history);
void sl_history_deinit(struct sl_history *history);
void sl_history_note(struct sl_history *history, const struct sl_history_event *event); /* NULL is fine */

/* Appends a table of comma-separated values, times in seconds. */
void sl_history_write(const struct sl_history *history, struct sl_buf *out);

#endif
