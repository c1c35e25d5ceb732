/* SPDX-License-Identifier: Apache-2.0 */
/* Every gradient of whole models against central differences of the loss, and their sums: accumulation, tied matrices,
 * the scale of the loss, weights. */
#include "exec_cases.h"
#include "exec_gradients.h"
#include "oom.h"

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
    const size_t bytes = (size_t)w.params->elems * sizeof(float);
    float *once = malloc(bytes);
    memcpy(once, w.params->grads, bytes);
    run(&w, batch, true); /* where gradients are accumulated, nothing is overwritten */
    for (int32_t v = 0; v < w.params->view_count; v++)
        for (int64_t e = 0; e < w.params->views[v].elems; e++) {
            const int64_t at = w.params->views[v].offset_elems + e;
            if (once[at] < 1000)
                assert_true(fabsf(w.params->grads[at] - 2 * once[at]) <= 1e-5f * (1 + fabsf(once[at])));
        }
    free(once);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* The scale of the loss, which float16 needs, changes no update: penalties and clip_value are scaled with it, and the
 * norm that is reported is that without it. */
static void an_update_does_not_depend_on_the_scale_of_the_loss(void **state)
{
    (void)state;
    static const char layers[] =
        "model: [{type: dense, units: 3, kernel_regularizer: {l1: 0.1, l2: 0.2}, bias_regularizer: {l2: 0.3}}]\n"
        "train: {loss: mse, epochs: 1, clip_value: 0.5, optimizer: {type: sgd, learning_rate: 0.1}}";
    struct sl_data_facts facts = values_facts(3, true, 3);
    struct sl_batch *batch = make_batch(&facts);
    struct world worlds[3]; /* the third one skips its update */
    double squares[3];
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
        squares[k] = result.squares;
        free(before);
    }
    assert_true(squares[0] > 0 && fabs(squares[1] - squares[0]) <= 1e-5 * squares[0]);
    assert_true(fabs(squares[2] - squares[0]) <= 1e-5 * squares[0]);
    for (int64_t e = 0; e < worlds[0].params->elems; e++)
        assert_true(fabsf(worlds[0].params->values[e] - worlds[1].params->values[e]) <= 1e-6f);
    sl_batch_destroy(batch);
    for (int k = 0; k < 3; k++)
        close_world(&worlds[k]);
}

/* Without an update they stay scaled: those of several batches are added before they are unscaled. 0 is 1. */
static void the_scale_of_the_loss_is_that_of_the_gradients(void **state)
{
    (void)state;
    static const double scales[] = {0, 1, 8, 0.5};
    struct sl_data_facts facts = values_facts(3, true, 3);
    struct sl_batch *batch = make_batch(&facts);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct world w;
    open_world(&w, data_values, "model: [{type: dense, units: 3}]\ntrain: {loss: mse, epochs: 1}", &facts, true);
    const double loss = run(&w, batch, false);
    float once[12];
    assert_true(w.params->elems >= 12);
    memcpy(once, w.params->grads, sizeof once);
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        const struct sl_exec_step step = {.epoch = 3, .normaliser = 1, .loss_scale = scales[k]};
        const float factor = scales[k] > 0 ? (float)scales[k] : 1;
        struct sl_exec_result result;
        ok(sl_exec_run(w.exec, batch, &step, &result, &err), &err);
        assert_true(result.loss_sum == loss);
        for (int e = 0; e < 12; e++)
            assert_true(w.params->grads[e] == factor * once[e]);
    }
    assert_true(once[0] != 0);
    sl_batch_destroy(batch);
    close_world(&w);
}

/* Where classes are values, a row weighs its own weight times that of its class: one of weight 0 does not count. */
static void rows_of_weighted_classes(void **state)
{
    (void)state;
    static const char layers[] = "model: [{type: dense, units: 1, activation: sigmoid}]\n"
                                 "train: {loss: binary_cross_entropy, epochs: 1, class_weight: {b: 3}}";
    static const float classes[] = {0.5f, 3};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_data_facts facts = values_facts(3, true, 1);
    facts.has_weight = true;
    facts.target.classes = 2;
    struct world w;
    open_world(&w, data_values, layers, &facts, true);
    sl_exec_destroy(w.exec);
    w.exec = NULL;
    const struct sl_exec_request request = {.plan = w.plan, .params = w.params, .seed = 5, .class_weights = classes};
    ok(sl_exec_create(&request, &w.exec, &err), &err);
    struct sl_batch *batch = make_batch(&facts);
    float *values = (float *)batch->target.values, *weights = (float *)batch->weight.values;
    double sum = 0;
    for (int r = 0; r < R; r++) {
        values[r] = r % 3 == 0;
        weights[r] = r % 2 ? 0 : 0.25f * (float)(r + 1);
        sum += (double)weights[r] * (double)classes[r % 3 == 0];
    }
    assert_true(fabs(sl_exec_weigh(w.exec, batch) - sum) <= 1e-6 * sum);
    const double loss = run(&w, batch, false);
    for (int r = 1; r < R; r += 2)
        values[r] = 1 - values[r];
    assert_true(loss > 0 && run(&w, batch, false) == loss);
    values[0] = 1 - values[0];
    assert_true(run(&w, batch, false) != loss);
    sl_batch_destroy(batch);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_match_differences),
        cmocka_unit_test(accumulation_adds_gradients),
        cmocka_unit_test(a_bias_beside_a_shared_matrix_is_overwritten),
        cmocka_unit_test(an_update_does_not_depend_on_the_scale_of_the_loss),
        cmocka_unit_test(the_scale_of_the_loss_is_that_of_the_gradients),
        cmocka_unit_test(rows_of_weighted_classes),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
