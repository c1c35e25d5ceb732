/* SPDX-License-Identifier: Apache-2.0 */
/* Flat-vector operations of training: optimizer, norms, axpy and the like, on the backend the plan chose. */
#include <string.h>

#include "exec/exec_private.h"

/* The plan's call for an operation (and kind, for VECTOR); -1: the plan is not one of training. */
static int32_t find_vector(const struct sl_exec *exec, uint32_t op, uint32_t kind)
{
    for (int32_t v = 0; v < exec->plan->vector_count; v++) {
        const union seqlstm_any_desc *desc = exec->plan->vectors[v].desc;
        if (desc->head.op == op && (op != SEQLSTM_OP_VECTOR || desc->vector.kind == kind))
            return v;
    }
    return -1;
}

/* The binding for `elems`; the last of the kept ones makes room. */
static seqlstm_status bind_vector(struct sl_exec *exec, int32_t v, int64_t elems,
                                  struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    const struct sl_vector_call *call = &exec->plan->vectors[v];
    const struct seqlstm_backend *table = sl_backend_get_table(call->backend);
    struct sl_exec_vector_binding *kept = exec->vectors[v];
    int k = 0;
    while (k < SL_EXEC_VECTOR_BINDINGS - 1 && kept[k].binding && kept[k].elems != elems)
        k++;
    struct sl_exec_vector_binding found = kept[k];
    if (found.binding == NULL || found.elems != elems) {
        struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = elems, .rows_in = elems};
        struct seqlstm_binding *binding = NULL;
        SEQLSTM_TRY(table->op_bind(call->op, &exec->queue.queue, &bind, &binding, err));
        if (found.binding)
            table->binding_destroy(found.binding);
        found = (struct sl_exec_vector_binding){.elems = elems, .binding = binding};
    }
    memmove(kept + 1, kept, (size_t)k * sizeof *kept); /* most recent first */
    kept[0] = found;
    *out_binding = found.binding;
    return SEQLSTM_OK;
}

static seqlstm_status run(struct sl_exec *exec, uint32_t op, uint32_t kind, void *const *slots,
                          uint32_t slot_count, int64_t elems, struct seqlstm_error *err)
{
    int32_t v = find_vector(exec, op, kind);
    if (v < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the plan has no %s: it is not one of training",
                     sl_op_name(op));
    if (elems <= 0)
        return SEQLSTM_OK;
    struct seqlstm_binding *binding;
    SEQLSTM_TRY(bind_vector(exec, v, elems, &binding, err));
    struct seqlstm_forward args = {
        .struct_size = sizeof args,
        .slot_count = slot_count,
        .slots = slots,
        .workspace = exec->plan->vectors[v].sizes.workspace_bytes ? exec->workspace : NULL,
        .step = &exec->step,
    };
    return sl_backend_get_table(exec->plan->vectors[v].backend)
        ->forward(binding, &exec->queue.queue, &args, err);
}

seqlstm_status sl_exec_vector(struct sl_exec *exec, uint32_t kind, float *y, const float *x, int64_t elems,
                              float alpha, struct seqlstm_error *err)
{
    void *slots[SEQLSTM_VECTOR_SLOTS] = {[SEQLSTM_VECTOR_Y] = y, [SEQLSTM_VECTOR_X] = (void *)x};
    exec->step.alpha = alpha;
    return run(exec, SEQLSTM_OP_VECTOR, kind, slots, SEQLSTM_VECTOR_SLOTS, elems, err);
}

seqlstm_status sl_exec_squared_norm(struct sl_exec *exec, const float *x, int64_t elems, double *out_sum,
                                    struct seqlstm_error *err)
{
    double sum = 0;
    void *slots[SEQLSTM_REDUCE_SLOTS] = {[SEQLSTM_REDUCE_X] = (void *)x, [SEQLSTM_REDUCE_RESULT] = &sum};
    SEQLSTM_TRY(run(exec, SEQLSTM_OP_SQUARED_NORM, 0, slots, SEQLSTM_REDUCE_SLOTS, elems, err));
    *out_sum = sum;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_optimize(struct sl_exec *exec, uint64_t update, float learning_rate, float grad_scale,
                                struct seqlstm_error *err)
{
    struct sl_params *params = exec->params;
    void *slots[SEQLSTM_OPTIMIZER_SLOTS] = {
        [SEQLSTM_OPTIMIZER_PARAM] = params->values,
        [SEQLSTM_OPTIMIZER_GRAD] = params->grads,
        [SEQLSTM_OPTIMIZER_STATE_1] = params->states[0],
        [SEQLSTM_OPTIMIZER_STATE_2] = params->states[1],
        [SEQLSTM_OPTIMIZER_STATE_3] = params->states[2],
    };
    exec->step.update = update;
    exec->step.learning_rate = learning_rate;
    exec->step.grad_scale = grad_scale;
    exec->step.flags = 0;
    SEQLSTM_TRY(run(exec, SEQLSTM_OP_OPTIMIZER, 0, slots, SEQLSTM_OPTIMIZER_SLOTS, params->trainable_elems, err));
    sl_params_touch(params);
    return SEQLSTM_OK;
}
