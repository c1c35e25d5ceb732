/* SPDX-License-Identifier: Apache-2.0 */
/* What pins, stored choices and a forced backend leave of the candidates; refusals in the order of the list; and
 * whether the stored comparison of whole steps belongs to a plan. The backends are the reference and the fake devices
 * of tests/gpu.
 */
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

#include "dispatch/route/constraint.h"
#include "dispatch/route/whole_steps.h"

enum { BACKENDS = 3, SUBGRAPHS = 4, CANDIDATES = 4, REFUSALS = 8 };

static const char *const names[SUBGRAPHS] = {"a", "b", "out", "b+out"}; /* three layers, and two of them in one call */

/* Candidates of a subgraph: r, the reference; 1 and 2, variants of fake-a; b, fake-b. */
static const char letters[CANDIDATES + 1] = "r12b";

struct world {
    struct loaded loaded;
    struct sl_registry *registry;
    struct sl_backend *listed[BACKENDS];
    struct sl_arena arena;
    struct sl_graph graph;
    struct sl_node nodes[SUBGRAPHS];
    struct sl_candidate candidates[SUBGRAPHS][CANDIDATES];
    struct sl_refusal refusals[SUBGRAPHS][REFUSALS];
    struct sl_subgraph items[SUBGRAPHS];
    struct sl_subgraphs subgraphs;
};

static struct sl_registry *registry;

static int open_registry(void **state)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "fake-a"}, {.name = "fake-b"}};
    oom_group_begin(state);
    registry = registry_open(entries, BACKENDS);
    return 0;
}

static int close_registry(void **state)
{
    sl_registry_destroy(registry);
    return oom_group_end(state);
}

/* `accepts`: the letters of the candidates of each subgraph, divided by blanks; NULL: all of all. */
static void open_world(struct world *w, const char *pins, const char *accepts)
{
    static const int32_t firsts[SUBGRAPHS] = {0, 1, 2, 1}, counts[SUBGRAPHS] = {1, 1, 1, 2};
    static const int backends[CANDIDATES] = {0, 1, 1, 2};
    char text[512];
    *w = (struct world){.registry = registry};
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
             "model:\n  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
             "  - {type: lstm, name: b, units: 4, return_sequences: true}\n  - {type: dense, name: out, units: 2}\n"
             "train: {loss: mse, epochs: 1}\nbackends: [reference, fake-a, fake-b]\ndispatch: {%s}\n",
             pins);
    w->loaded = load(text);
    if (w->loaded.model == NULL)
        fail_msg("%s", sl_buf_text(&w->loaded.text));
    sl_arena_init(&w->arena);
    w->graph = (struct sl_graph){.model = w->loaded.model, .phase = SL_PHASE_TRAIN, .node_count = 3};
    for (uint32_t b = 0; b < BACKENDS; b++)
        w->listed[b] = sl_registry_get_backend(registry, b);
    for (int s = 0; s < SUBGRAPHS; s++) {
        struct sl_subgraph *item = &w->items[s];
        w->nodes[s] = (struct sl_node){.name = names[s], .layer = firsts[s]};
        *item = (struct sl_subgraph){.node = &w->nodes[s],
                                     .first = firsts[s],
                                     .count = counts[s],
                                     .candidates = w->candidates[s],
                                     .refusals = w->refusals[s]};
        const size_t own = accepts ? strcspn(accepts, " ") : 0;
        for (int c = 0; c < CANDIDATES; c++)
            if (accepts == NULL || memchr(accepts, letters[c], own))
                w->candidates[s][item->candidate_count++] =
                    (struct sl_candidate){.backend = w->listed[backends[c]],
                                          .rank = (uint32_t)backends[c],
                                          .variant = letters[c] == '2' ? "two" : "one",
                                          .variant_index = letters[c] == '2'};
        accepts = accepts ? accepts + own + (accepts[own] == ' ') : NULL;
    }
    w->subgraphs = (struct sl_subgraphs){.arena = &w->arena,
                                         .graph = &w->graph,
                                         .listed = w->listed,
                                         .listed_count = BACKENDS,
                                         .items = w->items,
                                         .count = SUBGRAPHS};
}

static void close_world(struct world *w)
{
    sl_arena_deinit(&w->arena);
    unload(&w->loaded);
}

/* The letters of the candidates that are left, subgraph by subgraph; "-": none. */
static const char *list_left(const struct world *w)
{
    static char text[64];
    char *to = text;
    for (int s = 0; s < SUBGRAPHS; s++) {
        const char *begin = to += s > 0 ? sprintf(to, " ") : 0;
        for (int32_t c = 0; c < w->items[s].candidate_count; c++) {
            const struct sl_candidate *candidate = &w->candidates[s][c];
            if (!candidate->excluded)
                *to++ = candidate->rank == 0 ? 'r' : candidate->rank == 2 ? 'b' : candidate->variant_index ? '2' : '1';
        }
        if (to == begin)
            *to++ = '-';
        *to = '\0';
    }
    return text;
}

#define TRAIN    SL_PHASE_TRAIN
#define EVALUATE SL_PHASE_EVALUATE

static const struct {
    const char *what, *pins, *accepts;
    struct sl_plan_choice stored[4];
    const char *forced, *left;
} cases[] = {
    {"nothing", "", NULL, {{0}}, NULL, "r12b r12b r12b r12b"},
    {"a pin", "pin: {a: fake-a}", NULL, {{0}}, NULL, "12 r12b r12b r12b"},
    {"a pin with a variant", "pin: {a: \"fake-a:two\"}", NULL, {{0}}, NULL, "2 r12b r12b r12b"},
    {"a pin of the last layer", "pin: {out: reference}", NULL, {{0}}, NULL, "r12b r12b r r12b"},
    {"pins hold for calls of several layers", "pin: {b: fake-b, a: reference}", NULL, {{0}}, NULL, "r b r12b b"},
    {"a pin that refuses", "pin: {b: fake-b}", "r12b r12 r12b rb", {{0}}, NULL, "r12b - r12b b"},
    {"a pin of a variant that is not there", "pin: {a: \"fake-a:three\"}", NULL, {{0}}, NULL, "- r12b r12b r12b"},
    {"stored choices of single layers",
     "",
     NULL,
     {{"a", "fake-b", "", TRAIN}, {"out", "reference", "one", TRAIN}, {"b", "fake-a", "two", TRAIN}},
     NULL,
     "b 2 r -"},
    {"a stored choice of two layers", "", NULL, {{"b+out", "fake-a", "one", TRAIN}}, NULL, "r12b - - 1"},
    {"a stored choice of a backend that refuses by now",
     "",
     "r12 r12b r12b r12b",
     {{"a", "fake-b", "", TRAIN}},
     NULL,
     "- r12b r12b r12b"},
    {"stored choices of another phase", "", NULL, {{"a", "fake-b", "one", EVALUATE}}, NULL, "b r12b r12b r12b"},
    {"of another phase, a backend that is not there",
     "",
     NULL,
     {{"a", "gone", "", EVALUATE}},
     NULL,
     "r12b r12b r12b r12b"},
    {"of another phase, a backend that refuses", "", "r12 r r r", {{"a", "fake-b", "", EVALUATE}}, NULL, "r12 r r r"},
    {"of another phase, two layers", "", NULL, {{"b+out", "fake-a", "two", EVALUATE}}, NULL, "r12b - - 2"},
    {"of another phase, two layers that no backend runs together here",
     "",
     "r r r ",
     {{"b+out", "fake-a", "two", EVALUATE}},
     NULL,
     "r r r -"},
    {"the own phase binds alone",
     "",
     NULL,
     {{"a", "fake-b", "", EVALUATE}, {"a", "reference", "", TRAIN}, {"b", "fake-b", "", EVALUATE}},
     NULL,
     "r r12b r12b r12b"},
    {"a pin is stronger than a stored choice",
     "pin: {a: fake-a}",
     NULL,
     {{"a", "fake-b", "", TRAIN}},
     NULL,
     "12 r12b r12b r12b"},
    {"a forced backend", "", NULL, {{0}}, "fake-a", "12 12 12 12"},
    {"a forced backend that refuses a layer", "", "rb r12b r12b r12b", {{0}}, "fake-a", "rb 12 12 12"},
    {"a forced backend that accepts two layers together", "", "r12b rb rb r1b", {{0}}, "fake-a", "12 - - 1"},
    {"a forced backend that accepts one of two layers", "", "rb r12b rb rb", {{0}}, "fake-a", "rb 12 rb -"},
    {"a pin is stronger than a forced backend", "pin: {a: fake-b}", NULL, {{0}}, "fake-a", "b 12 12 12"},
    {"a pin of one of two layers is stronger than a forced backend that runs them together",
     "pin: {out: reference}",
     NULL,
     {{0}},
     "fake-a",
     "12 12 r 12"},
    {"a forced backend that accepts the last of two layers", "", "rb rb r12b rb", {{0}}, "fake-a", "rb rb 12 -"},
    {"what another phase leaves out is not forced", "", NULL, {{"a", "fake-b", "", EVALUATE}}, "fake-a", "b 12 12 12"},
    {"a stored choice, too", "", NULL, {{"a", "fake-b", "", TRAIN}}, "fake-a", "b 12 12 12"},
};

static void what_is_left_of_the_candidates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct world w;
        open_world(&w, cases[i].pins, cases[i].accepts);
        struct sl_plan_request request = {
            .graph = &w.graph, .registry = registry, .forced_backend = cases[i].forced, .stored = cases[i].stored};
        while (request.stored_count < 4 && cases[i].stored[request.stored_count].node)
            request.stored_count++;
        ok(sl_subgraphs_constrain(&w.subgraphs, &request, &err), &err);
        if (strcmp(list_left(&w), cases[i].left) != 0)
            fail_msg("%s: `%s`, expected `%s`", cases[i].what, list_left(&w), cases[i].left);
        close_world(&w);
    }
}

/* A backend that is not loaded, and a variant that it does not have: with the place, and with what there is. */
static void pins_that_cannot_be_followed(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    open_world(&w, "pin: {a: \"fake-a:three\", b: fake-b}", NULL);
    const struct sl_plan_request request = {.graph = &w.graph, .registry = registry};
    /* refusals of other backends do not matter */
    w.refusals[1][0] = (struct sl_refusal){.backend = "reference", .reason = "one"};
    w.refusals[1][1] = (struct sl_refusal){.backend = "fake-b", .reason = "two"};
    w.refusals[1][2] = (struct sl_refusal){.backend = "fake", .reason = "three"};
    w.items[1].refusal_count = 3;
    ok(sl_subgraphs_constrain(&w.subgraphs, &request, &err), &err);
    assert_int_equal(w.items[0].refusal_count, 1);
    assert_string_equal(w.refusals[0][0].backend, "fake-a");
    assert_string_equal(w.refusals[0][0].reason, "it has no variant `three` for this operation; it has `one`, `two`");
    assert_int_equal(w.items[1].refusal_count, 1);
    assert_string_equal(w.refusals[1][0].reason, "two");
    assert_string_equal(w.items[1].pin, "fake-b");
    assert_int_equal(w.items[1].pin_place.line, 9);
    assert_null(w.items[2].pin);
    w.items[0].refusal_count = 0;
    w.candidates[0][2].device = 1; /* its variants are not those of another device */
    ok(sl_subgraphs_constrain(&w.subgraphs, &request, &err), &err);
    assert_string_equal(w.refusals[0][0].reason, "it has no variant `three` for this operation; it has `one`");
    close_world(&w);
    open_world(&w, "pin: {a: \"fake-b:three\"}", NULL); /* the last candidate */
    const struct sl_plan_request last = {.graph = &w.graph, .registry = registry};
    ok(sl_subgraphs_constrain(&w.subgraphs, &last, &err), &err);
    assert_string_equal(w.refusals[0][0].backend, "fake-b");
    assert_string_equal(w.refusals[0][0].reason, "it has no variant `three` for this operation; it has `one`");
    close_world(&w);
    open_world(&w, "pin: {a: \"fake-a:three\", b: fake-b}", NULL);
    w.listed[2] = w.listed[0]; /* fake-b is not in the list any more */
    assert_int_equal(sl_subgraphs_constrain(&w.subgraphs, &request, &err), SEQLSTM_UNAVAILABLE);
    assert_non_null(strstr(err.message, "the backend `fake-b` is not loaded"));
    assert_non_null(strstr(err.where, "m.yaml:9:"));
    close_world(&w);
}

/* A layer that has been quantized since is free; what stands beside it is not. */
static void quantized_layers_are_free(void **state)
{
    (void)state;
    static const struct sl_plan_choice stored[] = {
        {"a", "fake-b", "", TRAIN}, {"b", "fake-b", "", TRAIN}, {"out", "reference", "", TRAIN}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    open_world(&w, "", NULL);
    w.nodes[0].is_quantized = true;
    const struct sl_plan_request request = {
        .graph = &w.graph, .registry = registry, .stored = stored, .stored_count = 3};
    ok(sl_subgraphs_constrain(&w.subgraphs, &request, &err), &err);
    assert_string_equal(list_left(&w), "r12b b r -");
    assert_null(w.items[0].pin);
    assert_string_equal(w.items[1].pin, "fake-b"); /* as if it were pinned, but nowhere in the model file */
    assert_int_equal(w.items[1].pin_place.line, 0);
    close_world(&w);
}

/* The beginning of a name is another name; and a pin brings nothing back. */
static void pins_name_one_backend_and_leave_out_the_rest(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    open_world(&w, "pin: {a: fake-a}", NULL);
    const struct sl_plan_request request = {.graph = &w.graph, .registry = registry};
    w.candidates[0][1].excluded = true;
    ok(sl_subgraphs_constrain(&w.subgraphs, &request, &err), &err);
    assert_string_equal(list_left(&w), "2 r12b r12b r12b");
    close_world(&w);
    open_world(&w, "", NULL);
    struct sl_plan_choice stored = {"a", "fake", "", TRAIN};
    const struct sl_plan_request replay = {
        .graph = &w.graph, .registry = registry, .stored = &stored, .stored_count = 1};
    assert_int_equal(sl_subgraphs_constrain(&w.subgraphs, &replay, &err), SEQLSTM_UNAVAILABLE);
    assert_string_equal(err.message, "the backend `fake` is not loaded; `seqlstm backends -v` shows why");
    stored.phase = EVALUATE;
    ok(sl_subgraphs_constrain(&w.subgraphs, &replay, &err), &err);
    assert_string_equal(list_left(&w), "r12b r12b r12b r12b");
    close_world(&w);
}

/* A plan that became the one which lost the comparison has none. */
static void the_other_plan_keeps_no_comparison(void **state)
{
    (void)state;
    static const struct sl_plan_choice stored[] = {{"a", "fake-a", "one", TRAIN}, {"b", "fake-b", "one", TRAIN}};
    for (int32_t k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_plan_choice other[] = {{"c", "fake-a", "one", TRAIN}, {"b", "fake-b", "two", TRAIN}};
        if (k > 0)
            other[k - 1] = stored[k - 1];
        const struct sl_whole_steps steps = {.source = SL_COST_MEASURED, .other = other, .other_count = 2};
        const struct sl_graph graph = {.phase = SL_PHASE_TRAIN};
        const struct sl_plan_request request = {.stored = stored, .stored_count = 2, .stored_whole_steps = &steps};
        const struct sl_node nodes[] = {{.name = "a"}, {.name = "b"}};
        struct sl_call calls[] = {
            {.node = &nodes[0], .backend = sl_registry_get_backend(registry, 1), .variant = "one"},
            {.node = &nodes[1], .backend = sl_registry_get_backend(registry, 2), .variant = "one"}};
        struct sl_arena arena;
        sl_arena_init(&arena);
        struct sl_plan plan = {.arena = &arena, .graph = &graph, .calls = calls, .call_count = 2};
        ok(sl_whole_steps_replay(&request, &plan, &err), &err);
        assert_int_equal(plan.whole_steps.source, k == 0 ? SL_COST_STORED : SL_COST_NONE);
        sl_arena_deinit(&arena);
    }
}

/* Refusals stand in the order of the list, whenever they come. */
static void refusals_are_in_order(void **state)
{
    (void)state;
    static const int orders[][3] = {{0, 1, 3}, {3, 1, 0}, {1, 3, 0}, {3, 0, 1}, {0, 3, 1}, {1, 0, 3}};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct world w;
        open_world(&w, "", NULL);
        for (int k = 0; k < 3; k++) {
            struct sl_candidate *candidate = &w.candidates[0][orders[o][k]];
            char reason[32];
            snprintf(reason, sizeof reason, "reason %d", orders[o][k]);
            ok(sl_subgraph_refuse_candidate(&w.subgraphs, &w.items[0], candidate, reason, &err), &err);
            assert_true(candidate->excluded);
        }
        assert_int_equal(w.items[0].refusal_count, 3);
        for (uint32_t k = 0; k < 3; k++) {
            static const char *const reasons[] = {"reason 0", "reason 1", "reason 3"};
            assert_int_equal(w.refusals[0][k].rank, k);
            assert_string_equal(w.refusals[0][k].backend, sl_backend_get_id(w.listed[k]));
            assert_string_equal(w.refusals[0][k].reason, reasons[k]);
        }
        close_world(&w);
    }
}

/* A plan that is the stored one keeps its comparison; any other one has none. */
static void comparisons_of_stored_plans(void **state)
{
    (void)state;
    static const struct sl_plan_choice stored[] = {
        {"a", "fake-a", "one", TRAIN}, {"a", "reference", "one", EVALUATE}, {"b", "fake-b", "one", TRAIN}};
    static const struct sl_plan_choice other[] = {{"b", "reference", "one", TRAIN}, {"c", "fake-b", "one", TRAIN}};
    static const struct {
        const char *nodes[3], *variants[3];
        int backends[3], calls, stored, others;
        bool kept;
    } plans[] = {
        {{"a", "b"}, {"one", "one"}, {1, 2}, 2, 3, 2, true},
        {{"b", "a"}, {"one", "one"}, {2, 1}, 2, 3, 2, true},
        {{"a", "b"}, {"one", "one"}, {1, 0}, 2, 3, 2, false}, /* another backend */
        {{"a", "b"}, {"two", "one"}, {1, 2}, 2, 3, 2, false}, /* another variant */
        {{"a", "x"}, {"one", "one"}, {1, 2}, 2, 3, 2, false}, /* another operation */
        {{"a"}, {"one"}, {1}, 1, 3, 2, false},                /* one call is missing */
        {{"a"}, {"one"}, {1}, 1, 2, 2, true},                 /* a choice of another phase does not count */
        {{"a", "b", "c"}, {"one", "one", "one"}, {1, 2, 2}, 3, 3, 2, false}, /* one more */
        {{"a", "b"}, {"one", "one"}, {1, 2}, 2, 3, 0, true},
    };
    struct sl_backend *listed[BACKENDS];
    for (uint32_t b = 0; b < BACKENDS; b++)
        listed[b] = sl_registry_get_backend(registry, b);
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const struct sl_whole_steps steps = {.source = SL_COST_MEASURED,
                                             .chosen_ns = 100,
                                             .other_ns = 120,
                                             .other = other,
                                             .other_count = plans[p].others,
                                             .overturned = true};
        const struct sl_graph graph = {.phase = SL_PHASE_TRAIN};
        const struct sl_plan_request request = {
            .stored = stored, .stored_count = plans[p].stored, .stored_whole_steps = &steps};
        struct sl_node nodes[3] = {{0}};
        struct sl_call calls[3] = {{0}};
        struct sl_arena arena;
        sl_arena_init(&arena);
        struct sl_plan plan = {.arena = &arena, .graph = &graph, .calls = calls, .call_count = plans[p].calls};
        for (int c = 0; c < plans[p].calls; c++) {
            nodes[c].name = plans[p].nodes[c];
            calls[c] = (struct sl_call){
                .node = &nodes[c], .backend = listed[plans[p].backends[c]], .variant = plans[p].variants[c]};
        }
        ok(sl_whole_steps_replay(&request, &plan, &err), &err);
        if (plan.whole_steps.source != (plans[p].kept ? SL_COST_STORED : SL_COST_NONE))
            fail_msg("plan %d: source %d", (int)p, (int)plan.whole_steps.source);
        if (plans[p].kept) {
            assert_true(plan.whole_steps.chosen_ns == 100 && plan.whole_steps.other_ns == 120);
            assert_true(plan.whole_steps.overturned);
            assert_int_equal(plan.whole_steps.other_count, plans[p].others);
            for (int k = 0; k < plans[p].others; k++) {
                assert_string_equal(plan.whole_steps.other[k].node, other[k].node);
                assert_string_equal(plan.whole_steps.other[k].backend, other[k].backend);
                assert_string_equal(plan.whole_steps.other[k].variant, other[k].variant);
                assert_int_equal(plan.whole_steps.other[k].phase, other[k].phase);
            }
        }
        const struct sl_plan_request none = {.stored = stored, .stored_count = plans[p].stored};
        struct sl_plan bare = plan;
        bare.whole_steps = (struct sl_whole_steps){.source = SL_COST_NONE};
        ok(sl_whole_steps_replay(&none, &bare, &err), &err);
        assert_int_equal(bare.whole_steps.source, SL_COST_NONE);
        sl_arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_of_the_candidates),
        cmocka_unit_test(pins_that_cannot_be_followed),
        cmocka_unit_test(refusals_are_in_order),
        cmocka_unit_test(quantized_layers_are_free),
        cmocka_unit_test(pins_name_one_backend_and_leave_out_the_rest),
        cmocka_unit_test(the_other_plan_keeps_no_comparison),
        cmocka_unit_test(comparisons_of_stored_plans),
    };
    return cmocka_run_group_tests(tests, open_registry, close_registry);
}
