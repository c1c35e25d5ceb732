/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by measured costs, where the test says what each backend and each plan takes. The backends are the reference
 * and the fake devices of tests/gpu; meson.build leads the timing and the clock here. */
#ifndef SL_TESTS_MEASURED_WORLD_H
#define SL_TESTS_MEASURED_WORLD_H

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

static inline enum kind find_kind(const union seqlstm_any_desc *desc)
{
    if (desc->head.op == SEQLSTM_OP_RECURRENT)
        return desc->recurrent.hidden == 3 ? SMALL : LARGE;
    return desc->head.op == SEQLSTM_OP_DENSE ? DENSE : DENSE_LOSS;
}

static inline int find_place(const struct sl_backend *backend)
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

static inline seqlstm_status time_whole_steps(const struct sl_whole_steps_request *request, double out_ns[2],
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
static inline int open_world(void **state)
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

static inline int close_world(void **state)
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
static inline void forget(struct world *w)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    sl_cost_cache_close(w->cache);
    ok(sl_cost_cache_open("/nonexistent", &w->cache, &err), &err);
    memset(&lab, 0, sizeof lab);
}

static inline seqlstm_status try_plan(struct world *w, bool measure, double seconds, bool whole,
                                      struct sl_plan **out_plan, struct seqlstm_error *err)
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

static inline struct sl_plan *plan_with(struct world *w, bool measure, double seconds, bool whole)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan = NULL;
    ok(try_plan(w, measure, seconds, whole, &plan, &err), &err);
    return plan;
}

/* "a:r 200 m, ...": layer a on the reference, 200 ms measured; c: from the cache, e: only estimated, so without time.
 */
static inline const char *describe(const struct sl_plan *plan)
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

static inline void expect(struct sl_plan *plan, const char *text)
{
    if (strcmp(describe(plan), text) != 0)
        fail_msg("`%s`, expected `%s`", describe(plan), text);
    sl_plan_destroy(plan);
}

static inline void set_prices(enum kind kind, double reference, double fake_a, double fake_b)
{
    lab.ms[kind][0] = reference;
    lab.ms[kind][1] = fake_a;
    lab.ms[kind][2] = fake_b;
}

static inline void set_all(void)
{
    set_prices(SMALL, 200, 500, 300);
    set_prices(LARGE, 900, 300, 800);
    set_prices(DENSE, 50, 40, 70);
    set_prices(DENSE_LOSS, 80, 95, 30);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

#endif
