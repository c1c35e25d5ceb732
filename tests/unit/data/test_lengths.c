/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths come out ascending, none lost, whether they are counted or compared; what is read off them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "data/dataset/lengths.h"

static int ascending(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static void check_sorting(int64_t count, int32_t longest)
{
    int32_t *lengths = malloc(((size_t)count + 1) * sizeof *lengths);
    int32_t *expected = malloc(((size_t)count + 1) * sizeof *expected);
    uint32_t word = 12345;
    for (int64_t i = 0; i < count; i++) {
        word = word * 1664525u + 1013904223u;
        lengths[i] = expected[i] = (int32_t)((word >> 8) % ((uint32_t)longest + 1));
    }
    if (count > 2)
        lengths[count / 2] = expected[count / 2] = longest;
    qsort(expected, (size_t)count, sizeof *expected, ascending);
    assert_int_equal(sl_lengths_sort(lengths, count, NULL), SEQLSTM_OK);
    assert_memory_equal(lengths, expected, (size_t)count * sizeof *lengths);
    free(lengths);
    free(expected);
}

static void test_sorting(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 100, 1000};
    static const int32_t longest[] = {0, 1, 2, 99, 100, 101, 5000, 2000000000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t l = 0; l < sizeof longest / sizeof *longest; l++)
            check_sorting(counts[c], longest[l]);
}

static void test_what_is_read_off(void **state)
{
    (void)state;
    static const int32_t given[] = {7, 0, 3, 3, 12};
    struct sl_lengths lengths;
    assert_int_equal(sl_lengths_init(&lengths, given, 5, NULL), SEQLSTM_OK);
    assert_int_equal(lengths.rows, 25);
    assert_int_equal(sl_lengths_get_shortest(&lengths), 0);
    assert_int_equal(sl_lengths_get_longest(&lengths), 12);
    assert_int_equal(sl_lengths_get_quantile(&lengths, 0.5), 3);
    static const struct {
        double share;
        int length;
    } quantiles[] = {{0, 0}, {0.1, 0}, {0.2, 0}, {0.3, 3}, {0.4, 3}, {0.6, 3}, {0.7, 7}, {0.8, 7}, {0.9, 12}, {1, 12}};
    for (size_t k = 0; k < sizeof quantiles / sizeof *quantiles; k++)
        assert_int_equal(sl_lengths_get_quantile(&lengths, quantiles[k].share), quantiles[k].length);
    static const int counts[][3] = {{3, 7, 3}, {3, 3, 2}, {0, 0, 1}, {12, 12, 1}, {4, 4, 0}, {4, 3, 0}, {0, 12, 5}};
    for (int k = 0; k < 7; k++)
        assert_int_equal(sl_lengths_count(&lengths, counts[k][0], counts[k][1]), counts[k][2]);
    assert_true(sl_lengths_get_mean(&lengths) == 5.0);
    sl_lengths_deinit(&lengths);
}

/* However far the lengths are apart, each is in one of the ranges, which touch, and there are not too many of them. */
static void test_ranges(void **state)
{
    (void)state;
    static const int apart[] = {0,
                                1,
                                SL_LENGTH_BINS_MOST - 1,
                                SL_LENGTH_BINS_MOST,
                                SL_LENGTH_BINS_MOST + 1,
                                2 * SL_LENGTH_BINS_MOST,
                                3 * SL_LENGTH_BINS_MOST - 1};
    for (size_t k = 0; k < sizeof apart / sizeof *apart; k++) {
        const int32_t given[] = {5 + apart[k], 5, 5 + apart[k] / 2};
        struct sl_lengths lengths;
        int64_t records = 0;
        assert_int_equal(sl_lengths_init(&lengths, given, 3, NULL), SEQLSTM_OK);
        assert_in_range(lengths.bin_count, 1, SL_LENGTH_BINS_MOST);
        assert_int_equal(lengths.bins[0].first, 5);
        assert_true(lengths.bins[lengths.bin_count - 1].last >= 5 + apart[k]);
        for (int b = 0; b < lengths.bin_count; b++) {
            assert_true(b == 0 || lengths.bins[b].first == lengths.bins[b - 1].last + 1);
            assert_int_equal(lengths.bins[b].records,
                             sl_lengths_count(&lengths, lengths.bins[b].first, lengths.bins[b].last));
            records += lengths.bins[b].records;
        }
        assert_int_equal(records, 3);
        sl_lengths_deinit(&lengths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sorting), cmocka_unit_test(test_what_is_read_off),
                                       cmocka_unit_test(test_ranges)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
