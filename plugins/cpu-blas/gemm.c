/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of one thread on OpenBLAS. */
#include "gemm.h"

#include <string.h>

#include "openblas.h"

static void clear(int64_t m, int64_t n, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        memset(c + i * ldc, 0, (size_t)n * sizeof *c);
}

void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
               int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (m <= 0 || n <= 0)
        return;
    if (k <= 0) {
        if (beta == 0.0f)
            clear(m, n, c, ldc);
        return;
    }
    if (m == 1) {
        /* c = op(B)' a: a row of A is contiguous, a column (ta) has stride lda */
        if (beta == 0.0f)
            clear(1, n, c, ldc);
        cblas_sgemv(CblasRowMajor, tb ? CblasNoTrans : CblasTrans, (blasint)(tb ? n : k),
                    (blasint)(tb ? k : n), 1.0f, b, (blasint)ldb, a, (blasint)(ta ? lda : 1), 1.0f, c, 1);
        return;
    }
    if (n == 1) {
        if (beta == 0.0f)
            clear(m, 1, c, ldc);
        cblas_sgemv(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, (blasint)(ta ? k : m),
                    (blasint)(ta ? m : k), 1.0f, a, (blasint)lda, b, (blasint)(tb ? 1 : ldb), 1.0f, c,
                    (blasint)ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (blasint)m,
                (blasint)n, (blasint)k, 1.0f, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}
