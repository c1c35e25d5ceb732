/* SPDX-License-Identifier: Apache-2.0 */
/* How long the records of one side of the data are: sorted lengths, and figures from them. */
#ifndef SL_DATA_DATASET_LENGTHS_H
#define SL_DATA_DATASET_LENGTHS_H

#include <stdint.h>

#include <seqlstm/status.h>

enum { SL_LENGTH_BINS_MOST = 20 };

struct sl_length_bin {
    int64_t first; /* both ends included */
    int64_t last;
    int64_t records;
};

struct sl_lengths {
    int64_t records, rows;                          /* rows: their sum, real steps */
    int32_t *sorted;                                /* [records] ascending */
    struct sl_length_bin bins[SL_LENGTH_BINS_MOST]; /* of equal width, over all lengths */
    int bin_count;
};

/* Ascending, in place, in linear time where there are more of them than steps in the longest. Errors: NO_MEMORY. */
seqlstm_status sl_lengths_sort(int32_t *lengths, int64_t count, struct seqlstm_error *err);

/* Copies the lengths. *out is freed with deinit, which zeroed ones allow too. Errors: NO_MEMORY. */
seqlstm_status sl_lengths_init(struct sl_lengths *out, const int32_t *lengths, int64_t records,
                               struct seqlstm_error *err);
void sl_lengths_deinit(struct sl_lengths *lengths);

/* 0 where there are no records, as the mean is. */
int64_t sl_lengths_get_longest(const struct sl_lengths *lengths);
int64_t sl_lengths_get_shortest(const struct sl_lengths *lengths);
double sl_lengths_get_mean(const struct sl_lengths *lengths);
/* The length that a share of the records (0 .. 1) does not exceed; 0.5 is the median. */
int64_t sl_lengths_get_quantile(const struct sl_lengths *lengths, double share);
/* Records whose length is from `first` to `last`. */
int64_t sl_lengths_count(const struct sl_lengths *lengths, int64_t first, int64_t last);

#endif
