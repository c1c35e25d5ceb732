/* SPDX-License-Identifier: Apache-2.0 */
/* Two plans by measured costs that are close: whole steps of both are timed, and decide. */
#include "measured_world.h"
#include "oom.h"

/* The cheapest and the second are close: the sum says 3 * 200 + 300 + 30 with fake-a or 310 with fake-b. */
static void whole_steps_decide(void **state)
{
    static const struct {
        double whole_ms[2];
        bool overturned;
    } cases[] = {{{700, 750}, false}, {{750, 700}, true}, {{700, 690}, false} /* within two hundredths */};
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forget(w);
        set_all();
        set_prices(LARGE, 900, 300, 310);
        memcpy(lab.whole_ms, cases[i].whole_ms, sizeof lab.whole_ms);
        for (int again = 0; again < 3; again++) { /* then from the cache */
            struct sl_plan *plan = plan_with(w, true, 100, true);
            const struct sl_whole_steps *steps = &plan->whole_steps;
            const bool over = cases[i].overturned;
            assert_int_equal(lab.whole_runs, 1);
            assert_int_equal(steps->source, again ? SL_COST_CACHED : SL_COST_MEASURED);
            assert_int_equal(steps->overturned, over);
            assert_true(steps->chosen_ns == 1e6 * cases[i].whole_ms[over]);
            assert_true(steps->other_ns == 1e6 * cases[i].whole_ms[!over]);
            assert_int_equal(steps->other_count, 1);
            assert_string_equal(steps->other[0].node, "d");
            assert_string_equal(steps->other[0].backend, over ? "fake-a" : "fake-b");
            assert_int_equal(steps->other[0].phase, SL_PHASE_TRAIN);
            assert_string_equal(sl_backend_get_id(plan->calls[3].backend), over ? "fake-b" : "fake-a");
            sl_plan_destroy(plan);
        }
    }
}

/* Costs that are not all measured are not compared, whichever is missing. */
static void whole_steps_need_all_costs(void **state)
{
    struct world *w = *state;
    for (int most = 0; most <= 6; most++) {
        forget(w);
        set_all();
        set_prices(LARGE, 900, 300, 310);
        lab.run_ns = INT64_C(10000000000);
        lab.whole_ms[0] = lab.whole_ms[1] = 700;
        struct sl_plan *plan = plan_with(w, true, 10 * most / (1 - SL_TUNER_WHOLE_STEPS_SHARE) - 5, true);
        assert_int_equal(lab.whole_runs, most == 6);
        assert_int_equal(plan->whole_steps.source, most == 6 ? SL_COST_MEASURED : SL_COST_NONE);
        sl_plan_destroy(plan);
    }
}

static void whole_steps_are_left_where_they_say_nothing(void **state)
{
    static const double prices[][2] = {{400, 30}, {310, 3}}; /* the second is too far; or differs in a trifle */
    struct world *w = *state;
    for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
        forget(w);
        set_prices(SMALL, 200, 500, 900);
        set_prices(LARGE, 900, 300, i == 0 ? prices[i][0] : 900);
        set_prices(DENSE, 800, 900, 700);
        set_prices(DENSE_LOSS, 800, prices[i][1] * (i == 0 ? 9 : 1.1), prices[i][1]);
        struct sl_plan *plan = plan_with(w, true, 100, true);
        assert_int_equal(lab.whole_runs, 0);
        assert_int_equal(plan->whole_steps.source, SL_COST_NONE);
        sl_plan_destroy(plan);
    }
    forget(w); /* without the right to measure, nothing is compared either */
    set_all();
    struct sl_plan *plan = plan_with(w, false, 100, true);
    assert_int_equal(lab.whole_runs, 0);
    sl_plan_destroy(plan);
}

/* Two plans that differ in the fourth layer or in the last one, whichever two backends they are of: what is kept of
 * each is found again as its own, and in whole nanoseconds. */
static void each_of_two_plans_keeps_its_own_time(void **state)
{
    static const enum kind kinds[] = {LARGE, DENSE_LOSS};
    struct world *w = *state;
    for (int k = 0; k < 2; k++)
        for (int slow = 0; slow < BACKENDS; slow++) {
            double ms[BACKENDS] = {300, 300, 300};
            forget(w);
            set_all();
            set_prices(DENSE, 900, 900, 900);
            ms[slow] = 900;
            ms[slow == 2 ? 1 : 2] = 310;
            set_prices(kinds[k], ms[0], ms[1], ms[2]);
            lab.whole_ms[0] = 700.0000006;
            lab.whole_ms[1] = 750.0000004;
            for (int again = 0; again < 2; again++) {
                struct sl_plan *plan = plan_with(w, true, 100, true);
                assert_int_equal(plan->whole_steps.source, again ? SL_COST_CACHED : SL_COST_MEASURED);
                assert_true(plan->whole_steps.chosen_ns == 700000001 && plan->whole_steps.other_ns == 750000000);
                assert_false(plan->whole_steps.overturned);
                assert_int_equal(find_place(plan->calls[k == 0 ? 3 : 4].backend), slow == 0 ? 1 : 0);
                sl_plan_destroy(plan);
            }
            assert_int_equal(lab.whole_runs, 1);
        }
}

/* Where `fallback: error` forbids the second plan, it is not even compared: fake-a fails on layer d, and so fake-b,
 * which stands behind it, would be a fallback. */
static void a_plan_that_is_forbidden_is_not_compared(void **state)
{
    struct world *w = *state;
    for (int forbidden = 0; forbidden < 2; forbidden++) {
        forget(w);
        set_all();
        set_prices(LARGE, 300, 900, 310);
        lab.fails[LARGE][1] = true;
        lab.whole_ms[0] = 750;
        lab.whole_ms[1] = 700;
        w->loaded.model->dispatch.fallback = forbidden ? SL_FALLBACK_ERROR : SL_FALLBACK_REPORT;
        struct sl_plan *plan = plan_with(w, true, 100, true);
        assert_int_equal(lab.whole_runs, !forbidden);
        assert_int_equal(plan->whole_steps.source, forbidden ? SL_COST_NONE : SL_COST_MEASURED);
        assert_int_equal(plan->calls[3].fallback, !forbidden);
        assert_string_equal(sl_backend_get_id(plan->calls[3].backend), forbidden ? "reference" : "fake-b");
        sl_plan_destroy(plan);
    }
    forget(w); /* and a first plan that is forbidden is none */
    set_all();
    set_prices(LARGE, 900, 300, 310);
    lab.fails[LARGE][1] = true;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan = NULL;
    assert_int_equal(try_plan(w, true, 100, true, &plan, &err), SEQLSTM_UNAVAILABLE);
    const char *const message = "`d` falls back to fake-b, and `dispatch.fallback: error` forbids it: fake-a: "
                                "(m.yaml:7:6) it broke";
    assert_string_equal(err.message, message);
}

/* The time that a plan takes is told where anything was timed: whole steps alone, too. */
static void the_time_of_whole_steps_alone_is_told(void **state)
{
    struct world *w = *state;
    set_all();
    set_prices(LARGE, 900, 300, 310);
    sl_plan_destroy(plan_with(w, true, 100, false));
    lab.whole_ms[0] = lab.whole_ms[1] = 700;
    lab.whole_run_ns = INT64_C(2000000000);
    for (int again = 0; again < 2; again++) {
        struct sl_plan *plan = plan_with(w, true, 100, true);
        assert_int_equal(plan->timed, 0);
        assert_int_equal(lab.whole_runs, 1);
        assert_true(fabs(plan->timed_seconds - (again ? 0 : 2)) <= 1e-6);
        sl_plan_destroy(plan);
    }
}

/* Without two times the plan stays, and nothing is kept: they are timed again for the next plan. Only an interruption
 * ends it all. */
static void whole_steps_that_cannot_be_timed_decide_nothing(void **state)
{
    static const struct {
        seqlstm_status status;
        double whole_ms[2];
    } cases[] = {{SEQLSTM_OK, {750, 0}}, {SEQLSTM_OK, {0, 750}}, {SEQLSTM_DEVICE, {750, 700}}, {SEQLSTM_IO, {0, 0}}};
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forget(w);
        set_all();
        set_prices(LARGE, 900, 300, 310);
        memcpy(lab.whole_ms, cases[i].whole_ms, sizeof lab.whole_ms);
        lab.whole_status = cases[i].status;
        for (int again = 0; again < 2; again++) {
            plan = plan_with(w, true, 100, true);
            assert_int_equal(lab.whole_runs, again + 1);
            assert_int_equal(plan->whole_steps.source, SL_COST_NONE);
            assert_string_equal(sl_backend_get_id(plan->calls[3].backend), "fake-a");
            sl_plan_destroy(plan);
        }
    }
    lab.whole_status = SEQLSTM_CANCELLED;
    assert_int_equal(try_plan(w, true, 100, true, &plan, &err), SEQLSTM_CANCELLED);
    assert_string_equal(err.message, "the steps broke");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_steps_decide),
        TEST(whole_steps_are_left_where_they_say_nothing),
        TEST(whole_steps_need_all_costs),
        TEST(each_of_two_plans_keeps_its_own_time),
        TEST(a_plan_that_is_forbidden_is_not_compared),
        TEST(the_time_of_whole_steps_alone_is_told),
        TEST(whole_steps_that_cannot_be_timed_decide_nothing),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
