/* SPDX-License-Identifier: Apache-2.0 */
/* When a chosen candidate counts as a fallback: a backend before it in the list has refused for an option. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatch/candidate/candidate.h"
#include "dispatch/plan/refusal.h"

static void only_refusals_of_backends_before_it_make_a_fallback(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank, code;
        bool fallback; /* for a candidate of rank 1 */
    } cases[] = {
        {0, SEQLSTM_BIT_REFUSED_OPTION, true},     {0, SEQLSTM_BIT_REFUSED_SHAPE, true},
        {0, SEQLSTM_BIT_REFUSED_OPERATION, false}, /* it never runs such operations */
        {1, SEQLSTM_BIT_REFUSED_OPTION, false},    /* another variant of the same backend */
        {2, SEQLSTM_BIT_REFUSED_OPTION, false},
    };
    const struct sl_candidate candidate = {.rank = 1};
    struct sl_refusal later[2] = {{.rank = 2, .code = SEQLSTM_BIT_REFUSED_OPTION}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        later[1] = (struct sl_refusal){.rank = cases[i].rank, .code = cases[i].code};
        const struct sl_subgraph alone = {.refusals = later + 1, .refusal_count = 1},
                                 both = {.refusals = later, .refusal_count = 2};
        assert_int_equal(sl_candidate_is_fallback(&alone, &candidate), cases[i].fallback);
        assert_int_equal(sl_candidate_is_fallback(&both, &candidate), cases[i].fallback);
    }
    const struct sl_subgraph none = {.refusal_count = 0};
    assert_false(sl_candidate_is_fallback(&none, &candidate));
}

static void excluded_candidates_do_not_count(void **state)
{
    (void)state;
    struct sl_candidate candidates[3] = {{.excluded = true}, {.rank = 1}, {.rank = 2}};
    const struct sl_subgraph subgraph = {.candidates = candidates, .candidate_count = 3};
    assert_int_equal(sl_subgraph_count_candidates(&subgraph), 2);
    candidates[2].excluded = true;
    assert_int_equal(sl_subgraph_count_candidates(&subgraph), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_refusals_of_backends_before_it_make_a_fallback),
        cmocka_unit_test(excluded_candidates_do_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
