/* SPDX-License-Identifier: Apache-2.0 */
/* See pipeline.h. */
#include "session/prepare/pipeline.h"

#include <string.h>

#include "session/finding/finding.h"
#include "session/measure/piece_times.h"
#include "session/prepare/pieces.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"

seqlstm_status sl_session_plan_pipeline(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_plan *plan = session->train.plan;
    memset(&session->pipeline, 0, sizeof session->pipeline);
    sl_owners_deinit(&session->owners);
    if (plan->graph->pieces == 0)
        return SEQLSTM_OK;
    seqlstm_status status = SEQLSTM_OK;
    if (!session->connection || session->ranks.rank == 0)
        status = sl_pipeline_make(plan, (int32_t)session->model->parallel.pipeline,
                                  sl_session_get_given_pieces(session), &session->pipeline, err);
    if (status != SEQLSTM_OK)
        return sl_session_add_finding(session, "E0509", "parallel", status, err);
    if (session->pipeline.stages > 1 && session->model->dispatch.policy != SL_POLICY_ESTIMATE) {
        SEQLSTM_TRY(sl_session_open_params(session, session->train.graph, err));
        SEQLSTM_TRY(sl_session_tune_pipeline(session, &session->pipeline, err));
    }
    if (session->connection)
        SEQLSTM_TRY(sl_ranks_broadcast(&session->ranks, 0, &session->pipeline, (int64_t)sizeof session->pipeline, err));
    return sl_owners_init(&session->owners, plan, session->pipeline.bounds, session->pipeline.stages, err);
}
