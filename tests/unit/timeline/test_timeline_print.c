/* SPDX-License-Identifier: Apache-2.0 */
/* What core/timeline prints of recordings that the test makes up, as a whole: tables, sentences, JSON, the trace and
 * the section of a page.
 */
#include <math.h>

#include "golden.h"
#include "oom.h"

#include "timeline/print.h"
#include "timeline/timeline.h"

enum { US = 1000 };

static struct sl_activity activities[3][64];
static struct sl_trace_sample memory[] = {{0, 1 << 20}, {250 * US, 5 << 20}, {500 * US, 3 << 20}};
static struct sl_plan plan = {.memory = {.peak_bytes = 4 << 20}};

/* Times in microseconds. */
static void add(struct sl_trace *trace, int track, enum sl_activity_kind kind, const char *name, int64_t begin,
                int64_t end, int64_t amount)
{
    trace->tracks[track].activities[trace->tracks[track].count++] =
        (struct sl_activity){.begin_ns = begin * US, .end_ns = end * US, .name = name, .amount = amount, .kind = kind};
}

static struct sl_trace make_trace(int tracks)
{
    struct sl_trace trace = {.track_count = tracks, .memory = memory, .memory_count = 3, .end_ns = 1000 * US};
    trace.tracks[0] = (struct sl_trace_track){.name = "seqlstm", .activities = activities[0]};
    trace.tracks[1] = (struct sl_trace_track){.name = "seqlstm-1", .activities = activities[1], .dropped = 2};
    trace.tracks[2] = (struct sl_trace_track){.name = "cuda:0", .is_device = true, .activities = activities[2]};
    return trace;
}

/* Updates of 100 us with every kind of part; each third one saves. */
static void add_updates(struct sl_trace *trace, int updates)
{
    for (int u = 0; u < updates; u++) {
        const int64_t at = 10 + 110 * u;
        add(trace, 0, SL_ACTIVITY_FETCH, NULL, at, at + 6, 0);
        add(trace, 0, SL_ACTIVITY_COPY, "to <the> host", at + 20, at + 30, 900);
        add(trace, 0, SL_ACTIVITY_FORWARD, "reader", at + 8, at + 38, 50);
        add(trace, 0, SL_ACTIVITY_FORWARD, "output", at + 38, at + 44, 50);
        activities[0][trace->tracks[0].count - 1].detail = "<its> & own";
        add(trace, 0, SL_ACTIVITY_BACKWARD, "output", at + 44, at + 52, 50);
        add(trace, 0, SL_ACTIVITY_BACKWARD, "reader", at + 52, at + 92, 50);
        if (u % 3 == 2)
            add(trace, 0, SL_ACTIVITY_REPORT, NULL, at + 93, at + 97, 0);
        add(trace, 0, SL_ACTIVITY_UPDATE, NULL, at, at + 100, 50);
        add(trace, 1, SL_ACTIVITY_WORK, NULL, at + 10, at + 50 + 5 * u, 0);
        add(trace, 2, SL_ACTIVITY_DEVICE, "gemm", at + 12, at + 22, 0);
        add(trace, 2, SL_ACTIVITY_DEVICE, "gemm", at + 22, at + 30, 0);
        add(trace, 2, SL_ACTIVITY_DEVICE, "cell", at + 30, at + 34, 0);
        add(trace, 2, SL_ACTIVITY_FORWARD, "reader", at + 12, at + 34, 50);
    }
}

static void print_all(struct sl_buf *out, const char *title, const struct sl_timeline *timeline,
                      const struct sl_timeline_advices *advices)
{
    sl_buf_printf(out, "%s== %s\n", out->length_bytes ? "\n" : "", title);
    sl_timeline_print_sentence(timeline, advices, "seqlstm profile m.yaml", out);
    sl_timeline_print_table(timeline, out);
    if (advices)
        sl_timeline_print_advices(advices, out);
    sl_timeline_print_json(timeline, advices, out);
    sl_buf_append_char(out, '\n');
    sl_timeline_print_trace(timeline, out);
    sl_buf_append_char(out, '\n');
    sl_timeline_print_section(timeline, advices, out);
}

static struct sl_timeline *make(struct sl_trace *trace, double gflops, double gbytes,
                                struct sl_timeline_slowdown slowdown)
{
    const struct sl_timeline_request request = {.trace = trace,
                                                .plan = &plan,
                                                .peaks = {.gflops = gflops, .gbytes = gbytes},
                                                .optimizer_states = 2,
                                                .slowdown = slowdown};
    struct sl_timeline *timeline = NULL;
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    return timeline;
}

/* Steps of a device, call by call and in captures. Kernels of two streams overlap. */
static void print_captured(struct sl_buf *out)
{
    static struct sl_activity host[16], device[16];
    struct sl_trace calls = make_trace(3), captured = {.track_count = 2,
                                                       .memory = memory,
                                                       .memory_count = 3,
                                                       .begin_ns = 500 * US,
                                                       .end_ns = 900 * US};
    captured.tracks[0] = (struct sl_trace_track){.name = "seqlstm", .activities = host, .dropped = 3};
    captured.tracks[1] = (struct sl_trace_track){.name = "cuda:0", .is_device = true, .activities = device};
    add_updates(&calls, 2);
    add(&calls, 2, SL_ACTIVITY_DEVICE, "copy to the device", 15, 60, 4096);
    for (int u = 0; u < 3; u++) {
        const int64_t at = 510 + 50 * u;
        add(&captured, 0, SL_ACTIVITY_FETCH, NULL, at, at + 2, 0);
        add(&captured, 0, SL_ACTIVITY_LAUNCH, "captured step", at + 2, at + 7, 0);
        add(&captured, 0, SL_ACTIVITY_WAIT, "cuda:0", at + 7, at + 44, 0);
        add(&captured, 0, SL_ACTIVITY_UPDATE, NULL, at, at + 48, 50);
        add(&captured, 1, SL_ACTIVITY_LAUNCH, "captured step", at + 3, at + 43, 0);
    }
    const struct sl_timeline_request request = {
        .trace = &calls,
        .plan = &plan,
        .peaks = {.gflops = 100, .gbytes = 0.1},
        .slowdown = {0.3, 0.25, 0.35},
        .captured = {.trace = &captured, .slowdown = {0.004, -0.001, 0.009}},
    };
    struct sl_timeline *timeline = NULL;
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    print_all(out, "in captures", timeline, NULL);
    sl_timeline_destroy(timeline);
}

/* A thread that helps is the first; the one that trains has work of its own. There are a rate below one, no samples of
 * memory, one activity that did not fit, and kernels of which a third overlaps with the second. */
static void print_sparse(struct sl_buf *out)
{
    struct sl_trace trace = make_trace(3);
    const struct sl_trace_track helper = trace.tracks[1];
    trace.tracks[1] = trace.tracks[0];
    trace.tracks[0] = helper;
    trace.tracks[0].dropped = 1;
    trace.memory_count = 0;
    trace.cpu_ns = 250 * US;
    add(&trace, 0, SL_ACTIVITY_WORK, NULL, 20, 60, 0);
    add(&trace, 1, SL_ACTIVITY_COPY, "slowly", 110, 120, 2400);
    add(&trace, 1, SL_ACTIVITY_WORK, NULL, 131, 149, 0);
    add(&trace, 1, SL_ACTIVITY_FORWARD, "reader", 130, 150, 5);
    add(&trace, 1, SL_ACTIVITY_UPDATE, NULL, 100, 200, 5);
    add(&trace, 2, SL_ACTIVITY_DEVICE, "first", 110, 120, 0);
    add(&trace, 2, SL_ACTIVITY_DEVICE, "second", 122, 140, 0);
    add(&trace, 2, SL_ACTIVITY_DEVICE, "third", 125, 130, 0);
    struct sl_timeline *timeline = make(&trace, 1, 1, (struct sl_timeline_slowdown){0.02, NAN, NAN});
    print_all(out, "a thread that helps is the first", timeline, NULL);
    sl_timeline_destroy(timeline);
}

static void test_print(void **state)
{
    static const struct sl_timeline_advices advices = {
        .count = 3,
        .items = {{.change = "--threads 2",
                   .note = "\"quiet\" & small",
                   .speed = 1.5,
                   .low = 1.4,
                   .high = 1.625,
                   .helps = true},
                  {.change = "--set data.batch_size=8", .speed = 1.02, .low = 0.99, .high = 1.05},
                  {.change = "--backend other", .speed = 0.5, .low = 0.4, .high = 0.6}}};
    static const struct sl_timeline_advices none = {.count = 0};
    struct sl_trace trace = make_trace(3);
    struct sl_buf out = {0};
    (void)state;
    add_updates(&trace, 4);
    struct sl_timeline *timeline = make(&trace, 100, 0.1, (struct sl_timeline_slowdown){0.05, 0.04, 0.06});
    print_all(&out, "a device", timeline, &advices);
    sl_timeline_destroy(timeline);
    trace = make_trace(2);
    add(&trace, 0, SL_ACTIVITY_FETCH, NULL, 0, 60, 0);
    add(&trace, 0, SL_ACTIVITY_FORWARD, "reader", 60, 80, 5);
    add(&trace, 0, SL_ACTIVITY_BACKWARD, "reader", 80, 99, 5);
    add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 100, 5);
    trace.tracks[1].dropped = 0;
    timeline = make(&trace, 0, 0, (struct sl_timeline_slowdown){NAN, NAN, NAN});
    print_all(&out, "waiting for data", timeline, &none);
    print_all(&out, "nothing tried", timeline, NULL);
    sl_timeline_destroy(timeline);
    trace = make_trace(3);
    for (int k = 0; k < 36; k++) { /* more parts, and more kernels, than a table has rows; in three updates */
        static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
        const int64_t at = 200 + 140 * (k / 12) + 10 * (k % 12);
        add(&trace, 0, SL_ACTIVITY_FORWARD, names[k % 12], at, at + 5 + k % 4, 5);
        if (k % 7 != 3)
            add(&trace, 2, SL_ACTIVITY_DEVICE, names[(k + 3) % 12], at + 1, at + 2 + k % 5, 0);
        if (k % 12 == 11)
            add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, at - 110, at + 10 + k / 2, 7);
    }
    timeline = make(&trace, 1, 1, (struct sl_timeline_slowdown){-0.001, NAN, NAN});
    print_all(&out, "many parts", timeline, NULL);
    sl_timeline_destroy(timeline);
    trace = make_trace(1); /* too short to be drawn one by one */
    for (int k = 0; k < 40; k++)
        add(&trace, 0, SL_ACTIVITY_FORWARD, k % 2 ? "a" : "b", 10 + k, 11 + k, 5);
    add(&trace, 0, SL_ACTIVITY_FORWARD, "c", 60, 90000, 5);
    add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 100000, 7);
    timeline = make(&trace, 1, 1, (struct sl_timeline_slowdown){-0.001, NAN, NAN});
    print_all(&out, "short parts", timeline, NULL);
    sl_timeline_destroy(timeline);
    print_captured(&out);
    print_sparse(&out);
    golden_expect("reports/timeline.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* trace.json of a recording that begins late: times from its begin, the backend and the size of each kind of activity,
 * threads by name, and counters. */
static void test_trace(void **state)
{
    enum { BEGIN = 5000 };
    static struct sl_trace_count counts[] = {{"power", (BEGIN + 30) * US, 61.5},
                                             {"a \"clock\"", (BEGIN + 80) * US, 1e9}};
    static struct sl_trace_sample late[] = {{(BEGIN + 10) * US, 1 << 20}};
    struct sl_trace trace = make_trace(3);
    struct sl_buf out = {0};
    (void)state;
    trace.begin_ns = BEGIN * US;
    trace.end_ns = (BEGIN + 200) * US;
    trace.memory = late;
    trace.memory_count = 1;
    trace.counts = counts;
    trace.count_count = 2;
    for (int kind = 0; kind < SL_ACTIVITY_KINDS; kind++) {
        const int64_t at = BEGIN + 10 + 2 * kind;
        const bool on_device = kind == SL_ACTIVITY_DEVICE;
        if (kind == SL_ACTIVITY_UPDATE)
            continue;
        add(&trace, on_device ? 2 : 0, (enum sl_activity_kind)kind, kind % 2 ? "<name>" : NULL, at, at + 1, 100 + kind);
        activities[on_device ? 2 : 0][trace.tracks[on_device ? 2 : 0].count - 1].detail = kind % 3 ? "cpu-blas" : NULL;
    }
    add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, BEGIN, BEGIN + 190, 7);
    struct sl_timeline *timeline = make(&trace, 1, 1, (struct sl_timeline_slowdown){NAN, NAN, NAN});
    sl_timeline_print_trace(timeline, &out);
    sl_timeline_destroy(timeline);
    golden_expect("reports/trace.txt", "{", sl_buf_text(&out));
    sl_buf_deinit(&out);
    memset(activities, 0, sizeof activities);
}

static void test_times(void **state)
{
    static const double round[] = {0, 0.4, 1, 999, 999.6, 1000, 9995, 1e6};
    char text[32];
    struct sl_buf out = {0};
    (void)state;
    for (size_t k = 0; k < sizeof round / sizeof *round; k++) {
        sl_timeline_format_time(round[k], text, sizeof text);
        sl_buf_printf(&out, "%.6g: %s\n", round[k], text);
    }
    for (double ns = 1.2345; ns < 1e12; ns *= 9.97) {
        sl_timeline_format_time(ns, text, sizeof text);
        sl_buf_printf(&out, "%.6g: %s\n", ns, text);
    }
    golden_expect("reports/times.txt", "", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
