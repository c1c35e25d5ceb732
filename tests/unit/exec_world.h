/* SPDX-License-Identifier: Apache-2.0 */
/* A model on the reference backend with its parameters drawn, and its gradients against central differences of the
 * loss. Shared by the tests of executors; every test of a file uses all of it.
 *
 * Tolerance: slots are float32, so the loss carries an error of about eps32 per activation; with a step h the
 * difference quotient is off by 1.5 eps32 * |loss| / h (rounding) plus h^4 / 30 times the fifth derivative. With
 * h = 2^-8 and smooth models of a few layers both stay below 3e-4 of the gradient's scale; 2e-3 is the bound.
 */
#ifndef EXEC_WORLD_H
#define EXEC_WORLD_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "base/buf.h"
#include "dispatch/plan.h"
#include "exec/exec.h"
#include "model/diagnostics.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* A model on the reference, with its parameters drawn. */
struct world {
    struct sl_diagnostics *diagnostics;
    struct sl_model *model;
    struct sl_data_facts facts;
    struct sl_registry *registry;
    struct sl_graph *graph;
    struct sl_plan *plan;
    struct sl_params *params;
    struct sl_exec *exec;
};

static void ok(seqlstm_status status, const struct seqlstm_error *err)
{
    if (status != SEQLSTM_OK)
        fail_msg("%s (%s)", err->message, err->where);
}

static void open_world(struct world *w, const char *data, const char *layers, const struct sl_data_facts *facts,
                       bool need_output)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[4096];
    memset(w, 0, sizeof *w);
    snprintf(text, sizeof text, "%s%s\nbackends: [reference]\n", data, layers);
    ok(sl_diagnostics_create(&w->diagnostics, &err), &err);
    struct sl_model_request request = {.path = "m.yaml"};
    seqlstm_status status =
        sl_model_load_text("m.yaml", text, strlen(text), &request, w->diagnostics, &w->model, &err);
    if (status != SEQLSTM_OK) {
        struct sl_buf buf = {0};
        sl_diagnostics_render(w->diagnostics, false, &buf, &err);
        fail_msg("%s", sl_buf_text(&buf));
    }
    w->facts = *facts;
    struct sl_graph_request graph = {
        .model = w->model, .facts = &w->facts, .phase = SL_PHASE_TRAIN, .need_output = need_output};
    ok(sl_graph_create(&graph, &w->graph, &err), &err);
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"}};
    struct sl_registry_request registry = {.entries = entries, .entry_count = 1, .builtins = builtins,
                                           .builtin_count = 1, .only_folders = true};
    ok(sl_registry_create(&registry, &w->registry, &err), &err);
    struct sl_plan_request plan = {.graph = w->graph, .registry = w->registry, .optimizer_states = 2};
    ok(sl_plan_create(&plan, &w->plan, &err), &err);
    ok(sl_params_create(w->graph, true, 2, NULL, &w->params, &err), &err);
    ok(sl_params_init(w->params, w->graph, 7, &err), &err);
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

static float number(uint64_t i)
{
    return 2.0f * seqlstm_uniform(99, i, 0, 0) - 1.0f;
}

static double run(struct world *w, const struct sl_batch *batch, bool accumulate)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_step step = {.epoch = 3, .normaliser = 1.0, .accumulate = accumulate};
    struct sl_exec_result result;
    ok(sl_exec_run(w->exec, batch, &step, &result, &err), &err);
    return result.loss_sum;
}

/* d loss / d value by central differences of fourth order. */
static double difference(struct world *w, const struct sl_batch *batch, float *value, float kept)
{
    static const double weights[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12};
    static const float places[4] = {-2, -1, 1, 2};
    const float h = 1.0f / 256;
    double sum = 0;
    for (int k = 0; k < 4; k++) {
        *value = kept + places[k] * h;
        sl_params_touch(w->params);
        sum += weights[k] * run(w, batch, false);
    }
    *value = kept;
    sl_params_touch(w->params);
    return sum / (double)h;
}

/* Every parameter: a handful of its elements. */
static void check_gradients(struct world *w, const struct sl_batch *batch, const char *name)
{
    run(w, batch, false);
    float *grads = malloc((size_t)w->params->elems * sizeof *grads);
    memcpy(grads, w->params->grads, (size_t)w->params->elems * sizeof *grads);
    for (int32_t p = 0; p < w->params->view_count; p++) {
        const struct sl_param_view *view = &w->params->views[p];
        double scale = 0.05;
        for (int64_t e = 0; e < view->elems; e++)
            scale = fmax(scale, fabs((double)grads[view->offset_elems + e]));
        int64_t stride = view->elems > 12 ? view->elems / 12 : 1;
        for (int64_t e = 0; e < view->elems; e += stride) {
            float *value = &w->params->values[view->offset_elems + e], kept = *value;
            double expected = difference(w, batch, value, kept), got = (double)grads[view->offset_elems + e];
            if (!(fabs(expected - got) <= 2e-3 * scale))
                fail_msg("%s: %s[%lld]: gradient %g, difference %g, scale %g", name, view->name, (long long)e, got,
                         expected, scale);
        }
    }
    free(grads);
}

#endif
