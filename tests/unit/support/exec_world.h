/* SPDX-License-Identifier: Apache-2.0 */
/* A model on the reference backend with its parameters drawn. Shared by the tests of executors; every test of a file
 * uses all of it. */
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

#include "ok.h"

#include "base/value/buf.h"
#include "dispatch/planner.h"
#include "dispatch/plan/plan.h"
#include "exec/exec.h"
#include "model/yaml/diagnostics.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* What answers as `reference` in worlds that are opened from now on. */
static const struct seqlstm_backend *(*world_query)(uint32_t host_minor) = seqlstm_reference_query_v0;

/* Into how many pieces they cut the steps of a batch, and which calls they run; zeroed: all at once, all. */
static int32_t world_states = 2; /* of the optimizer */
static int32_t world_pieces;
static struct sl_exec_stage world_stage;

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

static inline void open_world(struct world *w, const char *data, const char *layers, const struct sl_data_facts *facts,
                              bool need_output)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char text[4096];
    memset(w, 0, sizeof *w);
    snprintf(text, sizeof text, "%s%s\nbackends: [reference]\n", data, layers);
    ok(sl_diagnostics_create(&w->diagnostics, &err), &err);
    struct sl_model_request request = {.path = "m.yaml"};
    seqlstm_status status = sl_model_load_text("m.yaml", text, strlen(text), &request, w->diagnostics, &w->model, &err);
    if (status != SEQLSTM_OK) {
        struct sl_buf buf = {0};
        sl_diagnostics_render(w->diagnostics, false, &buf, &err);
        fail_msg("%s", sl_buf_text(&buf));
    }
    w->facts = *facts;
    struct sl_graph_request graph = {.model = w->model,
                                     .facts = &w->facts,
                                     .phase = SL_PHASE_TRAIN,
                                     .need_output = need_output,
                                     .pieces = world_pieces};
    ok(sl_graph_create(&graph, &w->graph, &err), &err);
    const struct sl_backend_builtin builtins[] = {{"reference", world_query}};
    static const struct sl_registry_entry entries[] = {{.name = "reference"}};
    struct sl_registry_request registry = {
        .entries = entries, .entry_count = 1, .builtins = builtins, .builtin_count = 1, .only_folders = true};
    ok(sl_registry_create(&registry, &w->registry, &err), &err);
    struct sl_plan_request plan = {.graph = w->graph, .registry = w->registry, .optimizer_states = world_states};
    ok(sl_plan_create(&plan, &w->plan, &err), &err);
    ok(sl_params_create(w->graph, true, world_states, NULL, &w->params, &err), &err);
    ok(sl_params_init(w->params, w->graph, 7, NULL, &err), &err);
    struct sl_exec_request exec = {.plan = w->plan, .params = w->params, .seed = 5, .stage = world_stage};
    ok(sl_exec_create(&exec, &w->exec, &err), &err);
}

static inline void close_world(struct world *w)
{
    sl_exec_destroy(w->exec);
    sl_params_destroy(w->params);
    sl_plan_destroy(w->plan);
    sl_registry_destroy(w->registry);
    sl_graph_destroy(w->graph);
    sl_model_destroy(w->model);
    sl_diagnostics_destroy(w->diagnostics);
}

static inline double run(struct world *w, const struct sl_batch *batch, bool accumulate)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_exec_step step = {.epoch = 3, .normaliser = 1.0, .accumulate = accumulate};
    struct sl_exec_result result;
    ok(sl_exec_run(w->exec, batch, &step, &result, &err), &err);
    return result.loss_sum;
}

/* Sequences of tokens with a token as target on each step; all are 0. */
static inline struct sl_batch *make_token_batch(const int32_t *lengths, int64_t sequences)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct sl_batch_shape shape = {.sequences = sequences,
                                         .lengths = lengths,
                                         .input_kind = SL_FIELD_IDS,
                                         .input_features = 1,
                                         .input_on_steps = true,
                                         .target_kind = SL_FIELD_IDS,
                                         .target_features = 1,
                                         .target_on_steps = true};
    struct sl_batch *batch = NULL;
    ok(sl_batch_create(&shape, &batch, &err), &err);
    return batch;
}

/* A number in [-1, 1) for each i. */
static inline float number(uint64_t i)
{
    return 2.0f * seqlstm_uniform(99, i, 0, 0) - 1.0f;
}

#endif
