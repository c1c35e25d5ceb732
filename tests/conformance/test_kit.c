/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kit itself: it must notice and name each mistake of faulty.c, and find nothing without mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "conformance/conformance.h"
#include "judge/guarded.h"
#include "judge/tolerance.h"
#include "planted.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static seqlstm_backend_query_fn reference = seqlstm_reference_query_v0;
static uint32_t levels; /* of the next run */

static struct sl_conformance_report *run(const char *fault, const char *const *cases, uint32_t count,
                                         const char *const *worker, int64_t timeout_ns)
{
    char path[600];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report = NULL;
    snprintf(path, sizeof path, "%s/tests/conformance/libfaulty-%s.so", getenv("SEQLSTM_BUILD"), fault);
    struct sl_conformance_request request = {
        .file = path,
        .reference = reference,
        .levels = levels,
        .cases = cases,
        .case_count = count,
        .worker = worker,
        .timeout_ns = timeout_ns,
    };
    if (sl_conformance_run(&request, &report, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", fault, err.message);
    return report;
}

static void planted_faults_are_caught_and_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        const struct planted *p = &planted[i];
        struct sl_conformance_report *report = run(p->fault, &p->text, 1, NULL, 0);
        const struct sl_conformance_result *r = sl_conformance_report_get(report, 0);
        if (r->check.verdict != SL_VERDICT_FAIL)
            fail_msg("%s was not noticed by %s: %s", p->fault, p->text, sl_verdict_name(r->check.verdict));
        if (!strstr(r->check.detail, p->detail))
            fail_msg("%s: '%s', expected '%s' in it", p->fault, r->check.detail, p->detail);
        sl_conformance_report_destroy(report);
    }
}

static void what_is_idle_and_stays_so_passes(void **state)
{
    (void)state;
    const char *text = "lstm:idle:T7B5I6H9:f32:ragged";
    struct sl_conformance_report *report = run("leaves-idle", &text, 1, NULL, 0);
    assert_int_equal(sl_conformance_report_get(report, 0)->check.verdict, SL_VERDICT_PASS);
    sl_conformance_report_destroy(report);
}

/* ---- another plugin beside it ---- */

static const struct seqlstm_backend *plain_reference;

static seqlstm_status rude_forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                   const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    srand48(99); /* any plugin may do this: none may rely on state that the whole process shares */
    return plain_reference->forward(binding, queue, args, err);
}

static const struct seqlstm_backend *rude_query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    plain_reference = seqlstm_reference_query_v0(host_minor);
    table = *plain_reference;
    table.forward = rude_forward;
    return &table;
}

static void reliance_on_the_process_shows_beside_another_plugin(void **state)
{
    (void)state;
    static const char *const faults[] = {"none", "beside"};
    const char *text = "lstm:alternate:T7B5I6H9:f32:ragged";
    for (int i = 0; i < 2; i++) {
        reference = rude_query;
        struct sl_conformance_report *report = run(faults[i], &text, 1, NULL, 0);
        reference = seqlstm_reference_query_v0;
        const struct sl_conformance_result *r = sl_conformance_report_get(report, 0);
        assert_int_equal(r->check.verdict, i == 0 ? SL_VERDICT_PASS : SL_VERDICT_FAIL);
        assert_true(i == 0 || strstr(r->check.detail, "it gave other bits when both ran on one queue in turn"));
        sl_conformance_report_destroy(report);
    }
}

/* stderr is watched only in workers: in this process it stays visible, so that a debugger shows the last messages. */
static void words_on_stderr_and_at_load_are_noticed(void **state)
{
    (void)state;
    const char *text = "lstm:inf:T7B5I6H9:f32:ragged", *build = getenv("SEQLSTM_BUILD");
    char program[600], path[600];
    snprintf(program, sizeof program, "%s/tests/conformance/conformance", build);
    snprintf(path, sizeof path, "%s/tests/conformance/libfaulty-complains.so", build);
    const char *worker[] = {program, path, "--worker", NULL};
    struct sl_conformance_report *report = run("complains", &text, 1, worker, 0);
    const struct sl_conformance_result *r = sl_conformance_report_get(report, 0);
    assert_int_equal(r->check.verdict, SL_VERDICT_FAIL);
    assert_non_null(strstr(r->check.detail, "slow path"));
    sl_conformance_report_destroy(report);
    levels = 1u << SL_LEVEL_LOAD | 1u << SL_LEVEL_CONTRACT;
    report = run("greets", NULL, 0, NULL, 0);
    levels = 0;
    bool seen = false;
    for (uint32_t i = 0; i < sl_conformance_report_get_size(report); i++) {
        r = sl_conformance_report_get(report, i);
        if (strcmp(r->name, "load:output") == 0 && r->check.verdict == SL_VERDICT_FAIL)
            seen = strstr(r->check.detail, "thank you for choosing") != NULL;
        else if (r->check.verdict != SL_VERDICT_PASS)
            fail_msg("%s: %s", r->name, r->check.detail);
    }
    assert_true(seen);
    sl_conformance_report_destroy(report);
}

/* Checks of the contract that notice a fault, with a part of what they say; NULL: none does. */
static const struct {
    const char *fault, *name, *detail;
} planted_contracts[] = {
    {"none", NULL, NULL},
    {"unbounded", "contract:bounds_of_bindings", "took more steps than the descriptor allows (lstm:"},
    {"records", NULL, NULL},
    {"records-backward", "contract:recordings", "or ends before it begins"},
    {"records-twice", "contract:recordings", "a second report repeats activities"},
    {"records-ahead", "contract:recordings", "ends in the future"},
    {"cannot-record", "contract:recordings", "UNAVAILABLE without a reason"},
};

static void faults_against_the_contract_are_caught(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof planted_contracts / sizeof *planted_contracts; i++) {
        const char *name = planted_contracts[i].name;
        levels = 1u << SL_LEVEL_CONTRACT;
        struct sl_conformance_report *report = run(planted_contracts[i].fault, NULL, 0, NULL, 0);
        levels = 0;
        bool seen = name == NULL;
        for (uint32_t k = 0; k < sl_conformance_report_get_size(report); k++) {
            const struct sl_conformance_result *r = sl_conformance_report_get(report, k);
            if (name && strcmp(r->name, name) == 0) {
                assert_int_equal(r->check.verdict, SL_VERDICT_FAIL);
                seen = strstr(r->check.detail, planted_contracts[i].detail) != NULL;
            } else if (r->check.verdict != SL_VERDICT_PASS) {
                fail_msg("%s: %s", r->name, r->check.detail);
            }
        }
        if (!seen)
            fail_msg("%s was not noticed", planted_contracts[i].fault);
        sl_conformance_report_destroy(report);
    }
}

/* The wrapper without a mistake: all cases that caught something above must pass. */
static void without_a_fault_the_same_cases_pass(void **state)
{
    (void)state;
    const char *cases[sizeof planted / sizeof *planted];
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++)
        cases[i] = planted[i].text;
    struct sl_conformance_report *report = run("none", cases, sizeof cases / sizeof *cases, NULL, 0);
    for (uint32_t i = 0; i < sl_conformance_report_get_size(report); i++) {
        const struct sl_conformance_result *r = sl_conformance_report_get(report, i);
        if (r->check.verdict != SL_VERDICT_PASS)
            fail_msg("%s: %s", r->name, r->check.detail);
    }
    sl_conformance_report_destroy(report);
}

static void a_crash_and_a_hang_cost_one_case(void **state)
{
    (void)state;
    /* One fault is in the second case only, the other in both LSTM cases: the last case must still run. */
    static const char *const cases[] = {"lstm:inf:T7B5I6H9:f32:ragged", "lstm:inf:T1B4I3H17:f32:ones",
                                        "dense:inf:R9I5O7:f32:flat"};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const int64_t enough_ms = 2000;
#else
    const int64_t enough_ms = 500;
#endif
    const struct {
        const char *fault, *detail; /* NULL: it is about the time */
        uint32_t first;             /* of the cases */
        int64_t timeout_ms;         /* of processor time: enough to start a worker */
    } runs[] = {{"crash", " in its function forward", 0, 0},
                {"exits", " in its function forward", 1, 0},
                {"hang", NULL, 1, enough_ms},
                {"wait", NULL, 1, enough_ms}};
    const char *build = getenv("SEQLSTM_BUILD");
    char program[600], path[600];
    snprintf(program, sizeof program, "%s/tests/conformance/conformance", build);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        snprintf(path, sizeof path, "%s/tests/conformance/libfaulty-%s.so", build, runs[i].fault);
        const char *worker[] = {program, path, "--worker", NULL};
        uint32_t count = 3 - runs[i].first;
        struct sl_conformance_report *report =
            run(runs[i].fault, cases + runs[i].first, count, worker, runs[i].timeout_ms * 1000000);
        char limit[64];
        snprintf(limit, sizeof limit, "no answer within %lld%s", (long long)runs[i].timeout_ms * (i == 3 ? 10 : 1),
                 i == 3 ? " ms, mostly waiting" : " ms of processor time");
        for (uint32_t k = 0; k < count; k++) {
            const struct sl_conformance_result *r = sl_conformance_report_get(report, k);
            bool dies = runs[i].first + k == 1;
            assert_int_equal(r->check.verdict, dies ? SL_VERDICT_CRASH : SL_VERDICT_PASS);
            if (dies)
                assert_non_null(strstr(r->check.detail, runs[i].timeout_ms ? limit : runs[i].detail));
        }
        assert_int_equal(sl_conformance_report_get_count(report, SL_VERDICT_CRASH), 1);
        struct sl_buf json = {0};
        sl_conformance_report_print_json(report, &json);
        assert_non_null(strstr(sl_buf_text(&json), "\"verdict\": \"crash\""));
        sl_buf_deinit(&json);
        struct sl_buf junit = {0};
        sl_conformance_report_print_junit(report, &junit);
        assert_non_null(strstr(sl_buf_text(&junit), "failures=\"0\" errors=\"1\" skipped=\"0\""));
        assert_non_null(strstr(sl_buf_text(&junit), "><error message=\""));
        sl_buf_deinit(&junit);
        sl_conformance_report_destroy(report);
    }
}

static seqlstm_status run_load_level(const char *fault, struct sl_conformance_report **out_report,
                                     struct seqlstm_error *err)
{
    const char *build = getenv("SEQLSTM_BUILD");
    char program[600], path[600];
    snprintf(program, sizeof program, "%s/tests/conformance/conformance", build);
    snprintf(path, sizeof path, "%s/tests/conformance/libfaulty-%s.so", build, fault);
    const char *worker[] = {program, path, "--worker", NULL};
    struct sl_conformance_request request = {
        .file = path, .reference = reference, .levels = 1u << SL_LEVEL_LOAD, .worker = worker};
    return sl_conformance_run(&request, out_report, err);
}

/* A plugin runs in workers only: not even what it does when it is loaded or left ends this process. */
static void loading_and_the_end_happen_in_a_worker(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report = NULL;
    assert_int_equal(run_load_level("exits-at-load", &report, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "the worker ended with exit status "));
    assert_non_null(strstr(err.message, " in its function load"));
    static const char *const faults[] = {"none", "aborts-at-end"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run_load_level(faults[i], &report, &err), SEQLSTM_OK);
        const struct sl_backend_record *record = sl_conformance_report_get_record(report);
        assert_string_equal(record->id, "faulty");
        assert_int_equal(record->device_count, 1);
        bool seen = false;
        for (uint32_t k = 0; k < sl_conformance_report_get_size(report); k++) {
            const struct sl_conformance_result *r = sl_conformance_report_get(report, k);
            bool end = strcmp(r->name, "load:end") == 0;
            assert_int_equal(r->check.verdict, i == 1 && end ? SL_VERDICT_CRASH : SL_VERDICT_PASS);
            seen = seen || end;
        }
        assert_true(seen);
        sl_conformance_report_destroy(report);
    }
}

static void wrong_case_strings_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "lstm",
        "lstm:bwd:T3:f32",
        "cell:bwd:T3B2:f32:ragged",
        "lstm:sideways:T3B2:f32:ragged",
        "lstm:bwd:3T:f32:ragged",
        "lstm:bwd:T3B2:f31:ragged",
        "lstm:bwd:T3B2:f32:rugged",
        "lstm:bwd:T3B2:f32:ragged:magic",
        "lstm:bwd:T3B2:f32:ragged:act=sofa",
        "rnn:bwd:T3B2:f32:ragged:peephole",
        "lstm:bwd:T3B2:f32:ragged:dropout=1.5",
        "loss:bwd:R3C2:f32:flat:kind=mse,class_weight",
    };
    struct sl_case c;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        if (sl_case_parse(wrong[i], &c, &err) == SEQLSTM_OK)
            fail_msg("'%s' was accepted", wrong[i]);
        assert_true(err.message[0] != 0);
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_case_parse("lstm:bwd:T37B5I16H33L2D2:f32:ragged:recurrent_dropout=0.4,act2=relu", &c, &err),
                     SEQLSTM_OK);
    assert_int_equal(c.desc.recurrent.hidden, 33);
    assert_int_equal(c.desc.recurrent.layers, 2);
    assert_int_equal(c.desc.recurrent.direction, SEQLSTM_DIRECTION_BIDIRECTIONAL);
    assert_true(c.desc.recurrent.recurrent_dropout == 0.4f);
    assert_int_equal(c.desc.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][0].kind, SEQLSTM_ACT_TANH);
    assert_int_equal(c.desc.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][1].kind, SEQLSTM_ACT_RELU);
    /* an activation is that of both directions, unless its name ends in 2 */
    static const char *const names[3] = {
        [SEQLSTM_PLACE_GATE] = "gate_act", [SEQLSTM_PLACE_CANDIDATE] = "act", [SEQLSTM_PLACE_OUTPUT] = "out_act"};
    for (int place = 0; place < 3; place++)
        for (int only_backward = 0; only_backward < 2; only_backward++) {
            char text[120];
            snprintf(text, sizeof text, "lstm:inf:T3B2I3H4D2:f32:ragged:%s%s=softsign", names[place],
                     only_backward ? "2" : "");
            assert_int_equal(sl_case_parse(text, &c, &err), SEQLSTM_OK);
            for (int other = 0; other < 3; other++)
                for (int direction = 0; direction < 2; direction++)
                    assert_int_equal(c.desc.recurrent.activations[other][direction].kind == SEQLSTM_ACT_SOFTSIGN,
                                     other == place && direction >= only_backward);
        }
}

static void count_case(void *context, enum sl_level level, const char *text)
{
    struct sl_case c;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)level;
    if (sl_case_parse(text, &c, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", text, err.message);
    ++*(int *)context;
}

static void every_case_of_the_catalogue_is_well_formed(void **state)
{
    (void)state;
    int quick = 0, full = 0;
    for (int level = 0; level < SL_LEVEL_COUNT; level++) {
        sl_catalogue_each((enum sl_level)level, false, count_case, &quick);
        sl_catalogue_each((enum sl_level)level, true, count_case, &full);
    }
    assert_true(quick > 1000);
    assert_true(full > 3 * quick);
}

static void random_cases_are_well_formed_and_repeatable(void **state)
{
    (void)state;
    char a[SL_CASE_TEXT_BYTES], b[SL_CASE_TEXT_BYTES];
    int different = 0, cases = 0;
    for (uint64_t i = 0; i < 500; i++) {
        sl_catalogue_random(7, i, a);
        sl_catalogue_random(7, i, b);
        assert_string_equal(a, b);
        count_case(&cases, SL_LEVEL_COUNT, a);
        sl_catalogue_random(8, i, b);
        different += strcmp(a, b) != 0;
    }
    assert_int_equal(cases, 500);
    assert_true(different > 490);
}

/* Random cases come instead of those of the levels. */
static void only_random_cases_run_if_asked_for(void **state)
{
    (void)state;
    char path[600];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report = NULL;
    snprintf(path, sizeof path, "%s/tests/conformance/libfaulty-none.so", getenv("SEQLSTM_BUILD"));
    const struct sl_conformance_request request = {.file = path, .reference = reference, .random = 5, .seed = 7};
    assert_int_equal(sl_conformance_run(&request, &report, &err), SEQLSTM_OK);
    uint32_t all = 0;
    for (int verdict = 0; verdict < SL_VERDICT_COUNT; verdict++)
        all += sl_conformance_report_get_count(report, (enum sl_verdict)verdict);
    assert_int_equal(all, 5);
    assert_int_equal(sl_conformance_report_get_count(report, SL_VERDICT_FAIL), 0);
    sl_conformance_report_destroy(report);
}

/* The reference refuses 16-bit types, which were claimed for one of two cases. */
static void a_claim_that_is_refused_is_a_failure(void **state)
{
    (void)state;
    const char *cases[] = {"lstm:bwd:T3B2I3H5:bf16:ragged", "dense:bwd:R3I2O2:bf16:flat"};
    static const struct sl_claim claims[] = {{.pattern = "lstm:*", .device_class = "*", .reason = ""}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const struct sl_backend_builtin builtin = {"reference", seqlstm_reference_query_v0};
    struct sl_conformance_request request = {
        .file = "reference",
        .builtins = &builtin,
        .builtin_count = 1,
        .reference = seqlstm_reference_query_v0,
        .cases = cases,
        .case_count = 2,
        .claims = claims,
        .claim_count = 1,
    };
    struct sl_conformance_report *report;
    assert_int_equal(sl_conformance_run(&request, &report, &err), SEQLSTM_OK);
    assert_int_equal(sl_conformance_report_get(report, 0)->check.verdict, SL_VERDICT_FAIL);
    assert_non_null(strstr(sl_conformance_report_get(report, 0)->check.detail, "claimed, yet refused (lstm:*)"));
    assert_int_equal(sl_conformance_report_get(report, 1)->check.verdict, SL_VERDICT_UNSUPPORTED);
    sl_conformance_report_destroy(report);
}

static void data_are_a_function_of_case_and_seed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena = {0};
    struct sl_case c;
    struct sl_data *a, *b, *other;
    assert_int_equal(sl_case_parse("lstm:bwd:T7B5I6H9:f32:ragged:initial", &c, &err), SEQLSTM_OK);
    assert_int_equal(sl_data_create(&arena, &c, 1, 1, &a, &err), SEQLSTM_OK);
    assert_int_equal(sl_data_create(&arena, &c, 1, 1, &b, &err), SEQLSTM_OK);
    assert_int_equal(sl_data_create(&arena, &c, 1, 2, &other, &err), SEQLSTM_OK);
    for (int32_t k = 0; k < a->count; k++) {
        if (!a->values[k])
            continue;
        assert_memory_equal(a->values[k], b->values[k], (size_t)a->elems[k] * sizeof(double));
        assert_int_equal(a->elems[k], other->elems[k]);
        assert_memory_not_equal(a->values[k], other->values[k], (size_t)a->elems[k] * sizeof(double));
        for (int64_t i = 0; i < a->elems[k]; i++) /* exact in float32, so rounding of inputs is no error */
            assert_true((double)(float)a->values[k][i] == a->values[k][i]);
    }
    assert_int_equal(a->axis.lengths[0], 7);
    assert_int_equal(a->axis.batch_sizes[0], 5);
    int64_t rows = 0;
    for (int k = 0; k < 5; k++) {
        rows += a->axis.lengths[k];
        assert_true(k == 0 || a->axis.lengths[k] <= a->axis.lengths[k - 1]);
    }
    assert_int_equal(a->axis.rows, rows);
    sl_arena_deinit(&arena);
}

static void comparisons_fail_on_everything_that_is_not_near(void **state)
{
    (void)state;
    const double expected[4] = {1, -2, 0, 3};
    double got[4] = {1, -2, 0, 3};
    struct sl_tolerance tolerance = {1e-6, 0};
    struct sl_comparison c;
    sl_compare(got, expected, NULL, 4, tolerance, &c);
    assert_false(c.failed);
    assert_true(c.worst == 0);
    got[1] = -2 - 1e-6;
    sl_compare(got, expected, NULL, 4, tolerance, &c);
    assert_false(c.failed);
    assert_true(c.worst > 0 && c.worst < 1);
    got[1] = -2 - 1e-5;
    sl_compare(got, expected, NULL, 4, tolerance, &c);
    assert_true(c.failed);
    assert_int_equal(c.index, 1);
    const double movement[4] = {0, 1e-5, 0, 0};
    sl_compare(got, expected, movement, 4, tolerance, &c);
    assert_false(c.failed);
    got[1] = NAN;
    sl_compare(got, expected, movement, 4, tolerance, &c);
    assert_true(c.failed);
    got[1] = INFINITY;
    sl_compare(got, expected, NULL, 4, tolerance, &c);
    assert_true(c.failed);
    const double infinite[1] = {-INFINITY}, unlike[1] = {INFINITY};
    sl_compare(infinite, infinite, NULL, 1, tolerance, &c);
    assert_false(c.failed);
    sl_compare(unlike, infinite, NULL, 1, tolerance, &c);
    assert_true(c.failed);
}

static void guards_see_a_single_byte(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    static const uint64_t sizes[] = {0, 1, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct sl_guarded g;
        assert_int_equal(sl_guarded_init(&g, NULL, sizes[i], &err), SEQLSTM_OK);
        assert_int_equal(sl_guarded_check(&g), 0);
        if (g.data) {
            assert_int_equal((uintptr_t)g.data % SEQLSTM_ALIGNMENT, 0);
            memset(g.data, 7, (size_t)sizes[i]);
        } else {
            assert_int_equal(sizes[i], 0);
        }
        assert_int_equal(sl_guarded_check(&g), 0);
        g.block[SL_GUARD_BYTES + sizes[i]] ^= 1;
        assert_int_equal(sl_guarded_check(&g), 1);
        g.block[SL_GUARD_BYTES + sizes[i]] ^= 1;
        g.block[SL_GUARD_BYTES - 3] ^= 1;
        assert_int_equal(sl_guarded_check(&g), -3);
        sl_guarded_deinit(&g);
    }
    struct sl_guarded g;
    assert_int_equal(sl_guarded_init(&g, NULL, UINT64_MAX - 10, &err), SEQLSTM_NO_MEMORY);
}

static void narrow_types_round_to_nearest_even(void **state)
{
    (void)state;
    static const struct {
        uint32_t dtype;
        double value, expected;
    } cases[] = {
        {SEQLSTM_DTYPE_BFLOAT16, 1.00390625, 1},        /* half way: even is below */
        {SEQLSTM_DTYPE_BFLOAT16, 1.01171875, 1.015625}, /* half way: even is above */
        {SEQLSTM_DTYPE_BFLOAT16, -3.1415926, -3.140625},
        {SEQLSTM_DTYPE_FLOAT16, 65519, 65504}, /* the largest */
        {SEQLSTM_DTYPE_FLOAT16, 65520, INFINITY},
        {SEQLSTM_DTYPE_FLOAT16, 1.00048828125, 1},
        {SEQLSTM_DTYPE_FLOAT16, 6e-8, 5.9604644775390625e-8}, /* the smallest subnormal */
        {SEQLSTM_DTYPE_FLOAT16, 0.1, 0.0999755859375},
        {SEQLSTM_DTYPE_FLOAT32, 0.1, (double)0.1f},
        {SEQLSTM_DTYPE_INT32, -7, -7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char bytes[8];
        double back;
        assert_true(sl_dtype_round(cases[i].dtype, cases[i].value) == cases[i].expected);
        sl_dtype_store(cases[i].dtype, bytes, &cases[i].value, 1);
        sl_dtype_load(cases[i].dtype, bytes, &back, 1);
        assert_true(back == cases[i].expected);
    }
    for (uint32_t half = 0; half < 0x7C00; half++) { /* every finite float16 survives */
        uint16_t from = (uint16_t)half, to;
        double value;
        sl_dtype_load(SEQLSTM_DTYPE_FLOAT16, &from, &value, 1);
        sl_dtype_store(SEQLSTM_DTYPE_FLOAT16, &to, &value, 1);
        assert_int_equal(from, to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_faults_are_caught_and_named),
        cmocka_unit_test(what_is_idle_and_stays_so_passes),
        cmocka_unit_test(faults_against_the_contract_are_caught),
        cmocka_unit_test(without_a_fault_the_same_cases_pass),
        cmocka_unit_test(reliance_on_the_process_shows_beside_another_plugin),
        cmocka_unit_test(words_on_stderr_and_at_load_are_noticed),
        cmocka_unit_test(a_crash_and_a_hang_cost_one_case),
        cmocka_unit_test(loading_and_the_end_happen_in_a_worker),
        cmocka_unit_test(wrong_case_strings_are_refused),
        cmocka_unit_test(every_case_of_the_catalogue_is_well_formed),
        cmocka_unit_test(random_cases_are_well_formed_and_repeatable),
        cmocka_unit_test(only_random_cases_run_if_asked_for),
        cmocka_unit_test(a_claim_that_is_refused_is_a_failure),
        cmocka_unit_test(data_are_a_function_of_case_and_seed),
        cmocka_unit_test(comparisons_fail_on_everything_that_is_not_near),
        cmocka_unit_test(guards_see_a_single_byte),
        cmocka_unit_test(narrow_types_round_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
