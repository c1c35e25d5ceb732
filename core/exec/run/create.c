/* SPDX-License-Identifier: Apache-2.0 */
/* The life of an executor. See exec.h. */
#include <stdlib.h>
#include <string.h>

#include "registry/plugin.h"
#include "exec/capture/capture.h"
#include "exec/capture/frame.h"
#include "exec/shape/indices.h"
#include "exec/run/lean.h"
#include "exec/call/border.h"
#include "exec/call/loop.h"
#include "exec/call/pieces.h"
#include "exec/place/place.h"
#include "exec/place/staging.h"
#include "exec/shape/shapes.h"
#include "exec/update/vectors.h"

static seqlstm_status prepare_call(struct sl_exec *exec, int32_t c, struct sl_slot *signature,
                                   struct seqlstm_error *err)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    const struct sl_backend *backend = exec->plan->calls[c].backend;
    struct sl_exec_call *call = &exec->calls[c];
    call->rebind = sl_plugin_find_rebind(sl_backend_get_table(backend), sl_backend_get_instance(backend));
    int32_t count;
    SEQLSTM_TRY(sl_op_signature(&node->desc.head, signature, SL_SLOTS_MAX, &count, err));
    call->slot_count = node->slot_count;
    call->axis = sl_graph_get_axis(exec->graph, node);
    call->roles = calloc((size_t)node->slot_count + 1, sizeof *call->roles);
    call->slots = calloc((size_t)node->slot_count + 1, sizeof *call->slots);
    call->grads = calloc((size_t)node->slot_count + 1, sizeof *call->grads);
    call->gaps = calloc(2 * (size_t)node->slot_count + 1, sizeof *call->gaps);
    call->hashes = calloc((size_t)node->slot_count + 1, sizeof *call->hashes);
    if (!call->roles || !call->slots || !call->grads || !call->gaps || !call->hashes)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t s = 0; s < node->slot_count; s++)
        call->roles[s] = s < count && node->slots[s] >= 0 ? signature[s].role : SL_SLOT_ABSENT;
    call->repacks = node->desc.head.op == SEQLSTM_OP_RECURRENT && node->desc.recurrent.weight_drop > 0 &&
                    node->desc.head.mode == SEQLSTM_MODE_TRAINING;
    return SEQLSTM_OK;
}

/* Once the places of the calls are known. */
static void list_gaps(const struct sl_exec *exec, int32_t c)
{
    const struct sl_node *node = exec->plan->calls[c].node;
    struct sl_exec_call *call = &exec->calls[c];
    int32_t count = 0;
    for (int backward = 0; backward < 2; backward++) {
        const int64_t *offsets = backward ? exec->plan->grad_offsets : exec->plan->tensor_offsets;
        const enum sl_slot_role role = backward ? SL_SLOT_INPUT : SL_SLOT_OUTPUT;
        for (int32_t s = 0; s < call->slot_count && call->place == SL_PLACE_HOST; s++) {
            const int32_t t = node->slots[s];
            if (call->roles[s] == role && t >= 0 && offsets[t] >= 0)
                call->gaps[count++] = (struct sl_exec_gap){t, offsets[t] + sl_plan_get_tensor_bytes(exec->plan, t)};
        }
        call->gap_counts[backward] = count - (backward ? call->gap_counts[0] : 0);
    }
}

static seqlstm_status prepare_buffers(struct sl_exec *exec, const float *class_weights, struct seqlstm_error *err)
{
    const struct sl_graph *graph = exec->graph;
    size_t tensors = (size_t)graph->tensor_count + 1;
    exec->state_offsets = calloc((size_t)graph->state_count + 1, sizeof *exec->state_offsets);
    exec->memory_offsets = calloc((size_t)graph->memory_count + 1, sizeof *exec->memory_offsets);
    exec->valid = calloc(tensors, sizeof *exec->valid);
    exec->grad_valid = calloc(tensors, sizeof *exec->grad_valid);
    exec->param_written = calloc((size_t)graph->param_count + 1, sizeof *exec->param_written);
    exec->vector_places = calloc((size_t)exec->plan->vector_count + 1, sizeof *exec->vector_places);
    if (!exec->state_offsets || !exec->memory_offsets || !exec->valid || !exec->grad_valid || !exec->param_written ||
        !exec->vector_places)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t s = 0; s < graph->state_count; s++) {
        exec->state_offsets[s] = exec->state_elems;
        exec->state_elems += (graph->facts.envelope.sequences * graph->states[s].features + 15) / 16 * 16;
    }
    for (int32_t m = 0; m < graph->memory_count && graph->memories[m].tensor_in >= 0; m++) {
        const struct sl_tensor *tensor = &graph->tensors[graph->memories[m].tensor_in];
        exec->memory_offsets[m] = exec->memory_elems;
        exec->memory_elems += (sl_graph_get_rows(graph, tensor) * tensor->features + 15) / 16 * 16;
    }
    SEQLSTM_TRY(sl_exec_open_indices(exec, err));
    SEQLSTM_TRY(sl_exec_open_places(exec, class_weights, err));
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        list_gaps(exec, c);
    return sl_exec_open_capture(exec, err);
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
    exec->pieces.running = -1;
    exec->pieces.count = request->pieces > 0 ? request->pieces : plan->graph->pieces;
    exec->graph = plan->graph;
    exec->params = request->params;
    exec->memory = request->memory;
    exec->packed = request->packed;
    exec->step = (struct seqlstm_step){
        .struct_size = sizeof exec->step, .seed = request->seed, .loss_scale = 1.0f, .grad_scale = 1.0f};
    sl_domain_init_host(&exec->host, request->pool, request->memory);
    if (plan->threads > 0 && exec->host.queue.queue.members > plan->threads) {
        status = seqlstm_error_set(err, SEQLSTM_INTERNAL, __FILE__, __LINE__,
                                   "the plan's buffers are for %d threads, the pool has %d", plan->threads,
                                   exec->host.queue.queue.members);
        goto out;
    }
    exec->calls = calloc((size_t)plan->call_count + 1, sizeof *exec->calls);
    exec->timing = calloc((size_t)plan->call_count + 1, sizeof *exec->timing);
    exec->vectors = calloc((size_t)plan->vector_count + 1, sizeof *exec->vectors);
    exec->units = calloc((size_t)plan->call_count + 1, sizeof *exec->units);
    if (!exec->calls || !exec->timing || !exec->vectors || !exec->units) {
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the executor");
        goto out;
    }
    for (int32_t c = 0; c < plan->call_count; c++)
        exec->units[c] = sl_plan_find_unit(plan->graph, plan->calls, plan->call_count, c);
    for (int32_t c = 0; c < plan->call_count && status == SEQLSTM_OK; c++)
        status = prepare_call(exec, c, signature, err);
    if (status == SEQLSTM_OK)
        status = sl_exec_open_loop(exec, err);
    if (status == SEQLSTM_OK)
        status = prepare_buffers(exec, request->class_weights, err);
    if (status == SEQLSTM_OK)
        status = sl_exec_open_borders(exec, &request->stage, err);
    if (status == SEQLSTM_OK)
        status = sl_exec_open_pieces(exec, err);
    for (int32_t c = 0; c < plan->call_count && status == SEQLSTM_OK; c++)
        if (sl_packed_has(exec->packed, &plan->calls[c]))
            exec->calls[c].packed_version = exec->packed->version + 1;
    if (status == SEQLSTM_OK && request->lean)
        sl_exec_open_lean(exec);
out:
    free(signature);
    if (status != SEQLSTM_OK) {
        sl_exec_destroy(exec);
        return status;
    }
    *out_exec = exec;
    return SEQLSTM_OK;
}

/* An update may still be running on a device, with buffers that are about to be freed. Errors come too late to
 * matter. */
static void finish_places(struct sl_exec *exec)
{
    for (int32_t p = 0; p < SL_PLACES_MAX; p++)
        if (exec->places[p].domain)
            sl_domain_finish(exec->places[p].domain, NULL);
}

void sl_exec_destroy(struct sl_exec *exec)
{
    if (exec == NULL)
        return;
    finish_places(exec);
    if (exec->calls)
        sl_exec_unbind_all(exec);
    sl_exec_unbind_vectors(exec);
    for (int32_t c = 0; exec->calls && c < exec->plan->call_count; c++) {
        free(exec->calls[c].roles);
        free(exec->calls[c].slots);
        free(exec->calls[c].grads);
        free(exec->calls[c].gaps);
        free(exec->calls[c].hashes);
    }
    free(exec->calls);
    free(exec->units);
    free(exec->timing);
    free(exec->vectors);
    free(exec->state_offsets);
    sl_exec_close_frame(exec);
    sl_exec_close_live(exec);
    sl_exec_close_staging(exec);
    sl_exec_close_places(exec);
    free(exec->valid);
    free(exec->grad_valid);
    free(exec->param_written);
    free(exec->vector_places);
    free(exec->memory_offsets);
    sl_exec_close_loop(exec);
    if (exec->plan)
        sl_exec_close_pieces(exec);
    sl_exec_close_borders(exec);
    sl_exec_close_indices(exec);
    free(exec);
}
