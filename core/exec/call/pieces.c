/* SPDX-License-Identifier: Apache-2.0 */
/* See pieces.h. */
#include "exec/call/pieces.h"

#include "base/system/clock.h"
#include "exec/call/border.h"
#include "exec/call/calls.h"
#include "exec/call/gather.h"
#include "exec/call/piece_states.h"

seqlstm_status sl_exec_open_pieces(struct sl_exec *exec, struct seqlstm_error *err)
{
    const bool divided = exec->graph->pieces > 0 || exec->borders[0].exists || exec->borders[1].exists;
    for (int32_t c = 0; divided && c < exec->plan->call_count; c++) {
        if (exec->calls[c].place != SL_PLACE_HOST)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "`%s` runs on a device, and pieces run on the processor only",
                         exec->plan->calls[c].node->name);
        if (exec->units[c].pieced)
            exec->calls[c].gathers_weights = sl_exec_can_gather(exec, c);
    }
    return sl_exec_open_piece_states(exec, err);
}

void sl_exec_close_pieces(struct sl_exec *exec)
{
    sl_exec_close_piece_states(exec);
}

seqlstm_status sl_exec_pieces_forward(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err)
{
    for (int32_t c = first; c < end; c++) /* before the first piece comes from the stage before */
        SEQLSTM_TRY(sl_exec_pack_call(exec, c, err));
    for (int32_t p = 0; p < exec->shape->piece_count; p++) {
        exec->pieces.running = p;
        SEQLSTM_TRY(sl_exec_receive_piece(exec, first, err));
        for (int32_t c = first; c < end; c++)
            SEQLSTM_TRY(sl_exec_forward_call(exec, c, err));
        SEQLSTM_TRY(sl_exec_send_piece(exec, end, err));
    }
    exec->pieces.running = -1;
    for (int32_t c = first; c < end; c++) {
        sl_exec_collect_piece_states(exec, c);
        SEQLSTM_TRY(sl_exec_place_slots(exec, c, err));
        SEQLSTM_TRY(sl_exec_fill_empty(exec, c, err));
    }
    return SEQLSTM_OK;
}

/* The gradients of a piece that are valid before its calls run: those from readers in later units. */
static void begin_piece(struct sl_exec *exec)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++)
        if (exec->graph->tensors[t].axis == SL_AXIS_STEPS)
            exec->grad_valid[t] = exec->pieces.outer[t];
}

seqlstm_status sl_exec_pieces_backward(struct sl_exec *exec, int32_t first, int32_t end, bool accumulate,
                                       struct seqlstm_error *err)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++)
        exec->pieces.outer[t] = exec->grad_valid[t];
    for (int32_t p = exec->shape->piece_count - 1; p >= 0; p--) {
        exec->pieces.running = p;
        begin_piece(exec);
        SEQLSTM_TRY(sl_exec_receive_piece_grads(exec, end, err));
        for (int32_t c = end - 1; c >= first; c--)
            if (exec->plan->calls[c].node->needs_backward)
                SEQLSTM_TRY(sl_exec_backward_call(exec, c, accumulate, err));
        SEQLSTM_TRY(sl_exec_send_piece_grads(exec, first, err));
    }
    exec->pieces.running = -1;
    for (int32_t c = end - 1; c >= first; c--) {
        const int64_t begin = exec->piece_times ? sl_clock_ns() : 0;
        if (exec->plan->calls[c].node->needs_backward)
            SEQLSTM_TRY(sl_exec_gather_weights(exec, c, accumulate, err));
        if (exec->piece_times)
            exec->piece_times->weights[c] += (double)(sl_clock_ns() - begin);
    }
    return SEQLSTM_OK;
}
