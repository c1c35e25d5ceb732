/* SPDX-License-Identifier: Apache-2.0 */
/* Costs that nothing measures: what a backend is asked, for each profile of the data, and what is made of its answers;
 * and the guess, by plain numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/operation/op_signature.h"
#include "dispatch/cost/estimate.h"
#include "ok.h"
#include "oom.h"

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend);

static struct {
    struct seqlstm_cost answers[2];
    seqlstm_status statuses[2];
    struct seqlstm_bind binds[2];
    struct seqlstm_axis axes[2];
    int asked;
} lab;

static seqlstm_status estimate(const struct seqlstm_op *op, const struct seqlstm_bind *bind, struct seqlstm_cost *cost,
                               struct seqlstm_error *err)
{
    (void)op, (void)err;
    const int k = lab.asked++;
    assert_true(k < 2);
    lab.binds[k] = *bind;
    lab.axes[k] = *bind->axis;
    cost->forward_ns = lab.answers[k].forward_ns;
    cost->backward_ns = lab.answers[k].backward_ns;
    return lab.statuses[k];
}

static struct seqlstm_backend table = {.struct_size = sizeof table, .id = "made-up", .estimate = estimate};

const struct seqlstm_backend *__wrap_sl_backend_get_table(const struct sl_backend *backend)
{
    (void)backend;
    return &table;
}

/* Two profiles: a quarter of the batches have 3 sequences of which one is empty, the others 2 that are longer. */
static int32_t few[] = {4, 2, 0}, more[] = {5, 3};
static const struct sl_profiles profiles = {
    .items = {{.sequences = 3, .lengths = few, .weight = 0.25}, {.sequences = 2, .lengths = more, .weight = 0.75}},
    .count = 2,
    .stream = true};

enum { ON_STEPS, ON_SEQUENCES };
static struct sl_tensor tensors[] = {{.name = "x", .axis = SL_AXIS_STEPS}, {.name = "s", .axis = SL_AXIS_SEQUENCES}};
static const struct sl_graph graph = {.tensors = tensors, .tensor_count = 2};

static struct sl_node make_node(int32_t tensor, bool backward)
{
    static int32_t slots[2][4] = {{ON_STEPS, -1, -1, -1}, {ON_SEQUENCES, -1, -1, -1}};
    return (struct sl_node){.name = "n", .slots = slots[tensor], .slot_count = 4, .needs_backward = backward};
}

static union seqlstm_any_desc make_desc(uint32_t op)
{
    union seqlstm_any_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.head.struct_size = sl_op_desc_bytes(op);
    desc.head.op = op;
    desc.head.mode = SEQLSTM_MODE_INFERENCE;
    desc.head.max_rows = desc.head.max_sequences = desc.head.max_steps = 100;
    if (op == SEQLSTM_OP_EMBEDDING) {
        desc.embedding.vocabulary = 7;
        desc.embedding.features = 5;
    } else {
        desc.dense.input = 3;
        desc.dense.output = 2;
        desc.dense.options = SEQLSTM_BIT_DENSE_USE_BIAS;
    }
    return desc;
}

/* 2000 ns for the call, 20 products and sums and 5 bytes in each nanosecond; twice as much for backward. */
static double guess_dense(double rows)
{
    return 2000 + 2 * (6 + 2) * rows / 20 + 4 * ((3 + 2) * rows + 6 + 2) / 5;
}

static void answer(double forward0, double backward0, double forward1, double backward1)
{
    memset(&lab, 0, sizeof lab);
    lab.answers[0].forward_ns = forward0;
    lab.answers[0].backward_ns = backward0;
    lab.answers[1].forward_ns = forward1;
    lab.answers[1].backward_ns = backward1;
}

static struct sl_cost ask(int32_t tensor, bool backward)
{
    const union seqlstm_any_desc desc = make_desc(SEQLSTM_OP_DENSE);
    const struct sl_candidate candidate = {.variant = ""};
    const struct sl_node node = make_node(tensor, backward);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_cost cost = {.source = SL_COST_NONE};
    ok(sl_cost_estimate(&graph, &node, &desc, &candidate, &profiles, &cost, &err), &err);
    return cost;
}

/* Each profile counts by its weight; backward only where it runs. */
static void an_estimate_is_that_of_the_mean_batch(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++)
        for (int32_t tensor = ON_STEPS; tensor <= ON_SEQUENCES; tensor++) {
            answer(1000, 400, 3000, 800);
            const struct sl_cost cost = ask(tensor, backward);
            assert_int_equal(cost.source, SL_COST_ESTIMATE);
            assert_true(cost.forward_ns == 2500);
            assert_true(cost.backward_ns == (backward ? 700 : 0));
            assert_int_equal(lab.asked, 2);
            for (int k = 0; k < 2; k++) {
                static const int64_t rows[2][2] = {{6, 8}, {3, 2}}, steps[2] = {4, 5};
                assert_int_equal(lab.binds[k].flags, tensor == ON_STEPS ? 0 : SEQLSTM_BIT_BIND_ON_SEQUENCES);
                assert_int_equal(lab.binds[k].rows, rows[tensor][k]);
                assert_int_equal(lab.binds[k].rows_in, rows[tensor][k]);
                assert_int_equal(lab.binds[k].t0, 0);
                assert_int_equal(lab.binds[k].t1, tensor == ON_STEPS ? steps[k] : 1);
                assert_int_equal(lab.axes[k].rows, rows[tensor][k]);
                assert_true(lab.axes[k].flags & SEQLSTM_BIT_AXIS_STREAM);
            }
        }
}

/* One answer that is none is enough for the guess. */
static void what_is_no_time_is_not_used(void **state)
{
    (void)state;
    static const double wrong[][4] = {{-1, 4, 3, 8},       {1, -4, 3, 8},       {1, 4, -3, 8}, {1, 4, 3, -8},
                                      {INFINITY, 4, 3, 8}, {1, 4, 3, INFINITY}, {1, NAN, 3, 8}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong + 2; k++) {
        const bool fails = k >= sizeof wrong / sizeof *wrong;
        const double *row = wrong[fails ? 0 : k];
        answer(fails ? 1 : row[0], row[1], row[2], row[3]);
        if (fails)
            lab.statuses[k - sizeof wrong / sizeof *wrong] = SEQLSTM_UNSUPPORTED;
        const struct sl_cost cost = ask(ON_STEPS, true);
        assert_int_equal(cost.source, SL_COST_GUESS);
        assert_true(fabs(cost.forward_ns - guess_dense(7.5)) < 1e-6);
    }
    answer(0, 0, 0, 0); /* no time at all is a time */
    assert_int_equal(ask(ON_STEPS, true).source, SL_COST_ESTIMATE);
    table.estimate = NULL;
    assert_int_equal(ask(ON_STEPS, true).source, SL_COST_GUESS);
    table.estimate = estimate;
}

static void a_guess_counts_products_and_bytes(void **state)
{
    (void)state;
    for (int backward = 0; backward < 2; backward++)
        for (int32_t tensor = ON_STEPS; tensor <= ON_SEQUENCES; tensor++) {
            const double rows = tensor == ON_STEPS ? 0.25 * 6 + 0.75 * 8 : 0.25 * 3 + 0.75 * 2;
            const union seqlstm_any_desc dense = make_desc(SEQLSTM_OP_DENSE), words = make_desc(SEQLSTM_OP_EMBEDDING);
            const struct sl_node node = make_node(tensor, backward);
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_cost cost;
            ok(sl_cost_guess(&graph, &node, &dense, &profiles, &cost, &err), &err);
            assert_int_equal(cost.source, SL_COST_GUESS);
            assert_true(fabs(cost.forward_ns - guess_dense(rows)) < 1e-6);
            assert_true(cost.backward_ns == (backward ? 2 * cost.forward_ns : 0));
            ok(sl_cost_guess(&graph, &node, &words, &profiles, &cost, &err), &err); /* a table is only read */
            assert_true(fabs(cost.forward_ns - (2000 + 4 * ((1 + 5) * rows + 35) / 5)) < 1e-6);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_estimate_is_that_of_the_mean_batch),
        cmocka_unit_test(what_is_no_time_is_not_used),
        cmocka_unit_test(a_guess_counts_products_and_bytes),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
