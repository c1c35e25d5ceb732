/* SPDX-License-Identifier: Apache-2.0 */
/* Packed batches of a dataset, epoch after epoch.
 *
 * data/batch: from a dataset to batches. The batcher orders the records of an epoch (order.h, buckets.h), fills each
 * batch (batch_rows.h) and, on a thread of its own, works ahead (prefetch.h); stats.h counts what other strategies
 * would cost.
 *
 * unit: sequence. The records of an epoch are shuffled (training, `shuffle`), cut into pools of `pool` batches and
 * sorted by length inside each pool, or put into buckets of like length; cut into batches of batch_size records (or
 * fewer, where max_tokens is reached; a longer record is a batch alone), and the batches of the epoch are shuffled.
 * Incomplete batches are kept. In the first epoch of training the batch with most rows comes first. Evaluation does the
 * same without shuffling; prediction has the records in input order. With `pad_to` all sequences of a batch are
 * computed to one length; padded steps carry no loss. With `bptt` a batch is handed out in segments of so many steps:
 * all segments have the same sequences in the same order (those that have ended have length zero), and the target of a
 * whole sequence stands in the segment in which it ends (elsewhere -1 or weight 0).
 *
 * unit: stream. The n positions of the stream (for a language model all tokens but the last) are cut into batch_size
 * contiguous streams of equal length; the last n mod batch_size positions are not visited and counted as lost. A batch
 * is the next segment of `bptt` steps of every stream; the last segment of an epoch may be shorter. The target of a
 * language model is the next token, also across the ends of streams.
 *
 * Invariants:
 * 1. The batches of epoch e are a function of (dataset, request, e): not of threads, of what was handed out before, or
 *    of time.
 * 2. In an epoch every record is in exactly one batch (with bptt: in the segments of one).
 * 3. axis.sequence_id is the record's number (streams: the stream's), so masks do not depend on batches.
 */
#ifndef SL_DATA_BATCH_BATCHER_H
#define SL_DATA_BATCH_BATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/batch/batch.h"
#include "base/operation/cost.h"
#include "base/batch/data_facts.h"
#include "base/batch/profile.h"

struct sl_dataset;
struct sl_batcher;

enum sl_batching_phase {
    SL_BATCHING_TRAIN,    /* shuffled if the model says so */
    SL_BATCHING_EVALUATE, /* the same batches every epoch */
    SL_BATCHING_PREDICT   /* as evaluate, in input order */
};

struct sl_batcher_request {
    enum sl_batching_phase phase;
    uint64_t seed; /* of the run; only its mix with the epoch is used */
    /* Both 0: the model's. */
    int64_t batch_size; /* 0: max_tokens alone. Streams: how many run in parallel; 1 visits every position. */
    int64_t max_tokens; /* most rows that a batch computes; 0: no limit. unit: sequence only */
    const struct sl_step_cost *cost; /* for `bucketing: auto`; NULL: counts steps. Borrowed for the call */
    const int64_t *edges;            /* of the buckets, in place of those that the model asks for; copied */
    int64_t edge_count;              /* 0: none */
};

/* Begins before batch 0 of epoch 0. The dataset outlives it. Errors: NO_MEMORY, CORRUPT_DATA (too little data for one
 * batch of streams in training; in evaluation there are fewer streams). */
seqlstm_status sl_batcher_open(const struct sl_dataset *dataset, const struct sl_batcher_request *request,
                               struct sl_batcher **out_batcher, struct seqlstm_error *err);
void sl_batcher_close(struct sl_batcher *batcher);

/* The next batch, owned by the caller (sl_batch_destroy), or NULL at the end of the epoch; the call after that begins
 * the next epoch. [one thread at a time] */
seqlstm_status sl_batcher_next(struct sl_batcher *batcher, struct sl_batch **out_batch, struct seqlstm_error *err);

/* The next call gives batch `ordinal` of `epoch`; ordinal == number of batches: the end of that epoch. Costs one
 * ordering of the records, and no reading. INVALID_ARGUMENT beyond the end. */
seqlstm_status sl_batcher_seek(struct sl_batcher *batcher, uint64_t epoch, uint64_t ordinal, struct seqlstm_error *err);

/* Where the next call stands. */
uint64_t sl_batcher_get_epoch(const struct sl_batcher *batcher);
uint64_t sl_batcher_get_ordinal(const struct sl_batcher *batcher);
/* Batches of the current epoch, each segment counted as one. */
int64_t sl_batcher_get_batches(const struct sl_batcher *batcher);

/* An upper bound of every batch of every epoch. */
struct sl_envelope sl_batcher_envelope(const struct sl_batcher *batcher);

/* Edges of the buckets, ascending; none without buckets. Another batcher that gets them makes the same buckets. */
const int64_t *sl_batcher_get_edges(const struct sl_batcher *batcher, int64_t *out_count);

/* A few batches that represent the current epoch: its batches (each segment counted as one) are sorted by rows and put
 * into groups of equal size, and the middle of each group is taken. Besides them all batches of the epoch, or as many
 * as there is room for, in their order. *out is zeroed. Errors: NO_MEMORY. */
seqlstm_status sl_batcher_sample(const struct sl_batcher *batcher, struct sl_profiles *out, struct seqlstm_error *err);

/* Positions of a stream that no batch of an epoch visits (its tail). 0 for unit: sequence. */
int64_t sl_batcher_get_lost_rows(const struct sl_batcher *batcher);

/* What it makes batches of. */
const struct sl_dataset *sl_batcher_get_dataset(const struct sl_batcher *batcher);

#endif
