/* SPDX-License-Identifier: Apache-2.0 */
/* See plan.h and call.h. */
#include "dispatch/plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "registry/plugin.h"

const char *sl_call_get_domain(const struct sl_call *call)
{
    return sl_backend_get_device(call->backend, call->device)->domain;
}

bool sl_call_uses_tiles(const struct sl_call *call)
{
    return call->variant && strcmp(call->variant, "tiles") == 0;
}

int64_t sl_call_count_reserves(const struct sl_plan *plan, const struct sl_call *call)
{
    const union seqlstm_any_desc *desc = &call->node->desc;
    bool stepwise = desc->head.op == SEQLSTM_OP_RECURRENT && (desc->recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE);
    if (stepwise)
        return 1;
    return sl_call_is_in_loop(plan->graph, call)  ? plan->graph->facts.envelope.steps
           : sl_call_is_pieced(plan->graph, call) ? plan->graph->pieces
                                                  : 1;
}

void sl_plan_destroy(struct sl_plan *plan)
{
    if (plan == NULL)
        return;
    for (int32_t c = 0; c < plan->call_count; c++)
        sl_plugin_destroy_op(sl_backend_get_table(plan->calls[c].backend), plan->calls[c].op);
    for (int32_t v = 0; v < plan->vector_count; v++)
        sl_plugin_destroy_op(sl_backend_get_table(plan->vectors[v].backend), plan->vectors[v].op);
    struct sl_arena *arena = plan->arena;
    sl_arena_deinit(arena);
    free(arena);
}
