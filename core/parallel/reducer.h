/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the gradients of all ranks while the backward pass goes on: a thread of its own adds *bundles*, from the end of
 * the flat gradients to their beginning, as soon as they are complete. The size of a bundle follows from the measured
 * latency and bandwidth of the collectives. Of an embedding, only rows that are not zero on some rank are exchanged.
 *
 * The thread that computes makes no exchange between the first `note` of an update and its `finish`. The sums are those
 * of sl_ranks_add: each element is added in the same order, whatever the bundles are.
 */
#ifndef SL_PARALLEL_REDUCER_H
#define SL_PARALLEL_REDUCER_H

#include "base/memory/memory.h"
#include "parallel/ranks.h"

struct sl_reducer;

/* Elements [offset, offset + rows * columns) of the gradients of an embedding. */
struct sl_reducer_rows {
    int64_t offset, rows, columns;
};

struct sl_reducer_times {
    int64_t exchange_ns; /* in which the thread of the reducer exchanged */
    int64_t wait_ns;     /* in which `finish` waited for it */
};

/* All ranks call it. `grads` [elems] must outlive it, as must the ranks, which are more than one; `embeddings` ascend.
 * Errors: NO_MEMORY, and those of exchanges. */
seqlstm_status sl_reducer_create(const struct sl_ranks *ranks, float *grads, int64_t elems,
                                 const struct sl_reducer_rows *embeddings, int32_t embedding_count,
                                 struct sl_memory *memory, struct sl_reducer **out_reducer, struct seqlstm_error *err);
void sl_reducer_destroy(struct sl_reducer *reducer);

/* The gradients from element `from` on are complete, and stay as they are. */
void sl_reducer_note(struct sl_reducer *reducer, int64_t from);

/* All are complete: waits until all are added. Errors: those of exchanges. */
seqlstm_status sl_reducer_finish(struct sl_reducer *reducer, struct seqlstm_error *err);

/* Of one bundle: how many elements are exchanged at once, for a latency and a rate of bytes. */
int64_t sl_reducer_choose_bundle(double latency_s, double bytes_per_s);

struct sl_reducer_times sl_reducer_get_times(struct sl_reducer *reducer);

#endif
