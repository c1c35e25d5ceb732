/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by measured costs: what is timed, chosen, kept and found again; when the time is over; backends that fail when
 * they are timed; and what is guessed. */
#include "measured_world.h"
#include "oom.h"

static void the_quickest_are_chosen_and_kept(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    set_all();
    struct sl_plan *plan = plan_with(w, true, 100, false);
    const int runs = lab.runs;
    assert_int_equal(runs, 6);              /* a, b as c, d, the dense layer, its loss, and both together */
    assert_int_equal(lab.without_input, 1); /* a */
    assert_int_equal(lab.ops, 6 * BACKENDS);
    assert_int_equal(plan->timed, 6 * BACKENDS);
    for (int32_t c = 0; c < plan->call_count; c++) {
        assert_int_equal(plan->calls[c].rival_count, BACKENDS - 1);
        for (int32_t r = 0; r < BACKENDS - 1; r++)
            assert_int_equal(plan->calls[c].rivals[r].cost.source, SL_COST_MEASURED);
    }
    expect(plan, "a:r 200 m, b:r 200 m, c:r 200 m, d:a 300 m, out+loss:b 30 m");
    /* the same work is timed once, and nothing is timed again */
    plan = plan_with(w, true, 100, false);
    assert_int_equal(lab.runs, runs);
    assert_int_equal(plan->timed, 0);
    expect(plan, "a:r 200 c, b:r 200 c, c:r 200 c, d:a 300 c, out+loss:b 30 c");
    /* nor by a later process */
    ok(sl_cost_cache_save(w->cache, &err), &err);
    sl_cost_cache_close(w->cache);
    ok(sl_cost_cache_open(w->folder, &w->cache, &err), &err);
    expect(plan_with(w, false, 100, false), "a:r 200 c, b:r 200 c, c:r 200 c, d:a 300 c, out+loss:b 30 c");
    assert_int_equal(lab.runs, runs);
}

/* Which source the cost of fake-b has where layer d could run on it. */
static enum sl_cost_source find_rival(const struct sl_plan *plan)
{
    for (int32_t c = 0; c < plan->call_count; c++)
        for (int32_t r = 0; r < plan->calls[c].rival_count && strcmp(plan->calls[c].node->name, "d") == 0; r++)
            if (strcmp(plan->calls[c].rivals[r].backend, "fake-b") == 0)
                return plan->calls[c].rivals[r].cost.source;
    return SL_COST_NONE;
}

/* Where a backend took far too long on less work it is not timed, and that time is a bound, also for later plans. */
static void what_is_known_to_be_slow_is_not_timed(void **state)
{
    struct world *w = *state;
    forget(w);
    set_all();
    set_prices(SMALL, 200, 500, 1000000);
    for (int again = 0; again < 2; again++) {
        struct sl_plan *plan = plan_with(w, true, 100, false);
        assert_int_equal(find_rival(plan), SL_COST_BOUND);
        assert_int_equal(lab.ops, 6 * BACKENDS - 2); /* not on b and d */
        sl_plan_destroy(plan);
    }
}

static void nothing_is_timed_where_it_must_not_be(void **state)
{
    struct world *w = *state;
    set_all();
    struct sl_plan *plan = plan_with(w, false, 100, false);
    for (int32_t c = 0; c < plan->call_count; c++)
        assert_true(plan->calls[c].cost.source < SL_COST_CACHED);
    assert_true(plan->timed == 0 && lab.runs == 0 && plan->timed_seconds == 0);
    sl_plan_destroy(plan);
}

/* What is not timed when the time is over is estimated; where a call of several layers competes with them, all are. A
 * run takes ten seconds. */
static void the_time_is_over(void **state)
{
    static const struct {
        double seconds;
        int runs;
        const char *plan;
    } cases[] = {
        {0, 0, "a:r e, b:r e, c:r e, d:r e, out+loss:r e"},
        {5, 1, "a:r 200 m, b:r e, c:r e, d:r e, out+loss:r e"},
        {10, 1, "a:r 200 m, b:r e, c:r e, d:r e, out+loss:r e"},
        {11, 2, "a:r 200 m, b:r 200 m, c:r 200 m, d:r e, out+loss:r e"},
        {25, 3, "a:r 200 m, b:r 200 m, c:r 200 m, d:a 300 m, out+loss:r e"},
        {45, 5, "a:r 200 m, b:r 200 m, c:r 200 m, d:a 300 m, out+loss:r e"},
        {55, 6, "a:r 200 m, b:r 200 m, c:r 200 m, d:a 300 m, out+loss:b 30 m"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forget(w);
        set_all();
        lab.run_ns = INT64_C(10000000000);
        struct sl_plan *plan = plan_with(w, true, cases[i].seconds, false);
        assert_int_equal(lab.runs, cases[i].runs);
        assert_true(fabs(plan->timed_seconds - 10 * lab.runs) <= 1e-6);
        expect(plan, cases[i].plan);
    }
}

/* What was timed on less work says which backend is likely to be quicker on more. */
static void what_is_not_timed_follows_experience(void **state)
{
    static const struct {
        double fake_a, fake_b;
        const char *plan;
    } cases[] = {
        {20, 300, "a:a 20 m, b:a 20 m, c:a 20 m, d:a e, out+loss:r e"},
        {300, 20, "a:b 20 m, b:b 20 m, c:b 20 m, d:b e, out+loss:r e"},
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forget(w);
        set_all();
        set_prices(SMALL, 200, cases[i].fake_a, cases[i].fake_b);
        lab.run_ns = INT64_C(10000000000);
        expect(plan_with(w, true, 11, false), cases[i].plan); /* d and the output would come after that time */
    }
}

/* A backend that is out of the question makes no other one slow, however quick it would be: d is pinned. */
static void what_is_left_out_is_no_measure(void **state)
{
    struct world w = *(struct world *)*state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    w.loaded = load("seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
                    "model:\n  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
                    "  - {type: lstm, name: d, units: 4, return_sequences: true}\n"
                    "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n"
                    "dispatch: {policy: measured, pin: {d: reference}}\n");
    assert_non_null(w.loaded.model);
    const struct sl_data_facts facts = w.graph->facts;
    const struct sl_graph_request wanted = {.model = w.loaded.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    ok(sl_graph_create(&wanted, &w.graph, &err), &err);
    set_all();
    set_prices(SMALL, 2000, 20, 300);
    expect(plan_with(&w, true, 100, false), "a:a 20 m, d:r 900 m, out+loss:b 30 m");
    sl_graph_destroy(w.graph);
    unload(&w.loaded);
}

/* Without a batch to time with, nothing is timed, and nothing is taken from what was. */
static void without_profiles_costs_are_estimated(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    set_all();
    sl_plan_destroy(plan_with(w, true, 100, false));
    const int runs = lab.runs;
    const struct sl_profiles none = {.count = 0};
    const struct sl_tuning tuning = {
        .profiles = &none, .cache = w->cache, .measure = true, .interrupt = &never, .seconds = 100};
    const struct sl_plan_request request = {
        .graph = w->graph, .registry = w->registry, .tuning = &tuning, .threads = 1};
    struct sl_plan *plan = NULL;
    ok(sl_plan_create(&request, &plan, &err), &err);
    assert_int_equal(lab.runs, runs);
    for (int32_t c = 0; c < plan->call_count; c++) {
        assert_true(plan->calls[c].cost.source < SL_COST_CACHED);
        assert_true(sl_cost_get_ns(&plan->calls[c].cost) > 0);
    }
    sl_plan_destroy(plan);
}

/* The last one has all that is left of the time; none has less than the least that says something. */
static void the_time_is_shared(void **state)
{
    struct world *w = *state;
    set_all();
    sl_plan_destroy(plan_with(w, true, 100, false));
    assert_int_equal(lab.runs, 6);
    assert_true(fabs((double)lab.last_budget_ns - 100e9) <= 1e3);
    assert_true(lab.least_budget_ns < INT64_C(50000000000));
    forget(w);
    set_all();
    sl_plan_destroy(plan_with(w, true, 0.03, false));
    assert_int_equal(lab.runs, 6);
    assert_int_equal(lab.least_budget_ns, 20000000);
}

/* An interruption ends the plan; of any other error the estimates are left. */
static void only_an_interruption_ends_the_plan(void **state)
{
    struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan = NULL;
    set_all();
    lab.status = SEQLSTM_DEVICE;
    plan = plan_with(w, true, 100, false);
    for (int32_t c = 0; c < plan->call_count; c++)
        assert_true(plan->calls[c].cost.source < SL_COST_CACHED);
    sl_plan_destroy(plan);
    for (int k = 0; k < 2; k++) {
        lab.status = k ? SEQLSTM_CANCELLED : SEQLSTM_NO_MEMORY;
        assert_int_equal(try_plan(w, true, 100, false, &plan, &err), lab.status);
        assert_string_equal(err.message, "the run broke");
    }
}

/* One that fails is refused with its reason, and the next-best is chosen. */
static void one_that_fails_is_not_chosen(void **state)
{
    struct world *w = *state;
    set_all();
    lab.fails[LARGE][1] = lab.fails[DENSE_LOSS][2] = true;
    struct sl_plan *plan = plan_with(w, true, 100, false);
    const struct sl_call *d = &plan->calls[3];
    assert_int_equal(d->refusal_count, 1);
    assert_string_equal(d->refusals[0].backend, "fake-a");
    assert_string_equal(d->refusals[0].reason, "it broke");
    assert_int_equal(d->rival_count, 1);
    expect(plan, "a:r 200 m, b:r 200 m, c:r 200 m, d:b 800 m, out+loss:r 80 m");
}

/* ---- what is not measured
 * -------------------------------------------------------------------------------------------- */

static struct sl_cost guess(const struct world *w, const struct sl_profiles *profiles, int32_t n)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_cost cost;
    ok(sl_cost_guess(w->graph, &w->graph->nodes[n], &w->graph->nodes[n].desc, profiles, &cost, &err), &err);
    return cost;
}

/* A guess is about the rows of a mean batch: three batches are worth what one of their mean is; backward is twice
 * forward. */
static void guesses_are_about_a_mean_batch(void **state)
{
    static const int32_t lengths[][2] = {{8, 6}, {4, 2}, {1, 1}, {6, 2}};
    static const double weights[] = {0.5, 0.125, 0.375, 1}; /* 8.5 rows in the mean; the last batch has 8 */
    const struct world *w = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_profiles several = {.count = 0}, one = {.count = 0};
    for (int p = 0; p < 3; p++)
        ok(sl_profiles_add(&several, 2, lengths[p], NULL, weights[p], &err), &err);
    ok(sl_profiles_add(&one, 2, lengths[3], NULL, weights[3], &err), &err);
    for (int32_t n = 0; n < w->graph->node_count; n++) {
        const struct sl_cost a = guess(w, &several, n), b = guess(w, &one, n);
        assert_true(a.source == SL_COST_GUESS && b.source == SL_COST_GUESS);
        assert_true(a.forward_ns > b.forward_ns); /* 8.5 rows against 8 */
        assert_true(a.backward_ns == 2 * a.forward_ns && b.backward_ns == 2 * b.forward_ns);
        /* what grows with the rows, from 8 to 8.5, is a sixteenth of what 8 take */
        struct sl_profiles half = {.count = 0};
        static const int32_t short_ones[] = {3, 1};
        ok(sl_profiles_add(&half, 2, short_ones, NULL, 1, &err), &err);
        const double of_eight = 2 * (b.forward_ns - guess(w, &half, n).forward_ns);
        assert_true(fabs((a.forward_ns - b.forward_ns) * 16 - of_eight) <= 1e-6 * b.forward_ns);
        sl_profiles_deinit(&half);
    }
    sl_profiles_deinit(&several);
    sl_profiles_deinit(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_quickest_are_chosen_and_kept),      TEST(what_is_known_to_be_slow_is_not_timed),
        TEST(nothing_is_timed_where_it_must_not_be), TEST(the_time_is_over),
        TEST(what_is_not_timed_follows_experience),  TEST(what_is_left_out_is_no_measure),
        TEST(without_profiles_costs_are_estimated),  TEST(the_time_is_shared),
        TEST(only_an_interruption_ends_the_plan),    TEST(one_that_fails_is_not_chosen),
        TEST(guesses_are_about_a_mean_batch),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
