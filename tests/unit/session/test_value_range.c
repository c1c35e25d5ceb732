/* SPDX-License-Identifier: Apache-2.0 */
/* The range of int8: quantiles of a histogram, and what a rule makes of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "base/value/buf.h"
#include "ok.h"
#include "oom.h"
#include "session/evaluate/calibration.h"
#include "session/evaluate/clipping.h"
#include "session/record/session_record.h"

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
    /* as many as the share are cut off at both ends; what is no number has no say */
    const float ends[] = {NAN, 3.001f, 4, 5, 6.002f}, below[] = {NAN, -3.001f, -6.002f};
    *none = (struct sl_value_histogram){.total = 0};
    sl_value_histogram_add(none, ends, 5);
    assert_true(sl_value_histogram_find_range(none, 0, &low, &high));
    assert_true(low == (double)3.001f && high == (double)6.002f);
    assert_true(sl_value_histogram_find_range(none, 0.25, &low, &high));
    ASSERT_NEAR(low, 4, 0);
    ASSERT_NEAR(high, 5, 0.05);
    *none = (struct sl_value_histogram){.total = 0};
    sl_value_histogram_add(none, below, 3);
    assert_true(sl_value_histogram_find_range(none, 0, &low, &high));
    assert_true(low == (double)-6.002f && high == (double)-3.001f);
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

/* ---- values outside of a range ------------------------------------------------------------------------------ */

static void write_log(void *context, enum sl_log_level level, const char *message)
{
    sl_buf_printf(context, "%s: %s\n", sl_log_level_name(level), message);
}

/* Ranges are those of int8 layers alone; sums are over all layers, and only those that clipped something are named. */
static void clipped_values_are_told(void **state)
{
    struct sl_quantized_layer layers[] = {{.node = "a", .dtype = SEQLSTM_DTYPE_INT8, .scale = 51, .shift = 102},
                                          {.node = "b", .dtype = SEQLSTM_DTYPE_BFLOAT16, .scale = 1},
                                          {.node = "c", .dtype = SEQLSTM_DTYPE_INT8, .scale = 255, .shift = 0}};
    const struct sl_quantization quantization = {.layers = layers, .count = 3};
    struct sl_buf logged = {0};
    const struct sl_log log = {.write = write_log, .context = &logged, .level = SL_LOG_TRACE};
    char folder[] = "runs/m";
    const struct sl_session session = {.folder = folder, .options = {.log = &log}};
    struct sl_clipping clipping;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(sl_clipping_init(&clipping, &quantization, &err), &err);
    assert_int_equal(clipping.count, 2);
    assert_true(clipping.layers[0].low == -2 && clipping.layers[0].high == 3);
    assert_true(clipping.layers[1].low == 0 && clipping.layers[1].high == 1);
    assert_string_equal(clipping.layers[1].node, "c");
    clipping.layers[0].values = 100;
    clipping.layers[1].values = 11;
    clipping.layers[1].clipped = 3;
    clipping.layers[1].lowest = -0.5;
    clipping.layers[1].highest = 1.25;
    const struct sl_clipped sum = sl_clipping_sum(&clipping);
    assert_true(sum.clipped == 3 && sum.values == 111);
    sl_clipping_warn(&clipping, &session);
    assert_string_equal(
        sl_buf_text(&logged),
        "warning: int8 clipped 3 of 11 values of `c`: they reach from -0.5 to 1.25, its range is 0 to 1, so "
        "results may be wrong; without runs/m/quantization.json the run computes in float32\n");
    sl_buf_deinit(&logged);
    clipping.layers[1].clipped = 0;
    clipping.layers[0].clipped = 1; /* one is enough */
    clipping.layers[0].lowest = -2;
    clipping.layers[0].highest = 3.5;
    sl_clipping_warn(&clipping, &session);
    assert_string_equal(
        sl_buf_text(&logged),
        "warning: int8 clipped 1 of 100 values of `a`: they reach from -2 to 3.5, its range is -2 to 3, so "
        "results may be wrong; without runs/m/quantization.json the run computes in float32\n");
    sl_buf_deinit(&logged);
    sl_clipping_deinit(&clipping);
    ok(sl_clipping_init(&clipping, NULL, &err), &err);
    assert_true(clipping.count == 0 && sl_clipping_sum(&clipping).values == 0);
    sl_clipping_deinit(&clipping);
}

/* What a layer gives is its states, unless it merges two directions by arithmetic, or gives the last step alone. */
static void where_states_are_seen(void **state)
{
    static const uint32_t merges[] = {SEQLSTM_KIND_MERGE_CONCAT, SEQLSTM_KIND_MERGE_SUM, SEQLSTM_KIND_MERGE_MUL};
    (void)state;
    for (int both = 0; both < 2; both++)
        for (int m = 0; m < 3; m++)
            for (int gives = 0; gives < 2; gives++) {
                int32_t slots[SEQLSTM_SLOT_RECURRENT_Y + 1] = {0};
                slots[SEQLSTM_SLOT_RECURRENT_Y] = gives ? 5 : -1;
                struct sl_node node = {.slots = slots};
                node.desc.recurrent.direction = both ? SEQLSTM_DIRECTION_BIDIRECTIONAL : SEQLSTM_DIRECTION_FORWARD;
                node.desc.recurrent.merge = merges[m];
                assert_int_equal(sl_node_shows_states(&node), gives && (!both || m == 0));
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(clipped_values_are_told),
                                       cmocka_unit_test(where_states_are_seen), cmocka_unit_test(quantiles),
                                       cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
