/* SPDX-License-Identifier: Apache-2.0 */
/* See sizes.h. */
#include "dispatch/sizes.h"

#include "dispatch/axes.h"
#include "dispatch/estimate.h"

seqlstm_status sl_sizes_ask(const struct sl_backend *backend, const struct seqlstm_op *op,
                            const struct seqlstm_axis *axis, struct seqlstm_sizes *out_sizes,
                            struct seqlstm_error *err)
{
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes, .axis = axis};
    SEQLSTM_TRY(sl_backend_get_table(backend)->op_sizes(op, &sizes, err));
    if (sizes.workspace_idle_bytes > sizes.workspace_bytes || sizes.reserve_idle_bytes > sizes.reserve_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "backend %s says that its calls leave %llu of %llu bytes of workspace and %llu of %llu of reserve "
                     "idle",
                     sl_backend_get_id(backend), (unsigned long long)sizes.workspace_idle_bytes,
                     (unsigned long long)sizes.workspace_bytes, (unsigned long long)sizes.reserve_idle_bytes,
                     (unsigned long long)sizes.reserve_bytes);
    sizes.axis = NULL;
    *out_sizes = sizes;
    return SEQLSTM_OK;
}

seqlstm_status sl_sizes_profile(const struct sl_graph *graph, const struct sl_profiles *profiles,
                                struct sl_call *call, struct seqlstm_error *err)
{
    const bool is_in_loop =
        call->node_first >= graph->loop.first && call->node_first < graph->loop.first + graph->loop.count;
    if (profiles == NULL || is_in_loop || !sl_node_is_on_steps(graph, call->node))
        return SEQLSTM_OK;
    const bool is_source = sl_axis_is_source(sl_graph_get_axis(graph, call->node));
    const struct sl_profiles side = is_source ? sl_profiles_get_source(profiles) : *profiles;
    uint64_t workspace = UINT64_MAX, reserve = UINT64_MAX;
    for (int32_t p = 0; p < side.count; p++) {
        struct sl_axes axes;
        struct seqlstm_sizes sizes;
        SEQLSTM_TRY(sl_axes_init(&axes, &side.items[p], INT64_MAX, side.stream, err));
        const bool is_empty = axes.steps.rows == 0;
        seqlstm_status status =
            is_empty ? SEQLSTM_OK : sl_sizes_ask(call->backend, call->op, &axes.steps, &sizes, err);
        sl_axes_deinit(&axes);
        SEQLSTM_TRY(status);
        if (is_empty)
            continue;
        workspace = sizes.workspace_idle_bytes < workspace ? sizes.workspace_idle_bytes : workspace;
        reserve = sizes.reserve_idle_bytes < reserve ? sizes.reserve_idle_bytes : reserve;
    }
    if (workspace == UINT64_MAX)
        return SEQLSTM_OK;
    call->sizes.workspace_idle_bytes = workspace;
    call->sizes.reserve_idle_bytes = reserve;
    return SEQLSTM_OK;
}
