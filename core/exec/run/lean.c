/* SPDX-License-Identifier: Apache-2.0 */
/* Lean runs. The first run of a shape is an ordinary one, which packs weights, places slots and is watched in full. In
 * the later ones every slot of every call is where it was, so that only the calls remain. */
#include "exec/run/lean.h"

#include "dispatch/plan/blame.h"
#include "exec/call/calls.h"
#include "exec/place/place.h"
#include "exec/shape/shapes.h"
#include "registry/plugin.h"

void sl_exec_open_lean(struct sl_exec *exec)
{
    exec->lean = exec->graph->phase == SL_PHASE_PREDICT && exec->graph->part == SL_PART_WHOLE &&
                 !exec->graph->reads_source && exec->loop.first == exec->loop.end;
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        exec->lean = exec->lean && exec->calls[c].place == SL_PLACE_HOST;
}

bool sl_exec_is_lean(const struct sl_exec *exec)
{
    return exec->lean;
}

float *sl_exec_get_state_in(const struct sl_exec *exec, int32_t s)
{
    return exec->places[SL_PLACE_HOST].states + exec->state_offsets[s];
}

const float *sl_exec_get_state_out(const struct sl_exec *exec, int32_t s)
{
    return sl_exec_at((struct sl_exec *)(uintptr_t)exec, SL_PLACE_HOST, exec->graph->states[s].tensor_out);
}

static seqlstm_status run_first(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    sl_exec_begin_values(exec);
    for (int32_t c = 0; c < exec->plan->call_count; c++) {
        SEQLSTM_TRY(sl_exec_forward_call(exec, c, err));
        if (exec->watch && exec->shape->bindings[c])
            SEQLSTM_TRY(exec->watch(exec->watch_context, exec, exec->plan->calls[c].node, err));
    }
    if (exec->lean_input != batch->input.values || exec->lean_version != exec->params->version + 1)
        for (int s = 0; s < SL_EXEC_SHAPES; s++)
            exec->shapes[s].ran = false;
    exec->lean_input = batch->input.values;
    exec->lean_version = exec->params->version + 1;
    exec->shape->ran = true;
    return SEQLSTM_OK;
}

static seqlstm_status run_call(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    const struct sl_exec_place *place = &exec->places[SL_PLACE_HOST];
    const struct seqlstm_forward args = {
        .struct_size = sizeof args,
        .slot_count = (uint32_t)exec->calls[c].slot_count,
        .slots = exec->calls[c].slots,
        .workspace = call->sizes.workspace_bytes ? place->workspace : NULL,
        .reserve = call->reserve_offset >= 0 ? place->reserve + call->reserve_offset : NULL,
        .packed = call->packed_offset >= 0 ? place->packed + call->packed_offset : NULL,
        .step = &exec->step,
    };
    const seqlstm_status status = sl_plugin_forward_again(sl_backend_get_table(call->backend), exec->shape->bindings[c],
                                                          &place->domain->queue.queue, &args, err);
    return status == SEQLSTM_OK ? status : sl_plan_blame(call, SL_FUNCTION_FORWARD, status, err);
}

seqlstm_status sl_exec_run_lean(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err)
{
    if (!sl_exec_fits(exec, batch))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a batch of %lld sequences and %lld rows does not fit the plan",
                     (long long)batch->sequences, (long long)batch->axis.rows);
    SEQLSTM_TRY(sl_exec_bind(exec, batch, err));
    if (!exec->shape->ran || exec->watch || exec->lean_input != batch->input.values ||
        exec->lean_version != exec->params->version + 1)
        return run_first(exec, batch, err);
    const bool has_empty = exec->shape->sides[SL_EXEC_TARGET].steps.sequences < exec->shape->sequences;
    for (int32_t c = 0; c < exec->plan->call_count; c++) {
        if (exec->shape->bindings[c])
            SEQLSTM_TRY(run_call(exec, c, err));
        if (has_empty)
            SEQLSTM_TRY(sl_exec_fill_empty(exec, c, err));
    }
    return SEQLSTM_OK;
}
