/* SPDX-License-Identifier: Apache-2.0 */
/* train/recorder.h with a clock of the test: which updates are recorded, and how long the others take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/recorder.h"

static int64_t now;

static int64_t read_clock(void *context)
{
    (void)context;
    return now;
}

static void make_update(struct sl_recorder *recorder, int64_t ns, int64_t rows)
{
    now += ns;
    assert_int_equal(sl_recorder_note(recorder, rows, NULL), SEQLSTM_OK);
}

static void test_order(void **state)
{
    struct sl_recorder recorder;
    (void)state;
    assert_int_equal(sl_recorder_init(&recorder, 2, 3, NULL), SEQLSTM_OK);
    recorder.clock_ns = read_clock;
    assert_int_equal(sl_recorder_begin(&recorder, NULL), SEQLSTM_OK);
    assert_false(sl_trace_is_on());
    make_update(&recorder, 5000, 10); /* warms up: first captures, first bindings */
    assert_false(sl_trace_is_on());
    make_update(&recorder, 5000, 10);
    assert_true(sl_trace_is_on());
    make_update(&recorder, 300, 10);
    make_update(&recorder, 900, 10); /* an update with a checkpoint does not move the median */
    assert_null(sl_recorder_find_trace(&recorder));
    make_update(&recorder, 320, 10);
    assert_false(sl_trace_is_on());
    assert_non_null(sl_recorder_find_trace(&recorder));
    make_update(&recorder, 200, 10);
    make_update(&recorder, 700, 10);
    make_update(&recorder, 400, 20);
    make_update(&recorder, 1, 10); /* no more than were recorded are timed */
    assert_true(sl_recorder_get_recorded(&recorder) == 32);
    assert_true(sl_recorder_get_plain(&recorder) == 20);
    sl_recorder_deinit(&recorder);
}

/* A training that ends early: with a part of the updates, or with none. */
static void test_early_end(void **state)
{
    (void)state;
    for (int updates = 0; updates < 3; updates++) {
        struct sl_recorder recorder;
        assert_int_equal(sl_recorder_init(&recorder, 1, 9, NULL), SEQLSTM_OK);
        assert_int_equal(sl_recorder_begin(&recorder, NULL), SEQLSTM_OK);
        for (int u = 0; u < updates; u++)
            make_update(&recorder, 10, 1);
        sl_recorder_end(&recorder);
        assert_false(sl_trace_is_on());
        assert_true((sl_recorder_find_trace(&recorder) != NULL) == (updates == 2));
        assert_true(sl_recorder_get_plain(&recorder) == 0);
        sl_recorder_deinit(&recorder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_early_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
