/* SPDX-License-Identifier: Apache-2.0 */
/* train/recorder.h with a clock of the test: which updates are recorded, and what the blocks say about recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "train/recorder.h"
#include "oom.h"

enum { NOTE_NS = 7000 }; /* what a note itself takes is not of the next update */

static int64_t now;
static int reads; /* of the clock, by a note */

static int64_t read_clock(void *context)
{
    const int64_t read = now;
    (void)context;
    now += reads++ == 0 ? NOTE_NS : 0;
    return read;
}

static void make_update(struct sl_recorder *recorder, int64_t ns, int64_t rows)
{
    now += ns;
    reads = 0;
    assert_int_equal(sl_recorder_note(recorder, rows, NULL), SEQLSTM_OK);
}

static void begin(struct sl_recorder *recorder, bool captures, int64_t warm, int64_t updates)
{
    assert_int_equal(sl_recorder_init(recorder, warm, updates, NULL), SEQLSTM_OK);
    recorder->clock_ns = read_clock;
    assert_int_equal(sl_recorder_begin(recorder, captures, NULL), SEQLSTM_OK);
}

static void test_order(void **state)
{
    struct sl_recorder recorder;
    int64_t count;
    (void)state;
    begin(&recorder, false, 2, 3);
    assert_false(sl_trace_is_on());
    make_update(&recorder, 5000, 10); /* warms up: first captures, first bindings */
    assert_false(sl_trace_is_on());
    make_update(&recorder, 5000, 10);
    assert_true(sl_trace_is_on());
    make_update(&recorder, 300, 10);
    make_update(&recorder, 900, 10);
    assert_null(sl_recorder_find_trace(&recorder, SL_TRACE_CALLS));
    make_update(&recorder, 320, 10);
    assert_false(sl_trace_is_on());
    assert_non_null(sl_recorder_find_trace(&recorder, SL_TRACE_CALLS));
    /* Blocks: not recorded, recorded, recorded, not recorded, and again. */
    for (int b = 0; b < 8; b++) {
        const bool records = b % 4 == 1 || b % 4 == 2;
        for (int u = 0; u < SL_RECORDER_TIMED + 1; u++) {
            assert_true(sl_trace_is_on() == records);
            /* The first update of a block, and one with a checkpoint, do not count; the machine becomes slower. */
            make_update(&recorder, u == 0 ? 10000 : u == 2 ? 90000 : (records ? 440 : 400) * (b + 10), 10 * (b + 10));
        }
    }
    const double *logs = sl_recorder_get_logs(&recorder, SL_TRACE_CALLS, &count);
    assert_int_equal(count, 4);
    for (int64_t p = 0; p < count; p++)
        assert_true(fabs(logs[p] - log(1.1)) < 1e-12);
    assert_false(sl_recorder_is_done(&recorder));
    sl_recorder_deinit(&recorder);
    assert_false(sl_trace_is_on());
}

/* Of captured steps: call by call, then as they run; so are the blocks, two pairs each. */
static void test_captures(void **state)
{
    struct sl_recorder recorder;
    int64_t count;
    (void)state;
    begin(&recorder, true, 1, 2);
    make_update(&recorder, 5000, 10);
    for (int u = 0; u < 4; u++) {
        assert_true(sl_trace_is_on() && sl_trace_wants_calls() == (u < 2));
        make_update(&recorder, 300, 10);
    }
    assert_non_null(sl_recorder_find_trace(&recorder, SL_TRACE_CALLS));
    assert_non_null(sl_recorder_find_trace(&recorder, SL_TRACE_PHASES));
    int64_t updates = 0;
    for (int b = 0; !sl_recorder_is_done(&recorder); b++)
        for (int u = 0; u < SL_RECORDER_TIMED + 1 && !sl_recorder_is_done(&recorder); u++, updates++) {
            const bool records = b % 4 == 1 || b % 4 == 2, calls = records && b / 4 % 2 == 0;
            assert_true(sl_trace_is_on() == records && sl_trace_wants_calls() == calls);
            make_update(&recorder, calls ? 500 : records ? 404 : 400, 1);
        }
    assert_true(updates <= SL_RECORDER_COMPARED_MOST);
    for (int d = 0; d < SL_TRACE_DETAILS; d++) {
        const double *logs = sl_recorder_get_logs(&recorder, (enum sl_trace_detail)d, &count);
        assert_int_equal(count, SL_RECORDER_PAIRS_MOST);
        for (int64_t p = 0; p < count; p++)
            assert_true(fabs(logs[p] - log(d == SL_TRACE_CALLS ? 1.25 : 1.01)) < 1e-12);
    }
    sl_recorder_deinit(&recorder);
    assert_false(sl_trace_is_on());
}

/* Long updates: it ends after a second, but has the pairs that an interval needs. Short ones: after enough pairs. */
static void test_end_of_blocks(void **state)
{
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        struct sl_recorder recorder;
        int64_t count, updates = 0;
        begin(&recorder, false, 0, 1);
        make_update(&recorder, 100, 1);
        while (!sl_recorder_is_done(&recorder) && ++updates <= SL_RECORDER_COMPARED_MOST)
            make_update(&recorder, is_long ? 200000000 : 100, 1);
        assert_non_null(sl_recorder_get_logs(&recorder, SL_TRACE_CALLS, &count));
        assert_int_equal(count, is_long ? SL_RECORDER_PAIRS_LEAST : SL_RECORDER_PAIRS_MOST);
        assert_int_equal(updates, 2 * count * (SL_RECORDER_TIMED + 1));
        assert_false(sl_trace_is_on());
        make_update(&recorder, 100, 1);
        assert_false(sl_trace_is_on());
        sl_recorder_deinit(&recorder);
    }
}

/* A training that ends early: with a part of the updates, with none, or while blocks are compared. */
static void test_early_end(void **state)
{
    (void)state;
    for (int updates = 0; updates < 20; updates++) {
        struct sl_recorder recorder;
        int64_t count;
        begin(&recorder, false, 1, 3);
        for (int u = 0; u < updates; u++)
            make_update(&recorder, 10, 1);
        sl_recorder_end(&recorder);
        assert_false(sl_trace_is_on());
        assert_true((sl_recorder_find_trace(&recorder, SL_TRACE_CALLS) != NULL) == (updates >= 2));
        assert_non_null(sl_recorder_get_logs(&recorder, SL_TRACE_CALLS, &count));
        assert_int_equal(count, updates < 4 + 2 * (SL_RECORDER_TIMED + 1) ? 0 : 1);
        sl_recorder_deinit(&recorder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_end_of_blocks),
        cmocka_unit_test(test_early_end),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
