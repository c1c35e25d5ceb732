/* SPDX-License-Identifier: Apache-2.0 */
/* Factors of low rank in place of a matrix, on one rank: what they keep, what they miss, and that nothing is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "parallel/low_rank.h"
#include "parallel/low_rank_loops.h"
#include "oom.h"

enum { ROWS = 12, COLUMNS = 9, ELEMS = ROWS * COLUMNS, RANK = 2 };

static float draw(uint64_t number, int64_t i)
{
    return (float)(int32_t)(seqlstm_mix64(9, number, (uint64_t)i) >> 32) * 0x1p-31f;
}

static struct sl_low_rank *make(void)
{
    struct sl_low_rank *m = NULL;
    assert_int_equal(sl_low_rank_create(ROWS, COLUMNS, RANK, 7, &m, NULL), SEQLSTM_OK);
    return m;
}

/* As the only rank. */
static void add_alone(struct sl_low_rank *m, float *values, float *error)
{
    sl_low_rank_begin(m, values, error);
    sl_low_rank_turn(m, values);
    sl_low_rank_end(m, values, error);
}

static void assert_near(const float *a, const float *b, float most)
{
    for (int64_t i = 0; i < ELEMS; i++)
        assert_true(fabsf(a[i] - b[i]) <= most);
}

/* A matrix of that rank is exchanged without loss. */
static void what_has_low_rank_is_kept(void **state)
{
    (void)state;
    struct sl_low_rank *m = make();
    float values[ELEMS], before[ELEMS], error[ELEMS] = {0}, none[ELEMS] = {0};
    for (int64_t i = 0; i < ELEMS; i++)
        values[i] = before[i] =
            draw(1, i / COLUMNS) * draw(2, i % COLUMNS) + draw(3, i / COLUMNS) * draw(4, i % COLUMNS);
    add_alone(m, values, error);
    assert_near(values, before, 1e-5f);
    assert_near(error, none, 1e-5f);
    sl_low_rank_destroy(m);
}

/* Without the error, the factors of one matrix become its best approximation: that of the largest singular values. */
static void factors_find_the_largest_singular_values(void **state)
{
    (void)state;
    struct sl_low_rank *m = make();
    float values[ELEMS], best[ELEMS] = {0};
    best[0] = 10;
    best[COLUMNS + 1] = -5;
    for (int u = 0; u < 20; u++) {
        float error[ELEMS] = {0};
        memset(values, 0, sizeof values);
        for (int k = 0; k < COLUMNS; k++)
            values[k * COLUMNS + k] = k == 0 ? 10 : k == 1 ? -5 : 1.0f / (float)k;
        add_alone(m, values, error);
    }
    assert_near(values, best, 1e-4f);
    sl_low_rank_destroy(m);
}

/* All results and the last error are all that was given, and the error does not grow. */
static void nothing_is_lost(void **state)
{
    (void)state;
    enum { UPDATES = 200 };
    struct sl_low_rank *m = make();
    double given[ELEMS] = {0}, got[ELEMS] = {0};
    float error[ELEMS] = {0};
    for (int u = 0; u < UPDATES; u++) {
        float values[ELEMS];
        for (int64_t i = 0; i < ELEMS; i++) {
            values[i] = draw(5, i) + (u % 3 == 0 ? draw((uint64_t)u + 10, i) : 0);
            given[i] += (double)values[i];
        }
        add_alone(m, values, error);
        for (int64_t i = 0; i < ELEMS; i++)
            got[i] += (double)values[i];
    }
    for (int64_t i = 0; i < ELEMS; i++) {
        assert_true(fabs(got[i] + (double)error[i] - given[i]) <= 1e-3);
        assert_true(fabsf(error[i]) < 20);
    }
    sl_low_rank_destroy(m);
}

/* A gradient of zeros, or one that is not finite, leaves factors that work. */
static void zeros_and_nan_do_no_harm(void **state)
{
    (void)state;
    struct sl_low_rank *m = make();
    float values[ELEMS], error[ELEMS], before[ELEMS];
    for (int u = 0; u < 2; u++) {
        for (int64_t i = 0; i < ELEMS; i++)
            error[i] = before[i] = u == 0 ? 0 : draw(6, i);
        memset(values, 0, sizeof values);
        values[5] = u == 0 ? 0 : NAN;
        add_alone(m, values, error);
        assert_memory_equal(error, before, sizeof error);
        assert_true(u == 0 ? values[5] == 0 : isnan(values[0]));
        memset(error, 0, sizeof error);
        for (int64_t i = 0; i < ELEMS; i++)
            values[i] = before[i] = draw(7, i / COLUMNS) * draw(8, i % COLUMNS);
        add_alone(m, values, error);
        assert_near(values, before, 1e-5f);
    }
    sl_low_rank_destroy(m);
}

/* The sum of a factor may overflow on another rank, or be its NaN: the update is left out, and nothing of it stays. */
static void factors_that_are_not_finite_do_no_harm(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int64_t which = 0; which < 6; which++) {
        struct sl_low_rank *m = make();
        float values[ELEMS], error[ELEMS], before[ELEMS];
        int64_t elems;
        for (int64_t i = 0; i < ELEMS; i++) {
            values[i] = draw(5, i);
            error[i] = before[i] = draw(6, i);
        }
        sl_low_rank_begin(m, values, error);
        float *p = sl_low_rank_get_p(m, &elems);
        assert_int_equal(elems, ROWS * RANK);
        if (which < 3)
            p[elems - 1] = bad[which];
        sl_low_rank_turn(m, values);
        float *q = sl_low_rank_get_q(m, &elems);
        assert_int_equal(elems, COLUMNS * RANK);
        if (which >= 3)
            q[elems - 1] = bad[which - 3];
        sl_low_rank_end(m, values, error);
        assert_memory_equal(error, before, sizeof error);
        for (int64_t i = 0; i < ELEMS; i++)
            assert_true(isnan(values[i]));
        memset(error, 0, sizeof error);
        for (int64_t i = 0; i < ELEMS; i++)
            values[i] = before[i] = draw(7, i / COLUMNS) * draw(8, i % COLUMNS);
        add_alone(m, values, error);
        assert_near(values, before, 1e-5f);
        sl_low_rank_destroy(m);
    }
}

/* Rows and columns that are no multiples of what is computed at once: of low rank, and of none. */
static void all_shapes_are_computed(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{45, 41}, {7, 16}, {3, 70}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct sl_low_rank *m = NULL;
        float values[45 * 41], before[45 * 41], error[45 * 41] = {0};
        const int64_t rows = shapes[s][0], columns = shapes[s][1];
        assert_int_equal(sl_low_rank_create(rows, columns, RANK, 7, &m, NULL), SEQLSTM_OK);
        for (int64_t i = 0; i < rows * columns; i++)
            values[i] = before[i] =
                draw(1, i / columns) * draw(2, i % columns) + draw(3, i / columns) * draw(4, i % columns);
        add_alone(m, values, error);
        for (int64_t i = 0; i < rows * columns; i++)
            assert_true(fabsf(values[i] - before[i]) <= 1e-5f && fabsf(error[i]) <= 1e-5f);
        for (int64_t i = 0; i < rows * columns; i++)
            values[i] = before[i] = draw(5, i);
        add_alone(m, values, error);
        for (int64_t i = 0; i < rows * columns; i++)
            assert_true(fabsf(values[i] + error[i] - before[i]) <= 2e-5f);
        sl_low_rank_destroy(m);
    }
}

static void only_large_matrices_pay(void **state)
{
    (void)state;
    assert_true(sl_low_rank_pays(800, 200, 4));
    assert_false(sl_low_rank_pays(800, 1, 1));
    assert_false(sl_low_rank_pays(16, 16, 4));
}

/* More columns than a block has, and a rank that is no multiple of what is multiplied at once. */
enum { WIDE = 523, TALL = 7, MORE_RANKS = 5 };
static const struct sl_low_rank_shape wide = {TALL, WIDE, MORE_RANKS};

static void draw_all(float *out, int64_t count, uint64_t number)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = draw(number, i);
}

static void blocks_of_columns_give_the_products(void **state)
{
    (void)state;
    static float values[TALL * WIDE], error[TALL * WIDE], q[MORE_RANKS * WIDE], p[MORE_RANKS * TALL];
    static float sum[TALL * WIDE], own[MORE_RANKS * WIDE];
    draw_all(values, TALL * WIDE, 1);
    draw_all(error, TALL * WIDE, 2);
    draw_all(q, MORE_RANKS * WIDE, 3);
    for (int64_t i = 0; i < TALL * WIDE; i++)
        sum[i] = values[i] + error[i];
    sl_low_rank_multiply(&wide, values, error, q, p);
    assert_memory_equal(values, sum, sizeof sum);
    sl_low_rank_multiply_transposed(&wide, values, p, own);
    for (int64_t k = 0; k < MORE_RANKS; k++) {
        for (int64_t i = 0; i < TALL; i++) {
            double expected = 0;
            for (int64_t j = 0; j < WIDE; j++)
                expected += (double)sum[i * WIDE + j] * (double)q[k * WIDE + j];
            assert_true(fabs((double)p[k * TALL + i] - expected) < 1e-4);
        }
        for (int64_t j = 0; j < WIDE; j++) {
            double expected = 0;
            for (int64_t i = 0; i < TALL; i++)
                expected += (double)sum[i * WIDE + j] * (double)p[k * TALL + i];
            assert_true(fabs((double)own[k * WIDE + j] - expected) < 1e-4);
        }
    }
}

/* All ranks make the same gradient of the same factors: the order of additions is that of the factors. */
static void replacing_adds_in_the_order_of_the_factors(void **state)
{
    (void)state;
    static float values[TALL * WIDE], before[TALL * WIDE], error[TALL * WIDE];
    static float p[MORE_RANKS * TALL], q[MORE_RANKS * WIDE], own[MORE_RANKS * WIDE];
    draw_all(before, TALL * WIDE, 1);
    draw_all(p, MORE_RANKS * TALL, 2);
    draw_all(q, MORE_RANKS * WIDE, 3);
    draw_all(own, MORE_RANKS * WIDE, 4);
    memcpy(values, before, sizeof values);
    sl_low_rank_replace(&wide, values, error, p, own, q);
    for (int64_t i = 0; i < TALL; i++)
        for (int64_t j = 0; j < WIDE; j++) {
            float kept = 0, sum = 0;
            for (int64_t k = 0; k < MORE_RANKS; k++) {
                kept += own[k * WIDE + j] * p[k * TALL + i];
                sum += q[k * WIDE + j] * p[k * TALL + i];
            }
            const float missed = before[i * WIDE + j] - kept;
            assert_memory_equal(&values[i * WIDE + j], &sum, sizeof sum);
            assert_memory_equal(&error[i * WIDE + j], &missed, sizeof missed);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_low_rank_is_kept),
        cmocka_unit_test(factors_find_the_largest_singular_values),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(zeros_and_nan_do_no_harm),
        cmocka_unit_test(factors_that_are_not_finite_do_no_harm),
        cmocka_unit_test(all_shapes_are_computed),
        cmocka_unit_test(only_large_matrices_pay),
        cmocka_unit_test(blocks_of_columns_give_the_products),
        cmocka_unit_test(replacing_adds_in_the_order_of_the_factors),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
