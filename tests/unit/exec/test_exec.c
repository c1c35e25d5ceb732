/* SPDX-License-Identifier: Apache-2.0 */
/* Whole models through graph, plan and executor on the reference: every gradient against central differences of
 * the loss, and the rules of the executor (tied matrices, several readers, accumulation, empty sequences, carried
 * states, alternatives).
 */
#include "exec_gradients.h"
#include "dispatch/planner.h"

static const char data_tokens[] =
    "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n";
static const char data_values[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";

static const int32_t lengths[] = {4, 3, 3, 1, 0};
enum { B = 5, R = 11 };

static struct sl_batch *make_batch(const struct sl_data_facts *facts)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .input_kind = facts->input.kind,
                                   .target_kind = facts->target.kind,
                                   .input_features = facts->input.features,
                                   .target_features = facts->target.features,
                                   .input_on_steps = true,
                                   .target_on_steps = facts->target.on_steps};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    int64_t target_rows = facts->target.on_steps ? R : B;
    for (int64_t i = 0; i < R * facts->input.features; i++) {
        if (facts->input.kind == SL_FIELD_IDS)
            ((int32_t *)batch->input.ids)[i] = (int32_t)(i * 3 % facts->input.classes);
        else
            ((float *)batch->input.values)[i] = number((uint64_t)i);
    }
    for (int64_t i = 0; i < target_rows * facts->target.features; i++) {
        if (facts->target.kind == SL_FIELD_IDS)
            ((int32_t *)batch->target.ids)[i] = i == 2 ? -1 : (int32_t)(i * 5 % facts->target.classes);
        else
            ((float *)batch->target.values)[i] = number((uint64_t)i + 1000);
    }
    for (int64_t k = 0; k < B; k++)
        ((uint64_t *)batch->axis.sequence_id)[k] = (uint64_t)(40 + k);
    return batch;
}

static struct sl_data_facts values_facts(int64_t features, bool target_on_steps, int64_t targets)
{
    return (struct sl_data_facts){.input = {.kind = SL_FIELD_VALUES, .on_steps = true, .features = features},
                                  .target = {.kind = SL_FIELD_VALUES, .on_steps = target_on_steps, .features = targets},
                                  .has_steps = true,
                                  .envelope = {.sequences = B, .steps = 4, .rows = R}};
}

static struct sl_data_facts token_facts(bool target_on_steps, int64_t classes)
{
    return (struct sl_data_facts){
        .input = {.kind = SL_FIELD_IDS, .on_steps = true, .features = 1, .classes = 7},
        .target = {.kind = SL_FIELD_IDS, .on_steps = target_on_steps, .features = 1, .classes = classes},
        .has_steps = true,
        .envelope = {.sequences = B, .steps = 4, .rows = R}};
}

struct gradient_case {
    const char *name;
    bool tokens, on_steps, need_output;
    const char *layers;
};

static const struct gradient_case cases[] = {
    {"last state, dense", false, false, true,
     "model: [{type: lstm, units: 5}, {type: dense, units: 3, activation: tanh}]\ntrain: {loss: mse, epochs: 1}"},
    {"bidirectional stack, every option that is smooth", false, true, true,
     "model: [{type: lstm, units: 4, layers: 2, direction: bidirectional, merge: sum, peephole: true, projection: 3,"
     " layer_norm: true, dropout: 0.2, recurrent_dropout: 0.2, zoneout: {cell: 0.1, hidden: 0.1},"
     " return_sequences: true}, {type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}"},
    {"bidirectional last states", false, false, true,
     "model: [{type: gru, units: 4, direction: bidirectional}, {type: dense, units: 3}]\n"
     "train: {loss: mse, epochs: 1}"},
    {"several readers: concat and add", false, true, true,
     "model: [{type: lstm, name: a, units: 4, return_sequences: true},"
     " {type: rnn, name: b, units: 4, return_sequences: true},"
     " {type: add, name: c, from: [a, b]}, {type: concat, name: d, from: [a, c, b]},"
     " {type: layer_norm}, {type: dropout, rate: 0.3}, {type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}"},
    {"pool and activation", false, false, true,
     "model: [{type: lstm, units: 4, return_sequences: true}, {type: pool, mode: mean},"
     " {type: activation, activation: softplus}, {type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}"},
    {"tied output", true, true, true,
     "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, return_sequences: true},"
     " {type: output, tie: emb, activation: softmax}]\ntrain: {loss: cross_entropy, task: tag, epochs: 1}"},
    {"fused output and loss", true, true, false,
     "model: [{type: embedding, dim: 4}, {type: lstm, units: 5, return_sequences: true},"
     " {type: output, activation: softmax}]\n"
     "train: {loss: {type: cross_entropy, label_smoothing: 0.1}, task: tag, epochs: 1}"},
    {"classifier", true, false, true,
     "model: [{type: embedding, dim: 4}, {type: lstm, units: 5}, {type: dropout, rate: 0.4},"
     " {type: dense, units: from_target, activation: softmax}]\ntrain: {loss: cross_entropy, epochs: 1}"},
};

static struct sl_data_facts facts_of(const struct gradient_case *c)
{
    return c->tokens ? token_facts(c->on_steps, 7) : values_facts(3, c->on_steps, 3);
}

static void gradients_match_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = facts_of(&cases[i]);
        struct world w;
        open_world(&w, cases[i].tokens ? data_tokens : data_values, cases[i].layers, &facts, cases[i].need_output);
        struct sl_batch *batch = make_batch(&facts);
        check_gradients(&w, batch, cases[i].name);
        sl_batch_destroy(batch);
        close_world(&w);
    }
}

static void accumulation_adds_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = facts_of(&cases[i]);
        struct world w;
        open_world(&w, cases[i].tokens ? data_tokens : data_values, cases[i].layers, &facts, cases[i].need_output);
        struct sl_batch *batch = make_batch(&facts);
        int64_t n = w.params->elems;
        for (int32_t v = 0; v < w.params->view_count; v++) /* of a step before: must not be added to */
            for (int64_t e = 0; e < w.params->views[v].elems; e++)
                w.params->grads[w.params->views[v].offset_elems + e] = 1000;
        run(&w, batch, false);
        float *once = malloc((size_t)n * sizeof *once);
        memcpy(once, w.params->grads, (size_t)n * sizeof *once);
        run(&w, batch, true);
        for (int64_t e = 0; e < n; e++)
            if (!(fabsf(w.params->grads[e] - 2 * once[e]) <= 1e-5f * (1 + fabsf(once[e]))))
                fail_msg("%s: element %lld: %g twice is not %g", cases[i].name, (long long)e, (double)once[e],
                         (double)w.params->grads[e]);
        run(&w, batch, false);
        assert_memory_equal(w.params->grads, once, (size_t)n * sizeof *once);
        free(once);
        sl_batch_destroy(batch);
        close_world(&w);
    }
}

/* Of two layers with one matrix, the one that comes first in the backward pass writes its gradient, and the other adds
 * to it: but not to what a step before left in the gradient of a bias that it has for itself. */
static void a_bias_beside_a_shared_matrix_is_overwritten(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(4, true, 4);
    struct world w;
    open_world(&w, data_values,
               "model: [{type: dense, name: a, units: 4, activation: tanh}, {type: dense, name: b, units: 4}]\n"
               "train: {loss: mse, epochs: 1}",
               &facts, true);
    int32_t matrices[2], count = 0;
    for (int32_t t = 0; t < w.graph->tensor_count && count < 2; t++)
        if (w.graph->tensors[t].role == SL_TENSOR_PARAM && w.params->views[w.graph->tensors[t].owner].elems == 16)
            matrices[count++] = t;
    assert_int_equal(count, 2);
    ((struct sl_tensor *)&w.graph->tensors[matrices[0]])->owner = w.graph->tensors[matrices[1]].owner;
    struct sl_batch *batch = make_batch(&facts);
    for (int64_t e = 0; e < w.params->elems; e++)
        w.params->grads[e] = 1000;
    run(&w, batch, false);
    for (int32_t v = 0; v < w.params->view_count; v++) /* but the matrix that no layer reads any more */
        for (int64_t e = 0; e < w.params->views[v].elems && w.params->views[v].elems == 4; e++)
            assert_true(fabsf(w.params->grads[w.params->views[v].offset_elems + e]) < 100);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* The scale of the loss, which float16 needs, changes no update: penalties and clip_value are scaled with it. */
static void an_update_does_not_depend_on_the_scale_of_the_loss(void **state)
{
    (void)state;
    static const char layers[] =
        "model: [{type: dense, units: 3, kernel_regularizer: {l1: 0.1, l2: 0.2}, bias_regularizer: {l2: 0.3}}]\n"
        "train: {loss: mse, epochs: 1, clip_value: 0.5, optimizer: {type: sgd, learning_rate: 0.1}}";
    struct sl_data_facts facts = values_facts(3, true, 3);
    struct sl_batch *batch = make_batch(&facts);
    struct world worlds[3]; /* the third one skips its update */
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_result result;
        const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1, .skip = k == 2};
        const struct sl_exec_step step = {.normaliser = 1, .loss_scale = k ? 1024 : 0, .update = &update};
        open_world(&worlds[k], data_values, layers, &facts, true);
        float *before = malloc((size_t)worlds[k].params->elems * sizeof *before);
        memcpy(before, worlds[k].params->values, (size_t)worlds[k].params->elems * sizeof *before);
        ok(sl_exec_run(worlds[k].exec, batch, &step, &result, &err), &err);
        bool changed = memcmp(before, worlds[k].params->values, (size_t)worlds[k].params->elems * sizeof *before) != 0;
        assert_int_equal(changed, k < 2);
        free(before);
    }
    for (int64_t e = 0; e < worlds[0].params->elems; e++)
        assert_true(fabsf(worlds[0].params->values[e] - worlds[1].params->values[e]) <= 1e-6f);
    sl_batch_destroy(batch);
    for (int k = 0; k < 3; k++)
        close_world(&worlds[k]);
}

static int binds;

/* What the contract says of an axis, of which backends make use without looking. */
static void check_axis(const struct seqlstm_axis *axis)
{
    bool uniform = true;
    int64_t rows = 0;
    for (int64_t k = 0; k < axis->sequences; k++) {
        assert_true(k == 0 || axis->lengths[k] <= axis->lengths[k - 1]);
        uniform = uniform && axis->lengths[k] == axis->steps;
    }
    assert_int_equal((axis->flags & SEQLSTM_BIT_AXIS_UNIFORM) != 0, uniform);
    for (int64_t t = 0; t < axis->steps; t++) {
        int32_t alive = 0;
        while (alive < axis->sequences && axis->lengths[alive] > t)
            alive++;
        assert_int_equal(axis->batch_sizes[t], alive);
        assert_int_equal(axis->row_offsets[t], rows);
        rows += alive;
    }
    assert_int_equal(axis->rows, rows);
}

static seqlstm_status count_bind(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                 const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                 struct seqlstm_error *err)
{
    binds++;
    if (bind->axis) {
        check_axis(bind->axis);
        assert_true(0 <= bind->t0 && bind->t0 <= bind->t1 && bind->t1 <= bind->axis->steps);
        assert_int_equal(bind->rows,
                         bind->flags & SEQLSTM_BIT_BIND_ON_SEQUENCES ? bind->axis->sequences : bind->axis->rows);
    }
    return seqlstm_reference_query_v0(SEQLSTM_ABI_MINOR)->op_bind(op, queue, bind, out_binding, err);
}

static const struct seqlstm_backend *query_counting(uint32_t host_minor)
{
    static struct seqlstm_backend table;
    table = *seqlstm_reference_query_v0(host_minor);
    table.op_bind = count_bind;
    return &table;
}

static int count_binds_of(struct world *w, int32_t length)
{
    const struct sl_batch_shape shape = {.sequences = 1,
                                         .lengths = &length,
                                         .input_kind = SL_FIELD_VALUES,
                                         .target_kind = SL_FIELD_VALUES,
                                         .input_features = 3,
                                         .target_features = 3,
                                         .input_on_steps = true,
                                         .target_on_steps = true};
    struct sl_batch *batch = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    const int before = binds;
    run(w, batch, false);
    sl_batch_destroy(batch);
    return binds - before;
}

/* A shape that came lately is not bound again; of those that are kept, the one goes that was not used for longest. */
static void shapes_are_bound_once(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, true, 3);
    facts.envelope = (struct sl_envelope){.sequences = 1, .steps = SL_SHAPES_BOUND + 1, .rows = SL_SHAPES_BOUND + 1};
    struct world w;
    world_query = query_counting;
    open_world(&w, data_values, "model: [{type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    world_query = seqlstm_reference_query_v0;
    for (int32_t length = 1; length <= SL_SHAPES_BOUND; length++)
        assert_true(count_binds_of(&w, length) > 0);
    for (int32_t length = 1; length <= SL_SHAPES_BOUND; length++)
        if (length != 3)
            assert_int_equal(count_binds_of(&w, length), 0);
    assert_true(count_binds_of(&w, SL_SHAPES_BOUND + 1) > 0); /* instead of 3 */
    for (int32_t length = 1; length <= SL_SHAPES_BOUND + 1; length++)
        if (length != 3)
            assert_int_equal(count_binds_of(&w, length), 0);
    assert_true(count_binds_of(&w, 3) > 0);
    close_world(&w);
}

/* Every binding of every case: of steps and of sequences, ragged and uniform. */
static void axes_are_what_the_contract_says(void **state)
{
    (void)state;
    world_query = query_counting;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = facts_of(&cases[i]);
        struct world w;
        open_world(&w, cases[i].tokens ? data_tokens : data_values, cases[i].layers, &facts, cases[i].need_output);
        struct sl_batch *batch = make_batch(&facts);
        binds = 0;
        run(&w, batch, false);
        assert_true(binds > 0);
        sl_batch_destroy(batch);
        close_world(&w);
    }
    world_query = seqlstm_reference_query_v0;
}

/* 1 is added to what the initializer gives the forget gate, and to nothing else. */
static void forget_gates_begin_one_higher(void **state)
{
    (void)state;
    for (int ones = 0; ones < 2; ones++) {
        struct sl_data_facts facts = values_facts(3, true, 2);
        struct world w;
        open_world(&w, data_values,
                   ones ? "model: [{type: lstm, units: 2, bias_initializer: ones, return_sequences: true}]\n"
                          "train: {loss: mse, epochs: 1}"
                        : "model: [{type: lstm, units: 2, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}",
                   &facts, true);
        const struct sl_param_view *view = sl_params_find(w.params, "lstm_1.l0.forward.bias");
        assert_non_null(view);
        assert_int_equal(view->elems, 8);
        for (int e = 0; e < 8; e++)
            assert_true(w.params->values[view->offset_elems + e] == (float)(ones + (e / 2 == 1)));
        close_world(&w);
    }
}

/* The range of glorot_uniform is sqrt(6 / (in + out)), with all gates counted among what comes out. */
static void ranges_of_glorot(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double in, out;
    } wanted[] = {{"lstm_1.l0.forward.w_x", 3, 256},
                  {"lstm_1.l0.forward.w_h", 64, 256},
                  {"lstm_1.l0.forward.bias", 3, 256},
                  {"dense_1.w", 64, 40},
                  {"dense_1.bias", 64, 40}};
    struct sl_data_facts facts = values_facts(3, true, 40);
    struct world w;
    open_world(
        &w, data_values,
        "init: glorot_uniform\nmodel: [{type: lstm, units: 64, return_sequences: true}, {type: dense, units: 40}]\n"
        "train: {loss: mse, epochs: 1}",
        &facts, true);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const struct sl_param_view *view = sl_params_find(w.params, wanted[i].name);
        if (view == NULL)
            fail_msg("no parameter %s", wanted[i].name);
        double most = 0, range = sqrt(6 / (wanted[i].in + wanted[i].out));
        for (int64_t e = 0; e < view->elems; e++)
            most = fmax(most, fabs((double)w.params->values[view->offset_elems + e]));
        if (!(most <= range * (1 + 1e-6) && most > range * (view->elems > 100 ? 0.97 : 0.85)))
            fail_msg("%s: up to %g, expected up to %g", wanted[i].name, most, range);
    }
    close_world(&w);
}

/* Operations are told that all sequences are equally long exactly if the data say so. */
static void uniform_data_are_told(void **state)
{
    (void)state;
    for (int uniform = 0; uniform < 2; uniform++) {
        struct sl_data_facts facts = values_facts(3, true, 2);
        facts.envelope.uniform = uniform;
        struct world w;
        open_world(&w, data_values,
                   "model: [{type: lstm, units: 2, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}", &facts,
                   true);
        for (int32_t n = 0; n < w.graph->node_count; n++)
            assert_int_equal((w.graph->nodes[n].desc.head.flags & SEQLSTM_BIT_DESC_UNIFORM) != 0, uniform);
        close_world(&w);
    }
}

/* One step of each gives the same loss and gradients. */
static void assert_equal_and_close(struct world *one, struct world *other, const struct sl_data_facts *facts)
{
    struct sl_batch *batch = make_batch(facts);
    double a = run(one, batch, false), b = run(other, batch, false);
    assert_true(fabs(a - b) <= 1e-5 * fabs(b));
    for (int64_t e = 0; e < one->params->elems; e++)
        assert_true(fabsf(one->params->grads[e] - other->params->grads[e]) <= 1e-5f);
    sl_batch_destroy(batch);
    close_world(one);
    close_world(other);
}

/* The compound is taken when the output is not wanted, and gives the same loss and gradients. */
static void alternative_equals_its_parts(void **state)
{
    (void)state;
    const struct gradient_case *c = &cases[6];
    struct sl_data_facts facts = facts_of(c);
    struct world fused, apart;
    open_world(&fused, data_tokens, c->layers, &facts, false);
    open_world(&apart, data_tokens, c->layers, &facts, true);
    assert_int_equal(fused.plan->call_count, apart.plan->call_count - 1);
    assert_equal_and_close(&fused, &apart, &facts);
}

/* A stack in one call gives what its layers give one by one: masks belong to the layer. */
static void stack_equals_its_layers(void **state)
{
    (void)state;
    static const char layers[] = "model: [{type: lstm, name: s, units: 4, layers: 2, dropout: 0.3,"
                                 " recurrent_dropout: 0.3, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}";
    struct sl_data_facts facts = values_facts(3, true, 4);
    struct world stack, apart;
    open_world(&stack, data_values, layers, &facts, true);
    open_world(&apart, data_values, layers, &facts, true);
    assert_int_equal(stack.plan->call_count, 2); /* stack, loss */
    /* the layers one by one: a stored plan that names them */
    sl_exec_destroy(apart.exec);
    sl_plan_destroy(apart.plan);
    struct sl_plan_choice stored[] = {{"s.l0", "reference", "", SL_PHASE_TRAIN},
                                      {"s.l1", "reference", "", SL_PHASE_TRAIN},
                                      {"loss", "reference", "", SL_PHASE_TRAIN}};
    struct sl_plan_request request = {
        .graph = apart.graph, .registry = apart.registry, .stored = stored, .stored_count = 3};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_plan_create(&request, &apart.plan, &err), &err);
    assert_int_equal(apart.plan->call_count, 3);
    struct sl_exec_request exec = {.plan = apart.plan, .params = apart.params, .seed = 5};
    ok(sl_exec_create(&exec, &apart.exec, &err), &err);
    assert_equal_and_close(&stack, &apart, &facts);
}

/* A stack that is deeper than one operation may be runs layer by layer. No two of its layers share a mask, nor do they
 * share one with the next layer of the model. */
static void deep_stacks_run_layer_by_layer(void **state)
{
    (void)state;
    static const char layers[] = "model: [{type: rnn, name: deep, units: 2, layers: 130, dropout: 0.1,"
                                 " return_sequences: true}, {type: rnn, name: next, units: 2, dropout: 0.1,"
                                 " return_sequences: true}]\ntrain: {loss: mse, epochs: 1}";
    enum { OPERATIONS = 131 };
    _Static_assert(OPERATIONS > 2 * SEQLSTM_MAX_LAYERS, "deeper than one operation");
    struct sl_data_facts facts = values_facts(3, true, 2);
    struct world w;
    open_world(&w, data_values, layers, &facts, true);
    assert_int_equal(w.graph->alternative_count, 0);
    assert_int_equal(w.plan->call_count, OPERATIONS + 1); /* and the loss */
    uint64_t streams[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        const struct seqlstm_recurrent_desc *desc = &w.plan->calls[i].node->desc.recurrent;
        assert_int_equal(desc->head.op, SEQLSTM_OP_RECURRENT);
        assert_int_equal(desc->layers, 1);
        streams[i] = desc->stream_base;
        for (int k = 0; k < i; k++)
            assert_true(streams[i] >= streams[k] + SEQLSTM_STREAMS_PER_LAYER ||
                        streams[k] >= streams[i] + SEQLSTM_STREAMS_PER_LAYER);
    }
    struct sl_batch *batch = make_batch(&facts);
    assert_true(isfinite(run(&w, batch, false)));
    sl_batch_destroy(batch);
    close_world(&w);
}

/* Zero-length sequences have a final state of zero, weigh as any other, and change no other sequence. */
static void empty_sequences_are_served(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    run(&w, batch, false);
    struct sl_field output = sl_exec_get_output(w.exec);
    assert_false(output.on_steps);
    for (int f = 0; f < 5; f++)
        assert_true(output.values[4 * 5 + f] == 0.0f);
    assert_true(output.values[3 * 5] != 0.0f);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* Two segments with carried states end where one run over both ends. */
static struct sl_batch *make_values(const int32_t *of_lengths, int64_t sequences, int64_t features, int64_t targets,
                                    bool targets_on_steps)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = NULL;
    const struct sl_batch_shape shape = {.sequences = sequences,
                                         .lengths = of_lengths,
                                         .input_kind = SL_FIELD_VALUES,
                                         .target_kind = SL_FIELD_VALUES,
                                         .input_features = features,
                                         .target_features = targets,
                                         .input_on_steps = true,
                                         .target_on_steps = targets_on_steps};
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int64_t i = 0; i < batch->axis.rows * features; i++)
        ((float *)batch->input.values)[i] = number((uint64_t)i + 77);
    return batch;
}

/* Its final state is zero, not what a sequence of the batch before has left in its place. */
static void an_empty_sequence_takes_nothing_from_the_batch_before(void **state)
{
    (void)state;
    static const int32_t full_lengths[] = {3, 2, 2, 2, 2};
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world fresh, used;
    static const char layers[] = "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}";
    open_world(&fresh, data_values, layers, &facts, true);
    open_world(&used, data_values, layers, &facts, true);
    struct sl_batch *full = make_values(full_lengths, B, 3, 5, false);
    run(&used, full, false);
    assert_true(sl_exec_get_output(used.exec).values[4 * 5] != 0.0f);
    sl_batch_destroy(full);
    assert_equal_and_close(&fresh, &used, &facts);
}

/* A stream without a step in one segment keeps its state for the next. */
static void an_empty_segment_keeps_the_carried_state(void **state)
{
    (void)state;
    enum { UNITS = 4, STATES = 2 };
    static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}, batching: {bptt: 3}}\n";
    static const int32_t both[] = {3, 3}, one[] = {3, 0};
    struct sl_data_facts facts = values_facts(2, true, UNITS);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    float *states, kept[STATES][UNITS];
    int64_t elems;
    facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 3, .rows = 6};
    open_world(&w, data, "model: [{type: lstm, units: 4, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}",
               &facts, true);
    struct sl_batch *first = make_values(both, 2, 2, UNITS, true), *second = make_values(one, 2, 2, UNITS, true);
    second->carry_state = true;
    for (int k = 0; k < 2; k++) {
        run(&w, k ? second : first, false);
        ok(sl_exec_get_state(w.exec, &states, &elems, &err), &err);
        for (int32_t s = 0; s < STATES; s++) {
            const float *of_second = states + sl_exec_get_state_offset(w.exec, s) + UNITS;
            if (k)
                assert_memory_equal(of_second, kept[s], sizeof kept[s]);
            else
                memcpy(kept[s], of_second, sizeof kept[s]);
            assert_true(kept[s][0] != 0.0f);
        }
    }
    sl_batch_destroy(first);
    sl_batch_destroy(second);
    close_world(&w);
}

static void carried_states_join_segments(void **state)
{
    (void)state;
    static const char layers[] =
        "model: [{type: lstm, units: 4, return_sequences: true}]\ntrain: {loss: mse, epochs: 1}";
    static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}, batching: {bptt: 3}}\n";
    struct sl_data_facts facts = values_facts(2, true, 4);
    facts.envelope = (struct sl_envelope){.sequences = 2, .steps = 6, .rows = 12};
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w, data, layers, &facts, true);
    static const int32_t whole_lengths[] = {6, 6}, segment_lengths[] = {3, 3};
    struct sl_batch *whole = NULL, *segments[2] = {NULL, NULL};
    struct sl_batch_shape shape = {.sequences = 2,
                                   .lengths = whole_lengths,
                                   .input_kind = SL_FIELD_VALUES,
                                   .target_kind = SL_FIELD_VALUES,
                                   .input_features = 2,
                                   .target_features = 4,
                                   .input_on_steps = true,
                                   .target_on_steps = true};
    ok(sl_batch_create(&shape, &whole, &err), &err);
    shape.lengths = segment_lengths;
    for (int p = 0; p < 2; p++)
        ok(sl_batch_create(&shape, &segments[p], &err), &err);
    for (int i = 0; i < 12 * 2; i++) {
        ((float *)whole->input.values)[i] = number((uint64_t)i);
        ((float *)segments[i / 12]->input.values)[i % 12] = number((uint64_t)i);
    }
    segments[1]->carry_state = true;
    double expected = run(&w, whole, false);
    float last[4];
    memcpy(last, sl_exec_get_output(w.exec).values + 11 * 4, sizeof last);
    double got = run(&w, segments[0], false) + run(&w, segments[1], false);
    assert_true(fabs(expected - got) <= 1e-6 * fabs(expected));
    const float *again = sl_exec_get_output(w.exec).values + 5 * 4;
    for (int f = 0; f < 4; f++)
        assert_true(fabsf(again[f] - last[f]) <= 1e-6f);
    run(&w, segments[0], false); /* not carried: starts at zero again */
    double alone = run(&w, segments[0], false);
    assert_true(fabs(alone - run(&w, segments[0], false)) == 0.0);
    for (int p = 0; p < 2; p++)
        sl_batch_destroy(segments[p]);
    sl_batch_destroy(whole);
    close_world(&w);
}

static seqlstm_status (*plain_sizes)(const struct seqlstm_op *, struct seqlstm_sizes *, struct seqlstm_error *);
static int packs;

static seqlstm_status sizes_with_packed(const struct seqlstm_op *op, struct seqlstm_sizes *sizes,
                                        struct seqlstm_error *err)
{
    seqlstm_status status = plain_sizes(op, sizes, err);
    sizes->packed_bytes = 64;
    return status;
}

static seqlstm_status count_pack(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots,
                                 void *packed, const struct seqlstm_step *step, struct seqlstm_error *err)
{
    (void)op, (void)queue, (void)slots, (void)step, (void)err;
    assert_non_null(packed);
    packs++;
    return SEQLSTM_OK;
}

/* Not with each batch of an accumulated update, or of an evaluation. */
static void weights_are_packed_when_they_change_only(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    struct seqlstm_backend *table = (void *)(uintptr_t)sl_backend_get_table(w.plan->calls[0].backend);
    sl_exec_destroy(w.exec);
    sl_plan_destroy(w.plan);
    plain_sizes = table->op_sizes; /* the reference uses weights as they are */
    table->op_sizes = sizes_with_packed;
    table->weights_pack = count_pack;
    struct sl_plan_request request = {.graph = w.graph, .registry = w.registry};
    ok(sl_plan_create(&request, &w.plan, &err), &err);
    struct sl_exec_request exec = {.plan = w.plan, .params = w.params, .seed = 5};
    ok(sl_exec_create(&exec, &w.exec, &err), &err);
    struct sl_batch *batch = make_batch(&facts);
    const int once = w.plan->call_count;
    packs = 0;
    run(&w, batch, false);
    assert_int_equal(packs, once);
    run(&w, batch, true);
    run(&w, batch, true);
    assert_int_equal(packs, once);
    w.params->version++;
    run(&w, batch, false);
    assert_int_equal(packs, 2 * once);
    sl_batch_destroy(batch);
    close_world(&w);
}

static void too_large_batch_is_refused(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    facts.envelope.rows = R - 1;
    struct world w;
    open_world(&w, data_values, "model: [{type: lstm, units: 5}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    struct sl_batch *batch = make_batch(&facts);
    struct sl_exec_step step = {.normaliser = 1};
    struct sl_exec_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_false(sl_exec_fits(w.exec, batch));
    assert_int_equal(sl_exec_run(w.exec, batch, &step, &result, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "11 rows"));
    sl_batch_destroy(batch);
    close_world(&w);
}

/* As many threads as there are, the values are the same, and a redrawn set is, too. */
static void initial_values_do_not_depend_on_threads(void **state)
{
    (void)state;
    struct sl_data_facts facts = values_facts(3, false, 5);
    struct world w;
    open_world(&w, data_values,
               "model:\n  - {type: lstm, units: 61, return_sequences: true}\n"
               "  - {type: lstm, units: 5, kernel_initializer: he_normal, recurrent_initializer: uniform}\n"
               "train: {loss: mse, epochs: 1}",
               &facts, true);
    size_t bytes = (size_t)w.params->elems * sizeof(float);
    float *alone = malloc(bytes);
    assert_true(w.params->elems > 4 * 4096); /* more than a thread takes at a time */
    memcpy(alone, w.params->values, bytes);
    for (int32_t members = 1; members <= 5; members += 2) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_pool *pool;
        ok(sl_pool_create(members, &pool, &err), &err);
        memset(w.params->values, 0x7f, bytes);
        ok(sl_params_init(w.params, w.graph, 7, pool, &err), &err);
        assert_memory_equal(w.params->values, alone, bytes);
        ok(sl_params_init(w.params, w.graph, 8, pool, &err), &err);
        assert_memory_not_equal(w.params->values, alone, bytes);
        sl_pool_destroy(pool);
    }
    free(alone);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(accumulation_adds_gradients),
        cmocka_unit_test(a_bias_beside_a_shared_matrix_is_overwritten),
        cmocka_unit_test(an_update_does_not_depend_on_the_scale_of_the_loss),
        cmocka_unit_test(shapes_are_bound_once),
        cmocka_unit_test(axes_are_what_the_contract_says),
        cmocka_unit_test(forget_gates_begin_one_higher),
        cmocka_unit_test(ranges_of_glorot),
        cmocka_unit_test(uniform_data_are_told),
        cmocka_unit_test(alternative_equals_its_parts),
        cmocka_unit_test(stack_equals_its_layers),
        cmocka_unit_test(deep_stacks_run_layer_by_layer),
        cmocka_unit_test(empty_sequences_are_served),
        cmocka_unit_test(an_empty_sequence_takes_nothing_from_the_batch_before),
        cmocka_unit_test(an_empty_segment_keeps_the_carried_state),
        cmocka_unit_test(carried_states_join_segments),
        cmocka_unit_test(weights_are_packed_when_they_change_only),
        cmocka_unit_test(too_large_batch_is_refused),
        cmocka_unit_test(initial_values_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
