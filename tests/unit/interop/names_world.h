/* SPDX-License-Identifier: Apache-2.0 */
/* A model whose weights go out under other names, and come back. */
#ifndef NAMES_WORLD_H
#define NAMES_WORLD_H

#include "graph/graph.h"
#include "model_fixture.h"

enum { PARAMS_MOST = 32, VALUES_MOST = 200 };

static struct world {
    struct loaded model;
    struct sl_graph *graph;
    float values[PARAMS_MOST][VALUES_MOST];
    float *places[PARAMS_MOST];
} w;

/* Inputs are 2 values, or ids of 4 classes; the target is 1 value. Value i of parameter p is 1000 p + i. */
static void open_world(const char *layers, bool ids)
{
    char text[1000];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    snprintf(text, sizeof text,
             "seqlstm: 1\nname: m\ndata: {type: generator, name: %s, length: 3, train: {size: 4}, batch_size: 2}\n"
             "model: [%s]\ntrain: {epochs: 1%s}\n",
             ids ? "copy" : "adding_problem", layers, ids ? ", task: tag" : ", loss: mse");
    w.model = load_clean(text);
    const struct sl_data_facts facts = {.input = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES,
                                                  .features = ids ? 1 : 2,
                                                  .classes = ids ? 4 : 0,
                                                  .on_steps = true},
                                        .target = {.kind = ids ? SL_FIELD_IDS : SL_FIELD_VALUES,
                                                   .features = 1,
                                                   .classes = ids ? 4 : 0,
                                                   .on_steps = ids},
                                        .has_steps = true,
                                        .envelope = {.sequences = 2, .steps = 3, .rows = 6}};
    const struct sl_graph_request request = {.model = w.model.model, .facts = &facts, .phase = SL_PHASE_TRAIN};
    if (sl_graph_create(&request, &w.graph, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_true(w.graph->param_count <= PARAMS_MOST);
    for (int32_t p = 0; p < w.graph->param_count; p++) {
        assert_true(w.graph->params[p].rows * w.graph->params[p].columns <= VALUES_MOST);
        for (int i = 0; i < VALUES_MOST; i++)
            w.values[p][i] = (float)(1000 * p + i);
        w.places[p] = w.values[p];
    }
}

static void close_world(void)
{
    sl_graph_destroy(w.graph);
    unload(&w.model);
}

static int32_t find_param(const char *name)
{
    for (int32_t p = 0; p < w.graph->param_count; p++)
        if (strcmp(w.graph->params[p].name, name) == 0)
            return p;
    fail_msg("there is no parameter %s", name);
    return -1;
}

#endif
