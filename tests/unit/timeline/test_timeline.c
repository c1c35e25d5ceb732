/* SPDX-License-Identifier: Apache-2.0 */
/* core/timeline on recordings that the test makes up: parts and what is not attributed, threads and devices, limits,
 * the sentence, and the two kinds of JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "timeline/limits.h"
#include "timeline/print.h"
#include "timeline/timeline.h"
#include "oom.h"
#include "timeline_fixture.h"

static void test_parts(void **state)
{
    struct sl_trace trace = make_trace();
    (void)state;
    add_updates(&trace);
    struct sl_timeline *timeline = make(&trace, 0.01);
    assert_int_equal(timeline->updates, 2);
    assert_int_equal(timeline->rows, 100);
    assert_true(timeline->ns == 200 * US);
    assert_true(timeline->unattributed_ns == 8 * US);
    assert_int_equal(timeline->order_count, 3);
    assert_int_equal(timeline->parts[timeline->order[0]].kind, SL_ACTIVITY_FORWARD);
    assert_int_equal(timeline->parts[timeline->order[2]].kind, SL_ACTIVITY_FETCH);
    const struct sl_timeline_part *forward = find(timeline, SL_ACTIVITY_FORWARD);
    assert_int_equal(forward->count, 2);
    assert_true(forward->ns == 120 * US && forward->self_ns == 80 * US);
    const struct sl_timeline_part *copy = find(timeline, SL_ACTIVITY_COPY);
    assert_int_equal(copy->depth, 2);
    assert_true(copy->ns == 40 * US && copy->bytes == 2000);
    assert_null(find(timeline, SL_ACTIVITY_REPORT));
    assert_true(timeline->tracks[0].trains && timeline->tracks[0].busy_ns == 180 * US); /* without waiting */
    assert_true(timeline->tracks[1].busy_ns == 80 * US);
    assert_int_equal(timeline->dropped, 2);
    assert_int_equal(timeline->memory_bytes, 3 << 20);
    sl_timeline_destroy(timeline);
}

/* The calls of a step are parts of the update, and what the step does itself is one more. */
static void test_step(void **state)
{
    struct sl_trace trace = make_trace();
    struct sl_trace_track *track = &trace.tracks[0];
    char name[64];
    (void)state;
    for (int64_t at = 10; at < 400; at += 200) {
        add(track, SL_ACTIVITY_FETCH, NULL, at, at + 5, 0);
        add(track, SL_ACTIVITY_COPY, "to the host", at + 20, at + 30, 1000);
        add(track, SL_ACTIVITY_FORWARD, "a", at + 12, at + 50, 5);
        add(track, SL_ACTIVITY_BACKWARD, "a", at + 53, at + 98, 5);
        add(track, SL_ACTIVITY_STEP, NULL, at + 10, at + 100, 5);
        add(track, SL_ACTIVITY_UPDATE, NULL, at, at + 200, 5);
    }
    struct sl_timeline *timeline = make(&trace, NAN);
    const struct sl_timeline_part *step = find(timeline, SL_ACTIVITY_STEP);
    const struct sl_timeline_part *forward = find(timeline, SL_ACTIVITY_FORWARD);
    assert_true(step->depth == 1 && step->count == 2);
    assert_true(step->ns == 2 * 7 * US && step->self_ns == step->ns);
    sl_timeline_part_format(step, name, sizeof name);
    assert_string_equal(name, "between calls");
    assert_true(forward->depth == 1 && forward->parent == 0 && forward->ns == 2 * 38 * US);
    assert_true(find(timeline, SL_ACTIVITY_COPY)->depth == 2);
    assert_int_equal(timeline->order_count, 4);
    assert_true(timeline->unattributed_ns == 2 * 105 * US);
    assert_true(timeline->tracks[0].busy_ns == 2 * 83 * US); /* in calls */
    sl_timeline_destroy(timeline);
}

/* Work of one name on two backends, and of one backend under two names, is apart; the same again is one part. */
static void test_parts_of_backends(void **state)
{
    struct sl_trace trace = make_trace();
    static const struct {
        const char *name, *backend;
        int64_t begin, end;
    } calls[] = {
        {"a", "one", 0, 10}, {"a", "two", 10, 30}, {"b", "one", 30, 60}, {"a", "one", 60, 65}, {"a", NULL, 70, 77}};
    (void)state;
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        add(&trace.tracks[0], SL_ACTIVITY_FORWARD, calls[k].name, calls[k].begin, calls[k].end, 0);
        work[trace.tracks[0].count - 1].detail = calls[k].backend;
    }
    add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 0, 100, 1);
    struct sl_timeline *timeline = make(&trace, NAN);
    static const int64_t us[4] = {15, 20, 30, 7};
    assert_int_equal(timeline->part_count, 5);
    for (int p = 0; p < 4; p++) {
        assert_true(timeline->parts[p + 1].ns == us[p] * US);
        assert_int_equal(timeline->parts[p + 1].count, p == 0 ? 2 : 1);
    }
    sl_timeline_destroy(timeline);
}

/* 1000 bytes in 20 us are half of 0.1 GB/s. A training that does the same again and again has the same limits. */
static void check_limits(int updates)
{
    struct sl_trace trace = make_trace();
    char text[64];
    for (int u = 0; u < updates; u++) {
        const int64_t at = 300 * u;
        add(&trace.tracks[0], SL_ACTIVITY_COPY, "half", at, at + 20, 1000);
        add(&trace.tracks[0], SL_ACTIVITY_COPY, "small", at + 20, at + 40, 100);
        add(&trace.tracks[0], SL_ACTIVITY_COPY, "slow", at + 40, at + 240, 1000);
        add(&trace.tracks[0], SL_ACTIVITY_COPY, "cache", at + 240, at + 260, 10000);
        add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, at, at + 300, 1);
    }
    struct sl_timeline *timeline = make(&trace, NAN);
    static const struct {
        const char *name, *text;
    } expected[] = {{"half", "waits for memory, 50 % of peak"},
                    {"small", "too small, 5 % of peak"},
                    {"slow", "5 % of peak"},
                    {"cache", "works in the caches"}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++)
        for (int32_t p = 1; p < timeline->part_count; p++)
            if (strcmp(timeline->parts[p].name, expected[k].name) == 0) {
                sl_timeline_part_format_limit(&timeline->parts[p], text, sizeof text);
                assert_string_equal(text, expected[k].text);
            }
    assert_int_equal(timeline->part_count, 5);
    sl_timeline_destroy(timeline);
}

static void test_limits(void **state)
{
    (void)state;
    for (int updates = 1; updates <= 9; updates += 4)
        check_limits(updates);
}

/* A call is held against what it computes on: vectors, or tiles with so many products for one. */
static void test_tiles(void **state)
{
    static const struct {
        const char *variant;
        uint32_t compute;
        double peak;
    } cases[] = {{"packed", SEQLSTM_DTYPE_FLOAT32, 100},
                 {NULL, SEQLSTM_DTYPE_FLOAT32, 100},
                 {"tiles", SEQLSTM_DTYPE_FLOAT32, 200},
                 {"packed", SEQLSTM_DTYPE_TF32, 400},
                 {"default", SEQLSTM_DTYPE_BFLOAT16, 1200}};
    static const struct sl_timeline_peaks peaks = {.gflops = 100, .tiles_gflops = 1200}, none = {.gflops = 100};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct sl_node node = {.name = "d"};
        node.desc.head.dtype_compute = cases[k].compute;
        const struct sl_call call = {.node = &node, .variant = cases[k].variant};
        assert_float_equal(sl_timeline_find_peak(&peaks, &call), cases[k].peak, 1e-9);
        if (cases[k].compute != SEQLSTM_DTYPE_FLOAT32) /* without tiles nothing is known */
            assert_float_equal(sl_timeline_find_peak(&none, &call), 0, 1e-9);
    }
}

/* A call on a device counts with the time that the device worked, not with the time that starting it took. */
static void test_device(void **state)
{
    struct sl_trace trace = make_trace();
    struct sl_buf out = {0};
    (void)state;
    add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 10, 20, 5);
    add(&trace.tracks[0], SL_ACTIVITY_WAIT, "cuda:0", 20, 95, 0);
    add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 10, 110, 5);
    add(&trace.tracks[2], SL_ACTIVITY_FORWARD, "a", 15, 55, 5);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "gemm", 15, 45, 0);
    struct sl_timeline *timeline = make(&trace, NAN);
    const struct sl_timeline_part *forward = find(timeline, SL_ACTIVITY_FORWARD);
    assert_true(forward->on_device && forward->device_ns == 40 * US);
    assert_true(sl_timeline_part_get_cost(forward) == 40 * US);
    assert_true(timeline->tracks[2].is_device && timeline->tracks[2].busy_ns == 40 * US);
    assert_int_equal(timeline->kernel_count, 1);
    assert_string_equal(timeline->kernels[0].name, "gemm");
    sl_timeline_print_sentence(timeline, NULL, "seqlstm profile m.yaml", &out);
    assert_string_equal(sl_buf_text(&out), "cuda:0 works for only 40 % of the time, since the host does not start its "
                                           "work faster. a takes 40 % of the time. `seqlstm profile m.yaml` tries out "
                                           "what would be faster.\n");
    sl_buf_deinit(&out);
    sl_timeline_destroy(timeline);
}

static void expect_sentence(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                            const char *expected)
{
    struct sl_buf out = {0};
    sl_timeline_print_sentence(timeline, advices, "", &out);
    assert_string_equal(sl_buf_text(&out), expected);
    sl_buf_deinit(&out);
}

static void test_sentence(void **state)
{
    struct sl_trace trace = make_trace();
    struct sl_timeline_advices advices = {.count = 0};
    (void)state;
    trace.track_count = 2;
    add(&trace.tracks[0], SL_ACTIVITY_FETCH, NULL, 0, 60, 0);
    add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 60, 80, 5);
    add(&trace.tracks[0], SL_ACTIVITY_BACKWARD, "a", 80, 100, 5);
    add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 0, 100, 5);
    struct sl_timeline *timeline = make(&trace, NAN);
#define LIMITS                                                                                                         \
    "For 60 % of the time updates wait for their batches, which are built more slowly than they are computed. a "      \
    "takes "                                                                                                           \
    "40 % of the time. "
    expect_sentence(timeline, &advices, LIMITS "There was nothing to try out.\n");
    advices.items[advices.count++] = (struct sl_timeline_advice){.change = "--threads 2", .speed = 0.9};
    expect_sentence(timeline, &advices, LIMITS "Nothing that was tried out is faster.\n");
    advices.items[0] = (struct sl_timeline_advice){
        .change = "--threads 2", .speed = 1.8, .low = 1.7, .high = 1.9, .helps = true, .note = "quiet"};
    expect_sentence(timeline, &advices,
                    LIMITS "With `--threads 2` the training is 1.80 times as fast (measured: 1.70 to 1.90); quiet.\n");
    sl_timeline_destroy(timeline);
    /* batches are built in 70 of 100 us, then in 10 */
    add(&trace.tracks[1], SL_ACTIVITY_BATCH, NULL, 10, 80, 5);
    advices.count = 0;
    timeline = make(&trace, NAN);
    expect_sentence(timeline, &advices, LIMITS "There was nothing to try out.\n");
    sl_timeline_destroy(timeline);
    trace.tracks[1].activities[0].end_ns = 20 * US;
    timeline = make(&trace, NAN);
    expect_sentence(timeline, &advices,
                    "For 60 % of the time updates wait for their batches, whose thread works for only 10 %: it waits "
                    "for a processor. a takes 40 % of the time. There was nothing to try out.\n");
    sl_timeline_destroy(timeline);
}

/* Kernels count from the first update to the end of the last one, by name, the longest first. */
static void test_kernels_within_the_updates(void **state)
{
    struct sl_trace trace = make_trace();
    (void)state;
    add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 10, 20, 5);
    add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 10, 110, 5);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "gemm", 2, 9, 0);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "early", 5, 12, 0);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "cell", 10, 14, 0);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "gemm", 20, 23, 0);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "gemm", 100, 110, 0);
    add(&trace.tracks[2], SL_ACTIVITY_DEVICE, "late", 108, 112, 0);
    struct sl_timeline *timeline = make(&trace, NAN);
    assert_int_equal(timeline->kernel_count, 2);
    assert_string_equal(timeline->kernels[0].name, "gemm");
    assert_true(timeline->kernels[0].count == 2 && timeline->kernels[0].ns == 13 * US);
    assert_string_equal(timeline->kernels[1].name, "cell");
    assert_true(timeline->kernels[1].count == 1 && timeline->kernels[1].ns == 4 * US);
    sl_timeline_destroy(timeline);
}

/* Of 100 us one layer takes `layer`, and a part that may limit `share`; the thread that builds batches has 10. What is
 * told of them. */
static void test_what_is_worth_a_sentence(void **state)
{
    static const struct {
        enum sl_activity_kind kind;
        int64_t layer, share;
        const char *told;
    } rows[] = {
        {SL_ACTIVITY_COPY, 40, 15, ""},
        {SL_ACTIVITY_COPY, 29, 15, "For 15 % of the time values are copied between memories. "},
        {SL_ACTIVITY_COPY, 29, 14, ""},
        {SL_ACTIVITY_COPY, 20, 14, ""},
        {SL_ACTIVITY_COPY, 45, 40, "For 40 % of the time values are copied between memories. "},
        {SL_ACTIVITY_EXCHANGE, 45, 40, "For 40 % of the time ranks exchange gradients, or wait for each other. "},
        {SL_ACTIVITY_FETCH, 45, 40,
         "For 40 % of the time updates wait for their batches, whose thread works for only 10 %: it waits for a "
         "processor. "},
        {SL_ACTIVITY_COPY, 4, 3, NULL},
        {SL_ACTIVITY_COPY, 4, 60, "For 60 % of the time values are copied between memories. "},
        {SL_ACTIVITY_COPY, 5, 3, ""},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_trace trace = make_trace();
        struct sl_buf expected = {0};
        trace.track_count = 2;
        add(&trace.tracks[0], rows[k].kind, NULL, 0, rows[k].share, 0);
        const int64_t half = 100 - rows[k].layer / 2;
        add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 100 - rows[k].layer, half, 5);
        add(&trace.tracks[0], SL_ACTIVITY_BACKWARD, "a", half, 100, 5);
        add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 0, 100, 5);
        add(&trace.tracks[1], SL_ACTIVITY_BATCH, NULL, 30, 40, 5);
        struct sl_timeline *timeline = make(&trace, NAN);
        sl_buf_append_text(&expected, rows[k].told ? rows[k].told : "");
        if (rows[k].layer >= 5)
            sl_buf_printf(&expected, "a takes %d %% of the time. ", (int)rows[k].layer);
        sl_buf_append_text(&expected, "`` tries out what would be faster.\n");
        expect_sentence(timeline, NULL, sl_buf_text(&expected));
        sl_buf_deinit(&expected);
        sl_timeline_destroy(timeline);
    }
}

/* A mebibyte has 1,048,576 bytes, also where the difference shows. */
static void test_memory_is_told_in_mebibytes(void **state)
{
    static struct sl_trace_sample much[] = {{0, INT64_C(7) << 20}, {200 * US, INT64_C(600) << 20}, {500 * US, 1 << 20}};
    struct sl_trace trace = make_trace();
    struct sl_plan large = {.memory = {.peak_bytes = INT64_C(1000) << 20}};
    struct sl_timeline *timeline = NULL;
    struct sl_buf table = {0}, page = {0};
    (void)state;
    trace.memory = much;
    trace.memory_count = 3;
    add_updates(&trace);
    const struct sl_timeline_request request = {.trace = &trace, .plan = &large};
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    sl_timeline_print_table(timeline, &table);
    sl_timeline_print_section(timeline, NULL, &page);
    assert_non_null(strstr(sl_buf_text(&table), "memory: 600 MiB held, 1000 MiB predicted\n"));
    assert_non_null(strstr(sl_buf_text(&page), "Memory: 600 MiB held (line), 1000 MiB predicted for the whole run"));
    sl_buf_deinit(&table);
    sl_buf_deinit(&page);
    sl_timeline_destroy(timeline);
}

/* Of a device, wherever its track is, of which nothing is known: as the recording says, or else the backend. */
static void test_kernels_that_are_not_told(void **state)
{
    (void)state;
    for (int device_track = 0; device_track < 4; device_track++)
        for (int noted = 0; noted < 2; noted++) {
            struct sl_trace trace = make_trace();
            add_updates(&trace);
            for (int t = 0; t < 3; t++) /* 3: there is none */
                trace.tracks[t].is_device = t == device_track;
            if (noted)
                snprintf(trace.note, sizeof trace.note, "no permission");
            struct sl_timeline *timeline = make(&trace, NAN);
            if (device_track == 3)
                assert_null(timeline->kernels_missing);
            else
                assert_string_equal(timeline->kernels_missing,
                                    noted ? "no permission" : "the backend does not report them");
            sl_timeline_destroy(timeline);
        }
}

/* What begins and ends with its update is a part of it, whichever was noted first. */
static void test_a_call_as_long_as_its_update(void **state)
{
    (void)state;
    for (int swaps = 0; swaps < 2; swaps++) {
        struct sl_trace trace = make_trace();
        for (int k = 0; k < 2; k++)
            if ((k == 0) == (swaps == 0))
                add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 10, 60, 5);
            else
                add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 10, 60, 5);
        struct sl_timeline *timeline = make(&trace, NAN);
        assert_int_equal(timeline->updates, 1);
        assert_int_equal(timeline->part_count, 2);
        assert_int_equal(timeline->parts[1].kind, SL_ACTIVITY_FORWARD);
        assert_int_equal(timeline->parts[1].parent, 0);
        assert_true(timeline->parts[1].ns == 50 * US && timeline->parts[0].self_ns == 0);
        sl_timeline_destroy(timeline);
    }
}

/* Kernels of two devices, of which some overlap, are on threads that no other has, each named after its device. */
static void test_kernels_have_threads_of_their_own(void **state)
{
    static struct sl_activity other[4];
    struct sl_trace trace = make_trace();
    struct sl_buf out = {0};
    (void)state;
    trace.tracks[3] = (struct sl_trace_track){.name = "cuda:1", .is_device = true, .activities = other};
    trace.track_count = 4;
    add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 10, 20, 5);
    add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 10, 110, 5);
    for (int t = 2; t < 4; t++) {
        add(&trace.tracks[t], SL_ACTIVITY_DEVICE, t == 2 ? "first" : "second", 20, 40, 0);
        add(&trace.tracks[t], SL_ACTIVITY_DEVICE, t == 2 ? "first" : "second", 30, 50, 0);
    }
    struct sl_timeline *timeline = make(&trace, NAN);
    sl_timeline_print_trace(timeline, &out);
    sl_timeline_destroy(timeline);
    json_t *root = json_loadb(sl_buf_text(&out), out.length_bytes, 0, NULL);
    const json_t *events = json_object_get(root, "traceEvents");
    const char *names[16] = {NULL}, *kernels[16] = {NULL};
    for (size_t k = 0; k < json_array_size(events); k++) {
        const json_t *event = json_array_get(events, k);
        const json_int_t thread = json_integer_value(json_object_get(event, "tid"));
        const char *name = json_string_value(json_object_get(event, "name"));
        assert_in_range(thread, 0, 15);
        if (strcmp(name, "thread_name") == 0) {
            assert_null(names[thread]);
            names[thread] = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
        }
        if (strstr(name, "first") || strstr(name, "second")) {
            assert_null(kernels[thread]);
            kernels[thread] = name;
        }
    }
    static const char *const expected[] = {"cuda:0, kernels 1", "cuda:0, kernels 2", "cuda:1, kernels 1",
                                           "cuda:1, kernels 2"};
    for (int k = 0; k < 4; k++) {
        assert_string_equal(names[5 + k], expected[k]);
        assert_non_null(strstr(kernels[5 + k], k < 2 ? "first" : "second"));
    }
    json_decref(root);
    sl_buf_deinit(&out);
}

static json_t *parse(struct sl_buf *out)
{
    json_t *root = json_loadb(sl_buf_text(out), out->length_bytes, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    sl_buf_deinit(out);
    return root;
}

static void test_json(void **state)
{
    struct sl_trace trace = make_trace();
    struct sl_timeline_advices advices = {.count = 1, .items = {{.change = "--threads \"2\"", .speed = 2}}};
    struct sl_buf out = {0};
    (void)state;
    add_updates(&trace);
    struct sl_timeline *timeline = make(&trace, NAN);
    sl_timeline_print_json(timeline, &advices, &out);
    json_t *root = parse(&out);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "seqlstm.profile/1");
    assert_true(fabs(json_number_value(json_object_get(root, "unattributed")) - 0.04) < 1e-12);
    assert_true(json_is_null(json_object_get(root, "slowdown")));
    assert_int_equal(json_array_size(json_object_get(root, "parts")), 5);
    assert_int_equal(json_array_size(json_object_get(root, "threads")), 3);
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(root, "advices"), 0), "change")),
        "--threads \"2\"");
    json_decref(root);
    sl_timeline_print_trace(timeline, &out);
    root = parse(&out);
    const json_t *events = json_object_get(root, "traceEvents"), *event;
    size_t index;
    int64_t complete = 0, counters = 0, names = 0;
    json_array_foreach(events, index, event)
    {
        const char phase = json_string_value(json_object_get(event, "ph"))[0];
        complete += phase == 'X';
        counters += phase == 'C';
        names += phase == 'M';
        if (phase == 'X')
            assert_true(json_number_value(json_object_get(event, "dur")) >= 0);
    }
    assert_int_equal(complete, trace.tracks[0].count + trace.tracks[1].count);
    assert_int_equal(counters, 2);
    assert_int_equal(names, 4); /* three tracks and the process */
    json_decref(root);
    sl_timeline_destroy(timeline);
}

static void test_nothing(void **state)
{
    struct sl_trace trace = make_trace();
    const struct sl_timeline_request request = {.trace = &trace, .plan = &plan};
    struct sl_timeline *timeline = NULL;
    (void)state;
    add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 10, 20, 5);
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_NOT_FOUND);
    add(&trace.tracks[0], SL_ACTIVITY_WAIT, NULL, 31, 39, 0); /* for a step that was started before */
    add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 30, 40, 5);
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_NOT_FOUND);
}

/* Of the layer that takes longest, the pass is named which takes most of it. */
static void test_the_longer_pass_is_named(void **state)
{
    static const struct {
        int64_t forward, backward;
        const char *told;
    } rows[] = {{50, 30, "a takes 80 % of the time; its forward pass: compute-bound, 71 % of peak. "},
                {30, 50, "a takes 80 % of the time; its backward pass: waits for memory, 60 % of peak. "}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_trace trace = make_trace();
        struct sl_buf expected = {0};
        trace.track_count = 1;
        add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "b", 0, 10, 5);
        add(&trace.tracks[0], SL_ACTIVITY_FORWARD, "a", 10, 10 + rows[k].forward, 5);
        add(&trace.tracks[0], SL_ACTIVITY_BACKWARD, "a", 10 + rows[k].forward, 90, 5);
        add(&trace.tracks[0], SL_ACTIVITY_UPDATE, NULL, 0, 100, 5);
        struct sl_timeline *timeline = make(&trace, NAN);
        for (int32_t p = 1; p < timeline->part_count; p++) {
            const bool forward = timeline->parts[p].kind == SL_ACTIVITY_FORWARD;
            timeline->parts[p].limit = forward ? SL_LIMIT_COMPUTE : SL_LIMIT_MEMORY;
            timeline->parts[p].of_peak = forward ? 0.71 : 0.6;
        }
        sl_buf_printf(&expected, "%s`` tries out what would be faster.\n", rows[k].told);
        expect_sentence(timeline, NULL, sl_buf_text(&expected));
        sl_buf_deinit(&expected);
        sl_timeline_destroy(timeline);
    }
}

/* Without an update in captures what was recorded call by call is shown alone. */
static void test_nothing_in_captures(void **state)
{
    struct sl_trace trace = make_trace(), captured = {.track_count = 0, .end_ns = 1000 * US};
    const struct sl_timeline_request request = {.trace = &trace, .plan = &plan, .captured = {.trace = &captured}};
    struct sl_timeline *timeline = NULL;
    (void)state;
    add_updates(&trace);
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    assert_null(timeline->captured);
    assert_int_equal(timeline->updates, 2);
    sl_timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_parts_of_backends),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_the_longer_pass_is_named),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_nothing_in_captures),
        cmocka_unit_test(test_kernels_within_the_updates),
        cmocka_unit_test(test_what_is_worth_a_sentence),
        cmocka_unit_test(test_memory_is_told_in_mebibytes),
        cmocka_unit_test(test_kernels_that_are_not_told),
        cmocka_unit_test(test_a_call_as_long_as_its_update),
        cmocka_unit_test(test_kernels_have_threads_of_their_own),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
