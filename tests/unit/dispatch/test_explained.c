/* SPDX-License-Identifier: Apache-2.0 */
/* What plans are explained by, for plans that the test makes up: the memory of a run that holds several of them, copies
 * between memories, and casts to another type. */
#include <string.h>

#include "ok.h"
#include "oom.h"

#include "base/value/buf.h"
#include "dispatch/explain/explain.h"

enum { CALLS = 4, TENSORS = 6, SLOTS = 3 };

const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t device);

/* Device 0 is the host, the others are cards. */
const struct seqlstm_device_info *__wrap_sl_backend_get_device(const struct sl_backend *backend, uint32_t device)
{
    static struct seqlstm_device_info infos[] = {{.domain = "host"}, {.domain = "card:0"}, {.domain = "card:1"}};
    (void)backend;
    return &infos[device];
}

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend);

const char *__wrap_sl_backend_get_id(const struct sl_backend *backend)
{
    (void)backend;
    return "some";
}

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

/* Plans whose parts are told apart by their digits. */
static struct sl_plan make_plan(const struct sl_graph *graph, int64_t unit)
{
    return (struct sl_plan){.graph = graph,
                            .memory = {.weights_bytes = 1000 * unit,
                                       .activations_bytes = unit,
                                       .workspace_bytes = 2 * unit,
                                       .backends_bytes = 3 * unit,
                                       .batches_bytes = 1 * unit,
                                       .peak_bytes = 5000000}};
}

/* Validation adds its buffers; decoders their two plans and what runs them; and at the end the test split is evaluated,
 * in place of a checkpoint. */
static void a_run_holds_several_plans(void **state)
{
    static const struct sl_model model = {.data = {.splits = {[SL_SPLIT_TEST] = {.origin = SL_SOURCE_FILES}}}}, bare;
    const struct sl_graph graph = {.model = &model}, without_test = {.model = &bare};
    const struct sl_plan evaluate = make_plan(&graph, 10), encoder = make_plan(&graph, 100),
                         step = make_plan(&graph, 1000), test = make_plan(&graph, 10000);
    const struct sl_plan_pair decoding = {&encoder, &step, 50}, sampling = {&step, &evaluate, 20},
                              test_decoding = {&evaluate, &encoder, 30};
    static const struct {
        bool evaluates, decodes, samples, tests, test_split;
        int64_t checkpoint, decoding, test, added; /* to the peak */
    } rows[] = {
        {false, false, false, false, true, 0, 0, 0, 0},
        {true, false, false, false, false, 0, 0, 0, 70},
        {true, false, false, false, true, 0, 0, 40, 70 + 40},  /* without the backends' own memory, which is there */
        {true, false, false, false, true, 15, 0, 40, 70 + 25}, /* the larger of the two counts */
        {true, false, false, false, true, 90, 0, 40, 70},
        {true, true, false, false, false, 0, 7750, 0, 70 + 7750},
        {false, false, true, false, false, 0, 7090, 0, 7090},
        {true, true, true, true, true, 100, 7750 + 7090, 70800, 70 + 7750 + 7090 + 70700},
        {false, false, false, true, true, 0, 0, 70800, 70800},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_plan plan = make_plan(rows[i].test_split ? &graph : &without_test, 1);
        plan.memory.checkpoint_bytes = rows[i].checkpoint;
        struct sl_plan_beside beside = {.evaluate = rows[i].evaluates ? &evaluate : NULL};
        if (rows[i].decodes)
            beside.decoding = decoding;
        if (rows[i].samples)
            beside.sampling = sampling;
        if (rows[i].tests) {
            beside.test = &test;
            beside.test_decoding = test_decoding;
        }
        const struct sl_plan_memory sum = sl_plan_sum_memory(&plan, &beside);
        const int64_t more = rows[i].evaluates ? 10 : 0;
        assert_int_equal(sum.decoding_bytes, rows[i].decoding);
        assert_int_equal(sum.test_bytes, rows[i].test);
        assert_int_equal(sum.peak_bytes, 5000000 + rows[i].added);
        assert_int_equal(sum.activations_bytes, 1 + more);
        assert_int_equal(sum.workspace_bytes, 2 + 2 * more);
        assert_int_equal(sum.backends_bytes, 3 + 3 * more);
        assert_int_equal(sum.batches_bytes, 1 + more);
        assert_int_equal(sum.weights_bytes, 1000);
    }
}

/* An evaluation reads its weights from a file, which is in memory beside them; and the peak is no less than what was
 * reached. */
static void the_peak_is_no_less_than_what_was_reached(void **state)
{
    static const struct {
        enum sl_phase phase;
        int64_t reached, process, reached_then, peak;
    } rows[] = {{SL_PHASE_TRAIN, 10, 400, 10, 5000000},        {SL_PHASE_TRAIN, 6000000, 400, 6000000, 6000000},
                {SL_PHASE_PREDICT, 10, 400, 10, 5000000},      {SL_PHASE_EVALUATE, 10, 400, 2400, 5000000},
                {SL_PHASE_EVALUATE, 2500, 400, 2500, 5000000}, {SL_PHASE_EVALUATE, 10, 7000000, 7002000, 7002000}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const struct sl_model model;
        const struct sl_graph graph = {.model = &model, .phase = rows[i].phase};
        const struct sl_plan_beside none = {0};
        struct sl_plan plan = make_plan(&graph, 1);
        plan.memory.reached_bytes = rows[i].reached;
        plan.memory.process_bytes = rows[i].process;
        const struct sl_plan_memory sum = sl_plan_sum_memory(&plan, &none);
        assert_int_equal(sum.reached_bytes, rows[i].reached_then);
        assert_int_equal(sum.peak_bytes, rows[i].peak);
    }
}

/* ---- copies and casts ----------------------------------------------------------------------------------------------
 */

/* Calls of three slots each: what they read, the weights of rows, what they write. */
struct world {
    struct sl_tensor tensors[TENSORS];
    struct sl_node nodes[CALLS];
    int32_t slots[CALLS][SLOTS];
    struct sl_call calls[CALLS];
    struct sl_graph graph;
    struct sl_plan plan;
};

static void make(struct world *w, const char *devices)
{
    static const char *const names[TENSORS] = {"x", "a", "b", "c", "d", "weights"};
    static const char *const layers[CALLS] = {"first", "second", "third", "fourth"};
    *w = (struct world){.graph = {.tensors = w->tensors, .tensor_count = TENSORS, .nodes = w->nodes}};
    w->graph.facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 3, .rows = 5};
    for (int32_t t = 0; t < TENSORS; t++)
        w->tensors[t] = (struct sl_tensor){.name = names[t], .axis = SL_AXIS_STEPS, .features = t + 1};
    w->tensors[0].role = SL_TENSOR_INPUT;
    w->tensors[5].role = SL_TENSOR_WEIGHT;
    for (int32_t c = 0; c < CALLS; c++) {
        w->slots[c][0] = c;
        w->slots[c][1] = c == 2 ? 5 : -1;
        w->slots[c][2] = c + 1;
        w->nodes[c] = (struct sl_node){.name = layers[c], .slots = w->slots[c], .slot_count = SLOTS};
        w->calls[c] = (struct sl_call){.node = &w->nodes[c], .device = (uint32_t)(devices[c] - '0')};
    }
    w->plan = (struct sl_plan){.graph = &w->graph, .calls = w->calls, .call_count = CALLS};
}

/* Each value is copied where it is needed in another memory than it is in; fields of the batch are on the host. */
static void values_are_copied_between_memories(void **state)
{
    static const struct {
        const char *devices, *copies;
    } rows[] = {
        {"0000", ""},
        {"1111", "x host>card:0 20, weights host>card:0 120, "},
        {"0110", "a host>card:0 40, weights host>card:0 120, c card:0>host 80, "},
        {"1020", "x host>card:0 20, a card:0>host 40, b host>card:1 60, weights host>card:1 120, c card:1>host 80, "},
        {"0012", "b host>card:0 60, weights host>card:0 120, c card:0>card:1 80, "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int32_t capacity = 0; capacity < 6; capacity++) {
            struct world w;
            struct sl_copy copies[6] = {{0}};
            struct sl_buf text = {0};
            make(&w, rows[i].devices);
            const int32_t count = sl_plan_list_copies(&w.plan, copies, capacity);
            for (int32_t k = 0; k < count && k < capacity; k++)
                sl_buf_printf(&text, "%s %s>%s %d, ", copies[k].tensor->name, copies[k].from, copies[k].to,
                              (int)copies[k].bytes);
            assert_null(copies[capacity < count ? capacity : count].tensor);
            if (capacity == 5)
                assert_string_equal(sl_buf_text(&text), rows[i].copies);
            else
                assert_memory_equal(sl_buf_text(&text), rows[i].copies, text.length_bytes);
            assert_int_equal(count, sl_plan_list_copies(&w.plan, NULL, 0));
            sl_buf_deinit(&text);
        }
}

/* Calls that compute in another type than float32 cast what they read, and back what they write; tf32 rounds inside. */
static void values_are_cast_around_calls_in_another_type(void **state)
{
    static const struct {
        uint32_t types[CALLS];
        const char *casts;
    } rows[] = {
        {{SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT32}, ""},
        {{SEQLSTM_DTYPE_TF32, SEQLSTM_DTYPE_TF32, SEQLSTM_DTYPE_TF32, SEQLSTM_DTYPE_TF32}, ""},
        {{SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_FLOAT16, SEQLSTM_DTYPE_TF32},
         "x in first to 16 20, a in first from 16 40, b in third to 16 60, c in third from 16 80, "},
        {{SEQLSTM_DTYPE_FLOAT32, SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_BFLOAT16, SEQLSTM_DTYPE_FLOAT32},
         "a in second to 16 40, b in second from 16 60, b in third to 16 60, c in third from 16 80, "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int32_t capacity = 0; capacity < 6; capacity++) {
            struct world w;
            struct sl_cast casts[6] = {{0}};
            struct sl_buf text = {0};
            make(&w, "0000");
            for (int32_t c = 0; c < CALLS; c++)
                w.nodes[c].desc.head.dtype_compute = rows[i].types[c];
            const int32_t count = sl_plan_list_casts(&w.plan, casts, capacity);
            for (int32_t k = 0; k < count && k < capacity; k++) {
                const bool reads = casts[k].from == SEQLSTM_DTYPE_FLOAT32;
                assert_true(reads != (casts[k].to == SEQLSTM_DTYPE_FLOAT32));
                assert_int_equal(reads ? casts[k].to : casts[k].from, casts[k].call->node->desc.head.dtype_compute);
                sl_buf_printf(&text, "%s in %s %s 16 %d, ", casts[k].tensor->name, casts[k].call->node->name,
                              reads ? "to" : "from", (int)casts[k].bytes);
            }
            assert_null(casts[capacity < count ? capacity : count].tensor);
            if (capacity == 5)
                assert_string_equal(sl_buf_text(&text), rows[i].casts);
            else
                assert_memory_equal(sl_buf_text(&text), rows[i].casts, text.length_bytes);
            assert_int_equal(count, sl_plan_list_casts(&w.plan, NULL, 0));
            sl_buf_deinit(&text);
        }
}

/* The line of a table that begins so; "": there is none. */
static const char *find_line(struct sl_buf *table, const char *begin)
{
    char *line = strstr(sl_buf_text(table), begin);
    if (line == NULL)
        return "";
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* A row of calls that read 100 bytes and write 100 bytes each, every other one on a card. */
static void write_table_of(int32_t count, struct sl_buf *out_copies, struct sl_buf *out_casts)
{
    enum { MOST = 80 };
    static const struct sl_model model;
    static const struct sl_plan_beside none;
    static struct sl_tensor tensors[MOST + 1];
    static struct sl_node nodes[MOST];
    static struct sl_call calls[MOST];
    static int32_t slots[MOST][SLOTS];
    static char names[MOST][8];
    for (int32_t t = 0; t <= count; t++)
        tensors[t] = (struct sl_tensor){.name = "t", .axis = SL_AXIS_STEPS, .features = 1};
    tensors[0].role = SL_TENSOR_INPUT;
    for (int32_t c = 0; c < count; c++) {
        snprintf(names[c], sizeof names[c], "n%d", (int)c);
        memcpy(slots[c], (int32_t[]){c, -1, c + 1}, sizeof slots[c]);
        nodes[c] = (struct sl_node){.name = names[c], .slots = slots[c], .slot_count = SLOTS, .layer = -1};
        nodes[c].desc.head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
        calls[c] = (struct sl_call){.node = &nodes[c], .device = (c + 1) % 2};
    }
    struct sl_graph graph = {.model = &model, .tensors = tensors, .tensor_count = count + 1, .nodes = nodes};
    graph.node_count = count;
    graph.phase = SL_PHASE_PREDICT;
    graph.facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 3, .rows = 25};
    const struct sl_plan plan = {.graph = &graph, .calls = calls, .call_count = count};
    struct sl_buf table = {0};
    sl_plan_write_table(&plan, &none, false, &table);
    sl_buf_append_text(out_copies, find_line(&table, "copies "));
    sl_buf_deinit(&table);
    sl_plan_write_table(&plan, &none, false, &table);
    sl_buf_append_text(out_casts, find_line(&table, "casts "));
    sl_buf_deinit(&table);
}

/* Of more than 64 only so many are added up, and the layers of only so many are named. */
static void many_copies_and_casts_are_not_all_listed(void **state)
{
    static const struct {
        int32_t calls;
        const char *copies, *casts, *last;
    } rows[] = {{1, "copies  1 between memories, 100 B a step",
                 "casts   2 between float32 and bfloat16, 200 B a step: n0", " n0"},
                {31, "copies  31 between memories, 3.1 kB a step",
                 "casts   62 between float32 and bfloat16, 6.2 kB a step: n0, n1, ", " n30"},
                {32, "copies  32 between memories, 3.2 kB a step",
                 "casts   64 between float32 and bfloat16, 6.4 kB a step: n0, n1, ", " n31"},
                {33, "copies  33 between memories, 3.3 kB a step",
                 "casts   66 between float32 and bfloat16, over 6.4 kB a step: n0, n1, ", " n31, …"},
                {64, "copies  64 between memories, 6.4 kB a step",
                 "casts   128 between float32 and bfloat16, over 6.4 kB a step: n0, n1, ", " n31, …"},
                {65, "copies  65 between memories, over 6.4 kB a step",
                 "casts   130 between float32 and bfloat16, over 6.4 kB a step: n0, n1, ", " n31, …"},
                {80, "copies  80 between memories, over 6.4 kB a step",
                 "casts   160 between float32 and bfloat16, over 6.4 kB a step: n0, n1, ", " n31, …"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sl_buf copies = {0}, casts = {0};
        write_table_of(rows[i].calls, &copies, &casts);
        const char *said = sl_buf_text(&casts), *end = said + strlen(said) - strlen(rows[i].last);
        assert_string_equal(sl_buf_text(&copies), rows[i].copies);
        assert_memory_equal(said, rows[i].casts, strlen(rows[i].casts));
        assert_string_equal(end, rows[i].last);
        sl_buf_deinit(&copies);
        sl_buf_deinit(&casts);
    }
}

static void write_predict_table(struct world *w, struct sl_buf *table)
{
    static const struct sl_model model;
    static const struct sl_plan_beside none;
    w->graph.model = &model;
    w->graph.phase = SL_PHASE_PREDICT;
    sl_plan_write_table(&w->plan, &none, false, table);
}

/* One of each thing is no plural, and each thing is counted by itself. */
static void the_largest_batch_is_counted_in_words(void **state)
{
    static const struct {
        struct sl_envelope envelope;
        const char *line;
    } rows[] = {
        {{.sequences = 1, .steps = 1, .rows = 1}, "batch   at most 1 sequence, 1 step, 1 row"},
        {{.sequences = 4, .steps = 1, .rows = 4}, "batch   at most 4 sequences, 1 step, 4 rows"},
        {{.sequences = 1, .steps = 7, .rows = 7}, "batch   at most 1 sequence, 7 steps, 7 rows"},
        {{.sequences = 3, .steps = 2, .rows = 1}, "batch   at most 3 sequences, 2 steps, 1 row"},
        {{.sequences = 1}, "batch   at most 1 row"},
        {{.sequences = 2}, "batch   at most 2 rows"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w;
        struct sl_buf table = {0};
        make(&w, "0000");
        w.graph.facts.envelope = rows[i].envelope;
        write_predict_table(&w, &table);
        assert_string_equal(find_line(&table, "batch "), rows[i].line);
        sl_buf_deinit(&table);
    }
}

/* Three digits before the next unit, and one behind the point of what has a single one before it. */
static void bytes_have_units(void **state)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {{0, "0 B"},
                {9, "9 B"},
                {999, "999 B"},
                {1000, "1.0 kB"},
                {9940, "9.9 kB"},
                {10000, "10 kB"},
                {999000, "999 kB"},
                {1000000, "1.0 MB"},
                {10000000, "10 MB"},
                {2500000000, "2.5 GB"},
                {INT64_C(3000000000000), "3.0 TB"},
                {INT64_C(12345000000000000), "12345 TB"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct world w;
        struct sl_buf table = {0};
        char expected[64];
        make(&w, "0000");
        w.plan.memory.gradients_bytes = rows[i].bytes;
        snprintf(expected, sizeof expected, "gradients %s, optimizer 0 B,", rows[i].text);
        write_predict_table(&w, &table);
        assert_string_equal(find_line(&table, "gradients "), expected);
        sl_buf_deinit(&table);
    }
}

/* The column of times has a title if any row has one, whichever it is; and the sum is known if all are. */
static void times_have_a_column_if_there_are_any(void **state)
{
    static const struct sl_model model;
    static const struct sl_plan_beside none;
    (void)state;
    for (int32_t timed = 0; timed < 1 << CALLS; timed++) {
        struct world w;
        struct sl_buf table = {0};
        make(&w, "0000");
        w.graph.model = &model;
        w.graph.phase = SL_PHASE_PREDICT;
        for (int32_t c = 0; c < CALLS; c++)
            w.calls[c].cost = timed >> c & 1 ? (struct sl_cost){SL_COST_MEASURED, 2e6, 0} : (struct sl_cost){0};
        sl_plan_write_table(&w.plan, &none, false, &table);
        const bool whole = strstr(sl_buf_text(&table), " for a mean batch (measured)") != NULL;
        const char *title = find_line(&table, "layer ");
        if ((strstr(title, " time") != NULL) != (timed != 0) || whole != (timed == (1 << CALLS) - 1))
            fail_msg("times %#x: `%s`, sum %d", (unsigned)timed, title, whole);
        sl_buf_deinit(&table);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_holds_several_plans),
        cmocka_unit_test(the_peak_is_no_less_than_what_was_reached),
        cmocka_unit_test(values_are_copied_between_memories),
        cmocka_unit_test(values_are_cast_around_calls_in_another_type),
        cmocka_unit_test(many_copies_and_casts_are_not_all_listed),
        cmocka_unit_test(the_largest_batch_is_counted_in_words),
        cmocka_unit_test(bytes_have_units),
        cmocka_unit_test(times_have_a_column_if_there_are_any),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
