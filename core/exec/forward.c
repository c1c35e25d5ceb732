/* SPDX-License-Identifier: Apache-2.0 */
/* The prepared calls, forward and backward.
 *
 * Gradients of a tensor with several readers are added up here: the first reader (last in forward order)
 * writes it, later ones write to the scratch gradient, which is added. Gradients of parameters are
 * overwritten by their first writer in a step and added to by others (a tied matrix), unless the step
 * accumulates.
 */
#include <string.h>

#include "base/clock.h"
#include "exec/exec_private.h"

static seqlstm_status pack(struct sl_exec *exec, int32_t c, struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    struct sl_exec_call *own = &exec->calls[c];
    const struct seqlstm_backend *table = sl_backend_get_table(call->backend);
    uint64_t version = exec->params->version + 1; /* 0 means never */
    if (call->packed_offset < 0 || table->weights_pack == NULL ||
        (own->packed_version == version && !own->repacks))
        return SEQLSTM_OK;
    seqlstm_status status = table->weights_pack(call->op, &exec->queue.queue, own->slots,
                                                exec->packed + call->packed_offset, &exec->step, err);
    if (status != SEQLSTM_OK)
        return sl_exec_blame(call, status, err);
    own->packed_version = version;
    return SEQLSTM_OK;
}

/* Outputs on the sequences axis: rows of sequences without a step are their initial state, or zero. */
static void fill_empty_sequences(struct sl_exec *exec, int32_t c)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    int64_t alive = exec->shape->steps.sequences, all = exec->shape->sequences;
    if (exec->calls[c].axis != SL_AXIS_STEPS || alive == all)
        return;
    for (int32_t s = 0; s < node->slot_count; s++) {
        if (exec->calls[c].roles[s] != SL_SLOT_OUTPUT)
            continue;
        const struct sl_tensor *tensor = &exec->graph->tensors[node->slots[s]];
        if (tensor->axis != SL_AXIS_SEQUENCES)
            continue;
        float *rows = exec->calls[c].slots[s];
        size_t bytes = (size_t)((all - alive) * tensor->features) * sizeof *rows;
        if (tensor->role == SL_TENSOR_STATE_OUT)
            memcpy(rows + alive * tensor->features,
                   exec->states + exec->state_offsets[tensor->owner] + alive * tensor->features, bytes);
        else
            memset(rows + alive * tensor->features, 0, bytes);
    }
}

seqlstm_status sl_exec_forward(struct sl_exec *exec, struct seqlstm_error *err)
{
    for (int32_t c = 0; c < exec->plan->call_count; c++) {
        const struct sl_call *call = &exec->plan->calls[c];
        struct sl_exec_call *own = &exec->calls[c];
        for (int32_t s = 0; s < own->slot_count; s++)
            own->slots[s] = own->roles[s] == SL_SLOT_ABSENT ? NULL
                                                            : sl_exec_get_tensor(exec, call->node->slots[s]);
        if (exec->shape->bindings[c]) {
            int64_t start = sl_clock_ns();
            SEQLSTM_TRY(pack(exec, c, err));
            struct seqlstm_forward args = {
                .struct_size = sizeof args,
                .slot_count = (uint32_t)own->slot_count,
                .slots = own->slots,
                .workspace = call->sizes.workspace_bytes ? exec->workspace : NULL,
                .reserve = call->reserve_offset >= 0 ? exec->reserve + call->reserve_offset : NULL,
                .packed = call->packed_offset >= 0 ? exec->packed + call->packed_offset : NULL,
                .step = &exec->step,
            };
            seqlstm_status status = sl_backend_get_table(call->backend)
                                        ->forward(exec->shape->bindings[c], &exec->queue.queue, &args, err);
            if (status != SEQLSTM_OK)
                return sl_exec_blame(call, status, err);
            exec->timing[c].forward_ns += sl_clock_ns() - start;
            exec->timing[c].calls++;
        }
        fill_empty_sequences(exec, c);
    }
    return SEQLSTM_OK;
}

/* What one call's backward is asked for. */
struct request {
    uint32_t parts;
    bool any_output_grad;
    bool param_seen;       /* a parameter of it already holds a gradient of this step */
    int32_t added_count;   /* inputs whose gradient goes to scratch first */
    struct {
        int32_t tensor;
        float *scratch;
    } added[SEQLSTM_MERGE_INPUTS];
};

static float *get_grad(struct sl_exec *exec, int32_t t)
{
    int64_t offset = exec->plan->grad_offsets[t];
    return offset >= 0 ? (float *)(void *)(exec->activations + offset) : NULL;
}

static void collect_grads(struct sl_exec *exec, int32_t c, struct request *request)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *own = &exec->calls[c];
    char *scratch = exec->activations + exec->plan->scratch_grad_offset;
    *request = (struct request){0};
    for (int32_t s = 0; s < own->slot_count; s++) {
        int32_t t = node->slots[s];
        own->grads[s] = NULL;
        if (own->roles[s] == SL_SLOT_ABSENT || t < 0)
            continue;
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (!tensor->needs_grad)
            continue;
        if (own->roles[s] == SL_SLOT_OUTPUT && exec->has_grad[t]) {
            own->grads[s] = get_grad(exec, t);
            request->any_output_grad = true;
        } else if (own->roles[s] == SL_SLOT_PARAM) {
            own->grads[s] = exec->params->grads + exec->params->views[tensor->owner].offset_elems;
            request->parts |= SEQLSTM_BACKWARD_WEIGHTS;
            request->param_seen = request->param_seen || exec->param_written[tensor->owner];
        } else if (own->roles[s] == SL_SLOT_INPUT) {
            request->parts |= SEQLSTM_BACKWARD_INPUTS;
            if (exec->has_grad[t]) {
                own->grads[s] = scratch;
                request->added[request->added_count].tensor = t;
                request->added[request->added_count++].scratch = (float *)(void *)scratch;
                scratch += (sl_exec_get_rows(exec, tensor->axis) * tensor->features * 4 + 63) / 64 * 64;
            } else {
                own->grads[s] = get_grad(exec, t);
            }
        }
    }
}

/* Parameters nobody has written yet start at zero when the call is going to add, or is not made at all. */
static void clear_unwritten(struct sl_exec *exec, int32_t c)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    for (int32_t s = 0; s < node->slot_count; s++) {
        if (exec->calls[c].roles[s] != SL_SLOT_PARAM || exec->calls[c].grads[s] == NULL)
            continue;
        int32_t p = exec->graph->tensors[node->slots[s]].owner;
        if (!exec->param_written[p])
            memset(exec->calls[c].grads[s], 0, (size_t)exec->params->views[p].elems * sizeof(float));
        exec->param_written[p] = true;
    }
}

/* Notes what has been written, and adds what stands in the scratch. */
static seqlstm_status settle(struct sl_exec *exec, int32_t c, const struct request *request,
                             struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    for (int32_t s = 0; s < node->slot_count; s++) {
        int32_t t = node->slots[s];
        if (t < 0 || exec->calls[c].grads[s] == NULL)
            continue;
        if (exec->calls[c].roles[s] == SL_SLOT_PARAM)
            exec->param_written[exec->graph->tensors[t].owner] = true;
        else if (exec->calls[c].roles[s] == SL_SLOT_INPUT)
            exec->has_grad[t] = true;
    }
    for (int32_t a = 0; a < request->added_count; a++) {
        int32_t t = request->added[a].tensor;
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_VECTOR_AXPY, get_grad(exec, t), request->added[a].scratch,
                                   sl_exec_get_rows(exec, tensor->axis) * tensor->features, 1.0f, err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_back(struct sl_exec *exec, int32_t c, bool accumulate, struct seqlstm_error *err)
{
    const struct sl_call *call = &exec->plan->calls[c];
    struct sl_exec_call *own = &exec->calls[c];
    const struct seqlstm_backend *table = sl_backend_get_table(call->backend);
    uint32_t op = call->node->desc.head.op;
    bool is_loss = op == SEQLSTM_OP_LOSS || op == SEQLSTM_OP_DENSE_LOSS;
    struct request request;
    collect_grads(exec, c, &request);
    if (exec->shape->bindings[c] == NULL || (!is_loss && !request.any_output_grad)) {
        if (!accumulate)
            clear_unwritten(exec, c);
        return SEQLSTM_OK;
    }
    bool add = accumulate || request.param_seen;
    if (request.param_seen && !accumulate)
        clear_unwritten(exec, c);
    struct seqlstm_backward args = {
        .struct_size = sizeof args,
        .slot_count = (uint32_t)own->slot_count,
        .slots = own->slots,
        .grads = own->grads,
        .parts = request.parts | (add ? SEQLSTM_BACKWARD_ACCUMULATE : 0),
        .workspace = call->sizes.workspace_bytes ? exec->workspace : NULL,
        .reserve = call->reserve_offset >= 0 ? exec->reserve + call->reserve_offset : NULL,
        .packed = call->packed_offset >= 0 ? exec->packed + call->packed_offset : NULL,
        .step = &exec->step,
    };
    int64_t start = sl_clock_ns();
    seqlstm_status status = table->backward(exec->shape->bindings[c], &exec->queue.queue, &args, err);
    if (status != SEQLSTM_OK)
        return sl_exec_blame(call, status, err);
    exec->timing[c].backward_ns += sl_clock_ns() - start;
    return settle(exec, c, &request, err);
}

seqlstm_status sl_exec_backward(struct sl_exec *exec, bool accumulate, struct seqlstm_error *err)
{
    memset(exec->has_grad, 0, (size_t)exec->graph->tensor_count * sizeof *exec->has_grad);
    memset(exec->param_written, 0, (size_t)exec->graph->param_count * sizeof *exec->param_written);
    for (int32_t c = exec->plan->call_count - 1; c >= 0; c--)
        if (exec->plan->calls[c].node->needs_backward)
            SEQLSTM_TRY(run_back(exec, c, accumulate, err));
    return SEQLSTM_OK;
}
