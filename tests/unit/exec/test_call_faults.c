/* SPDX-License-Identifier: Apache-2.0 */
/* In plans of every form each call of a backend fails once: on all steps, step by step, in pieces, and in the update,
 * as a whole or by what a stage owns. The error names the operation and the function, and the step can be made again.
 * The same for each exchange of a stage with its neighbours. */
#include "exec_pairs.h"

#include "oom.h"
#include "passing_backend.h"

enum { TRIES_MOST = 5000, ELEMS_MOST = 1024 };

static const char data_tags[] =
    "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n";
#define TAGS(layers, train) "model: [" layers "]\ntrain: {loss: cross_entropy, task: tag, epochs: 1, " train "}"

static const struct form {
    const char *name, *data, *layers;
    bool pairs;
    int32_t pieces;
} forms[] = {
    {"several readers", data_tags,
     TAGS("{type: embedding, dim: 4}, {type: lstm, name: a, units: 4, return_sequences: true},"
          " {type: gru, name: b, units: 4, direction: bidirectional, merge: sum, return_sequences: true},"
          " {type: add, name: c, from: [a, b]}, {type: concat, from: [a, c]}, {type: layer_norm},"
          " {type: output, activation: softmax, kernel_regularizer: {l1: 0.01, l2: 0.01}}",
          "clip_value: 0.5, optimizer: {type: adam}"),
     false, 0},
    {"pieces", data_tags,
     TAGS("{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, layers: 2, return_sequences: true},"
          " {type: gru, units: 4, direction: bidirectional, merge: sum, return_sequences: true},"
          " {type: output, tie: emb, activation: softmax}",
          "optimizer: {type: sgd}"),
     false, 3},
    {"loop", data_pairs,
     ENCODER "{type: lstm, units: 4, return_sequences: true}], decoder: [{type: embedding, dim: 3},"
             " {type: lstm, units: 4, return_sequences: true}, {type: attention, input_feeding: true},"
             " {type: dense, units: 5, activation: tanh}," OUTPUT,
     true, 0},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* ---- the backend ------------------------------------------------------------------------------------------------- */

static struct world w;
static const struct sl_plan *searched; /* of the operations that are named */
static enum sl_plugin_function faulty;
static int calls_before; /* so many of its calls are right; below 0: one has failed */
static char blamed[256]; /* what its error must say */
static bool reserves;    /* each call keeps something from forward to backward */

static const char *find_name(const struct seqlstm_op *op)
{
    for (int32_t c = 0; c < searched->call_count; c++)
        if (searched->calls[c].op == op)
            return searched->calls[c].node->name;
    for (int32_t v = 0; v < searched->vector_count; v++)
        if (searched->vectors[v].op == op) {
            const uint32_t kind = searched->vectors[v].desc->head.op;
            return kind == SEQLSTM_OP_OPTIMIZER      ? "optimizer"
                   : kind == SEQLSTM_OP_SQUARED_NORM ? "squared_norm"
                                                     : "vector";
        }
    return "?";
}

/* The buffers are aligned, whatever sizes were asked for, and in every step of a loop. */
static seqlstm_status pass(const struct passed *call, struct seqlstm_error *err)
{
    if (call->function == faulty && calls_before-- == 0) {
        snprintf(blamed, sizeof blamed, "%s on reference (%s): on purpose", find_name(call->op),
                 sl_plugin_function_name(call->function));
        SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "on purpose");
    }
    assert_int_equal((uintptr_t)call->workspace % SEQLSTM_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)call->reserve % SEQLSTM_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)call->packed % SEQLSTM_ALIGNMENT, 0);
    return SEQLSTM_OK;
}

static void size(struct seqlstm_sizes *sizes)
{
    if (reserves)
        sizes->reserve_bytes = sizes->reserve_bytes / 64 * 64 + 68;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static struct sl_batch *make_batch(const struct form *form)
{
    if (form->pairs)
        return make_pairs(true);
    struct sl_batch *batch = make_token_batch(lengths, B);
    for (int32_t r = 0; r < R; r++) {
        ((int32_t *)(uintptr_t)batch->input.ids)[r] = r * 3 % V;
        ((int32_t *)(uintptr_t)batch->target.ids)[r] = r * 2 % V;
    }
    return batch;
}

static void open(const struct form *form, const struct sl_exec_stage *stage)
{
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    if (!form->pairs) {
        facts.source = (struct sl_field_facts){0};
        facts.envelope.source_steps = facts.envelope.source_rows = 0;
    }
    faulty = SL_FUNCTION_NONE;
    passing_count = 0;
    passing_before = pass;
    passing_sizes = size;
    world_query = passing_query;
    world_pieces = form->pieces;
    world_stage = stage ? *stage : (struct sl_exec_stage){0};
    open_world(&w, form->data, form->layers, &facts, true);
    searched = w.plan;
    world_pieces = 0;
    world_stage = (struct sl_exec_stage){0};
    assert_true(w.params->elems <= ELEMS_MOST);
}

/* What a step leaves. */
struct left {
    double loss, squares;
    float grads[ELEMS_MOST], values[ELEMS_MOST];
};

enum way { WHOLE, OWNED, NO_UPDATE };

/* The step of a stage that owns all parameters makes its update afterwards. */
static seqlstm_status make_step(const struct sl_batch *batch, enum way way, struct left *left,
                                struct seqlstm_error *err)
{
    static bool owned[ELEMS_MOST];
    static double squares[ELEMS_MOST];
    const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
    const struct sl_exec_step step = {.epoch = 3, .normaliser = 1, .update = way == WHOLE ? &update : NULL};
    struct sl_exec_result result;
    double sum = 0;
    memset(left, 0, sizeof *left);
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    memset(owned, 1, sizeof owned);
    SEQLSTM_TRY(sl_exec_run(w.exec, batch, &step, &result, err));
    left->loss = result.loss_sum;
    left->squares = result.squares;
    if (way == OWNED) {
        SEQLSTM_TRY(sl_exec_begin_owned(w.exec, &update, owned, squares, err));
        for (int32_t p = 0; p < w.params->view_count; p++)
            sum += squares[p];
        SEQLSTM_TRY(sl_exec_finish_owned(w.exec, owned, sum, &left->squares, err));
    }
    memcpy(left->grads, w.params->grads, (size_t)w.params->elems * sizeof(float));
    memcpy(left->values, w.params->values, (size_t)w.params->elems * sizeof(float));
    return SEQLSTM_OK;
}

static void each_call_fails_once(const struct form *form, enum way way, enum sl_plugin_function function)
{
    struct seqlstm_error err;
    struct sl_batch *batch = make_batch(form);
    static struct left expected, left;
    open(form, NULL);
    ok(make_step(batch, way, &expected, &err), &err);
    close_world(&w);
    int n = 0;
    for (bool failed = true; failed; n++) {
        assert_true(n < TRIES_MOST);
        open(form, NULL);
        faulty = function;
        calls_before = n;
        const seqlstm_status status = make_step(batch, way, &left, &err);
        failed = calls_before < 0;
        faulty = SL_FUNCTION_NONE;
        if (failed) {
            if (status != SEQLSTM_DEVICE || strcmp(err.message, blamed) != 0)
                fail_msg("%s: status %d, '%s', expected '%s'", form->name, (int)status, err.message, blamed);
            ok(make_step(batch, way, &left, &err), &err);
        }
        if (memcmp(&left, &expected, sizeof left) != 0)
            fail_msg("%s: another step after call %d of %s failed", form->name, n, sl_plugin_function_name(function));
        close_world(&w);
        assert_int_equal(passing_live, 0);
    }
    assert_true(n > 3);
    sl_batch_destroy(batch);
}

static void a_call_that_fails_is_named_in_every_form(void **state)
{
    (void)state;
    static const enum sl_plugin_function functions[] = {SL_FUNCTION_OP_BIND, SL_FUNCTION_WEIGHTS_PACK,
                                                        SL_FUNCTION_FORWARD, SL_FUNCTION_BACKWARD};
    for (int f = 0; f < FORMS; f++)
        for (enum way way = WHOLE; way <= OWNED; way++)
            for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
                each_call_fails_once(&forms[f], way, functions[k]);
}

/* ---- lean runs --------------------------------------------------------------------------------------------------- */

static seqlstm_status run_twice(struct sl_exec *exec, const struct sl_batch *batch, float output[R * V],
                                struct seqlstm_error *err)
{
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    for (int k = 0; k < 2; k++)
        SEQLSTM_TRY(sl_exec_run_lean(exec, batch, err));
    memcpy(output, sl_exec_get_output(exec).values, R * V * sizeof(float));
    return SEQLSTM_OK;
}

/* In the first run, which binds and packs, and in one that only calls. */
static void a_call_of_a_lean_run_fails(void **state)
{
    (void)state;
    static const enum sl_plugin_function functions[] = {SL_FUNCTION_OP_BIND, SL_FUNCTION_WEIGHTS_PACK,
                                                        SL_FUNCTION_FORWARD};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float expected[R * V], output[R * V];
    struct sl_batch *batch = make_batch(&forms[0]);
    struct sl_graph *graph;
    struct sl_plan *plan;
    open(&forms[0], NULL);
    const struct sl_graph_request request = {.model = w.model, .facts = &w.facts, .phase = SL_PHASE_PREDICT};
    ok(sl_graph_create(&request, &graph, &err), &err);
    const struct sl_plan_request planned = {.graph = graph, .registry = w.registry};
    ok(sl_plan_create(&planned, &plan, &err), &err);
    searched = plan;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        const int calls = functions[k] == SL_FUNCTION_FORWARD ? 2 * plan->call_count : plan->call_count;
        for (int n = -1; n < calls; n++) {
            const struct sl_exec_request made = {.plan = plan, .params = w.params, .seed = 5, .lean = true};
            struct sl_exec *exec = NULL;
            ok(sl_exec_create(&made, &exec, &err), &err);
            assert_true(sl_exec_is_lean(exec));
            faulty = n < 0 ? SL_FUNCTION_NONE : functions[k];
            calls_before = n;
            const seqlstm_status status = run_twice(exec, batch, n < 0 ? expected : output, &err);
            faulty = SL_FUNCTION_NONE;
            if (n >= 0) {
                assert_int_equal(status, SEQLSTM_DEVICE);
                assert_string_equal(err.message, blamed);
                ok(run_twice(exec, batch, output, &err), &err);
                assert_memory_equal(output, expected, sizeof output);
            }
            sl_exec_destroy(exec);
        }
    }
    sl_plan_destroy(plan);
    sl_graph_destroy(graph);
    close_world(&w);
    assert_int_equal(passing_live, 0);
    sl_batch_destroy(batch);
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static int exchanges, cut_at; /* cut_at 0: none fails */

/* Neighbours that always give the same. */
static seqlstm_status exchange(void *context, bool after, bool sends, float *values, int64_t elems,
                               struct seqlstm_error *err)
{
    (void)context, (void)after;
    if (++exchanges == cut_at)
        SEQLSTM_FAIL(err, SEQLSTM_IO, "the line is cut");
    for (int64_t e = 0; e < elems && !sends; e++)
        values[e] = number(1000 * (uint64_t)exchanges + (uint64_t)e);
    return SEQLSTM_OK;
}

static void each_exchange_fails_once(const struct form *form, int32_t first, int32_t end)
{
    struct seqlstm_error err;
    static struct left expected, left;
    const struct sl_exec_stage stage = {.first = first, .end = end, .exchange = exchange};
    struct sl_batch *batch = make_batch(form);
    open(form, &stage);
    exchanges = cut_at = 0;
    ok(make_step(batch, NO_UPDATE, &expected, &err), &err);
    const int count = exchanges;
    assert_true(count > 0);
    for (int n = 1; n <= count; n++) {
        exchanges = 0;
        cut_at = n;
        const seqlstm_status status = make_step(batch, NO_UPDATE, &left, &err);
        if (status != SEQLSTM_IO || strcmp(err.message, "the line is cut") != 0 || exchanges != n)
            fail_msg("%s, calls %d to %d, exchange %d of %d: status %d, %s, %d exchanges", form->name, first, end, n,
                     count, (int)status, err.message, exchanges);
        exchanges = cut_at = 0;
        ok(make_step(batch, NO_UPDATE, &left, &err), &err);
        assert_int_equal(exchanges, count);
        if (memcmp(&left, &expected, sizeof left) != 0)
            fail_msg("%s, calls %d to %d: another step after exchange %d failed", form->name, first, end, n);
    }
    close_world(&w);
    sl_batch_destroy(batch);
}

static void an_exchange_that_fails_ends_the_step(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++) {
        open(&forms[f], NULL);
        const int32_t calls = w.plan->call_count;
        close_world(&w);
        for (int32_t cut = 1; cut < calls && !forms[f].pairs; cut++) {
            each_exchange_fails_once(&forms[f], 0, cut);
            each_exchange_fails_once(&forms[f], cut, calls);
            if (cut + 1 < calls)
                each_exchange_fails_once(&forms[f], cut, cut + 1);
        }
    }
}

static seqlstm_status cut_plan(int32_t first, int32_t end, struct seqlstm_error *err)
{
    const struct sl_exec_request request = {
        .plan = w.plan, .params = w.params, .stage = {.first = first, .end = end, .exchange = exchange}};
    struct sl_exec *exec = NULL;
    *err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_exec_create(&request, &exec, err);
    assert_int_equal(exec != NULL, status == SEQLSTM_OK);
    sl_exec_destroy(exec);
    return status;
}

/* Before and after the loop, but not within; whether the stage begins or ends there. */
static void a_loop_is_not_cut(void **state)
{
    (void)state;
    struct seqlstm_error err;
    open(&forms[2], NULL);
    const struct sl_loop *loop = &w.graph->loop;
    int refused = 0;
    for (int32_t cut = 1; cut < w.plan->call_count; cut++) {
        const struct sl_call *call = &w.plan->calls[cut];
        const bool within = call->node_first > loop->first && call->node_first < loop->first + loop->count;
        char expected[200] = "";
        if (within)
            snprintf(expected, sizeof expected, "`%s` runs step by step with the layers before it, in one stage",
                     call->node->name);
        for (int ends = 0; ends < 2; ends++) {
            const seqlstm_status status = cut_plan(ends ? 0 : cut, ends ? cut : 0, &err);
            assert_int_equal(status, within ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK);
            assert_string_equal(err.message, expected);
        }
        refused += within;
    }
    assert_true(refused > 1 && refused < w.plan->call_count - 2);
    close_world(&w);
}

static void a_stage_is_made_or_memory_is_missing(void **state)
{
    (void)state;
    struct seqlstm_error err;
    open(&forms[1], NULL);
    int n = 1;
    for (bool failed = true; failed; n++) {
        assert_true(n < TRIES_MOST);
        oom_fail_at(n);
        const seqlstm_status status = cut_plan(1, 3, &err);
        failed = oom_disarm();
        assert_int_equal(status, failed ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        assert_int_equal(strstr(err.message, "no memory") != NULL, failed);
    }
    assert_true(n > 20);
    close_world(&w);
}

/* Where its gradient would come piece by piece, it cannot be passed on as a whole. */
static void a_matrix_of_two_stages_needs_its_gradient_at_once(void **state)
{
    (void)state;
    struct seqlstm_error err;
    static struct left left;
    struct sl_batch *batch = make_batch(&forms[1]);
    for (int kept = 0; kept < 2; kept++) {
        const struct sl_exec_stage stage = {.first = 0, .end = 2, .exchange = exchange};
        reserves = kept;
        open(&forms[1], &stage);
        exchanges = cut_at = 0;
        assert_int_equal(make_step(batch, NO_UPDATE, &left, &err), kept ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK);
        assert_string_equal(err.message,
                            kept ? "`emb` and a layer of another stage share a matrix, and reference adds to its "
                                   "gradient in pieces; use fewer stages"
                                 : "");
        close_world(&w);
    }
    reserves = false;
    sl_batch_destroy(batch);
}

/* In every step, also of a loop. */
static void what_calls_keep_is_aligned(void **state)
{
    (void)state;
    struct seqlstm_error err;
    static struct left left;
    reserves = true;
    for (int f = 0; f < FORMS; f += 2) {
        struct sl_batch *batch = make_batch(&forms[f]);
        open(&forms[f], NULL);
        ok(make_step(batch, WHOLE, &left, &err), &err);
        close_world(&w);
        sl_batch_destroy(batch);
    }
    reserves = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_is_named_in_every_form),
        cmocka_unit_test(a_call_of_a_lean_run_fails),
        cmocka_unit_test(an_exchange_that_fails_ends_the_step),
        cmocka_unit_test(a_loop_is_not_cut),
        cmocka_unit_test(a_stage_is_made_or_memory_is_missing),
        cmocka_unit_test(a_matrix_of_two_stages_needs_its_gradient_at_once),
        cmocka_unit_test(what_calls_keep_is_aligned),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
