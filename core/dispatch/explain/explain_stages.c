/* SPDX-License-Identifier: Apache-2.0 */
/* See explain_stages.h. */
#include "dispatch/explain/explain_stages.h"

#include "base/value/json_tree.h"

enum { BARRIERS_SHOWN = 32 };

static const char *get_first(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage)
{
    return plan->calls[pipeline->bounds[stage]].node->name;
}

static const char *get_last(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage)
{
    return plan->calls[pipeline->bounds[stage + 1] - 1].node->name;
}

/* The share of the ranks' time in which they wait for each other. */
static double get_waiting(const struct sl_pipeline *pipeline)
{
    const double share = 1 - pipeline->alone_ns / (pipeline->step_ns * pipeline->stages);
    return share > 0 ? share : 0;
}

void sl_pipeline_write_table(const struct sl_plan *plan, const struct sl_pipeline *pipeline, struct sl_buf *out)
{
    struct sl_pipeline_barrier barriers[BARRIERS_SHOWN];
    int32_t count;
    sl_buf_printf(out, "pieces  the steps of a batch run in %d%s\n", pipeline->pieces,
                  pipeline->chosen ? ", as many as are fast" : "");
    for (int32_t s = 0; s < pipeline->stages && pipeline->stages > 1; s++) {
        const char *first = get_first(plan, pipeline, s), *last = get_last(plan, pipeline, s);
        sl_buf_printf(out, "%s %d: %s%s%s", s == 0 ? "stages " : "       ", s, first,
                      pipeline->bounds[s + 1] - pipeline->bounds[s] > 1 ? " to " : "",
                      pipeline->bounds[s + 1] - pipeline->bounds[s] > 1 ? last : "");
        if (pipeline->step_ns > 0)
            sl_buf_printf(out, ", %.3g ms", pipeline->stage_ns[s] * 1e-6);
        sl_buf_printf(out, "; its rank needs %.3g MB less memory\n",
                      1e-6 * (double)sl_pipeline_count_untouched(plan, pipeline, s));
    }
    if (pipeline->step_ns > 0 && pipeline->stages > 1)
        sl_buf_printf(
            out,
            "        %.3g ms for a mean batch (computed), %.2f times as fast as one rank; the ranks wait %.0f %% "
            "of the time\n",
            pipeline->step_ns * 1e-6, pipeline->alone_ns / pipeline->step_ns, 100 * get_waiting(pipeline));
    if (sl_pipeline_list_barriers(plan, pipeline, barriers, BARRIERS_SHOWN, &count, NULL) != SEQLSTM_OK)
        out->failed = true;
    for (int32_t k = 0; k < count && k < BARRIERS_SHOWN; k++) {
        sl_buf_printf(out, "        `%s` runs on all steps at once: %s", barriers[k].call->node->name,
                      sl_barrier_get_reason(barriers[k].reason));
        if (barriers[k].ns >= 1e3)
            sl_buf_printf(out, "; this costs %.3g ms", barriers[k].ns * 1e-6);
        sl_buf_append_char(out, '\n');
    }
}

json_t *sl_pipeline_write_json(const struct sl_plan *plan, const struct sl_pipeline *pipeline)
{
    struct sl_pipeline_barrier list[BARRIERS_SHOWN];
    int32_t count;
    if (sl_pipeline_list_barriers(plan, pipeline, list, BARRIERS_SHOWN, &count, NULL) != SEQLSTM_OK)
        return NULL;
    json_t *stages = json_array(), *barriers = json_array();
    for (int32_t s = 0; s < pipeline->stages; s++)
        stages =
            sl_json_add(stages, json_pack("{s:s,s:s,s:f,s:I}", "first", get_first(plan, pipeline, s), "last",
                                          get_last(plan, pipeline, s), "ns", pipeline->stage_ns[s], "untouched_bytes",
                                          (json_int_t)sl_pipeline_count_untouched(plan, pipeline, s)));
    for (int32_t k = 0; k < count && k < BARRIERS_SHOWN; k++)
        barriers = sl_json_add(barriers, json_pack("{s:s,s:s,s:f}", "layer", list[k].call->node->name, "reason",
                                                   sl_barrier_get_reason(list[k].reason), "ns", list[k].ns));
    return json_pack("{s:i,s:o,s:f,s:f,s:o}", "pieces", pipeline->pieces, "stages", stages, "step_ns",
                     pipeline->step_ns, "alone_ns", pipeline->alone_ns, "barriers", barriers);
}
