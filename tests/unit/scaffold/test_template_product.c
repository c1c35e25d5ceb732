/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product of the template of a backend against sums in float64: sizes that do not divide, more depth than a
 * panel has, rows that are longer than what is used of them, both matrices transposed or not, and C kept or added to.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "scaffold/templates/backend/gemm.h"
#include "oom.h"

enum { ROWS = 9, COLUMNS = 37, BEHIND = 3 };

static int64_t blocks_most; /* of a member */

/* Members take their parts in another order, which must not matter. */
static void run_parts(struct seqlstm_queue *queue, int64_t count, int64_t grain,
                      void (*fn)(void *argument, int64_t begin, int64_t end), void *argument)
{
    (void)queue, (void)grain;
    for (int64_t end = count; end > 0; end -= end < blocks_most ? end : blocks_most)
        fn(argument, end > blocks_most ? end - blocks_most : 0, end);
}

static void fill(float *numbers, int64_t count, int64_t seed)
{
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)((i * 37 + seed * 11) % 101 - 50) / 64;
}

static void check_product(int64_t m, int64_t n, int64_t k, int kinds)
{
    static const struct seqlstm_queue_services services = {.struct_size = sizeof services, .parallel_for = run_parts};
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 2, .services = &services};
    const int32_t ta = kinds & 1, tb = kinds >> 1 & 1, add = kinds >> 2 & 1;
    const int64_t lda = (ta ? m : k) + BEHIND, ldb = (tb ? k : n) + 2 * BEHIND, ldc = n + 1;
    const int64_t elems_a = (ta ? k : m) * lda, elems_b = (tb ? n : k) * ldb;
    float *a = malloc((size_t)elems_a * sizeof *a), *b = malloc((size_t)elems_b * sizeof *b);
    float *c = malloc((size_t)(m * ldc) * sizeof *c), *before = malloc((size_t)(m * ldc) * sizeof *before);
    fill(a, elems_a, 1);
    fill(b, elems_b, 2);
    fill(before, m * ldc, 3);
    memcpy(c, before, (size_t)(m * ldc) * sizeof *c);
    const struct seqlstm_prim_gemm gemm = {m, n, k, a, b, c, lda, ldb, ldc, ta, tb, add};
    gemm_run(&queue, &gemm);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < ldc; j++) {
            double sum = add ? (double)before[i * ldc + j] : 0, size = fabs(sum);
            for (int64_t p = 0; j < n && p < k; p++) {
                const double term =
                    (double)a[ta ? p * lda + i : i * lda + p] * (double)b[tb ? j * ldb + p : p * ldb + j];
                sum += term;
                size += fabs(term);
            }
            if (j == n)
                sum = (double)before[i * ldc + j]; /* behind a row: untouched */
            if (!(fabs((double)c[i * ldc + j] - sum) <= 0x1p-24 * (double)(k + 1) * size))
                fail_msg("%dx%dx%d of kind %d: C[%d, %d] is %g, expected %g", (int)m, (int)n, (int)k, kinds, (int)i,
                         (int)j, (double)c[i * ldc + j], sum);
        }
    free(a);
    free(b);
    free(c);
    free(before);
}

static void products_are_those_of_plain_sums(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {4, 16, 256},         {ROWS, COLUMNS, 5},
                                       {3, 17, 257}, {ROWS, COLUMNS, 600}, {5, 15, 512}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int kinds = 0; kinds < 8; kinds++)
            for (blocks_most = 1; blocks_most <= 3; blocks_most += 2)
                check_product(sizes[s][0], sizes[s][1], sizes[s][2], kinds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_those_of_plain_sums)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
