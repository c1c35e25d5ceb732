/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a plan with what the session adds to it: the edges of the buckets and the cost of a step, which a resumed run
 * replays, and the memory of the other plans.
 *
 *   "batching": {"edges": [8, 13, 21], "step_cost": {…}}   (base/operation/cost_json.h)
 *   "parallel": {"pieces": 8, "stages": […], …}            (dispatch/explain/explain_stages.h)
 */
#include "session/run_folder/plan_json.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/operation/cost_json.h"
#include "base/value/buf.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "dispatch/explain/explain.h"
#include "dispatch/explain/explain_stages.h"
#include "session/record/session_record.h"

static struct sl_plan_pair view_pair(const struct sl_stage_pair *pair)
{
    return (struct sl_plan_pair){pair->encoder.plan, pair->step.plan, pair->own_bytes};
}

static struct sl_plan_beside get_beside(const struct sl_session *session, const struct sl_plan *plan)
{
    return (struct sl_plan_beside){.evaluate = plan == session->evaluate.plan ? NULL : session->evaluate.plan,
                                   .decoding = view_pair(&session->decoding.pair),
                                   .test = session->test.plan,
                                   .test_decoding = view_pair(&session->test_decoding.pair),
                                   .sampling = view_pair(&session->sampling.pair)};
}

int64_t sl_session_sum_memory(const struct sl_session *session, const struct sl_plan *plan)
{
    const struct sl_plan_beside beside = get_beside(session, plan);
    return sl_plan_sum_memory(plan, &beside).peak_bytes;
}

/* NULL: nothing was measured, or *out_no_memory. */
static json_t *write_batching(const struct sl_session *session, bool *out_no_memory)
{
    int64_t count = 0;
    const int64_t *edges = session->train_batcher ? sl_batcher_get_edges(session->train_batcher, &count) : NULL;
    if (!sl_session_measures_buckets(session) || count == 0)
        return NULL;
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        list = sl_json_add(list, json_integer((json_int_t)edges[i]));
    json_t *batching = json_pack("{s:o,s:o}", "edges", list, "step_cost", sl_step_cost_to_json(&session->cost));
    *out_no_memory = batching == NULL;
    return batching;
}

static void write_edges(const struct sl_session *session, struct sl_buf *out)
{
    int64_t count;
    const int64_t *edges = sl_batcher_get_edges(session->train_batcher, &count);
    if (!sl_session_measures_buckets(session) || count == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        sl_buf_printf(out, "%s%lld", i ? "," : ",\"batching\":{\"edges\":[", (long long)edges[i]);
    sl_buf_append_text(out, "]}");
}

seqlstm_status sl_session_write_plan_json(const struct sl_session *session, const struct sl_plan *plan,
                                          struct sl_buf *out, struct seqlstm_error *err)
{
    bool no_memory = false;
    json_t *batching = write_batching(session, &no_memory);
    const struct sl_plan_beside beside = get_beside(session, plan);
    const bool pieced = session->pipeline.stages > 0 && plan == session->train.plan;
    if (no_memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan's JSON");
    if (batching == NULL && !pieced)
        return sl_plan_write_json(plan, &beside, out, err);
    struct sl_buf plain = {0};
    seqlstm_status status = sl_plan_write_json(plan, &beside, &plain, err);
    if (status == SEQLSTM_OK) {
        json_t *root = plain.failed ? NULL : sl_json_load(plain.data, plain.length_bytes, 0, NULL, &no_memory);
        bool added = root != NULL;
        if (added && batching)
            added = json_object_set(root, "batching", batching) == 0;
        if (added && pieced)
            added = json_object_set_new(root, "parallel", sl_pipeline_write_json(plan, &session->pipeline)) == 0;
        if (!added) {
            json_decref(root);
            root = NULL;
        }
        if (!sl_json_append_tree(out, root, 0))
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the plan's JSON");
    }
    sl_buf_deinit(&plain);
    json_decref(batching);
    return status;
}

void sl_session_write_plan_table(const struct sl_session *session, const struct sl_plan *plan, bool brief,
                                 struct sl_buf *out)
{
    const struct sl_plan_beside beside = get_beside(session, plan);
    sl_plan_write_table(plan, &beside, brief, out);
    if (session->pipeline.stages > 0 && plan == session->train.plan)
        sl_pipeline_write_table(plan, &session->pipeline, out);
}

static void write_layers(const struct sl_plan *plan, bool first, struct sl_buf *out)
{
    for (int32_t c = 0; c < plan->call_count; c++) {
        const struct sl_call *call = &plan->calls[c];
        sl_buf_append_text(out, c == 0 && first ? "{\"name\":" : ",{\"name\":");
        sl_json_append_string(out, call->node->name);
        sl_buf_append_text(out, ",\"backend\":");
        sl_json_append_string(out, sl_backend_get_id(call->backend));
        sl_buf_append_text(out, ",\"variant\":");
        sl_json_append_string(out, call->variant);
        sl_buf_append_char(out, '}');
    }
}

static void write_pair(const char *name, const struct sl_stage_pair *pair, struct sl_buf *out)
{
    if (pair->step.plan == NULL)
        return;
    sl_buf_printf(out, ",\"%s\":{\"layers\":[", name);
    write_layers(pair->encoder.plan, true, out);
    write_layers(pair->step.plan, pair->encoder.plan->call_count == 0, out);
    sl_buf_append_text(out, "]}");
}

void sl_session_write_choices(const struct sl_session *session, struct sl_buf *out)
{
    const struct sl_plan *plan = session->train.plan, *evaluate = session->evaluate.plan;
    sl_buf_printf(out, "{\"schema\":\"seqlstm.plan/1\",\"threads\":%d,\"devices\":[", plan->threads);
    for (int32_t d = 0; d < plan->device_count; d++) {
        sl_buf_append_text(out, d ? ",{\"backend\":" : "{\"backend\":");
        sl_json_append_string(out, plan->devices[d].backend);
        sl_buf_append_text(out, ",\"class\":");
        sl_json_append_string(out, plan->devices[d].device_class);
        sl_buf_append_char(out, '}');
    }
    sl_buf_append_text(out, "],\"layers\":[");
    write_layers(plan, true, out);
    sl_buf_append_text(out, "]");
    if (evaluate) {
        sl_buf_append_text(out, ",\"evaluate\":{\"layers\":[");
        write_layers(evaluate, true, out);
        sl_buf_append_text(out, "]}");
    }
    write_pair("decoding", &session->decoding.pair, out);
    write_pair("sampling", &session->sampling.pair, out);
    if (session->pipeline.stages > 0)
        sl_buf_printf(out, ",\"parallel\":{\"pieces\":%d}", session->pipeline.pieces);
    write_edges(session, out);
    sl_buf_append_char(out, '}');
}
