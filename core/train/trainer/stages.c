/* SPDX-License-Identifier: Apache-2.0 */
/* A trainer whose executor runs one stage of a pipeline. It trains the parameters that its stage owns; those of others
 * are old until they are gathered, which is done where weights are read: for validations, checkpoints and the end. */
#include "train/trainer/stages.h"

#include <stdlib.h>
#include <string.h>

struct sl_trainer_stages {
    const struct sl_owners *owners;
    const struct sl_ranks *ranks;
    bool *owned;     /* [view_count] */
    double *squares; /* [view_count] of this stage's gradients */
    double *all;     /* [stages * view_count] */
    float *own;      /* [own_elems] gradients one after the other; NULL: there is one stage */
    int64_t own_elems;
    bool stale; /* parameters of other stages have changed since they were gathered */
};

seqlstm_status sl_trainer_open_stages(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    const struct sl_params *params = trainer->request.params;
    const struct sl_ranks *ranks = trainer->request.ranks;
    const size_t views = (size_t)params->view_count + 1;
    struct sl_trainer_stages *stages = calloc(1, sizeof *stages);
    if (!stages)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trainer");
    trainer->stages = stages;
    stages->owners = trainer->request.owners;
    stages->ranks = ranks;
    stages->owned = calloc(views, sizeof *stages->owned);
    stages->squares = calloc(views, sizeof *stages->squares);
    stages->all = calloc(views * (size_t)ranks->stages, sizeof *stages->all);
    if (!stages->owned || !stages->squares || !stages->all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the trainer");
    for (int32_t v = 0; v < params->view_count; v++) {
        stages->owned[v] = stages->owners->params[v] == ranks->stage;
        stages->own_elems += stages->owned[v] && params->views[v].trainable ? params->views[v].elems : 0;
    }
    if (ranks->stages == 1)
        return SEQLSTM_OK;
    stages->own = sl_memory_alloc(trainer->request.memory, (size_t)(stages->own_elems + 1) * sizeof *stages->own);
    if (!stages->own)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the gradients of a stage");
    return SEQLSTM_OK;
}

void sl_trainer_close_stages(struct sl_trainer *trainer)
{
    struct sl_trainer_stages *stages = trainer->stages;
    if (!stages)
        return;
    free(stages->owned);
    free(stages->squares);
    free(stages->all);
    sl_memory_free(trainer->request.memory, stages->own);
    free(stages);
    trainer->stages = NULL;
}

bool sl_trainer_is_last_stage(const struct sl_trainer *trainer)
{
    const struct sl_ranks *ranks = trainer->request.ranks;
    return ranks->stage + 1 == ranks->stages;
}

seqlstm_status sl_trainer_share_sums(struct sl_trainer *trainer, struct sl_metric_sums *sums, struct seqlstm_error *err)
{
    const struct sl_rank_group *pipeline = &trainer->request.ranks->pipeline;
    return sl_rank_group_broadcast(pipeline, pipeline->ranks - 1, sums, (int64_t)sizeof *sums, err);
}

/* ---- the gradients that replicas add ---------------------------------------------------------------------------- */

int64_t sl_trainer_count_own(const struct sl_trainer *trainer)
{
    return trainer->stages && trainer->stages->own ? trainer->stages->own_elems
                                                   : trainer->request.params->trainable_elems;
}

static void move_own(struct sl_trainer *trainer, bool takes)
{
    const struct sl_params *params = trainer->request.params;
    float *own = trainer->stages->own;
    for (int32_t v = 0; v < params->view_count; v++) {
        const struct sl_param_view *view = &params->views[v];
        float *grad = params->grads + view->offset_elems;
        if (!trainer->stages->owned[v] || !view->trainable)
            continue;
        memcpy(takes ? own : grad, takes ? grad : own, (size_t)view->elems * sizeof *own);
        own += view->elems;
    }
}

float *sl_trainer_take_own(struct sl_trainer *trainer)
{
    if (!trainer->stages || !trainer->stages->own)
        return trainer->request.params->grads;
    move_own(trainer, true);
    return trainer->stages->own;
}

void sl_trainer_put_own(struct sl_trainer *trainer)
{
    if (trainer->stages && trainer->stages->own)
        move_own(trainer, false);
}

/* ---- the update ------------------------------------------------------------------------------------------------- */

static seqlstm_status broadcast(const struct sl_trainer_stages *stages, int32_t from, float *values, int64_t elems,
                                struct seqlstm_error *err)
{
    return sl_rank_group_broadcast(&stages->ranks->pipeline, from, values, elems * (int64_t)sizeof *values, err);
}

/* The sum over the parameters of all stages, in the order of the table. */
static seqlstm_status add_squares(struct sl_trainer_stages *stages, int32_t views, double *out,
                                  struct seqlstm_error *err)
{
    const struct seqlstm_exchange gather = {.kind = SEQLSTM_COLLECTIVE_ALL_GATHER,
                                            .dtype = SEQLSTM_DTYPE_FLOAT64,
                                            .elems = views,
                                            .from = stages->squares,
                                            .to = stages->all};
    const bool alone = stages->ranks->stages == 1;
    *out = 0;
    SEQLSTM_TRY(sl_rank_group_run(&stages->ranks->pipeline, gather, err));
    for (int32_t v = 0; v < views; v++)
        *out += alone ? stages->squares[v] : stages->all[stages->owners->params[v] * views + v];
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_update_own(struct sl_trainer *trainer, const struct sl_exec_update *update,
                                     double *out_squares, struct seqlstm_error *err)
{
    struct sl_trainer_stages *stages = trainer->stages;
    struct sl_params *params = trainer->request.params;
    double squares;
    SEQLSTM_TRY(sl_exec_begin_owned(trainer->request.exec, update, stages->owned, stages->squares, err));
    SEQLSTM_TRY(add_squares(stages, params->view_count, &squares, err));
    SEQLSTM_TRY(sl_exec_finish_owned(trainer->request.exec, stages->owned, squares, out_squares, err));
    stages->stale = stages->ranks->stages > 1;
    for (int32_t v = 0; v < params->view_count; v++)
        if (stages->owners->shared[v] && params->views[v].trainable)
            SEQLSTM_TRY(broadcast(stages, stages->owners->params[v], params->values + params->views[v].offset_elems,
                                  params->views[v].elems, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_trainer_gather_weights(struct sl_trainer *trainer, struct seqlstm_error *err)
{
    struct sl_trainer_stages *stages = trainer->stages;
    struct sl_params *params = trainer->request.params;
    float *const buffers[] = {params->values, params->states[0], params->states[1], params->states[2],
                              trainer->average.active ? trainer->average.values : NULL};
    if (!stages || !stages->stale)
        return SEQLSTM_OK;
    for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
        for (int32_t v = 0; buffers[b] && v < params->view_count; v++)
            if (params->views[v].trainable)
                SEQLSTM_TRY(broadcast(stages, stages->owners->params[v], buffers[b] + params->views[v].offset_elems,
                                      params->views[v].elems, err));
    sl_params_touch(params);
    sl_params_touch_states(params);
    stages->stale = false;
    return SEQLSTM_OK;
}
