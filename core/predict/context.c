/* SPDX-License-Identifier: Apache-2.0 */
/* See context.h. */
#include "predict/context.h"

#include <stdlib.h>

#include "predict/predictor_private.h"

static void close_lane(struct sl_predictor_lane *lane)
{
    sl_exec_destroy(lane->exec);
    sl_packer_deinit(&lane->packer);
    free(lane->states);
    free(lane->gathered);
    lane->states = NULL;
    lane->gathered = NULL;
    lane->exec = NULL;
}

/* One run at the largest width, so that later ones find bindings, packed weights and pages. */
static seqlstm_status warm_up(struct sl_predictor_lane *lane, struct seqlstm_error *err)
{
    struct sl_packer *packer = &lane->packer;
    for (int64_t i = 0; i < packer->sequences; i++)
        packer->samples[i] = packer->steps; /* as lengths */
    sl_packer_lay_out(packer, packer->samples, packer->sequences);
    return sl_context_run(lane, &packer->batch, err);
}

static seqlstm_status find_states(struct sl_predictor_lane *lane, struct seqlstm_error *err)
{
    const struct sl_graph *graph = sl_exec_get_graph(lane->exec);
    if (!sl_exec_is_lean(lane->exec))
        return SEQLSTM_OK;
    lane->states = calloc((size_t)graph->state_count + 1, sizeof *lane->states);
    if (lane->states == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the context");
    for (int32_t s = 0; s < graph->state_count; s++)
        lane->states[s] = (struct sl_state_rows){sl_exec_get_state_in(lane->exec, s),
                                                 sl_exec_get_state_out(lane->exec, s), graph->states[s].features};
    return SEQLSTM_OK;
}

static struct sl_pool *choose_pool(const struct sl_context *context, enum sl_predictor_use use)
{
    const struct sl_predictor_request *made = &context->predictor->made;
    return made->warms && sl_predictor_use_is_single(use, made->plans[use].plan->packed_bytes) ? NULL : context->pool;
}

static seqlstm_status make_gathered(struct sl_predictor_lane *lane, struct seqlstm_error *err)
{
    const struct sl_packer *packer = &lane->packer;
    lane->gathered = malloc((size_t)(packer->rows * packer->batch.input.features) * sizeof(float) + 1);
    if (lane->gathered == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the input");
    return SEQLSTM_OK;
}

static seqlstm_status open_lane(struct sl_context *context, enum sl_predictor_use use, struct seqlstm_error *err)
{
    const struct sl_predictor_request *made = &context->predictor->made;
    struct sl_predictor_lane *lane = &context->lanes[use];
    const struct sl_graph *graph = made->plans[use].graph;
    const bool streams = sl_predictor_use_carries(use);
    const struct sl_exec_request request = {.plan = made->plans[use].plan,
                                            .params = context->params,
                                            .pool = choose_pool(context, use),
                                            .memory = &context->memory,
                                            .seed = made->model->seed,
                                            .lean = true,
                                            .packed = &context->predictor->packed[use]};
    seqlstm_status status = sl_exec_create(&request, &lane->exec, err);
    if (status == SEQLSTM_OK && streams)
        status = sl_packer_init(&lane->packer, &graph->facts, &graph->facts.envelope, err);
    if (status == SEQLSTM_OK && use == SL_USE_CHUNKS)
        status = make_gathered(lane, err);
    if (status == SEQLSTM_OK && streams)
        status = find_states(lane, err);
    if (status == SEQLSTM_OK && streams && made->warms)
        status = warm_up(lane, err);
    if (status != SEQLSTM_OK)
        close_lane(lane);
    return status;
}

seqlstm_status sl_context_provide(struct sl_context *context, enum sl_predictor_use use,
                                  struct sl_predictor_lane **out_lane, struct seqlstm_error *err)
{
    if (context->predictor->made.plans[use].plan == NULL && sl_predictor_use_carries(use))
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model cannot run as a stream: %s", context->predictor->reason);
    if (context->predictor->made.plans[use].plan == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the model has an encoder and a decoder, which read and write texts");
    if (context->lanes[use].exec == NULL)
        SEQLSTM_TRY(open_lane(context, use, err));
    *out_lane = &context->lanes[use];
    return SEQLSTM_OK;
}

/* The states of whole sequences stay the zeros that they are made as: on the host nothing writes where an executor
 * reads them, and elsewhere it clears them itself. */
seqlstm_status sl_context_run(struct sl_predictor_lane *lane, const struct sl_batch *batch, struct seqlstm_error *err)
{
    const struct sl_exec_step step = {0};
    struct sl_exec_result result;
    if (!sl_exec_is_lean(lane->exec))
        return sl_exec_run(lane->exec, batch, &step, &result, err);
    return sl_exec_run_lean(lane->exec, batch, err);
}

seqlstm_status sl_context_provide_exec(struct sl_context *context, enum sl_predictor_use use, struct sl_exec **out_exec,
                                       struct seqlstm_error *err)
{
    struct sl_predictor_lane *lane = NULL;
    SEQLSTM_TRY(sl_context_provide(context, use, &lane, err));
    *out_exec = lane->exec;
    return SEQLSTM_OK;
}

static seqlstm_status describe_decoder(struct sl_context *context, struct sl_decoder_request *out,
                                       struct seqlstm_error *err)
{
    const struct sl_predictor_request *made = &context->predictor->made;
    const struct sl_vocabulary *vocabulary = sl_data_state_find_classes(made->state);
    *out = (struct sl_decoder_request){.config = &made->model->decode,
                                       .begin = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_BOS),
                                       .end = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS),
                                       .never = made->never,
                                       .seed = made->model->seed,
                                       .traces_attention = made->attention};
    SEQLSTM_TRY(sl_context_provide_exec(context, SL_USE_ENCODER, &out->encoder, err));
    return sl_context_provide_exec(context, SL_USE_DECODER, &out->step, err);
}

seqlstm_status sl_context_provide_continuous(struct sl_context *context, struct seqlstm_error *err)
{
    struct sl_decoder_request request;
    if (context->continuous)
        return SEQLSTM_OK;
    SEQLSTM_TRY(describe_decoder(context, &request, err));
    return sl_continuous_create(&request, &context->continuous, err);
}

seqlstm_status sl_context_provide_decoder(struct sl_context *context, struct sl_decoder **out_decoder,
                                          struct seqlstm_error *err)
{
    struct sl_decoder_request request;
    SEQLSTM_TRY(describe_decoder(context, &request, err));
    if (context->decoder == NULL)
        SEQLSTM_TRY(sl_decoder_create(&request, &context->decoder, err));
    *out_decoder = context->decoder;
    return SEQLSTM_OK;
}

const struct sl_decoder *sl_context_find_decoder(const struct sl_context *context)
{
    return context->decoder;
}

seqlstm_status sl_context_open(const struct sl_predictor *predictor, struct sl_context **out_context,
                               struct seqlstm_error *err)
{
    struct sl_context *context = calloc(1, sizeof *context);
    if (context == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the context");
    context->predictor = predictor;
    sl_memory_init(&context->memory);
    context->pool = predictor->made.pool;
    seqlstm_status status = SEQLSTM_OK;
    if (context->pool == NULL)
        status = sl_pool_create(predictor->made.threads, &context->pool, err);
    if (status == SEQLSTM_OK)
        status = sl_params_share(predictor->made.params, &context->params, err);
    for (int use = SL_USE_STREAM; use <= SL_USE_CHUNKS && status == SEQLSTM_OK; use++)
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
    sl_decoder_destroy(context->decoder);
    sl_continuous_destroy(context->continuous);
    for (int use = 0; use < SL_USE_COUNT; use++)
        close_lane(&context->lanes[use]);
    sl_params_destroy(context->params);
    if (context->pool != context->predictor->made.pool)
        sl_pool_destroy(context->pool);
    free(context);
}

bool sl_context_shares_lock(const struct sl_context *context)
{
    return context->predictor->made.shares_lock;
}
