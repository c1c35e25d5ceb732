/* SPDX-License-Identifier: Apache-2.0 */
/* See predictor.h. */
#include "predict/predictor_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/hash.h"
#include "predict/streamable.h"

static void destroy_plans(struct sl_predictor_plan plans[SL_USE_COUNT])
{
    for (int use = 0; use < SL_USE_COUNT; use++) {
        sl_plan_destroy(plans[use].plan);
        sl_graph_destroy(plans[use].graph);
    }
}

/* Of the states' names and widths, and of the weights. */
static uint64_t identify(const struct sl_predictor *predictor)
{
    const struct sl_graph *graph = predictor->made.plans[SL_USE_STREAM].graph;
    uint64_t hash = predictor->made.weights;
    for (int32_t s = 0; graph && s < graph->state_count; s++) {
        hash = sl_hash_combine(hash, sl_hash_text(graph->states[s].name));
        hash = sl_hash_combine(hash, (uint64_t)graph->states[s].features);
    }
    return hash;
}

/* Weights are packed once for all contexts. */
static seqlstm_status pack(struct sl_predictor *predictor, struct seqlstm_error *err)
{
    const struct sl_predictor_request *made = &predictor->made;
    struct sl_pool *own = NULL;
    if (made->pool == NULL)
        SEQLSTM_TRY(sl_pool_create(made->threads, &own, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int use = 0; use < SL_USE_COUNT && status == SEQLSTM_OK; use++)
        if (made->plans[use].plan)
            status = sl_packed_init(&predictor->packed[use], made->plans[use].plan, made->params,
                                    own ? own : made->pool, &predictor->memory, err);
    sl_pool_destroy(own);
    return status;
}

seqlstm_status sl_predictor_create(const struct sl_predictor_request *request, struct sl_predictor **out_predictor,
                                   struct seqlstm_error *err)
{
    struct sl_predictor *predictor = calloc(1, sizeof *predictor);
    struct sl_predictor_request made = *request;
    if (predictor == NULL) {
        destroy_plans(made.plans);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the predictor");
    }
    predictor->made = made;
    for (int use = SL_USE_COUNT - 1; use >= 0; use--)
        if (made.plans[use].graph && use != SL_USE_ENCODER)
            predictor->graph = made.plans[use].graph;
    const bool is_last = predictor->graph->output_layer + 1 == (int32_t)made.model->layer_count;
    predictor->undoes_targets = is_last && sl_data_state_get_facts(made.state)->target.kind == SL_FIELD_VALUES;
    if (sl_model_is_streamable(made.model, made.output, predictor->reason, sizeof predictor->reason) &&
        !sl_data_state_get_facts(made.state)->has_steps)
        strcpy(predictor->reason, "it reads single rows");
    const struct sl_graph *stream = made.plans[SL_USE_STREAM].graph;
    for (int32_t s = 0; stream && s < stream->state_count; s++)
        predictor->state_elems += stream->states[s].features;
    predictor->identity = identify(predictor);
    const seqlstm_status status = pack(predictor, err);
    if (status != SEQLSTM_OK) {
        sl_predictor_destroy(predictor);
        return status;
    }
    *out_predictor = predictor;
    return SEQLSTM_OK;
}

void sl_predictor_destroy(struct sl_predictor *predictor)
{
    if (predictor == NULL)
        return;
    for (int use = 0; use < SL_USE_COUNT; use++)
        sl_packed_deinit(&predictor->packed[use]);
    destroy_plans(predictor->made.plans);
    free(predictor);
}

const struct sl_model *sl_predictor_get_model(const struct sl_predictor *predictor)
{
    return predictor->made.model;
}

bool sl_predictor_decodes(const struct sl_predictor *predictor)
{
    return predictor->made.plans[SL_USE_DECODER].plan != NULL;
}

const struct sl_never *sl_predictor_get_never(const struct sl_predictor *predictor)
{
    return &predictor->made.never;
}

const struct sl_data_state *sl_predictor_get_state(const struct sl_predictor *predictor)
{
    return predictor->made.state;
}

const struct sl_graph *sl_predictor_find_graph(const struct sl_predictor *predictor, enum sl_predictor_use use)
{
    return predictor->made.plans[use].graph;
}

int64_t sl_predictor_get_features(const struct sl_predictor *predictor)
{
    return predictor->graph->tensors[predictor->graph->output].features;
}

bool sl_predictor_has_step_output(const struct sl_predictor *predictor)
{
    return sl_axis_is_steps(predictor->graph->tensors[predictor->graph->output].axis);
}

bool sl_predictor_gives_values(const struct sl_predictor *predictor)
{
    const bool is_last = predictor->graph->output_layer + 1 == (int32_t)predictor->made.model->layer_count;
    return !is_last || predictor->undoes_targets;
}

const char *sl_predictor_get_stream_reason(const struct sl_predictor *predictor)
{
    return predictor->reason;
}
