/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of a graph as a problem of routes, and the domain of a loop. The backends are the reference and the
 * fake devices of tests/gpu, each with a memory of its own. */
#include "model_fixture.h"
#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

#include "dispatch/route/candidate_routes.h"
#include "dispatch/route/loop_domain.h"

enum { REFERENCE, FAKE_A, FAKE_B, BACKENDS, MOST = 64 };

struct world {
    struct loaded loaded;
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_candidate candidates[MOST][BACKENDS];
    struct sl_subgraph items[MOST];
    struct sl_subgraphs subgraphs;
};

/* A subgraph for each node, and one for the last two; candidates of all backends, with costs by node and backend. */
static void open_world(struct world *w, const char *model, const struct sl_data_facts *facts)
{
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "fake-a"}, {.name = "fake-b"}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(w, 0, sizeof *w);
    w->registry = registry_open(entries, BACKENDS);
    w->loaded = load(model);
    if (w->loaded.model == NULL)
        fail_msg("%s", sl_buf_text(&w->loaded.text));
    struct sl_graph_request wanted = {.model = w->loaded.model, .facts = facts, .phase = SL_PHASE_TRAIN};
    ok(sl_graph_create(&wanted, &w->graph, &err), &err);
    const int32_t nodes = w->graph->node_count;
    assert_true(nodes > 1 && nodes < MOST);
    w->subgraphs =
        (struct sl_subgraphs){.graph = w->graph, .listed_count = BACKENDS, .items = w->items, .count = nodes + 1};
    for (int32_t i = 0; i <= nodes; i++) {
        const int32_t first = i < nodes ? i : nodes - 2;
        w->items[i] = (struct sl_subgraph){.node = &w->graph->nodes[first],
                                           .first = first,
                                           .count = i < nodes ? 1 : 2,
                                           .candidates = w->candidates[i],
                                           .candidate_count = BACKENDS};
        for (uint32_t b = 0; b < BACKENDS; b++) {
            struct sl_backend *backend = sl_registry_get_backend(w->registry, b);
            w->candidates[i][b] = (struct sl_candidate){.backend = backend,
                                                        .rank = 10 + b,
                                                        .variant_index = 20 + b,
                                                        .cost = {SL_COST_MEASURED, 100 * i + b, 3 * b}};
        }
    }
}

static void close_world(struct world *w)
{
    sl_graph_destroy(w->graph);
    sl_registry_destroy(w->registry);
    unload(&w->loaded);
}

static const struct sl_data_facts steps_facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                                 .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                                 .has_steps = true,
                                                 .envelope = {.sequences = 4, .steps = 6, .rows = 19}};

static const char branches[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel:\n"
                               "  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
                               "  - {type: gru, name: b, units: 5, return_sequences: true, from: a}\n"
                               "  - {type: concat, name: c, from: [a, b]}\n"
                               "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n";

static void each_candidate_is_a_step(void **state)
{
    (void)state;
    static const char *const domains[BACKENDS] = {"host", "fake:fake-a", "fake:fake-b"};
    struct world w;
    struct sl_candidate_routes routes;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w, branches, &steps_facts);
    w.candidates[1][FAKE_A].excluded = true;
    ok(sl_candidate_routes_init(&routes, &w.subgraphs, &err), &err);
    assert_int_equal(routes.problem.node_count, w.graph->node_count);
    assert_int_equal(routes.problem.domain_count, BACKENDS);
    assert_int_equal(routes.problem.step_count, w.subgraphs.count * BACKENDS - 1);
    assert_true(routes.problem.tie == SL_ROUTE_TIE_MEASURED);
    for (int32_t i = 0, at = 0; i < w.subgraphs.count; i++)
        for (uint32_t b = 0; b < BACKENDS; b++) {
            const struct sl_route_step *step = &routes.problem.steps[at];
            if (w.candidates[i][b].excluded)
                continue;
            assert_ptr_equal(routes.subgraphs[at], &w.items[i]);
            assert_ptr_equal(routes.candidates[at], &w.candidates[i][b]);
            assert_string_equal(routes.domains[step->domain], domains[b]);
            assert_int_equal(step->first, w.items[i].first);
            assert_int_equal(step->count, w.items[i].count);
            assert_int_equal(step->rank, 10 + b);
            assert_int_equal(step->variant, 20 + b);
            assert_true(step->cost_ns == 100 * i + 4 * b);
            at++;
        }
    sl_candidate_routes_deinit(&routes);
    assert_null(routes.steps);
    /* what is not measured is told apart less finely */
    w.candidates[2][FAKE_B].cost.source = SL_COST_ESTIMATE;
    ok(sl_candidate_routes_init(&routes, &w.subgraphs, &err), &err);
    assert_true(routes.problem.tie == SL_ROUTE_TIE);
    sl_candidate_routes_deinit(&routes);
    close_world(&w);
}

/* Activations alone are copied: from the node before that had them last, and as large as they may be. */
static void reads_are_those_of_activations(void **state)
{
    (void)state;
    struct world w;
    struct sl_candidate_routes routes;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w, branches, &steps_facts);
    ok(sl_candidate_routes_init(&routes, &w.subgraphs, &err), &err);
    static const struct {
        int32_t reader, holder;
        int64_t features;
    } expected[] = {{1, 0, 3}, {2, 1, 3}, {2, 1, 5}, {3, 2, 8}, {4, 3, 2}};
    assert_int_equal(w.graph->node_count, 5);
    assert_int_equal(routes.problem.read_count, sizeof expected / sizeof *expected);
    for (int32_t r = 0; r < routes.problem.read_count; r++) {
        const struct sl_route_read *read = &routes.problem.reads[r];
        const double once = 10000 + 19 * (double)expected[r].features * 4 / 10;
        assert_int_equal(read->reader, expected[r].reader);
        assert_int_equal(read->holder, expected[r].holder);
        assert_true(read->copy_ns == 2 * once); /* and the gradient back */
    }
    sl_candidate_routes_deinit(&routes);
    close_world(&w);
}

/* What comes from the batch is read twice without a copy in between; without a gradient a copy goes one way; and a
 * value of each sequence has as many rows as there are sequences. */
static void reads_cost_what_they_move(void **state)
{
    (void)state;
    static const char model[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel:\n"
                                "  - {type: lstm, name: a, units: 3, return_sequences: true, trainable: false}\n"
                                "  - {type: gru, name: b, units: 5, return_sequences: true, from: input}\n"
                                "  - {type: concat, name: c, from: [a, b]}\n  - {type: pool, name: p, mode: mean}\n"
                                "  - {type: dense, name: out, units: 2}\ntrain: {loss: mse, epochs: 1}\n";
    static const struct {
        int32_t reader, holder;
        int64_t rows, features;
        int times;
    } expected[] = {{2, 0, 19, 3, 1}, {2, 1, 19, 5, 2}, {3, 2, 19, 8, 2}, {4, 3, 4, 8, 2}, {5, 4, 4, 2, 2}};
    struct sl_data_facts facts = steps_facts;
    struct world w;
    struct sl_candidate_routes routes;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    facts.target.on_steps = false;
    open_world(&w, model, &facts);
    w.candidates[2][FAKE_B].cost.source = SL_COST_GUESS;
    ok(sl_candidate_routes_init(&routes, &w.subgraphs, &err), &err);
    assert_true(routes.problem.tie == SL_ROUTE_TIE);
    assert_int_equal(routes.problem.read_count, sizeof expected / sizeof *expected);
    for (int32_t r = 0; r < routes.problem.read_count; r++) {
        const struct sl_route_read *read = &routes.problem.reads[r];
        const double once = 10000 + (double)(expected[r].rows * expected[r].features) * 4 / 10;
        assert_int_equal(read->reader, expected[r].reader);
        assert_int_equal(read->holder, expected[r].holder);
        assert_true(read->copy_ns == expected[r].times * once);
    }
    sl_candidate_routes_deinit(&routes);
    close_world(&w);
}

static int32_t count_left(const struct world *w, int32_t i)
{
    int32_t left = 0;
    for (int b = 0; b < BACKENDS; b++)
        left |= !w->candidates[i][b].excluded << b;
    return left;
}

static void set_costs(struct world *w, const double costs[BACKENDS])
{
    for (int32_t i = 0; i < w->subgraphs.count; i++)
        for (int b = 0; b < BACKENDS; b++) {
            w->candidates[i][b].cost = (struct sl_cost){SL_COST_MEASURED, costs[b], 0};
            w->candidates[i][b].excluded = false;
        }
}

/* After settling, these backends are left on the loop, and all of them elsewhere. */
static void expect_settled(struct world *w, int32_t left)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_loop *loop = &w->graph->loop;
    ok(sl_subgraphs_settle_loop(&w->subgraphs, &err), &err);
    for (int32_t i = 0; i < w->subgraphs.count; i++) {
        const struct sl_subgraph *item = &w->items[i];
        const bool within = item->first >= loop->first && item->first + item->count <= loop->first + loop->count;
        if (within)
            assert_int_equal(count_left(w, i), left);
        else if (count_left(w, i) != (1 << BACKENDS) - 1)
            fail_msg("subgraph %d is outside the loop and has candidates %d", i, count_left(w, i));
    }
}

static void a_loop_runs_where_it_is_cheapest(void **state)
{
    (void)state;
    static const char model[] =
        "seqlstm: 1\ndata: {type: lines, train: {source: a, target: b}}\nmodel:\n"
        "  encoder: [{type: embedding, dim: 3}, {type: gru, units: 6, return_sequences: true}]\n"
        "  decoder: [{type: embedding, dim: 4}, {type: gru, units: 6, return_sequences: true},\n"
        "    {type: attention, input_feeding: true}, {type: output, activation: softmax}]\ntrain: {epochs: 1}\n";
    static const struct sl_data_facts facts = {
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 8},
        .target = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 8},
        .source = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7},
        .has_steps = true,
        .envelope = {.sequences = 4, .steps = 6, .rows = 19, .source_steps = 5, .source_rows = 17}};
    struct world w;
    open_world(&w, model, &facts);
    const int32_t last = w.graph->loop.first + w.graph->loop.count - 1;
    assert_true(w.graph->loop.count > 1 && w.graph->loop.first > 0 && last + 1 < w.graph->node_count);
    set_costs(&w, (double[]){5, 3, 4});
    expect_settled(&w, 1 << FAKE_A);
    set_costs(&w, (double[]){5, 4, 4}); /* the first of equals */
    expect_settled(&w, 1 << FAKE_A);
    set_costs(&w, (double[]){5, 5, 4});
    w.candidates[0][FAKE_B].cost.forward_ns = 1e9; /* outside the loop it does not count */
    expect_settled(&w, 1 << FAKE_B);
    set_costs(&w, (double[]){5, 3, 4});
    w.candidates[last][FAKE_A].cost.forward_ns = 1e9;
    expect_settled(&w, 1 << FAKE_B);
    set_costs(&w, (double[]){0, 0, 0}); /* they are not known: one domain all the same */
    expect_settled(&w, 1 << REFERENCE);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    set_costs(&w, (double[]){5, 3, 4});
    w.candidates[last][FAKE_B].backend = w.candidates[last][FAKE_A].backend; /* a second way there, which is dearer */
    w.candidates[last][FAKE_B].cost.forward_ns = 1e9;
    ok(sl_subgraphs_settle_loop(&w.subgraphs, &err), &err);
    assert_int_equal(count_left(&w, w.graph->loop.first), 1 << FAKE_A);
    assert_int_equal(count_left(&w, last), 1 << FAKE_A | 1 << FAKE_B);
    close_world(&w);
}

/* Without a loop nothing is put out; where no domain runs it all, neither. */
static void what_no_domain_runs_stays(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, branches, &steps_facts);
    set_costs(&w, (double[]){5, 3, 4});
    expect_settled(&w, (1 << BACKENDS) - 1);
    struct sl_loop *loop = (struct sl_loop *)&w.graph->loop;
    *loop = (struct sl_loop){.first = 1, .count = 2};
    w.candidates[1][FAKE_A].excluded = w.candidates[2][FAKE_B].excluded = w.candidates[2][REFERENCE].excluded = true;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_subgraphs_settle_loop(&w.subgraphs, &err), &err);
    assert_int_equal(count_left(&w, 1), 1 << REFERENCE | 1 << FAKE_B);
    assert_int_equal(count_left(&w, 2), 1 << FAKE_A);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_candidate_is_a_step),  cmocka_unit_test(reads_are_those_of_activations),
        cmocka_unit_test(reads_cost_what_they_move), cmocka_unit_test(a_loop_runs_where_it_is_cheapest),
        cmocka_unit_test(what_no_domain_runs_stays),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
