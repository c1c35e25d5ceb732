/* SPDX-License-Identifier: Apache-2.0 */
/* See border.h. */
#include "exec/call/border.h"
#include "exec/params/used_rows.h"

#include <stdlib.h>
#include <string.h>

#include "exec/place/place.h"

/* ---- what crosses ----------------------------------------------------------------------------------------------- */

static bool writes(const struct sl_exec *exec, int32_t c, int32_t t)
{
    for (int32_t s = 0; s < exec->calls[c].slot_count; s++)
        if (exec->plan->calls[c].node->slots[s] == t && exec->calls[c].roles[s] == SL_SLOT_OUTPUT)
            return true;
    return false;
}

static bool starts_loop(const struct sl_exec *exec, int32_t c, int32_t t)
{
    for (int32_t k = 0; c == exec->loop.first && c < exec->loop.end && k < exec->graph->loop.carry_count; k++)
        if (exec->graph->loop.carries[k].initial == t)
            return true;
    return false;
}

static bool reads(const struct sl_exec *exec, int32_t c, int32_t t)
{
    for (int32_t s = 0; s < exec->calls[c].slot_count; s++)
        if (exec->plan->calls[c].node->slots[s] == t && exec->calls[c].roles[s] != SL_SLOT_OUTPUT &&
            exec->calls[c].roles[s] != SL_SLOT_ABSENT)
            return true;
    return starts_loop(exec, c, t);
}

/* Does a call of [first, end) read the tensor? `back`: and give it a gradient. */
static bool is_read(const struct sl_exec *exec, int32_t first, int32_t end, int32_t t, bool back)
{
    for (int32_t c = first; c < end; c++)
        if (reads(exec, c, t) && (!back || exec->plan->calls[c].node->needs_backward))
            return true;
    return !back && end == exec->plan->call_count && exec->graph->output_needed && t == exec->graph->output;
}

static int32_t find_writer(const struct sl_exec *exec, int32_t t)
{
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        if (writes(exec, c, t))
            return c;
    return -1;
}

/* The border before call `at`. */
static seqlstm_status open_border(struct sl_exec *exec, struct sl_exec_border *border, int32_t at,
                                  struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    const int32_t calls = exec->plan->call_count;
    const struct sl_unit unit = exec->units[at];
    border->exists = true;
    border->at = at;
    border->inside = unit.first < at;
    border->items = calloc((size_t)graph->tensor_count + 1, sizeof *border->items);
    border->params = calloc((size_t)graph->param_count + 1, sizeof *border->params);
    if (!border->items || !border->params)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    if (border->inside && !unit.pieced)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "`%s` runs step by step with the layers before it, in one stage",
                     exec->plan->calls[at].node->name);
    for (int32_t t = 0; t < graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &graph->tensors[t];
        const int32_t writer = find_writer(exec, t);
        if (writer >= 0 && writer < at && tensor->role == SL_TENSOR_ACTIVATION && is_read(exec, at, calls, t, false))
            border->items[border->count++] = (struct sl_exec_crossing){
                .tensor = t,
                .when = !border->inside                 ? SL_EXEC_CROSS_EARLY
                        : tensor->axis == SL_AXIS_STEPS ? SL_EXEC_CROSS_PIECE
                        : writer < unit.first           ? SL_EXEC_CROSS_EARLY
                                                        : SL_EXEC_CROSS_LATE,
                .returns = tensor->needs_grad && exec->plan->grad_offsets[t] >= 0 && is_read(exec, at, calls, t, true)};
        if (tensor->role == SL_TENSOR_PARAM && tensor->needs_grad && is_read(exec, 0, at, t, true) &&
            is_read(exec, at, calls, t, true))
            border->params[border->param_count++] = tensor->owner;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_open_borders(struct sl_exec *exec, const struct sl_exec_stage *stage, struct seqlstm_error *err)
{
    exec->stage = *stage;
    if (exec->stage.end == 0)
        exec->stage.end = exec->plan->call_count;
    if (exec->stage.first > 0)
        SEQLSTM_TRY(open_border(exec, &exec->borders[SL_EXEC_BEFORE], exec->stage.first, err));
    if (exec->stage.end < exec->plan->call_count)
        SEQLSTM_TRY(open_border(exec, &exec->borders[SL_EXEC_AFTER], exec->stage.end, err));
    return SEQLSTM_OK;
}

void sl_exec_close_borders(struct sl_exec *exec)
{
    for (int b = SL_EXEC_BEFORE; b <= SL_EXEC_AFTER; b++) {
        free(exec->borders[b].items);
        free(exec->borders[b].params);
    }
}

/* ---- exchanges -------------------------------------------------------------------------------------------------- */

static seqlstm_status exchange(struct sl_exec *exec, int b, bool sends, float *values, int64_t elems,
                               struct seqlstm_error *err)
{
    return elems > 0 ? exec->stage.exchange(exec->stage.context, b == SL_EXEC_AFTER, sends, values, elems, err)
                     : SEQLSTM_OK;
}

/* Values go up, gradients come down. */
static seqlstm_status cross(struct sl_exec *exec, int b, enum sl_exec_when when, bool grads, struct seqlstm_error *err)
{
    const struct sl_exec_border *border = &exec->borders[b];
    const bool sends = (b == SL_EXEC_AFTER) != grads;
    for (int32_t k = 0; k < border->count; k++) {
        const struct sl_exec_crossing *item = &border->items[k];
        const int32_t t = item->tensor;
        const int64_t bytes = sl_exec_get_bytes(exec, t);
        float *values = grads ? sl_exec_grad_at(exec, SL_PLACE_HOST, t) : sl_exec_at(exec, SL_PLACE_HOST, t);
        if (item->when != when || (grads && !item->returns))
            continue;
        if (grads && sends && !exec->grad_valid[t]) /* nothing that depends on it reaches the loss */
            memset(values, 0, (size_t)bytes);
        SEQLSTM_TRY(exchange(exec, b, sends, values, bytes / (int64_t)sizeof *values, err));
        if (!sends && grads)
            exec->grad_valid[t] = 1u << SL_PLACE_HOST;
        else if (!sends)
            sl_exec_note_written(exec, SL_PLACE_HOST, t);
    }
    return SEQLSTM_OK;
}

static bool is_here(const struct sl_exec *exec, int b, int32_t at)
{
    return exec->borders[b].exists && exec->borders[b].at == at;
}

static bool is_inside(const struct sl_exec *exec, int b, int32_t at)
{
    return is_here(exec, b, at) && exec->borders[b].inside;
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

seqlstm_status sl_exec_enter_unit(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err)
{
    if (is_here(exec, SL_EXEC_BEFORE, first))
        SEQLSTM_TRY(cross(exec, SL_EXEC_BEFORE, SL_EXEC_CROSS_EARLY, false, err));
    return is_inside(exec, SL_EXEC_AFTER, end) ? cross(exec, SL_EXEC_AFTER, SL_EXEC_CROSS_EARLY, false, err)
                                               : SEQLSTM_OK;
}

seqlstm_status sl_exec_leave_unit(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err)
{
    if (is_inside(exec, SL_EXEC_BEFORE, first))
        SEQLSTM_TRY(cross(exec, SL_EXEC_BEFORE, SL_EXEC_CROSS_LATE, false, err));
    if (!is_here(exec, SL_EXEC_AFTER, end))
        return SEQLSTM_OK;
    return cross(exec, SL_EXEC_AFTER, exec->borders[SL_EXEC_AFTER].inside ? SL_EXEC_CROSS_LATE : SL_EXEC_CROSS_EARLY,
                 false, err);
}

seqlstm_status sl_exec_receive_piece(struct sl_exec *exec, int32_t first, struct seqlstm_error *err)
{
    return is_here(exec, SL_EXEC_BEFORE, first) ? cross(exec, SL_EXEC_BEFORE, SL_EXEC_CROSS_PIECE, false, err)
                                                : SEQLSTM_OK;
}

seqlstm_status sl_exec_send_piece(struct sl_exec *exec, int32_t end, struct seqlstm_error *err)
{
    return is_here(exec, SL_EXEC_AFTER, end) ? cross(exec, SL_EXEC_AFTER, SL_EXEC_CROSS_PIECE, false, err) : SEQLSTM_OK;
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

seqlstm_status sl_exec_enter_unit_back(struct sl_exec *exec, int32_t first, int32_t end, struct seqlstm_error *err)
{
    const bool inside = exec->borders[SL_EXEC_AFTER].inside;
    if (is_here(exec, SL_EXEC_AFTER, end))
        SEQLSTM_TRY(cross(exec, SL_EXEC_AFTER, inside ? SL_EXEC_CROSS_LATE : SL_EXEC_CROSS_EARLY, true, err));
    return is_inside(exec, SL_EXEC_BEFORE, first) ? cross(exec, SL_EXEC_BEFORE, SL_EXEC_CROSS_LATE, true, err)
                                                  : SEQLSTM_OK;
}

seqlstm_status sl_exec_leave_unit_back(struct sl_exec *exec, int32_t first, struct seqlstm_error *err)
{
    return is_here(exec, SL_EXEC_BEFORE, first) ? cross(exec, SL_EXEC_BEFORE, SL_EXEC_CROSS_EARLY, true, err)
                                                : SEQLSTM_OK;
}

/* With the last of the pieces come the gradients of what earlier units wrote: readers in this stage add to them. */
seqlstm_status sl_exec_receive_piece_grads(struct sl_exec *exec, int32_t end, struct seqlstm_error *err)
{
    if (!is_inside(exec, SL_EXEC_AFTER, end))
        return SEQLSTM_OK;
    SEQLSTM_TRY(cross(exec, SL_EXEC_AFTER, SL_EXEC_CROSS_PIECE, true, err));
    return exec->pieces.running == 0 ? cross(exec, SL_EXEC_AFTER, SL_EXEC_CROSS_EARLY, true, err) : SEQLSTM_OK;
}

seqlstm_status sl_exec_send_piece_grads(struct sl_exec *exec, int32_t first, struct seqlstm_error *err)
{
    if (!is_inside(exec, SL_EXEC_BEFORE, first))
        return SEQLSTM_OK;
    return cross(exec, SL_EXEC_BEFORE, SL_EXEC_CROSS_PIECE, true, err);
}

/* ---- parameters of both sides ----------------------------------------------------------------------------------- */

static seqlstm_status pass_params(struct sl_exec *exec, int b, bool sends, struct seqlstm_error *err)
{
    const struct sl_exec_border *border = &exec->borders[b];
    for (int32_t k = 0; k < border->param_count; k++) {
        const struct sl_param_view *view = &exec->params->views[border->params[k]];
        SEQLSTM_TRY(exchange(exec, b, sends, exec->params->grads + view->offset_elems, view->elems, err));
        if (sends)
            continue;
        exec->param_written[border->params[k]] = true;
        sl_used_rows_add(exec->params, view->offset_elems, NULL);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_pass_param_sums(struct sl_exec *exec, struct seqlstm_error *err)
{
    SEQLSTM_TRY(pass_params(exec, SL_EXEC_BEFORE, false, err));
    return pass_params(exec, SL_EXEC_AFTER, true, err);
}

/* Receives those of the stage after this one, once in a step. */
static seqlstm_status receive_params(struct sl_exec *exec, struct seqlstm_error *err)
{
    struct sl_exec_border *after = &exec->borders[SL_EXEC_AFTER];
    if (after->received)
        return SEQLSTM_OK;
    after->received = true;
    return pass_params(exec, SL_EXEC_AFTER, false, err);
}

/* Does the call add to the gradient of the parameter now? */
static bool makes_grad(const struct sl_exec *exec, int32_t c, int32_t param)
{
    const struct sl_exec_call *own = &exec->calls[c];
    for (int32_t s = 0; s < own->slot_count; s++)
        if (own->roles[s] == SL_SLOT_PARAM && own->grads[s] &&
            exec->plan->calls[c].node->slots[s] == exec->graph->params[param].tensor)
            return true;
    return false;
}

seqlstm_status sl_exec_await_params(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_exec_border *after = &exec->borders[SL_EXEC_AFTER];
    for (int32_t k = 0; k < after->param_count; k++) {
        if (!makes_grad(exec, c, after->params[k]))
            continue;
        if (exec->pieces.running >= 0)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                         "`%s` and a layer of another stage share a matrix, and %s adds to its gradient in pieces; "
                         "use fewer stages",
                         exec->plan->calls[c].node->name, sl_backend_get_id(exec->plan->calls[c].backend));
        return receive_params(exec, err);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_pass_params(struct sl_exec *exec, struct seqlstm_error *err)
{
    SEQLSTM_TRY(receive_params(exec, err));
    exec->borders[SL_EXEC_AFTER].received = false;
    return pass_params(exec, SL_EXEC_BEFORE, true, err);
}
