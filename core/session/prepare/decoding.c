/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder and a decoder that runs step by step: planned, and opened for whoever drives them. */
#include <stdlib.h>

#include "session/session_private.h"

/* Who runs a pair: in training (`bound`) the pair's own choices in the stored plan, `own`. Else these, and then those
 * of training, stored or just made, are followed where the backends accept: a new run, the same run resumed, and its
 * evaluation decode alike, though nothing of that is measured. The items are to be freed. */
seqlstm_status sl_session_list_choices(const struct sl_session *session, const struct sl_choices *own, bool bound,
                                       struct sl_choices *out, struct seqlstm_error *err)
{
    const struct sl_choices *stored = &session->stored.phases;
    const struct sl_plan *made = session->options.forced_backend || stored->count > 0 ? NULL : session->train.plan;
    out->items = malloc(((size_t)own->count + (size_t)stored->count + (size_t)(made ? made->call_count : 0) + 1) *
                        sizeof *out->items);
    if (out->items == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the choices of a plan");
    for (int32_t i = 0; i < own->count; i++) {
        out->items[out->count] = own->items[i];
        out->items[out->count++].phase = bound ? SL_PHASE_PREDICT : SL_PHASE_TRAIN; /* of another phase: not binding */
    }
    if (bound && own->count > 0)
        return SEQLSTM_OK;
    for (int32_t i = 0; i < stored->count; i++)
        out->items[out->count++] = stored->items[i];
    for (int32_t c = 0; made && c < made->call_count; c++)
        out->items[out->count++] =
            (struct sl_plan_choice){made->calls[c].node->name, sl_backend_get_id(made->calls[c].backend),
                                    made->calls[c].variant, SL_PHASE_TRAIN};
    return SEQLSTM_OK;
}

/* One part of the model, for batches of the envelope and like the profiles (NULL: not known). */
static seqlstm_status plan_part(struct sl_session *session, enum sl_part part, const struct sl_envelope *envelope,
                                const struct sl_profiles *profiles, const struct sl_choices *choices, bool attention,
                                struct sl_stage *stage, struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(session->state);
    facts.envelope = *envelope;
    facts.has_weight = false;
    struct sl_graph_request request = {.model = session->model,
                                       .facts = &facts,
                                       .phase = SL_PHASE_PREDICT,
                                       .need_output = true,
                                       .part = part,
                                       .attention_weights = attention};
    return sl_session_prepare_stage(session, &request, profiles, choices, false, stage, err);
}

/* One step of each batch, with `places` hypotheses for each of its sequences. */
static seqlstm_status profile_steps(const struct sl_profiles *batches, int64_t places, struct sl_profiles *out,
                                    struct seqlstm_error *err)
{
    seqlstm_status status = SEQLSTM_OK;
    for (int32_t p = 0; p < batches->count && status == SEQLSTM_OK; p++) {
        const int64_t rows = batches->items[p].sequences * places;
        int32_t *ones = malloc(((size_t)rows + 1) * sizeof *ones);
        for (int64_t r = 0; ones && r < rows; r++)
            ones[r] = 1;
        status = ones ? sl_profiles_add(out, rows, ones, ones, batches->items[p].weight, err)
                      : seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a profile");
        free(ones);
    }
    return status;
}

/* The decoder runs on one step of `places` hypotheses for each source of the batches. */
static seqlstm_status plan_pair(struct sl_session *session, const struct sl_batcher *batches, int64_t places,
                                const struct sl_choices *choices, bool attention, bool exact,
                                struct sl_stage_pair *pair, struct seqlstm_error *err)
{
    const struct sl_envelope envelope = sl_batcher_envelope(batches);
    struct sl_envelope step = envelope;
    struct sl_profiles whole = {0}, steps = {0};
    step.sequences = step.rows = envelope.sequences * places;
    step.steps = 1;
    seqlstm_status status = exact ? sl_batcher_sample(batches, &whole, err) : SEQLSTM_OK;
    if (status == SEQLSTM_OK)
        status = profile_steps(&whole, places, &steps, err);
    if (status == SEQLSTM_OK)
        status =
            plan_part(session, SL_PART_ENCODER, &envelope, exact ? &whole : NULL, choices, false, &pair->encoder, err);
    if (status == SEQLSTM_OK)
        status =
            plan_part(session, SL_PART_DECODER, &step, exact ? &steps : NULL, choices, attention, &pair->step, err);
    sl_profiles_deinit(&whole);
    sl_profiles_deinit(&steps);
    return status;
}

static seqlstm_status open_pair(struct sl_session *session, struct sl_stage_pair *pair, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_session_open_exec(session, &pair->encoder, err));
    return sl_session_open_exec(session, &pair->step, err);
}

static void close_pair(struct sl_stage_pair *pair)
{
    sl_exec_destroy(pair->encoder.exec);
    sl_exec_destroy(pair->step.exec);
    pair->encoder.exec = pair->step.exec = NULL;
}

static void deinit_pair(struct sl_stage_pair *pair)
{
    sl_stage_deinit(&pair->encoder);
    sl_stage_deinit(&pair->step);
    *pair = (struct sl_stage_pair){0};
}

static struct sl_plan_pair view_pair(const struct sl_stage_pair *pair)
{
    return (struct sl_plan_pair){pair->encoder.plan, pair->step.plan, pair->own_bytes};
}

seqlstm_status sl_decoding_plan(struct sl_session *session, const struct sl_batcher *batches, bool attention,
                                bool exact, struct sl_decoding *decoding, struct seqlstm_error *err)
{
    const struct sl_decode_config *config = &session->model->decode;
    sl_decoding_deinit(decoding);
    decoding->attention = attention;
    struct sl_choices choices = {0};
    const bool bound = batches == session->valid_batcher;
    seqlstm_status status = sl_session_list_choices(session, &session->stored.decoding, bound, &choices, err);
    if (status == SEQLSTM_OK)
        status = plan_pair(session, batches, config->beam, &choices, attention, exact, &decoding->pair, err);
    free(choices.items);
    SEQLSTM_TRY(status);
    decoding->pair.own_bytes =
        sl_decoder_count_bytes(decoding->pair.step.graph, config, sl_batcher_envelope(batches).source_steps);
    return SEQLSTM_OK;
}

seqlstm_status sl_decoding_open(struct sl_session *session, struct sl_decoding *decoding, struct seqlstm_error *err)
{
    const struct sl_vocabulary *vocabulary = sl_data_state_find_classes(session->state);
    sl_decoding_close(decoding);
    SEQLSTM_TRY(open_pair(session, &decoding->pair, err));
    struct sl_decoder_request request = {.encoder = decoding->pair.encoder.exec,
                                         .step = decoding->pair.step.exec,
                                         .config = &session->model->decode,
                                         .begin = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_BOS),
                                         .end = sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS),
                                         .seed = session->model->seed,
                                         .traces_attention = decoding->attention};
    return sl_decoder_create(&request, &decoding->decoder, err);
}

void sl_decoding_close(struct sl_decoding *decoding)
{
    sl_decoder_destroy(decoding->decoder);
    decoding->decoder = NULL;
    close_pair(&decoding->pair);
}

void sl_decoding_deinit(struct sl_decoding *decoding)
{
    sl_decoding_close(decoding);
    deinit_pair(&decoding->pair);
}

seqlstm_status sl_sampling_plan(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err)
{
    sl_sampling_deinit(sampling);
    if (session->model->train.teacher_forcing.kind == SL_TEACHER_ALWAYS)
        return SEQLSTM_OK;
    struct sl_choices choices = {0};
    seqlstm_status status = sl_session_list_choices(session, &session->stored.sampling, true, &choices, err);
    if (status == SEQLSTM_OK)
        status = plan_pair(session, session->train_batcher, 1, &choices, false, true, &sampling->pair, err);
    free(choices.items);
    SEQLSTM_TRY(status);
    sampling->pair.own_bytes = sl_sampler_count_bytes(sampling->pair.step.graph);
    return SEQLSTM_OK;
}

seqlstm_status sl_sampling_open(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err)
{
    if (sampling->pair.step.plan == NULL)
        return SEQLSTM_OK;
    SEQLSTM_TRY(open_pair(session, &sampling->pair, err));
    struct sl_sampler_request request = {.encoder = sampling->pair.encoder.exec,
                                         .step = sampling->pair.step.exec,
                                         .argmax = session->model->train.teacher_forcing.own == SL_OWN_ARGMAX,
                                         .seed = session->model->seed};
    return sl_sampler_create(&request, &sampling->sampler, err);
}

void sl_sampling_deinit(struct sl_sampling *sampling)
{
    sl_sampler_destroy(sampling->sampler);
    sampling->sampler = NULL;
    close_pair(&sampling->pair);
    deinit_pair(&sampling->pair);
}

struct sl_plan_beside sl_session_get_beside(const struct sl_session *session, const struct sl_plan *plan)
{
    return (struct sl_plan_beside){.evaluate = plan == session->evaluate.plan ? NULL : session->evaluate.plan,
                                   .decoding = view_pair(&session->decoding.pair),
                                   .test = session->test.plan,
                                   .test_decoding = view_pair(&session->test_decoding.pair),
                                   .sampling = view_pair(&session->sampling.pair)};
}
