/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of a plan that the test makes up compute and move, and what they are limited by, at both sides of each
 * limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "timeline/timeline.h"
#include "oom.h"

enum { X, Y, W, BIAS, TABLE, IDS, WORDS, STATE, SMALL, TENSORS };

static const char *domain = "host"; /* where all calls run */

const char *__wrap_sl_call_get_domain(const struct sl_call *call);

const char *__wrap_sl_call_get_domain(const struct sl_call *call)
{
    (void)call;
    return domain;
}

#define ROWS(n, role_)                                                                                                 \
    {                                                                                                                  \
        .role = SL_TENSOR_##role_, .axis = SL_AXIS_STEPS, .dtype = SEQLSTM_DTYPE_FLOAT32, .features = n                \
    }
#define PARAM(rows_, n)                                                                                                \
    {                                                                                                                  \
        .role = SL_TENSOR_PARAM, .axis = SL_AXIS_FREE, .dtype = SEQLSTM_DTYPE_FLOAT32, .rows = rows_, .features = n    \
    }

static struct sl_tensor tensors[TENSORS] = {
    [X] = ROWS(3, INPUT),
    [Y] = ROWS(5, ACTIVATION),
    [W] = PARAM(5, 3),
    [BIAS] = PARAM(1, 5),
    [TABLE] = PARAM(1000, 4),
    [IDS] = {.role = SL_TENSOR_INPUT, .axis = SL_AXIS_STEPS, .dtype = SEQLSTM_DTYPE_INT32, .features = 1},
    [WORDS] = ROWS(4, ACTIVATION),
    [STATE] = {.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_SEQUENCES, .dtype = SEQLSTM_DTYPE_FLOAT32, .features = 70},
    [SMALL] = {.role = SL_TENSOR_ACTIVATION, .axis = SL_AXIS_STEPS, .dtype = SEQLSTM_DTYPE_BFLOAT16, .features = 6},
};
static const int32_t dense_slots[] = {X, W, -1, BIAS, Y, STATE, SMALL}, table_slots[] = {IDS, TABLE, WORDS};
static struct sl_node nodes[2] = {{.name = "dense", .slot_count = 7, .slots = dense_slots},
                                  {.name = "words", .slot_count = 3, .slots = table_slots}};
static struct sl_graph graph = {.tensors = tensors, .tensor_count = TENSORS, .nodes = nodes, .node_count = 2};
static struct sl_call calls[2] = {{.node = &nodes[0], .variant = "packed"}, {.node = &nodes[1], .variant = "rows"}};
static union seqlstm_any_desc optimizer, norm, vector;
static struct sl_vector_call vectors[3] = {{.desc = &vector}, {.desc = &norm}, {.desc = &optimizer}};
static struct sl_plan plan = {.graph = &graph, .calls = calls, .call_count = 2, .vectors = vectors, .vector_count = 3};

static struct sl_activity host[64], device[8];

static int prepare(void **state)
{
    (void)state;
    nodes[0].desc.dense = (struct seqlstm_dense_desc){.head.op = SEQLSTM_OP_DENSE, .input = 3, .output = 5};
    nodes[0].desc.head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
    nodes[1].desc.head.op = SEQLSTM_OP_EMBEDDING;
    optimizer.head.op = SEQLSTM_OP_OPTIMIZER;
    norm.head.op = SEQLSTM_OP_SQUARED_NORM;
    vector.head.op = SEQLSTM_OP_VECTOR;
    tensors[X].features = 3;
    tensors[X].needs_grad = false;
    tensors[Y].features = 5;
    tensors[W] = (struct sl_tensor)PARAM(5, 3);
    domain = "host";
    return 0;
}

static struct sl_trace make_trace(void)
{
    struct sl_trace trace = {.track_count = 2, .end_ns = 1000000};
    trace.tracks[0] = (struct sl_trace_track){.name = "seqlstm", .activities = host};
    trace.tracks[1] = (struct sl_trace_track){.name = "cuda:0", .is_device = true, .activities = device};
    return trace;
}

static void add(struct sl_trace *trace, int track, enum sl_activity_kind kind, const char *name, int64_t begin,
                int64_t end, int64_t amount)
{
    struct sl_trace_track *to = &trace->tracks[track];
    to->activities[to->count++] =
        (struct sl_activity){.begin_ns = begin, .end_ns = end, .name = name, .amount = amount, .kind = kind};
}

static struct sl_timeline *make(struct sl_trace *trace, struct sl_timeline_peaks peaks, int32_t states)
{
    const struct sl_timeline_request request = {
        .trace = trace, .plan = &plan, .peaks = peaks, .optimizer_states = states};
    struct sl_timeline *timeline = NULL;
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    return timeline;
}

static const struct sl_timeline_part *find(const struct sl_timeline *timeline, enum sl_activity_kind kind,
                                           const char *name)
{
    for (int32_t p = 1; p < timeline->part_count; p++)
        if (timeline->parts[p].kind == kind && strcmp(timeline->parts[p].name, name) == 0)
            return &timeline->parts[p];
    fail_msg("there is no part %s", name);
    return NULL;
}

/* A row of `dense` is 3 + 5 floats and 6 halves; its parameters are 20 floats. A row of `words` is a number and 4
 * floats, and none of its table. */
static void test_what_calls_compute_and_move(void **state)
{
    static const struct {
        enum sl_activity_kind kind;
        const char *name;
        int64_t count, rows; /* calls, and rows of all of them */
        bool input_grad;
        double flop, bytes;
    } rows[] = {
        {SL_ACTIVITY_FORWARD, "dense", 1, 10, false, 300, 80 + 10 * 44},
        {SL_ACTIVITY_FORWARD, "dense", 3, 21, true, 630, 3 * 80 + 21 * 44},
        {SL_ACTIVITY_BACKWARD, "dense", 3, 21, false, 1260, 2 * (3 * 80 + 21 * 44)},
        {SL_ACTIVITY_BACKWARD, "dense", 2, 10, true, 900, 2 * (2 * 80 + 10 * 44)},
        {SL_ACTIVITY_PACK, "dense", 3, 0, true, 0, 3 * 2 * 80},
        {SL_ACTIVITY_FORWARD, "words", 3, 21, false, 0, 21 * 20},
        {SL_ACTIVITY_BACKWARD, "words", 1, 7, false, 0, 2 * 7 * 20},
        {SL_ACTIVITY_PACK, "words", 1, 0, false, 0, 2 * 16000},
        {SL_ACTIVITY_FORWARD, "other", 1, 7, false, 0, 0}, /* not in the plan */
        {SL_ACTIVITY_FETCH, "dense", 1, 7, false, 0, 0},   /* no call */
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_trace trace = make_trace();
        tensors[X].needs_grad = rows[k].input_grad;
        for (int64_t c = 0; c < rows[k].count; c++)
            add(&trace, 0, rows[k].kind, rows[k].name, 100 * c, 100 * c + 50, rows[k].rows / rows[k].count);
        add(&trace, 0, SL_ACTIVITY_SAMPLE, NULL, 900, 950, 0);
        add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 1000, 1);
        struct sl_timeline *timeline = make(&trace, (struct sl_timeline_peaks){1, 0, 1}, 0);
        const struct sl_timeline_part *part = find(timeline, rows[k].kind, rows[k].name);
        if (part->flop != rows[k].flop || part->bytes != rows[k].bytes)
            fail_msg("row %d: %g operations, %g bytes", (int)k, part->flop, part->bytes);
        const double ns = 50 * (double)rows[k].count;
        assert_float_equal(part->gflops, rows[k].flop / ns, 1e-9);
        assert_float_equal(part->gbytes, rows[k].bytes / ns, 1e-9);
        sl_timeline_destroy(timeline);
    }
}

/* Calls inside of others are part of these, and count nothing of their own. */
static void test_calls_within_calls(void **state)
{
    struct sl_trace trace = make_trace();
    (void)state;
    add(&trace, 0, SL_ACTIVITY_FORWARD, "dense", 10, 20, 5);
    add(&trace, 0, SL_ACTIVITY_SAMPLE, "words", 5, 60, 5);
    add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 100, 5);
    struct sl_timeline *timeline = make(&trace, (struct sl_timeline_peaks){1, 0, 1}, 0);
    const struct sl_timeline_part *inner = find(timeline, SL_ACTIVITY_FORWARD, "dense");
    assert_int_equal(inner->depth, 2);
    assert_true(inner->flop == 0 && inner->bytes == 0 && inner->variant == NULL);
    sl_timeline_destroy(timeline);
}

/* Floats for each element, by operation and number of states that the optimizer keeps. */
static void test_what_the_optimizer_moves(void **state)
{
    static const struct {
        uint32_t op;
        int32_t states;
        double floats;
    } rows[] = {{SEQLSTM_OP_OPTIMIZER, 0, 3},    {SEQLSTM_OP_OPTIMIZER, 1, 5}, {SEQLSTM_OP_OPTIMIZER, 2, 7},
                {SEQLSTM_OP_SQUARED_NORM, 2, 1}, {SEQLSTM_OP_VECTOR, 2, 3},    {SEQLSTM_OP_DENSE, 2, 0}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_trace trace = make_trace();
        add(&trace, 0, SL_ACTIVITY_OPTIMIZER, sl_op_name(rows[k].op), 0, 50, 11);
        add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 100, 1);
        struct sl_timeline *timeline = make(&trace, (struct sl_timeline_peaks){1, 0, 1}, rows[k].states);
        assert_true(find(timeline, SL_ACTIVITY_OPTIMIZER, sl_op_name(rows[k].op))->bytes == 4 * 11 * rows[k].floats);
        sl_timeline_destroy(timeline);
    }
}

/* A dense layer of `input` to `output` computes 2 * input * output for its one row, and moves as many floats and those
 * of the row. Peaks are operations and bytes in a nanosecond. */
static void test_limits_at_both_sides(void **state)
{
    static const struct {
        int64_t input, output, ns;
        struct sl_timeline_peaks peaks;
        const char *domain, *variant;
        enum sl_timeline_limit limit;
        double of_peak;
    } rows[] = {
        {50, 100, 20000, {1, 0, 100}, "host", "packed", SL_LIMIT_COMPUTE, 0.5},
        {50, 100, 20001, {1, 0, 100}, "host", "packed", SL_LIMIT_SIZE, 10000 / 20001.0},
        {50, 100, 99999, {1, 0, 100}, "host", "packed", SL_LIMIT_SIZE, 10000 / 99999.0},
        {50, 100, 100000, {1, 0, 100}, "host", "packed", SL_LIMIT_NEITHER, 0.1},
        {50, 100, 20000, {1, 0, 1}, "host", "packed", SL_LIMIT_MEMORY, 1.03},
        {50, 100, 20000, {1, 0, 2.07}, "host", "packed", SL_LIMIT_COMPUTE, 0.5},
        {50, 100, 20000, {1, 0, 2.05}, "host", "packed", SL_LIMIT_MEMORY, 1.03 / 2.05},
        {50, 100, 20000, {1, 0, 0.937}, "host", "packed", SL_LIMIT_MEMORY, 1.03 / 0.937},
        {50, 100, 20000, {1, 0, 0.936}, "host", "packed", SL_LIMIT_CACHE, 1.03 / 0.936},
        {1, 4999, 10000, {1, 0, 100}, "host", "packed", SL_LIMIT_SIZE, 3.9996 / 100}, /* too few to tell the speed */
        {50, 100, 20000, {0, 0, 100}, "host", "packed", SL_LIMIT_NONE, 0},
        {50, 100, 20000, {1, 0, 0}, "host", "packed", SL_LIMIT_NONE, 0},
        {50, 100, 20000, {1, 0, 100}, "cuda:0", "packed", SL_LIMIT_NONE, 0},
        {50, 100, 20000, {1, 6, 100}, "host", "tiles", SL_LIMIT_COMPUTE, 0.5},
        {50, 100, 20000, {1, 12, 100}, "host", "tiles", SL_LIMIT_SIZE, 0.25},
        {50, 100, 20000, {1, 0, 100}, "host", "tiles", SL_LIMIT_SIZE, 0.0103}, /* their peak is not known */
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        static const int32_t slots[] = {X, W, Y};
        struct sl_trace trace = make_trace();
        struct sl_node node = {.name = "dense", .slot_count = 3, .slots = slots};
        struct sl_call call = {.node = &node, .variant = rows[k].variant};
        struct sl_plan own = {.graph = &graph, .calls = &call, .call_count = 1};
        node.desc.dense =
            (struct seqlstm_dense_desc){.head.op = SEQLSTM_OP_DENSE, .input = rows[k].input, .output = rows[k].output};
        node.desc.head.dtype_compute = SEQLSTM_DTYPE_FLOAT32;
        tensors[X].features = rows[k].input;
        tensors[Y].features = rows[k].output;
        tensors[W] = (struct sl_tensor)PARAM(rows[k].output, rows[k].input);
        domain = rows[k].domain;
        add(&trace, 0, SL_ACTIVITY_FORWARD, "dense", 0, rows[k].ns, 1);
        add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 200000, 1);
        const struct sl_timeline_request request = {.trace = &trace, .plan = &own, .peaks = rows[k].peaks};
        struct sl_timeline *timeline = NULL;
        assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
        const struct sl_timeline_part *part = find(timeline, SL_ACTIVITY_FORWARD, "dense");
        if (part->limit != rows[k].limit)
            fail_msg("row %d: limit %d, %g", (int)k, (int)part->limit, part->of_peak);
        assert_float_equal(part->of_peak, rows[k].of_peak, 1e-6);
        assert_string_equal(part->variant, rows[k].variant);
        sl_timeline_destroy(timeline);
    }
}

/* Whether there is enough to tell a speed is asked of one call, not of all together. */
static void test_small_calls_stay_small(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 40; count += 39) {
        struct sl_trace trace = make_trace();
        for (int64_t c = 0; c < count; c++) /* 4,800 operations and 1,040 bytes, or 9,600 operations */
            add(&trace, 0, SL_ACTIVITY_FORWARD, "dense", 20000 * c, 20000 * c + 10000, 160);
        add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 0, 1000000, 1);
        struct sl_timeline *timeline = make(&trace, (struct sl_timeline_peaks){1, 0, 100}, 0);
        const struct sl_timeline_part *part = find(timeline, SL_ACTIVITY_FORWARD, "dense");
        assert_int_equal(part->count, count);
        assert_int_equal(part->limit, SL_LIMIT_SIZE);
        assert_float_equal(part->of_peak, (80 + 160 * 44) / 10000.0 / 100, 1e-9); /* that of memory */
        sl_timeline_destroy(timeline);
    }
}

/* Work of a device counts from the first update to the end of the last one, for the part of its kind and name. */
static void test_times_of_a_device(void **state)
{
    struct sl_trace trace = make_trace();
    (void)state;
    add(&trace, 0, SL_ACTIVITY_COPY, "dense", 101, 105, 5);
    add(&trace, 0, SL_ACTIVITY_SAMPLE, NULL, 106, 107, 5);
    add(&trace, 0, SL_ACTIVITY_FORWARD, "dense", 110, 120, 5);
    add(&trace, 0, SL_ACTIVITY_BACKWARD, "dense", 120, 130, 5);
    add(&trace, 0, SL_ACTIVITY_FORWARD, "words", 130, 140, 5);
    add(&trace, 0, SL_ACTIVITY_UPDATE, NULL, 100, 200, 5);
    add(&trace, 1, SL_ACTIVITY_FORWARD, "dense", 80, 100, 5);  /* before the first update */
    add(&trace, 1, SL_ACTIVITY_FORWARD, "dense", 100, 117, 5); /* from its begin on */
    add(&trace, 1, SL_ACTIVITY_BACKWARD, "dense", 120, 123, 5);
    add(&trace, 1, SL_ACTIVITY_BACKWARD, "other", 123, 150, 5);
    add(&trace, 1, SL_ACTIVITY_FORWARD, "dense", 190, 230, 5); /* 10 of them are in the update */
    add(&trace, 1, SL_ACTIVITY_FORWARD, "words", 200, 230, 5); /* behind its end */
    struct sl_timeline *timeline = make(&trace, (struct sl_timeline_peaks){1, 0, 1}, 0);
    static const struct {
        enum sl_activity_kind kind;
        const char *name;
        double device_ns, cost;
    } expected[] = {{SL_ACTIVITY_FORWARD, "dense", 27, 27},
                    {SL_ACTIVITY_BACKWARD, "dense", 3, 3},
                    {SL_ACTIVITY_COPY, "dense", 0, 4}};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
        const struct sl_timeline_part *part = find(timeline, expected[k].kind, expected[k].name);
        assert_true(part->device_ns == expected[k].device_ns);
        assert_true(sl_timeline_part_get_cost(part) == expected[k].cost);
    }
    const struct sl_timeline_part *words = find(timeline, SL_ACTIVITY_FORWARD, "words");
    assert_true(words->device_ns == 0 && sl_timeline_part_get_cost(words) == 10);
    sl_timeline_destroy(timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_calls_compute_and_move, prepare),
        cmocka_unit_test_setup(test_calls_within_calls, prepare),
        cmocka_unit_test_setup(test_what_the_optimizer_moves, prepare),
        cmocka_unit_test_setup(test_limits_at_both_sides, prepare),
        cmocka_unit_test_setup(test_small_calls_stay_small, prepare),
        cmocka_unit_test_setup(test_times_of_a_device, prepare),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
