/* SPDX-License-Identifier: Apache-2.0 */
#include "session/prepare/pieces.h"

#include "session/record/session_record.h"

int32_t sl_session_get_given_pieces(const struct sl_session *session)
{
    const int64_t said = session->model->parallel.pieces;
    return said > 0 ? (int32_t)said : session->stored.pieces;
}

int32_t sl_session_count_pieces(const struct sl_session *session)
{
    const struct sl_parallel_config *parallel = &session->model->parallel;
    if (parallel->pipeline == 1 && parallel->pieces == 0 && session->stored.pieces == 0)
        return 0;
    const int32_t given = sl_session_get_given_pieces(session);
    return given > 0 ? given : SL_PIECES_AUTO_MOST;
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
