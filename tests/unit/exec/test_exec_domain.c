/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on devices: whole models on the fake ones of tests/gpu (the reference behind memory that the host cannot
 * touch, and streams that run late), on one of them, and spread call by call over two devices and the host.
 *
 * The arithmetic is the reference's everywhere, so losses, weights, optimizer states and outputs must be the very
 * bits of a run on the host.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "ok.h"
#include "oom.h"
#include "registry_fixture.h"

#include "base/value/buf.h"
#include "dispatch/planner.h"
#include "dispatch/plan/plan.h"
#include "exec/exec.h"
#include "exec/params/params_mirror.h"
#include "exec/shape/shapes.h"
#include "model/yaml/diagnostics.h"

enum placement { ON_HOST, ON_DEVICE, SPREAD };
enum { B = 5, R = 11, CHOICES = 32 };

struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_model *model;
    struct sl_data_facts facts;
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_params *params;
    struct sl_exec *exec;
    struct sl_batch *batch;
};

static const char *const backends[] = {"fake-a", "reference", "fake-b"};

static float number(uint64_t i)
{
    return 2.0f * seqlstm_uniform(99, i, 0, 0) - 1.0f;
}

static struct sl_registry *open_registry(enum placement placement)
{
    struct sl_registry_entry entries[3] = {{.name = "reference"}};
    for (int k = 0; placement != ON_HOST && k < 3; k++)
        entries[k] = (struct sl_registry_entry){.name = backends[k]};
    return registry_open(entries, placement == ON_HOST ? 1 : 3);
}

/* Of the optimizers of the cases. */
static int32_t count_states(const struct world *w)
{
    return w->model->train.optimizer.amsgrad || w->model->train.optimizer.centered ? 3 : 2;
}

/* A plan on one device; with SPREAD made again from stored choices that go round the backends. */
static void open_plan(struct world *w, enum placement placement, struct seqlstm_error *err)
{
    struct sl_plan_request request = {.graph = w->graph, .registry = w->registry, .optimizer_states = count_states(w)};
    ok(sl_plan_create(&request, &w->plan, err), err);
    if (placement != SPREAD)
        return;
    struct sl_plan_choice choices[CHOICES];
    assert_true(w->plan->call_count <= CHOICES);
    for (int32_t c = 0; c < w->plan->call_count; c++)
        choices[c] = (struct sl_plan_choice){w->plan->calls[c].node->name, backends[c % 3], "loops", SL_PHASE_TRAIN};
    request.stored = choices;
    request.stored_count = w->plan->call_count;
    struct sl_plan *spread;
    ok(sl_plan_create(&request, &spread, err), err);
    sl_plan_destroy(w->plan);
    w->plan = spread;
}

/* lengths: R in all. */
static struct sl_batch *make_shaped_batch(const struct sl_data_facts *facts, const int32_t lengths[B])
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch_shape shape = {.sequences = B,
                                   .lengths = lengths,
                                   .input_kind = facts->input.kind,
                                   .target_kind = facts->target.kind,
                                   .input_features = facts->input.features,
                                   .has_weight = facts->has_weight,
                                   .target_features = facts->target.features,
                                   .input_on_steps = true,
                                   .target_on_steps = facts->target.on_steps};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    int64_t target_rows = facts->target.on_steps ? R : B;
    for (int64_t i = 0; i < R * facts->input.features; i++)
        if (facts->input.kind == SL_FIELD_IDS)
            ((int32_t *)batch->input.ids)[i] = (int32_t)(i * 3 % facts->input.classes);
        else
            ((float *)batch->input.values)[i] = number((uint64_t)i);
    for (int64_t i = 0; i < target_rows * facts->target.features; i++)
        if (facts->target.kind == SL_FIELD_IDS)
            ((int32_t *)batch->target.ids)[i] = i == 2 ? -1 : (int32_t)(i * 5 % facts->target.classes);
        else
            ((float *)batch->target.values)[i] = number((uint64_t)i + 1000);
    for (int64_t r = 0; facts->has_weight && r < target_rows; r++)
        ((float *)batch->weight.values)[r] = 0.5f + number((uint64_t)r + 2000) / 4;
    return batch;
}

static struct sl_batch *make_batch(const struct sl_data_facts *facts)
{
    static const int32_t lengths[B] = {4, 3, 3, 1, 0};
    return make_shaped_batch(facts, lengths);
}

struct domain_case {
    const char *name, *data, *layers;
    bool tokens, on_steps, need_output, weighted;
};

#define TOKENS   "seqlstm: 1\ndata: {type: lines, train: {file: a}, tokenizer: whitespace, label: {column: first}}\n"
#define VALUES   "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n"
#define SEGMENTS "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}, batching: {bptt: 3}}\n"

static const struct domain_case cases[] = {
    {"last state, dense", VALUES,
     "model: [{type: lstm, units: 5}, {type: dense, units: 3, activation: tanh}]\n"
     "train: {loss: mse, epochs: 1, optimizer: {type: adam}, clip_norm: 0.25}",
     false, false, true, false},
    {"several readers", VALUES,
     "model: [{type: lstm, name: a, units: 4, return_sequences: true},"
     " {type: rnn, name: b, units: 4, return_sequences: true},"
     " {type: add, name: c, from: [a, b]}, {type: concat, name: d, from: [a, c, b]},"
     " {type: layer_norm}, {type: dropout, rate: 0.3},"
     " {type: dense, units: 3, kernel_regularizer: {l1: 0.01, l2: 0.02}}]\n"
     "train: {loss: mse, epochs: 1, optimizer: {type: rmsprop, momentum: 0.5, centered: true}, clip_value: 0.5}",
     false, true, true, false},
    {"tied output", TOKENS,
     "model: [{type: embedding, name: emb, dim: 4}, {type: lstm, units: 4, return_sequences: true},"
     " {type: output, tie: emb, activation: softmax}]\n"
     "train: {loss: cross_entropy, task: tag, epochs: 1, optimizer: {type: adam}}",
     true, true, true, false},
    {"fused output and loss", TOKENS,
     "model: [{type: embedding, dim: 4}, {type: lstm, units: 5, return_sequences: true},"
     " {type: output, activation: softmax}]\n"
     "train: {loss: cross_entropy, task: tag, epochs: 1, optimizer: {type: adam, amsgrad: true}}",
     true, true, false, false},
    {"carried states", SEGMENTS,
     "model: [{type: lstm, units: 4, layers: 2, return_sequences: true}, {type: dense, units: 3}]\n"
     "train: {loss: mse, epochs: 1, optimizer: {type: adam}}",
     false, true, true, true},
};

static void open_world(struct world *w, const struct domain_case *c, enum placement placement)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[4096];
    memset(w, 0, sizeof *w);
    snprintf(text, sizeof text, "%s%s\nbackends: [reference]\ndispatch: {policy: order}\n", c->data, c->layers);
    ok(sl_diagnostics_create(&w->diagnostics, &err), &err);
    struct sl_model_request model = {.path = "m.yaml"};
    if (sl_model_load_text("m.yaml", text, strlen(text), &model, w->diagnostics, &w->model, &err) != SEQLSTM_OK) {
        struct sl_buf buf = {0};
        sl_diagnostics_render(w->diagnostics, false, &buf, &err);
        fail_msg("%s: %s", c->name, sl_buf_text(&buf));
    }
    enum sl_field_kind kind = c->tokens ? SL_FIELD_IDS : SL_FIELD_VALUES;
    w->facts = (struct sl_data_facts){
        .input = {.kind = kind, .on_steps = true, .features = c->tokens ? 1 : 3, .classes = c->tokens ? 7 : 0},
        .target = {.kind = kind, .on_steps = c->on_steps, .features = c->tokens ? 1 : 3, .classes = c->tokens ? 7 : 0},
        .has_steps = true,
        .has_weight = c->weighted,
        .envelope = {.sequences = B, .steps = 4, .rows = R}};
    struct sl_graph_request graph = {
        .model = w->model, .facts = &w->facts, .phase = SL_PHASE_TRAIN, .need_output = c->need_output};
    ok(sl_graph_create(&graph, &w->graph, &err), &err);
    w->registry = open_registry(placement);
    open_plan(w, placement, &err);
    ok(sl_params_create(w->graph, true, count_states(w), NULL, &w->params, &err), &err);
    ok(sl_params_init(w->params, w->graph, 7, NULL, &err), &err);
    struct sl_exec_request exec = {.plan = w->plan, .params = w->params, .seed = 5};
    ok(sl_exec_create(&exec, &w->exec, &err), &err);
    w->batch = make_batch(&w->facts);
}

static void close_world(struct world *w)
{
    sl_batch_destroy(w->batch);
    sl_exec_destroy(w->exec);
    sl_params_destroy(w->params);
    sl_plan_destroy(w->plan);
    sl_registry_destroy(w->registry);
    sl_graph_destroy(w->graph);
    sl_model_destroy(w->model);
    sl_diagnostics_destroy(w->diagnostics);
}

/* One update as the trainer makes it: two batches, limits, Adam, an average on the host. */
static double make_update(struct world *w, uint64_t t, float *average, float *output)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    double loss = 0;
    struct sl_params *p = w->params;
    const struct sl_exec_update update = {.count = t, .learning_rate = 0.01};
    for (int k = 0; k < 2; k++) {
        struct sl_exec_step step = {
            .epoch = t, .normaliser = 0.25, .loss_scale = 8, .accumulate = k > 0, .update = k > 0 ? &update : NULL};
        w->batch->carry_state = k > 0;
        ok(sl_exec_run(w->exec, w->batch, &step, &result, &err), &err);
        loss += result.loss_sum;
    }
    if (w->graph->output_needed) {
        struct sl_field field = sl_exec_get_output(w->exec);
        memcpy(output, field.values, (size_t)(field.on_steps ? R : B) * (size_t)field.features * sizeof *output);
    }
    ok(sl_exec_vector(w->exec, SEQLSTM_KIND_VECTOR_LERP, average, p->values, p->trainable_elems, 0.1f, &err), &err);
    return loss + result.squares;
}

static void compare(const char *name, enum placement placement, const char *what, const void *a, const void *b,
                    size_t bytes)
{
    if (memcmp(a, b, bytes) != 0)
        fail_msg("%s, placement %d: %s differs from the host's", name, placement, what);
}

static void compare_worlds(const struct domain_case *c, enum placement placement)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world host, other;
    open_world(&host, c, ON_HOST);
    open_world(&other, c, placement);
    if (placement == ON_DEVICE)
        for (int32_t k = 0; k < other.plan->call_count; k++)
            assert_string_equal(sl_backend_get_id(other.plan->calls[k].backend), "fake-a");
    size_t bytes = (size_t)host.params->elems * sizeof(float);
    float *averages[2] = {aligned_alloc(64, bytes), aligned_alloc(64, bytes)};
    float outputs[2][R * 8] = {{0}};
    memset(averages[0], 0, bytes);
    memset(averages[1], 0, bytes);
    for (uint64_t t = 1; t <= 3; t++) {
        double a = make_update(&host, t, averages[0], outputs[0]), b = make_update(&other, t, averages[1], outputs[1]);
        if (a != b)
            fail_msg("%s, placement %d, update %d: loss and norm %.17g, expected %.17g", c->name, placement, (int)t, b,
                     a);
    }
    ok(sl_params_pull(other.params, &err), &err);
    ok(sl_params_pull_states(other.params, &err), &err);
    compare(c->name, placement, "a weight", host.params->values, other.params->values, bytes);
    for (int s = 0; s < count_states(&host); s++)
        compare(c->name, placement, "an optimizer state", host.params->states[s], other.params->states[s], bytes);
    compare(c->name, placement, "the average", averages[0], averages[1], bytes);
    compare(c->name, placement, "the output", outputs[0], outputs[1], sizeof outputs[0]);
    float *states[2];
    int64_t elems[2];
    ok(sl_exec_get_state(host.exec, &states[0], &elems[0], &err), &err);
    ok(sl_exec_get_state(other.exec, &states[1], &elems[1], &err), &err);
    assert_int_equal(elems[0], elems[1]);
    compare(c->name, placement, "a carried state", states[0], states[1], (size_t)elems[0] * sizeof(float));
    free(averages[0]);
    free(averages[1]);
    close_world(&host);
    close_world(&other);
}

static void a_device_gives_the_bits_of_the_host(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare_worlds(&cases[i], ON_DEVICE);
}

static void a_plan_may_cross_domains_at_every_edge(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare_worlds(&cases[i], SPREAD);
}

/* Devices that know each other copy without the host. All numbers are the same. */
static void devices_copy_from_each_other(void **state)
{
    (void)state;
    unsetenv("SEQLSTM_FAKE_ACROSS");
    compare_worlds(&cases[1], SPREAD);
    assert_null(getenv("SEQLSTM_FAKE_ACROSS")); /* each knows itself alone */
    setenv("SEQLSTM_FAKE_PEERS", "1", 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsetenv("SEQLSTM_FAKE_ACROSS");
        compare_worlds(&cases[i], SPREAD);
        assert_non_null(getenv("SEQLSTM_FAKE_ACROSS"));
    }
    unsetenv("SEQLSTM_FAKE_ACROSS");
    unsetenv("SEQLSTM_FAKE_PEERS");
}

/* What the host writes is seen by the device, wherever the newest copy was. */
static void host_writes_reach_the_device(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    open_world(&w, &cases[0], ON_DEVICE);
    struct sl_exec_step step = {.normaliser = 1};
    const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
    struct sl_exec_result first, changed, again;
    step.update = &update;
    ok(sl_exec_run(w.exec, w.batch, &step, &first, &err), &err);
    step.update = NULL;
    ok(sl_exec_run(w.exec, w.batch, &step, &changed, &err), &err);
    assert_true(changed.loss_sum != first.loss_sum);
    ok(sl_params_init(w.params, w.graph, 7, NULL, &err), &err);
    ok(sl_exec_run(w.exec, w.batch, &step, &again, &err), &err);
    assert_true(again.loss_sum == first.loss_sum);
    close_world(&w);
}

/* The sum of squares of an update after a step, and one without a sequence. */
static double update_after_empty(enum placement placement, bool accumulate, double loss_scale, float *values)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    struct world w;
    double squares;
    open_world(&w, &cases[0], placement);
    struct sl_exec_step step = {.normaliser = 0.25, .loss_scale = 8};
    const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
    ok(sl_exec_run(w.exec, w.batch, &step, &result, &err), &err);
    step.accumulate = accumulate;
    step.loss_scale = loss_scale;
    ok(sl_exec_run_empty(w.exec, &step, &err), &err);
    ok(sl_exec_update(w.exec, &update, &squares, &err), &err);
    ok(sl_params_pull(w.params, &err), &err);
    memcpy(values, w.params->values, (size_t)w.params->elems * sizeof *values);
    close_world(&w);
    return squares;
}

/* Gradients are cleared wherever they are, or kept; the scale that an update removes is that of the last step. */
static void a_step_without_a_sequence_counts(void **state)
{
    (void)state;
    static float values[2][1024];
    double kept[2];
    for (enum placement placement = ON_HOST; placement <= ON_DEVICE; placement++) {
        assert_true(update_after_empty(placement, false, 8, values[placement]) == 0);
        kept[placement] = update_after_empty(placement, true, 8, values[placement]);
        assert_true(kept[placement] > 0);
        assert_true(update_after_empty(placement, true, 2, values[placement]) == 16 * kept[placement]);
        assert_true(update_after_empty(placement, true, 0, values[placement]) == 64 * kept[placement]);
    }
    assert_true(kept[ON_HOST] == kept[ON_DEVICE]);
    assert_memory_equal(values[ON_HOST], values[ON_DEVICE], sizeof values[0]);
}

/* What is not finite in a step is not left to the update after one without a sequence. */
static void a_step_without_a_sequence_forgets_the_loss(void **state)
{
    (void)state;
    for (enum placement placement = ON_HOST; placement <= ON_DEVICE; placement++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_result result;
        struct world w;
        double squares;
        float before[1024];
        open_world(&w, &cases[1], placement);
        const struct sl_exec_step step = {.normaliser = 0.25};
        const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
        ((float *)(uintptr_t)w.batch->input.values)[0] = NAN;
        ok(sl_exec_run(w.exec, w.batch, &step, &result, &err), &err);
        memcpy(before, w.params->values, (size_t)w.params->elems * sizeof *before);
        ok(sl_exec_update(w.exec, &update, &squares, &err), &err);
        ok(sl_params_pull(w.params, &err), &err);
        assert_memory_equal(before, w.params->values, (size_t)w.params->elems * sizeof *before);
        ok(sl_exec_run_empty(w.exec, &step, &err), &err);
        ok(sl_exec_update(w.exec, &update, &squares, &err), &err); /* the penalties alone */
        ok(sl_params_pull(w.params, &err), &err);
        assert_true(squares > 0);
        assert_memory_not_equal(before, w.params->values, (size_t)w.params->elems * sizeof *before);
        close_world(&w);
    }
}

/* Each of the three that an optimizer may have: what the host writes reaches the device, and comes back from there. */
static void every_optimizer_state_goes_there_and_back(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_params *p;
    struct world w;
    float *there;
    int32_t place;
    open_world(&w, &cases[0], ON_DEVICE);
    ok(sl_params_create(w.graph, true, 3, NULL, &p, &err), &err);
    ok(sl_params_find_place(p, w.plan->calls[0].backend, w.plan->calls[0].device, &place, &err), &err);
    assert_int_not_equal(place, SL_PLACE_HOST);
    for (int turn = 0; turn < 2; turn++) {
        for (int s = 0; s < 3; s++)
            p->states[s][0] = (float)(10 * turn + s + 1);
        sl_params_touch_states(p);
        for (int s = 0; s < 3; s++) {
            const enum sl_param_part part = (enum sl_param_part)(SL_PART_STATE_1 + s);
            ok(sl_params_provide(p, place, part, 0, p->elems, &there, &err), &err);
            sl_params_note_written(p, place, part, 0, p->elems);
            p->states[s][0] = 0;
        }
        ok(sl_params_pull_states(p, &err), &err);
        for (int s = 0; s < 3; s++)
            assert_true(p->states[s][0] == (float)(10 * turn + s + 1));
    }
    sl_params_destroy(p);
    close_world(&w);
}

/* A failure in the middle of asynchronous work ends the run that started it, with the vendor's code, and every later
 * one; and nothing hangs or leaks. */
static void late_failures_are_reported(void **state)
{
    (void)state;
    char text[16];
    int failed = 0;
    for (int after = 40; after < 400; after += 45) {
        struct world w;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        snprintf(text, sizeof text, "%d", after);
        setenv("SEQLSTM_FAKE_FAIL_AFTER", text, 1);
        open_world(&w, &cases[0], ON_DEVICE);
        unsetenv("SEQLSTM_FAKE_FAIL_AFTER");
        struct sl_exec_step step = {.normaliser = 1, .next = after % 2 ? w.batch : NULL};
        struct sl_exec_result result;
        seqlstm_status status = SEQLSTM_OK;
        for (int k = 0; k < 20 && status == SEQLSTM_OK; k++)
            status = sl_exec_run(w.exec, w.batch, &step, &result, &err);
        if (status != SEQLSTM_OK) {
            failed++;
            assert_int_equal(status, SEQLSTM_DEVICE);
            assert_int_equal(err.native_code, 719);
            assert_non_null(strstr(err.message, "failed on purpose"));
            assert_int_equal(sl_exec_run(w.exec, w.batch, &step, &result, &err), SEQLSTM_DEVICE);
        }
        close_world(&w);
    }
    assert_true(failed > 0);
}

/* The weights after some runs over two batches in turn, each with the next one named or none. */
static void train_in_turn(const struct domain_case *c, enum placement placement, bool named, float *values,
                          double *losses)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    struct world w;
    open_world(&w, c, placement);
    struct sl_batch *batches[2] = {w.batch, make_batch(&w.facts)};
    for (int64_t i = 0; i < R * w.facts.input.features && w.facts.input.kind == SL_FIELD_VALUES; i++)
        ((float *)batches[1]->input.values)[i] = number((uint64_t)i + 5000);
    for (int64_t i = 0; i < R && w.facts.input.kind == SL_FIELD_IDS; i++)
        ((int32_t *)batches[1]->input.ids)[i] = (int32_t)(i * 2 % w.facts.input.classes);
    for (uint64_t k = 0; k < 6; k++) {
        struct sl_batch *now = batches[k % 2], *next = batches[(k + 1) % 2];
        now->ordinal = k;
        next->ordinal = k + 1;
        if (k == 5) { /* filled anew after it was announced */
            now->ordinal = 50;
            memcpy((void *)(uintptr_t)now->input.ids, next->input.ids, (size_t)(R * w.facts.input.features) * 4);
        }
        /* Run 3 gets another batch than was announced before it. */
        const struct sl_exec_update update = {.count = k + 1, .learning_rate = 0.05};
        struct sl_exec_step step = {.normaliser = 0.25, .update = &update, .next = !named ? NULL : k == 2 ? now : next};
        ok(sl_exec_run(w.exec, now, &step, &result, &err), &err);
        losses[k] = result.loss_sum;
    }
    ok(sl_params_pull(w.params, &err), &err);
    memcpy(values, w.params->values, (size_t)w.params->elems * sizeof *values);
    sl_batch_destroy(batches[1]);
    close_world(&w);
}

/* Copies of the next batch begin while the device computes this one, and change no bit. */
static void the_next_batch_is_copied_meanwhile(void **state)
{
    (void)state;
    static float values[2][4096];
    double losses[2][6];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (enum placement placement = ON_DEVICE; placement <= SPREAD; placement++) {
            memset(values, 0, sizeof values);
            train_in_turn(&cases[i], ON_HOST, false, values[0], losses[0]);
            if (placement == ON_DEVICE)
                setenv("SEQLSTM_FAKE_MEET", "1", 1);
            train_in_turn(&cases[i], placement, true, values[1], losses[1]);
            unsetenv("SEQLSTM_FAKE_MEET");
            compare(cases[i].name, placement, "a weight", values[0], values[1], sizeof values[0]);
            compare(cases[i].name, placement, "a loss", losses[0], losses[1], sizeof losses[0]);
        }
}

/* A new shape is bound while the batch before it is computed, and only then. */
static void the_next_shape_is_bound_meanwhile(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_result result;
        struct world w;
        open_world(&w, &cases[0], ON_DEVICE);
        const int32_t lengths[B] = {3, 3, 2, 2, 1};
        struct sl_batch *other = make_shaped_batch(&w.facts, lengths);
        other->ordinal = w.batch->ordinal + 1;
        struct sl_exec_step step = {.normaliser = 0.25, .next = named ? other : NULL};
        ok(sl_exec_run(w.exec, w.batch, &step, &result, &err), &err);
        assert_true((sl_exec_find_shape(w.exec, other) != NULL) == (named == 1));
        step.next = NULL;
        ok(sl_exec_run(w.exec, other, &step, &result, &err), &err);
        sl_batch_destroy(other);
        close_world(&w);
    }
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + SEQLSTM_ALIGNMENT - 1) / SEQLSTM_ALIGNMENT * SEQLSTM_ALIGNMENT;
}

/* A batch's input and target four times: the present ones, two sets for the next ones, and these in pinned memory. */
static void plans_count_what_waits_for_devices(void **state)
{
    (void)state;
    for (enum placement placement = ON_HOST; placement <= ON_DEVICE; placement++) {
        struct world w;
        open_world(&w, &cases[0], placement);
        int64_t fields = round_up(R * w.facts.input.features * 4) + round_up(B * w.facts.target.features * 4);
        const struct sl_plan_memory *memory = &w.plan->memory;
        assert_int_equal(memory->batches_bytes, placement == ON_HOST ? 0 : 4 * fields);
        assert_int_equal(memory->peak_bytes, memory->weights_bytes + memory->gradients_bytes + memory->optimizer_bytes +
                                                 memory->activations_bytes + memory->workspace_bytes +
                                                 memory->backends_bytes + memory->batches_bytes +
                                                 memory->checkpoint_bytes + memory->process_bytes);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_gives_the_bits_of_the_host),
        cmocka_unit_test(a_plan_may_cross_domains_at_every_edge),
        cmocka_unit_test(devices_copy_from_each_other),
        cmocka_unit_test(host_writes_reach_the_device),
        cmocka_unit_test(the_next_batch_is_copied_meanwhile),
        cmocka_unit_test(the_next_shape_is_bound_meanwhile),
        cmocka_unit_test(every_optimizer_state_goes_there_and_back),
        cmocka_unit_test(a_step_without_a_sequence_counts),
        cmocka_unit_test(a_step_without_a_sequence_forgets_the_loss),
        cmocka_unit_test(plans_count_what_waits_for_devices),
        cmocka_unit_test(late_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
