/* SPDX-License-Identifier: Apache-2.0 */
/* See pipeline.h. */
#include "session/prepare/pipeline.h"

#include <string.h>

#include "session/finding/finding.h"
#include "session/measure/piece_times.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"

/* 0: they are to be chosen. */
static int32_t get_given(const struct sl_session *session)
{
    const int64_t said = session->model->parallel.pieces;
    return said > 0 ? (int32_t)said : session->stored.pieces;
}

int32_t sl_session_count_pieces(const struct sl_session *session)
{
    const struct sl_parallel_config *parallel = &session->model->parallel;
    if (parallel->pipeline == 1 && parallel->pieces == 0 && session->stored.pieces == 0)
        return 0;
    const int32_t given = get_given(session);
    return given > 0 ? given : SL_PIECES_AUTO_MOST;
}

seqlstm_status sl_session_plan_pipeline(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_plan *plan = session->train.plan;
    memset(&session->pipeline, 0, sizeof session->pipeline);
    sl_owners_deinit(&session->owners);
    if (plan->graph->pieces == 0)
        return SEQLSTM_OK;
    seqlstm_status status = SEQLSTM_OK;
    if (!session->connection || session->ranks.rank == 0)
        status = sl_pipeline_make(plan, (int32_t)session->model->parallel.pipeline, get_given(session),
                                  &session->pipeline, err);
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

void sl_session_enter_pipeline(struct sl_session *session, struct sl_exec_request *request)
{
    const struct sl_pipeline *pipeline = &session->pipeline;
    request->pieces = pipeline->pieces;
    if (session->connection && session->ranks.stages > 1)
        request->stage = (struct sl_exec_stage){.first = pipeline->bounds[session->ranks.stage],
                                                .end = pipeline->bounds[session->ranks.stage + 1],
                                                .exchange = sl_ranks_exchange,
                                                .context = &session->ranks};
}
