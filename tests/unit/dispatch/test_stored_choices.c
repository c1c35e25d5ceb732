/* SPDX-License-Identifier: Apache-2.0 */
/* Plans made again from stored choices: those of the graph's own phase bind, those of another phase are followed where
 * a backend accepts, and their order does not matter; and plans that are made for what a request says. The backends are
 * the fake devices of tests/gpu.
 */
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

#include "dispatch/plan/plan.h"
#include "dispatch/planner.h"

enum { PHASES = 2, NODES = 3, CHOICES = 2 * NODES };

static const enum sl_phase phases[PHASES] = {SL_PHASE_TRAIN, SL_PHASE_EVALUATE};
static const char *const names[NODES] = {"a", "b", "out+loss"};

struct world {
    struct loaded loaded;
    struct sl_registry *registry;
    struct sl_graph *graphs[PHASES];
};

static int open_world(void **state)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "fake-a"}, {.name = "fake-b"}};
    static struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    oom_group_begin(state);
    w.registry = registry_open(entries, sizeof entries / sizeof *entries);
    w.loaded = load("seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
                    "model:\n  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
                    "  - {type: lstm, name: b, units: 4, return_sequences: true}\n"
                    "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n"
                    "dispatch: {policy: order}\n");
    assert_non_null(w.loaded.model);
    struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                  .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                  .has_steps = true,
                                  .envelope = {.sequences = 4, .steps = 6, .rows = 19}};
    for (int p = 0; p < PHASES; p++) {
        struct sl_graph_request wanted = {.model = w.loaded.model, .facts = &facts, .phase = phases[p]};
        ok(sl_graph_create(&wanted, &w.graphs[p], &err), &err);
    }
    *state = &w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    for (int p = 0; p < PHASES; p++)
        sl_graph_destroy(w->graphs[p]);
    sl_registry_destroy(w->registry);
    unload(&w->loaded);
    return oom_group_end(state);
}

/* The plan of a phase, or NULL and why not. */
static struct sl_plan *make(struct world *w, int phase, const struct sl_plan_choice *choices, int32_t count,
                            struct seqlstm_error *err)
{
    struct sl_plan_request request = {
        .graph = w->graphs[phase], .registry = w->registry, .stored = choices, .stored_count = count};
    struct sl_plan *plan = NULL;
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    return sl_plan_create(&request, &plan, err) == SEQLSTM_OK ? plan : NULL;
}

static const char *find_backend(const struct sl_plan *plan, const char *node)
{
    for (int32_t c = 0; c < plan->call_count; c++)
        if (strncmp(plan->calls[c].node->name, node, strlen(node)) == 0)
            return sl_backend_get_id(plan->calls[c].backend);
    fail_msg("no call %s", node);
    return NULL;
}

static void expect(struct world *w, int phase, const struct sl_plan_choice *choices, int32_t count, bool replayed,
                   const char *a, const char *b)
{
    struct seqlstm_error err;
    struct sl_plan *plan = make(w, phase, choices, count, &err);
    if (!plan)
        fail_msg("%s", err.message);
    assert_int_equal(plan->replayed, replayed);
    assert_string_equal(find_backend(plan, "a"), a);
    assert_string_equal(find_backend(plan, "b"), b);
    sl_plan_destroy(plan);
}

/* Each phase has other backends for the same nodes; each order of the choices gives each phase its own. */
static void each_phase_has_its_own(void **state)
{
    static const char *const backends[PHASES][NODES] = {{"fake-a", "reference", "reference"},
                                                        {"fake-b", "fake-a", "reference"}};
    struct sl_plan_choice choices[CHOICES];
    for (int turn = 0; turn < CHOICES; turn++) {
        for (int k = 0; k < CHOICES; k++) {
            const int p = k / NODES, n = k % NODES;
            choices[(k + turn) % CHOICES] = (struct sl_plan_choice){names[n], backends[p][n], "", phases[p]};
        }
        for (int p = 0; p < PHASES; p++)
            expect(*state, p, choices, CHOICES, true, backends[p][0], backends[p][1]);
    }
}

/* Choices of another phase are followed, also of a backend that would not be chosen otherwise. One that is not there
 * is none; the plan counts as made anew. */
static void another_phase_is_followed(void **state)
{
    struct sl_plan_choice choices[] = {{"a", "fake-b", "", SL_PHASE_TRAIN}, {"b", "gone", "", SL_PHASE_TRAIN}};
    struct seqlstm_error err;
    struct sl_plan *plain = make(*state, 1, NULL, 0, &err);
    assert_non_null(plain);
    assert_false(plain->replayed);
    assert_string_equal(find_backend(plain, "a"), "reference");
    expect(*state, 1, choices, 2, false, "fake-b", find_backend(plain, "b"));
    choices[0].variant = "none such";
    expect(*state, 1, choices, 2, false, "reference", find_backend(plain, "b"));
    sl_plan_destroy(plain);
}

/* In its own phase a choice that cannot be followed ends with an error that names it. What has no choice there is
 * free, and does not take that of another phase. */
static void own_phase_binds(void **state)
{
    struct sl_plan_choice choices[] = {{"b", "fake-b", "", SL_PHASE_TRAIN},
                                       {"a", "fake-a", "", SL_PHASE_EVALUATE},
                                       {"b", "gone", "", SL_PHASE_EVALUATE}};
    struct seqlstm_error err;
    expect(*state, 1, choices, 2, true, "fake-a", "reference");
    assert_null(make(*state, 1, choices, 3, &err));
    assert_non_null(strstr(err.message, "`gone`"));
    choices[2] = (struct sl_plan_choice){"b", "fake-b", "none such", SL_PHASE_EVALUATE};
    assert_null(make(*state, 1, choices, 3, &err));
    assert_non_null(strstr(err.message, "none such"));
}

/* Memory for the fields of batches on devices: each device has one of each; in training two more, and one in pinned
 * memory, of those that its calls read. The input has 19 rows of 3 numbers, the target 19 of 2: 256 and 192 bytes. */
static void batches_take_memory_on_each_device(void **state)
{
    enum { INPUT = 256, TARGET = 192 };
    static const struct {
        const char *backends[NODES];
        int64_t bytes[PHASES];
    } cases[] = {
        {{"reference", "reference", "reference"}, {0, 0}},
        {{"fake-a", "reference", "reference"}, {4 * INPUT + TARGET, INPUT + TARGET}},
        {{"reference", "fake-a", "reference"}, {INPUT + TARGET, INPUT + TARGET}},
        {{"reference", "reference", "fake-b"}, {INPUT + 4 * TARGET, INPUT + TARGET}},
        {{"fake-a", "fake-a", "fake-a"}, {4 * INPUT + 4 * TARGET, INPUT + TARGET}},
        {{"fake-a", "fake-b", "fake-a"}, {5 * INPUT + 5 * TARGET, 2 * INPUT + 2 * TARGET}},
        {{"fake-b", "fake-b", "fake-a"}, {5 * INPUT + 5 * TARGET, 2 * INPUT + 2 * TARGET}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int p = 0; p < PHASES; p++) {
            struct sl_plan_choice choices[NODES];
            struct seqlstm_error err;
            for (int n = 0; n < NODES; n++)
                choices[n] = (struct sl_plan_choice){names[n], cases[i].backends[n], "", phases[p]};
            struct sl_plan *plan = make(*state, p, choices, NODES, &err);
            if (!plan)
                fail_msg("%s", err.message);
            if (plan->memory.batches_bytes != cases[i].bytes[p])
                fail_msg("case %d, phase %d: %lld bytes, expected %lld", (int)i, p,
                         (long long)plan->memory.batches_bytes, (long long)cases[i].bytes[p]);
            sl_plan_destroy(plan);
        }
}

/* States of the optimizer are counted as often as the request says, and calls are made for its threads. */
static void a_plan_is_made_for_its_request(void **state)
{
    struct world *w = *state;
    for (int32_t states = 0; states < 4; states++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_plan *plan = NULL;
        struct sl_plan_request request = {
            .graph = w->graphs[0], .registry = w->registry, .optimizer_states = states, .threads = 5};
        ok(sl_plan_create(&request, &plan, &err), &err);
        assert_int_equal(plan->threads, 5);
        assert_int_equal(plan->memory.optimizer_bytes, states * plan->memory.weights_bytes);
        for (int32_t c = 0; c < plan->call_count; c++)
            assert_int_equal(plan->calls[c].sizes.members, 5);
        sl_plan_destroy(plan);
        request.forced_backend = "fake-b";
        ok(sl_plan_create(&request, &plan, &err), &err);
        for (int32_t c = 0; c < plan->call_count; c++)
            assert_string_equal(sl_backend_get_id(plan->calls[c].backend), "fake-b");
        for (int32_t v = 0; v < plan->vector_count; v++)
            assert_string_equal(sl_backend_get_id(plan->vectors[v].backend), "fake-b");
        assert_int_equal(plan->calls[0].rival_count, 0); /* each backend is asked once, and all others are out */
        sl_plan_destroy(plan);
        request.forced_backend = "fake";
        assert_int_equal(sl_plan_create(&request, &plan, &err), SEQLSTM_UNAVAILABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_phase_has_its_own),
        cmocka_unit_test(another_phase_is_followed),
        cmocka_unit_test(own_phase_binds),
        cmocka_unit_test(batches_take_memory_on_each_device),
        cmocka_unit_test(a_plan_is_made_for_its_request),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
