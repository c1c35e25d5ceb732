/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the gradients of all ranks while the backward pass goes on: a thread of its own adds *bundles*, from the end of
 * the flat gradients to their beginning, as soon as they are complete. The size of a bundle follows from the measured
 * latency and bandwidth of the collectives. Of an embedding, only rows that some rank has used are exchanged.
 * Neighbours of compressed matrices are added together with them (bundle.h).
 *
 * The thread that computes makes no exchange between the first `note` of an update and its `finish`. Through
 * shared memory the sums are those of sl_ranks_add on all elements at once, whatever the bundles are; other collectives
 * may add an element in another order in another bundle.
 */
#ifndef SL_PARALLEL_REDUCER_H
#define SL_PARALLEL_REDUCER_H

#include "base/memory/memory.h"
#include "parallel/bundle.h"

struct sl_reducer;

struct sl_reducer_times {
    int64_t exchange_ns; /* in which the thread of the reducer exchanged */
    int64_t wait_ns;     /* in which `finish` waited for it */
};

struct sl_reducer_request {
    const struct sl_ranks *ranks; /* more than one */
    float *grads;                 /* [elems] */
    int64_t elems;
    const struct sl_bundle_matrix *matrices; /* ascending; copied */
    int32_t matrix_count;
    bool marks;    /* `mark` names the used rows; otherwise they are those that are not zero */
    float *errors; /* [elems] of compressed matrices: what this rank's factors have missed; NULL: none is compressed */
    struct sl_memory *memory;
};

/* All ranks call it. What the request names must outlive it. Errors: NO_MEMORY, and those of exchanges. */
seqlstm_status sl_reducer_create(const struct sl_reducer_request *request, struct sl_reducer **out_reducer,
                                 struct seqlstm_error *err);
void sl_reducer_destroy(struct sl_reducer *reducer);

/* This rank has used these rows of the embedding at `offset`; ids below 0 are none. Before the first note of an update.
 */
void sl_reducer_mark(struct sl_reducer *reducer, int64_t offset, const int32_t *ids, int64_t count);

/* The gradients from element `from` on are complete, and stay as they are. */
void sl_reducer_note(struct sl_reducer *reducer, int64_t from);

/* All are complete: waits until all are added. Errors: those of exchanges. */
seqlstm_status sl_reducer_finish(struct sl_reducer *reducer, struct seqlstm_error *err);

/* Of one bundle: how many elements are exchanged at once, for a latency and a rate of bytes. */
int64_t sl_reducer_choose_bundle(double latency_s, double bytes_per_s);

/* [rows] Which rows of the embedding at `offset` some rank has used in the last update; NULL: that is not known. */
const uint8_t *sl_reducer_get_used(const struct sl_reducer *reducer, int64_t offset);

struct sl_reducer_times sl_reducer_get_times(struct sl_reducer *reducer);

#endif
