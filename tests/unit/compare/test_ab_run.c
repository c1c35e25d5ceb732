/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs of `ab` over backends that a test makes up: which layers are compared and why not, times, numbers,
 * distances and their order. */
#include "fake_sides.h"
#include "oom.h"

#include <math.h>

#include "compare/ab/ab.h"
#include "session/record/session_record.h"

static const char model[] =
    "seqlstm: 1\n"
    "seed: 3\n"
    "data: {type: generator, name: adding_problem, length: [3, 6], train: {size: 10}, batch_size: 4}\n"
    "model: [{type: lstm, units: 2, layers: 2, return_sequences: true}, "
    "{type: lstm, name: pinned, units: 3}, {type: dense, units: from_target}]\n"
    "train: {loss: mse, optimizer: sgd, epochs: 1}\n"
    "backends: [reference]\n"
    "dispatch: {pin: {pinned: reference:loops}}\n";

/* Rows of both sides count. */
static const char pairs[] =
    "seqlstm: 1\n"
    "seed: 1\n"
    "data:\n"
    "  train: {type: generator, name: addition, digits: 1, size: 20}\n"
    "  batch_size: 3\n"
    "model:\n"
    "  encoder: [{type: embedding, dim: 2}, {type: lstm, name: reader, units: 3}]\n"
    "  decoder: [{type: embedding, dim: 2}, "
    "{type: lstm, units: 3, return_sequences: true, initial_state: reader}, {type: output, activation: softmax}]\n"
    "train: {loss: cross_entropy, epochs: 1}\n"
    "backends: [reference]\n";

/* Longer in later batches. */
static double a_ns(const struct fake_side *side)
{
    return 2e6 * (1 + side->batch) * (1 + 0.125 * (side->turns % 3));
}

static double b_ns(const struct fake_side *side)
{
    return 1.25 * a_ns(side) + 1000 * (side->turns % 5);
}

static const struct fake_backend backends[] = {
    {.id = "aa", .version = "1.5", .accepts = "rdl", .joins = true, .ns = a_ns, .loss = 0.5, .values = {1, 2, 3}},
    {.id = "bb", .version = "2.5", .accepts = "rl", .joins = true, .ns = b_ns, .loss = 0.75, .values = {1, 2, 5}},
    {.id = "cc", .version = "3", .on_device = true, .accepts = "rdl", .ns = a_ns, .values = {1, 2, 3}},
    {.id = "dd",
     .version = "4",
     .accepts = "rdl",
     .joins = true,
     .wrong = (const char *const[]){"lstm_1", NULL},
     .ns = a_ns,
     .values = {1, 2, 3}},
    {.id = "ee", .version = "5", .accepts = "rdl", .ns = a_ns, .values = {1, NAN, 3}},
    {.id = "ff", .version = "6", .accepts = "", .ns = a_ns},
    {.id = NULL}};

static struct sl_buf out;

static void note(void *context, double gone)
{
    (void)context;
    sl_buf_printf(&fake_log, "%.4f s\n", gone);
}

static void show_run(struct sl_session *session, const char *a, const char *b, enum sl_phase phase, int64_t batch)
{
    struct sl_ab_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_ab_request request = {.session = session,
                                          .a = a,
                                          .b = b,
                                          .phase = phase,
                                          .batch_size = batch,
                                          .rounds = 6,
                                          .seconds = 0.5,
                                          .confidence = 0.95,
                                          .threads = 2,
                                          .on_progress = note,
                                          .interrupt = &fake_interrupt};
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
    fake_now_ns = 0;
    fake_peak = 8e-3;
    fake_peak_step = phase == SL_PHASE_TRAIN ? 1e-3 : -1e-3;
    const seqlstm_status status = sl_ab_run(&request, &report, &err);
    sl_buf_printf(&out, "== %s and %s: %d %s\n%s", a, b, (int)status, status == SEQLSTM_OK ? "" : err.message,
                  sl_buf_text(&fake_log));
    if (report) {
        sl_ab_report_print_table(report, &out);
        struct sl_buf json = {0};
        assert_int_equal(sl_ab_report_print_json(report, &json, &err), SEQLSTM_OK);
        fake_append_rounded(sl_buf_text(&json), &out);
        sl_buf_deinit(&json);
    }
    sl_ab_report_destroy(report);
    assert_int_equal(fake_open_sides, 0);
}

static void test_runs(void **state)
{
    struct sl_session *session = fake_session(model);
    (void)state;
    fake_backends = backends;
    show_run(session, "aa", "bb", SL_PHASE_TRAIN, 0);
    show_run(session, "bb", "aa", SL_PHASE_PREDICT, 20);
    show_run(session, "aa", "cc", SL_PHASE_TRAIN, 4);
    show_run(session, "dd", "aa", SL_PHASE_TRAIN, 4);
    show_run(session, "aa", "ee", SL_PHASE_TRAIN, 4);
    show_run(session, "aa", "aa", SL_PHASE_TRAIN, 4);
    show_run(session, "bb", "ff", SL_PHASE_TRAIN, 4);
    show_run(session, "aa", "zz", SL_PHASE_TRAIN, 4);
    sl_session_close(session);
    session = fake_session(pairs);
    show_run(session, "aa", "bb", SL_PHASE_TRAIN, 3);
    sl_session_close(session);
    golden_expect("reports/ab_runs.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
    sl_buf_deinit(&fake_log);
}

static seqlstm_status compare_both(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_ab_report *report = NULL;
    struct sl_buf text = {0};
    const struct sl_ab_request request = {.session = session,
                                          .a = "aa",
                                          .b = "bb",
                                          .rounds = 3,
                                          .seconds = 0.5,
                                          .confidence = 0.95,
                                          .threads = 1,
                                          .interrupt = &fake_interrupt};
    fake_now_ns = 0;
    seqlstm_status status = sl_ab_run(&request, &report, err);
    if (status == SEQLSTM_OK) {
        sl_ab_report_print_table(report, &text);
        status = sl_ab_report_print_json(report, &text, err);
    }
    if (status == SEQLSTM_OK && (text.failed || fake_log.failed))
        status = SEQLSTM_NO_MEMORY;
    sl_buf_deinit(&text);
    sl_buf_deinit(&fake_log);
    fake_log = (struct sl_buf){0};
    sl_ab_report_destroy(report);
    return status;
}

/* Of the backends that the model lists, one that is required must be there, though neither side is one of them. */
static void test_backends_of_the_model(void **state)
{
    static const char *const listed[] = {"[reference, nowhere]", "[reference, {plugin: nowhere, require: true}]"};
    (void)state;
    fake_backends = backends;
    for (int k = 0; k < 2; k++) {
        char text[sizeof pairs + 64];
        snprintf(text, sizeof text, "%.*s%s\n", (int)(strstr(pairs, "[reference]") - pairs), pairs, listed[k]);
        struct sl_session *session = fake_session(text);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_diagnostics_create(&session->diagnostics, &err),
                         SEQLSTM_OK); /* those of opening it are gone */
        assert_int_equal(compare_both(session, &err), k ? SEQLSTM_UNAVAILABLE : SEQLSTM_OK);
        assert_int_equal(sl_diagnostics_count(session->diagnostics, SL_SEVERITY_ERROR), k);
        assert_int_equal(strstr(err.message, "the required backend `nowhere` was not found") != NULL, k);
        sl_diagnostics_destroy(session->diagnostics);
        sl_session_close(session);
    }
}

static void test_memory(void **state)
{
    char text[sizeof model];
    memcpy(text, model, sizeof model);
    *strstr(text, "backends") = '#'; /* what loads a backend can do without some of its memory */
    struct sl_session *session = fake_session(text);
    (void)state;
    fake_backends = backends;
    fake_without_memory(compare_both, session);
    sl_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_runs), cmocka_unit_test(test_backends_of_the_model),
                                       cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
