/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of a part of a call, as its operation multiplies: in float32 (gemm.h) or on tiles
 * (tiles/tiles_gemm.h). */
#ifndef BLAS_MULTIPLY_H
#define BLAS_MULTIPLY_H

#include "cpu-blas/plugin.h"

/* The variant of the operation in float32 where there are tiles, or NULL: there is none. Whatever its rows, since a
 * plan is followed with other batches, too; products of few rows stay on vectors. [any] */
const char *blas_multiply_tiles(const struct seqlstm_desc *desc, bool tiles);

/* How `op` multiplies, by its descriptor and variant. UNSUPPORTED: on tiles, which the system refuses. */
seqlstm_status blas_multiply_choose(struct seqlstm_op *op, struct seqlstm_error *err);

/* Bytes of the workspace that tiles of all parts take; 0 without tiles. */
uint64_t blas_multiply_bytes(const struct seqlstm_op *op);

/* As blas_gemm. Parts are numbered from 0, one for each member at most. */
void blas_multiply(const struct blas_call *call, int32_t part, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

#endif
