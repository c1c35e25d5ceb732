/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on one thread: row-major, of any size, without the special cases of sgemm. */
#ifndef BLAS_GEMM_H
#define BLAS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu-blas/rowmath/rowmath.h"

/* C [m, n] = op(A) [m, k] op(B) [k, n] + beta C. With `ta` A is stored [k, m], with `tb` B is stored [n, k].
 * beta is 0 (C is not read) or 1. Sizes and leading dimensions are below 2^31 (supports.c). [any] */
void blas_gemm(const struct blas_rowmath *math, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
               int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

#endif
