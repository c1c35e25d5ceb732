/* SPDX-License-Identifier: Apache-2.0 */
/* Units: which calls of a plan run as one, for plans of calls on steps, on whole sequences, on the source and in loops,
 * some of which begin with the states that another one has at its end; and what that means for stages. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ok.h"
#include "oom.h"

#include "dispatch/stages/pipeline.h"

enum { CALLS = 6, TENSORS = 3 * CALLS, STATE_SLOTS = SEQLSTM_SLOT_RECURRENT_STATES + 4 };
enum { FIRST_STATE = SEQLSTM_SLOT_RECURRENT_STATES, LAST_STATE = FIRST_STATE + 2 };

/* Calls of a letter each: s on the steps, a and m there, too, an activation and an embedding, w on all steps at once, e
 * on those of the source, l in the loop. */
struct row {
    struct sl_tensor tensors[TENSORS];
    struct sl_node nodes[CALLS];
    int32_t slots[CALLS][STATE_SLOTS];
    struct sl_call calls[CALLS];
    struct sl_graph graph;
    struct sl_plan plan;
};

/* `handed`: pairs of calls, of which the second begins with the last state of the first. */
static void make(struct row *r, const char *letters, const char *handed, int32_t pieces)
{
    const int32_t count = (int32_t)strlen(letters);
    *r =
        (struct row){.graph = {.tensors = r->tensors, .tensor_count = TENSORS, .nodes = r->nodes, .node_count = count}};
    r->graph.pieces = pieces;
    const char *loop = strchr(letters, 'l');
    if (loop)
        r->graph.loop = (struct sl_loop){.first = (int32_t)(loop - letters), .count = (int32_t)strspn(loop, "l")};
    for (int32_t c = 0; c < count; c++) {
        const enum sl_axis axis = letters[c] == 'e' ? SL_AXIS_SOURCE_STEPS : SL_AXIS_STEPS;
        memset(r->slots[c], -1, sizeof r->slots[c]);
        r->slots[c][SEQLSTM_SLOT_RECURRENT_X] = c;
        r->slots[c][SEQLSTM_SLOT_RECURRENT_Y] = CALLS + c;
        r->tensors[c] = r->tensors[CALLS + c] = (struct sl_tensor){.axis = axis};
        r->tensors[2 * CALLS + c] = (struct sl_tensor){.axis = SL_AXIS_SEQUENCES, .role = SL_TENSOR_STATE_OUT};
        r->nodes[c] = (struct sl_node){.layer = c, .slots = r->slots[c], .slot_count = STATE_SLOTS};
        r->nodes[c].desc.head.op = letters[c] == 'w'   ? SEQLSTM_OP_POOL
                                   : letters[c] == 'a' ? SEQLSTM_OP_ACTIVATION
                                   : letters[c] == 'm' ? SEQLSTM_OP_EMBEDDING
                                                       : SEQLSTM_OP_RECURRENT;
        if (r->nodes[c].desc.head.op == SEQLSTM_OP_RECURRENT)
            r->nodes[c].desc.recurrent.options = SEQLSTM_BIT_RECURRENT_STEPWISE;
        r->calls[c] = (struct sl_call){.node = &r->nodes[c], .node_first = c, .node_count = 1};
    }
    for (; *handed; handed += 2) {
        const int32_t from = handed[0] - '0', to = handed[1] - '0';
        r->slots[from][LAST_STATE] = r->slots[to][FIRST_STATE] = 2 * CALLS + from;
    }
    r->plan = (struct sl_plan){.graph = &r->graph, .calls = r->calls, .call_count = count};
}

/* "0-2p 2-3": the first two calls piece by piece, then the third one. */
static const char *list_units(const struct row *r)
{
    static char text[64];
    int at = 0;
    for (int32_t c = 0; c < r->plan.call_count; c++) {
        const struct sl_unit unit = sl_plan_find_unit(&r->graph, r->calls, r->plan.call_count, c);
        assert_true(unit.first <= c && c < unit.end);
        if (unit.first == c)
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%d-%d%s", c ? " " : "", (int)unit.first,
                           (int)unit.end, unit.pieced ? "p" : "");
    }
    return text;
}

static void calls_run_as_one_until_one_waits_for_another(void **state)
{
    static const struct {
        const char *letters, *handed, *units;
    } rows[] = {
        {"ssss", "", "0-4p"},
        {"sswss", "", "0-2p 2-3 3-5p"},
        {"swws", "", "0-1p 1-2 2-3 3-4p"},
        {"slls", "", "0-1p 1-3 3-4p"},
        {"llws", "", "0-2 2-3 3-4p"},
        {"eess", "", "0-1 1-2 2-4p"},
        {"ss", "01", "0-1p 1-2p"},
        {"ssss", "02", "0-2p 2-4p"}, /* not only for the one before it */
        {"ssss", "03", "0-3p 3-4p"},
        {"ssss", "0123", "0-1p 1-3p 3-4p"},
        {"ssssss", "1235", "0-2p 2-5p 5-6p"},
        {"ssss", "0213", "0-2p 2-4p"}, /* what is in an earlier unit has ended */
        {"sssss", "0214", "0-2p 2-5p"},
        {"lls", "01", "0-2 2-3p"}, /* a loop waits for nothing */
        {"ssss", "0102", "0-1p 1-4p"},
        {"sssss", "0204", "0-2p 2-5p"}, /* readers of one state wait for its writer */
        {"ssss", "010213", "0-1p 1-3p 3-4p"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct row r;
        make(&r, rows[i].letters, rows[i].handed, 3);
        if (strcmp(list_units(&r), rows[i].units) != 0)
            fail_msg("%s, states %s: `%s`, expected `%s`", rows[i].letters, rows[i].handed, list_units(&r),
                     rows[i].units);
    }
}

/* States that come from outside are there already; and without pieces each call runs alone. */
static void states_from_outside_are_not_waited_for(void **state)
{
    struct row r;
    (void)state;
    make(&r, "sss", "0112", 2);
    assert_string_equal(list_units(&r), "0-1p 1-2p 2-3p");
    r.tensors[2 * CALLS].role = SL_TENSOR_STATE_IN;
    assert_string_equal(list_units(&r), "0-2p 2-3p");
    make(&r, "slls", "03", 0);
    assert_string_equal(list_units(&r), "0-1 1-3 3-4");
}

static struct sl_pipeline cut(const struct row *r, int32_t stages, int32_t pieces)
{
    struct sl_pipeline pipeline;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    ok(sl_pipeline_make(&r->plan, stages, pieces, &pipeline, &err), &err);
    return pipeline;
}

/* Wherever the loop is, it is in one stage, even where equal halves would divide it. */
static void a_loop_is_never_divided(void **state)
{
    (void)state;
    for (int32_t first = 0; first < CALLS; first++)
        for (int32_t count = 2; first + count <= CALLS; count++)
            for (int32_t stages = 1; stages <= CALLS - count + 1; stages++) {
                char letters[CALLS + 1] = "ssssss";
                struct row r;
                memset(letters + first, 'l', (size_t)count);
                make(&r, letters, "", 2);
                for (int32_t c = 0; c < CALLS; c++) /* the dearest where the loop is */
                    r.calls[c].cost = (struct sl_cost){SL_COST_MEASURED, letters[c] == 'l' ? 9e6 : 1e6, 0};
                const struct sl_pipeline pipeline = cut(&r, stages, 2);
                double sum = 0;
                assert_true(pipeline.bounds[0] == 0 && pipeline.bounds[stages] == CALLS);
                for (int32_t s = 0; s < stages; s++) {
                    assert_true(pipeline.bounds[s] < pipeline.bounds[s + 1]);
                    if (pipeline.bounds[s] > first && pipeline.bounds[s] < first + count)
                        fail_msg("%s in %d stages: one begins with call %d", letters, (int)stages,
                                 (int)pipeline.bounds[s]);
                    sum += pipeline.stage_ns[s];
                }
                assert_true(fabs(sum - pipeline.alone_ns) <= 1e-9 * sum);
            }
}

static void set_costs(struct row *r)
{
    for (int32_t c = 0; c < r->plan.call_count; c++) /* 4 s and 8 s: so much that the price of a piece does not count */
        r->calls[c].cost = (struct sl_cost){SL_COST_MEASURED, 4e9, 8e9};
}

static void assert_seconds(double ns, double expected)
{
    if (!(fabs(ns * 1e-9 - expected) <= 1e-3))
        fail_msg("%g s, not %g", ns * 1e-9, expected);
}

/* Two stages of a call each and four pieces, of which the first one has what the second begins with: that waits for all
 * pieces, where it would wait for the first one otherwise. */
static void a_stage_that_waits_for_states_costs_time(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct row r;
        make(&r, "ss", waits ? "01" : "", 4);
        set_costs(&r);
        /* pieces of 1 s forward and backward; weight gradients take 4 s at the end, those of the second stage beside
         * the pieces of the first */
        assert_seconds(cut(&r, 2, 4).step_ns, waits ? 4 + 4 + 4 + 4 + 4 : 5 + 5 + 4);
    }
}

/* Weight gradients follow the last piece: half of backward, all of it where rows are looked up, none without weights.
 */
static void what_follows_the_last_piece_depends_on_the_operation(void **state)
{
    static const struct {
        const char *letters;
        double seconds; /* the second stage hands pieces back every 2 s, from 7 s on */
    } rows[] = {{"sa", 13 + 1 + 4}, {"ma", 13 + 8}, {"aa", 13 + 2}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct row r;
        make(&r, rows[i].letters, "", 4);
        set_costs(&r);
        assert_seconds(cut(&r, 2, 4).step_ns, rows[i].seconds);
    }
}

/* What a call on all steps adds is what the step takes with one on each piece in its place, whatever waits before it.
 */
static void a_barrier_costs_what_it_adds(void **state)
{
    static const char *const pairs[][3] = {{"ssw", "ssa", ""},
                                           {"ssw", "ssa", "01"},
                                           {"swss", "sass", "23"},
                                           {"wss", "ass", "12"},
                                           {"sswss", "ssass", "0134"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct row r, without;
        struct sl_pipeline_barrier barrier;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        int32_t count;
        make(&r, pairs[i][0], pairs[i][2], 4);
        make(&without, pairs[i][1], pairs[i][2], 4);
        set_costs(&r);
        set_costs(&without);
        const struct sl_pipeline pipeline = cut(&r, 3, 4);
        double open;
        ok(sl_pipeline_list_barriers(&r.plan, &pipeline, &barrier, 1, &count, &err), &err);
        ok(sl_pipeline_simulate(&without.plan, &pipeline, -1, &open, &err), &err);
        assert_int_equal(count, 1);
        assert_seconds(barrier.ns, (pipeline.step_ns - open) * 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_run_as_one_until_one_waits_for_another),
        cmocka_unit_test(states_from_outside_are_not_waited_for),
        cmocka_unit_test(a_loop_is_never_divided),
        cmocka_unit_test(a_stage_that_waits_for_states_costs_time),
        cmocka_unit_test(what_follows_the_last_piece_depends_on_the_operation),
        cmocka_unit_test(a_barrier_costs_what_it_adds),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
