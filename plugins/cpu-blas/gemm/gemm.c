/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on one thread: the plugin's own kernels for few rows, OpenBLAS for many. */
#include "cpu-blas/gemm/gemm.h"

#include <string.h>

#include "cpu-blas/gemm/openblas.h"

/* Returns true where the plugin's own kernels, which pack nothing, are faster than OpenBLAS. Measured on a Zen 5: up
 * to four times as fast at 8 rows, 10 % at 128. Where OpenBLAS has AVX-512 kernels, it does not pack either for
 * products of up to a million multiply-adds. */
static bool dots_pay(const struct blas_rowmath *math, int64_t m, int64_t n, int64_t k)
{
    if (math->lanes < 16)
        return m <= 16;
    return m <= (k >= 256 ? 64 : 12) && m * n * k > 1000000;
}

static bool rows_pay(const struct blas_rowmath *math, int64_t m, int64_t k)
{
    return math->lanes < 16 ? m <= 4 : m <= 256 || k <= 256;
}

static void clear(int64_t m, int64_t n, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i++)
        memset(c + i * ldc, 0, (size_t)n * sizeof *c);
}

void blas_gemm(const struct blas_rowmath *math, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
               int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    if (m <= 0 || n <= 0)
        return;
    if (k <= 0) {
        if (beta == 0.0f)
            clear(m, n, c, ldc);
        return;
    }
    if (!tb && n > 1 && rows_pay(math, m, k)) {
        math->product_rows(m, n, k, a, ta ? 1 : lda, ta ? lda : 1, b, ldb, beta != 0.0f, c, ldc);
        return;
    }
    if (!ta && tb && n > 1 && dots_pay(math, m, n, k)) {
        math->product_dots(m, n, k, a, lda, b, ldb, beta != 0.0f, c, ldc);
        return;
    }
    if (n == 1) {
        if (beta == 0.0f)
            clear(m, 1, c, ldc);
        cblas_sgemv(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, (blasint)(ta ? k : m), (blasint)(ta ? m : k), 1.0f,
                    a, (blasint)lda, b, (blasint)(tb ? 1 : ldb), 1.0f, c, (blasint)ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, 1.0f, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}
