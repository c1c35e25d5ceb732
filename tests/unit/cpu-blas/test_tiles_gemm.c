/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on tiles (plugins/cpu-blas/tiles/tiles_gemm.h) of every layout and many sizes: against float64 within
 * the bound of test_bf16_split.c, in the middle of NaN that none of them may read or overwrite; on the processor's
 * tiles, if it has any, bit for bit as in portable C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu-blas/isa/isa.h"
#include "cpu-blas/tiles/tiles_gemm.h"

enum { MARGIN = 40 }; /* floats before, behind and between rows, all NaN */

struct shape {
    int64_t m, n, k;
    bool ta, tb, add;
    int32_t parts;
};

/* rows x columns numbers of [-1, 1) among NaN: element (r, c) is at[r * row + c]. */
struct matrix {
    float *floats, *at;
    int64_t rows, columns, row;
};

static struct matrix matrix_make(int64_t rows, int64_t columns, uint64_t seed)
{
    struct matrix x = {.rows = rows, .columns = columns, .row = columns + MARGIN};
    const int64_t all = rows * x.row + 2 * MARGIN;
    x.floats = malloc((size_t)all * sizeof(float));
    assert_non_null(x.floats);
    for (int64_t i = 0; i < all; i++)
        x.floats[i] = NAN;
    x.at = x.floats + MARGIN;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x.at[r * x.row + c] = (float)((double)(seed >> 11) / 4503599627370496.0 - 1.0);
        }
    return x;
}

/* The numbers that are multiplied, without margins: of one part the nearest ones of 8 bits, of two the even one. */
static double *factors(const struct matrix *x, bool across, int32_t parts)
{
    double *out = calloc((size_t)(x->rows * x->columns), sizeof *out);
    assert_non_null(out);
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t c = 0; c < x->columns; c++) {
            double *to = out + (across ? c * x->rows + r : r * x->columns + c);
            int exponent;
            const double mantissa = frexp((double)x->at[r * x->row + c], &exponent);
            *to = parts > 1 ? (double)x->at[r * x->row + c] : ldexp(nearbyint(mantissa * 256.0), exponent - 8);
        }
    return out;
}

static void expect_product(const struct shape *s, const struct matrix *a, const struct matrix *b,
                           const struct matrix *before, const struct matrix *c)
{
    double *rows = factors(a, s->ta, s->parts), *columns = factors(b, !s->tb, s->parts);
    for (int64_t i = -MARGIN; i < c->rows * c->row + MARGIN; i++) {
        const int64_t r = i < 0 ? -1 : i / c->row, n = i < 0 ? -1 : i % c->row;
        if (r < 0 || r >= c->rows || n >= c->columns) {
            assert_true(isnan(c->at[i]));
            continue;
        }
        double sum = s->add ? (double)before->at[r * before->row + n] : 0.0, size = fabs(sum);
        for (int64_t k = 0; k < s->k; k++) {
            const double product = rows[r * s->k + k] * columns[n * s->k + k];
            sum += product;
            size += fabs(product);
        }
        const double roundings = 16.0 + 2.0 + 6.0 * (double)blas_bf16_blocks(s->k) + (double)(s->k / 320);
        assert_true(fabs((double)c->at[i] - sum) <=
                    (roundings * FLT_EPSILON / 2 + (s->parts == 2 ? 0x3p-16 : 0x1p-23)) * size);
    }
    free(rows);
    free(columns);
}

static void multiply(const struct blas_tile_kernels *kernels, const struct shape *s, const struct matrix *a,
                     const struct matrix *b, const struct matrix *c)
{
    const struct blas_tiled by = {kernels, s->parts};
    uint16_t *scratch = aligned_alloc(64, BLAS_GEMM_SCRATCH);
    assert_non_null(scratch);
    memset(scratch, 0xFF, BLAS_GEMM_SCRATCH);
    const uint32_t saved = blas_flush_denormals_enter();
    blas_tiles_gemm(&by, s->ta, s->tb, s->m, s->n, s->k, a->at, a->row, b->at, b->row, s->add ? 1.0f : 0.0f, c->at,
                    c->row, scratch);
    blas_flush_denormals_leave(saved);
    free(scratch);
}

static void check(const struct shape *s)
{
    const uint64_t seed = (uint64_t)(s->m * 10007 + s->n * 101 + s->k);
    const struct matrix a = matrix_make(s->ta ? s->k : s->m, s->ta ? s->m : s->k, seed);
    const struct matrix b = matrix_make(s->tb ? s->n : s->k, s->tb ? s->k : s->n, seed + 1);
    const struct matrix before = matrix_make(s->m, s->n, seed + 2);
    struct matrix c = matrix_make(s->m, s->n, s->add ? seed + 2 : seed + 3);
    multiply(&blas_bf16_kernels_emulated, s, &a, &b, &c);
    expect_product(s, &a, &b, &before, &c);
    if (blas_bf16_get()) {
        const struct matrix again = matrix_make(s->m, s->n, s->add ? seed + 2 : seed + 3);
        multiply(blas_bf16_get(), s, &a, &b, &again);
        for (int64_t r = 0; r < s->m; r++)
            assert_memory_equal(again.at + r * again.row, c.at + r * c.row, (size_t)s->n * sizeof(float));
        expect_product(s, &a, &b, &before, &again);
        free(again.floats);
    }
    free(a.floats);
    free(b.floats);
    free(before.floats);
    free(c.floats);
}

/* Sizes at and around those of tiles and strips, in every layout. */
static void small_products(void **state)
{
    static const int64_t ms[] = {1, 15, 17, 33, 48}, ns[] = {1, 16, 31, 64, 70, 128}, ks[] = {1, 15, 32, 33, 50};
    (void)state;
    for (int layout = 0; layout < 4; layout++)
        for (size_t i = 0; i < sizeof ms / sizeof *ms; i++)
            for (size_t j = 0; j < sizeof ns / sizeof *ns; j++)
                for (size_t l = 0; l < sizeof ks / sizeof *ks; l++)
                    for (int32_t parts = 1; parts <= BLAS_BF16_PARTS; parts++)
                        check(&(struct shape){ms[i], ns[j], ks[l], layout & 1, layout & 2, (i + j + l) % 2, parts});
}

/* More than one block in each direction. */
static void large_products(void **state)
{
    (void)state;
    for (int layout = 0; layout < 4; layout++)
        check(&(struct shape){267, 530, 521, layout & 1, layout & 2, layout == 2, layout & 1 ? BLAS_BF16_PARTS : 1});
}

/* A sum of nothing is zero, or what was there. */
static void empty_sums(void **state)
{
    (void)state;
    for (int add = 0; add < 2; add++)
        check(&(struct shape){3, 5, 0, false, false, add, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_products),
        cmocka_unit_test(large_products),
        cmocka_unit_test(empty_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
