/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a load: a line for each request and batch, in the order in which they were noted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"
#include "serve/load/history.h"

static const char head[] = "what,load,begin_s,end_s,steps,sequences,rows\n";

static void requests_and_batches_are_lines(void **state)
{
    (void)state;
    static const struct sl_history_event events[] = {{.number = 0, .begin_ns = 1000, .end_ns = 1500000, .steps = 7},
                                                     {.number = 12, .begin_ns = 2000000499, .end_ns = 2000000501},
                                                     {.number = -1,
                                                      .begin_ns = INT64_C(123456789012345),
                                                      .end_ns = INT64_C(123456789999999),
                                                      .steps = 4,
                                                      .sequences = 5,
                                                      .rows = 6}};
    struct sl_history history;
    struct sl_buf out = {0};
    sl_history_init(&history);
    sl_history_write(&history, &out);
    assert_string_equal(sl_buf_text(&out), head);
    sl_buf_deinit(&out);
    out = (struct sl_buf){0};
    for (size_t k = 0; k < sizeof events / sizeof *events; k++)
        sl_history_note(&history, &events[k]);
    sl_history_note(NULL, &events[0]);
    sl_history_write(&history, &out);
    assert_string_equal(sl_buf_text(&out), "what,load,begin_s,end_s,steps,sequences,rows\n"
                                           "request,0,0.000001,0.001500,7,0,0\n"
                                           "request,12,2.000000,2.000001,0,0,0\n"
                                           "batch,,123456.789012,123456.790000,4,5,6\n");
    assert_false(out.failed);
    sl_buf_deinit(&out);
    sl_history_deinit(&history);
}

static void none_of_many_is_lost(void **state)
{
    (void)state;
    enum { MANY = 70001 };
    struct sl_history history;
    struct sl_buf out = {0}, expected = {0};
    sl_history_init(&history);
    for (int32_t k = 0; k < MANY; k++)
        sl_history_note(&history, &(struct sl_history_event){.number = k, .steps = 3 * k});
    assert_int_equal(history.count, MANY);
    sl_history_write(&history, &out);
    sl_buf_append_text(&expected, head);
    for (int32_t k = 0; k < MANY; k++)
        sl_buf_printf(&expected, "request,%d,0.000000,0.000000,%d,0,0\n", (int)k, (int)(3 * k));
    assert_string_equal(sl_buf_text(&out), sl_buf_text(&expected));
    sl_buf_deinit(&expected);
    sl_buf_deinit(&out);
    sl_history_deinit(&history);
}

static void a_history_without_memory_says_so(void **state)
{
    (void)state;
    struct sl_history history;
    struct sl_buf out = {0};
    sl_history_init(&history);
    oom_fail_at(1);
    sl_history_note(&history, &(struct sl_history_event){.number = 1});
    assert_true(oom_disarm());
    sl_history_note(&history, &(struct sl_history_event){.number = 2});
    sl_history_write(&history, &out);
    assert_int_equal(history.count, 1);
    assert_true(out.failed);
    sl_buf_deinit(&out);
    sl_history_deinit(&history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_and_batches_are_lines),
        cmocka_unit_test(none_of_many_is_lost),
        cmocka_unit_test(a_history_without_memory_says_so),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
