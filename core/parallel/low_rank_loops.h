/* SPDX-License-Identifier: Apache-2.0 */
/* The passes of low_rank.c over a whole matrix. All arrays are row-major, without gaps.
 *
 * `replace` gives the same bits on every processor, since each rank makes its own gradients of factors that are the
 * same on all. */
#ifndef SL_PARALLEL_LOW_RANK_LOOPS_H
#define SL_PARALLEL_LOW_RANK_LOOPS_H

#include <stdint.h>

struct sl_low_rank_shape {
    int64_t rows, columns, rank;
};

/* values += error; p = values q^T.  values, error [rows, columns]; p [rank, rows]; q [rank, columns] */
void sl_low_rank_multiply(const struct sl_low_rank_shape *shape, float *values, const float *error, const float *q,
                          float *p);

/* own = p values.  own [rank, columns] */
void sl_low_rank_multiply_transposed(const struct sl_low_rank_shape *shape, const float *values, const float *p,
                                     float *own);

/* error = values - p^T own; values = p^T q */
void sl_low_rank_replace(const struct sl_low_rank_shape *shape, float *values, float *error, const float *p,
                         const float *own, const float *q);

#endif
