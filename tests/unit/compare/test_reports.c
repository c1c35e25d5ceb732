/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of ab, bench and bench serve, from numbers that the test makes up, as a whole: tables, sentences, JSON,
 * pages.
 */
#include <math.h>

#include "golden.h"
#include "oom.h"

#include "compare/ab/ab.h"
#include "compare/sweep/sweep.h"
#include "model/model.h"
#include "serve/load/curve.h"

static void add_title(struct sl_buf *out, const char *title)
{
    sl_buf_printf(out, "%s== %s\n", out->length_bytes ? "\n" : "", title);
}

/* ---- ab ----------------------------------------------------------------------------------------------------- */

static struct sl_node nodes[3];
static struct sl_graph graph = {.nodes = nodes, .node_count = 3};

static void make_layers(struct sl_ab_layer layers[3])
{
    static const char *const names[3] = {"embedding", "a_layer_with_a_name", "out"};
    static const uint32_t ops[3] = {SEQLSTM_OP_EMBEDDING, SEQLSTM_OP_RECURRENT, SEQLSTM_OP_DENSE};
    memset(layers, 0, 3 * sizeof *layers);
    for (int k = 0; k < 3; k++) {
        nodes[k].name = names[k];
        nodes[k].desc.head.op = ops[k];
        layers[k].node = &nodes[k];
        layers[k].compared = k > 0;
        layers[k].a = k ? "fast:wide" : "reference:loops";
        layers[k].b = k ? "slow:narrow" : "reference:loops";
        layers[k].interval = (struct sl_interval){(double)NAN, 0, (double)INFINITY, 0, 1};
    }
    layers[0].refused = "slow: no \"bytes\"";
}

static void add_ab(struct sl_buf *out, const char *title, const struct sl_ab_report *report)
{
    add_title(out, title);
    sl_ab_report_print_table(report, out);
    assert_int_equal(sl_ab_report_print_json(report, out, NULL), SEQLSTM_OK);
}

static void test_ab(void **state)
{
    struct sl_ab_layer layers[3];
    struct sl_ab_report r = {.graph = &graph,
                             .a_text = "fast",
                             .b_text = "./slow.so:narrow,k=1",
                             .threads = 1,
                             .sequences = 8,
                             .rows = 70,
                             .batches = 1,
                             .layers = layers,
                             .layer_count = 3,
                             .compared = 2,
                             .numeric_ok = true,
                             .difference = 1.25e-7,
                             .loss_a = 0.5,
                             .loss_b = 0.75,
                             .timed = true,
                             .a_ns = 9.99951e6,
                             .b_ns = 123456789,
                             .gflop = 0.02,
                             .peak_gflops = 40,
                             .confidence = 0.95,
                             .step = {12.346, 11.5, 13.25, 30, 2}};
    struct sl_buf out = {0};
    (void)state;
    strcpy(r.a.id, "fast");
    strcpy(r.a.version, "1.2");
    strcpy(r.b.id, "slow");
    strcpy(r.b.version, "3");
    strcpy(r.b.file, "/x/slow.so");
    make_layers(layers);
    graph.phase = SL_PHASE_TRAIN;
    layers[1].a_ns = 1234567.8;
    layers[1].b_ns = 999.96e6; /* with four digits it is a second */
    layers[1].gflop = 0.015;
    layers[1].verdict_a.worst = 0.25;
    layers[1].verdict_b.worst = 0.5;
    layers[1].interval = (struct sl_interval){0.987, 0.95, 1.02, 30, 1};
    layers[2].a_ns = 99.996e6;
    layers[2].b_ns = 12345;
    layers[2].verdict_a.worst = 0.75;
    layers[2].interval = (struct sl_interval){2, 0, (double)INFINITY, 5, 1};
    add_ab(&out, "B is slower", &r);
    graph.phase = SL_PHASE_PREDICT;
    r.threads = r.batches = 3;
    r.separate = "two copies of libx.so";
    r.step = (struct sl_interval){0.8, 0.75, 0.9, 6, 1};
    r.peak_gflops = 0;
    add_ab(&out, "B is faster", &r);
    r.step = (struct sl_interval){1, 0.95, 1.05, 7, 1};
    add_ab(&out, "no difference", &r);
    r.step.rounds = 5;
    add_ab(&out, "too few rounds", &r);
    r.step.rounds = 1;
    add_ab(&out, "one round", &r);
    make_layers(layers);
    layers[1].verdict_a = (struct sl_compare_side_verdict){true, 7.5, "dW differs by 7.5 tolerances"};
    layers[2].verdict_b = (struct sl_compare_side_verdict){true, (double)INFINITY, "y is not finite"};
    r.timed = r.numeric_ok = false;
    r.a_ns = r.b_ns = 0;
    r.step = (struct sl_interval){(double)NAN, 0, (double)INFINITY, 0, 1};
    add_ab(&out, "wrong numbers", &r);
    golden_expect("reports/ab.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* ---- bench -------------------------------------------------------------------------------------------------- */

static void add_sweep(struct sl_buf *out, const char *title, const struct sl_sweep_report *report)
{
    add_title(out, title);
    sl_sweep_print_table(report, out);
    sl_sweep_print_sentence(report, out);
    sl_buf_append_char(out, '\n');
    assert_int_equal(sl_sweep_print_json(report, out, NULL), SEQLSTM_OK);
    sl_sweep_print_html(report, out);
}

static void test_sweep(void **state)
{
    static const struct sl_sweep_loan loans[] = {{"lstm_1", "other", "packed", "activation <relu>"},
                                                 {"output_1", "third", "rows", "no tie"}};
    struct sl_sweep_candidate candidates[] = {
        {.name = "fast", .device = "cpu:x", .threads = 1, .loans = loans, .loan_count = 2, .peak_gflops = 50},
        {.name = "fast", .device = "cpu:x", .threads = 4, .loans = loans, .loan_count = 2, .peak_gflops = 200},
        {.name = "a-very-long-name",
         .device = "cuda:y",
         .threads = 2,
         .loans = loans,
         .loan_count = 1,
         .excluded = "dW & more",
         .failed = true},
        {.name = "a-very-long-name", .device = "cpu:x", .threads = 3, .loans = &loans[1], .loan_count = 1},
        {.name = "gone", .device = "cpu:x", .threads = 1, .loans = loans, .loan_count = 2, .excluded = "no device"}};
    struct sl_sweep_cell cells[4][5] = {{{5, 1e6, 9e5, 1.1e6}, {5, 2e6, 1.9e6, 2.1e6}, {0}, {3, 4e9, 3e9, 5e9}},
                                        {{5, 1.5e6, 1.4e6, 1.6e6}, {4, 1.25e6, 1.2e6, 1.3e6}, {0}, {0}},
                                        {{5, 8e6, 7e6, 9e6}, {5, 3e6, 2e6, 4e6}, {0}, {3, 2.5e6, 2e6, 3e6}},
                                        {{2, 3.1e7, 3e7, 3.2e7}, {2, 9.999e6, 7e6, 2e7}, {0}, {3, 7e6, 6e6, 8e6}}};
    struct sl_model model = {.name = "a & b"};
    struct sl_sweep_report r = {.model = &model,
                                .phase = SL_PHASE_TRAIN,
                                .candidates = candidates,
                                .candidate_count = 5,
                                .batch_count = 4,
                                .skipped_from = 32,
                                .crossover = 4,
                                .failures = 1};
    static const int64_t sizes[] = {1, 4, 8, 16}, rows[] = {9, 700, 1234, 99960};
    static const int32_t winners[] = {0, 1, 3, 3};
    struct sl_buf out = {0};
    (void)state;
    for (int b = 0; b < 4; b++)
        r.batches[b] = (struct sl_sweep_batch){sizes[b], rows[b], 0.01 * (b + 1), winners[b], cells[b]};
    add_sweep(&out, "three winners", &r);
    r.phase = SL_PHASE_PREDICT;
    r.batches[1].winner = r.batches[2].winner = 0;
    r.skipped_from = r.crossover = 0;
    add_sweep(&out, "two winners", &r);
    for (int b = 0; b < 4; b++)
        r.batches[b].winner = b == 1 || b == 2;
    r.crossover = 16; /* at the right end, where its text ends before it */
    add_sweep(&out, "there and back", &r);
    r.batch_count = 1;
    r.crossover = 0;
    cells[0][3].step_ns = 1e8; /* two decades, not three */
    add_sweep(&out, "one size", &r);
    r.batches[0].winner = -1;
    memset(cells, 0, sizeof cells);
    add_sweep(&out, "nothing timed", &r);
    golden_expect("reports/sweep.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* ---- bench serve -------------------------------------------------------------------------------------------- */

static void add_curve(struct sl_buf *out, const char *title, const struct sl_curve *curve)
{
    add_title(out, title);
    sl_curve_print_table(curve, out);
    sl_curve_print_json(curve, out);
    sl_curve_print_html(curve, out);
}

static void test_curve(void **state)
{
    struct sl_curve curve = {
        .name = "m <1>",
        .server = "127.0.0.1:80",
        .steps = 25,
        .requests = 10,
        .offline = 2500.4,
        .alone = {0, 1500, 450, 1, 0, 0.0006, 0.0005, 0.0007, 0.0008, 0.0009, 0.001},
        .closed = {0, 2000.4, 600, 2, 1, 0.0011, 0.001, 0.002, 0.003, 0.004, 0.005, 4.8e-6, 2.02e-5},
        .points = {{200, 199, 60, 0, 0, 0.0005, 0.0004, 0.0006, 0.0007, 0.0008, 0.0009},
                   {1000, 990, 300, 5, 7, 0.0021, 0.0015, 0.0032, 0.0098, 0.0176, 0.02},
                   {2500, 1999.5, 500, 100, 0, 0.11, 0.1, 0.2, 0.3, 0, 0.5}},
        .count = 3};
    struct sl_buf out = {0};
    (void)state;
    add_curve(&out, "three points", &curve);
    curve.count = 1;
    curve.offline = 0;
    curve.points[0] = (struct sl_load_result){.wanted = 100};
    add_curve(&out, "no answers", &curve);
    golden_expect("reports/curve.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* Of 1000 latencies in any order; of one; of none. */
static void test_latencies(void **state)
{
    static double latencies[1000];
    struct sl_load_result r = {.wanted = 7};
    (void)state;
    for (int k = 0; k < 1000; k++)
        latencies[k] = (k * 701) % 1000 + 1;
    sl_load_summarize(latencies, 1000, 4, &r);
    assert_true(r.wanted == 7 && r.reached == 250 && fabs(r.mean - 500.5) < 1e-9);
    assert_true(r.p50 == 500 && r.p90 == 900 && r.p99 == 990 && r.p999 == 999 && r.most == 1000);
    latencies[0] = 0.5;
    sl_load_summarize(latencies, 1, 2, &r);
    assert_true(r.reached == 0.5 && r.mean == 0.5 && r.p50 == 0.5 && r.p999 == 0.5 && r.most == 0.5);
    r = (struct sl_load_result){.failed = 3};
    sl_load_summarize(latencies, 0, 2, &r);
    assert_true(r.failed == 3 && r.reached == 0 && r.mean == 0 && r.most == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ab),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_latencies),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
