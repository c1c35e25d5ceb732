/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a step by the width of its batch, and whole steps of two plans, measured on a clock that only steps and
 * updates move, by a rule of the test. */
#include "model_fixture.h"

#include <math.h>

#include "base/batch/profile.h"
#include "base/operation/cost.h"
#include "base/system/file_writer.h"
#include "exec/exec.h"
#include "ok.h"
#include "oom.h"
#include "scratch.h"
#include "session/measure/whole_steps.h"
#include "session/prepare/batching.h"
#include "session/prepare/division.h"
#include "session/record/session_record.h"
#include "session/session.h"

static int64_t now;

/* A batch costs `batch`, each of its steps `step` and for each sequence `wide` more; likewise those of its source. The
 * first batch of a shape costs `first` more. */
static struct {
    int64_t batch, step, wide, source_step, source_wide, first, update;
    double factor; /* of the plan `slow` */
} rule;

static struct {
    int64_t sequences, rows, source_rows;
} shapes[512];
static int shape_count;

static const struct sl_plan *slow; /* NULL: none */
static const struct sl_plan *made_for;
static int execs, steps;

int64_t __wrap_sl_clock_ns(void);
seqlstm_status __wrap_sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                                     struct seqlstm_error *err);
seqlstm_status __real_sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                                     struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *result, struct seqlstm_error *err);
seqlstm_status __real_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *result, struct seqlstm_error *err);
seqlstm_status __wrap_sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                                     struct seqlstm_error *err);

int64_t __wrap_sl_clock_ns(void)
{
    return now;
}

seqlstm_status __wrap_sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                                     struct seqlstm_error *err)
{
    made_for = request->plan;
    execs++;
    return __real_sl_exec_create(request, out_exec, err);
}

/* 1 if no batch had this shape before, else 0. */
static int64_t is_new(int64_t sequences, int64_t rows, int64_t source_rows)
{
    for (int k = 0; k < shape_count; k++)
        if (shapes[k].sequences == sequences && shapes[k].rows == rows && shapes[k].source_rows == source_rows)
            return 0;
    assert_true(shape_count < 512);
    shapes[shape_count].sequences = sequences;
    shapes[shape_count].rows = rows;
    shapes[shape_count++].source_rows = source_rows;
    return 1;
}

seqlstm_status __wrap_sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch, const struct sl_exec_step *step,
                                  struct sl_exec_result *result, struct seqlstm_error *err)
{
    const int64_t rows = batch->axis.rows, sources = batch->source.present ? batch->source.axis.rows : 0;
    const int64_t wide = batch->sequences;
    int64_t ns = rule.batch + (rows / wide) * rule.step + rows * rule.wide + (sources / wide) * rule.source_step +
                 sources * rule.source_wide;
    ns += rule.first * is_new(wide, rows, sources);
    now += slow && made_for == slow ? (int64_t)((double)ns * rule.factor) : ns;
    steps++;
    return __real_sl_exec_run(exec, batch, step, result, err);
}

seqlstm_status __wrap_sl_exec_update(struct sl_exec *exec, const struct sl_exec_update *update, double *out_squares,
                                     struct seqlstm_error *err)
{
    (void)exec, (void)update, (void)err;
    now += rule.update;
    *out_squares = 0;
    return SEQLSTM_OK;
}

static double piece_factors[32]; /* by how much a step takes longer in so many pieces; 0: as it is measured */
static struct sl_buf tried;

seqlstm_status __wrap_sl_pipeline_cut_times(const struct sl_plan *plan, const struct sl_piece_times *times,
                                            struct sl_pipeline *pipeline, struct seqlstm_error *err);
seqlstm_status __real_sl_pipeline_cut_times(const struct sl_plan *plan, const struct sl_piece_times *times,
                                            struct sl_pipeline *pipeline, struct seqlstm_error *err);

seqlstm_status __wrap_sl_pipeline_cut_times(const struct sl_plan *plan, const struct sl_piece_times *times,
                                            struct sl_pipeline *pipeline, struct seqlstm_error *err)
{
    SEQLSTM_TRY(__real_sl_pipeline_cut_times(plan, times, pipeline, err));
    sl_buf_printf(&tried, "%d ", times->pieces);
    if (piece_factors[times->pieces] > 0)
        pipeline->step_ns = piece_factors[times->pieces];
    return SEQLSTM_OK;
}

static struct sl_diagnostics *diagnostics;
static char path[256];
static struct sl_model_request model;

/* A session whose data are read. */
static struct sl_session *open(const char *text)
{
    struct sl_session *session = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(path, sizeof path, "%s", scratch_path("m.yaml"));
    ok(sl_file_write(path, text, strlen(text), &err), &err);
    model = (struct sl_model_request){.path = path};
    const struct sl_session_options options = {.model = &model, .threads = 1, .threads_given = true};
    ok(sl_diagnostics_create(&diagnostics, &err), &err);
    if (sl_session_open_model(&options, diagnostics, &session, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    shape_count = execs = steps = 0;
    slow = NULL;
    return session;
}

static void close_all(struct sl_session *session)
{
    sl_session_close(session);
    sl_diagnostics_destroy(diagnostics);
}

static void expect_ns(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-6 * expected))
        fail_msg("%.9g, not %.9g", got, expected);
}

/* ---- the cost of a step ----------------------------------------------------------------------------------------- */

#define ADDING(length, size, batch_size)                                                                               \
    "seqlstm: 1\nname: m\ndata: {type: generator, name: adding_problem, length: " length ", train: {size: " size       \
    "}, batch_size: " batch_size "}\nmodel:\n  - {type: lstm, units: 2}\n  - {type: dense, units: from_target}\n"      \
    "train: {loss: mse, optimizer: adam, epochs: 1}\ndispatch: {policy: order}\nbackends: [reference]\n"

static void expect_points(const struct sl_step_cost_point *points, int32_t count, const int64_t *widths, int64_t step,
                          int64_t wide)
{
    for (int32_t p = 0; p < count; p++) {
        assert_int_equal(points[p].width, widths[p]);
        expect_ns(points[p].step_ns, (double)(step + points[p].width * wide));
    }
}

/* Powers of two, and the widest batch of the data. */
static void test_widths_and_slopes(void **state)
{
    static const struct {
        const char *text;
        int32_t count;
        int64_t widths[8];
    } rows[] = {{ADDING("20", "40", "12"), 5, {1, 2, 4, 8, 12}},
                {ADDING("20", "40", "16"), 5, {1, 2, 4, 8, 16}},
                {ADDING("20", "40", "17"), 6, {1, 2, 4, 8, 16, 17}},
                {ADDING("4", "5", "12"), 4, {1, 2, 4, 5}},
                {ADDING("20", "9", "1"), 1, {1}}};
    (void)state;
    rule.batch = 70000;
    rule.step = 9000;
    rule.wide = 300;
    rule.first = 25000;
    rule.update = 4000;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_session *session = open(rows[k].text);
        const struct sl_step_cost *cost;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        ok(sl_session_find_step_cost(session, &cost, &err), &err);
        assert_non_null(cost);
        assert_int_equal(cost->count, rows[k].count);
        assert_int_equal(cost->source_count, 0);
        expect_points(cost->points, cost->count, rows[k].widths, rule.step, rule.wide);
        expect_ns(cost->batch_ns, (double)(rule.batch + rule.update));
        expect_ns(cost->shape_ns, (double)rule.first);
        const int before = steps;
        ok(sl_session_find_step_cost(session, &cost, &err), &err); /* once is enough */
        assert_int_equal(steps, before);
        close_all(session);
    }
}

static const char pair_text[] = "seqlstm: 1\nname: m\ndata:\n"
                                "  train: {type: generator, name: addition, digits: 3, size: 60, seed: 5}\n"
                                "  batch_size: 12\nmodel:\n  encoder:\n    - {type: embedding, dim: 2}\n"
                                "    - {type: lstm, units: 3}\n  decoder:\n    - {type: embedding, dim: 2}\n"
                                "    - {type: lstm, units: 3, return_sequences: true}\n"
                                "    - {type: output, activation: softmax}\n"
                                "train: {optimizer: adam, epochs: 1}\ndispatch: {policy: order}\n"
                                "backends: [reference]\n";

/* For pairs each side has a cost of its own. */
static void test_both_sides_of_pairs(void **state)
{
    static const int64_t widths[] = {1, 2, 4, 8, 12};
    struct sl_session *session = open(pair_text);
    const struct sl_step_cost *cost;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    rule.source_step = 5000;
    rule.source_wide = 1100;
    ok(sl_session_find_step_cost(session, &cost, &err), &err);
    assert_true(cost->count == 5 && cost->source_count == 5);
    expect_points(cost->points, 5, widths, rule.step, rule.wide);
    expect_points(cost->source_points, 5, widths, rule.source_step, rule.source_wide);
    expect_ns(cost->batch_ns, (double)(rule.batch + rule.update));
    expect_ns(cost->shape_ns, (double)rule.first);
    close_all(session);
}

/* A stored cost is not measured again; data without steps have none. */
static void test_what_is_not_measured(void **state)
{
    struct sl_session *session = open(ADDING("20", "40", "12"));
    const struct sl_step_cost *cost;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    session->stored.cost = (struct sl_step_cost){.count = 1, .points = {{3, 77}}};
    ok(sl_session_find_step_cost(session, &cost, &err), &err);
    assert_true(cost->count == 1 && cost->points[0].width == 3 && cost->points[0].step_ns == 77);
    assert_int_equal(steps, 0);
    close_all(session);
}

/* ---- whole steps ------------------------------------------------------------------------------------------------ */

enum { CALLS_MOST = 16 };

/* Two plans that are alike, but for `slow`; each is said to take so long. */
struct pair {
    struct sl_plan plans[2];
    struct sl_call calls[2][CALLS_MOST];
};

static void make_pair(const struct sl_plan *plan, double predicted_ns, struct pair *out)
{
    assert_true(plan->call_count <= CALLS_MOST);
    for (int w = 0; w < 2; w++) {
        out->plans[w] = *plan;
        memcpy(out->calls[w], plan->calls, (size_t)plan->call_count * sizeof *plan->calls);
        for (int32_t c = 0; c < plan->call_count; c++) {
            out->calls[w][c].cost.forward_ns = c == 0 ? predicted_ns * (w + 1) / 4 : 0;
            out->calls[w][c].cost.backward_ns = c == 0 ? predicted_ns * (w + 1) * 3 / 4 : 0;
        }
        out->plans[w].calls = out->calls[w];
    }
}

/* Three kinds of batches: three sequences each of 6, 6 and 3 steps, of 5, 4 and 3, and of 2. */
static int32_t lengths[3][3] = {{6, 6, 3}, {6, 4, 2}, {2, 2, 2}};
static const struct sl_profiles profiles = {.items = {{.sequences = 3, .lengths = lengths[0], .weight = 0.5},
                                                      {.sequences = 3, .lengths = lengths[1], .weight = 0.25},
                                                      {.sequences = 3, .lengths = lengths[2], .weight = 0.25}},
                                            .count = 3};

static double price(int64_t rows)
{
    return (double)(rule.batch + rows / 3 * rule.step + rows * rule.wide);
}

static void test_whole_steps_of_two_plans(void **state)
{
    static const struct {
        double predicted_ns, seconds, factor;
        double batches; /* that fit; between 0 and 1: the share of one that does */
    } rows[] = {{1e3, 1, 2, 3},          {1e3, 1, 0.25, 3},   {1e6, 1, 3, 3},     {1e6, 0.036, 2, 3},
                {1e6, 0.0359, 2, 2},     {1e6, 0.0239, 2, 1}, {1e6, 0.012, 2, 1}, {1e6, 0.010, 2, 0.83},
                {1e6, 0.0015, 2, 0.125}, {1e6, 0.00149, 2, 0}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_session *session = open(ADDING("6", "40", "3"));
    (void)state;
    rule.first = rule.update = rule.source_step = rule.source_wide = 0;
    ok(sl_session_prepare_training(session, &err), &err);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int w = 0; w < 2; w++) {
            struct pair pair;
            double ns[2], expected = 0, all = 0, here = 0;
            const struct sl_tuning tuning = {
                .profiles = &profiles, .pool = session->pool, .interrupt = session->options.interrupt};
            make_pair(session->train.plan, rows[k].predicted_ns, &pair);
            const struct sl_whole_steps_request request = {.plans = {&pair.plans[0], &pair.plans[1]},
                                                           .tuning = &tuning,
                                                           .optimizer_states = 2,
                                                           .seconds = rows[k].seconds};
            slow = &pair.plans[w];
            rule.factor = rows[k].factor;
            execs = 0;
            ok(sl_session_time_whole_steps(&request, ns, &err), &err);
            slow = NULL;
            const int count = rows[k].batches < 1 ? 1 : (int)rows[k].batches, first = (3 - count) / 2;
            const int most = rows[k].batches < 1 ? (int)ceil(6 * rows[k].batches) : 6;
            for (int b = 0; b < 3; b++) {
                int64_t whole = 0, cut = 0;
                for (int i = 0; i < 3; i++) {
                    whole += lengths[b][i];
                    cut += lengths[b][i] < most ? lengths[b][i] : most;
                }
                all += profiles.items[b].weight * (double)whole;
                if (b < first || b >= first + count)
                    continue;
                here += profiles.items[b].weight * (double)cut;
                expected += profiles.items[b].weight * price(cut);
            }
            if (rows[k].batches <= 0) {
                assert_true(ns[0] == 0 && ns[1] == 0 && execs == 0);
                continue;
            }
            expect_ns(ns[1 - w], expected * all / here);
            expect_ns(ns[w], expected * all / here * rows[k].factor);
            assert_true(execs >= 6 && execs % 2 == 0); /* each has three turns at least */
        }
    close_all(session);
}

/* The sources of a batch are as long as they are, however short its targets, and are cut by the same share. */
static void test_whole_steps_of_pairs(void **state)
{
    static int32_t targets[] = {4, 3, 2}, sources[] = {7, 5, 3};
    static const struct sl_profiles of_pairs = {
        .items = {{.sequences = 3, .lengths = targets, .source_lengths = sources, .weight = 1}}, .count = 1};
    static const struct {
        double seconds;
        int64_t rows, source_rows;
    } rows[] = {{1, 4 + 3 + 2, 7 + 5 + 3}, {0.006, 2 + 2 + 2, 4 + 4 + 3}}; /* there is time for half of a batch */
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_session *session = open(pair_text);
    (void)state;
    rule.source_step = 5000;
    rule.source_wide = 1100;
    ok(sl_session_prepare_training(session, &err), &err);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct pair pair;
        double ns[2];
        const struct sl_tuning tuning = {
            .profiles = &of_pairs, .pool = session->pool, .interrupt = session->options.interrupt};
        make_pair(session->train.plan, 1e6, &pair);
        const struct sl_whole_steps_request request = {.plans = {&pair.plans[0], &pair.plans[1]},
                                                       .tuning = &tuning,
                                                       .optimizer_states = 2,
                                                       .seconds = rows[k].seconds};
        ok(sl_session_time_whole_steps(&request, ns, &err), &err);
        const double expected = price(rows[k].rows) + (double)(rows[k].source_rows / 3 * rule.source_step +
                                                               rows[k].source_rows * rule.source_wide);
        expect_ns(ns[0], expected * 9 / (double)rows[k].rows);
    }
    rule.source_step = rule.source_wide = 0;
    close_all(session);
}

/* ---- pieces ----------------------------------------------------------------------------------------------------- */

/* The number of pieces with which a step is fastest, of those for which there is time; at most as many as the graph
 * has. */
static void test_numbers_of_pieces(void **state)
{
    static const struct {
        int64_t pieces, batch_ns;
        double factors[17];
        const char *tried;
        int32_t chosen;
    } rows[] = {
        {0, 1000, {[2] = 5, [4] = 4, [6] = 3, [8] = 2, [12] = 7, [16] = 9}, "8 4 16 2 12 6 ", 8},
        {0, 1000, {[2] = 1, [4] = 4, [6] = 3, [8] = 2, [12] = 7, [16] = 9}, "8 4 16 2 12 6 ", 2},
        {0, 1000, {[2] = 5, [4] = 4, [6] = 1, [8] = 2, [12] = 7, [16] = 9}, "8 4 16 2 12 6 ", 6},
        {0, 1000, {[2] = 2, [4] = 2, [6] = 2, [8] = 2, [12] = 2, [16] = 2}, "8 4 16 2 12 6 ", 8}, /* the first */
        {0, 600000000, {[2] = 1, [4] = 3, [6] = 1, [8] = 4, [12] = 1, [16] = 9}, "8 4 ", 4},      /* no more time */
        {0, 2000000000, {[2] = 1, [4] = 3, [6] = 1, [8] = 4, [12] = 1, [16] = 9}, "8 ", 8},
        {5, 1000, {[5] = 1}, "5 ", 5}, /* as it is given */
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct sl_session *session = open(ADDING("16", "40", "4"));
        const struct sl_parallel_config staged = {.data = 1, .pipeline = 2, .pieces = rows[k].pieces},
                                        together = {.data = 1, .pipeline = 1};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        session->model->parallel = staged;
        memcpy(piece_factors, rows[k].factors, sizeof rows[k].factors);
        rule.batch = rows[k].batch_ns;
        tried = (struct sl_buf){0};
        ok(sl_session_meet(session, &together, &err), &err);
        ok(sl_session_prepare_training(session, &err), &err);
        assert_string_equal(sl_buf_text(&tried), rows[k].tried);
        assert_true(session->pipeline.stages == 2 && session->pipeline.pieces == rows[k].chosen);
        assert_true(session->pipeline.chosen == (rows[k].pieces == 0));
        int tries = 0;
        for (const char *at = rows[k].tried; (at = strchr(at, ' ')); at++)
            tries++;
        assert_int_equal(steps, 4 * tries); /* of each number one to warm up, and three that count */
        sl_buf_deinit(&tried);
        close_all(session);
    }
    memset(piece_factors, 0, sizeof piece_factors);
}

/* ---- without memory --------------------------------------------------------------------------------------------- */

/* Costs, whole steps and numbers of pieces are measured as a whole, or there is no memory. */
static void test_measuring_without_memory(void **state)
{
    static const struct sl_parallel_config staged = {.data = 1, .pipeline = 2}, together = {.data = 1, .pipeline = 1};
    static const double factors[17] = {[2] = 5, [4] = 4, [6] = 1, [8] = 2, [12] = 7, [16] = 9};
    int failures = 0;
    (void)state;
    rule.batch = 70000;
    rule.first = 25000;
    memcpy(piece_factors, factors, sizeof factors);
    for (int act = 0; act < 3; act++)
        for (int n = 0;; n++) {
            struct sl_session *session = open(ADDING("16", "40", "3"));
            const struct sl_step_cost *cost = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct pair pair;
            double ns[2] = {0, 0};
            const struct sl_tuning tuning = {
                .profiles = &profiles, .pool = session->pool, .interrupt = session->options.interrupt};
            const struct sl_whole_steps_request request = {
                .plans = {&pair.plans[0], &pair.plans[1]}, .tuning = &tuning, .optimizer_states = 2, .seconds = 1};
            seqlstm_status status = SEQLSTM_OK;
            tried = (struct sl_buf){0};
            if (act == 1) {
                ok(sl_session_prepare_training(session, &err), &err);
                make_pair(session->train.plan, 1e6, &pair);
            } else if (act == 2) {
                session->model->parallel = staged;
            }
            if (n > 0)
                oom_fail_anew(5);
            if (act == 0)
                status = sl_session_find_step_cost(session, &cost, &err);
            else if (act == 1)
                status = sl_session_time_whole_steps(&request, ns, &err);
            else if ((status = sl_session_meet(session, &together, &err)) == SEQLSTM_OK)
                status = sl_session_prepare_training(session, &err);
            const bool failed = oom_disarm();
            if (status != SEQLSTM_OK && (!failed || status != SEQLSTM_NO_MEMORY))
                fail_msg("act %d: status %d: %s", act, (int)status, err.message);
            if (status == SEQLSTM_OK && act == 0)
                assert_true(cost && cost->count == 3 && cost->points[2].width == 3);
            if (status == SEQLSTM_OK && act == 1)
                assert_true(ns[0] > 0 && fabs(ns[1] - ns[0]) <= 1e-6 * ns[0]);
            if (status == SEQLSTM_OK && act == 2 && !tried.failed)
                assert_true(session->pipeline.stages == 2 && session->pipeline.pieces == 6);
            sl_buf_deinit(&tried);
            close_all(session);
            failures += failed;
            if (n > 0 && !failed)
                break;
        }
    memset(piece_factors, 0, sizeof piece_factors);
    assert_true(failures > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths_and_slopes),        cmocka_unit_test(test_both_sides_of_pairs),
        cmocka_unit_test(test_what_is_not_measured),     cmocka_unit_test(test_whole_steps_of_two_plans),
        cmocka_unit_test(test_whole_steps_of_pairs),     cmocka_unit_test(test_numbers_of_pieces),
        cmocka_unit_test(test_measuring_without_memory),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
