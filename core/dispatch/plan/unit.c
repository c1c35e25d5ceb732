/* SPDX-License-Identifier: Apache-2.0 */
/* Units: the calls that run as one. See plan.h. */
#include "base/memory/alignment.h"
#include "base/operation/op_signature.h"
#include "dispatch/plan/plan.h"

/* Of calls that run in pieces only recurrent ones write something on the sequences axis: their last states. */
static bool ends_with(const struct sl_node *node, int32_t tensor)
{
    const int32_t *states = node->slots + SEQLSTM_SLOT_RECURRENT_STATE(0, 0);
    return node->desc.head.op == SEQLSTM_OP_RECURRENT &&
           (states[SEQLSTM_STATE_HN] == tensor || states[SEQLSTM_STATE_CN] == tensor);
}

/* Does the call read something on the sequences axis that one of the calls [first, c) writes at its end? */
static bool waits(const struct sl_graph *graph, const struct sl_call *calls, int32_t first, int32_t c)
{
    for (int32_t s = 0; s < calls[c].node->slot_count; s++) {
        const int32_t t = calls[c].node->slots[s];
        if (t < 0 || graph->tensors[t].axis != SL_AXIS_SEQUENCES || graph->tensors[t].role == SL_TENSOR_STATE_IN)
            continue;
        for (int32_t before = first; before < c; before++)
            if (ends_with(calls[before].node, t))
                return true;
    }
    return false;
}

struct sl_unit sl_plan_find_unit(const struct sl_graph *graph, const struct sl_call *calls, int32_t count, int32_t c)
{
    struct sl_unit unit = {0, 0, false};
    while (unit.end <= c) {
        const bool loops = sl_call_is_in_loop(graph, &calls[unit.end]);
        unit = (struct sl_unit){unit.end, unit.end + 1, sl_call_is_pieced(graph, &calls[unit.end])};
        while (unit.end < count && ((loops && sl_call_is_in_loop(graph, &calls[unit.end])) ||
                                    (unit.pieced && sl_call_is_pieced(graph, &calls[unit.end]) &&
                                     !waits(graph, calls, unit.first, unit.end))))
            unit.end++;
    }
    return unit;
}

int64_t sl_call_count_piece_state(const struct sl_graph *graph, const struct sl_call *call, bool cell)
{
    const struct sl_node *node = call->node;
    struct sl_slot slots[SL_SLOTS_MAX];
    int32_t count;
    if (node->desc.head.op != SEQLSTM_OP_RECURRENT || !sl_call_is_pieced(graph, call) ||
        sl_op_signature(&node->desc.head, slots, SL_SLOTS_MAX, &count, NULL) != SEQLSTM_OK)
        return 0;
    const struct sl_slot *slot = &slots[SEQLSTM_SLOT_RECURRENT_STATE(0, cell ? SEQLSTM_STATE_C0 : SEQLSTM_STATE_H0)];
    return slot->role == SL_SLOT_ABSENT ? 0 : sl_align(graph->facts.envelope.sequences * slot->features * 4) / 4;
}

int64_t sl_call_count_piece_states(const struct sl_graph *graph, const struct sl_call *call)
{
    return (graph->pieces + 3) *
           (sl_call_count_piece_state(graph, call, false) + sl_call_count_piece_state(graph, call, true));
}
