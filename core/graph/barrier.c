/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes run piece by piece, where the steps of a batch are cut into pieces. */
#include <seqlstm/bind_check.h>

#include "graph/graph.h"

/* Does the node belong to the loop? An alternative lies inside or outside of it. */
static bool is_in_loop(const struct sl_graph *graph, const struct sl_node *node)
{
    for (int32_t n = graph->loop.first; n < graph->loop.first + graph->loop.count; n++)
        if (node->layer == graph->nodes[n].layer && node->layer >= 0)
            return true;
    return false;
}

static bool is_state(const struct sl_node *node, int32_t s)
{
    return node->desc.head.op == SEQLSTM_OP_RECURRENT && s >= SEQLSTM_SLOT_RECURRENT_STATES &&
           s < SEQLSTM_SLOT_RECURRENT_STATES + 4;
}

enum sl_barrier sl_graph_find_barrier(const struct sl_graph *graph, const struct sl_node *node)
{
    const enum sl_axis axis = sl_graph_get_axis(graph, node);
    if (is_in_loop(graph, node))
        return SL_BARRIER_LOOP;
    if (sl_axis_is_source(axis))
        return SL_BARRIER_SOURCE;
    if (node->desc.head.op == SEQLSTM_OP_RECURRENT && !(node->desc.recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE))
        return SL_BARRIER_DIRECTION;
    if (axis != SL_AXIS_STEPS || seqlstm_needs_whole_range(&node->desc) || seqlstm_has_rows_in(&node->desc))
        return SL_BARRIER_STEPS;
    for (int32_t s = 0; s < node->slot_count; s++) {
        const struct sl_tensor *tensor = node->slots[s] >= 0 ? &graph->tensors[node->slots[s]] : NULL;
        if (tensor && tensor->axis != SL_AXIS_STEPS && tensor->axis != SL_AXIS_FREE && !is_state(node, s))
            return SL_BARRIER_STEPS;
    }
    return SL_BARRIER_NONE;
}
