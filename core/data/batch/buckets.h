/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of buckets: which lengths share a batch. A bucket holds the lengths above the edge before it up to its own; its
 * records are cut into batches, of which the last may be incomplete. Private to core/data. [any thread]
 *
 * Pairs have edges for the target alone; a bucket's price is that of both sides, the sources being sorted inside it.
 *
 * Sources: the greedy generator is that of the 15-418 study (MXNet, example/rnn, 2016); the best edges are found by
 * dynamic programming over the histogram of lengths, exact for up to SL_BUCKET_LENGTHS_MOST different ones (more are
 * joined to so many groups of about equal count first).
 */
#ifndef SL_DATA_BATCH_BUCKETS_H
#define SL_DATA_BATCH_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/operation/cost.h"
#include "model/data_config.h"

enum { SL_BUCKET_LENGTHS_MOST = 256 };

/* Lengths that occur, ascending; of pairs those of the sources besides. */
struct sl_histogram {
    int64_t count;
    int32_t *length;
    int64_t *records;
    int64_t source_count;   /* 0: no sources */
    int32_t *source_length; /* at most SL_BUCKET_LENGTHS_MOST: more are joined */
    int64_t *below;         /* [count + 1, source_count] sources of that length among the records before */
};

/* `sources` (may be NULL) are the lengths of the other side. */
seqlstm_status sl_histogram_make(const int32_t *lengths, const int32_t *sources, int64_t records,
                                 struct sl_histogram *out, struct seqlstm_error *err);
void sl_histogram_deinit(struct sl_histogram *histogram);

struct sl_bucket_rule {
    int64_t batch_size;              /* most sequences of a batch; 0: no limit */
    int64_t max_tokens;              /* most rows, padded to the edge; 0: no limit */
    bool padded;                     /* every step runs all sequences; else only those that reach it */
    const struct sl_step_cost *cost; /* NULL: the number of steps */
};

struct sl_edges {
    int64_t count;
    int64_t *lengths; /* ascending; the last one is the longest length of the histogram */
    double cost;      /* of an epoch, in the rule's unit */
};

/* The cheapest edges for exactly `count` buckets (fewer where there are fewer lengths). NO_MEMORY. */
seqlstm_status sl_edges_best(const struct sl_histogram *histogram, const struct sl_bucket_rule *rule, int64_t count,
                             struct sl_edges *out, struct seqlstm_error *err);
/* The cheapest edges for any number of buckets, each of which costs rule->cost->shape_ns besides. */
seqlstm_status sl_edges_auto(const struct sl_histogram *histogram, const struct sl_bucket_rule *rule,
                             struct sl_edges *out, struct seqlstm_error *err);
/* A bucket ends at the first length with which it holds a batch. */
seqlstm_status sl_edges_greedy(const struct sl_histogram *histogram, const struct sl_bucket_rule *rule,
                               struct sl_edges *out, struct seqlstm_error *err);
/* As `bucketing` asks; a list that ends below the longest length gets that length as its last edge. A kind without
 * buckets has no edges. */
seqlstm_status sl_edges_make(const struct sl_bucketing *bucketing, const struct sl_histogram *histogram,
                             const struct sl_bucket_rule *rule, struct sl_edges *out, struct seqlstm_error *err);
void sl_edges_deinit(struct sl_edges *edges);

/* What the bucket of the lengths first .. last - 1 of the histogram costs. Without measured step costs, its steps: the
 * edge, once per batch. Else the sum over the steps, each at the cost of as many sequences as are that long on average.
 * Sources cost the longest of each batch. */
double sl_bucket_price(const struct sl_bucket_rule *rule, const struct sl_histogram *histogram, int64_t first,
                       int64_t last);

/* The bucket of a length: the first whose edge reaches it, else the last. */
int64_t sl_edges_find(const int64_t *edges, int64_t count, int64_t length);

#endif
