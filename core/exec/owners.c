/* SPDX-License-Identifier: Apache-2.0 */
/* See owners.h. */
#include "exec/owners.h"

#include <stdlib.h>
#include <string.h>

static bool uses(const struct sl_plan *plan, int32_t first, int32_t end, int32_t tensor)
{
    for (int32_t c = first; c < end; c++)
        if (sl_node_uses(plan->calls[c].node, tensor))
            return true;
    return false;
}

seqlstm_status sl_owners_init(struct sl_owners *owners, const struct sl_plan *plan, const int32_t *bounds,
                              int32_t stages, struct seqlstm_error *err)
{
    const struct sl_graph *graph = plan->graph;
    owners->params = calloc((size_t)graph->param_count + 1, sizeof *owners->params);
    owners->shared = calloc((size_t)graph->param_count + 1, sizeof *owners->shared);
    owners->states = calloc((size_t)graph->state_count + 1, sizeof *owners->states);
    if (!owners->params || !owners->shared || !owners->states) {
        sl_owners_deinit(owners);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the stages");
    }
    for (int32_t p = 0; p < graph->param_count; p++)
        for (int32_t s = stages - 1; s >= 0; s--)
            if (uses(plan, bounds[s], bounds[s + 1], graph->params[p].tensor)) {
                owners->shared[p] |= owners->params[p] > s;
                owners->params[p] = s;
            }
    for (int32_t k = 0; k < graph->state_count; k++)
        for (int32_t s = 0; s < stages; s++)
            if (uses(plan, bounds[s], bounds[s + 1], graph->states[k].tensor_out))
                owners->states[k] = s;
    return SEQLSTM_OK;
}

void sl_owners_deinit(struct sl_owners *owners)
{
    free(owners->params);
    free(owners->shared);
    free(owners->states);
    memset(owners, 0, sizeof *owners);
}
