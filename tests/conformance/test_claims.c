/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of a backend's author: how they are read, and how results are compared with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "conformance/conformance.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static seqlstm_status parse(struct sl_arena *arena, const char *text, struct sl_claim **out, uint32_t *out_count,
                            struct seqlstm_error *err)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    return sl_claims_parse(arena, copy, out, out_count, err);
}

static void lines_are_read_and_comments_are_not(void **state)
{
    (void)state;
    struct sl_arena arena = {0};
    struct sl_claim *claims;
    uint32_t count;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(parse(&arena,
                           "# what it promises\n\n  claim   lstm:*   # and why\r\n"
                           "claim gru:* on\tcpu:*+amx \n"
                           "unsupported *layer_norm*  no norms \n\txfail\tlstm:bwd:?3*\tdrifts, see bug 17",
                           &claims, &count, &err),
                     SEQLSTM_OK);
    assert_int_equal(count, 4);
    assert_int_equal(claims[0].kind, SL_CLAIM_SUPPORTED);
    assert_string_equal(claims[0].pattern, "lstm:*");
    assert_string_equal(claims[0].reason, "");
    assert_string_equal(claims[0].device_class, "*");
    assert_int_equal(claims[0].line, 3);
    assert_int_equal(claims[1].kind, SL_CLAIM_SUPPORTED);
    assert_string_equal(claims[1].pattern, "gru:*");
    assert_string_equal(claims[1].device_class, "cpu:*+amx");
    assert_int_equal(claims[2].kind, SL_CLAIM_UNSUPPORTED);
    assert_string_equal(claims[2].device_class, "*");
    assert_string_equal(claims[2].reason, "no norms");
    assert_int_equal(claims[3].kind, SL_CLAIM_FAILS);
    assert_string_equal(claims[3].pattern, "lstm:bwd:?3*");
    assert_string_equal(claims[3].reason, "drifts, see bug 17");
    assert_int_equal(claims[3].line, 6);
    sl_arena_deinit(&arena);
}

static void wrong_lines_are_named(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {{"\nclaims lstm:*\n", "line 2 begins with `claims`"},
                                           {"lstm:*\n", "line 1 begins with `lstm:*`"},
                                           {"claim\n", "`claim` without a pattern"},
                                           {"claim lstm:* gru:*\n", "`gru:*` behind the pattern"},
                                           {"claim lstm:* on\n", "line 1: `on` needs one pattern"},
                                           {"claim lstm:* on cpu:* cuda:*\n", "line 1: `on` needs one pattern"},
                                           {"claim *\nxfail lstm:*  \n", "line 2: `xfail` needs a reason"},
                                           {"unsupported *norm*", "`unsupported` needs a reason"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sl_arena arena = {0};
        struct sl_claim *claims;
        uint32_t count;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(parse(&arena, wrong[i][0], &claims, &count, &err), SEQLSTM_INVALID_CONFIG);
        if (!strstr(err.message, wrong[i][1]))
            fail_msg("'%s', expected '%s' in it", err.message, wrong[i][1]);
        sl_arena_deinit(&arena);
    }
}

static const struct sl_claim judged[] = {{SL_CLAIM_SUPPORTED, "lstm:*", "*", "", 1},
                                         {SL_CLAIM_SUPPORTED, "rnn:a", "cpu:x86-64-v?", "", 1},
                                         {SL_CLAIM_SUPPORTED, "rnn:b", "cuda:*", "", 1},
                                         {SL_CLAIM_UNSUPPORTED, "lstm:*norm*", "*", "no norms", 2},
                                         {SL_CLAIM_FAILS, "*zoneout*", "*", "bug 17", 3}};

static void verdicts_change_where_the_claims_are_not_kept(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum sl_verdict said, becomes;
    } cases[] = {
        {"lstm:a", SL_VERDICT_PASS, SL_VERDICT_PASS},
        {"lstm:a", SL_VERDICT_FAIL, SL_VERDICT_FAIL},
        {"lstm:a", SL_VERDICT_CRASH, SL_VERDICT_CRASH},
        {"lstm:a", SL_VERDICT_SKIP, SL_VERDICT_SKIP},
        {"lstm:a", SL_VERDICT_UNSUPPORTED, SL_VERDICT_FAIL},
        {"gru:a", SL_VERDICT_UNSUPPORTED, SL_VERDICT_UNSUPPORTED},
        {"rnn:a", SL_VERDICT_UNSUPPORTED, SL_VERDICT_FAIL},
        {"rnn:b", SL_VERDICT_UNSUPPORTED, SL_VERDICT_UNSUPPORTED},
        {"lstm:layer_norm", SL_VERDICT_UNSUPPORTED, SL_VERDICT_UNSUPPORTED},
        {"lstm:layer_norm", SL_VERDICT_PASS, SL_VERDICT_FAIL},
        {"lstm:zoneout", SL_VERDICT_FAIL, SL_VERDICT_XFAIL},
        {"gru:zoneout", SL_VERDICT_CRASH, SL_VERDICT_XFAIL},
        {"lstm:zoneout", SL_VERDICT_PASS, SL_VERDICT_XPASS},
        {"gru:zoneout", SL_VERDICT_UNSUPPORTED, SL_VERDICT_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_check_result result = {.verdict = cases[i].said};
        snprintf(result.detail, sizeof result.detail, "%s",
                 cases[i].said == SL_VERDICT_PASS ? "" : "the check's words");
        sl_claims_judge(judged, sizeof judged / sizeof *judged, "cpu:x86-64-v3", cases[i].name, &result);
        if (result.verdict != cases[i].becomes)
            fail_msg("%s, %s: became %s", cases[i].name, sl_verdict_name(cases[i].said),
                     sl_verdict_name(result.verdict));
        if (cases[i].said != SL_VERDICT_PASS)
            assert_non_null(strstr(result.detail, "the check's words"));
    }
}

/* The reference with wrong numbers in y (faulty.c), with and without a claim that says so. */
static void an_expected_failure_is_none_and_an_unexpected_pass_is_one(void **state)
{
    (void)state;
    static const char *const cases[] = {"lstm:inf:T7B5I6H9:f32:ragged", "dense:inf:R9I5O7:f32:flat"};
    static const struct sl_claim claims[] = {{SL_CLAIM_FAILS, "lstm:inf:*", "*", "its y is wrong", 1},
                                             {SL_CLAIM_FAILS, "dense:*", "*", "thought to be wrong", 2}};
    char path[600];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report;
    snprintf(path, sizeof path, "%s/tests/conformance/libfaulty-value.so", getenv("SEQLSTM_BUILD"));
    struct sl_conformance_request request = {.file = path,
                                             .reference = seqlstm_reference_query_v0,
                                             .cases = cases,
                                             .case_count = 2,
                                             .claims = claims,
                                             .claim_count = 2};
    assert_int_equal(sl_conformance_run(&request, &report, &err), SEQLSTM_OK);
    assert_int_equal(sl_conformance_report_get(report, 0)->check.verdict, SL_VERDICT_XFAIL);
    assert_int_equal(sl_conformance_report_get(report, 1)->check.verdict, SL_VERDICT_XPASS);
    assert_int_equal(sl_conformance_report_count_bad(report), 1);
    struct sl_buf text = {0};
    sl_conformance_report_print_json(report, &text);
    assert_non_null(strstr(sl_buf_text(&text), "\"xfail\": 1, \"xpass\": 1"));
    sl_buf_deinit(&text);
    sl_conformance_report_print_junit(report, &text);
    assert_non_null(strstr(sl_buf_text(&text), "failures=\"1\" errors=\"0\" skipped=\"1\""));
    sl_buf_deinit(&text);
    sl_conformance_report_destroy(report);
}

/* Only in whole runs: a part of the catalogue cannot show that a claim matches nothing. */
static void a_claim_that_matches_nothing_is_a_failure(void **state)
{
    (void)state;
    static const struct sl_claim claims[] = {{SL_CLAIM_SUPPORTED, "lstm:*peephole*", "*", "", 1},
                                             {SL_CLAIM_SUPPORTED, "lstm:*peehole*", "*", "", 7},
                                             {SL_CLAIM_SUPPORTED, "load:*", "*", "", 8}};
    char path[600];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report;
    snprintf(path, sizeof path, "%s/tests/conformance/libseqlstm_backend_minimal.so", getenv("SEQLSTM_BUILD"));
    struct sl_conformance_request request = {
        .file = path, .reference = seqlstm_reference_query_v0, .claims = claims, .claim_count = 3};
    assert_int_equal(sl_conformance_run(&request, &report, &err), SEQLSTM_OK);
    const struct sl_conformance_result *last =
        sl_conformance_report_get(report, sl_conformance_report_get_size(report) - 1);
    assert_string_equal(last->name, "claims:file");
    assert_non_null(strstr(last->check.detail, "line 7"));
    sl_conformance_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_read_and_comments_are_not),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(verdicts_change_where_the_claims_are_not_kept),
        cmocka_unit_test(an_expected_failure_is_none_and_an_unexpected_pass_is_one),
        cmocka_unit_test(a_claim_that_matches_nothing_is_a_failure),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
