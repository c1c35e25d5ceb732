/* SPDX-License-Identifier: Apache-2.0 */
/* Batchers of training and validation, and what is measured for them: the cost of a step and the edges of the
 * buckets. */
#include "session/prepare/batching.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/cost_json.h"
#include "session/data/read_data.h"
#include "session/finding/finding.h"
#include "session/prepare/step_cost.h"
#include "session/record/session_record.h"

/* Measures the cost of a step. The limits of the batches must be known for it; they do not depend on the edges. */
static seqlstm_status measure(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = session->model->seed};
    struct sl_batcher *probe = NULL;
    SEQLSTM_TRY(sl_batcher_open(session->train_data, &request, &probe, err));
    struct sl_envelope envelope = sl_batcher_envelope(probe);
    sl_batcher_close(probe);
    return sl_session_measure_steps(session, &envelope, &session->cost, err);
}

seqlstm_status sl_session_find_step_cost(struct sl_session *session, const struct sl_step_cost **out_cost,
                                         struct seqlstm_error *err)
{
    if (session->cost.count == 0 && session->stored.cost.count > 0)
        session->cost = session->stored.cost;
    SEQLSTM_TRY(sl_session_read_data(session, err));
    if (session->cost.count == 0)
        SEQLSTM_TRY(measure(session, err));
    *out_cost = session->cost.count > 0 ? &session->cost : NULL;
    return SEQLSTM_OK;
}

seqlstm_status sl_session_open_train_batcher(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_batcher_request request = {.phase = SL_BATCHING_TRAIN, .seed = session->model->seed};
    if (sl_session_measures_buckets(session) && session->stored.edge_count > 0) {
        request.edges = session->stored.edges;
        request.edge_count = session->stored.edge_count;
        session->cost = session->stored.cost;
    } else if (sl_session_measures_buckets(session)) {
        SEQLSTM_TRY(sl_session_find_step_cost(session, &request.cost, err));
    }
    seqlstm_status status = sl_batcher_open(session->train_data, &request, &session->train_batcher, err);
    return status == SEQLSTM_OK ? SEQLSTM_OK : sl_session_add_finding(session, "E0501", "data", status, err);
}

seqlstm_status sl_session_open_valid_batcher(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_batcher_request request = {.phase = SL_BATCHING_EVALUATE, .seed = session->model->seed};
    request.edges = sl_batcher_get_edges(session->train_batcher, &request.edge_count);
    return sl_batcher_open(session->valid_data, &request, &session->valid_batcher, err);
}
