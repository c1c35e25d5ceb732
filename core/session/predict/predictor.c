/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the model for each use of a predictor. */
#include "session/predict/predictor.h"

#include <stdlib.h>

#include "predict/streamable.h"
#include "session/predict/embedding_layer.h"
#include "session/prepare/backends.h"
#include "session/prepare/decoding.h"
#include "session/prepare/pair.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"
#include "session/weights/trained.h"

enum { SEQUENCES = 64, STEPS = 256, ROWS = 4096 }; /* by default */
enum { MEASURED_STEPS = 16 };

int64_t sl_session_get_longest(const struct sl_session *session)
{
    if (session->state == NULL)
        return 0;
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    const struct sl_batching *batching = &session->model->data.batching;
    const int64_t part = batching->bptt > ROWS ? batching->bptt : ROWS;
    if (session->model->encoder_count > 0)
        return facts->source_longest;
    return batching->unit == SL_UNIT_STREAM && facts->longest > part ? part : facts->longest;
}

static seqlstm_status fill_limits(const struct sl_session *session, const struct sl_predictor_limits *said,
                                  struct sl_predictor_limits *out, struct seqlstm_error *err)
{
    const int64_t longest = sl_session_get_longest(session);
    *out = *said;
    out->sequences = said->sequences ? said->sequences : SEQUENCES;
    out->steps = said->steps ? said->steps : longest > STEPS ? longest : STEPS;
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

/* ---- plans ------------------------------------------------------------------------------------------------------ */

/* A batch as wide as the envelope; of long sequences, their first steps. What runs few sequences also runs fewer, for
 * which other kernels may be the fastest: it is timed with two, with four, and so on up to the width. */
static seqlstm_status make_profiles(const struct sl_envelope *envelope, enum sl_predictor_use use,
                                    struct sl_profiles *out, struct seqlstm_error *err)
{
    int64_t count = 1, width = envelope->sequences;
    int32_t *lengths = malloc((size_t)width * sizeof *lengths);
    seqlstm_status status = SEQLSTM_OK;
    if (lengths == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    for (int64_t s = 0; s < width; s++)
        lengths[s] = (int32_t)(envelope->steps < MEASURED_STEPS ? envelope->steps : MEASURED_STEPS);
    while (use == SL_USE_FEW && width >> count > 1)
        count++;
    out->stream = envelope->stream;
    for (int64_t k = 0; status == SEQLSTM_OK && k < count; k++)
        status = sl_profiles_add(out, width >> k, lengths, NULL, 1.0 / (double)count, err);
    free(lengths);
    return status;
}

static seqlstm_status plan_on(struct sl_session *session, const struct sl_predictor_wish *wish,
                              enum sl_predictor_use use, struct sl_predictor_request *request,
                              struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    struct sl_stage stage = {0};
    facts.envelope = wish->envelopes[use];
    facts.has_weight = false;
    const struct sl_graph_request graph = {.model = session->model,
                                           .facts = &facts,
                                           .phase = SL_PHASE_PREDICT,
                                           .need_output = true,
                                           .carry_state = sl_predictor_use_carries(use),
                                           .output_layer = wish->output,
                                           .quantization = sl_session_find_quantization(session)};
    const struct sl_choices none = {.count = 0};
    struct sl_profiles profiles = {.count = 0};
    const bool measures = wish->measures && use != SL_USE_WHOLE;
    seqlstm_status status = measures ? make_profiles(&wish->envelopes[use], use, &profiles, err) : SEQLSTM_OK;
    if (status == SEQLSTM_OK)
        status = sl_session_prepare_stage(session, &graph, measures ? &profiles : NULL, measures ? &none : NULL, false,
                                          &stage, err);
    sl_profiles_deinit(&profiles);
    request->plans[use] = (struct sl_predictor_plan){stage.graph, stage.plan};
    return status;
}

/* What one thread will compute is planned for one: kernels for several take up to 1.7 times as long on one. */
static seqlstm_status plan(struct sl_session *session, const struct sl_predictor_wish *wish, enum sl_predictor_use use,
                           struct sl_predictor_request *request, struct seqlstm_error *err)
{
    struct sl_pool *all = session->planned_pool, *one = NULL;
    struct sl_predictor_plan *made = &request->plans[use];
    if (!wish->stays || wish->threads < 2 || !sl_predictor_use_is_single(use, 0))
        return plan_on(session, wish, use, request, err);
    SEQLSTM_TRY(sl_pool_create(1, &one, err));
    session->planned_pool = one;
    const seqlstm_status status = plan_on(session, wish, use, request, err);
    session->planned_pool = all;
    sl_pool_destroy(one);
    if (status != SEQLSTM_OK || sl_predictor_use_is_single(use, made->plan->packed_bytes))
        return status;
    sl_plan_destroy(made->plan);
    sl_graph_destroy(made->graph);
    *made = (struct sl_predictor_plan){NULL, NULL};
    return plan_on(session, wish, use, request, err);
}

static seqlstm_status plan_pair(struct sl_session *session, const struct sl_predictor_wish *wish,
                                struct sl_predictor_request *request, struct seqlstm_error *err)
{
    struct sl_choices choices = {0};
    struct sl_stage_pair pair = {.own_bytes = 0};
    SEQLSTM_TRY(sl_session_list_choices(session, &session->stored.decoding, false, &choices, err));
    const struct sl_pair_request wanted = {.envelope = &wish->envelopes[SL_USE_ENCODER],
                                           .places = session->model->decode.beam,
                                           .choices = &choices,
                                           .attention = wish->attention};
    const seqlstm_status status = sl_stage_pair_plan(session, &wanted, &pair, err);
    free(choices.items);
    request->plans[SL_USE_ENCODER] = (struct sl_predictor_plan){pair.encoder.graph, pair.encoder.plan};
    request->plans[SL_USE_DECODER] = (struct sl_predictor_plan){pair.step.graph, pair.step.plan};
    return status;
}

/* Plans every use, and loads the weights. */
static seqlstm_status fill(struct sl_session *session, const struct sl_predictor_wish *wish,
                           struct sl_predictor_request *request, struct seqlstm_error *err)
{
    for (int use = 0; use <= SL_USE_CHUNKS; use++)
        if (wish->envelopes[use].sequences > 0)
            SEQLSTM_TRY(plan(session, wish, (enum sl_predictor_use)use, request, err));
    if (wish->envelopes[SL_USE_ENCODER].sequences > 0)
        SEQLSTM_TRY(plan_pair(session, wish, request, err));
    for (int use = 0; use < SL_USE_COUNT; use++)
        if (request->plans[use].graph)
            SEQLSTM_TRY(sl_session_open_params(session, request->plans[use].graph, err));
    SEQLSTM_TRY(sl_session_load_weights(session, err));
    SEQLSTM_TRY(sl_params_pull(session->params, err));
    request->params = session->params;
    request->never = sl_session_find_never(session);
    request->weights = wish->stays ? sl_session_hash_weights(session) : 0;
    return SEQLSTM_OK;
}

seqlstm_status sl_session_make_predictor(struct sl_session *session, const struct sl_predictor_wish *wish,
                                         struct sl_predictor **out_predictor, struct seqlstm_error *err)
{
    struct sl_pool *pool = NULL;
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    SEQLSTM_TRY(sl_session_load_backends(session, err));
    if (wish->threads > 0)
        SEQLSTM_TRY(sl_pool_create(wish->threads, &pool, err));
    struct sl_predictor_request request = {.model = session->model,
                                           .state = session->state,
                                           .output = wish->output,
                                           .threads = wish->threads,
                                           .pool = wish->threads > 0 ? NULL : session->pool,
                                           .sequences = wish->sequences,
                                           .rows = wish->rows,
                                           .warms = wish->stays,
                                           .attention = wish->attention,
                                           .reproducible = wish->reproducible,
                                           .shares_lock = wish->shares_lock};
    session->planned_pool = pool;
    const seqlstm_status status = fill(session, wish, &request, err);
    session->planned_pool = NULL;
    sl_pool_destroy(pool);
    if (status == SEQLSTM_OK)
        return sl_predictor_create(&request, out_predictor, err);
    for (int use = 0; use < SL_USE_COUNT; use++) {
        sl_plan_destroy(request.plans[use].plan);
        sl_graph_destroy(request.plans[use].graph);
    }
    return status;
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static void fill_envelopes(const struct sl_session *session, const struct sl_predictor_limits *limits,
                           struct sl_predictor_wish *wish)
{
    char reason[SL_STREAM_REASON_BYTES];
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    const int64_t sequences = limits->sequences, steps = limits->steps, streams = limits->streams;
    const int64_t rows = sequences < limits->rows / steps ? sequences * steps : limits->rows;
    const bool encodes = session->model->encoder_count > 0;
    struct sl_envelope whole = {.sequences = sequences, .steps = steps, .rows = rows};
    if (encodes) {
        whole.source_steps = steps;
        whole.source_rows = rows;
    }
    wish->envelopes[sl_session_decodes(session) && !wish->output ? SL_USE_ENCODER : SL_USE_WHOLE] = whole;
    if (facts->has_steps && !encodes && sequences > 1)
        wish->envelopes[SL_USE_ALONE] = (struct sl_envelope){.sequences = 1, .steps = steps, .rows = steps};
    if (facts->has_steps && !encodes && sequences > SL_FEW_SEQUENCES)
        wish->envelopes[SL_USE_FEW] = (struct sl_envelope){
            .sequences = SL_FEW_SEQUENCES,
            .steps = steps,
            .rows = SL_FEW_SEQUENCES < limits->rows / steps ? SL_FEW_SEQUENCES * steps : limits->rows};
    if (!facts->has_steps || encodes || !sl_model_is_streamable(session->model, wish->output, reason, sizeof reason))
        return;
    wish->envelopes[SL_USE_STREAM] = (struct sl_envelope){
        .sequences = 1, .steps = limits->stream_steps, .rows = limits->stream_steps, .uniform = true, .stream = true};
    if (streams > 1)
        wish->envelopes[SL_USE_STREAMS] =
            (struct sl_envelope){.sequences = streams, .steps = 1, .rows = streams, .uniform = true, .stream = true};
    if (limits->chunk_steps > 0)
        wish->envelopes[SL_USE_CHUNKS] = (struct sl_envelope){
            .sequences = sequences, .steps = limits->chunk_steps, .rows = sequences * limits->chunk_steps};
}

seqlstm_status sl_session_open_predictor(struct sl_session *session, const struct sl_predictor_limits *said,
                                         struct sl_predictor **out_predictor, struct seqlstm_error *err)
{
    struct sl_predictor_limits limits;
    SEQLSTM_TRY(sl_session_require_trained(session, err));
    SEQLSTM_TRY(fill_limits(session, said, &limits, err));
    struct sl_predictor_wish wish = {.threads = limits.threads,
                                     .stays = true,
                                     .measures = limits.measures,
                                     .reproducible = limits.reproducible,
                                     .shares_lock = limits.shares_lock,
                                     .sequences = limits.sequences,
                                     .rows = limits.rows};
    if (limits.layer) {
        wish.output = sl_model_find_layer(session->model, limits.layer);
        if (wish.output == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                         "the model has no layer `%s`; config.yaml in the run's folder names its layers", limits.layer);
    }
    if (limits.embeds && limits.layer)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the predictor's `layer` is `%s` and its flags ask for another",
                     limits.layer);
    if (limits.embeds)
        wish.output = sl_session_find_embedding_layer(session->model);
    fill_envelopes(session, &limits, &wish);
    return sl_session_make_predictor(session, &wish, out_predictor, err);
}
