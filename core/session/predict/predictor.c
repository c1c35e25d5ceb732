/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the model for each use of a predictor. */
#include "session/predict/predictor.h"

#include <limits.h>

#include "predict/streamable.h"
#include "session/prepare/backends.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

enum { SEQUENCES = 64, ROWS = 4096 }; /* by default */

static seqlstm_status fill_limits(const struct sl_session *session, const struct sl_predictor_limits *said,
                                  struct sl_predictor_limits *out, struct seqlstm_error *err)
{
    const int64_t longest = sl_data_state_get_facts(session->state)->longest;
    *out = *said;
    out->sequences = said->sequences ? said->sequences : SEQUENCES;
    out->steps = said->steps ? said->steps : longest > 0 ? longest : 1;
    out->rows = said->rows ? said->rows : out->steps > ROWS ? out->steps : ROWS;
    out->streams = said->streams ? said->streams : 1;
    out->stream_steps = said->stream_steps ? said->stream_steps : 1;
    out->threads = said->threads ? said->threads : 1;
    const struct {
        const char *name;
        int64_t value, most;
    } all[] = {{"sequences", out->sequences, INT32_MAX},
               {"steps", out->steps, INT32_MAX},
               {"rows", out->rows, INT64_MAX},
               {"streams", out->streams, INT32_MAX},
               {"stream_steps", out->stream_steps, INT32_MAX},
               {"threads", out->threads, SL_POOL_MEMBERS_MOST}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k].value < 1 || all[k].value > all[k].most)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the predictor's limit `%s` is %lld, expected 1 to %lld",
                         all[k].name, (long long)all[k].value, (long long)all[k].most);
    if (out->rows < out->steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the predictor's limit `rows` is %lld, which is less than `steps`, %lld", (long long)out->rows,
                     (long long)out->steps);
    return SEQLSTM_OK;
}

static struct sl_envelope make_envelope(const struct sl_predictor_limits *limits, enum sl_predictor_use use)
{
    const int64_t sequences = limits->sequences, steps = limits->steps;
    switch (use) {
    case SL_USE_STREAM:
        return (struct sl_envelope){.sequences = 1,
                                    .steps = limits->stream_steps,
                                    .rows = limits->stream_steps,
                                    .uniform = true,
                                    .stream = true};
    case SL_USE_STREAMS:
        return (struct sl_envelope){
            .sequences = limits->streams, .steps = 1, .rows = limits->streams, .uniform = true, .stream = true};
    default:
        return (struct sl_envelope){.sequences = sequences,
                                    .steps = steps,
                                    .rows = sequences < limits->rows / steps ? sequences * steps : limits->rows};
    }
}

static seqlstm_status plan(struct sl_session *session, const struct sl_predictor_limits *limits,
                           const struct sl_layer *output, enum sl_predictor_use use, struct sl_predictor_plan *out,
                           struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    struct sl_stage stage = {0};
    facts.envelope = make_envelope(limits, use);
    facts.has_weight = false;
    const struct sl_graph_request request = {.model = session->model,
                                             .facts = &facts,
                                             .phase = SL_PHASE_PREDICT,
                                             .need_output = true,
                                             .carry_state = use != SL_USE_WHOLE,
                                             .output_layer = output,
                                             .quantization = sl_session_find_quantization(session)};
    seqlstm_status status = sl_session_prepare_stage(session, &request, NULL, NULL, false, &stage, err);
    if (status == SEQLSTM_OK)
        status = sl_session_open_params(session, stage.graph, err);
    *out = (struct sl_predictor_plan){stage.graph, stage.plan};
    return status;
}

static seqlstm_status plan_uses(struct sl_session *session, const struct sl_predictor_limits *limits,
                                struct sl_predictor_request *request, struct seqlstm_error *err)
{
    char reason[SL_STREAM_REASON_BYTES];
    const bool streams = sl_model_is_streamable(session->model, request->output, reason, sizeof reason) &&
                         sl_data_state_get_facts(session->state)->has_steps;
    const bool uses[SL_USE_COUNT] = {true, streams, streams && limits->streams > 1};
    for (int use = 0; use < SL_USE_COUNT; use++)
        if (uses[use])
            SEQLSTM_TRY(plan(session, limits, request->output, (enum sl_predictor_use)use, &request->plans[use], err));
    return SEQLSTM_OK;
}

static void discard(struct sl_predictor_request *request)
{
    for (int use = 0; use < SL_USE_COUNT; use++) {
        sl_plan_destroy(request->plans[use].plan);
        sl_graph_destroy(request->plans[use].graph);
    }
}

seqlstm_status sl_session_open_predictor(struct sl_session *session, const struct sl_predictor_limits *said,
                                         struct sl_predictor **out_predictor, struct seqlstm_error *err)
{
    struct sl_predictor_limits limits;
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    SEQLSTM_TRY(fill_limits(session, said, &limits, err));
    struct sl_predictor_request request = {.model = session->model, .state = session->state, .threads = limits.threads};
    if (limits.layer) {
        request.output = sl_model_find_layer(session->model, limits.layer);
        if (request.output == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                         "the model has no layer `%s`; config.yaml in the run's folder names its layers", limits.layer);
    }
    if (session->model->encoder_count > 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                     "the model has an encoder and a decoder; use seqlstm_predict_file or `seqlstm predict`");
    SEQLSTM_TRY(sl_session_load_backends(session, err));
    struct sl_pool *pool = NULL;
    seqlstm_status status = sl_pool_create(limits.threads, &pool, err);
    session->planned_pool = pool;
    if (status == SEQLSTM_OK)
        status = plan_uses(session, &limits, &request, err);
    session->planned_pool = NULL;
    sl_pool_destroy(pool);
    if (status == SEQLSTM_OK)
        status = sl_session_load_weights(session, err);
    if (status != SEQLSTM_OK) {
        discard(&request);
        return status;
    }
    request.params = session->params;
    request.weights = sl_session_hash_weights(session);
    return sl_predictor_create(&request, out_predictor, err);
}
