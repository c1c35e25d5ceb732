/* SPDX-License-Identifier: Apache-2.0 */
/* Life of an executor and the step. See exec.h. */
#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/exec_private.h"

seqlstm_status sl_exec_blame(const struct sl_call *call, seqlstm_status status, struct seqlstm_error *err)
{
    if (err) {
        char text[sizeof err->message];
        snprintf(text, sizeof text, "%s on %s: %.800s", call->node->name, sl_backend_get_id(call->backend),
                 err->message);
        memcpy(err->message, text, sizeof text);
    }
    return status;
}

/* The axis on which the rows of an operation are: that of its first input. */
static enum sl_axis find_axis(const struct sl_graph *graph, const struct sl_node *node)
{
    int32_t first = node->desc.head.op == SEQLSTM_OP_MERGE ? SEQLSTM_MERGE_X : 0;
    return graph->tensors[node->slots[first]].axis;
}

static seqlstm_status prepare_call(struct sl_exec *exec, int32_t c, struct sl_slot *signature,
                                   struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *call = &exec->calls[c];
    int32_t count;
    SEQLSTM_TRY(sl_op_signature(&node->desc.head, signature, SL_SLOTS_MAX, &count, err));
    call->slot_count = node->slot_count;
    call->axis = find_axis(exec->graph, node);
    call->roles = calloc((size_t)node->slot_count + 1, sizeof *call->roles);
    call->slots = calloc((size_t)node->slot_count + 1, sizeof *call->slots);
    call->grads = calloc((size_t)node->slot_count + 1, sizeof *call->grads);
    if (!call->roles || !call->slots || !call->grads)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t s = 0; s < node->slot_count; s++)
        call->roles[s] = s < count && node->slots[s] >= 0 ? signature[s].role : SL_SLOT_ABSENT;
    call->repacks = node->desc.head.op == SEQLSTM_OP_RECURRENT && node->desc.recurrent.weight_drop > 0 &&
                    node->desc.head.mode == SEQLSTM_MODE_TRAINING;
    return SEQLSTM_OK;
}

static void *get_room(struct sl_exec *exec, int64_t bytes, bool *failed)
{
    void *room = sl_memory_alloc_zeroed(exec->memory, (size_t)(bytes > 0 ? bytes : 64));
    if (room == NULL)
        *failed = true;
    return room;
}

static seqlstm_status prepare_buffers(struct sl_exec *exec, const float *class_weights,
                                      struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    const struct sl_plan *plan = exec->plan;
    bool failed = false;
    exec->state_offsets = calloc((size_t)graph->state_count + 1, sizeof *exec->state_offsets);
    exec->has_grad = calloc((size_t)graph->tensor_count + 1, sizeof *exec->has_grad);
    exec->param_written = calloc((size_t)graph->param_count + 1, sizeof *exec->param_written);
    if (!exec->state_offsets || !exec->has_grad || !exec->param_written)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t s = 0; s < graph->state_count; s++) {
        exec->state_offsets[s] = exec->state_elems;
        exec->state_elems += (graph->facts.envelope.sequences * graph->states[s].features + 15) / 16 * 16;
    }
    exec->activations = get_room(exec, plan->activation_bytes, &failed);
    exec->reserve = get_room(exec, plan->reserve_bytes, &failed);
    exec->packed = get_room(exec, plan->packed_bytes, &failed);
    exec->workspace = get_room(exec, plan->workspace_bytes, &failed);
    exec->states = get_room(exec, exec->state_elems * 4, &failed);
    int64_t classes = graph->facts.target.classes;
    exec->class_weights = get_room(exec, classes * 4, &failed);
    if (failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the activations: the plan needs %lld MB",
                     (long long)(plan->memory.peak_bytes / 1000000));
    for (int64_t k = 0; k < classes; k++)
        exec->class_weights[k] = class_weights ? class_weights[k] : 1.0f;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_create(const struct sl_exec_request *request, struct sl_exec **out_exec,
                              struct seqlstm_error *err)
{
    const struct sl_plan *plan = request->plan;
    struct sl_exec *exec = calloc(1, sizeof *exec);
    struct sl_slot *signature = calloc(SL_SLOTS_MAX, sizeof *signature);
    seqlstm_status status = SEQLSTM_OK;
    if (exec == NULL || signature == NULL) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the executor");
        goto out;
    }
    exec->plan = plan;
    exec->graph = plan->graph;
    exec->params = request->params;
    exec->memory = request->memory;
    exec->step = (struct seqlstm_step){.struct_size = sizeof exec->step, .seed = request->seed,
                                       .loss_scale = 1.0f, .grad_scale = 1.0f};
    sl_queue_init(&exec->queue, request->pool);
    exec->calls = calloc((size_t)plan->call_count + 1, sizeof *exec->calls);
    exec->timing = calloc((size_t)plan->call_count + 1, sizeof *exec->timing);
    exec->vectors = calloc((size_t)plan->vector_count + 1, sizeof *exec->vectors);
    if (!exec->calls || !exec->timing || !exec->vectors) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the executor");
        goto out;
    }
    for (int32_t c = 0; c < plan->call_count && status == SEQLSTM_OK; c++)
        status = prepare_call(exec, c, signature, err);
    if (status == SEQLSTM_OK)
        status = prepare_buffers(exec, request->class_weights, err);
out:
    free(signature);
    if (status != SEQLSTM_OK) {
        sl_exec_destroy(exec);
        return status;
    }
    *out_exec = exec;
    return SEQLSTM_OK;
}

void sl_exec_destroy(struct sl_exec *exec)
{
    if (exec == NULL)
        return;
    if (exec->calls)
        sl_exec_unbind_all(exec);
    for (int32_t v = 0; exec->vectors && v < exec->plan->vector_count; v++)
        for (int k = 0; k < SL_EXEC_VECTOR_BINDINGS; k++)
            if (exec->vectors[v][k].binding)
                sl_backend_get_table(exec->plan->vectors[v].backend)
                    ->binding_destroy(exec->vectors[v][k].binding);
    for (int32_t c = 0; exec->calls && c < exec->plan->call_count; c++) {
        free(exec->calls[c].roles);
        free(exec->calls[c].slots);
        free(exec->calls[c].grads);
    }
    free(exec->calls);
    free(exec->timing);
    free(exec->vectors);
    free(exec->state_offsets);
    free(exec->has_grad);
    free(exec->param_written);
    sl_memory_free(exec->memory, exec->activations);
    sl_memory_free(exec->memory, exec->reserve);
    sl_memory_free(exec->memory, exec->packed);
    sl_memory_free(exec->memory, exec->workspace);
    sl_memory_free(exec->memory, exec->states);
    sl_memory_free(exec->memory, exec->class_weights);
    free(exec);
}

int64_t sl_exec_get_rows(const struct sl_exec *exec, enum sl_axis axis)
{
    return axis == SL_AXIS_STEPS ? exec->shape->steps.rows : exec->shape->sequences;
}

void *sl_exec_get_tensor(struct sl_exec *exec, int32_t t)
{
    if (t < 0)
        return NULL;
    const struct sl_tensor *tensor = &exec->graph->tensors[t];
    const struct sl_batch *batch = exec->batch;
    switch (tensor->role) {
    case SL_TENSOR_ACTIVATION:
    case SL_TENSOR_STATE_OUT:
        return exec->plan->tensor_offsets[t] >= 0 ? exec->activations + exec->plan->tensor_offsets[t] : NULL;
    case SL_TENSOR_INPUT:
        return (void *)batch->input.values;
    case SL_TENSOR_TARGET:
        return (void *)batch->target.values;
    case SL_TENSOR_WEIGHT:
        return (void *)batch->weight.values;
    case SL_TENSOR_CLASS_WEIGHTS:
        return exec->class_weights;
    case SL_TENSOR_PARAM:
        return exec->params->values + exec->params->views[tensor->owner].offset_elems;
    case SL_TENSOR_STATE_IN:
        return exec->states + exec->state_offsets[tensor->owner];
    case SL_TENSOR_SUMS:
        return exec->sums;
    }
    return NULL;
}

bool sl_exec_fits(const struct sl_exec *exec, const struct sl_batch *batch)
{
    const struct sl_envelope *envelope = &exec->graph->facts.envelope;
    return batch->sequences <= envelope->sequences && batch->axis.steps <= envelope->steps &&
           batch->axis.rows <= envelope->rows;
}

static bool field_fits(const struct sl_field *field, const struct sl_field_facts *facts)
{
    return field->kind == facts->kind && field->on_steps == facts->on_steps &&
           (field->kind != SL_FIELD_VALUES || field->features == facts->features);
}

static seqlstm_status check_batch(const struct sl_exec *exec, const struct sl_batch *batch,
                                  struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = &exec->graph->facts;
    if (!sl_exec_fits(exec, batch))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "a batch of %lld sequences, %lld steps and %lld rows does not fit the plan's %lld, %lld and %lld",
                     (long long)batch->sequences, (long long)batch->axis.steps, (long long)batch->axis.rows,
                     (long long)facts->envelope.sequences, (long long)facts->envelope.steps,
                     (long long)facts->envelope.rows);
    bool loss = exec->graph->phase != SL_PHASE_PREDICT;
    if (!field_fits(&batch->input, &facts->input) || (loss && !field_fits(&batch->target, &facts->target)))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the batch's fields are not those the model was built for");
    if (loss && facts->has_weight && batch->weight.kind != SL_FIELD_VALUES)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the batch has no weights, but the model was built for them");
    return SEQLSTM_OK;
}

/* Final states of sequences without a step are their initial ones; what survives goes to the next batch. */
static void carry_states(struct sl_exec *exec)
{
    for (int32_t s = 0; s < exec->graph->state_count; s++) {
        const struct sl_state *state = &exec->graph->states[s];
        float *in = exec->states + exec->state_offsets[s];
        const float *out = sl_exec_get_tensor(exec, state->tensor_out);
        memcpy(in, out, (size_t)(exec->shape->steps.sequences * state->features) * sizeof *in);
    }
}

seqlstm_status sl_exec_run(struct sl_exec *exec, const struct sl_batch *batch,
                           const struct sl_exec_step *step, struct sl_exec_result *out_result,
                           struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_batch(exec, batch, err));
    SEQLSTM_TRY(sl_exec_bind(exec, batch, err));
    if (!batch->carry_state)
        sl_exec_reset_state(exec);
    exec->step.epoch = step->epoch;
    exec->step.weight_mask_step = step->weight_mask_step;
    exec->step.normaliser = (float)step->normaliser;
    exec->sums[0] = exec->sums[1] = 0.0;
    SEQLSTM_TRY(sl_exec_forward(exec, err));
    if (exec->graph->phase == SL_PHASE_TRAIN)
        SEQLSTM_TRY(sl_exec_backward(exec, step->accumulate, err));
    carry_states(exec);
    *out_result = (struct sl_exec_result){.loss_sum = exec->sums[0], .weight_sum = exec->sums[1],
                                          .rows = batch->has_steps ? batch->axis.rows : batch->sequences};
    return SEQLSTM_OK;
}

double sl_exec_weigh(const struct sl_exec *exec, const struct sl_batch *batch)
{
    const struct sl_field *target = &batch->target;
    int64_t rows = target->on_steps ? batch->axis.rows : batch->sequences;
    bool classes = target->kind == SL_FIELD_IDS;
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        if (classes && target->ids[r] < 0)
            continue;
        double weight = batch->weight.kind == SL_FIELD_VALUES ? (double)batch->weight.values[r] : 1.0;
        sum += classes && exec->class_weights ? weight * (double)exec->class_weights[target->ids[r]] : weight;
    }
    return sum;
}

struct sl_field sl_exec_get_output(const struct sl_exec *exec)
{
    const struct sl_tensor *tensor = &exec->graph->tensors[exec->graph->output];
    struct sl_field field = {.kind = SL_FIELD_VALUES,
                             .on_steps = tensor->axis == SL_AXIS_STEPS,
                             .features = tensor->features};
    field.values = sl_exec_get_tensor((struct sl_exec *)exec, exec->graph->output);
    return field;
}

float *sl_exec_get_state(struct sl_exec *exec, int64_t *out_elems)
{
    *out_elems = exec->state_elems;
    return exec->states;
}

void sl_exec_reset_state(struct sl_exec *exec)
{
    memset(exec->states, 0, (size_t)exec->state_elems * sizeof *exec->states);
}

const struct sl_exec_timing *sl_exec_get_timing(const struct sl_exec *exec, int32_t *out_count)
{
    *out_count = exec->plan->call_count;
    return exec->timing;
}
