/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kit while memory runs out, once at every allocation of a
 * request with a case of each pass: the request fails, or the case of which the
 * check could not be made does. It is never said to pass, and nothing is left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/conformance.h"
#define OOM_ARENAS
#include "oom.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};

static seqlstm_status run(const char *const *names, uint32_t count, struct sl_conformance_report **out_report,
                          struct seqlstm_error *err)
{
    const struct sl_conformance_request request = {.file = "reference",
                                                   .builtins = builtins,
                                                   .builtin_count = 1,
                                                   .reference = seqlstm_reference_query_v0,
                                                   .cases = names,
                                                   .case_count = count,
                                                   .seed = 1};
    return sl_conformance_run(&request, out_report, err);
}

/* What a request takes without its case. */
static int count_opening(bool of_arena)
{
    static const char *const wrong = "no:case";
    struct sl_conformance_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    oom_count_start();
    arena_fail_at(0);
    assert_int_equal(run(&wrong, 1, &report, &err), SEQLSTM_OK);
    const int count = of_arena ? arena_calls : oom_count();
    sl_conformance_report_destroy(report);
    return count;
}

/* The n-th allocation fails, or the n-th of an arena; false: there are fewer. A
 * case may pass where it was something that is done without, such as the list
 * of files that a backend maps. */
static bool fail_once(const char *name, int n, bool of_arena)
{
    struct sl_conformance_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (of_arena)
        arena_fail_at(n);
    else
        oom_fail_at(n);
    const seqlstm_status status = run(&name, 1, &report, &err);
    const bool failed = of_arena ? arena_disarm() : oom_disarm();
    const char *kind = of_arena ? "arena" : "allocation";
    if (status != SEQLSTM_OK) {
        if (!failed || status != SEQLSTM_NO_MEMORY || report || !err.message[0])
            fail_msg("%s, %s %d: %d, %s", name, kind, n, (int)status, err.message);
        return failed;
    }
    const struct sl_check_result *check = &sl_conformance_report_get(report, 0)->check;
    const char *id = sl_conformance_report_get_record(report)->id;
    if ((check->verdict != SL_VERDICT_PASS && (!failed || !check->detail[0])) || strcmp(id ? id : "", "reference") != 0)
        fail_msg("%s, %s %d: %s, %s", name, kind, n, sl_verdict_name(check->verdict), check->detail);
    sl_conformance_report_destroy(report);
    return failed;
}

static void memory_runs_out_in_a_case_of_each_pass(void **state)
{
    (void)state;
    static const char *const cases[] = {"lstm:inf:T2B2I2H2:f32:ragged:initial,final",
                                        "lstm:bwd:T3B2I2H2:f32:ragged:dropout,layer_norm,initial,final",
                                        "lstm:bwd:T3B2I2H2:f32:ragged:stepwise",
                                        "lstm:ranges:T3B2I2H2:f32:ragged:initial,final",
                                        "dense:fd:R2I2O2:f32:flat",
                                        "dense_loss:bwd:R3I2O3:f32:flat",
                                        "dense:repeat:R2I2O2:f32:flat",
                                        "lstm:same:T2B2I2H2:f32:ragged",
                                        "dense:memory:R2I2O2:f32:flat",
                                        "dense:threads:R2I2O2:f32:flat",
                                        "dense:alternate:R2I2O2:f32:flat",
                                        "dense:claim:R2I2O2:f32:flat",
                                        "lstm:idle:T2B2I2H2:f32:ragged",
                                        "attention:bwd:R3K2:f32:flat:memories=ragged",
                                        "optimizer:fwd:N5:f32:flat:kind=adam",
                                        "load:query",
                                        "contract:minimal_host"};
    for (int of_arena = 0; of_arena < 2; of_arena++) {
        const int opening = count_opening(of_arena);
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
            for (int n = k ? opening : 1; fail_once(cases[k], n, of_arena);
                 n += 1 + (n > opening ? n - opening : 0) / 30)
                ;
    }
}

static void memory_runs_out_for_lists_and_reports(void **state)
{
    (void)state;
    static const char *const name = "dense:inf:R2I2O2:f32:flat";
    const struct sl_conformance_request request = {.levels = 1u << SL_LEVEL_MEMORY};
    struct sl_conformance_report *report = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(run(&name, 1, &report, &err), SEQLSTM_OK);
    bool failed = true;
    for (int n = 1; failed; n++) {
        struct sl_buf list = {0}, json = {0};
        oom_fail_at(n);
        const seqlstm_status status = sl_conformance_list(&request, &list, NULL);
        sl_conformance_report_print_json(report, &json);
        failed = oom_disarm();
        assert_int_equal(status, list.failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        assert_true(failed == (list.failed || json.failed));
        sl_buf_deinit(&list);
        sl_buf_deinit(&json);
    }
    sl_conformance_report_destroy(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out_in_a_case_of_each_pass),
        cmocka_unit_test(memory_runs_out_for_lists_and_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
