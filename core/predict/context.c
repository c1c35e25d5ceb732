/* SPDX-License-Identifier: Apache-2.0 */
/* See context.h. */
#include "predict/context.h"

#include <stdlib.h>

#include "predict/predictor_private.h"

static void close_lane(struct sl_predictor_lane *lane)
{
    sl_exec_destroy(lane->exec);
    sl_packer_deinit(&lane->packer);
    lane->exec = NULL;
}

/* One run at the largest width, so that later ones find bindings, packed weights and pages. */
static seqlstm_status warm_up(struct sl_context *context, struct sl_predictor_lane *lane, enum sl_predictor_use use,
                              struct seqlstm_error *err)
{
    struct sl_packer *packer = &lane->packer;
    for (int64_t i = 0; i < packer->sequences; i++)
        packer->samples[i] = use == SL_USE_STREAM ? packer->steps : 1; /* as lengths */
    sl_packer_lay_out(packer, packer->samples, packer->sequences);
    return sl_context_run(context, lane, err);
}

static seqlstm_status open_lane(struct sl_context *context, enum sl_predictor_use use, struct seqlstm_error *err)
{
    const struct sl_predictor_request *made = &context->predictor->made;
    struct sl_predictor_lane *lane = &context->lanes[use];
    const struct sl_graph *graph = made->plans[use].graph;
    const struct sl_exec_request request = {.plan = made->plans[use].plan,
                                            .params = made->params,
                                            .pool = context->pool,
                                            .memory = &context->memory,
                                            .seed = made->model->seed,
                                            .lean = true};
    SEQLSTM_TRY(sl_packer_init(&lane->packer, &graph->facts, &graph->facts.envelope, err));
    seqlstm_status status = sl_exec_create(&request, &lane->exec, err);
    if (status == SEQLSTM_OK && use != SL_USE_WHOLE)
        status = warm_up(context, lane, use, err);
    if (status != SEQLSTM_OK)
        close_lane(lane);
    return status;
}

seqlstm_status sl_context_provide(struct sl_context *context, enum sl_predictor_use use,
                                  struct sl_predictor_lane **out_lane, struct seqlstm_error *err)
{
    if (context->predictor->made.plans[use].plan == NULL)
        SEQLSTM_FAIL(err, use == SL_USE_WHOLE ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_UNSUPPORTED,
                     "the model cannot run as a stream: %s", context->predictor->reason);
    if (context->lanes[use].exec == NULL)
        SEQLSTM_TRY(open_lane(context, use, err));
    *out_lane = &context->lanes[use];
    return SEQLSTM_OK;
}

seqlstm_status sl_context_run(struct sl_context *context, struct sl_predictor_lane *lane, struct seqlstm_error *err)
{
    const struct sl_exec_step step = {0};
    struct sl_exec_result result;
    (void)context;
    if (sl_exec_is_lean(lane->exec))
        return sl_exec_run_lean(lane->exec, &lane->packer.batch, err);
    return sl_exec_run(lane->exec, &lane->packer.batch, &step, &result, err);
}

seqlstm_status sl_context_open(const struct sl_predictor *predictor, struct sl_context **out_context,
                               struct seqlstm_error *err)
{
    struct sl_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the context");
    context->predictor = predictor;
    sl_memory_init(&context->memory);
    seqlstm_status status = sl_pool_create(predictor->made.threads, &context->pool, err);
    for (int use = SL_USE_STREAM; use < SL_USE_COUNT && status == SEQLSTM_OK; use++)
        if (predictor->made.plans[use].plan)
            status = open_lane(context, (enum sl_predictor_use)use, err);
    if (status != SEQLSTM_OK) {
        sl_context_close(context);
        return status;
    }
    *out_context = context;
    return SEQLSTM_OK;
}

void sl_context_close(struct sl_context *context)
{
    if (context == NULL)
        return;
    for (int use = 0; use < SL_USE_COUNT; use++)
        close_lane(&context->lanes[use]);
    sl_pool_destroy(context->pool);
    free(context);
}
