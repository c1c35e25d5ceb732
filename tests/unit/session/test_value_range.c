/* SPDX-License-Identifier: Apache-2.0 */
/* The range of int8: quantiles of a histogram, and what a rule makes of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session/evaluate/calibration.h"

#define ASSERT_NEAR(got, want, tolerance)                                                                              \
    do {                                                                                                               \
        double got_ = (got), want_ = (want);                                                                           \
        if (!(fabs(got_ - want_) <= (tolerance)))                                                                      \
            fail_msg("line %d: %.9g, expected %.9g", __LINE__, got_, want_);                                           \
    } while (0)

/* -500 .. 499 in steps of one, and one value far out at either end. */
static struct sl_value_histogram *make_histogram(void)
{
    struct sl_value_histogram *h = calloc(1, sizeof *h);
    assert_non_null(h);
    for (int i = 0; i < 1000; i++) {
        const float value = (float)((i * 377) % 1000 - 500);
        sl_value_histogram_add(h, &value, 1);
    }
    const float far[] = {-30000, 90000, NAN, INFINITY, -INFINITY};
    sl_value_histogram_add(h, far, 5);
    return h;
}

static void quantiles(void **state)
{
    (void)state;
    struct sl_value_histogram *h = make_histogram();
    double low, high;
    assert_int_equal(h->total, 1002);
    assert_int_equal(h->strange, 3);
    assert_true(sl_value_histogram_find_range(h, 0, &low, &high));
    ASSERT_NEAR(low, -30000, 0);
    ASSERT_NEAR(high, 90000, 0);
    assert_true(sl_value_histogram_find_range(h, 1e-3, &low, &high));
    ASSERT_NEAR(low, -500, 5);
    ASSERT_NEAR(high, 499, 5);
    assert_true(sl_value_histogram_find_range(h, 0.25, &low, &high));
    ASSERT_NEAR(low, -250, 3);
    ASSERT_NEAR(high, 250, 3);
    assert_true(low <= -250 + 1 && high >= 248); /* edges lie outwards: nothing wanted is lost */
    struct sl_value_histogram *none = calloc(1, sizeof *none);
    assert_false(sl_value_histogram_find_range(none, 0, &low, &high));
    const float one = -2.5f;
    sl_value_histogram_add(none, &one, 1);
    assert_true(sl_value_histogram_find_range(none, 0.5, &low, &high));
    assert_true(low == -2.5 && high == -2.5);
    free(none);
    free(h);
}

static void rules(void **state)
{
    (void)state;
    struct sl_value_histogram *x = calloc(1, sizeof *x), *h = calloc(1, sizeof *h);
    const float inputs[] = {1, 3}, states[] = {-0.25f, 0.75f};
    sl_value_histogram_add(x, inputs, 2);
    struct sl_layer_values layer = {.name = "lstm_1", .x = x, .h = h, .is_bounded = true};
    double low, high;
    /* h is not seen, but bounded; zero and the margin belong to the range */
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 1}, &low, &high));
    assert_true(low == -1 && high == 3);
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 2}, &low, &high));
    assert_true(low == -1 && high == 4);
    /* h is seen: its margin ends at one where it is bounded */
    sl_value_histogram_add(h, states, 2);
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 1}, &low, &high));
    assert_true(low == -0.25 && high == 3);
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 6}, &low, &high));
    assert_true(low == -4 && high == 8);
    layer.x = h;
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 1.5}, &low, &high));
    assert_true(low == -0.5 && high == 1);
    layer.is_bounded = false;
    layer.x = x;
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 4}, &low, &high));
    assert_true(low == -2 && high == 6);
    const float positive[] = {0.25f, 0.75f}; /* zero belongs to the range all the same */
    *h = (struct sl_value_histogram){.total = 0};
    sl_value_histogram_add(h, positive, 2);
    assert_true(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 1}, &low, &high));
    assert_true(low >= 0 && low <= 0 && high == 3);
    *h = (struct sl_value_histogram){.total = 0};
    assert_false(sl_layer_values_find_range(&layer, &(struct sl_range_rule){0, 1}, &low, &high));
    free(x);
    free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(quantiles), cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
