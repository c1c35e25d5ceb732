/* SPDX-License-Identifier: Apache-2.0 */
/* Times of a device, by functions of the test that write down what they are asked: its events, its second stream, the
 * times of its calls in a trace, and calls that are timed as a capture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/memory.h>

#include "dispatch/cost/replay.h"
#include "ok.h"
#include "oom.h"
#include "registry/call_time.h"
#include "registry/lane.h"

enum { EVENTS = 10000, LOG_BYTES = 8192 };

static char queue_stream, lane_stream, the_capture;
static struct event {
    double at_ns;
    bool alive;
} events[EVENTS];
static int event_count, live_events, live_streams, live_captures;
static double now_ns; /* of the device */
static char written[LOG_BYTES];
static int fails_at; /* the call that fails; 0: none does */

static SEQLSTM_PRINTF(1, 2) void note(const char *format, ...)
{
    const size_t used = strlen(written);
    va_list args;
    va_start(args, format);
    if (used + 80 < sizeof written)
        vsnprintf(written + used, sizeof written - used, format, args);
    va_end(args);
}

static const char *name_stream(const void *stream)
{
    return stream == &queue_stream ? "queue" : stream == &lane_stream ? "lane" : "?";
}

static int index_of(const void *event)
{
    return event ? (int)((const struct event *)event - events) : -1;
}

static seqlstm_status answer(struct seqlstm_error *err)
{
    if (fails_at > 0 && --fails_at == 0)
        return seqlstm_error_set(err, SEQLSTM_DEVICE, "d.c", 1, "the device is gone");
    return SEQLSTM_OK;
}

static seqlstm_status create(struct seqlstm_instance *instance, uint32_t device, void **out, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)err;
    *out = live_streams++ ? &lane_stream : &queue_stream;
    return SEQLSTM_OK;
}

static void destroy(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    (void)instance, (void)device;
    note("destroy %s\n", name_stream(stream));
    live_streams--;
}

static seqlstm_status synchronize(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("finish %s\n", name_stream(stream));
    return answer(err);
}

static seqlstm_status event_create(struct seqlstm_instance *instance, uint32_t device, void **out,
                                   struct seqlstm_error *err)
{
    (void)instance, (void)device;
    SEQLSTM_TRY(answer(err));
    assert_true(event_count < EVENTS);
    events[event_count].alive = true;
    *out = &events[event_count++];
    live_events++;
    return SEQLSTM_OK;
}

static void event_destroy(struct seqlstm_instance *instance, uint32_t device, void *event)
{
    (void)instance, (void)device;
    assert_true(((struct event *)event)->alive);
    ((struct event *)event)->alive = false;
    live_events--;
}

static seqlstm_status event_record(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("record %d on %s\n", index_of(event), name_stream(stream));
    ((struct event *)event)->at_ns = now_ns;
    return answer(err);
}

static seqlstm_status event_wait(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("wait for %d on %s\n", index_of(event), name_stream(stream));
    return answer(err);
}

static seqlstm_status event_synchronize(struct seqlstm_instance *instance, uint32_t device, void *event,
                                        struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("wait for %d\n", index_of(event));
    return answer(err);
}

static seqlstm_status event_elapsed(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                    double *out_ns, struct seqlstm_error *err)
{
    (void)instance, (void)device;
    *out_ns = ((struct event *)end)->at_ns - ((struct event *)begin)->at_ns;
    return answer(err);
}

static seqlstm_status capture_begin(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                    struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("begin on %s\n", name_stream(stream));
    return answer(err);
}

static seqlstm_status capture_end(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out,
                                  struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("end on %s\n", name_stream(stream));
    SEQLSTM_TRY(answer(err));
    live_captures++;
    *out = &the_capture;
    return SEQLSTM_OK;
}

static seqlstm_status capture_launch(struct seqlstm_instance *instance, uint32_t device, void *capture, void *stream,
                                     struct seqlstm_error *err)
{
    (void)instance, (void)device;
    assert_ptr_equal(capture, &the_capture);
    note("launch on %s\n", name_stream(stream));
    now_ns += 6000;
    return answer(err);
}

static void capture_destroy(struct seqlstm_instance *instance, uint32_t device, void *capture)
{
    (void)instance, (void)device;
    assert_ptr_equal(capture, &the_capture);
    live_captures--;
}

static seqlstm_status allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)kind, (void)bytes, (void)out_pointer, (void)err;
    return SEQLSTM_NO_MEMORY;
}

static void release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    (void)instance, (void)device, (void)kind, (void)pointer;
}

static seqlstm_status copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device;
    note("copy %d bytes, direction %u, on %s\n", (int)bytes, direction, name_stream(stream));
    memcpy(to, from, bytes);
    return answer(err);
}

static seqlstm_status fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err)
{
    (void)instance, (void)device, (void)stream, (void)to, (void)value, (void)bytes, (void)err;
    return SEQLSTM_OK;
}

static struct seqlstm_memory memory = {
    .struct_size = sizeof memory, .allocate = allocate, .release = release, .copy = copy, .fill = fill};
static struct seqlstm_streams streams = {.struct_size = sizeof streams,
                                         .create = create,
                                         .destroy = destroy,
                                         .synchronize = synchronize,
                                         .event_create = event_create,
                                         .event_destroy = event_destroy,
                                         .event_record = event_record,
                                         .event_wait = event_wait,
                                         .event_elapsed = event_elapsed,
                                         .event_synchronize = event_synchronize,
                                         .capture_begin = capture_begin,
                                         .capture_end = capture_end,
                                         .capture_launch = capture_launch,
                                         .capture_destroy = capture_destroy};
static const struct seqlstm_backend table = {
    .struct_size = sizeof table, .id = "card", .memory = &memory, .streams = &streams};

static void open_domain(struct sl_domain *domain)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    event_count = live_events = live_streams = live_captures = fails_at = 0;
    now_ns = 500;
    written[0] = '\0';
    ok(sl_domain_open(domain, &table, NULL, 0, "card:0", &err), &err);
}

static void close_domain(struct sl_domain *domain)
{
    fails_at = 0;
    sl_domain_close(domain);
    assert_int_equal(live_events, 0);
    assert_int_equal(live_streams, 0);
    assert_int_equal(live_captures, 0);
}

/* What was written since the last time. */
static void expect_written(const char *expected)
{
    assert_string_equal(written, expected);
    written[0] = '\0';
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void a_lane_is_a_stream_of_its_own(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    struct sl_lane lane, closed = {0};
    void *event;
    char from[8] = "abcdefg", to[8] = "";
    open_domain(&domain);
    ok(sl_lane_open(&lane, &domain, &err), &err);
    ok(sl_event_create(&domain, &event, &err), &err);
    ok(sl_lane_upload(&lane, to, from, 0, &err), &err); /* nothing */
    ok(sl_lane_upload(&lane, to, from, -3, &err), &err);
    ok(sl_lane_upload(&lane, to, from, 3, &err), &err);
    ok(sl_event_record_lane(&lane, event, &err), &err);
    ok(sl_event_record(&domain, event, &err), &err);
    ok(sl_event_wait(&domain, event, &err), &err);
    ok(sl_lane_finish(&lane, &err), &err);
    ok(sl_lane_finish(&closed, &err), &err);
    expect_written("copy 3 bytes, direction 1, on lane\nrecord 0 on lane\nrecord 0 on queue\nwait for 0 on queue\n"
                   "finish lane\n");
    assert_string_equal(to, "abc");
    sl_event_destroy(&domain, event);
    sl_event_destroy(&domain, NULL);
    sl_lane_close(&lane);
    sl_lane_close(&lane);
    expect_written("destroy lane\n");
    assert_null(lane.domain);
    close_domain(&domain);
}

/* Waiting for an event is a wait in the trace, and its failure is told. */
static void waits_for_events_are_seen(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    struct sl_trace trace;
    void *event;
    open_domain(&domain);
    ok(sl_event_create(&domain, &event, &err), &err);
    ok(sl_trace_start(SL_TRACE_PHASES, 20, &err), &err);
    ok(sl_event_synchronize(&domain, event, &err), &err);
    fails_at = 1;
    assert_int_equal(sl_event_synchronize(&domain, event, &err), SEQLSTM_DEVICE);
    assert_string_equal(err.message, "the device is gone");
    sl_trace_stop(&trace);
    assert_int_equal(trace.track_count, 1);
    assert_int_equal(trace.tracks[0].count, 2);
    for (int k = 0; k < 2; k++) {
        const struct sl_activity *wait = &trace.tracks[0].activities[k];
        assert_int_equal(wait->kind, SL_ACTIVITY_WAIT);
        assert_string_equal(wait->name, "card:0");
        assert_string_equal(wait->detail, "card");
    }
    sl_trace_deinit(&trace);
    sl_event_destroy(&domain, event);
    close_domain(&domain);
}

/* ---- calls in a trace -------------------------------------------------------------------------------------------- */

static const struct sl_trace_track *find_device(const struct sl_trace *trace)
{
    for (int32_t t = 0; t < trace->track_count; t++)
        if (trace->tracks[t].is_device)
            return &trace->tracks[t];
    return NULL;
}

/* A call that takes so long on the device. */
static void make_call(struct sl_domain *domain, const char *name, double ns, int64_t amount)
{
    const struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_FORWARD, name);
    now_ns += ns;
    sl_call_time_end(&time, domain, SL_ACTIVITY_FORWARD, name, "card", amount);
    now_ns += 10;
}

/* Each has its place behind the first on the device's track, in each recording anew; a call whose end the device did
 * not note is left out, and so is one in a capture. */
static void calls_have_the_times_of_the_device(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    open_domain(&domain);
    make_call(&domain, "not recorded", 100, 1);
    for (int turn = 0; turn < 2; turn++) {
        struct sl_trace trace;
        written[0] = '\0';
        ok(sl_trace_start(SL_TRACE_PHASES, 50, &err), &err);
        make_call(&domain, "a", 100, 4);
        make_call(&domain, "b", 250, 5);
        struct sl_call_time broken = sl_call_time_begin(&domain, SL_ACTIVITY_FORWARD, "broken");
        fails_at = 1;
        sl_call_time_end(&broken, &domain, SL_ACTIVITY_FORWARD, "broken", "card", 0);
        domain.is_capturing = true;
        make_call(&domain, "captured", 100, 1);
        domain.is_capturing = false;
        make_call(&domain, "c", 30, 6);
        if (turn == 0)
            ok(sl_domain_finish(&domain, &err), &err);
        make_call(&domain, "d", 7, 8);
        sl_trace_stop(&trace);
        make_call(&domain, "too late", 100, 1);
        static const struct {
            const char *name;
            int64_t begin_ns, ns, amount;
        } expected[] = {{"a", 0, 100, 4}, {"b", 110, 250, 5}, {"c", 480, 30, 6}, {"d", 520, 7, 8}};
        const struct sl_trace_track *track = find_device(&trace);
        assert_non_null(track);
        assert_string_equal(track->name, "card:0");
        assert_int_equal(track->count, 4);
        for (int k = 0; k < 4; k++) {
            const struct sl_activity *activity = &track->activities[k];
            assert_string_equal(activity->name, expected[k].name);
            assert_string_equal(activity->detail, "card");
            assert_int_equal(activity->amount, expected[k].amount);
            assert_int_equal(activity->begin_ns - track->activities[0].begin_ns, expected[k].begin_ns);
            assert_int_equal(activity->end_ns - activity->begin_ns, expected[k].ns);
            assert_true(activity->begin_ns >= trace.begin_ns);
        }
        sl_trace_deinit(&trace);
    }
    close_domain(&domain);
}

/* More calls than there are events wait for the device once, and none is lost. */
static void many_calls_are_settled_on_the_way(void **state)
{
    (void)state;
    enum { CALLS = 5000 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    struct sl_trace trace;
    open_domain(&domain);
    ok(sl_trace_start(SL_TRACE_PHASES, CALLS + 10, &err), &err);
    for (int k = 0; k < CALLS; k++)
        make_call(&domain, "a", 3, k);
    sl_trace_stop(&trace);
    const struct sl_trace_track *track = find_device(&trace);
    assert_int_equal(track->count, CALLS);
    for (int k = 0; k < CALLS; k++)
        assert_int_equal(track->activities[k].amount, k);
    assert_true(event_count < 2 * CALLS);
    sl_trace_deinit(&trace);
    close_domain(&domain);
}

/* A domain that is closed while something is recorded is not asked when the recording ends. */
static void a_closed_domain_is_forgotten(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    struct sl_trace trace;
    open_domain(&domain);
    ok(sl_trace_start(SL_TRACE_CALLS, 50, &err), &err);
    make_call(&domain, "a", 100, 4);
    close_domain(&domain);
    written[0] = '\0';
    sl_trace_stop(&trace);
    expect_written("");
    sl_trace_deinit(&trace);
}

/* ---- captures that are timed ------------------------------------------------------------------------------------- */

struct calls {
    int made, fails_at;
};

static seqlstm_status make_calls(void *context, struct seqlstm_error *err)
{
    struct calls *calls = context;
    note("call\n");
    if (++calls->made == calls->fails_at)
        return seqlstm_error_set(err, SEQLSTM_UNSUPPORTED, "d.c", 1, "this call cannot be captured");
    return SEQLSTM_OK;
}

/* Four of them in a capture, whose second launch is timed. */
static void a_replay_is_a_quarter_of_its_capture(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_domain domain;
    struct calls calls = {0};
    void *capture = NULL;
    double ns = 0;
    open_domain(&domain);
    ok(sl_replay_record(&domain, make_calls, &calls, &capture, &err), &err);
    assert_ptr_equal(capture, &the_capture);
    expect_written("finish queue\nbegin on queue\ncall\ncall\ncall\ncall\nend on queue\n");
    ok(sl_replay_time(&domain, capture, &ns, &err), &err);
    expect_written("launch on queue\nrecord 0 on queue\nlaunch on queue\nrecord 1 on queue\nfinish queue\n");
    assert_true(ns == 6000 / 4.0);
    assert_int_equal(live_events, 0);
    sl_domain_drop_capture(&domain, capture);
    close_domain(&domain);
}

/* The first failure is told, nothing is left, and the device is no longer in a capture. */
static void what_cannot_be_captured_is_given_up(void **state)
{
    (void)state;
    static const struct {
        int call_fails, device_fails; /* at this call */
        seqlstm_status status;
        const char *message, *written;
    } rows[] = {
        {2, 0, SEQLSTM_UNSUPPORTED, "this call cannot be captured",
         "finish queue\nbegin on queue\ncall\ncall\nend on queue\n"},
        {0, 3, SEQLSTM_DEVICE, "the device is gone",
         "finish queue\nbegin on queue\ncall\ncall\ncall\ncall\nend on queue\n"},
        {4, 3, SEQLSTM_UNSUPPORTED, "this call cannot be captured",
         "finish queue\nbegin on queue\ncall\ncall\ncall\ncall\nend on queue\n"},
        {0, 2, SEQLSTM_DEVICE, "the device is gone", "finish queue\nbegin on queue\n"},
        {0, 1, SEQLSTM_DEVICE, "the device is gone", "finish queue\n"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_domain domain;
        struct calls calls = {.fails_at = rows[k].call_fails};
        void *capture = NULL;
        open_domain(&domain);
        fails_at = rows[k].device_fails;
        assert_int_equal(sl_replay_record(&domain, make_calls, &calls, &capture, &err), rows[k].status);
        assert_string_equal(err.message, rows[k].message);
        expect_written(rows[k].written);
        assert_null(capture);
        assert_false(domain.is_capturing);
        close_domain(&domain);
    }
    for (int call = 1; call <= 8; call++) { /* of timing: both events are gone each time */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_domain domain;
        double ns;
        open_domain(&domain);
        fails_at = call;
        assert_int_equal(sl_replay_time(&domain, &the_capture, &ns, &err), SEQLSTM_DEVICE);
        assert_int_equal(live_events, 0);
        close_domain(&domain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_is_a_stream_of_its_own),       cmocka_unit_test(waits_for_events_are_seen),
        cmocka_unit_test(calls_have_the_times_of_the_device),  cmocka_unit_test(many_calls_are_settled_on_the_way),
        cmocka_unit_test(a_closed_domain_is_forgotten),        cmocka_unit_test(a_replay_is_a_quarter_of_its_capture),
        cmocka_unit_test(what_cannot_be_captured_is_given_up),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
