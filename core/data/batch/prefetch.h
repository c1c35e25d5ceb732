/* SPDX-License-Identifier: Apache-2.0 */
/* Batches built ahead by one thread, through a bounded queue, in exactly the batcher's order.
 *
 * Invariants:
 * 1. While it exists, only it may use the batcher; sl_prefetch_destroy ends that.
 * 2. The consumer sees what sl_batcher_next would have given, errors and ends of epochs included.
 */
#ifndef SL_DATA_BATCH_PREFETCH_H
#define SL_DATA_BATCH_PREFETCH_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/batch.h"

struct sl_batcher;
struct sl_prefetch;

/* Starts the thread at the batcher's position. `depth` batches at most wait in the queue (1 .. 64); 0 starts no thread:
 * batches are then built in sl_prefetch_next. The batcher outlives it. */
seqlstm_status sl_prefetch_create(struct sl_batcher *batcher, int depth, struct sl_prefetch **out_prefetch,
                                  struct seqlstm_error *err);

/* As sl_batcher_next. After an error of the thread every call returns that error. [one thread at a time] */
seqlstm_status sl_prefetch_next(struct sl_prefetch *prefetch, struct sl_batch **out_batch, struct seqlstm_error *err);

/* Stops the thread, drops what waits. NULL is fine. */
void sl_prefetch_destroy(struct sl_prefetch *prefetch);

/* Time that sl_prefetch_next has waited for the thread, in nanoseconds. */
int64_t sl_prefetch_get_wait_ns(const struct sl_prefetch *prefetch);

#endif
