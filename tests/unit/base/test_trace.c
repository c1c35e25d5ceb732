/* SPDX-License-Identifier: Apache-2.0 */
/* base/system/trace.h: what is recorded, by which thread, and that nothing is where nothing should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "base/system/ticks.h"
#include "base/system/trace.h"
#include "oom.h"

static void add(enum sl_activity_kind kind, const char *name)
{
    const int64_t begin = sl_trace_begin(kind, name);
    sl_trace_end(begin, kind, name, "one", 7);
}

static void test_off(void **state)
{
    struct sl_trace trace;
    (void)state;
    assert_int_equal(sl_trace_begin(SL_ACTIVITY_FORWARD, "a"), 0);
    assert_int_equal(sl_trace_get_begin(), 0);
    assert_int_equal(sl_trace_find_device("cuda:0"), -1);
    sl_trace_stop(&trace);
    assert_int_equal(trace.track_count, 0);
}

static void test_on(void **state)
{
    struct sl_trace trace;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int64_t before = sl_trace_begin(SL_ACTIVITY_FORWARD, "before");
    (void)state;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, &err), SEQLSTM_OK);
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, &err), SEQLSTM_INVALID_ARGUMENT);
    sl_trace_end(before, SL_ACTIVITY_FORWARD, "before", NULL, 0); /* began before the recording */
    const int64_t unfinished = sl_trace_begin(SL_ACTIVITY_BACKWARD, "unfinished");
    add(SL_ACTIVITY_FORWARD, "a");
    sl_trace_push("inner");
    sl_trace_pop("one");
    sl_trace_pop("one"); /* more ends than begins */
    const int32_t device = sl_trace_find_device("cuda:0");
    assert_true(device >= 0);
    assert_int_equal(sl_trace_find_device("cuda:0"), device);
    sl_trace_add(device,
                 &(struct sl_activity){.begin_ns = 1, .end_ns = 3, .name = "kernel", .kind = SL_ACTIVITY_DEVICE});
    sl_trace_stop(&trace);
    sl_trace_end(unfinished, SL_ACTIVITY_BACKWARD, "unfinished", NULL, 0); /* ends after it */
    assert_int_equal(trace.track_count, 2);
    assert_int_equal(trace.tracks[0].count, 2);
    const struct sl_activity *first = &trace.tracks[0].activities[0];
    assert_string_equal(first->name, "a");
    assert_string_equal(first->detail, "one");
    assert_int_equal(first->amount, 7);
    assert_true(first->begin_ns >= trace.begin_ns && first->begin_ns <= first->end_ns && first->end_ns <= trace.end_ns);
    assert_string_equal(trace.tracks[0].activities[1].name, "inner");
    assert_int_equal(trace.tracks[0].activities[1].kind, SL_ACTIVITY_BACKEND);
    assert_true(trace.tracks[1].is_device);
    assert_string_equal(trace.tracks[1].activities[0].name, "kernel");
    assert_true(trace.memory_count >= 1 && trace.memory[0].value > 0);
    sl_trace_deinit(&trace);
}

/* Samples are bytes of resident memory, as the system counts them in kB: nothing here takes or frees half of it. */
static void test_memory(void **state)
{
    struct sl_trace trace;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char line[256];
    long long resident_kb = 0;
    (void)state;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, &err), SEQLSTM_OK);
    sl_trace_stop(&trace);
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %lld kB", &resident_kb) == 1)
            break;
    fclose(file);
    assert_true(resident_kb > 0 && trace.memory_count == 1);
    assert_in_range(trace.memory[0].value, resident_kb * 1024 / 2, resident_kb * 1024 * 2);
    sl_trace_deinit(&trace);
}

static void test_full(void **state)
{
    struct sl_trace trace;
    (void)state;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 3, NULL), SEQLSTM_OK);
    for (int k = 0; k < 5; k++)
        add(SL_ACTIVITY_FORWARD, "a");
    sl_trace_stop(&trace);
    assert_int_equal(trace.tracks[0].count, 3);
    assert_int_equal(trace.tracks[0].dropped, 2);
    assert_null(trace.counts);
    sl_trace_deinit(&trace);
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 3, NULL), SEQLSTM_OK);
    for (int k = 0; k < SL_TRACE_COUNTS + 2; k++)
        sl_trace_add_count("watts", k, 2 * k);
    sl_trace_stop(&trace);
    assert_int_equal(trace.count_count, SL_TRACE_COUNTS);
    for (int k = 0; k < SL_TRACE_COUNTS; k++)
        assert_true(trace.counts[k].time_ns == k && trace.counts[k].value == 2 * k);
    sl_trace_deinit(&trace);
}

/* What a backend names itself is copied, even where the next name lies at the same address. */
static void test_names_of_a_buffer(void **state)
{
    static const char *const names[] = {"rows", "columns", "rows"};
    struct sl_trace trace;
    char buffer[16];
    (void)state;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 9, NULL), SEQLSTM_OK);
    for (int k = 0; k < 3; k++) {
        snprintf(buffer, sizeof buffer, "%s", names[k]);
        sl_trace_push(buffer);
        sl_trace_pop("one");
    }
    sl_trace_stop(&trace);
    assert_int_equal(trace.tracks[0].count, 3);
    for (int k = 0; k < 3; k++)
        assert_string_equal(trace.tracks[0].activities[k].name, names[k]);
    sl_trace_deinit(&trace);
}

enum { THREADS = 4, EACH = 20000 };

static void *run_thread(void *context)
{
    sl_trace_name_thread("worker");
    for (int k = 0; k < EACH; k++)
        add(SL_ACTIVITY_WORK, context);
    return NULL;
}

/* Recordings start and stop while threads write: nothing is torn, and tracks belong to their recording. */
static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    int64_t seen = 0;
    (void)state;
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, run_thread, (void *)(uintptr_t) "work"), 0);
    for (int r = 0; r < 30; r++) {
        struct sl_trace trace;
        assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 512, NULL), SEQLSTM_OK);
        add(SL_ACTIVITY_FORWARD, "main");
        sl_trace_stop(&trace);
        for (int32_t t = 0; t < trace.track_count; t++)
            for (int64_t a = 0; a < trace.tracks[t].count; a++) {
                const struct sl_activity *activity = &trace.tracks[t].activities[a];
                assert_true(activity->begin_ns >= trace.begin_ns && activity->end_ns >= activity->begin_ns);
                seen += strcmp(activity->name, "main") == 0;
            }
        sl_trace_deinit(&trace);
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    assert_int_equal(seen, 30);
}

static int begun, ended, open_marks;

static void begin_mark(enum sl_activity_kind kind, const char *name)
{
    begun += kind == SL_ACTIVITY_FORWARD && strcmp(name, "a") == 0;
    open_marks++;
}

static void end_mark(void)
{
    ended++;
    open_marks--;
}

static const struct sl_trace_marker marker = {begin_mark, end_mark};

/* A profiler that is attached sees the activities also where nothing is recorded. */
static void test_marker(void **state)
{
    (void)state;
    sl_trace_add_marker(&marker);
    assert_false(sl_trace_is_on());
    add(SL_ACTIVITY_FORWARD, "a");
    sl_trace_remove_markers();
    add(SL_ACTIVITY_FORWARD, "a");
    assert_int_equal(begun, 1);
    assert_int_equal(ended, 1);
}

/* What does not end, ends with the activity around it. */
static void test_missing_ends(void **state)
{
    (void)state;
    sl_trace_add_marker(&marker);
    open_marks = 0;
    const int64_t outer = sl_trace_begin(SL_ACTIVITY_UPDATE, NULL);
    const int64_t inner = sl_trace_begin(SL_ACTIVITY_BACKWARD, "a");
    sl_trace_push("left open");
    sl_trace_push("left open, too");
    assert_int_equal(open_marks, 4);
    sl_trace_end(inner, SL_ACTIVITY_BACKWARD, "a", NULL, 0);
    assert_int_equal(open_marks, 1);
    sl_trace_pop("one"); /* nothing is open of what a backend named */
    assert_int_equal(open_marks, 1);
    (void)sl_trace_begin(SL_ACTIVITY_BACKWARD, "failed");
    sl_trace_end(outer, SL_ACTIVITY_UPDATE, NULL, NULL, 0);
    assert_int_equal(open_marks, 0);
    sl_trace_remove_markers();
}

/* Deeper than what is shown: as many ends as begins. */
static void test_deep(void **state)
{
    int64_t begins[SL_TRACE_SHOWN + 8];
    (void)state;
    sl_trace_add_marker(&marker);
    open_marks = 0;
    for (int k = 0; k < SL_TRACE_SHOWN + 8; k++)
        begins[k] = sl_trace_begin(SL_ACTIVITY_WORK, "a");
    assert_int_equal(open_marks, SL_TRACE_SHOWN);
    for (int k = SL_TRACE_SHOWN + 7; k >= 0; k--)
        sl_trace_end(begins[k], SL_ACTIVITY_WORK, "a", NULL, 0);
    assert_int_equal(open_marks, 0);
    sl_trace_remove_markers();
}

/* Tools that watch the probes raise their semaphore: activities then begin although nothing is recorded. */
static void test_watchers(void **state)
{
    (void)state;
    sl_trace_watchers = 1;
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_FORWARD, "a");
    sl_trace_watchers = 0;
    assert_true(begin > 0);
    sl_trace_end(begin, SL_ACTIVITY_FORWARD, "a", NULL, 0);
    assert_int_equal(sl_trace_begin(SL_ACTIVITY_FORWARD, "a"), 0);
}

static void test_ticks(void **state)
{
    static const struct sl_moment zero = {.ticks = 1000, .ns = 50}, one = {.ticks = 4000, .ns = 1050};
    (void)state;
    assert_int_equal(sl_ticks_to_ns(1000, &zero, &one), 50);
    assert_int_equal(sl_ticks_to_ns(2500, &zero, &one), 550);
    assert_int_equal(sl_ticks_to_ns(4000, &zero, &one), 1050);
    assert_int_equal(sl_ticks_to_ns(7000, &zero, &one), 2050);
    for (int64_t t = 1000; t < 4000; t++)
        assert_true(sl_ticks_to_ns(t, &zero, &one) <= sl_ticks_to_ns(t + 1, &zero, &one));
    /* The same time as the clock's, while this thread may be interrupted at any place. */
    const struct sl_moment first = sl_moment_read();
    const int64_t before = sl_clock_ns(), now = sl_ticks_read(), after = sl_clock_ns();
    while (sl_clock_ns() < after + 5000000)
        continue;
    const struct sl_moment last = sl_moment_read();
    const int64_t ns = sl_ticks_to_ns(now, &first, &last);
    assert_true(ns >= before - 1000000 && ns <= after + 1000000);
}

/* What began before a recording is none of it; a name is a device's or a thread's; a backend says what it did. */
static void test_what_is_no_part(void **state)
{
    struct sl_trace trace;
    (void)state;
    sl_trace_watchers = 1;
    const int64_t early = sl_trace_begin(SL_ACTIVITY_FORWARD, "early");
    sl_trace_watchers = 0;
    assert_true(early > 0);
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, NULL), SEQLSTM_OK);
    sl_trace_name_thread("cuda:7");
    sl_trace_end(early, SL_ACTIVITY_FORWARD, "early", NULL, 0);
    sl_trace_push("packing");
    sl_trace_pop("the backend");
    const int32_t device = sl_trace_find_device("cuda:7");
    sl_trace_stop(&trace);
    sl_trace_name_thread(NULL);
    assert_int_equal(trace.track_count, 2);
    assert_int_equal(device, 1);
    assert_string_equal(trace.tracks[0].name, "cuda:7");
    assert_true(!trace.tracks[0].is_device && trace.tracks[1].is_device);
    assert_int_equal(trace.tracks[0].count, 1);
    assert_string_equal(trace.tracks[0].activities[0].name, "packing");
    assert_string_equal(trace.tracks[0].activities[0].detail, "the backend");
    sl_trace_deinit(&trace);
}

/* Each call of a device by itself only where that is wanted, and while something is recorded. */
static void test_wanted_detail(void **state)
{
    static const enum sl_trace_detail details[] = {SL_TRACE_CALLS, SL_TRACE_PHASES, SL_TRACE_CALLS};
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct sl_trace trace;
        assert_false(sl_trace_wants_calls() || sl_trace_is_on());
        assert_int_equal(sl_trace_start(details[k], 4, NULL), SEQLSTM_OK);
        assert_true(sl_trace_is_on());
        assert_int_equal(sl_trace_wants_calls(), details[k] == SL_TRACE_CALLS);
        sl_trace_stop(&trace);
        sl_trace_deinit(&trace);
    }
    assert_false(sl_trace_wants_calls() || sl_trace_is_on());
}

/* There is room for many names, but not for any number. */
static void test_too_many_names(void **state)
{
    char name[32];
    const char *first = sl_trace_keep_name("a first name");
    (void)state;
    for (int k = 0; k < SL_TRACE_NAMES; k++) {
        snprintf(name, sizeof name, "name %d", k);
        const char *kept = sl_trace_keep_name(name);
        assert_true(strcmp(kept, name) == 0 || strcmp(kept, "…") == 0);
    }
    assert_string_equal(sl_trace_keep_name("one more"), "…");
    assert_ptr_equal(sl_trace_keep_name("a first name"), first);
}

static void count_end(void *context)
{
    ++*(int *)context;
}

/* Devices whose names begin alike have tracks of their own; an end is called in one recording, unless it is forgotten.
 */
static void test_notes_devices_and_ends(void **state)
{
    struct sl_trace trace;
    int calls[3] = {0};
    (void)state;
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, NULL), SEQLSTM_OK);
    sl_trace_note("first");
    sl_trace_note("second");
    const int32_t one = sl_trace_find_device("cuda:1"), ten = sl_trace_find_device("cuda:10");
    assert_true(one >= 0 && ten >= 0 && one != ten);
    assert_int_equal(sl_trace_find_device("cuda:1"), one);
    assert_int_equal(sl_trace_find_device("cuda:10"), ten);
    for (int k = 0; k < 3; k++)
        assert_true(sl_trace_on_end(count_end, &calls[k]));
    sl_trace_forget_end(&calls[1]);
    sl_trace_stop(&trace);
    assert_string_equal(trace.note, "first");
    assert_string_equal(trace.tracks[ten].name, "cuda:10");
    sl_trace_deinit(&trace);
    assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, NULL), SEQLSTM_OK);
    sl_trace_stop(&trace);
    assert_string_equal(trace.note, "");
    sl_trace_deinit(&trace);
    assert_true(calls[0] == 1 && calls[1] == 0 && calls[2] == 1);
}

/* As many ends and profilers as there is room for, the last one, too; more are turned away. */
static void test_room_for_ends_and_markers(void **state)
{
    struct sl_trace trace;
    int calls[SL_TRACE_ENDS + 1] = {0};
    (void)state;
    for (int forgotten = 0; forgotten < SL_TRACE_ENDS; forgotten += SL_TRACE_ENDS - 1) {
        memset(calls, 0, sizeof calls);
        assert_int_equal(sl_trace_start(SL_TRACE_CALLS, 4, NULL), SEQLSTM_OK);
        for (int k = 0; k < SL_TRACE_ENDS; k++)
            assert_true(sl_trace_on_end(count_end, &calls[k]));
        assert_false(sl_trace_on_end(count_end, &calls[SL_TRACE_ENDS]));
        sl_trace_forget_end(&calls[forgotten]);
        sl_trace_stop(&trace);
        sl_trace_deinit(&trace);
        for (int k = 0; k <= SL_TRACE_ENDS; k++)
            assert_int_equal(calls[k], k != forgotten && k < SL_TRACE_ENDS);
    }
    for (int count = 1; count < SL_TRACE_MARKERS + 3; count++) {
        begun = ended = 0;
        for (int k = 0; k < count; k++)
            sl_trace_add_marker(&marker);
        add(SL_ACTIVITY_FORWARD, "a");
        sl_trace_remove_markers();
        assert_int_equal(begun, count < SL_TRACE_MARKERS ? count : SL_TRACE_MARKERS);
        assert_int_equal(ended, begun);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_on),
        cmocka_unit_test(test_notes_devices_and_ends),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_names_of_a_buffer),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_marker),
        cmocka_unit_test(test_missing_ends),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_watchers),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_what_is_no_part),
        cmocka_unit_test(test_too_many_names),
        cmocka_unit_test(test_wanted_detail),
        cmocka_unit_test(test_room_for_ends_and_markers),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
