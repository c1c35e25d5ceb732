/* SPDX-License-Identifier: Apache-2.0 */
/* Updates against plain loops, with penalties, a limit and a scale of the loss, of a model of which a layer is frozen:
 * as a whole, and by stages that own every other parameter. */
#include "exec_world.h"
#include "oom.h"

enum { B = 3, FEATURES = 2, VIEWS_MOST = 16, ELEMS_MOST = 256 };

static const char data[] = "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\n";
static const char layers[] =
    "model: [{type: dense, name: a, units: 5, kernel_regularizer: {l1: 0.1, l2: 0.2}, bias_regularizer: {l2: 0.3}},"
    " {type: dense, name: frozen, units: 4, trainable: false, kernel_regularizer: {l1: 0.5, l2: 0.25}},"
    " {type: dense, name: out, units: 2, kernel_regularizer: {l1: 0.3}}]\n"
    "train: {loss: mse, epochs: 1, clip_value: 0.5, optimizer: {type: sgd, learning_rate: 0.1}}";
static const struct sl_data_facts facts = {.input = {.kind = SL_FIELD_VALUES, .features = FEATURES},
                                           .target = {.kind = SL_FIELD_VALUES, .features = 2},
                                           .envelope = {.sequences = B}};

/* What a run with this scale leaves, before and after. */
struct kept {
    float values[ELEMS_MOST], grads[ELEMS_MOST];
};

static void keep(const struct world *w, struct kept *kept)
{
    assert_true(w->params->elems <= ELEMS_MOST && w->params->view_count <= VIEWS_MOST);
    memcpy(kept->values, w->params->values, (size_t)w->params->elems * sizeof(float));
    memcpy(kept->grads, w->params->grads, (size_t)w->params->elems * sizeof(float));
}

/* Gradients from a run, and such as no run makes in what is frozen. */
static void open_run(struct world *w, double loss_scale, struct kept *before)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = B,
                                         .input_kind = SL_FIELD_VALUES,
                                         .input_features = FEATURES,
                                         .target_kind = SL_FIELD_VALUES,
                                         .target_features = 2};
    struct sl_batch *batch;
    open_world(w, data, layers, &facts, false);
    ok(sl_batch_create(&shape, &batch, &err), &err);
    for (int i = 0; i < B * 2; i++) {
        ((float *)(uintptr_t)batch->input.values)[i] = number((uint64_t)i);
        ((float *)(uintptr_t)batch->target.values)[i] = number(50 + (uint64_t)i);
    }
    const struct sl_exec_step step = {.normaliser = 1.0, .loss_scale = loss_scale};
    struct sl_exec_result result;
    ok(sl_exec_run(w->exec, batch, &step, &result, &err), &err);
    sl_batch_destroy(batch);
    for (int64_t e = w->params->trainable_elems; e < w->params->elems; e++)
        w->params->grads[e] = 3;
    keep(w, before);
}

static double plain_gradient(const struct sl_param_view *view, const struct kept *before, int64_t e, double loss_scale)
{
    const double value = (double)before->values[e], sign = value > 0 ? 1 : value < 0 ? -1 : 0;
    const double grad =
        (double)before->grads[e] / loss_scale + view->regularizer.l1 * sign + 2 * view->regularizer.l2 * value;
    return fmin(fmax(grad, -0.5), 0.5);
}

/* Returns the sum of squares. */
static double expect_updated(const struct world *w, const struct kept *before, double loss_scale)
{
    double squares = 0;
    for (int32_t v = 0; v < w->params->view_count; v++) {
        const struct sl_param_view *view = &w->params->views[v];
        for (int64_t e = view->offset_elems; e < view->offset_elems + view->elems; e++) {
            const double grad = view->trainable ? plain_gradient(view, before, e, loss_scale) : 0;
            const double expected = (double)before->values[e] - 0.1 * grad;
            if (!(fabs((double)w->params->values[e] - expected) <= 1e-6))
                fail_msg("%s: element %d is %g, expected %g", view->name, (int)(e - view->offset_elems),
                         (double)w->params->values[e], expected);
            if (!view->trainable)
                assert_true(w->params->grads[e] == before->grads[e]);
            squares += grad * grad;
        }
    }
    return squares;
}

static void whole_updates(void **state)
{
    (void)state;
    for (double loss_scale = 1; loss_scale <= 8; loss_scale *= 8) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct kept before;
        struct world w;
        double squares = 0;
        open_run(&w, loss_scale, &before);
        const struct sl_exec_update skipped = {.count = 1, .learning_rate = 0.1, .skip = true};
        const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
        ok(sl_exec_update(w.exec, &skipped, &squares, &err), &err);
        assert_memory_equal(before.values, w.params->values, (size_t)w.params->elems * sizeof(float));
        memcpy(w.params->grads, before.grads, (size_t)w.params->elems * sizeof(float));
        const uint64_t version = w.params->version;
        ok(sl_exec_update(w.exec, &update, &squares, &err), &err); /* the next one is made */
        assert_true(w.params->version != version);
        const double expected = expect_updated(&w, &before, loss_scale);
        assert_true(fabs(squares - expected) <= 1e-5 * expected && expected > 0.1);
        close_world(&w);
    }
}

/* Two stages, one after the other, own every other parameter. */
static void updates_by_stages(void **state)
{
    (void)state;
    for (double loss_scale = 1; loss_scale <= 8; loss_scale *= 8) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct kept before;
        struct world w;
        bool owned[2][VIEWS_MOST] = {{false}};
        double squares[2][VIEWS_MOST], sum = 0, last = 0;
        open_run(&w, loss_scale, &before);
        for (int32_t v = 0; v < w.params->view_count; v++)
            owned[v % 2][v] = true;
        const struct sl_exec_update update = {.count = 1, .learning_rate = 0.1};
        for (int stage = 0; stage < 2; stage++)
            ok(sl_exec_begin_owned(w.exec, &update, owned[stage], squares[stage], &err), &err);
        for (int32_t v = 0; v < w.params->view_count; v++) {
            assert_true(squares[1 - v % 2][v] == 0);
            assert_int_equal(squares[v % 2][v] > 0, w.params->views[v].trainable);
            sum += squares[v % 2][v];
        }
        const uint64_t version = w.params->version;
        for (int stage = 0; stage < 2; stage++)
            ok(sl_exec_finish_owned(w.exec, owned[stage], sum, &last, &err), &err);
        assert_true(w.params->version != version); /* what was packed is old */
        const double expected = expect_updated(&w, &before, loss_scale);
        assert_true(fabs(last - expected) <= 1e-5 * expected);
        close_world(&w);
    }
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

static const char averaged[] =
    "model: [{type: dense, name: a, units: 5}, {type: dense, name: b, units: 4, activation: tanh},"
    " {type: dense, name: out, units: 2}]\ntrain: {loss: mse, epochs: 1, optimizer: ";

/* Two updates, the second one with smaller gradients. `stages` 0: as a whole. */
static void update_twice(struct world *w, const char *optimizer, int stages)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char layers_text[512];
    double squares[VIEWS_MOST], sum = 0;
    snprintf(layers_text, sizeof layers_text, "%s%s}", averaged, optimizer);
    open_world(w, data, layers_text, &facts, false);
    for (uint64_t count = 1; count <= 2; count++) {
        const struct sl_exec_update update = {.count = count, .learning_rate = 0.1};
        for (int64_t e = 0; e < w->params->elems; e++)
            w->params->grads[e] = number((uint64_t)e) / (float)(count * count);
        if (stages == 0)
            ok(sl_exec_update(w->exec, &update, &sum, &err), &err);
        for (int stage = 0; stage < stages; stage++) {
            bool owned[VIEWS_MOST] = {false};
            for (int32_t v = 0; v < w->params->view_count; v++)
                owned[v] = v % stages == stage;
            ok(sl_exec_begin_owned(w->exec, &update, owned, squares, &err), &err);
            ok(sl_exec_finish_owned(w->exec, owned, 1, &sum, &err), &err);
        }
    }
}

/* Each of the states of an optimizer, as far as it has some. */
static void stages_update_the_states_of_what_they_own(void **state)
{
    (void)state;
    static const struct {
        const char *optimizer;
        int32_t states;
    } rows[] = {{"{type: momentum}", 1},
                {"{type: adam}", 2},
                {"{type: adam, amsgrad: true}", 3},
                {"{type: rmsprop, centered: true, momentum: 0.5}", 3},
                {"{type: adadelta}", 2}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int stages = 1; stages <= 3; stages++) {
            struct world whole, parts;
            world_states = rows[k].states;
            update_twice(&whole, rows[k].optimizer, 0);
            update_twice(&parts, rows[k].optimizer, stages);
            const size_t bytes = (size_t)whole.params->elems * sizeof(float);
            assert_memory_equal(whole.params->values, parts.params->values, bytes);
            for (int s = 0; s < rows[k].states; s++)
                if (memcmp(whole.params->states[s], parts.params->states[s], bytes) != 0)
                    fail_msg("%s by %d stages: other bits in state %d", rows[k].optimizer, stages, s + 1);
            close_world(&whole);
            close_world(&parts);
            world_states = 2;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_updates),
        cmocka_unit_test(updates_by_stages),
        cmocka_unit_test(stages_update_the_states_of_what_they_own),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
