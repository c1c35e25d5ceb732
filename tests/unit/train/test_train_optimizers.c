/* SPDX-License-Identifier: Apache-2.0 */
/* Every optimizer of the model file, from its YAML through graph, plan and executor, against its equation in float64;
 * and what the trainer builds on the vector operations: regularisers, limits, averages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"

#include "base/value/buf.h"
#include "dispatch/planner.h"
#include "dispatch/plan/plan.h"
#include "exec/exec.h"
#include "model/yaml/diagnostics.h"
#include "train/average.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_model *model;
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_params *params;
    struct sl_exec *exec;
};

static void open_world(struct world *w, const char *layer, const char *train)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[2048];
    memset(w, 0, sizeof *w);
    snprintf(text, sizeof text,
             "seqlstm: 1\ndata: {type: npy, train: {x: a, y: b}}\nmodel:\n"
             "  - {type: dense, units: 2%s}\n"
             "train: {loss: mse, epochs: 1, %s}\nbackends: [reference]\n",
             layer, train);
    ok(sl_diagnostics_create(&w->diagnostics, &err), &err);
    struct sl_model_request request = {.path = "m.yaml"};
    if (sl_model_load_text("m.yaml", text, strlen(text), &request, w->diagnostics, &w->model, &err) != SEQLSTM_OK) {
        struct sl_buf buf = {0};
        sl_diagnostics_render(w->diagnostics, false, &buf, &err);
        fail_msg("%s", sl_buf_text(&buf));
    }
    struct sl_data_facts facts = {.input = {SL_FIELD_VALUES, false, 3, 0},
                                  .target = {SL_FIELD_VALUES, false, 2, 0},
                                  .records = 4,
                                  .rows = 4,
                                  .envelope = {.sequences = 4, .rows = 4}};
    struct sl_graph_request graph = {.model = w->model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    ok(sl_graph_create(&graph, &w->graph, &err), &err);
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"}};
    struct sl_registry_request registry = {
        .entries = entries, .entry_count = 1, .builtins = builtins, .builtin_count = 1, .only_folders = true};
    ok(sl_registry_create(&registry, &w->registry, &err), &err);
    struct sl_plan_request plan = {.graph = w->graph, .registry = w->registry, .optimizer_states = 3};
    ok(sl_plan_create(&plan, &w->plan, &err), &err);
    ok(sl_params_create(w->graph, true, 3, NULL, &w->params, &err), &err);
    struct sl_exec_request exec = {.plan = w->plan, .params = w->params, .seed = 5};
    ok(sl_exec_create(&exec, &w->exec, &err), &err);
}

static void close_world(struct world *w)
{
    sl_exec_destroy(w->exec);
    sl_params_destroy(w->params);
    sl_plan_destroy(w->plan);
    sl_registry_destroy(w->registry);
    sl_graph_destroy(w->graph);
    sl_model_destroy(w->model);
    sl_diagnostics_destroy(w->diagnostics);
}

/* One parameter and its states. */
struct scalar {
    double p, s1, s2, s3;
};

/* The equations, written down a second time. */
static void update(const struct sl_optimizer *o, struct scalar *x, double g, double lr, int t)
{
    x->p -= lr * o->weight_decay * x->p;
    switch (o->kind) {
    case SL_OPTIMIZER_SGD:
    case SL_OPTIMIZER_NT_ASGD:
        x->p -= lr * g;
        break;
    case SL_OPTIMIZER_MOMENTUM:
        x->s1 = o->momentum * x->s1 + g;
        x->p -= lr * x->s1;
        break;
    case SL_OPTIMIZER_NESTEROV:
        x->s1 = o->momentum * x->s1 + g;
        x->p -= lr * (g + o->momentum * x->s1);
        break;
    case SL_OPTIMIZER_ADAM:
    case SL_OPTIMIZER_ADAMW: {
        x->s1 = o->beta_1 * x->s1 + (1 - o->beta_1) * g;
        x->s2 = o->beta_2 * x->s2 + (1 - o->beta_2) * g * g;
        x->s3 = fmax(x->s3, x->s2);
        double v = o->amsgrad ? x->s3 : x->s2;
        x->p -= lr * (x->s1 / (1 - pow(o->beta_1, t))) / (sqrt(v / (1 - pow(o->beta_2, t))) + o->epsilon);
        break;
    }
    case SL_OPTIMIZER_RMSPROP: {
        x->s1 = o->rho * x->s1 + (1 - o->rho) * g * g;
        x->s3 = o->centered ? o->rho * x->s3 + (1 - o->rho) * g : 0;
        double q = g / (sqrt(x->s1 - x->s3 * x->s3) + o->epsilon);
        x->s2 = o->momentum * x->s2 + lr * q;
        x->p -= o->momentum > 0 ? x->s2 : lr * q;
        break;
    }
    case SL_OPTIMIZER_ADAGRAD:
        x->s1 += g * g;
        x->p -= lr * g / (sqrt(x->s1) + o->epsilon);
        break;
    case SL_OPTIMIZER_ADADELTA: {
        x->s1 = o->rho * x->s1 + (1 - o->rho) * g * g;
        double d = sqrt(x->s2 + o->epsilon) / sqrt(x->s1 + o->epsilon) * g;
        x->s2 = o->rho * x->s2 + (1 - o->rho) * d * d;
        x->p -= lr * d;
        break;
    }
    }
}

static void optimizers_follow_their_equations(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "optimizer: {type: sgd, learning_rate: 0.1}",
        "optimizer: {type: sgd, learning_rate: 0.1, weight_decay: 0.5}",
        "optimizer: {type: momentum, learning_rate: 0.1, momentum: 0.8}",
        "optimizer: {type: nesterov, learning_rate: 0.1, momentum: 0.8}",
        "optimizer: {type: adam, learning_rate: 0.1}",
        "optimizer: {type: adam, learning_rate: 0.1, beta_1: 0.5, beta_2: 0.6, epsilon: 0.125, amsgrad: true}",
        "optimizer: {type: adamw, learning_rate: 0.1, weight_decay: 0.25}",
        "optimizer: {type: rmsprop, learning_rate: 0.1}",
        "optimizer: {type: rmsprop, learning_rate: 0.1, rho: 0.5, momentum: 0.9, centered: true, epsilon: 0.01}",
        "optimizer: {type: rmsprop, learning_rate: 0.1, centered: true}",
        "optimizer: {type: adagrad, learning_rate: 0.1, initial_accumulator: 0.5}",
        "optimizer: {type: adadelta, learning_rate: 1, rho: 0.9}",
        "optimizer: {type: nt_asgd, learning_rate: 0.1}",
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct world w;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        double squares;
        open_world(&w, "", cases[c]);
        const struct sl_optimizer *o = &w.model->train.optimizer;
        struct scalar want[6];
        double initial = o->kind == SL_OPTIMIZER_ADAGRAD ? o->initial_accumulator : 0;
        for (int i = 0; i < 6; i++) {
            w.params->values[i] = 0.25f * (float)(i - 2);
            w.params->states[0][i] = (float)initial;
            want[i] = (struct scalar){w.params->values[i], initial, 0, 0};
        }
        for (int t = 1; t <= 4; t++) {
            double lr = o->learning_rate / t;
            for (int i = 0; i < 6; i++) {
                double g = (i - 2.5) * (t == 3 ? -0.5 : 1) + 0.1 * t;
                w.params->grads[i] = (float)g;
                update(o, &want[i], (double)(float)g, (double)(float)lr, t);
            }
            const struct sl_exec_update this = {.count = (uint64_t)t, .learning_rate = lr};
            ok(sl_exec_update(w.exec, &this, &squares, &err), &err);
            for (int i = 0; i < 6; i++)
                if (!(fabs((double)w.params->values[i] - want[i].p) <= 4e-6 * fmax(1, fabs(want[i].p))))
                    fail_msg("%s: update %d, parameter %d is %.9g, expected %.9g", cases[c], t, i,
                             (double)w.params->values[i], want[i].p);
        }
        close_world(&w);
    }
}

static void gradients_and_averages_on_a_backend(void **state)
{
    (void)state;
    struct world w;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double squares;
    open_world(&w, ", kernel_regularizer: {l1: 0.25, l2: 0.125}", "optimizer: sgd, clip_value: 4, clip_norm: 1");
    const struct sl_param_view *kernel = &w.params->views[0];
    assert_int_equal(kernel->elems, 6);
    float *values = w.params->values + kernel->offset_elems, *grads = w.params->grads + kernel->offset_elems;
    struct sl_exec_update update = {.count = 1, .learning_rate = 0.5};
    values[0] = 2;
    values[1] = -2;
    grads[0] = 1;
    grads[1] = -9;
    ok(sl_exec_update(w.exec, &update, &squares, &err), &err);
    /* 1 + l1 + 2 l2 w; -9 - l1 - 2 l2 w limited; a zero stays zero */
    assert_true(grads[0] == 1.75f && grads[1] == -4 && grads[2] == 0);
    assert_true(fabs(squares - (1.75 * 1.75 + 16)) < 1e-12);
    assert_true(fabs((double)values[0] - (2 - 0.5 * 1.75 / sqrt(squares))) < 1e-6);
    assert_true(fabs((double)values[1] - (-2 + 0.5 * 4 / sqrt(squares))) < 1e-6);
    /* a limit hides nothing that is no number, and nothing changes then */
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const float before[] = {values[0], values[1]};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        grads[1] = bad[k];
        ok(sl_exec_update(w.exec, &update, &squares, &err), &err);
        assert_true(isnan(squares) && memcmp(before, values, sizeof before) == 0);
    }
    grads[1] = 1;
    update.skip = true;
    ok(sl_exec_update(w.exec, &update, &squares, &err), &err);
    assert_true(isfinite(squares) && memcmp(before, values, sizeof before) == 0);

    struct sl_average average;
    ok(sl_average_init(&average, SL_AVERAGE_EMA, 0.5, w.params, NULL, &err), &err);
    values[0] = 2;
    sl_average_start(&average);
    values[0] = 4;
    ok(sl_average_update(&average, w.exec, &err), &err);
    assert_true(average.values[kernel->offset_elems] == 3);
    sl_average_deinit(&average);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimizers_follow_their_equations),
        cmocka_unit_test(gradients_and_averages_on_a_backend),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
