/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings with more kernels and more parts than a timeline has room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "timeline/print.h"
#include "timeline_fixture.h"

/* As many as there is room for are kept, and the ten that take longest are shown. */
static void test_many_kernels(void **state)
{
    enum { KERNELS = 520, KEPT = 512, SHOWN = 10 };
    static struct sl_activity kernels[KERNELS];
    static char names[KERNELS][16];
    struct sl_trace trace = make_trace();
    struct sl_buf out = {0};
    (void)state;
    add_updates(&trace);
    trace.tracks[2].activities = kernels;
    for (int k = 0; k < KERNELS; k++) {
        snprintf(names[k], sizeof names[k], "kernel-%d.", k);
        add(&trace.tracks[2], SL_ACTIVITY_DEVICE, names[k], 20, 21 + k % 37, 0);
    }
    struct sl_timeline *timeline = make(&trace, NAN);
    assert_int_equal(timeline->kernel_count, KEPT);
    assert_null(timeline->kernels_missing);
    for (int k = 1; k < KEPT; k++)
        assert_true(timeline->kernels[k - 1].ns >= timeline->kernels[k].ns);
    sl_timeline_print_table(timeline, &out);
    for (int k = 0; k < KEPT; k++) {
        const bool shown = strstr(sl_buf_text(&out), timeline->kernels[k].name) != NULL;
        assert_int_equal(shown, k < SHOWN);
    }
    sl_buf_deinit(&out);
    sl_timeline_destroy(timeline);
}

/* What has no part of its own is time of the part around it: nothing counts twice, nor as an update. */
static void test_many_parts(void **state)
{
    enum { CALLS = 5000, KEPT = 4096 - 2, UPDATES = 2, LONG = 2 * CALLS + 10 };
    static struct sl_activity activities[2 * (CALLS + 2)];
    static char names[CALLS][16];
    struct sl_trace trace = make_trace();
    (void)state;
    trace.tracks[0].activities = activities;
    trace.end_ns = (int64_t)UPDATES * LONG * US;
    for (int64_t u = 0; u < UPDATES; u++) {
        const int64_t at = 1 + u * LONG;
        for (int k = 0; k < CALLS; k++) {
            snprintf(names[k], sizeof names[k], "copy-%d", k);
            add(&trace.tracks[0], SL_ACTIVITY_COPY, names[k], at + 2 * k, at + 2 * k + 1, 10);
        }
        add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", at, at + 2 * CALLS, 7);
        add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, at, at + 2 * CALLS + 5, 50);
    }
    struct sl_timeline *timeline = make(&trace, NAN);
    const struct sl_timeline_part *forward = find(timeline, SL_ACTIVITY_FORWARD);
    double own = 0;
    assert_int_equal(timeline->part_count, KEPT + 2);
    assert_int_equal(timeline->updates, UPDATES);
    assert_int_equal(timeline->rows, 50 * UPDATES);
    assert_true(timeline->parts[0].ns == (double)UPDATES * (2 * CALLS + 5) * US);
    assert_true(timeline->parts[0].self_ns == (double)UPDATES * 5 * US);
    assert_int_equal(forward->count, UPDATES);
    assert_true(forward->ns == (double)UPDATES * 2 * CALLS * US);
    assert_true(forward->self_ns == (double)UPDATES * (2 * CALLS - KEPT) * US);
    for (int32_t p = 0; p < timeline->part_count; p++)
        own += timeline->parts[p].self_ns;
    assert_true(own == timeline->parts[0].ns);
    sl_timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_kernels),
        cmocka_unit_test(test_many_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
