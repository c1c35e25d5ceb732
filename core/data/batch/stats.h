/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of `seqlstm data stats`: lengths, and what each way of batching would cost. */
#ifndef SL_DATA_BATCH_STATS_H
#define SL_DATA_BATCH_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/operation/cost.h"
#include "data/dataset/lengths.h"

struct sl_dataset;
struct sl_data_stats;

/* One way of making batches. A rectangle computes sequences x longest rows; packed rows are the real ones. For pairs
 * rows and steps are those of both sides: the decoder runs after the encoder. */
struct sl_batching_cost {
    const char *name;        /* see sl_data_stats_create */
    const char *description; /* one line; static */
    bool chosen;             /* what the model file asks for */
    int64_t rows_computed;   /* per epoch */
    int64_t steps;           /* sequential: sum over the batches of their steps */
    int64_t source_rows;     /* of them the encoder's */
    int64_t source_steps;
    int64_t batches;
    int64_t shapes;    /* different (sequences, steps), of pairs with the steps of each side */
    int64_t rows_lost; /* never visited */
    int64_t sequences_lost;
    double seconds;       /* of an epoch, from the measured cost of a step; 0: not measured */
    const int64_t *edges; /* of its buckets; NULL: it has none. Borrowed */
    int64_t edge_count;
    double above_bound; /* how far seconds (not measured: steps) lie above the lower bound, as a share of it */
};

/* The strategies, as `name`: packed rows in "pools", in buckets "auto", "count", "greedy" and "lengths" (those of the
 * model file, else tens), and in shuffled order, "packed"; rectangles of "pools_padded", of "count_padded",
 * "greedy_padded" and "lengths_padded" (to the edge), "padded_to_batch" and "padded_to_longest"; "chosen" where the
 * model file asks for something else. One "stream" for streams.
 *
 * For the model's batch_size and max_tokens, one epoch of training; `cost` (NULL: not measured) gives times, and
 * decides the edges of "auto". The lower bound of the steps is that of all data sorted by length: no cut into batches
 * of this size has fewer (of pairs each side is sorted by itself, which no batches reach). The lower bound of the time
 * takes every row at the price of the widest step. The dataset may be closed afterwards. */
seqlstm_status sl_data_stats_create(const struct sl_dataset *dataset, const struct sl_step_cost *cost,
                                    struct sl_data_stats **out_stats, struct seqlstm_error *err);
void sl_data_stats_destroy(struct sl_data_stats *stats);

/* Of the sequences; of pairs the target's. Borrowed. */
const struct sl_lengths *sl_data_stats_get_lengths(const struct sl_data_stats *stats);
/* Of what the encoder reads; NULL where there is no encoder. */
const struct sl_lengths *sl_data_stats_find_source_lengths(const struct sl_data_stats *stats);
int64_t sl_data_stats_get_vocabulary(const struct sl_data_stats *stats); /* 0: no text */
int64_t sl_data_stats_get_source_vocabulary(const struct sl_data_stats *stats);
int64_t sl_data_stats_get_classes(const struct sl_data_stats *stats); /* 0: no classes */
/* Sequences that were split because they were too long, and the parts that they became (`on_overflow: split`). */
int64_t sl_data_stats_get_split(const struct sl_data_stats *stats, int64_t *out_parts);

/* Borrowed. */
const struct sl_batching_cost *sl_data_stats_get_costs(const struct sl_data_stats *stats, int *out_count);

/* Sequential steps of the lower bound, and its seconds (0: not measured). */
int64_t sl_data_stats_get_least_steps(const struct sl_data_stats *stats);
double sl_data_stats_get_least_seconds(const struct sl_data_stats *stats);

#endif
