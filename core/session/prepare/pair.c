/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder and a decoder that runs step by step. */
#include "session/prepare/pair.h"

#include <stdlib.h>

#include "data/batch/batcher.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run_folder/stored_quantization.h"

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
        out->items[out->count++].phase = bound ? SL_PHASE_PREDICT : SL_PHASE_TRAIN; /* a choice of another phase is not
                                                                                     * binding */
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

/* Plans one part of the model for batches within the envelope and like the profiles (NULL: not known). */
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
                                       .quantization = sl_session_find_quantization(session),
                                       .attention_weights = attention};
    return sl_session_prepare_stage(session, &request, profiles, choices, false, stage, err);
}

/* Profiles of one step of each batch, with `places` hypotheses for each of its sequences. */
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

seqlstm_status sl_stage_pair_plan(struct sl_session *session, const struct sl_pair_request *request,
                                  struct sl_stage_pair *pair, struct seqlstm_error *err)
{
    const struct sl_envelope envelope = request->batches ? sl_batcher_envelope(request->batches) : *request->envelope;
    const bool exact = request->exact;
    struct sl_envelope step = envelope;
    struct sl_profiles whole = {0}, steps = {0};
    step.sequences = step.rows = envelope.sequences * request->places;
    step.steps = 1;
    seqlstm_status status = exact ? sl_batcher_sample(request->batches, &whole, err) : SEQLSTM_OK;
    if (status == SEQLSTM_OK)
        status = profile_steps(&whole, request->places, &steps, err);
    if (status == SEQLSTM_OK)
        status = plan_part(session, SL_PART_ENCODER, &envelope, exact ? &whole : NULL, request->choices, false,
                           &pair->encoder, err);
    if (status == SEQLSTM_OK)
        status = plan_part(session, SL_PART_DECODER, &step, exact ? &steps : NULL, request->choices, request->attention,
                           &pair->step, err);
    sl_profiles_deinit(&whole);
    sl_profiles_deinit(&steps);
    return status;
}

seqlstm_status sl_stage_pair_open(struct sl_session *session, struct sl_stage_pair *pair, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_session_open_exec(session, &pair->encoder, err));
    return sl_session_open_exec(session, &pair->step, err);
}

void sl_stage_pair_close(struct sl_stage_pair *pair)
{
    sl_exec_destroy(pair->encoder.exec);
    sl_exec_destroy(pair->step.exec);
    pair->encoder.exec = pair->step.exec = NULL;
}

void sl_stage_pair_deinit(struct sl_stage_pair *pair)
{
    sl_stage_deinit(&pair->encoder);
    sl_stage_deinit(&pair->step);
    *pair = (struct sl_stage_pair){0};
}
