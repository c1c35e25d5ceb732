/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings with more kernels and more parts than a timeline has room for, and timelines without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "oom.h"
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

/* A recording of calls and one of captures, with kernels. */
static void record(struct sl_trace *trace, struct sl_trace *captured)
{
    *trace = make_trace();
    add_updates(trace);
    add(&trace->tracks[2], SL_ACTIVITY_DEVICE, "gemm", 20, 40, 0);
    *captured = *trace;
}

/* Each allocation may fail: there is no timeline then, and nothing is lost under a sanitizer. */
static void test_no_memory_for_a_timeline(void **state)
{
    struct sl_trace trace, captured;
    bool failed = true;
    int n = 1;
    (void)state;
    record(&trace, &captured);
    const struct sl_timeline_request request = {
        .trace = &trace, .plan = &plan, .peaks = {.gflops = 100, .gbytes = 0.1}, .captured = {.trace = &captured}};
    for (; failed; n++) {
        struct sl_timeline *timeline = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = sl_timeline_create(&request, &timeline, &err);
        failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        assert_true(failed == (timeline == NULL));
        assert_true(failed == (strstr(err.message, "no memory") != NULL));
        sl_timeline_destroy(timeline);
    }
    assert_true(n > 6); /* both recordings */
}

static const struct sl_timeline_advices advices = {
    .items = {{.change = "--threads 2", .note = "all cores", .speed = 1.5, .low = 1.25, .high = 1.75, .helps = true}},
    .count = 1};

/* Writes one of what there is of a timeline. */
static void print(const struct sl_timeline *timeline, int what, struct sl_buf *out)
{
    if (what == 0)
        sl_timeline_print_sentence(timeline, &advices, "seqlstm profile", out);
    else if (what == 1)
        sl_timeline_print_table(timeline, out);
    else if (what == 2)
        sl_timeline_print_json(timeline, &advices, out);
    else if (what == 3)
        sl_timeline_print_trace(timeline, out);
    else
        sl_timeline_print_section(timeline, &advices, out);
}

/* A text is whole, or it is known that it is not. */
static void test_no_memory_for_a_text(void **state)
{
    struct sl_trace trace, captured;
    (void)state;
    record(&trace, &captured);
    const struct sl_timeline_request request = {
        .trace = &trace, .plan = &plan, .peaks = {.gflops = 100, .gbytes = 0.1}, .captured = {.trace = &captured}};
    struct sl_timeline *timeline = NULL;
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    for (int what = 0; what < 5; what++) {
        struct sl_buf whole = {0};
        bool failed = true;
        print(timeline, what, &whole);
        assert_true(!whole.failed && whole.length_bytes > 0);
        for (int n = 1; failed; n++) {
            struct sl_buf now = {0};
            oom_fail_at(n);
            print(timeline, what, &now);
            failed = oom_disarm();
            if (now.failed != failed || (!failed && strcmp(sl_buf_text(&now), sl_buf_text(&whole)) != 0))
                fail_msg("text %d without allocation %d", what, n);
            sl_buf_deinit(&now);
        }
        sl_buf_deinit(&whole);
    }
    sl_timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_kernels),
        cmocka_unit_test(test_many_parts),
        cmocka_unit_test(test_no_memory_for_a_timeline),
        cmocka_unit_test(test_no_memory_for_a_text),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
