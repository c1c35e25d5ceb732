/* SPDX-License-Identifier: Apache-2.0 */
/* No memory, at each allocation in turn: of a graph, of parameters, of an executor and of its steps. Each time that is
 * said, nothing is left behind, and what comes next is right. */
#define OOM_ARENAS

#include "exec_pairs.h"
#include "oom.h"

static const char data_tags[] =
    "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n";
static const char layers_tags[] =
    "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, layers: 2, return_sequences: true},"
    " {type: gru, units: 3, direction: bidirectional, return_sequences: true},"
    " {type: output, activation: softmax}]\n"
    "train: {loss: cross_entropy, task: tag, epochs: 1, clip_value: 0.5, optimizer: {type: adam, amsgrad: true}}";
static const char layers_pairs[] =
    "model: {encoder: [{type: embedding, dim: 4}, {type: lstm, units: 3, return_sequences: true}],"
    " decoder: [{type: embedding, dim: 3}, {type: lstm, units: 3, return_sequences: true},"
    " {type: attention, input_feeding: true}, {type: dense, units: 3, activation: tanh},"
    " {type: output, activation: softmax}]}\ntrain: {epochs: 1}";

static const struct memory_case {
    const char *name, *data, *layers;
    bool pairs;
    int32_t pieces;
} models[] = {{"tags", data_tags, layers_tags, false, 0},
              {"tags in pieces", data_tags, layers_tags, false, 3},
              {"pairs", data_pairs, layers_pairs, true, 0}};
enum { MODELS = sizeof models / sizeof *models, CASES = sizeof cases / sizeof *cases, TRIES_MOST = 20000 };

static struct sl_data_facts facts_of(const struct memory_case *m)
{
    struct sl_data_facts facts = pair_facts(SOURCE_V);
    if (!m->pairs) {
        facts.source = (struct sl_field_facts){0};
        facts.envelope.source_steps = facts.envelope.source_rows = 0;
    }
    return facts;
}

/* `small`: one sequence, and one word of its source. */
static struct sl_batch *make_batch(const struct memory_case *m, bool small)
{
    static const int32_t one = 1;
    if (m->pairs && !small)
        return make_pairs(true);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = small ? 1 : B,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_IDS,
                                         .input_features = 1,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_IDS,
                                         .target_features = 1,
                                         .target_on_steps = true,
                                         .source_lengths = m->pairs ? &one : NULL,
                                         .source_kind = m->pairs ? SL_FIELD_IDS : SL_FIELD_NONE,
                                         .source_features = 1};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int32_t r = 0; r < batch->axis.rows; r++) {
        ((int32_t *)(uintptr_t)batch->input.ids)[r] = r * 3 % V;
        ((int32_t *)(uintptr_t)batch->target.ids)[r] = r * 2 % V;
    }
    return batch;
}

static void open_model(struct world *w, const struct memory_case *m)
{
    const struct sl_data_facts facts = facts_of(m);
    world_pieces = m->pieces;
    world_states = 3;
    open_world(w, m->data, m->layers, &facts, true);
    world_pieces = 0;
}

static void expect_no_memory(seqlstm_status status, const struct seqlstm_error *err, const char *what, int n)
{
    if (status != SEQLSTM_NO_MEMORY ||
        (strstr(err->message, "no memory") == NULL && !strstr(err->message, "out of memory")))
        fail_msg("%s, allocation %d fails: status %d, %s", what, n, (int)status, err->message);
}

/* ---- graphs and parameters --------------------------------------------------------------------------------------- */

/* Of each phase and part. */
static void a_graph_without_memory_says_so(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        for (int kind = 0; kind < 4; kind++) {
            const struct sl_graph_request request = {.model = w.model,
                                                     .facts = &w.facts,
                                                     .phase = kind == 0 ? SL_PHASE_TRAIN : SL_PHASE_PREDICT,
                                                     .part = kind == 2   ? SL_PART_ENCODER
                                                             : kind == 3 ? SL_PART_DECODER
                                                                         : SL_PART_WHOLE};
            for (int arena = 0; arena < 2; arena++) {
                int n = 1;
                for (bool failed = true; failed; n++) {
                    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                    struct sl_graph *graph = NULL;
                    if (arena)
                        arena_fail_at(n);
                    else
                        oom_fail_at(n);
                    const seqlstm_status status = sl_graph_create(&request, &graph, &err);
                    failed = arena ? arena_disarm() : oom_disarm();
                    if (failed)
                        expect_no_memory(status, &err, cases[i].name, n);
                    else
                        ok(status, &err);
                    assert_int_equal(graph != NULL, !failed);
                    sl_graph_destroy(graph);
                }
                assert_true(n > (arena ? 20 : 3));
            }
        }
        close_world(&w);
    }
}

static void parameters_without_memory_say_so(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        struct world w;
        struct sl_memory memory;
        sl_memory_init(&memory);
        open_model(&w, &models[i]);
        for (int32_t states = 0; states <= 3; states++) {
            int n = 1;
            for (;; n++) {
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                struct sl_params *params = NULL, *shared = NULL;
                oom_fail_at(n);
                seqlstm_status status = sl_params_create(w.graph, states > 0, states, &memory, &params, &err);
                if (status == SEQLSTM_OK)
                    status = sl_params_share(params, &shared, &err);
                const bool failed = oom_disarm();
                if (failed)
                    expect_no_memory(status, &err, models[i].name, n);
                else
                    ok(status, &err);
                sl_params_destroy(shared);
                sl_params_destroy(params);
                assert_int_equal(memory.live_blocks, 0);
                assert_int_equal(memory.live_bytes, 0);
                if (!failed)
                    break;
            }
            assert_true(n > 3);
        }
        close_world(&w);
    }
}

/* ---- executors --------------------------------------------------------------------------------------------------- */

static struct sl_exec *create(const struct world *w, struct sl_memory *memory)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_request request = {.plan = w->plan, .params = w->params, .memory = memory, .seed = 5};
    struct sl_exec *exec = NULL;
    ok(sl_exec_create(&request, &exec, &err), &err);
    return exec;
}

static void an_executor_without_memory_says_so(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        struct world w;
        struct sl_memory memory;
        sl_memory_init(&memory);
        open_model(&w, &models[i]);
        const struct sl_exec_request request = {.plan = w.plan, .params = w.params, .memory = &memory, .seed = 5};
        int n = 1;
        for (;; n++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_exec *exec = NULL;
            oom_fail_at(n);
            const seqlstm_status status = sl_exec_create(&request, &exec, &err);
            const bool failed = oom_disarm();
            if (failed) {
                expect_no_memory(status, &err, models[i].name, n);
                assert_null(exec);
            } else {
                ok(status, &err);
                sl_exec_destroy(exec);
            }
            assert_int_equal(memory.live_blocks, 0);
            assert_int_equal(memory.live_bytes, 0);
            if (!failed)
                break;
        }
        assert_true(n > 10);
        close_world(&w);
    }
}

/* What two steps leave. */
struct left {
    double loss, squares;
    float values[1024];
};

static seqlstm_status make_step(struct sl_exec *exec, const struct sl_batch *batch, uint64_t count, struct left *left,
                                struct seqlstm_error *err)
{
    const struct sl_exec_update update = {.count = count, .learning_rate = 0.1};
    const struct sl_exec_step step = {.epoch = 3, .normaliser = 1, .update = &update};
    struct sl_exec_result result = {0};
    const seqlstm_status status = sl_exec_run(exec, batch, &step, &result, err);
    left->loss = result.loss_sum;
    left->squares = result.squares;
    return status;
}

static void run_small(struct sl_exec *exec, const struct sl_batch *small)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_step step = {.normaliser = 1};
    struct sl_exec_result result;
    ok(sl_exec_run(exec, small, &step, &result, &err), &err);
}

static void keep_values(const struct world *w, struct left *left)
{
    assert_true(w->params->elems <= 1024);
    memcpy(left->values, w->params->values, (size_t)w->params->elems * sizeof(float));
}

/* As when the world was opened. */
static void draw_again(struct world *w)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int s = 0; s < 3; s++)
        memset(w->params->states[s], 0, (size_t)w->params->elems * sizeof(float));
    ok(sl_params_init(w->params, w->graph, 7, NULL, &err), &err);
}

/* The first step binds and packs, and makes the update; a smaller batch has run before. Where memory is missing that
 * something can do without, the step is right all the same. After a failure the weights are as before, and the same
 * step can be made. */
static void a_step_without_memory_says_so(void **state)
{
    (void)state;
    for (int i = 0; i < MODELS; i++) {
        struct world w;
        struct sl_memory memory;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct left expected = {0};
        sl_memory_init(&memory);
        open_model(&w, &models[i]);
        struct sl_batch *batch = make_batch(&models[i], false), *small = make_batch(&models[i], true);
        ok(make_step(w.exec, batch, 1, &expected, &err), &err);
        keep_values(&w, &expected);
        int n = 1, failures = 0;
        for (bool failed = true; failed; n++) {
            assert_true(n < TRIES_MOST);
            struct left left = {0};
            draw_again(&w);
            struct sl_exec *exec = create(&w, &memory);
            run_small(exec, small);
            err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
            oom_fail_at(n);
            const seqlstm_status status = make_step(exec, batch, 1, &left, &err);
            failed = oom_disarm();
            if (status != SEQLSTM_OK) {
                expect_no_memory(status, &err, models[i].name, n);
                failures++;
                run_small(exec, small);
                ok(make_step(exec, batch, 1, &left, &err), &err);
            }
            keep_values(&w, &left);
            if (memcmp(&left, &expected, sizeof left) != 0)
                fail_msg("%s, allocation %d fails: other values", models[i].name, n);
            sl_exec_destroy(exec);
            assert_int_equal(memory.live_blocks, 0);
            assert_int_equal(memory.live_bytes, 0);
        }
        assert_true(failures > 10);
        sl_batch_destroy(batch);
        sl_batch_destroy(small);
        close_world(&w);
    }
}

/* Where every place has held a small shape, one that needs more room fails; the next small one takes its place. */
static void a_shape_without_memory_leaves_its_place(void **state)
{
    (void)state;
    enum { MANY = 40, SMALL = SL_SHAPES_BOUND + 1 };
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = facts_of(&models[0]);
    struct sl_batch *small[SMALL];
    struct sl_memory memory;
    struct world w;
    int32_t of[MANY];
    facts.envelope = (struct sl_envelope){.sequences = MANY, .steps = MANY, .rows = 3 * MANY};
    world_states = 3;
    open_world(&w, models[0].data, models[0].layers, &facts, true);
    for (int32_t k = 0; k < SMALL; k++) {
        const int32_t length = k + 1;
        small[k] = make_token_batch(&length, 1);
    }
    for (int k = 0; k < MANY; k++)
        of[k] = 3;
    struct sl_batch *big = make_token_batch(of, MANY);
    sl_memory_init(&memory);
    int n = 1, failures = 0;
    for (bool failed = true; failed; n++) {
        struct left left;
        struct sl_exec *exec = create(&w, &memory);
        for (int k = 0; k < SL_SHAPES_BOUND; k++)
            run_small(exec, small[k]);
        draw_again(&w);
        oom_fail_at(n);
        const seqlstm_status status = make_step(exec, big, 1, &left, &err);
        failed = oom_disarm();
        if (status != SEQLSTM_OK) {
            expect_no_memory(status, &err, "a big shape", n);
            run_small(exec, small[SMALL - 1]);
            failures++;
        }
        ok(make_step(exec, big, 1, &left, &err), &err);
        sl_exec_destroy(exec);
        assert_int_equal(memory.live_blocks, 0);
    }
    assert_true(failures > 3);
    for (int k = 0; k < SMALL; k++)
        sl_batch_destroy(small[k]);
    sl_batch_destroy(big);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_without_memory_says_so),          cmocka_unit_test(parameters_without_memory_say_so),
        cmocka_unit_test(an_executor_without_memory_says_so),      cmocka_unit_test(a_step_without_memory_says_so),
        cmocka_unit_test(a_shape_without_memory_leaves_its_place),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
