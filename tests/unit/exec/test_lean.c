/* SPDX-License-Identifier: Apache-2.0 */
/* Lean runs and kept bindings are shortcuts: whatever comes between, results are those of an ordinary run, bit by bit,
 * and of plain loops. */
#include "exec_world.h"
#include "oom.h"

#include "exec/params/packed.h"
#include "exec/update/vectors.h"

static int packs;

static seqlstm_status size_packed(const struct seqlstm_op *op, struct seqlstm_sizes *sizes, struct seqlstm_error *err)
{
    const seqlstm_status status = seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->op_sizes(op, sizes, err);
    sizes->packed_bytes = 64;
    return status;
}

static seqlstm_status count_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                 void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)slots, (void)packed, (void)step, (void)err;
    packs++;
    return SEQLSTM_OK;
}

static const struct seqlstm_backend *query_packing(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.op_sizes = size_packed;
    table.weights_pack = count_pack;
    return &table;
}

enum { SHAPES = 4, B = 3, STEPS = 4, ROWS = B * STEPS, FEATURES = 2, PLACES = 2, TURNS = 400 };

static const int32_t shapes[SHAPES][B] = {{4, 4, 4}, {4, 2, 1}, {3, 1, 0}, {1, 0, 0}};
static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";
static const char layers[] = "model: [{type: lstm, units: 4, return_sequences: true}, {type: gru, units: 3},"
                             " {type: dense, units: 2, activation: tanh}]\ntrain: {loss: mse, epochs: 1}";
static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = FEATURES},
                                           .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                           .has_steps = true,
                                           .envelope = {.sequences = B, .steps = STEPS, .rows = ROWS}};

/* For predictions with the parameters of the world. */
struct predictor {
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_exec *exec;
};

static void open_predictor(struct predictor *p, const struct world *w, bool lean)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_graph_request graph = {.model = w->model, .facts = &w->facts, .phase = SL_PHASE_PREDICT};
    ok(sl_graph_create(&graph, &p->graph, &err), &err);
    const struct sl_plan_request plan = {.graph = p->graph, .registry = w->registry};
    ok(sl_plan_create(&plan, &p->plan, &err), &err);
    const struct sl_exec_request exec = {.plan = p->plan, .params = w->params, .seed = 5, .lean = lean};
    ok(sl_exec_create(&exec, &p->exec, &err), &err);
    assert_int_equal(sl_exec_is_lean(p->exec), lean);
}

static void close_predictor(struct predictor *p)
{
    sl_exec_destroy(p->exec);
    sl_plan_destroy(p->plan);
    sl_graph_destroy(p->graph);
}

static struct sl_batch *make(const int32_t *lengths)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = B,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = FEATURES,
                                         .input_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    return batch;
}

/* Shapes, inputs, places of the input and parameters change at random. */
static void lean_runs_give_what_ordinary_runs_give(void **state)
{
    (void)state;
    static float inputs[PLACES][ROWS * FEATURES];
    struct sl_batch *batches[SHAPES];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    struct predictor lean, ordinary;
    int place = 0, version = 0, packed = -1;
    world_query = query_packing;
    open_world(&w, data, layers, &facts, false);
    world_query = seqlstm_reference_query_v0;
    open_predictor(&lean, &w, true);
    open_predictor(&ordinary, &w, false);
    for (int s = 0; s < SHAPES; s++)
        batches[s] = make(shapes[s]);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        const uint64_t dice = seqlstm_mix64(3, turn, 0);
        struct sl_batch *batch = batches[dice % SHAPES];
        place = dice >> 8 & 15 ? place : 1 - place;
        if ((dice >> 16 & 7) == 0) {
            w.params->values[(dice >> 20) % 8] += 0.25f;
            sl_params_touch(w.params);
            version++;
        }
        for (int i = 0; i < ROWS * FEATURES; i++)
            inputs[place][i] = number(turn * 100 + (uint64_t)i);
        batch->input.values = inputs[place];
        packs = 0;
        ok(sl_exec_run_lean(lean.exec, batch, &err), &err);
        assert_true((packs > 0) == (version != packed));
        packed = version;
        const struct sl_exec_step step = {.epoch = 0};
        struct sl_exec_result result;
        ok(sl_exec_run(ordinary.exec, batch, &step, &result, &err), &err);
        const struct sl_field got = sl_exec_get_output(lean.exec), expected = sl_exec_get_output(ordinary.exec);
        assert_memory_equal(got.values, expected.values, (size_t)(B * expected.features) * sizeof(float));
    }
    for (int s = 0; s < SHAPES; s++)
        sl_batch_destroy(batches[s]);
    close_predictor(&lean);
    close_predictor(&ordinary);
    close_world(&w);
}

/* Weights that were packed for all executors are packed by none of them, in an ordinary run or a lean one. */
static void shared_weights_are_packed_once(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = make(shapes[1]);
    struct sl_packed packed;
    struct predictor whole;
    struct world w;
    world_query = query_packing;
    open_world(&w, data, layers, &facts, false);
    world_query = seqlstm_reference_query_v0;
    open_predictor(&whole, &w, false);
    packs = 0;
    ok(sl_packed_init(&packed, whole.plan, w.params, NULL, NULL, &err), &err);
    assert_int_equal(packs, whole.plan->call_count);
    for (int k = 0; k < 4; k++) {
        const struct sl_exec_request request = {
            .plan = whole.plan, .params = w.params, .packed = &packed, .lean = k % 2 == 1};
        const struct sl_exec_step step = {.epoch = 0};
        struct sl_exec_result result;
        struct sl_exec *exec;
        ok(sl_exec_create(&request, &exec, &err), &err);
        for (int turn = 0; turn < 2; turn++)
            ok(k % 2 ? sl_exec_run_lean(exec, batch, &err) : sl_exec_run(exec, batch, &step, &result, &err), &err);
        sl_exec_destroy(exec);
    }
    assert_int_equal(packs, whole.plan->call_count);
    sl_packed_deinit(&packed);
    close_predictor(&whole);
    close_world(&w);
    sl_batch_destroy(batch);
}

static seqlstm_status note_name(void *context, struct sl_exec *exec, const struct sl_node *node,
                                struct seqlstm_error *err)
{
    (void)exec, (void)err;
    sl_buf_printf(context, "%s ", node->name);
    return SEQLSTM_OK;
}

/* The calls in their order; of what has no rows, none. */
static void a_watcher_sees_what_it_sees_in_an_ordinary_run(void **state)
{
    (void)state;
    static const int32_t watched[][B] = {{4, 2, 1}, {0, 0, 0}, {4, 4, 4}, {0, 0, 0}};
    static const char *const seen[] = {"lstm_1 gru_1 dense_1 ", "dense_1 "};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    struct predictor both[2];
    open_world(&w, data, layers, &facts, false);
    open_predictor(&both[0], &w, true);
    open_predictor(&both[1], &w, false);
    for (int k = 0; k < 4; k++) {
        struct sl_batch *batch = make(watched[k]);
        for (int ordinary = 0; ordinary < 2; ordinary++) {
            const struct sl_exec_step step = {.epoch = 0};
            struct sl_exec_result result;
            struct sl_buf names = {0};
            sl_exec_watch(both[ordinary].exec, note_name, &names);
            ok(ordinary ? sl_exec_run(both[1].exec, batch, &step, &result, &err)
                        : sl_exec_run_lean(both[0].exec, batch, &err),
               &err);
            assert_string_equal(sl_buf_text(&names), seen[k % 2]);
            sl_exec_watch(both[ordinary].exec, NULL, NULL);
            sl_buf_deinit(&names);
        }
        sl_batch_destroy(batch);
    }
    close_predictor(&both[0]);
    close_predictor(&both[1]);
    close_world(&w);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void open_carrying(struct predictor *p, const struct world *w, enum sl_phase phase, bool lean)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_graph_request graph = {
        .model = w->model, .facts = &w->facts, .phase = phase, .carry_state = true, .need_output = true};
    ok(sl_graph_create(&graph, &p->graph, &err), &err);
    const struct sl_plan_request plan = {.graph = p->graph, .registry = w->registry, .optimizer_states = 2};
    ok(sl_plan_create(&plan, &p->plan, &err), &err);
    const struct sl_exec_request exec = {.plan = p->plan, .params = w->params, .seed = 5, .lean = lean};
    ok(sl_exec_create(&exec, &p->exec, &err), &err);
}

/* Each state is read and written at a place of its own, which the caller moves from one run to the next. */
static void lean_runs_leave_states_to_the_caller(void **state)
{
    (void)state;
    static float inputs[ROWS * FEATURES];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    struct predictor lean, ordinary;
    open_world(&w, data, layers, &facts, false);
    open_carrying(&lean, &w, SL_PHASE_PREDICT, true);
    open_carrying(&ordinary, &w, SL_PHASE_PREDICT, false);
    assert_int_equal(lean.graph->state_count, 3); /* h and c, and h of the other layer */
    struct sl_batch *batch = make(shapes[1]);
    batch->input.values = inputs;
    for (uint64_t turn = 0; turn < 6; turn++) {
        for (int i = 0; i < ROWS * FEATURES; i++)
            inputs[i] = number(turn * 100 + (uint64_t)i);
        batch->carry_state = turn > 0;
        for (int32_t s = 0; s < 3 && turn == 0; s++)
            memset(sl_exec_get_state_in(lean.exec, s), 0, (size_t)(B * lean.graph->states[s].features) * sizeof(float));
        ok(sl_exec_run_lean(lean.exec, batch, &err), &err);
        const struct sl_exec_step step = {.epoch = 0};
        struct sl_exec_result result;
        ok(sl_exec_run(ordinary.exec, batch, &step, &result, &err), &err);
        const struct sl_field got = sl_exec_get_output(lean.exec), expected = sl_exec_get_output(ordinary.exec);
        assert_memory_equal(got.values, expected.values, (size_t)(B * expected.features) * sizeof(float));
        for (int32_t s = 0; s < 3; s++)
            memcpy(sl_exec_get_state_in(lean.exec, s), sl_exec_get_state_out(lean.exec, s),
                   (size_t)(B * lean.graph->states[s].features) * sizeof(float));
    }
    struct sl_batch larger = *batch;
    larger.sequences = B + 1;
    larger.axis.rows = ROWS - 2;
    assert_int_equal(sl_exec_run_lean(lean.exec, &larger, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "a batch of 4 sequences and 10 rows does not fit the plan");
    sl_batch_destroy(batch);
    close_predictor(&lean);
    close_predictor(&ordinary);
    close_world(&w);
}

/* Only predictions, and only where they were asked for. */
static void other_phases_are_not_lean(void **state)
{
    (void)state;
    struct world w;
    struct predictor p;
    open_world(&w, data, layers, &facts, false);
    for (int phase = SL_PHASE_TRAIN; phase <= SL_PHASE_PREDICT; phase++)
        for (int lean = 0; lean < 2; lean++) {
            open_carrying(&p, &w, (enum sl_phase)phase, lean);
            assert_int_equal(sl_exec_is_lean(p.exec), lean && phase == SL_PHASE_PREDICT);
            close_predictor(&p);
        }
    close_world(&w);
}

/* More lengths in turn than bindings are kept. */
static void flat_operations_take_any_length(void **state)
{
    (void)state;
    enum { MOST = 40 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    open_world(&w, data, layers, &facts, false);
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        float x[MOST], y[MOST], expected[MOST];
        const int64_t elems = (int64_t)(turn < 2 * MOST ? turn % MOST : seqlstm_mix64(9, turn, 0) % MOST);
        for (int i = 0; i < MOST; i++) {
            x[i] = number(turn + (uint64_t)i);
            y[i] = expected[i] = number(2000 + turn + (uint64_t)i);
            expected[i] += i < elems ? x[i] : 0;
        }
        ok(sl_exec_add(w.exec, y, x, elems, &err), &err);
        for (int i = 0; i < MOST; i++)
            assert_true(y[i] == expected[i]);
    }
    close_world(&w);
}

static int destroyed;

static void count_destroyed(struct seqlstm_binding *binding)
{
    destroyed++;
    seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->binding_destroy(binding);
}

static const struct seqlstm_backend *query_counting(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.binding_destroy = count_destroyed;
    return &table;
}

/* A device may be some runs behind: until then nothing that was started with a binding loses it. */
static void bindings_live_until_a_device_is_done(void **state)
{
    (void)state;
    enum { LENGTHS = 12, RUNS = 3 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float x[(RUNS + 1) * LENGTHS + 1] = {0}, y[(RUNS + 1) * LENGTHS + 1] = {0};
    struct world w;
    world_query = query_counting;
    open_world(&w, data, layers, &facts, false);
    world_query = seqlstm_reference_query_v0;
    for (int run = 0; run <= RUNS; run++) {
        w.exec->runs += run > 0;
        destroyed = 0;
        for (int k = 1; k <= LENGTHS; k++)
            ok(sl_exec_add(w.exec, y, x, run * LENGTHS + k, &err), &err);
        assert_int_equal(destroyed, 0);
    }
    w.exec->runs += 1;
    ok(sl_exec_add(w.exec, y, x, (RUNS + 1) * LENGTHS + 1, &err), &err);
    assert_int_equal(destroyed, 1);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lean_runs_give_what_ordinary_runs_give),
        cmocka_unit_test(shared_weights_are_packed_once),
        cmocka_unit_test(a_watcher_sees_what_it_sees_in_an_ordinary_run),
        cmocka_unit_test(lean_runs_leave_states_to_the_caller),
        cmocka_unit_test(other_phases_are_not_lean),
        cmocka_unit_test(flat_operations_take_any_length),
        cmocka_unit_test(bindings_live_until_a_device_is_done),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
