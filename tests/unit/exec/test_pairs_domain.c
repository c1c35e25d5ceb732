/* SPDX-License-Identifier: Apache-2.0 */
/* Models with encoder and decoder on fake devices (test_exec_domain.c): trained on one of them, and spread call by call
 * over two and the host, and the parts of a model one after the other. All bits are those of the host. */
#include "exec_pairs.h"
#include "oom.h"

#include "registry_fixture.h"

enum { CHOICES = 48, ELEMS_MOST = 4096, BATCHES = 3 };

static const char *const devices[] = {"fake-a", "reference", "fake-b"};

/* The graph of a host's executor, elsewhere. */
struct placed {
    struct sl_registry *registry;
    struct sl_plan *plan;
    struct sl_params *params;
    struct sl_exec *exec;
};

static void open_registry(struct placed *p)
{
    struct sl_registry_entry entries[3];
    for (int k = 0; k < 3; k++)
        entries[k] = (struct sl_registry_entry){.name = devices[k]};
    p->registry = registry_open(entries, 3);
}

/* How calls are placed: on the first device, or spread over all; a loop, too, or as a whole on one of them. */
enum { SPREAD = 1, AROUND_LOOP };

static const char *pick_device(const struct sl_graph *graph, const struct sl_plan *host, int32_t c, int spread)
{
    const bool loops = spread >= AROUND_LOOP && sl_call_is_in_loop(graph, &host->calls[c]);
    return devices[loops ? spread - AROUND_LOOP : spread ? c % 3 : 0];
}

static seqlstm_status open_exec(struct placed *p, const struct sl_graph *graph, const struct sl_plan *host, int spread,
                                struct seqlstm_error *err)
{
    struct sl_plan_choice choices[CHOICES];
    assert_true(host->call_count <= CHOICES);
    for (int32_t c = 0; c < host->call_count; c++)
        choices[c] = (struct sl_plan_choice){host->calls[c].node->name, pick_device(graph, host, c, spread), "loops",
                                             graph->phase};
    const struct sl_plan_request plan = {.graph = graph,
                                         .registry = p->registry,
                                         .optimizer_states = 2,
                                         .stored = choices,
                                         .stored_count = host->call_count};
    ok(sl_plan_create(&plan, &p->plan, err), err);
    for (int32_t c = 0; c < host->call_count; c++)
        assert_string_equal(sl_backend_get_id(p->plan->calls[c].backend), pick_device(graph, host, c, spread));
    const struct sl_exec_request exec = {.plan = p->plan, .params = p->params, .seed = 5};
    return sl_exec_create(&exec, &p->exec, err);
}

static void open_placed(struct placed *p, const struct world *w, int spread)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *p = (struct placed){0};
    open_registry(p);
    ok(sl_params_create(w->graph, true, 2, NULL, &p->params, &err), &err);
    ok(sl_params_init(p->params, w->graph, 7, NULL, &err), &err);
    ok(open_exec(p, w->graph, w->plan, spread, &err), &err);
}

static void close_placed(struct placed *p)
{
    sl_exec_destroy(p->exec);
    sl_plan_destroy(p->plan);
    sl_params_destroy(p->params);
    sl_registry_destroy(p->registry);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The same lengths, with other tokens and ids of its own; of the last one also other lengths. */
static struct sl_batch *make_batch(int n)
{
    struct sl_batch *batch = make_pairs(true);
    for (int64_t r = 0; r < SOURCE_R; r++)
        ((int32_t *)batch->source.input.ids)[r] = (int32_t)((r * (n + 2) + n) % V);
    for (int64_t k = 0; k < B; k++) {
        ((uint64_t *)batch->axis.sequence_id)[k] += 100 * (uint64_t)n;
        ((uint64_t *)batch->source.axis.sequence_id)[k] += 100 * (uint64_t)n;
    }
    return batch;
}

/* Losses and weights of six updates over three batches in turn, each with the next one named. */
static void train(struct sl_exec *exec, struct sl_params *params, double *losses, float *values)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_result result;
    struct sl_batch *batches[BATCHES];
    for (int n = 0; n < BATCHES; n++)
        batches[n] = make_batch(n);
    for (uint64_t k = 0; k < 6; k++) {
        struct sl_batch *now = batches[k % BATCHES], *next = batches[(k + 1) % BATCHES];
        now->ordinal = k;
        next->ordinal = k + 1;
        /* the fourth run gets another batch than was announced, and one that was announced comes with other values */
        const struct sl_exec_update update = {.count = k + 1, .learning_rate = 0.05};
        const struct sl_exec_step step = {.epoch = k,
                                          .normaliser = 0.25,
                                          .update = k % 2 ? &update : NULL,
                                          .accumulate = k % 2,
                                          .next = k == 2 ? now : next};
        ok(sl_exec_run(exec, now, &step, &result, &err), &err);
        losses[k] = result.loss_sum;
        if (k == 3) {
            ((int32_t *)next->source.input.ids)[0] = (((int32_t *)next->source.input.ids)[0] + 1) % V;
            next->ordinal += 100;
            struct sl_exec_step again = step;
            again.next = NULL;
            again.accumulate = true;
            again.update = NULL;
            ok(sl_exec_run(exec, next, &again, &result, &err), &err);
            losses[k] += result.loss_sum;
        }
    }
    ok(sl_params_pull(params, &err), &err);
    assert_true(params->elems <= ELEMS_MOST);
    memcpy(values, params->values, (size_t)params->elems * sizeof *values);
    for (int n = 0; n < BATCHES; n++)
        sl_batch_destroy(batches[n]);
}

static void check_training(const char *name, const struct world *w, int spread, const double *losses,
                           const float *values)
{
    static float got_values[ELEMS_MOST];
    double got[6];
    struct placed p;
    open_placed(&p, w, spread);
    train(p.exec, p.params, got, got_values);
    for (int k = 0; k < 6; k++)
        if (got[k] != losses[k])
            fail_msg("%s, spread %d: loss %d is %.17g, not %.17g", name, spread, k, got[k], losses[k]);
    if (memcmp(got_values, values, (size_t)p.params->elems * sizeof *values) != 0)
        fail_msg("%s, spread %d: other weights", name, spread);
    close_placed(&p);
}

static void pairs_train_on_devices_as_on_the_host(void **state)
{
    (void)state;
    static float values[ELEMS_MOST];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        double losses[6];
        struct world w;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        train(w.exec, w.params, losses, values);
        check_training(cases[i].name, &w, 0, losses, values);
        for (int spread = w.graph->loop.count ? AROUND_LOOP : SPREAD;
             spread < (w.graph->loop.count ? AROUND_LOOP + 3 : SPREAD + 1); spread++)
            check_training(cases[i].name, &w, spread, losses, values);
        close_world(&w);
    }
}

/* The two that lie on different devices are named: the first of the loop, and the next that lies elsewhere. */
static void a_loop_runs_on_one_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_exec_result result;
        struct world w;
        struct placed p;
        char expected[256];
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        if (w.graph->loop.count > 0) {
            const struct sl_exec_step step = {.normaliser = 1};
            struct sl_batch *batch = make_pairs(true);
            open_placed(&p, &w, SPREAD);
            assert_int_equal(sl_exec_run(p.exec, batch, &step, &result, &err), SEQLSTM_UNSUPPORTED);
            const struct sl_call *first = p.plan->calls;
            while (first->node_first < w.graph->loop.first)
                first++;
            snprintf(expected, sizeof expected,
                     "`%s` and `%s` run step by step, so they need backends of one device; pin both to one",
                     first->node->name, first[1].node->name);
            assert_string_equal(err.message, expected);
            close_placed(&p);
            sl_batch_destroy(batch);
        }
        close_world(&w);
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void predict(struct placed *p, const struct world *w, enum sl_part part, const struct sl_envelope *envelope,
                    bool placed, bool spread)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct part host;
    open_part(&host, w, part, envelope);
    if (placed) {
        ok(open_exec(p, host.graph, host.plan, spread, &err), &err);
        sl_exec_destroy(host.exec);
        sl_plan_destroy(host.plan);
    } else {
        p->plan = host.plan;
        p->exec = host.exec;
    }
}

static void close_prediction(struct placed *p)
{
    struct sl_graph *graph = (struct sl_graph *)(uintptr_t)sl_exec_get_graph(p->exec);
    sl_exec_destroy(p->exec);
    sl_plan_destroy(p->plan);
    sl_graph_destroy(graph);
}

static void predict_batch(struct sl_exec *exec, const struct sl_batch *batch)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_exec_step step = {.epoch = 0};
    struct sl_exec_result result;
    ok(sl_exec_run(exec, batch, &step, &result, &err), &err);
}

/* Twice: what the encoder gives at the second source replaces all of the first. */
static void run_parts(const struct world *w, struct sl_registry *registry, struct sl_params *params, bool spread,
                      float *outputs)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct placed encoder = {.registry = registry, .params = params}, decoder = encoder;
    struct sl_envelope envelope = w->facts.envelope;
    predict(&encoder, w, SL_PART_ENCODER, &envelope, registry != NULL, spread);
    envelope.steps = 1;
    envelope.rows = B;
    predict(&decoder, w, SL_PART_DECODER, &envelope, registry != NULL, spread);
    static const int32_t ones[] = {1, 1, 1, 1, 1};
    for (int n = 0; n < 2; n++) {
        struct sl_batch *sources = make_pairs(false);
        float *from, *to;
        int64_t elems;
        for (int64_t r = 0; r < SOURCE_R; r++)
            ((int32_t *)sources->source.input.ids)[r] = (int32_t)((r * (n + 2) + n) % V);
        predict_batch(encoder.exec, sources);
        ok(sl_exec_get_state(encoder.exec, &from, &elems, &err), &err);
        ok(sl_exec_get_state(decoder.exec, &to, &elems, &err), &err);
        memcpy(to, from, (size_t)elems * sizeof *to);
        ok(sl_exec_hand_memories(encoder.exec, decoder.exec, &err), &err);
        for (int t = 0; t < 3; t++) {
            const struct sl_batch_shape shape = {.sequences = B,
                                                 .lengths = ones,
                                                 .input_kind = SL_FIELD_IDS,
                                                 .input_features = 1,
                                                 .input_on_steps = true};
            struct sl_batch *batch = NULL;
            ok(sl_batch_create(&shape, &batch, &err), &err);
            for (int32_t k = 0; k < B; k++)
                ((int32_t *)batch->input.ids)[k] = (k * 3 + t + n) % V;
            batch->carry_state = true;
            batch->source = sources->source;
            predict_batch(decoder.exec, batch);
            const struct sl_field output = sl_exec_get_output(decoder.exec);
            memcpy(outputs, output.values, B * V * sizeof *outputs);
            outputs += B * V;
            sl_batch_destroy(batch);
        }
        sl_batch_destroy(sources);
    }
    close_prediction(&decoder);
    close_prediction(&encoder);
}

static void parts_predict_on_devices_as_on_the_host(void **state)
{
    (void)state;
    static float outputs[3][6 * B * V];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_data_facts facts = pair_facts(cases[i].one_vocabulary ? V : SOURCE_V);
        struct world w;
        struct placed p;
        open_world(&w, data_pairs, cases[i].layers, &facts, true);
        run_parts(&w, NULL, w.params, false, outputs[0]);
        open_placed(&p, &w, false);
        for (int spread = 0; spread < 2; spread++) {
            run_parts(&w, p.registry, p.params, spread, outputs[1 + spread]);
            if (memcmp(outputs[0], outputs[1 + spread], sizeof outputs[0]) != 0)
                fail_msg("%s, spread %d: other outputs", cases[i].name, spread);
        }
        close_placed(&p);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_train_on_devices_as_on_the_host),
        cmocka_unit_test(a_loop_runs_on_one_device),
        cmocka_unit_test(parts_predict_on_devices_as_on_the_host),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
