/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a rank that runs one stage. Its buffers are as large as those of the whole plan, but pages that no call
 * of the stage touches take no memory. */
#include "dispatch/stages/pipeline.h"

#include "base/memory/alignment.h"

/* Does a call of the stage use the tensor, or does it cross the stage? */
static bool is_here(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage, int32_t tensor)
{
    int32_t first = plan->call_count, last = -1;
    for (int32_t c = 0; c < plan->call_count; c++)
        if (sl_node_uses(plan->calls[c].node, tensor)) {
            first = c < first ? c : first;
            last = c;
        }
    return first < pipeline->bounds[stage + 1] && last >= pipeline->bounds[stage];
}

static int64_t count_activations(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage)
{
    int64_t bytes = 0;
    for (int32_t t = 0; t < plan->graph->tensor_count; t++)
        if (is_here(plan, pipeline, stage, t))
            bytes +=
                sl_plan_get_tensor_bytes(plan, t) * ((plan->tensor_offsets[t] >= 0) + (plan->grad_offsets[t] >= 0));
    for (int32_t c = pipeline->bounds[stage]; c < pipeline->bounds[stage + 1]; c++) {
        const struct sl_call *call = &plan->calls[c];
        bytes += sl_call_count_reserves(plan, call) * sl_align((int64_t)call->sizes.reserve_bytes);
        bytes += 4 * sl_call_count_piece_states(plan->graph, call);
    }
    return bytes;
}

/* Gradients of parameters that no call of the stage uses. */
static int64_t count_other_gradients(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage)
{
    int64_t bytes = 0;
    for (int32_t p = 0; p < plan->graph->param_count; p++) {
        const struct sl_param *param = &plan->graph->params[p];
        bool used = false;
        for (int32_t c = pipeline->bounds[stage]; c < pipeline->bounds[stage + 1]; c++)
            used |= sl_node_uses(plan->calls[c].node, param->tensor);
        bytes += used ? 0 : 4 * param->rows * param->columns;
    }
    return bytes;
}

int64_t sl_pipeline_count_untouched(const struct sl_plan *plan, const struct sl_pipeline *pipeline, int32_t stage)
{
    const int64_t all = plan->memory.activations_bytes, here = count_activations(plan, pipeline, stage);
    const int64_t other = count_other_gradients(plan, pipeline, stage), gradients = plan->memory.gradients_bytes;
    return (here < all ? all - here : 0) + (other < gradients ? other : gradients);
}
