/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of `seqlstm data stats`: lengths, and what each way of batching would cost. */
#ifndef SL_DATA_STATS_H
#define SL_DATA_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_dataset;
struct sl_data_stats;

/* One way of making batches. A rectangle computes sequences x longest; packed rows are real ones. */
struct sl_batching_cost {
    const char *name;        /* "pools", "packed", "pools_padded", "padded_to_batch", "padded_to_longest"; "stream" */
    const char *description; /* one line; static */
    bool chosen;             /* what the model file asks for */
    int64_t rows_computed;   /* per epoch */
    int64_t steps;           /* sequential: sum over the batches of their steps */
    int64_t batches;
    int64_t shapes;          /* different (sequences, steps) */
    int64_t rows_lost;       /* never visited */
    int64_t sequences_lost;
};

struct sl_length_bin {
    int64_t first; /* both ends included */
    int64_t last;
    int64_t records;
};

/* For the model's batch_size, one epoch of training. The dataset may be closed afterwards. */
seqlstm_status sl_data_stats_create(const struct sl_dataset *dataset, struct sl_data_stats **out_stats,
                                    struct seqlstm_error *err);
void sl_data_stats_destroy(struct sl_data_stats *stats);

int64_t sl_data_stats_get_rows(const struct sl_data_stats *stats); /* real steps */
int64_t sl_data_stats_get_sequences(const struct sl_data_stats *stats);
int64_t sl_data_stats_get_longest(const struct sl_data_stats *stats);
int64_t sl_data_stats_get_shortest(const struct sl_data_stats *stats);
double sl_data_stats_get_mean(const struct sl_data_stats *stats);
/* The length that a share of the records (0 .. 1) does not exceed; 0.5 is the median. */
int64_t sl_data_stats_get_quantile(const struct sl_data_stats *stats, double share);
int64_t sl_data_stats_get_vocabulary(const struct sl_data_stats *stats); /* 0: no text */
int64_t sl_data_stats_get_classes(const struct sl_data_stats *stats);    /* 0: no classes */

/* At most 20 bins of equal width that cover all lengths. Borrowed. */
const struct sl_length_bin *sl_data_stats_get_bins(const struct sl_data_stats *stats, int *out_count);
const struct sl_batching_cost *sl_data_stats_get_costs(const struct sl_data_stats *stats, int *out_count);

#endif
