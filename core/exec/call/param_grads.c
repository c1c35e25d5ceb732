/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of parameters in a backward pass: the first call that makes one overwrites it, later ones (a tied matrix,
 * the steps of a loop) add to it, unless the step accumulates: then all add. */
#include "exec/call/param_grads.h"

#include "exec/call/border.h"
#include "exec/params/used_rows.h"
#include "exec/place/place.h"
#include "exec/rows.h"

/* The view of the parameter at slot s if its gradient is wanted; NULL otherwise. */
static const struct sl_param_view *find_view(const struct sl_exec *exec, int32_t c, int32_t s)
{
    const struct sl_exec_call *own = &exec->calls[c];
    if (own->roles[s] != SL_SLOT_PARAM || own->grads[s] == NULL)
        return NULL;
    return &exec->params->views[exec->graph->tensors[exec->plan->calls[c].node->slots[s]].owner];
}

static void note_param(struct sl_exec *exec, int32_t c, const struct sl_param_view *view)
{
    sl_params_note_written(exec->params, exec->calls[c].place, SL_PART_GRADS, view->offset_elems, view->elems);
    exec->param_written[view - exec->params->views] = true;
}

seqlstm_status sl_exec_clear_unwritten(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    for (int32_t s = 0; s < exec->calls[c].slot_count; s++) {
        const struct sl_param_view *view = find_view(exec, c, s);
        if (view == NULL || exec->param_written[view - exec->params->views])
            continue;
        if (!sl_used_rows_clear(exec->params, view->offset_elems))
            SEQLSTM_TRY(sl_domain_clear(exec->places[exec->calls[c].place].domain, exec->calls[c].grads[s],
                                        view->elems * (int64_t)sizeof(float), err));
        note_param(exec, c, view);
    }
    return SEQLSTM_OK;
}

/* Makes what the call adds to valid in its place. */
static seqlstm_status provide_param_grads(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    for (int32_t s = 0; s < exec->calls[c].slot_count; s++) {
        const struct sl_param_view *view = find_view(exec, c, s);
        float *grad;
        if (view)
            SEQLSTM_TRY(sl_exec_provide_part(exec, exec->calls[c].place, SL_PART_GRADS, view->offset_elems, view->elems,
                                             &grad, err));
    }
    return SEQLSTM_OK;
}

void sl_exec_note_params(struct sl_exec *exec, int32_t c)
{
    for (int32_t s = 0; s < exec->calls[c].slot_count; s++) {
        const struct sl_param_view *view = find_view(exec, c, s);
        if (view)
            note_param(exec, c, view);
    }
}

/* Has a call of this step written a gradient of one of the call's parameters? */
static bool has_written(const struct sl_exec *exec, int32_t c)
{
    for (int32_t s = 0; s < exec->calls[c].slot_count; s++) {
        const struct sl_param_view *view = find_view(exec, c, s);
        if (view && exec->param_written[view - exec->params->views])
            return true;
    }
    return false;
}

/* Clears the gradient of an embedding's table, which no call has written yet, if its used rows are known. */
static bool clear_used(const struct sl_exec *exec, int32_t c)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_param_view *view =
        node->desc.head.op == SEQLSTM_OP_EMBEDDING ? find_view(exec, c, SEQLSTM_SLOT_EMBEDDING_W) : NULL;
    return view && sl_used_rows_clear(exec->params, view->offset_elems);
}

seqlstm_status sl_exec_begin_params(struct sl_exec *exec, int32_t c, bool accumulate, bool *out_add,
                                    struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_exec_await_params(exec, c, err));
    bool written = has_written(exec, c);
    *out_add = accumulate || written || clear_used(exec, c);
    if (written && !accumulate)
        SEQLSTM_TRY(sl_exec_clear_unwritten(exec, c, err));
    return *out_add ? provide_param_grads(exec, c, err) : SEQLSTM_OK;
}

seqlstm_status sl_exec_locate_param(struct sl_exec *exec, int32_t c, int32_t s, float **out_grad,
                                    struct seqlstm_error *err)
{
    int32_t t = exec->plan->calls[c].node->slots[s];
    return sl_exec_locate_part(exec, exec->calls[c].place, SL_PART_GRADS,
                               exec->params->views[exec->graph->tensors[t].owner].offset_elems, out_grad, err);
}

int64_t sl_exec_find_complete(const struct sl_exec *exec, int32_t c)
{
    int64_t from = 0;
    for (int32_t k = exec->stage.first; k < c; k++)
        for (int32_t s = 0; s < exec->calls[k].slot_count; s++) {
            if (exec->calls[k].roles[s] != SL_SLOT_PARAM)
                continue;
            const struct sl_param_view *view =
                &exec->params->views[exec->graph->tensors[exec->plan->calls[k].node->slots[s]].owner];
            if (view->trainable && view->offset_elems + view->elems > from)
                from = view->offset_elems + view->elems;
        }
    return from;
}

void sl_exec_name_rows(struct sl_exec *exec, int32_t first, int32_t end, sl_exec_rows_fn *on_rows, void *context)
{
    for (int32_t c = first; c < end; c++) {
        const struct sl_node *node = exec->plan->calls[c].node;
        if (node->desc.head.op != SEQLSTM_OP_EMBEDDING || !sl_exec_has_rows(exec, c))
            continue;
        const struct sl_tensor *ids = &exec->graph->tensors[node->slots[SEQLSTM_SLOT_EMBEDDING_IDS]];
        const struct sl_tensor *table = &exec->graph->tensors[node->slots[SEQLSTM_SLOT_EMBEDDING_W]];
        on_rows(context, exec->params->views[table->owner].offset_elems,
                sl_exec_at(exec, SL_PLACE_HOST, node->slots[SEQLSTM_SLOT_EMBEDDING_IDS]),
                sl_exec_get_rows(exec, ids->axis));
    }
}
