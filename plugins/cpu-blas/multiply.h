/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in a part of a call, in the way that the operation uses: float32 (gemm.h), or tiles
 * (tiles/tiles_gemm.h). */
#ifndef BLAS_MULTIPLY_H
#define BLAS_MULTIPLY_H

#include "cpu-blas/plugin.h"

/* The name of the variant that computes float32 products on tiles, or NULL if there is none. It does not depend on
 * the number of rows, since a plan is also used with other batches; products of few rows still use vectors. [any] */
const char *blas_multiply_tiles(const struct seqlstm_desc *desc, bool tiles);

/* Chooses how `op` multiplies, by its descriptor and variant. UNSUPPORTED if it needs tiles and the system refuses
 * them. */
seqlstm_status blas_multiply_choose(struct seqlstm_op *op, struct seqlstm_error *err);

/* Bytes of the workspace for the tiles of all parts; 0 without tiles. */
uint64_t blas_multiply_bytes(const struct seqlstm_op *op);

/* Like blas_gemm. Parts are numbered from 0; there is at most one for each member. */
void blas_multiply(const struct blas_call *call, int32_t part, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

#endif
