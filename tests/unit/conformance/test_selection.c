/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases a request selects: names, globs, levels and random ones; and at which level each result stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conformance/conformance.h"
#include "oom.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};

static struct sl_conformance_report *run(struct sl_conformance_request request)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_conformance_report *report = NULL;
    request.file = "reference";
    request.builtins = builtins;
    request.builtin_count = 1;
    request.reference = seqlstm_reference_query_v0;
    if (sl_conformance_run(&request, &report, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return report;
}

/* A case that is named has the level of its pass, as it has in the catalogue; what is no case counts as a claim. */
static void a_named_case_has_the_level_of_its_pass(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum sl_level level;
        enum sl_verdict verdict;
    } cases[] = {{"dense:inf:R9I5O7:f32:flat", SL_LEVEL_FORWARD, SL_VERDICT_PASS},
                 {"dense:fwd:R9I5O7:f32:flat", SL_LEVEL_FORWARD, SL_VERDICT_PASS},
                 {"dense:bwd:R9I5O7:f32:flat", SL_LEVEL_BACKWARD, SL_VERDICT_PASS},
                 {"lstm:ranges:T3B2I3H4:f32:ragged:initial,final", SL_LEVEL_BACKWARD, SL_VERDICT_PASS},
                 {"dense:fd:R3I2O2:f32:flat", SL_LEVEL_BACKWARD, SL_VERDICT_PASS},
                 {"dense:repeat:R9I5O7:f32:flat", SL_LEVEL_MEMORY, SL_VERDICT_PASS},
                 {"lstm:same:T3B2I3H4:f32:ragged", SL_LEVEL_FORWARD, SL_VERDICT_PASS},
                 {"dense:memory:R9I5O7:f32:flat", SL_LEVEL_MEMORY, SL_VERDICT_PASS},
                 {"dense:threads:R9I5O7:f32:flat", SL_LEVEL_THREADS, SL_VERDICT_PASS},
                 {"dense:alternate:R9I5O7:f32:flat", SL_LEVEL_THREADS, SL_VERDICT_PASS},
                 {"dense:claim:R9I5O7:f32:flat", SL_LEVEL_CLAIMS, SL_VERDICT_PASS},
                 {"lstm:idle:T3B2I3H4:f32:ragged", SL_LEVEL_MEMORY, SL_VERDICT_PASS},
                 {"dense:none:R9I5O7:f32:flat", SL_LEVEL_CLAIMS, SL_VERDICT_FAIL}};
    enum { COUNT = sizeof cases / sizeof *cases };
    const char *names[COUNT];
    for (size_t k = 0; k < COUNT; k++)
        names[k] = cases[k].name;
    struct sl_conformance_report *report = run((struct sl_conformance_request){.cases = names, .case_count = COUNT});
    assert_int_equal(sl_conformance_report_get_size(report), COUNT);
    for (uint32_t k = 0; k < COUNT; k++) {
        const struct sl_conformance_result *r = sl_conformance_report_get(report, k);
        assert_string_equal(r->name, cases[k].name);
        if (r->level != cases[k].level || r->check.verdict != cases[k].verdict)
            fail_msg("%s is at level %s: %s %s", r->name, sl_level_name(r->level), sl_verdict_name(r->check.verdict),
                     r->check.detail);
    }
    sl_conformance_report_destroy(report);
}

/* The number of names, with the first one. */
static void expect_list(const struct sl_conformance_request *request, uint32_t expected, const char *first)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_buf out = {0};
    uint32_t count = 0;
    assert_int_equal(sl_conformance_list(request, &out, &err), SEQLSTM_OK);
    const char *text = sl_buf_text(&out);
    for (const char *c = text; *c; c++)
        count += *c == '\n';
    assert_int_equal(count, expected);
    if (first && (strncmp(text, first, strlen(first)) != 0 || text[strlen(first)] != '\n'))
        fail_msg("'%.*s' is first, expected '%s'", (int)strcspn(text, "\n"), text, first);
    sl_buf_deinit(&out);
}

struct counted {
    const char *const *globs; /* [2], NULL: none */
    uint32_t count;
    char first[SL_CASE_TEXT_BYTES];
};

static void count_case(void *context, enum sl_level level, const char *text)
{
    struct counted *c = context;
    (void)level;
    if (c->globs && !sl_pattern_matches(c->globs[0], text) && !sl_pattern_matches(c->globs[1], text))
        return;
    if (c->count++ == 0)
        snprintf(c->first, sizeof c->first, "%s", text);
}

static struct counted count_cases(uint32_t levels, bool full, const char *const *globs)
{
    struct counted counted = {.globs = globs};
    for (int level = SL_LEVEL_CLAIMS; level < SL_LEVEL_COUNT; level++)
        if (levels == 0 || levels >> level & 1)
            sl_catalogue_each((enum sl_level)level, full, count_case, &counted);
    return counted;
}

static void levels_globs_and_names_select(void **state)
{
    (void)state;
    static const char *const globs[] = {"gru:bwd:*", "*:memory:*"},
                             *const mixed[] = {"gru:bwd:*", "dense:inf:R1I1O1:f32:flat"},
                             *const named[] = {"rnn:inf:T9B9I9H9:f32:ones", "no case"};
    for (int full = 0; full < 2; full++)
        for (uint32_t levels = 0; levels < 1u << SL_LEVEL_COUNT; levels += 4) {
            struct sl_conformance_request request = {.levels = levels, .full = full};
            struct counted expected = count_cases(levels, full, NULL);
            expect_list(&request, expected.count, expected.count ? expected.first : NULL);
            request.cases = globs;
            request.case_count = 2;
            expected = count_cases(levels, full, globs);
            expect_list(&request, expected.count, expected.count ? expected.first : NULL);
            if (levels % 32 != 0 || full)
                continue;
            request.cases = mixed; /* the named one first, at any level */
            expected = count_cases(levels, full, (const char *const[]){mixed[0], mixed[0]});
            expect_list(&request, 1 + expected.count, mixed[1]);
            request.cases = (const char *const[]){mixed[0], expected.first}; /* named, too: it runs once */
            expect_list(&request, expected.count + (expected.count == 0), expected.first);
            request.cases = named; /* nothing of the catalogue */
            expect_list(&request, 2, named[0]);
        }
}

static void random_cases_stand_alone_or_before_those_that_are_asked_for(void **state)
{
    (void)state;
    static const char *const globs[] = {"gru:bwd:*", "gru:bwd:*"}, *const named[] = {"no case"};
    char first[SL_CASE_TEXT_BYTES];
    sl_catalogue_random(77, 0, first);
    struct sl_conformance_request request = {.random = 3, .seed = 77};
    expect_list(&request, 3, first);
    request.cases = globs;
    request.case_count = 1;
    expect_list(&request, 3 + count_cases(0, false, globs).count, first);
    request.cases = named;
    expect_list(&request, 4, first);
    request.seed = 78;
    sl_catalogue_random(78, 0, first);
    expect_list(&request, 4, first);
}

static struct sl_interrupt interrupt;
static const uint32_t *stops_after; /* so many results */
static uint32_t results;

static void note_result(void *context, const struct sl_conformance_result *result)
{
    (void)context, (void)result;
    results++;
    if (stops_after && results == *stops_after)
        interrupt.stop = 2;
}

/* Also before the first case and in the last one: there is no report that looks complete. */
static void a_run_that_was_stopped_is_no_report(void **state)
{
    (void)state;
    static const char *const names[] = {"dense:inf:R9I5O7:f32:flat", "dense:fwd:R9I5O7:f32:flat",
                                        "dense:bwd:R9I5O7:f32:flat"};
    static const char *const said[] = {"stopped after 0 cases", "stopped after 1 case", "stopped after 2 cases",
                                       "stopped after 3 cases"};
    for (uint32_t k = 0; k < 4; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_conformance_report *report = NULL;
        struct sl_conformance_request request = {.file = "reference",
                                                 .builtins = builtins,
                                                 .builtin_count = 1,
                                                 .reference = seqlstm_reference_query_v0,
                                                 .cases = names,
                                                 .case_count = 3,
                                                 .interrupt = &interrupt,
                                                 .on_result = note_result};
        interrupt.stop = k == 0 ? 2 : 0;
        stops_after = &k;
        results = 0;
        assert_int_equal(sl_conformance_run(&request, &report, &err), SEQLSTM_CANCELLED);
        assert_string_equal(err.message, said[k]);
        assert_int_equal(results, k);
        assert_null(report);
    }
    interrupt.stop = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_named_case_has_the_level_of_its_pass),
        cmocka_unit_test(levels_globs_and_names_select),
        cmocka_unit_test(random_cases_stand_alone_or_before_those_that_are_asked_for),
        cmocka_unit_test(a_run_that_was_stopped_is_no_report),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
