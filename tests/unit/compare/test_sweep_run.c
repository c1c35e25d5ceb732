/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs of `bench` over backends that a test makes up: what is planned, judged, timed, left out and won. */
#include "fake_sides.h"
#include "oom.h"

#include "compare/sweep/sweep.h"
#include "session/record/session_record.h"

static const char model[] =
    "seqlstm: 1\n"
    "name: sums\n"
    "seed: 3\n"
    "data: {type: generator, name: adding_problem, length: [3, 6], train: {size: 40}, batch_size: 4}\n"
    "model: [{type: lstm, units: 2, layers: 2, return_sequences: true}, {type: lstm, units: 3}, "
    "{type: dense, units: from_target}]\n"
    "train: {loss: mse, optimizer: sgd, epochs: 1}\n"
    "backends: [reference]\n";

/* Different in each turn: the medians are those of a middle turn. */
static double vary(const struct fake_side *side, double ns)
{
    return ns * (1 + 0.125 * (side->turns * 3 % 5));
}

/* One thread is faster for small batches; two by less than 3 % for the second size, and clearly for the last. */
static double quick_ns(const struct fake_side *side)
{
    const int threads = sl_pool_get_members(side->request.pool), batch = (int)side->request.sample->envelope.sequences;
    static const double one[] = {1e6, 2.05e6, 4e6, 8e6}, two[] = {1.5e6, 2e6, 3e6, 4.5e6};
    const int k = batch == 2 ? 0 : batch == 4 ? 1 : batch == 8 ? 2 : 3;
    return vary(side, threads == 1 ? one[k] : two[k]);
}

static double plain_ns(const struct fake_side *side)
{
    return vary(side, 7e6 * sl_pool_get_members(side->request.pool));
}

static const struct fake_backend backends[] = {
    {.id = "quick", .version = "1", .accepts = "rdl", .joins = true, .ns = quick_ns},
    {.id = "plain", .version = "1", .accepts = "d", .ns = plain_ns},
    {.id = "wrong",
     .version = "1",
     .accepts = "rdl",
     .wrong = (const char *const[]){"lstm_2", "dense_1", NULL},
     .ns = plain_ns},
    {.id = "gone", .version = "1", .accepts = "", .gone = "no such device", .ns = plain_ns},
    {.id = "idle", .version = "1", .accepts = "l", .ns = plain_ns},
    {.id = NULL}};

static struct sl_buf out;

static void show_run(const char *title, const struct sl_sweep_request *request)
{
    struct sl_sweep_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
    fake_now_ns = 1000;
    fake_peak = 9;
    fake_peak_step = 1;
    const seqlstm_status status = sl_sweep_run(request, &report, &err);
    sl_buf_printf(&out, "== %s: %d %s\n", title, (int)status, status == SEQLSTM_OK ? "" : err.message);
    /* turns that are equal to those before are counted */
    char *rest = sl_buf_text(&fake_log) ? fake_log.data : NULL, *line;
    const char *before = "";
    int times = 0;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (*before && strcmp(before, line) != 0)
            sl_buf_printf(&out, times > 1 ? "%s, %d times\n" : "%s\n", before, times);
        times = strcmp(before, line) == 0 ? times + 1 : 1;
        before = line;
    }
    if (report) {
        struct sl_buf json = {0};
        assert_int_equal(sl_sweep_print_json(report, &json, &err), SEQLSTM_OK);
        fake_append_rounded(sl_buf_text(&json), &out);
        sl_buf_deinit(&json);
        sl_buf_printf(&out, "failures %d\n", (int)report->failures);
    }
    sl_sweep_report_destroy(report);
    assert_int_equal(fake_open_sides, 0);
}

/* The backend `quick` is not there any more, or takes nothing any more, from a size on. */
static struct fake_backend leaving[sizeof backends / sizeof *backends];
static const char *leaves; /* why it is not there; NULL: it takes nothing */

static void leave_at_four(void *context, int64_t batch)
{
    (void)context;
    if (batch == 4) {
        leaving[0].gone = leaves;
        leaving[0].accepts = "";
    }
}

/* What won before is not timed any more: another wins. */
static void test_a_winner_that_leaves(void **state)
{
    (void)state;
    static const char *const names[] = {"quick", "plain"}, *const reasons[] = {"unplugged", NULL};
    struct sl_session *session = fake_session(model);
    struct sl_sweep_request request = {.session = session,
                                       .backends = names,
                                       .backend_count = 2,
                                       .batches = {2, 4},
                                       .batch_count = 2,
                                       .threads = {1},
                                       .thread_count = 1,
                                       .interrupt = &fake_interrupt,
                                       .phase = SL_PHASE_TRAIN,
                                       .seconds = 1.2,
                                       .on_progress = leave_at_four};
    for (int k = 0; k < 2; k++) {
        struct sl_sweep_report *report = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        memcpy(leaving, backends, sizeof backends);
        leaves = reasons[k];
        fake_backends = leaving;
        if (sl_sweep_run(&request, &report, &err) != SEQLSTM_OK)
            fail_msg("%s", err.message);
        assert_int_equal(report->batch_count, 2);
        assert_true(report->batches[0].winner == 0 && report->batches[0].cells[0].rounds > 0);
        assert_int_equal(report->batches[1].cells[0].rounds, 0);
        assert_int_equal(report->batches[1].winner, 1);
        assert_int_equal(report->crossover, 4);
        assert_string_equal(report->candidates[0].excluded,
                            k == 0 ? "quick: unplugged" : "it takes no layer of the model that has products");
        assert_int_equal(report->failures, 0);
        sl_sweep_report_destroy(report);
        assert_int_equal(fake_open_sides, 0);
    }
    sl_session_close(session);
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
}

static void leave_at_sixty(void *context, int64_t batch)
{
    leave_at_four(context, batch == 60 ? 4 : batch);
}

/* Where three candidates win one after the other, the crossover is the first size of the last one. */
static void test_three_winners(void **state)
{
    (void)state;
    static const char *const names[] = {"quick", "plain"};
    struct sl_session *session = fake_session(model);
    const struct sl_sweep_request request = {.session = session,
                                             .backends = names,
                                             .backend_count = 2,
                                             .batches = {2, 8, 60},
                                             .batch_count = 3,
                                             .threads = {1, 2},
                                             .thread_count = 2,
                                             .interrupt = &fake_interrupt,
                                             .phase = SL_PHASE_TRAIN,
                                             .seconds = 9,
                                             .on_progress = leave_at_sixty};
    struct sl_sweep_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memcpy(leaving, backends, sizeof backends);
    leaves = "unplugged";
    fake_backends = leaving;
    if (sl_sweep_run(&request, &report, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(report->batch_count, 3);
    for (int b = 0; b < 3; b++)
        assert_int_equal(report->batches[b].winner, b);
    assert_int_equal(report->crossover, 60);
    sl_sweep_report_destroy(report);
    sl_session_close(session);
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
}

static void test_runs(void **state)
{
    static const char *const names[] = {"quick", "plain", "wrong", "gone", "idle"};
    struct sl_session *session = fake_session(model);
    (void)state;
    fake_backends = backends;
    struct sl_sweep_request request = {.session = session,
                                       .backends = names,
                                       .backend_count = 5,
                                       .batches = {2, 4, 8, 60},
                                       .batch_count = 4,
                                       .threads = {1, 2},
                                       .thread_count = 2,
                                       .interrupt = &fake_interrupt,
                                       .phase = SL_PHASE_TRAIN,
                                       .seconds = 1.2};
    show_run("all sizes", &request);
    request.seconds = 0.09; /* three rounds of the first size take more */
    show_run("no time", &request);
    request.phase = SL_PHASE_PREDICT;
    request.seconds = 4;
    request.backend_count = 1;
    request.batch_count = 2;
    show_run("inference", &request);
    request.backends = names + 2;
    show_run("only a wrong one", &request);
    request.backends = names + 3;
    request.backend_count = 2;
    show_run("none that runs", &request);
    sl_session_close(session);
    golden_expect("reports/sweep_runs.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
    sl_buf_deinit(&fake_log);
}

/* Of the backends that the model lists, one that is required must be there; any other may be missing. */
static void test_backends_of_the_model(void **state)
{
    static const char *const names[] = {"quick"};
    static const struct {
        const char *listed, *message; /* NULL: there is a report */
        int32_t backends, errors;
    } rows[] = {
        {"[reference, nowhere]", "no backend is loaded but the reference", 0, 0},
        {"[reference, nowhere]", NULL, 1, 0},
        {"[reference, {plugin: nowhere, require: true}]", "the required backend `nowhere` was not found", 0, 1},
        {"[reference, {plugin: nowhere, require: true}]", "the required backend `nowhere` was not found", 1, 1}};
    (void)state;
    fake_backends = backends;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char text[sizeof model + 64];
        snprintf(text, sizeof text, "%.*s%s\n", (int)(strstr(model, "[reference]") - model), model, rows[k].listed);
        struct sl_session *session = fake_session(text);
        const struct sl_sweep_request request = {.session = session,
                                                 .backends = names,
                                                 .backend_count = rows[k].backends,
                                                 .batches = {2},
                                                 .batch_count = 1,
                                                 .threads = {1},
                                                 .thread_count = 1,
                                                 .interrupt = &fake_interrupt,
                                                 .seconds = 1};
        struct sl_sweep_report *report = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_diagnostics_create(&session->diagnostics, &err),
                         SEQLSTM_OK); /* those of opening it are gone */
        fake_now_ns = 1000;
        const seqlstm_status status = sl_sweep_run(&request, &report, &err);
        assert_int_equal(status, rows[k].message ? SEQLSTM_UNAVAILABLE : SEQLSTM_OK);
        assert_int_equal(sl_diagnostics_count(session->diagnostics, SL_SEVERITY_ERROR), rows[k].errors);
        if (rows[k].message && strstr(err.message, rows[k].message) == NULL)
            fail_msg("%s", err.message);
        assert_int_equal(report == NULL, rows[k].message != NULL);
        sl_sweep_report_destroy(report);
        sl_diagnostics_destroy(session->diagnostics);
        sl_session_close(session);
    }
}

static seqlstm_status sweep_two(struct sl_session *session, struct seqlstm_error *err)
{
    static const char *const names[] = {"quick", "plain"};
    struct sl_sweep_report *report = NULL;
    struct sl_buf text = {0};
    const struct sl_sweep_request request = {.session = session,
                                             .backends = names,
                                             .backend_count = 2,
                                             .batches = {2, 4},
                                             .batch_count = 2,
                                             .threads = {1, 2},
                                             .thread_count = 2,
                                             .interrupt = &fake_interrupt,
                                             .phase = SL_PHASE_TRAIN,
                                             .seconds = 0.1};
    fake_now_ns = 1000;
    seqlstm_status status = sl_sweep_run(&request, &report, err);
    if (status == SEQLSTM_OK) {
        sl_sweep_print_table(report, &text);
        status = sl_sweep_print_json(report, &text, err);
    }
    if (status == SEQLSTM_OK && (text.failed || fake_log.failed))
        status = SEQLSTM_NO_MEMORY;
    sl_buf_deinit(&text);
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
    sl_sweep_report_destroy(report);
    return status;
}

static void test_memory(void **state)
{
    char text[sizeof model];
    memcpy(text, model, sizeof model);
    *strstr(text, "backends") = '#'; /* what loads a backend can do without some of its memory */
    struct sl_session *session = fake_session(text);
    (void)state;
    fake_backends = backends;
    fake_without_memory(sweep_two, session);
    sl_session_close(session);
}

static int calls, stop_at;

/* Of a backend that is interrupted at one of its calls: two in each turn. */
static double stopping_ns(const struct fake_side *side)
{
    if (++calls == stop_at)
        atomic_store(&fake_interrupt.stop, 2);
    return plain_ns(side);
}

/* Whenever it is interrupted, it ends with that turn, and closes what is open. */
static void test_interrupt(void **state)
{
    static const char *const names[] = {"one", "other"};
    static const struct fake_backend stopping[] = {
        {.id = "one", .version = "1", .accepts = "rdl", .joins = true, .ns = stopping_ns},
        {.id = "other", .version = "1", .accepts = "rdl", .ns = stopping_ns},
        {.id = NULL}};
    struct sl_session *session = fake_session(model);
    const struct sl_sweep_request request = {.session = session,
                                             .backends = names,
                                             .backend_count = 2,
                                             .batches = {2, 4},
                                             .batch_count = 2,
                                             .threads = {1},
                                             .thread_count = 1,
                                             .interrupt = &fake_interrupt,
                                             .phase = SL_PHASE_TRAIN,
                                             .seconds = 0.1};
    (void)state;
    fake_backends = stopping;
    seqlstm_status status = SEQLSTM_CANCELLED;
    for (stop_at = 1; status == SEQLSTM_CANCELLED; stop_at++) {
        struct sl_sweep_report *report = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        calls = 0;
        fake_now_ns = 1000;
        status = sl_sweep_run(&request, &report, &err);
        sl_sweep_report_destroy(report);
        assert_int_equal(fake_open_sides, 0);
        assert_int_equal(status, atomic_load(&fake_interrupt.stop) ? SEQLSTM_CANCELLED : SEQLSTM_OK);
        if (status == SEQLSTM_CANCELLED) {
            assert_string_equal(err.message, "interrupted");
            assert_int_equal(calls, (stop_at + 1) / 2 * 2);
        }
        atomic_store(&fake_interrupt.stop, 0);
    }
    assert_true(stop_at > 8); /* a turn of each backend for each size */
    sl_session_close(session);
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_winner_that_leaves),
                                       cmocka_unit_test(test_three_winners),
                                       cmocka_unit_test(test_runs),
                                       cmocka_unit_test(test_backends_of_the_model),
                                       cmocka_unit_test(test_interrupt),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
