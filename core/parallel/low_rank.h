/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a matrix over all ranks, exchanged as two factors of low rank (PowerSGD; Vogels, Karimireddy and Jaggi,
 * NeurIPS 2019). What the factors miss is kept by each rank and added to its next matrix, so that nothing is lost:
 *
 *   M_w = gradient of rank w + its error            the same Q on all ranks, of the last update
 *   P   = orthonormal columns of  sum_w M_w Q
 *   Q_w = M_w^T P,  Q = sum_w Q_w                   the result: P Q^T
 *   error of rank w = M_w - P Q_w^T
 */
#ifndef SL_PARALLEL_LOW_RANK_H
#define SL_PARALLEL_LOW_RANK_H

#include "parallel/ranks.h"

struct sl_low_rank;

/* Is less exchanged for a matrix of this shape? */
bool sl_low_rank_pays(int64_t rows, int64_t columns, int64_t rank);

/* `number` tells matrices of the same shape apart: it is the same on all ranks. NO_MEMORY. */
seqlstm_status sl_low_rank_create(int64_t rows, int64_t columns, int64_t rank, uint64_t number,
                                  struct sl_low_rank **out_matrix, struct seqlstm_error *err);
void sl_low_rank_destroy(struct sl_low_rank *matrix);

/* Three calls, between which the ranks add what `get_p` and then what `get_q` returns, in place. `values` [rows,
 * columns] of this rank become the sum of all; `error` [rows, columns] of this rank is used and renewed. Where a sum is
 * not finite the values become NaN and the error stays. */
void sl_low_rank_begin(struct sl_low_rank *matrix, float *values, const float *error);
void sl_low_rank_turn(struct sl_low_rank *matrix, const float *values);
void sl_low_rank_end(struct sl_low_rank *matrix, float *values, float *error);
float *sl_low_rank_get_p(struct sl_low_rank *matrix, int64_t *out_elems);
float *sl_low_rank_get_q(struct sl_low_rank *matrix, int64_t *out_elems);

/* Elements of the larger factor. */
int64_t sl_low_rank_count_most(const struct sl_low_rank *matrix);

#endif
