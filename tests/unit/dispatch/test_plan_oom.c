/* SPDX-License-Identifier: Apache-2.0 */
/* Plans while memory runs out, once at every allocation: by each policy, with
 * times that are measured and kept, whole steps, stored choices, stages, and
 * what is written about a plan. Nothing is left of what was begun, and the
 * error is that of memory. */
#include "model_fixture.h"
#include "ok.h"

#include "dispatch/cost/cost_cache.h"
#include "dispatch/explain/explain.h"
#include "dispatch/explain/explain_stages.h"
#include "dispatch/plan/plan.h"
#include "dispatch/planner.h"
#include "dispatch/stages/pipeline.h"
#define OOM_ARENAS
#include "oom.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* The reference once more, so that there is something to choose. */
static const struct seqlstm_backend *query_second(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.id = "second";
    return &table;
}

static const char *const models[] = {"seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel:\n"
                                     "  - {type: lstm, name: a, units: 3, return_sequences: true}\n"
                                     "  - {type: lstm, name: b, units: 3, return_sequences: true}\n  - {type: "
                                     "dense, name: out, units: 2}\n"
                                     "train: {loss: mse, epochs: 1}\n",
                                     "seqlstm: 1\ndata: {train: {source: a.txt, target: b.txt, type: lines},"
                                     " tokenizer: {type: char, specials: [unk, bos, eos]}}\n"
                                     "model:\n  encoder: [{type: embedding, dim: 3}, {type: gru, units: 3, "
                                     "return_sequences: true}]\n"
                                     "  decoder: [{type: embedding, dim: 3}, {type: gru, units: 3, "
                                     "return_sequences: true}, {type: attention},"
                                     " {type: dense, units: 3, activation: tanh}, {type: output, activation: "
                                     "softmax}]\ntrain: {epochs: 1}\n",
                                     "seqlstm: 1\ndata: {train: {source: a.txt, target: b.txt, type: lines},"
                                     " tokenizer: {type: char, specials: [unk, bos, eos]}}\n"
                                     "model:\n  encoder: [{type: embedding, dim: 3}, {type: gru, units: 3, "
                                     "return_sequences: true}]\n"
                                     "  decoder: [{type: embedding, dim: 3}, {type: gru, units: 3, "
                                     "return_sequences: true}, {type: attention, input_feeding: true},"
                                     " {type: output, activation: softmax}]\ntrain: {epochs: 1}\n"};
static const char *const policies[] = {"order", "estimate", "measured"};

static struct sl_data_facts get_facts(bool pairs)
{
    struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                  .target = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 2},
                                  .has_steps = true,
                                  .envelope = {.sequences = 2, .steps = 3, .rows = 5}};
    if (pairs) {
        const struct sl_field_facts ids = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7};
        facts.input = facts.target = facts.source = ids;
        facts.envelope.source_steps = 3;
        facts.envelope.source_rows = 5;
    }
    return facts;
}

static seqlstm_status time_whole_steps(const struct sl_whole_steps_request *request, double out_ns[2],
                                       struct seqlstm_error *err)
{
    (void)request, (void)err;
    out_ns[0] = 2e6;
    out_ns[1] = 1e6;
    return SEQLSTM_OK;
}

struct world {
    struct loaded loaded;
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_profiles profiles;
};

static void open_world(struct world *w, int model, const char *policy)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0},
                                                         {"second", query_second}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"}, {.name = "second"}};
    static const int32_t lengths[] = {3, 2};
    const struct sl_registry_request wanted = {
        .entries = entries, .entry_count = 2, .builtins = builtins, .builtin_count = 2, .only_folders = true};
    const struct sl_data_facts facts = get_facts(model > 0);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[1000];
    memset(w, 0, sizeof *w);
    snprintf(text, sizeof text, "%sdispatch: {policy: %s}\n", models[model], policy);
    w->loaded = load(text);
    if (w->loaded.model == NULL)
        fail_msg("%s", sl_buf_text(&w->loaded.text));
    const struct sl_graph_request graph = {
        .model = w->loaded.model, .facts = &facts, .phase = SL_PHASE_TRAIN, .pieces = model == 0 ? 2 : 0};
    ok(sl_registry_create(&wanted, &w->registry, &err), &err);
    assert_int_equal(sl_registry_get_backend_count(w->registry), 2);
    ok(sl_graph_create(&graph, &w->graph, &err), &err);
    ok(sl_profiles_add(&w->profiles, 2, lengths, model > 0 ? lengths : NULL, 1, &err), &err);
}

static void close_world(struct world *w)
{
    sl_profiles_deinit(&w->profiles);
    sl_graph_destroy(w->graph);
    sl_registry_destroy(w->registry);
    unload(&w->loaded);
}

/* All that can be written of a plan, and its stages, if its steps are cut. */
static seqlstm_status write_all(const struct sl_plan *plan, struct sl_buf *out, struct seqlstm_error *err)
{
    const struct sl_plan_beside beside = {0};
    struct sl_pipeline pipeline = {0};
    struct sl_pipeline_barrier barriers[4];
    int32_t count = 0;
    seqlstm_status status = sl_plan_write_json(plan, &beside, out, err);
    if (status == SEQLSTM_OK && plan->graph->pieces > 0)
        status = sl_pipeline_make(plan, 2, 0, &pipeline, err);
    if (status == SEQLSTM_OK && pipeline.stages > 0)
        status = sl_pipeline_list_barriers(plan, &pipeline, barriers, 4, &count, err);
    if (status == SEQLSTM_OK && pipeline.stages > 0) {
        struct sl_piece_times times;
        status = sl_piece_times_init(&times, plan->call_count, 2, err);
        if (status == SEQLSTM_OK) {
            status = sl_pipeline_cut_times(plan, &times, &pipeline, err);
            sl_piece_times_deinit(&times);
        }
    }
    if (status != SEQLSTM_OK)
        return status;
    sl_plan_write_table(plan, &beside, false, out);
    if (pipeline.stages > 0)
        sl_pipeline_write_table(plan, &pipeline, out);
    return out->failed ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory") : SEQLSTM_OK;
}

static seqlstm_status make_plan(const struct world *w, struct sl_cost_cache *cache, struct sl_buf *out,
                                struct seqlstm_error *err)
{
    const struct sl_tuning tuning = {.profiles = &w->profiles,
                                     .cache = cache,
                                     .measure = true,
                                     .seconds = 1e-3,
                                     .time_whole_steps = time_whole_steps};
    const struct sl_plan_request request = {
        .graph = w->graph, .registry = w->registry, .tuning = &tuning, .optimizer_states = 2, .threads = 1};
    struct sl_plan *plan = NULL;
    seqlstm_status status = sl_plan_create(&request, &plan, err);
    if (status == SEQLSTM_OK)
        status = write_all(plan, out, err);
    sl_plan_destroy(plan);
    return status;
}

/* The n-th allocation fails, or the n-th of an arena; false: there are fewer.
 * What watches the calls of backends does without where it has no memory: then
 * the plan is as always. */
static bool fail_once(const struct world *w, int n, bool of_arena, const char *name, const char *whole)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_cost_cache *cache = NULL;
    struct sl_buf out = {0};
    ok(sl_cost_cache_open("/nonexistent", &cache, &err), &err);
    if (of_arena)
        arena_fail_at(n);
    else
        oom_fail_at(n);
    const seqlstm_status status = make_plan(w, cache, &out, &err);
    const bool failed = of_arena ? arena_disarm() : oom_disarm();
    sl_cost_cache_close(cache);
    const bool fine = status == SEQLSTM_OK ? (!failed || !of_arena) && (!whole || strcmp(sl_buf_text(&out), whole) == 0)
                                           : failed && status == SEQLSTM_NO_MEMORY && err.message[0];
    if (!fine)
        fail_msg("%s, %s %d: %d, %s", name, of_arena ? "arena" : "allocation", n, (int)status, err.message);
    sl_buf_deinit(&out);
    return failed;
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < (m == 2 ? 1 : 3); p++) { /* the third one is there for its loop */
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_cost_cache *cache = NULL;
            struct sl_buf whole = {0};
            struct world w;
            open_world(&w, m, policies[p]);
            ok(sl_cost_cache_open("/nonexistent", &cache, &err), &err);
            if (p < 2) /* measured times differ */
                ok(make_plan(&w, cache, &whole, &err), &err);
            sl_cost_cache_close(cache);
            for (int of_arena = 0; of_arena < 2; of_arena++) {
                int n = 1;
                while (fail_once(&w, n, of_arena, policies[p], p < 2 ? sl_buf_text(&whole) : NULL))
                    n += p < 2 || n < 100 ? 1 : 1 + n / 40; /* timing goes round in circles */
                assert_true(n > 20);
            }
            sl_buf_deinit(&whole);
            close_world(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
