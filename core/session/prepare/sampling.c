/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduled sampling. */
#include "session/prepare/sampling.h"

#include <stdlib.h>

#include "session/prepare/decoding.h"
#include "session/prepare/pair.h"
#include "session/record/session_record.h"

seqlstm_status sl_sampling_plan(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err)
{
    sl_sampling_deinit(sampling);
    if (session->model->train.teacher_forcing.kind == SL_TEACHER_ALWAYS)
        return SEQLSTM_OK;
    struct sl_choices choices = {0};
    seqlstm_status status = sl_session_list_choices(session, &session->stored.sampling, true, &choices, err);
    if (status == SEQLSTM_OK) {
        const struct sl_pair_request request = {
            .batches = session->train_batcher, .places = 1, .choices = &choices, .exact = true};
        status = sl_stage_pair_plan(session, &request, &sampling->pair, err);
    }
    free(choices.items);
    SEQLSTM_TRY(status);
    sampling->pair.own_bytes = sl_sampler_count_bytes(sampling->pair.step.graph);
    return SEQLSTM_OK;
}

seqlstm_status sl_sampling_open(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err)
{
    if (sampling->pair.step.plan == NULL)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_stage_pair_open(session, &sampling->pair, err));
    struct sl_sampler_request request = {.encoder = sampling->pair.encoder.exec,
                                         .step = sampling->pair.step.exec,
                                         .argmax = session->model->train.teacher_forcing.own == SL_OWN_ARGMAX,
                                         .seed = session->model->seed,
                                         .never = sl_session_find_never(session)};
    return sl_sampler_create(&request, &sampling->sampler, err);
}

void sl_sampling_deinit(struct sl_sampling *sampling)
{
    sl_sampler_destroy(sampling->sampler);
    sampling->sampler = NULL;
    sl_stage_pair_close(&sampling->pair);
    sl_stage_pair_deinit(&sampling->pair);
}
