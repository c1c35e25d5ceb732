/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of an executor in each memory domain that its plan uses, and which copies of a tensor are valid.
 *
 * A call runs in the place of its backend's device. A tensor that is read in another place than it was written is
 * copied there (sl_params_move), and stays valid in both places until it is written again. A plan that runs on the
 * host alone has one place and copies nothing.
 */
#include "exec/place/place.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "exec/rows.h"
#include "registry/watch/fence.h"

/* The kernel grants more than it has, and ends the process when it is used. */
static bool fits_machine(int64_t bytes)
{
    struct sysinfo machine;
    return sysinfo(&machine) != 0 ||
           (double)bytes <= ((double)machine.totalram + (double)machine.totalswap) * machine.mem_unit;
}

static uint64_t count_bytes(const struct sl_call *call)
{
    return call->sizes.workspace_bytes + call->sizes.reserve_bytes + call->sizes.packed_bytes;
}

/* A call that alone asked for more than `bytes` in op_sizes; NULL: none did. */
static const struct sl_call *find_larger_call(const struct sl_plan *plan, int64_t bytes)
{
    for (int32_t c = 0; c < plan->call_count; c++)
        if (count_bytes(&plan->calls[c]) > (uint64_t)bytes)
            return &plan->calls[c];
    return NULL;
}

static void blame_largest(const struct sl_call *call, struct seqlstm_error *err)
{
    const size_t length = strlen(err->message);
    snprintf(err->message + length, sizeof err->message - length, ", of which %s on %s takes %llu MB (op_sizes)",
             call->node->name, sl_backend_get_id(call->backend), (unsigned long long)(count_bytes(call) / 1000000));
}

/* The memory of the device of place p; 0: unknown. */
static int64_t find_device_bytes(const struct sl_exec *exec, int32_t p)
{
    for (int32_t c = 0; c < exec->plan->call_count; c++)
        if (exec->calls[c].place == p)
            return (int64_t)sl_backend_get_device(exec->plan->calls[c].backend, exec->plan->calls[c].device)
                ->memory_bytes;
    return 0;
}

/* Beside training, evaluation has buffers of its own, which are at most half as large; and a device keeps a tenth. */
static const double beside_training = 1.5, usable = 0.9;

/* What the plan needs on a device, and the batch that would fit. Parameters and packed weights do not depend on it. */
static void write_device_need(const struct sl_exec *exec, int32_t p, struct seqlstm_error *err)
{
    const struct sl_plan_memory *memory = &exec->plan->memory;
    const int64_t fixed =
        memory->weights_bytes + memory->gradients_bytes + memory->optimizer_bytes + exec->plan->packed_bytes;
    const int64_t varying =
        memory->activations_bytes + memory->workspace_bytes - exec->plan->packed_bytes + memory->batches_bytes;
    const int64_t all = find_device_bytes(exec, p), sequences = exec->graph->facts.envelope.sequences;
    const double factor = exec->graph->phase == SL_PHASE_TRAIN ? beside_training : 1;
    const double room = usable * (double)all - (double)fixed;
    const int64_t fitting = room > 0 ? (int64_t)(room * (double)sequences / ((double)varying * factor)) : 0;
    const int64_t most = fitting < sequences ? fitting : sequences - 1; /* 0 if there is no room */
    char batch[96];
    if (most == 0)
        snprintf(batch, sizeof batch, room > 0 ? "not one sequence fits" : "the parameters alone do not fit");
    else
        snprintf(batch, sizeof batch, "a batch of at most %lld sequence%s fits", (long long)most, most == 1 ? "" : "s");
    seqlstm_error_set(
        err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__,
        "no memory on the device (%s): the plan needs %.2f MB there for a batch of %lld sequence%s, of which "
        "%.2f MB do not depend on the batch; the device has %.2f MB: %s",
        exec->places[p].domain->name, (double)(fixed + varying) * 1e-6, (long long)sequences, sequences == 1 ? "" : "s",
        (double)fixed * 1e-6, (double)all * 1e-6, batch);
}

/* Writes into the error what the plan needs, where a device has no memory. Returns whether it did. */
static bool explain(const struct sl_exec *exec, int32_t p, seqlstm_status status, struct seqlstm_error *err)
{
    const bool has_need = status == SEQLSTM_NO_MEMORY && p != SL_PLACE_HOST && find_device_bytes(exec, p) > 0;
    if (has_need)
        write_device_need(exec, p, err);
    return has_need;
}

seqlstm_status sl_exec_allocate(struct sl_exec *exec, struct sl_exec_place *place, int64_t bytes, void *out_pointer,
                                struct seqlstm_error *err)
{
    void *pointer = NULL;
    seqlstm_status status = SEQLSTM_NO_MEMORY;
    const struct sl_call *largest = find_larger_call(exec->plan, bytes / 2);
    if (!sl_domain_is_host(place->domain) || fits_machine(bytes))
        status = sl_domain_allocate(place->domain, bytes, &pointer, err);
    if (!explain(exec, (int32_t)(place - exec->places), status, err) && status == SEQLSTM_NO_MEMORY)
        seqlstm_error_set(err, status, __FILE__, __LINE__, "no memory for the activations (%s): the plan needs %lld MB",
                          place->domain->name, (long long)(exec->plan->memory.peak_bytes / 1000000));
    if (status == SEQLSTM_NO_MEMORY && sl_domain_is_host(place->domain) && largest && err &&
        err->struct_size >= sizeof *err)
        blame_largest(largest, err);
    memcpy(out_pointer, &pointer, sizeof pointer);
    return status;
}

seqlstm_status sl_exec_provide_part(struct sl_exec *exec, int32_t p, enum sl_param_part part, int64_t begin,
                                    int64_t elems, float **out_elems, struct seqlstm_error *err)
{
    const seqlstm_status status = sl_params_provide(exec->params, p, part, begin, elems, out_elems, err);
    explain(exec, p, status, err);
    return status;
}

seqlstm_status sl_exec_locate_part(struct sl_exec *exec, int32_t p, enum sl_param_part part, int64_t begin,
                                   float **out_elems, struct seqlstm_error *err)
{
    const seqlstm_status status = sl_params_locate(exec->params, p, part, begin, out_elems, err);
    explain(exec, p, status, err);
    return status;
}

static seqlstm_status open_fields(struct sl_exec *exec, struct sl_exec_place *place, struct seqlstm_error *err)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        const struct sl_tensor *tensor = &exec->graph->tensors[t];
        if (!sl_tensor_role_is_field(tensor->role))
            continue;
        void **field = &place->fields[tensor->role - SL_TENSOR_INPUT];
        int64_t bytes = sl_graph_get_rows(exec->graph, tensor) * tensor->features * sl_dtype_bytes(tensor->dtype);
        if (*field == NULL)
            SEQLSTM_TRY(sl_exec_allocate(exec, place, bytes, field, err));
    }
    return SEQLSTM_OK;
}

static bool borrows_packed(const struct sl_exec *exec, int32_t p)
{
    return p == SL_PLACE_HOST && exec->packed && exec->packed->buffer;
}

/* The host always has room for activations: copies between devices go through it. */
static seqlstm_status open_place(struct sl_exec *exec, int32_t p, const float *class_weights, struct seqlstm_error *err)
{
    const struct sl_plan *plan = exec->plan;
    struct sl_exec_place *place = &exec->places[p];
    int64_t classes = exec->graph->facts.target.classes;
    bool runs = p != SL_PLACE_HOST;
    for (int32_t c = 0; c < plan->call_count; c++)
        runs = runs || exec->calls[c].place == p;
    for (int32_t v = 0; v < plan->vector_count; v++)
        runs = runs || exec->vector_places[v] == p;
    place->domain = p == SL_PLACE_HOST ? &exec->host : sl_params_get_domain(exec->params, p);
    SEQLSTM_TRY(sl_exec_allocate(exec, place, plan->activation_bytes + SL_FENCE_ROOM, &place->activations, err));
    SEQLSTM_TRY(sl_exec_allocate(exec, place, exec->state_elems * 4, &place->states, err));
    SEQLSTM_TRY(sl_exec_allocate(exec, place, exec->memory_elems * 4, &place->memories, err));
    SEQLSTM_TRY(sl_exec_allocate(exec, place, classes * 4, &place->class_weights, err));
    SEQLSTM_TRY(sl_exec_allocate(exec, place, 2 * sizeof(double), &place->sums, err));
    SEQLSTM_TRY(sl_exec_allocate(exec, place, sizeof(double), &place->scalar, err));
    int64_t zeros = 0;
    for (int32_t k = 0; k < exec->graph->loop.carry_count; k++) {
        const struct sl_tensor *before = &exec->graph->tensors[exec->graph->loop.carries[k].before];
        int64_t bytes = exec->graph->facts.envelope.sequences * before->features * 4;
        zeros = bytes > zeros ? bytes : zeros;
    }
    if (runs) {
        SEQLSTM_TRY(sl_exec_allocate(exec, place, zeros, &place->zeros, err));
        SEQLSTM_TRY(sl_exec_allocate(exec, place, plan->reserve_bytes + SL_FENCE_ROOM, &place->reserve, err));
        if (borrows_packed(exec, p))
            place->packed = exec->packed->buffer;
        else
            SEQLSTM_TRY(sl_exec_allocate(exec, place, plan->packed_bytes + SL_FENCE_ROOM, &place->packed, err));
        SEQLSTM_TRY(sl_exec_allocate(exec, place, plan->workspace_bytes + SL_FENCE_ROOM, &place->workspace, err));
    }
    if (p != SL_PLACE_HOST)
        return open_fields(exec, place, err);
    for (int64_t k = 0; k < classes; k++)
        place->class_weights[k] = class_weights ? class_weights[k] : 1.0f;
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_open_places(struct sl_exec *exec, const float *class_weights, struct seqlstm_error *err)
{
    const struct sl_plan *plan = exec->plan;
    bool used[SL_PLACES_MAX] = {[SL_PLACE_HOST] = true};
    for (int32_t c = 0; c < plan->call_count; c++) {
        SEQLSTM_TRY(sl_params_find_place(exec->params, plan->calls[c].backend, plan->calls[c].device,
                                         &exec->calls[c].place, err));
        used[exec->calls[c].place] = true;
    }
    for (int32_t v = 0; v < plan->vector_count; v++) {
        SEQLSTM_TRY(sl_params_find_place(exec->params, plan->vectors[v].backend, plan->vectors[v].device,
                                         &exec->vector_places[v], err));
        used[exec->vector_places[v]] = true;
    }
    for (int32_t p = 0; p < SL_PLACES_MAX; p++)
        if (used[p])
            SEQLSTM_TRY(open_place(exec, p, class_weights, err));
    memset(exec->valid, 1 << SL_PLACE_HOST, (size_t)exec->graph->tensor_count);
    return SEQLSTM_OK;
}

void sl_exec_close_places(struct sl_exec *exec)
{
    for (int32_t p = 0; p < SL_PLACES_MAX; p++) {
        struct sl_exec_place *place = &exec->places[p];
        if (place->domain == NULL)
            continue;
        if (borrows_packed(exec, p))
            place->packed = NULL;
        void *const owned[] = {place->activations, place->reserve,       place->packed,    place->workspace,
                               place->states,      place->class_weights, place->memories,  place->zeros,
                               place->sums,        place->scalar,        place->staged[0], place->staged[1]};
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            sl_domain_release(place->domain, owned[k]);
        for (int k = 0; k < SL_EXEC_FIELDS; k++)
            sl_domain_release(place->domain, place->fields[k]);
    }
}

/* ---- tensors ------------------------------------------------------------------------------------------ */

/* BEFORE shares the memory of another tensor. The roles that are not named are kept from run to run. */
void sl_exec_begin_values(struct sl_exec *exec)
{
    for (int32_t t = 0; t < exec->graph->tensor_count; t++) {
        const enum sl_tensor_role role = exec->graph->tensors[t].role;
        if (sl_tensor_role_is_field(role) || role == SL_TENSOR_SUMS)
            exec->valid[t] = 1u << SL_PLACE_HOST;
        else if (role == SL_TENSOR_ACTIVATION || role == SL_TENSOR_STATE_OUT || role == SL_TENSOR_MEMORY_OUT ||
                 role == SL_TENSOR_BEFORE)
            exec->valid[t] = 0;
    }
}

static void *get_field(const struct sl_exec *exec, enum sl_tensor_role role)
{
    const struct sl_batch *batch = exec->batch;
    const void *const fields[] = {batch->input.values, batch->target.values, batch->weight.values,
                                  batch->source.input.values, batch->source.place};
    return role >= SL_TENSOR_SEQUENCE ? exec->indices[role - SL_TENSOR_SEQUENCE]
                                      : (void *)fields[role - SL_TENSOR_INPUT];
}

/* The address of a tensor's first row. */
static void *get_base(const struct sl_exec *exec, int32_t p, int32_t t)
{
    const struct sl_tensor *tensor = &exec->graph->tensors[t];
    const struct sl_exec_place *place = &exec->places[p];
    if (sl_tensor_role_is_field(tensor->role))
        return p == SL_PLACE_HOST || get_field(exec, tensor->role) == NULL
                   ? get_field(exec, tensor->role)
                   : place->fields[tensor->role - SL_TENSOR_INPUT];
    switch (tensor->role) {
    case SL_TENSOR_ACTIVATION:
    case SL_TENSOR_STATE_OUT:
    case SL_TENSOR_MEMORY_OUT:
        return exec->plan->tensor_offsets[t] >= 0 ? place->activations + exec->plan->tensor_offsets[t] : NULL;
    case SL_TENSOR_CLASS_WEIGHTS:
        return place->class_weights;
    case SL_TENSOR_STATE_IN:
        return place->states + exec->state_offsets[tensor->owner];
    case SL_TENSOR_MEMORY_IN:
        return place->memories + exec->memory_offsets[tensor->owner];
    case SL_TENSOR_SUMS:
        return place->sums;
    default: /* BEFORE: sl_exec_at; PARAM: sl_params_provide */
        return NULL;
    }
}

/* What a loop reads of the step before; at the first step, or for all steps at once, the initial value. */
static void *get_before(const struct sl_exec *exec, int32_t p, const struct sl_carry *carry)
{
    if (exec->loop.step <= 0)
        return carry->initial >= 0 ? get_base(exec, p, carry->initial) : exec->places[p].zeros;
    const struct sl_tensor *value = &exec->graph->tensors[carry->value];
    const struct seqlstm_axis *axis = &exec->shape->sides[SL_EXEC_TARGET].steps;
    return (float *)get_base(exec, p, carry->value) + axis->row_offsets[exec->loop.step - 1] * value->features;
}

void *sl_exec_at(struct sl_exec *exec, int32_t p, int32_t t)
{
    if (t < 0)
        return NULL;
    const struct sl_tensor *tensor = &exec->graph->tensors[t];
    if (tensor->role == SL_TENSOR_BEFORE)
        return get_before(exec, p, &exec->graph->loop.carries[tensor->owner]);
    char *base = get_base(exec, p, t);
    return base ? base + sl_exec_get_shift(exec, tensor) : NULL;
}

float *sl_exec_grad_at(struct sl_exec *exec, int32_t p, int32_t t)
{
    int64_t offset = exec->plan->grad_offsets[t];
    if (offset < 0)
        return NULL;
    offset += sl_exec_get_shift(exec, &exec->graph->tensors[t]);
    return (float *)(void *)(exec->places[p].activations + offset);
}

int64_t sl_exec_get_bytes(const struct sl_exec *exec, int32_t t)
{
    const struct sl_tensor *tensor = &exec->graph->tensors[t];
    int64_t rows = tensor->axis == SL_AXIS_FREE || tensor->role == SL_TENSOR_STATE_IN
                       ? sl_graph_get_rows(exec->graph, tensor)
                       : sl_exec_get_rows(exec, tensor->axis);
    return rows * tensor->features * sl_dtype_bytes(tensor->dtype);
}

static int32_t find_source(uint8_t valid)
{
    int32_t place = 0;
    while (!(valid >> place & 1))
        place++;
    return place;
}

seqlstm_status sl_exec_provide(struct sl_exec *exec, int32_t p, int32_t t, void **out_tensor, struct seqlstm_error *err)
{
    const struct sl_tensor *tensor = &exec->graph->tensors[t];
    if (tensor->role == SL_TENSOR_PARAM) {
        const struct sl_param_view *view = &exec->params->views[tensor->owner];
        float *values;
        SEQLSTM_TRY(sl_exec_provide_part(exec, p, SL_PART_VALUES, view->offset_elems, view->elems, &values, err));
        *out_tensor = values;
        return SEQLSTM_OK;
    }
    *out_tensor = sl_exec_at(exec, p, t);
    uint8_t valid = exec->valid[t];
    if (*out_tensor == NULL || valid == 0 || (valid >> p & 1))
        return SEQLSTM_OK;
    int32_t from = find_source(valid);
    SEQLSTM_TRY(sl_params_move(exec->params, from, p, sl_exec_at(exec, from, t), sl_exec_at(exec, SL_PLACE_HOST, t),
                               *out_tensor, sl_exec_get_bytes(exec, t), err));
    exec->valid[t] |= sl_params_get_moved(exec->params, from, p);
    return SEQLSTM_OK;
}

seqlstm_status sl_exec_provide_grad(struct sl_exec *exec, int32_t p, int32_t t, float **out_grad,
                                    struct seqlstm_error *err)
{
    uint8_t valid = exec->grad_valid[t];
    *out_grad = sl_exec_grad_at(exec, p, t);
    if (*out_grad == NULL || valid == 0 || (valid >> p & 1))
        return SEQLSTM_OK;
    int32_t from = find_source(valid);
    SEQLSTM_TRY(sl_params_move(exec->params, from, p, sl_exec_grad_at(exec, from, t),
                               sl_exec_grad_at(exec, SL_PLACE_HOST, t), *out_grad, sl_exec_get_bytes(exec, t), err));
    exec->grad_valid[t] |= sl_params_get_moved(exec->params, from, p);
    return SEQLSTM_OK;
}

void sl_exec_note_written(struct sl_exec *exec, int32_t place, int32_t t)
{
    exec->valid[t] = (uint8_t)(1u << place);
}
