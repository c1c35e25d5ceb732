/* SPDX-License-Identifier: Apache-2.0 */
/* What a step refuses before it calls a backend, and what it counts of the calls that it makes. */
#include <sys/sysinfo.h>

#include "exec_pairs.h"
#include "oom.h"

static void expect_refusal(struct sl_exec *exec, const struct sl_batch *batch, const char *message)
{
    const struct sl_exec_step step = {.normaliser = 1};
    struct sl_exec_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_exec_run(exec, batch, &step, &result, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, message);
}

/* By any of the five sizes, and by one only; the message has them all. */
static void a_batch_beyond_the_plan_is_refused_with_both_sizes(void **state)
{
    (void)state;
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    facts.envelope = (struct sl_envelope){.sequences = 6, .steps = 7, .rows = 20, .source_steps = 8, .source_rows = 30};
    struct world w;
    open_world(&w, data_pairs, cases[0].layers, &facts, true);
    struct sl_batch *batch = make_pairs(true);
    struct sl_batch large[5] = {*batch, *batch, *batch, *batch, *batch};
    large[0].sequences = 7;
    large[1].axis.steps = 8;
    large[2].axis.rows = 21;
    large[3].source.axis.steps = 9;
    large[4].source.axis.rows = 31;
    const char *const got[5] = {
        "7 sequences, 4 steps and 12 rows (source: 5, 11)", "5 sequences, 8 steps and 12 rows (source: 5, 11)",
        "5 sequences, 4 steps and 21 rows (source: 5, 11)", "5 sequences, 4 steps and 12 rows (source: 9, 11)",
        "5 sequences, 4 steps and 12 rows (source: 5, 31)"};
    for (int k = 0; k < 5; k++) {
        char message[256];
        snprintf(message, sizeof message, "a batch of %s does not fit the plan's 6, 7 and 20 (8, 30)", got[k]);
        assert_false(sl_exec_fits(w.exec, &large[k]));
        expect_refusal(w.exec, &large[k], message);
    }
    assert_true(sl_exec_fits(w.exec, batch));
    run(&w, batch, false);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* The kind of each field, and whether it lies on steps. */
static void other_fields_than_the_models_are_refused(void **state)
{
    (void)state;
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    struct world w;
    open_world(&w, data_pairs, cases[0].layers, &facts, true);
    struct sl_batch *batch = make_pairs(true);
    struct sl_batch other;
    struct sl_field *const fields[] = {&other.input, &other.target, &other.source.input};
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        for (int change = 0; change < 3; change++) {
            other = *batch;
            fields[f]->on_steps = change != 0;
            fields[f]->kind = change == 1 ? SL_FIELD_VALUES : change == 2 ? SL_FIELD_NONE : fields[f]->kind;
            expect_refusal(w.exec, &other, "the batch's fields are not those the model was built for");
        }
    run(&w, batch, false);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* A prediction has no loss, and so needs no weights. */
static void weights_are_needed_for_a_loss_alone(void **state)
{
    (void)state;
    struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = 3},
                                  .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                  .has_steps = true,
                                  .has_weight = true,
                                  .envelope = {.sequences = B, .steps = 4, .rows = R}};
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .input_kind = SL_FIELD_VALUES,
                                   .input_features = 3,
                                   .input_on_steps = true,
                                   .target_kind = SL_FIELD_VALUES,
                                   .target_features = 2};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = NULL, *narrow = NULL;
    struct world w;
    open_world(&w, "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n",
               "model: [{type: lstm, units: 2}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    ok(sl_batch_create(&shape, &batch, &err), &err);
    expect_refusal(w.exec, batch, "the batch has no weights, but the model was built for them");
    for (shape.input_features = 4; shape.input_features >= 2; shape.input_features -= 2) {
        sl_batch_destroy(narrow);
        ok(sl_batch_create(&shape, &narrow, &err), &err);
        expect_refusal(w.exec, narrow, "the batch's fields are not those the model was built for");
    }
    for (int phase = SL_PHASE_EVALUATE; phase <= SL_PHASE_PREDICT; phase++) {
        const struct sl_graph_request request = {.model = w.model, .facts = &w.facts, .phase = (enum sl_phase)phase};
        struct sl_graph *graph;
        struct sl_plan *plan;
        struct sl_exec *exec;
        ok(sl_graph_create(&request, &graph, &err), &err);
        const struct sl_plan_request planned = {.graph = graph, .registry = w.registry};
        ok(sl_plan_create(&planned, &plan, &err), &err);
        const struct sl_exec_request made = {.plan = plan, .params = w.params};
        ok(sl_exec_create(&made, &exec, &err), &err);
        const struct sl_exec_step step = {.epoch = 0};
        struct sl_exec_result result;
        if (phase == SL_PHASE_PREDICT)
            ok(sl_exec_run(exec, batch, &step, &result, &err), &err);
        else
            expect_refusal(exec, batch, "the batch has no weights, but the model was built for them");
        sl_exec_destroy(exec);
        sl_plan_destroy(plan);
        sl_graph_destroy(graph);
    }
    sl_batch_destroy(narrow);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* The pool may not be larger than the one for which workspaces were asked. */
static void a_pool_larger_than_the_plans_is_refused(void **state)
{
    (void)state;
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_plan *plan;
    struct world w;
    open_world(&w, data_pairs, cases[0].layers, &facts, true);
    const struct sl_plan_request planned = {
        .graph = w.graph, .registry = w.registry, .optimizer_states = 2, .threads = 2};
    ok(sl_plan_create(&planned, &plan, &err), &err);
    for (int32_t members = 1; members <= 3; members++) {
        struct sl_pool *pool = NULL;
        struct sl_exec *exec = NULL;
        ok(sl_pool_create(members, &pool, &err), &err);
        const struct sl_exec_request request = {.plan = plan, .params = w.params, .pool = pool};
        assert_int_equal(sl_exec_create(&request, &exec, &err), members < 3 ? SEQLSTM_OK : SEQLSTM_INTERNAL);
        assert_int_equal(exec != NULL, members < 3);
        sl_exec_destroy(exec);
        sl_pool_destroy(pool);
    }
    assert_string_equal(err.message, "the plan's buffers are for 2 threads, the pool has 3");
    sl_plan_destroy(plan);
    close_world(&w);
}

static uint64_t asked_bytes;

/* What each call asks for is more than a machine has. */
static seqlstm_status size(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    const seqlstm_status status = seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->op_sizes(op, sizes, err);
    if (asked_bytes > 0)
        sizes->workspace_bytes = asked_bytes;
    return status;
}

static const struct seqlstm_backend *query(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.op_sizes = size;
    return &table;
}

static void the_call_that_asks_for_too_much_is_named(void **state)
{
    (void)state;
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec *exec = NULL;
    struct sl_plan *plan;
    struct world w;
    char expected[300];
    world_query = query;
    open_world(&w, data_pairs, cases[0].layers, &facts, true);
    const struct sl_plan_request planned = {.graph = w.graph, .registry = w.registry, .optimizer_states = 2};
    struct sysinfo machine;
    assert_int_equal(sysinfo(&machine), 0);
    asked_bytes = 2 * ((uint64_t)machine.totalram + machine.totalswap) * machine.mem_unit;
    ok(sl_plan_create(&planned, &plan, &err), &err);
    const struct sl_exec_request request = {.plan = plan, .params = w.params};
    assert_int_equal(sl_exec_create(&request, &exec, &err), SEQLSTM_NO_MEMORY);
    assert_null(exec);
    snprintf(expected, sizeof expected,
             "no memory for the activations (host): the plan needs %lld MB, of which %s on reference takes %llu MB "
             "(op_sizes)",
             (long long)(plan->memory.peak_bytes / 1000000), plan->calls[0].node->name,
             (unsigned long long)(asked_bytes / 1000000));
    assert_string_equal(err.message, expected);
    sl_plan_destroy(plan);
    close_world(&w);
    world_query = seqlstm_reference_query_v0;
    asked_bytes = 0;
}

/* A step counts each call once, with all its rows, also where the call runs step by step. */
static void a_step_counts_each_call_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        struct sl_batch *batch = make_pairs(true);
        for (int64_t times = 1; times <= 2; times++) {
            int32_t count;
            run(&w, batch, false);
            const struct sl_exec_timing *timing = sl_exec_get_timing(w.exec, &count);
            for (int32_t c = 0; c < count; c++) {
                const enum sl_axis axis = sl_graph_get_axis(w.graph, w.plan->calls[c].node);
                const int64_t rows = !sl_axis_is_steps(axis) ? B : sl_axis_is_source(axis) ? SOURCE_R : R;
                if (timing[c].calls != times || timing[c].rows != times * rows)
                    fail_msg("%s: `%s`: %lld calls of %lld rows", cases[i].name, w.plan->calls[c].node->name,
                             (long long)timing[c].calls, (long long)timing[c].rows);
            }
        }
        sl_batch_destroy(batch);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_beyond_the_plan_is_refused_with_both_sizes),
        cmocka_unit_test(other_fields_than_the_models_are_refused),
        cmocka_unit_test(weights_are_needed_for_a_loss_alone),
        cmocka_unit_test(a_pool_larger_than_the_plans_is_refused),
        cmocka_unit_test(the_call_that_asks_for_too_much_is_named),
        cmocka_unit_test(a_step_counts_each_call_once),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
