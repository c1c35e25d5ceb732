/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are orthonormal to a few roundings, and what they were made of is a triangular mix of them; a row without
 * anything of its own becomes zero. Sizes on both sides of a panel, odd ones, wide and square. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <seqlstm/philox.h>

#include "exec/params/orthonormal.h"
#include "oom.h"

static double *draw(int64_t rows, int64_t columns)
{
    double *m = malloc((size_t)(rows * columns) * sizeof *m);
    for (int64_t e = 0; e < rows * columns; e++)
        m[e] = seqlstm_uniform(42, (uint64_t)e, 0, 0) - 0.5;
    return m;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* A sum of n products of numbers of length 1, once in the making and once here. */
static double tolerance(int64_t columns)
{
    return 4 * (double)columns * DBL_EPSILON;
}

static void check_orthonormal(const double *m, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j <= i; j++) {
            double product = dot(m + i * columns, m + j * columns, columns);
            if (!(fabs(product - (i == j)) <= tolerance(columns)))
                fail_msg("%lld x %lld: rows %lld and %lld: %g", (long long)rows, (long long)columns, (long long)i,
                         (long long)j, product);
        }
}

/* Row i of `given` lies in the rows 0 .. i, and on the positive side of row i. */
static void check_span(const double *given, const double *m, int64_t i, int64_t columns)
{
    double *rest = malloc((size_t)columns * sizeof *rest);
    memcpy(rest, given + i * columns, (size_t)columns * sizeof *rest);
    double length = sqrt(dot(rest, rest, columns)), own = 0;
    for (int64_t j = 0; j <= i; j++) {
        own = dot(rest, m + j * columns, columns);
        for (int64_t k = 0; k < columns; k++)
            rest[k] -= own * m[j * columns + k];
    }
    assert_true(own > 0);
    assert_true(sqrt(dot(rest, rest, columns)) <= tolerance(columns) * length);
    free(rest);
}

static void test_rows_are_orthonormal(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},     {2, 3},     {7, 7},     {256, 256}, {257, 257},
                                       {259, 600}, {300, 301}, {511, 513}, {513, 513}, {640, 1030}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t rows = sizes[s][0], columns = sizes[s][1];
        double *given = draw(rows, columns), *m = draw(rows, columns);
        assert_true(sl_orthonormalize(m, rows, columns));
        check_orthonormal(m, rows, columns);
        for (int64_t i = 0; i < rows; i += i < rows - 3 ? 1 + rows / 8 : 1)
            check_span(given, m, i, columns);
        free(given);
        free(m);
    }
}

/* What is left of the sum of two rows without these is rounding alone: whatever it is made into stays orthogonal or
 * nothing, and a row of zeros becomes none of the others. */
static void test_rows_without_anything_of_their_own(void **state)
{
    (void)state;
    enum { ROWS = 270, COLUMNS = 300 };
    double *m = draw(ROWS, COLUMNS);
    memset(m + 3 * COLUMNS, 0, COLUMNS * sizeof *m);
    memset(m + 265 * COLUMNS, 0, COLUMNS * sizeof *m);
    assert_true(sl_orthonormalize(m, ROWS, COLUMNS));
    for (int64_t i = 0; i < ROWS; i++) {
        double length = sqrt(dot(m + i * COLUMNS, m + i * COLUMNS, COLUMNS));
        assert_true(i == 3 || i == 265 ? length == 0 : fabs(length - 1) <= tolerance(COLUMNS));
    }
    free(m);
}

/* Rows that are nearly the same, `from` on: what the first pass leaves has the rounding of all that went. */
static void check_nearly_dependent(int64_t from)
{
    enum { ROWS = 520, COLUMNS = 521 };
    double *m = draw(ROWS, COLUMNS);
    for (int64_t i = from + 1; i < ROWS; i++)
        for (int64_t k = 0; k < COLUMNS; k++)
            m[i * COLUMNS + k] = m[from * COLUMNS + k] + 1e-9 * m[i * COLUMNS + k];
    assert_true(sl_orthonormalize(m, ROWS, COLUMNS));
    check_orthonormal(m, ROWS, COLUMNS);
    free(m);
}

static void test_nearly_dependent_rows(void **state)
{
    (void)state;
    check_nearly_dependent(0);
    check_nearly_dependent(300); /* a panel whose own rows are */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_are_orthonormal),
                                       cmocka_unit_test(test_rows_without_anything_of_their_own),
                                       cmocka_unit_test(test_nearly_dependent_rows)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
