/* SPDX-License-Identifier: Apache-2.0 */
/* Batchers of training and validation, and what of them is measured: the cost of a step and the edges of the buckets,
 * which a plan stores and a resumed run replays.
 *
 *   "batching": {"edges": [8, 13, 21], "step_cost": {…}}   (base/cost_json.h)
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/operation/cost_json.h"
#include "session/session_private.h"

static bool is_auto(const struct sl_session *session)
{
    return session->model->data.batching.bucketing.kind == SL_BUCKETING_AUTO &&
           session->model->data.batching.unit == SL_UNIT_SEQUENCE;
}

/* The cost of a step, for which the limits of the batches must be known: those of any edges. */
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
    if (is_auto(session) && session->stored.edge_count > 0) {
        request.edges = session->stored.edges;
        request.edge_count = session->stored.edge_count;
        session->cost = session->stored.cost;
    } else if (is_auto(session)) {
        SEQLSTM_TRY(sl_session_find_step_cost(session, &request.cost, err));
    }
    seqlstm_status status = sl_batcher_open(session->train_data, &request, &session->train_batcher, err);
    return status == SEQLSTM_OK ? SEQLSTM_OK : sl_session_find(session, "E0501", "data", status, err);
}

seqlstm_status sl_session_open_valid_batcher(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_batcher_request request = {.phase = SL_BATCHING_EVALUATE, .seed = session->model->seed};
    request.edges = sl_batcher_get_edges(session->train_batcher, &request.edge_count);
    return sl_batcher_open(session->valid_data, &request, &session->valid_batcher, err);
}

/* ---- stored plans --------------------------------------------------------------------------------- */

/* NULL: nothing was measured. */
static json_t *write_batching(const struct sl_session *session)
{
    int64_t count = 0;
    const int64_t *edges = session->train_batcher ? sl_batcher_get_edges(session->train_batcher, &count) : NULL;
    if (!is_auto(session) || count == 0)
        return NULL;
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer((json_int_t)edges[i]));
    return json_pack("{s:o,s:o}", "edges", list, "step_cost", sl_step_cost_to_json(&session->cost));
}

void sl_session_write_edges(const struct sl_session *session, struct sl_buf *out)
{
    int64_t count;
    const int64_t *edges = sl_batcher_get_edges(session->train_batcher, &count);
    if (!is_auto(session) || count == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        sl_buf_printf(out, "%s%lld", i ? "," : ",\"batching\":{\"edges\":[", (long long)edges[i]);
    sl_buf_append_text(out, "]}");
}

seqlstm_status sl_session_write_plan_json(const struct sl_session *session, const struct sl_plan *plan,
                                          struct sl_buf *out, struct seqlstm_error *err)
{
    json_t *batching = write_batching(session);
    const struct sl_plan_beside beside = sl_session_get_beside(session, plan);
    if (batching == NULL)
        return sl_plan_write_json(plan, &beside, out, err);
    struct sl_buf plain = {0};
    char *text = NULL;
    seqlstm_status status = sl_plan_write_json(plan, &beside, &plain, err);
    if (status == SEQLSTM_OK) {
        json_t *root = plain.failed ? NULL : json_loadb(plain.data, plain.length_bytes, 0, NULL);
        if (root && json_object_set(root, "batching", batching) == 0)
            text = json_dumps(root, JSON_INDENT(2));
        json_decref(root);
        if (text == NULL)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the plan's JSON");
    }
    if (status == SEQLSTM_OK) {
        sl_buf_append_text(out, text);
        sl_buf_append_char(out, '\n');
    }
    free(text);
    sl_buf_deinit(&plain);
    json_decref(batching);
    return status;
}

void sl_session_write_plan_table(const struct sl_session *session, const struct sl_plan *plan, bool brief,
                                 struct sl_buf *out)
{
    const struct sl_plan_beside beside = sl_session_get_beside(session, plan);
    sl_plan_write_table(plan, &beside, brief, out);
}

seqlstm_status sl_stored_plan_read_batching(const char *path, const struct json_t *batching, struct sl_stored_plan *out,
                                            struct seqlstm_error *err)
{
    const json_t *edges = json_object_get(batching, "edges");
    out->edges = SL_ARENA_ARRAY(&out->arena, int64_t, json_array_size(edges) + 1);
    if (out->edges == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stored plan");
    for (size_t i = 0; i < json_array_size(edges); i++) {
        json_int_t edge = json_integer_value(json_array_get(edges, i));
        if (edge < 0 || edge > INT32_MAX || (i > 0 && edge <= out->edges[i - 1]))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: edge %zu of \"batching\" does not ascend", path, i);
        out->edges[out->edge_count++] = edge;
    }
    return sl_step_cost_from_json(path, json_object_get(batching, "step_cost"), &out->cost, err);
}
