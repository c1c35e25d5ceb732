/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend reports of its device, as it arrives in a trace: good activities and counters, and such as make no
 * sense, which are left out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/trace.h"
#include "registry/device_recorder.h"
#include "oom.h"

static int starts, reports, stops;
static seqlstm_status start_status, report_status; /* what they answer */

static seqlstm_status start(struct seqlstm_instance *instance, uint32_t device, struct seqlstm_error *err)
{
    (void)instance;
    starts += device == 3;
    if (start_status != SEQLSTM_OK)
        return seqlstm_error_set(err, start_status, "d.c", 1, "no right to record");
    return SEQLSTM_OK;
}

static seqlstm_status report(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_report *to,
                             struct seqlstm_error *err)
{
    static const struct seqlstm_activity activities[] = {
        {.struct_size = sizeof(struct seqlstm_activity), .name = "kernel", .begin_ns = 5, .end_ns = 9, .bytes = 7},
        {.struct_size = sizeof(struct seqlstm_activity), .name = "ends before", .begin_ns = 9, .end_ns = 8},
        {.struct_size = sizeof(struct seqlstm_activity), .name = "too early", .begin_ns = -1, .end_ns = 8},
        {.struct_size = offsetof(struct seqlstm_activity, bytes), .name = "older", .begin_ns = 0, .bytes = 5},
        {.struct_size = offsetof(struct seqlstm_activity, end_ns), .name = "without an end", .end_ns = 3},
        {.struct_size = sizeof(struct seqlstm_activity), .name = "a\nb", .begin_ns = 2, .end_ns = 2},
        {.struct_size = sizeof(struct seqlstm_activity), .begin_ns = 1, .end_ns = 4}};
    static const struct seqlstm_counter counters[] = {
        {.struct_size = sizeof(struct seqlstm_counter), .name = "memory", .value = 12},
        {.struct_size = sizeof(struct seqlstm_counter), .name = "no number", .value = NAN},
        {.struct_size = offsetof(struct seqlstm_counter, value), .name = "short", .value = 1}};
    (void)instance;
    reports += device == 3;
    for (size_t k = 0; k < sizeof activities / sizeof *activities; k++)
        to->activity(to->context, &activities[k]);
    for (size_t k = 0; k < sizeof counters / sizeof *counters; k++)
        to->counter(to->context, &counters[k]);
    if (report_status != SEQLSTM_OK)
        return seqlstm_error_set(err, report_status, "d.c", 2, "its buffer was full");
    return SEQLSTM_OK;
}

static void stop(struct seqlstm_instance *instance, uint32_t device)
{
    (void)instance;
    stops += device == 3;
}

static const void *get_extension(struct seqlstm_instance *instance, const char *id)
{
    static const struct seqlstm_recorder recorder = {
        .struct_size = sizeof recorder, .start = start, .report = report, .stop = stop};
    (void)instance;
    return strcmp(id, SEQLSTM_RECORDER_EXTENSION) == 0 ? &recorder : NULL;
}

static const struct seqlstm_backend table = {
    .struct_size = sizeof table, .id = "made-up", .get_extension = get_extension};

static struct seqlstm_recorder half;

static const void *get_half(struct seqlstm_instance *instance, const char *id)
{
    (void)instance;
    return strcmp(id, SEQLSTM_RECORDER_EXTENSION) == 0 ? &half : NULL;
}

static const struct seqlstm_backend half_table = {
    .struct_size = sizeof half_table, .id = "made-up", .get_extension = get_half};
static const struct seqlstm_backend bare_table = {.struct_size = sizeof bare_table, .id = "made-up"};

static void reports_are_taken_and_nonsense_is_not(void **state)
{
    (void)state;
    struct sl_trace trace;
    struct sl_device_recorder recorder;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 100, NULL), SEQLSTM_OK);
    const int32_t track = sl_trace_find_device("made:3");
    sl_device_recorder_start(&recorder, &table, NULL, 3, track);
    const int64_t zero = recorder.zero_ns;
    sl_device_recorder_report(&recorder); /* too soon after the start */
    assert_int_equal(reports, 0);
    sl_device_recorder_stop(&recorder);
    sl_device_recorder_stop(&recorder); /* it has ended */
    assert_true(starts == 1 && reports == 1 && stops == 1);
    sl_trace_stop(&trace);
    static const struct {
        const char *name;
        int64_t begin, end, amount;
    } expected[] = {{"kernel", 5, 9, 7}, {"older", 0, 0, 0}, {"a b", 2, 2, 0}, {"?", 1, 4, 0}};
    const struct sl_trace_track *found = NULL;
    for (int32_t t = 0; t < trace.track_count; t++)
        if (trace.tracks[t].is_device)
            found = &trace.tracks[t];
    assert_non_null(found);
    assert_int_equal(found->count, 4);
    for (int k = 0; k < 4; k++) {
        const struct sl_activity *a = &found->activities[k];
        if (k != 2)
            assert_string_equal(a->name, expected[k].name);
        assert_null(strchr(a->name, '\n'));
        assert_string_equal(a->detail, "made-up");
        assert_int_equal(a->begin_ns, zero + expected[k].begin);
        assert_int_equal(a->end_ns, zero + expected[k].end);
        assert_int_equal(a->amount, expected[k].amount);
        assert_int_equal(a->kind, SL_ACTIVITY_DEVICE);
    }
    assert_int_equal(trace.count_count, 1);
    assert_string_equal(trace.counts[0].name, "memory");
    assert_true(trace.counts[0].value == 12);
    sl_trace_deinit(&trace);
}

/* Reports lie apart, so that a profile is not taken up by them: neither the start nor the last one was just now. */
static void reports_lie_apart(void **state)
{
    (void)state;
    const int64_t long_ago = INT64_C(3600) * 1000000000;
    struct sl_trace trace;
    struct sl_device_recorder recorder;
    starts = reports = stops = 0;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 100, NULL), SEQLSTM_OK);
    sl_device_recorder_start(&recorder, &table, NULL, 3, sl_trace_find_device("made:3"));
    for (int k = 1; k <= 2; k++) {
        recorder.reported_ns -= long_ago;
        sl_device_recorder_report(&recorder);
        assert_int_equal(reports, k);
        sl_device_recorder_report(&recorder);
        assert_int_equal(reports, k);
    }
    sl_device_recorder_stop(&recorder); /* what is left comes with the end */
    assert_true(starts == 1 && reports == 3 && stops == 1);
    sl_trace_stop(&trace);
    assert_string_equal(trace.note, "");
    sl_trace_deinit(&trace);
}

/* A recorder of which a function is missing is none, and no other of its functions is called. */
static void half_a_recorder_is_none(void **state)
{
    (void)state;
    const struct seqlstm_recorder whole =
        *(const struct seqlstm_recorder *)get_extension(NULL, SEQLSTM_RECORDER_EXTENSION);
    for (int k = 0; k < 5; k++) {
        struct sl_trace trace;
        struct sl_device_recorder recorder;
        starts = reports = stops = 0;
        half = whole;
        if (k == 0)
            half.struct_size = offsetof(struct seqlstm_recorder, stop);
        else if (k == 1)
            half.start = NULL;
        else if (k == 2)
            half.report = NULL;
        else if (k == 3)
            half.stop = NULL;
        assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 100, NULL), SEQLSTM_OK);
        sl_device_recorder_start(&recorder, k < 4 ? &half_table : &bare_table, NULL, 3, sl_trace_find_device("made:3"));
        recorder.reported_ns = -INT64_C(3600) * 1000000000;
        sl_device_recorder_report(&recorder);
        sl_device_recorder_stop(&recorder);
        sl_trace_stop(&trace);
        assert_true(starts == 0 && reports == 0 && stops == 0);
        assert_string_equal(trace.note, "the backend does not report them");
        sl_trace_deinit(&trace);
    }
}

/* Why there are no times is noted, the first of the reasons; counters come all the same. */
static void missing_times_have_a_reason(void **state)
{
    (void)state;
    static const struct {
        seqlstm_status start, report;
        const char *note;
    } rows[] = {{SEQLSTM_OK, SEQLSTM_OK, ""},
                {SEQLSTM_UNAVAILABLE, SEQLSTM_OK, "no right to record"},
                {SEQLSTM_OK, SEQLSTM_NO_MEMORY, "its buffer was full"},
                {SEQLSTM_UNAVAILABLE, SEQLSTM_NO_MEMORY, "no right to record"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_trace trace;
        struct sl_device_recorder recorder;
        starts = reports = stops = 0;
        start_status = rows[k].start;
        report_status = rows[k].report;
        assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 100, NULL), SEQLSTM_OK);
        sl_device_recorder_start(&recorder, &table, NULL, 3, sl_trace_find_device("made:3"));
        sl_device_recorder_stop(&recorder);
        start_status = report_status = SEQLSTM_OK;
        assert_true(starts == 1 && reports == 1 && stops == 1);
        sl_trace_stop(&trace);
        assert_non_null(strstr(trace.note, rows[k].note));
        assert_int_equal(trace.note[0] == 0, rows[k].note[0] == 0);
        assert_int_equal(trace.count_count, 1);
        sl_trace_deinit(&trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_are_taken_and_nonsense_is_not),
        cmocka_unit_test(reports_lie_apart),
        cmocka_unit_test(half_a_recorder_is_none),
        cmocka_unit_test(missing_times_have_a_reason),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
