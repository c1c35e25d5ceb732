/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: where plans are cut, and how long a step takes, for plans of one operation for each layer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dispatch/explain/explain_stages.h"
#include "dispatch/stages/pipeline.h"
#include "oom.h"

enum { LAYERS = 8, MOST = 40 };
static const double ms = 1e6;

/* A plan of layers that each read what the one before writes. Costs are so large that those of starting calls do not
 * matter. */
struct layers {
    struct sl_tensor tensors[MOST + 1];
    struct sl_node nodes[MOST];
    int32_t slots[MOST][SEQLSTM_SLOT_UNARY_COUNT];
    struct sl_call calls[MOST];
    struct sl_graph graph;
    struct sl_plan plan;
};

static void make(struct layers *l, int32_t count, int32_t pieces)
{
    memset(l, 0, sizeof *l);
    for (int32_t n = 0; n <= count; n++)
        l->tensors[n] = (struct sl_tensor){.name = "t", .axis = SL_AXIS_STEPS};
    for (int32_t n = 0; n < count; n++) {
        l->slots[n][SEQLSTM_SLOT_UNARY_X] = n;
        l->slots[n][SEQLSTM_SLOT_UNARY_Y] = n + 1;
        l->nodes[n] = (struct sl_node){.name = "layer", .layer = n, .slots = l->slots[n]};
        l->nodes[n].slot_count = SEQLSTM_SLOT_UNARY_COUNT;
        l->nodes[n].desc.head.op = SEQLSTM_OP_ACTIVATION;
        l->calls[n] = (struct sl_call){.node = &l->nodes[n], .node_first = n, .node_count = 1};
        l->calls[n].cost = (struct sl_cost){SL_COST_MEASURED, 1000 * ms, 2000 * ms};
    }
    l->graph = (struct sl_graph){.tensors = l->tensors, .tensor_count = count + 1, .nodes = l->nodes};
    l->graph.node_count = count;
    l->graph.pieces = pieces;
    l->plan = (struct sl_plan){.graph = &l->graph, .calls = l->calls, .call_count = count};
}

static struct sl_pipeline cut(const struct layers *l, int32_t stages, int32_t pieces)
{
    struct sl_pipeline pipeline;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_pipeline_make(&l->plan, stages, pieces, &pipeline, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return pipeline;
}

static void assert_close(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-3 * expected))
        fail_msg("%g, not %g", got, expected);
}

/* T = sum of c + (P - 1) max c, for forward and backward. */
static void equal_layers_take_the_time_of_the_formula(void **state)
{
    (void)state;
    struct layers l;
    make(&l, LAYERS, 16);
    for (int32_t stages = 1; stages <= 8; stages *= 2)
        for (int32_t pieces = 1; pieces <= 16; pieces *= 4) {
            const struct sl_pipeline pipeline = cut(&l, stages, pieces);
            for (int32_t s = 0; s <= stages; s++)
                assert_int_equal(pipeline.bounds[s], s * LAYERS / stages);
            const double all = LAYERS * 3000 * ms, piece = all / stages / pieces;
            assert_close(pipeline.alone_ns, all);
            assert_close(pipeline.step_ns, (stages + pieces - 1) * piece);
        }
}

static void stages_cost_about_the_same(void **state)
{
    (void)state;
    struct layers l;
    make(&l, LAYERS, 4);
    l.calls[0].cost.forward_ns = 9000 * ms; /* 11 s; the others 3 s each, 21 s in all */
    struct sl_pipeline pipeline = cut(&l, 3, 4);
    assert_int_equal(pipeline.bounds[1], 1);
    assert_true(pipeline.bounds[2] == 4 || pipeline.bounds[2] == 5);
    make(&l, LAYERS, 16);
    for (int32_t c = 0; c < LAYERS; c++)
        l.calls[c].cost = (struct sl_cost){SL_COST_NONE, 0, 0};
    pipeline = cut(&l, 3, 0);
    assert_true(pipeline.step_ns == 0 && pipeline.chosen && pipeline.pieces == 12);
    for (int32_t s = 0; s < 3; s++)
        assert_true(pipeline.stage_ns[s] == 0);
    assert_int_equal(cut(&l, 4, 0).bounds[2], LAYERS / 2);
    l.graph.pieces = 100;
    assert_int_equal(cut(&l, 3, 0).pieces, 12);
    assert_int_equal(cut(&l, 5, 0).pieces, SL_PIECES_AUTO_MOST);
}

/* Long steps want many pieces; where a step costs as much as starting a call, one is best. */
static void pieces_follow_from_costs(void **state)
{
    (void)state;
    struct layers l;
    make(&l, LAYERS, SL_PIECES_AUTO_MOST);
    assert_int_equal(cut(&l, 4, 0).pieces, SL_PIECES_AUTO_MOST);
    l.graph.pieces = 5; /* as many as the graph has, at most */
    assert_int_equal(cut(&l, 4, 0).pieces, 5);
    l.graph.pieces = SL_PIECES_AUTO_MOST;
    for (int32_t c = 0; c < LAYERS; c++)
        l.calls[c].cost = (struct sl_cost){SL_COST_MEASURED, 1000, 2000};
    assert_int_equal(cut(&l, 4, 0).pieces, 1);
}

static void a_barrier_has_a_price(void **state)
{
    (void)state;
    struct layers l;
    struct sl_pipeline_barrier barriers[2];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t count;
    make(&l, LAYERS, 8);
    l.nodes[4].desc.head.op = SEQLSTM_OP_POOL;
    const struct sl_pipeline pipeline = cut(&l, 4, 8);
    assert_int_equal(sl_pipeline_list_barriers(&l.plan, &pipeline, barriers, 2, &count, &err), SEQLSTM_OK);
    assert_int_equal(count, 1);
    assert_ptr_equal(barriers[0].call, &l.calls[4]);
    assert_int_equal(barriers[0].reason, SL_BARRIER_STEPS);
    assert_true(barriers[0].ns > 1000 * ms);
    l.nodes[4].desc.head.op = SEQLSTM_OP_ACTIVATION;
    assert_close(pipeline.step_ns - barriers[0].ns, cut(&l, 4, 8).step_ns);
}

/* At each place, and of several as many as there is room for; all are counted. */
static void barriers_are_listed_wherever_they_are(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int32_t one = 0; one < LAYERS; one++)
        for (int32_t other = one; other < LAYERS; other++) {
            struct layers l;
            struct sl_pipeline_barrier barriers[2] = {{0}};
            int32_t count;
            make(&l, LAYERS, 8);
            const struct sl_pipeline pipeline = cut(&l, 4, 8);
            l.nodes[one].desc.head.op = l.nodes[other].desc.head.op = SEQLSTM_OP_POOL;
            assert_int_equal(sl_pipeline_list_barriers(&l.plan, &pipeline, barriers, 1, &count, &err), SEQLSTM_OK);
            assert_int_equal(count, 1 + (other > one));
            assert_ptr_equal(barriers[0].call, &l.calls[one]);
            assert_null(barriers[1].call);
            assert_int_equal(sl_pipeline_list_barriers(&l.plan, &pipeline, barriers, 2, &count, &err), SEQLSTM_OK);
            assert_ptr_equal(barriers[other > one].call, &l.calls[other]);
        }
}

/* Of many the first 32 are written, in the table and as JSON. */
static void many_barriers_are_not_all_written(void **state)
{
    (void)state;
    static const int32_t counts[] = {0, 1, 31, 32, 33, MOST};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        static struct layers l;
        int64_t nowhere[MOST + 1];
        const struct sl_pipeline pipeline = {.stages = 1, .pieces = 2, .bounds = {0, MOST}};
        memset(nowhere, 0xff, sizeof nowhere);
        struct sl_buf out = {0};
        int32_t lines = 0;
        make(&l, MOST, 2);
        for (int32_t c = 0; c < counts[i]; c++)
            l.nodes[c].desc.head.op = SEQLSTM_OP_POOL;
        l.plan.tensor_offsets = l.plan.grad_offsets = nowhere;
        sl_pipeline_write_table(&l.plan, &pipeline, &out);
        for (const char *at = sl_buf_text(&out); (at = strstr(at, " runs on all steps at once: ")); at++)
            lines++;
        assert_int_equal(lines, counts[i] < 32 ? counts[i] : 32);
        sl_buf_deinit(&out);
        json_t *json = sl_pipeline_write_json(&l.plan, &pipeline);
        assert_int_equal(json_array_size(json_object_get(json, "barriers")), lines);
        json_decref(json);
    }
}

/* The dearest stage of the best cut of calls [first, LAYERS) into so many stages, by trying all. */
static double try_cuts(const struct layers *l, int32_t first, int32_t stages)
{
    double best = INFINITY, sum = 0;
    for (int32_t end = first + 1; end <= LAYERS; end++) {
        sum += sl_cost_get_ns(&l->calls[end - 1].cost);
        if (stages == 1 ? end == LAYERS : end < LAYERS)
            best = fmin(best, stages == 1 ? sum : fmax(sum, try_cuts(l, end, stages - 1)));
    }
    return best;
}

static void no_cut_is_better(void **state)
{
    (void)state;
    uint32_t random = 5;
    for (int round = 0; round < 60; round++)
        for (int32_t stages = 1; stages <= LAYERS; stages++) {
            struct layers l;
            make(&l, LAYERS, 4);
            for (int32_t c = 0; c < LAYERS; c++) {
                random = random * 1664525u + 1013904223u;
                l.calls[c].cost.forward_ns = (1 + (random >> 8) % 9) * ms;
                l.calls[c].cost.backward_ns = (random >> 20) % 5 * ms;
            }
            const struct sl_pipeline pipeline = cut(&l, stages, 4);
            double dearest = 0;
            assert_int_equal(pipeline.bounds[0], 0);
            assert_int_equal(pipeline.bounds[stages], LAYERS);
            for (int32_t s = 0; s < stages; s++) {
                double sum = 0;
                assert_true(pipeline.bounds[s] < pipeline.bounds[s + 1]);
                for (int32_t c = pipeline.bounds[s]; c < pipeline.bounds[s + 1]; c++)
                    sum += sl_cost_get_ns(&l.calls[c].cost);
                assert_close(pipeline.stage_ns[s], sum);
                dearest = fmax(dearest, sum);
            }
            assert_close(dearest, try_cuts(&l, 0, stages));
        }
}

static void too_many_stages_are_refused(void **state)
{
    (void)state;
    struct layers l;
    struct sl_pipeline pipeline;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    make(&l, 3, 2);
    assert_int_equal(sl_pipeline_make(&l.plan, 4, 2, &pipeline, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "`pipeline: 4` is more than the 3 parts into which the layers can be cut; "
                                     "use `pipeline: 3`");
    l.graph.loop = (struct sl_loop){.first = 0, .count = 2}; /* stays together */
    assert_int_equal(sl_pipeline_make(&l.plan, 3, 2, &pipeline, &err), SEQLSTM_INVALID_CONFIG);
    assert_int_equal(cut(&l, 2, 2).bounds[1], 2);
}

/* However many calls there are. */
static void there_is_a_limit_to_stages(void **state)
{
    (void)state;
    enum { CALLS = SL_STAGES_MOST + 3 };
    static struct sl_call calls[CALLS];
    struct layers l;
    struct sl_pipeline pipeline;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    make(&l, 1, 2);
    for (int32_t c = 0; c < CALLS; c++)
        calls[c] = l.calls[0];
    l.plan.calls = calls;
    l.plan.call_count = CALLS;
    assert_int_equal(sl_pipeline_make(&l.plan, SL_STAGES_MOST + 1, 2, &pipeline, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "`pipeline: 257` is more than the 259 parts into which the layers can be cut; use "
                                     "`pipeline: 256`");
    assert_int_equal(sl_pipeline_make(&l.plan, SL_STAGES_MOST, 2, &pipeline, &err), SEQLSTM_OK);
    for (int32_t s = 0; s < SL_STAGES_MOST; s++)
        assert_in_range(pipeline.bounds[s + 1] - pipeline.bounds[s], 1, 2); /* 3 stages have two of the 259 calls */
    assert_int_equal(pipeline.bounds[SL_STAGES_MOST], CALLS);
}

/* The time of a step from its definition: a stage does one thing at a time, each piece after the one before it and
 * after the stage that hands it on; passing it on takes both sides' time. */
static double define_time(const struct sl_piece_times *t, const struct sl_pipeline *pipeline, double exchange_ns)
{
    const int32_t stages = pipeline->stages, pieces = t->pieces;
    double own[MOST], handed[MOST] = {0}, last = 0;
    for (int32_t s = 0; s < stages; s++) {
        double now = 0;
        for (int32_t c = pipeline->bounds[s]; c < pipeline->bounds[s + 1]; c++)
            now += t->packs[c];
        for (int32_t p = 0; p < pieces; p++) {
            now = fmax(now, handed[p]);
            for (int32_t c = pipeline->bounds[s]; c < pipeline->bounds[s + 1]; c++)
                now += t->forward[c * pieces + p];
            handed[p] = now += s + 1 < stages ? exchange_ns : 0;
        }
        own[s] = now;
    }
    for (int32_t s = stages - 1; s >= 0; s--) {
        double now = own[s];
        for (int32_t p = pieces - 1; p >= 0; p--) {
            now = fmax(now, handed[p]);
            for (int32_t c = pipeline->bounds[s]; c < pipeline->bounds[s + 1]; c++)
                now += t->backward[c * pieces + p];
            handed[p] = now += s > 0 ? exchange_ns : 0;
        }
        for (int32_t c = pipeline->bounds[s]; c < pipeline->bounds[s + 1]; c++)
            now += t->weights[c];
        last = fmax(last, now);
    }
    return last;
}

static void unequal_pieces_take_the_time_of_the_definition(void **state)
{
    (void)state;
    uint32_t random = 3;
    for (int round = 0; round < 50; round++) {
        const int32_t pieces = 1 + round % 5, stages = 1 + round % 4;
        struct layers l;
        struct sl_piece_times times;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        double ns;
        make(&l, LAYERS, pieces);
        assert_int_equal(sl_piece_times_init(&times, LAYERS, pieces, &err), SEQLSTM_OK);
        for (int64_t k = 0; k < times.count; k++) {
            random = random * 1664525u + 1013904223u;
            times.forward[k] = 1 + (random >> 8) % 50;
        }
        struct sl_pipeline pipeline = {.stages = stages, .pieces = 77};
        assert_int_equal(sl_pipeline_cut_times(&l.plan, &times, &pipeline, &err), SEQLSTM_OK);
        assert_int_equal(pipeline.pieces, pieces);
        assert_close(pipeline.step_ns, define_time(&times, &pipeline, 0));
        assert_int_equal(sl_pipeline_simulate_times(&l.plan, &pipeline, &times, 7, &ns, &err), SEQLSTM_OK);
        assert_close(ns, define_time(&times, &pipeline, 7));
        sl_piece_times_deinit(&times);
    }
}

/* A call of all steps at once packs, and makes its weight gradients, in its own time. */
static void a_barrier_has_all_of_its_times(void **state)
{
    (void)state;
    struct layers l;
    struct sl_piece_times times;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double ns;
    make(&l, 3, 2);
    l.nodes[1].desc.head.op = SEQLSTM_OP_POOL;
    assert_int_equal(sl_piece_times_init(&times, 3, 2, &err), SEQLSTM_OK);
    for (int64_t k = 0; k < times.count; k++)
        times.forward[k] = 0;
    times.forward[2] = 100;
    times.backward[2] = 1000;
    times.packs[1] = 10;
    times.weights[1] = 7;
    const struct sl_pipeline pipeline = {.stages = 2, .pieces = 2, .bounds = {0, 1, 3}};
    assert_int_equal(sl_pipeline_simulate_times(&l.plan, &pipeline, &times, 3, &ns, &err), SEQLSTM_OK);
    assert_close(ns, 1117);
    sl_piece_times_deinit(&times);
}

/* Measured times in place of costs: the slow call has a stage of its own, and unequal pieces wait for each other. */
static void measured_times_cut_and_add_up(void **state)
{
    (void)state;
    enum { PIECES = 2 };
    struct layers l;
    struct sl_piece_times times;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    make(&l, 4, PIECES);
    struct sl_pipeline pipeline = cut(&l, 2, PIECES);
    assert_int_equal(pipeline.bounds[1], 2);
    assert_int_equal(sl_piece_times_init(&times, 4, PIECES, &err), SEQLSTM_OK);
    for (int32_t c = 0; c < 4; c++)
        for (int32_t p = 0; p < PIECES; p++)
            times.forward[c * PIECES + p] = times.backward[c * PIECES + p] = (c == 3 ? 3 : 1) * (p + 1);
    times.weights[0] = 5;
    times.packs[0] = 2;
    times.packs[3] = 4;
    assert_int_equal(sl_pipeline_cut_times(&l.plan, &times, &pipeline, &err), SEQLSTM_OK);
    assert_int_equal(pipeline.bounds[1], 3);
    assert_close(pipeline.alone_ns, 36 + 5 + 6);
    assert_close(pipeline.stage_ns[0], 18 + 5 + 2); /* of these times alone, not of the costs that cut it before, too */
    assert_close(pipeline.stage_ns[1], 18 + 4);
    /* forward 2, 3 and 6 on the first stage; the second packs for 4 before the first piece comes at 5, takes 3, waits
     * for the other until 11, takes 6: ends at 17. Backward: the second 6 and 3; the first begins at 23, takes 6 and 3,
     * and 5 for the weights */
    assert_close(pipeline.step_ns, 37);
    double ns;
    assert_int_equal(sl_pipeline_simulate_times(&l.plan, &pipeline, &times, 1, &ns, &err), SEQLSTM_OK);
    assert_close(ns, 40);
    sl_piece_times_deinit(&times);
}

/* A rank touches what its stage reads and writes, what crosses it, and the gradients of its parameters: of four calls
 * in stages of one, two and one, of which the first and the last also share a tensor and a parameter. */
static void a_stage_does_not_touch_the_others_memory(void **state)
{
    (void)state;
    enum { SKIP = 5, PARAM = 6, PARAMS = 3, TENSORS = PARAM + PARAMS, SLOTS = 4 };
    static const int32_t slots[4][SLOTS] = {
        {0, 1, SKIP, PARAM}, {1, 2, -1, -1}, {2, 3, PARAM + 1, -1}, {3, 4, SKIP, PARAM + 2}};
    static const int64_t offsets[TENSORS] = {-1, 0, 0, 0, 0, 0, -1, -1, -1},
                         grads[TENSORS] = {-1, 0, 0, 0, -1, -1, -1, -1, -1};
    static const struct sl_param params[PARAMS] = {{.tensor = PARAM, .rows = 2, .columns = 3},
                                                   {.tensor = PARAM + 1, .rows = 4, .columns = 5},
                                                   {.tensor = PARAM + 2, .rows = 6, .columns = 7}};
    struct layers l;
    make(&l, 4, 2);
    l.graph.tensor_count = TENSORS;
    l.graph.params = params;
    l.graph.param_count = PARAMS;
    l.graph.facts.envelope = (struct sl_envelope){.sequences = 5, .steps = 1, .rows = 5};
    for (int32_t t = 0; t < TENSORS; t++) /* 320 bytes, 640, 960, ... */
        l.tensors[t] = (struct sl_tensor){.name = "t", .axis = SL_AXIS_STEPS, .features = t < SKIP ? 16 * (t + 1) : 16};
    int32_t own[4][SLOTS];
    memcpy(own, slots, sizeof own);
    for (int32_t c = 0; c < 4; c++) {
        l.nodes[c].slots = own[c];
        l.nodes[c].slot_count = SLOTS;
        l.calls[c].sizes.reserve_bytes = 100 * (uint64_t)(c + 1);
    }
    l.nodes[2].desc.head.op = SEQLSTM_OP_POOL; /* of all steps at once: it has one reserve, the others two */
    l.plan.tensor_offsets = offsets;
    l.plan.grad_offsets = grads;
    const struct sl_pipeline pipeline = {.stages = 3, .pieces = 2, .bounds = {0, 1, 3, 4}};
    const int64_t activations[] = {1280 + 320 + 2 * 128, 1280 + 1920 + 2560 + 320 + 2 * 256 + 320,
                                   2560 + 1600 + 320 + 2 * 448};
    int64_t gradients[] = {80 + 168, 24 + 168, 24 + 80}; /* of the other stages */
    l.plan.memory.activations_bytes = 20000;
    l.plan.memory.gradients_bytes = 1000;
    for (int32_t s = 0; s < 3; s++)
        assert_int_equal(sl_pipeline_count_untouched(&l.plan, &pipeline, s), 20000 - activations[s] + gradients[s]);
    own[0][3] = PARAM + 2; /* shared; no call uses the first one */
    gradients[0] = 24 + 80;
    for (int32_t s = 0; s < 3; s++)
        assert_int_equal(sl_pipeline_count_untouched(&l.plan, &pipeline, s), 20000 - activations[s] + gradients[s]);
    l.plan.memory.activations_bytes = 6000; /* no less than nothing, and no more than there is */
    l.plan.memory.gradients_bytes = 110;
    assert_int_equal(sl_pipeline_count_untouched(&l.plan, &pipeline, 0), 6000 - activations[0] + 104);
    assert_int_equal(sl_pipeline_count_untouched(&l.plan, &pipeline, 1), 110);
    assert_int_equal(sl_pipeline_count_untouched(&l.plan, &pipeline, 2), 6000 - activations[2] + 104);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_layers_take_the_time_of_the_formula),
        cmocka_unit_test(stages_cost_about_the_same),
        cmocka_unit_test(pieces_follow_from_costs),
        cmocka_unit_test(a_barrier_has_a_price),
        cmocka_unit_test(barriers_are_listed_wherever_they_are),
        cmocka_unit_test(many_barriers_are_not_all_written),
        cmocka_unit_test(no_cut_is_better),
        cmocka_unit_test(too_many_stages_are_refused),
        cmocka_unit_test(there_is_a_limit_to_stages),
        cmocka_unit_test(unequal_pieces_take_the_time_of_the_definition),
        cmocka_unit_test(a_barrier_has_all_of_its_times),
        cmocka_unit_test(a_stage_does_not_touch_the_others_memory),
        cmocka_unit_test(measured_times_cut_and_add_up),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
