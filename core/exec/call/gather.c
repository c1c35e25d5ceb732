/* SPDX-License-Identifier: Apache-2.0 */
/* See gather.h. */
#include "exec/call/gather.h"

#include "exec/call/calls.h"
#include "exec/call/param_grads.h"
#include "exec/call/piece_states.h"
#include "exec/place/place.h"

bool sl_exec_can_gather(const struct sl_exec *exec, int32_t c)
{
    const struct sl_call *call = &exec->plan->calls[c];
    const bool stepwise = call->node->desc.head.op == SEQLSTM_OP_RECURRENT &&
                          (call->node->desc.recurrent.options & SEQLSTM_BIT_RECURRENT_STEPWISE);
    return exec->graph->phase == SL_PHASE_TRAIN && (stepwise || call->sizes.reserve_bytes == 0);
}

/* Points to the gradients of outputs and parameters. */
static seqlstm_status collect(struct sl_exec *exec, int32_t c, bool *out_any_param, bool *out_any_output,
                              struct seqlstm_error *err)
{
    struct sl_exec_call *own = &exec->calls[c];
    *out_any_param = *out_any_output = false;
    for (int32_t s = 0; s < own->slot_count; s++) {
        const int32_t t = exec->plan->calls[c].node->slots[s];
        float *grad = NULL;
        if (own->roles[s] != SL_SLOT_ABSENT && t >= 0 && exec->graph->tensors[t].needs_grad) {
            if (own->roles[s] == SL_SLOT_PARAM) {
                SEQLSTM_TRY(sl_exec_locate_param(exec, c, s, &grad, err));
                *out_any_param = true;
            } else if (own->roles[s] == SL_SLOT_OUTPUT && exec->grad_valid[t]) {
                grad = sl_exec_grad_at(exec, own->place, t);
                *out_any_output = true;
            }
        }
        own->grads[s] = grad;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_gather_weights(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err)
{
    const uint32_t op = exec->plan->calls[c].node->desc.head.op;
    bool any_param, any_output, adds = false;
    SEQLSTM_TRY(collect(exec, c, &any_param, &any_output, err));
    any_output |= op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS;
    if (!any_param || !any_output || !exec->calls[c].gathers_weights)
        return accumulate ? SEQLSTM_OK : sl_exec_clear_unwritten(exec, c, err);
    SEQLSTM_TRY(sl_exec_place_slots(exec, c, err));
    sl_exec_place_first_states(exec, c);
    SEQLSTM_TRY(sl_exec_begin_params(exec, c, accumulate, &adds, err));
    struct seqlstm_backward args =
        sl_exec_get_backward(exec, c, SEQLSTM_BIT_BACKWARD_WEIGHTS | (adds ? SEQLSTM_BIT_BACKWARD_ACCUMULATE : 0));
    SEQLSTM_TRY(sl_exec_call_backward(exec, c, &args, err));
    sl_exec_note_params(exec, c);
    return SEQLSTM_OK;
}
