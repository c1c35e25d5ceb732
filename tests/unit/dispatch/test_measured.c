/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by measured costs, where the test says what each backend takes: what is timed, chosen, kept and found again;
 * when the time is over; backends that fail when they are timed; and the comparison of whole steps. The backends are
 * the reference and the fake devices of tests/gpu; meson.build leads the timing and the clock here. */
#include <math.h>

#include "model_fixture.h"
#include "ok.h"
#include "registry_fixture.h"
#include "temporary.h"

#include "dispatch/cost/cost_cache.h"
#include "dispatch/cost/estimate.h"
#include "dispatch/cost/timing.h"
#include "dispatch/cost/tune.h"
#include "dispatch/plan/plan.h"
#include "dispatch/planner.h"

enum { BACKENDS = 3, KINDS = 4 };

/* Kinds of work: a recurrent layer of 3 and one of 4 hidden units, the dense layer, and the dense layer with its loss.
 */
enum kind { SMALL, LARGE, DENSE, DENSE_LOSS };

static struct {
    double ms[KINDS][BACKENDS]; /* forward and backward together */
    bool fails[KINDS][BACKENDS];
    int runs, ops;          /* so far */
    int without_input;      /* runs without the gradient of the input */
    int64_t now_ns, run_ns; /* what a run takes on the clock */
    int64_t least_budget_ns, last_budget_ns;
    seqlstm_status status; /* of a run */
    int whole_runs;
    double whole_ms[2]; /* of the cheapest plan and of the second */
    seqlstm_status whole_status;
    int64_t whole_run_ns; /* what it takes on the clock */
} lab;

static const struct sl_interrupt never;

int64_t __wrap_sl_clock_ns(void);
int64_t __wrap_sl_clock_ns(void)
{
    return lab.now_ns;
}

static enum kind find_kind(const union seqlstm_any_desc *desc)
{
    if (desc->head.op == SEQLSTM_OP_RECURRENT)
        return desc->recurrent.hidden == 3 ? SMALL : LARGE;
    return desc->head.op == SEQLSTM_OP_DENSE ? DENSE : DENSE_LOSS;
}

static int find_place(const struct sl_backend *backend)
{
    const char *id = sl_backend_get_id(backend);
    return strcmp(id, "reference") == 0 ? 0 : strcmp(id, "fake-a") == 0 ? 1 : 2;
}

seqlstm_status __wrap_sl_timing_run(const struct sl_timing_request *request, struct sl_timed_op *timed_ops,
                                    int32_t count, struct seqlstm_error *err);
seqlstm_status __wrap_sl_timing_run(const struct sl_timing_request *request, struct sl_timed_op *timed_ops,
                                    int32_t count, struct seqlstm_error *err)
{
    const enum kind kind = find_kind(request->desc);
    assert_true(request->backward && request->on_steps && request->budget_ns > 0);
    assert_true(request->param_grad == (request->desc->head.op != SEQLSTM_OP_LOSS));
    assert_ptr_equal(request->interrupt, &never);
    lab.without_input += !request->input_grad;
    if (lab.status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, lab.status, "the run broke");
    lab.least_budget_ns =
        lab.runs == 0 || request->budget_ns < lab.least_budget_ns ? request->budget_ns : lab.least_budget_ns;
    lab.last_budget_ns = request->budget_ns;
    lab.runs++;
    lab.ops += count;
    lab.now_ns += lab.run_ns;
    for (int32_t k = 0; k < count; k++) {
        const int place = find_place(timed_ops[k].backend);
        timed_ops[k].forward_ns = lab.ms[kind][place] * 1e6 / 4;
        timed_ops[k].backward_ns = lab.ms[kind][place] * 1e6 * 3 / 4;
        timed_ops[k].failed = lab.fails[kind][place];
        snprintf(timed_ops[k].failure, sizeof timed_ops[k].failure, "it broke");
    }
    return SEQLSTM_OK;
}

static seqlstm_status time_whole_steps(const struct sl_whole_steps_request *request, double out_ns[2],
                                       struct seqlstm_error *err)
{
    assert_true(request->plans[0]->call_count > 0 && request->plans[1]->call_count > 0);
    lab.whole_runs++;
    lab.now_ns += lab.whole_run_ns;
    for (int w = 0; w < 2; w++)
        out_ns[w] = lab.whole_ms[w] * 1e6;
    if (lab.whole_status != SEQLSTM_OK)
        SEQLSTM_FAIL(err, lab.whole_status, "the steps broke");
    return SEQLSTM_OK;
}

/* ---- a model -------------------------------------------------------------------------------------------------------
 */

struct world {
    struct loaded loaded;
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_profiles profiles;
    struct sl_cost_cache *cache;
    char folder[TEMPORARY_BYTES];
};

/* Layers b and c have the same work; a needs no gradient of its input, and d is larger. */
static int open_world(void **state)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "fake-a"}, {.name = "fake-b"}};
    static const int32_t lengths[] = {6, 5, 5, 3};
    static struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(&w, 0, sizeof w);
    memset(&lab, 0, sizeof lab);
    w.registry = registry_open(entries, BACKENDS);
    w.loaded = load("seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
                    "model:\n  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
                    "  - {type: lstm, name: b, units: 3, return_sequences: true}\n"
                    "  - {type: lstm, name: c, units: 3, return_sequences: true}\n"
                    "  - {type: lstm, name: d, units: 4, return_sequences: true}\n"
                    "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n"
                    "dispatch: {policy: measured}\n");
    assert_non_null(w.loaded.model);
    const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                        .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                        .has_steps = true,
                                        .envelope = {.sequences = 4, .steps = 6, .rows = 19}};
    const struct sl_graph_request wanted = {.model = w.loaded.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    ok(sl_graph_create(&wanted, &w.graph, &err), &err);
    ok(sl_profiles_add(&w.profiles, 4, lengths, NULL, 1, &err), &err);
    assert_non_null(mkdtemp(temporary_template(w.folder, "measured")));
    ok(sl_cost_cache_open(w.folder, &w.cache, &err), &err);
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    char command[128];
    sl_cost_cache_close(w->cache);
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    sl_profiles_deinit(&w->profiles);
    sl_graph_destroy(w->graph);
    sl_registry_destroy(w->registry);
    unload(&w->loaded);
    return system(command) == 0 ? 0 : -1;
}

/* A new cache, which is in memory only, and a new laboratory. */
static void forget(struct world *w)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_cost_cache_close(w->cache);
    ok(sl_cost_cache_open("/nonexistent", &w->cache, &err), &err);
    memset(&lab, 0, sizeof lab);
}

static seqlstm_status try_plan(struct world *w, bool measure, double seconds, bool whole, struct sl_plan **out_plan,
                               struct seqlstm_error *err)
{
    const struct sl_tuning tuning = {.profiles = &w->profiles,
                                     .cache = w->cache,
                                     .measure = measure,
                                     .interrupt = &never,
                                     .seconds = seconds,
                                     .time_whole_steps = whole ? time_whole_steps : NULL};
    const struct sl_plan_request request = {
        .graph = w->graph, .registry = w->registry, .tuning = &tuning, .threads = 1};
    return sl_plan_create(&request, out_plan, err);
}

static struct sl_plan *plan_with(struct world *w, bool measure, double seconds, bool whole)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan = NULL;
    ok(try_plan(w, measure, seconds, whole, &plan, &err), &err);
    return plan;
}

/* "a:r 200 m, ...": layer a on the reference, 200 ms measured; c: from the cache, e: only estimated, so without time.
 */
static const char *describe(const struct sl_plan *plan)
{
    static char text[256];
    int at = 0;
    for (int32_t k = 0; k < plan->call_count; k++) {
        const struct sl_call *call = &plan->calls[k];
        const enum sl_cost_source source = call->cost.source;
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s:%c ", k ? ", " : "", call->node->name,
                       "rab"[find_place(call->backend)]);
        if (source >= SL_COST_CACHED) {
            assert_true(call->cost.backward_ns == 3 * call->cost.forward_ns);
            at += snprintf(text + at, sizeof text - (size_t)at, "%g ", sl_cost_get_ns(&call->cost) * 1e-6);
        }
        at += snprintf(text + at, sizeof text - (size_t)at, "%c", "ngbecsm"[source]);
    }
    return text;
}

static void expect(struct sl_plan *plan, const char *text)
{
    if (strcmp(describe(plan), text) != 0)
        fail_msg("`%s`, expected `%s`", describe(plan), text);
    sl_plan_destroy(plan);
}

static void set_prices(enum kind kind, double reference, double fake_a, double fake_b)
{
    lab.ms[kind][0] = reference;
    lab.ms[kind][1] = fake_a;
    lab.ms[kind][2] = fake_b;
}

static void set_all(void)
{
    set_prices(SMALL, 200, 500, 300);
    set_prices(LARGE, 900, 300, 800);
    set_prices(DENSE, 50, 40, 70);
    set_prices(DENSE_LOSS, 80, 95, 30);
}

/* ---- tests ---------------------------------------------------------------------------------------------------------
 */

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

/* ---- whole steps ---------------------------------------------------------------------------------------------------
 */

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

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_quickest_are_chosen_and_kept),
        TEST(what_is_known_to_be_slow_is_not_timed),
        TEST(nothing_is_timed_where_it_must_not_be),
        TEST(the_time_is_over),
        TEST(the_time_is_shared),
        TEST(only_an_interruption_ends_the_plan),
        TEST(one_that_fails_is_not_chosen),
        TEST(guesses_are_about_a_mean_batch),
        TEST(whole_steps_decide),
        TEST(whole_steps_are_left_where_they_say_nothing),
        TEST(whole_steps_need_all_costs),
        TEST(each_of_two_plans_keeps_its_own_time),
        TEST(a_plan_that_is_forbidden_is_not_compared),
        TEST(the_time_of_whole_steps_alone_is_told),
        TEST(whole_steps_that_cannot_be_timed_decide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
