/* SPDX-License-Identifier: Apache-2.0 */
/* Flat operations of training, axpy and the like, on the backend that the plan chose. */
#include "exec/update/vectors.h"

#include <stdlib.h>
#include <string.h>

#include "dispatch/plan/blame.h"
#include "exec/place/place.h"
#include "registry/plugin.h"

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

static struct seqlstm_queue *get_queue(struct sl_exec *exec, int32_t v)
{
    return &exec->places[exec->vector_places[v]].domain->queue.queue;
}

static seqlstm_status create_binding(struct sl_exec *exec, int32_t v, int64_t elems, struct sl_exec_vector_binding *out,
                                     struct seqlstm_error *err)
{
    const struct sl_vector_call *call = &exec->plan->vectors[v];
    struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = elems, .rows_in = elems};
    *out = (struct sl_exec_vector_binding){.v = v, .elems = elems};
    seqlstm_status status =
        sl_plugin_bind(sl_backend_get_table(call->backend), call->op, get_queue(exec, v), &bind, &out->binding, err);
    return status == SEQLSTM_OK ? status : sl_plan_blame_vector(call, SL_FUNCTION_OP_BIND, status, err);
}

/* Bindings of a capture live as long as the capture. */
static seqlstm_status bind_captured(struct sl_exec *exec, int32_t v, int64_t elems,
                                    struct seqlstm_binding **out_binding, struct seqlstm_error *err)
{
    struct sl_exec_capture *capture = exec->capturing;
    int32_t k = 0;
    while (k < capture->vector_count && (capture->vectors[k].v != v || capture->vectors[k].elems != elems))
        k++;
    if (k == capture->vector_count) {
        struct sl_exec_vector_binding *more = realloc(capture->vectors, ((size_t)k + 1) * sizeof *more);
        if (more == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the capture of a step");
        capture->vectors = more;
        SEQLSTM_TRY(create_binding(exec, v, elems, &more[k], err));
        capture->vector_count++;
    }
    *out_binding = capture->vectors[k].binding;
    return SEQLSTM_OK;
}

void sl_exec_release_vectors(struct sl_exec *exec, struct sl_exec_capture *capture)
{
    for (int32_t k = 0; k < capture->vector_count; k++)
        sl_plugin_destroy_binding(sl_backend_get_table(exec->plan->vectors[capture->vectors[k].v].backend),
                                  capture->vectors[k].binding);
    free(capture->vectors);
    capture->vectors = NULL;
    capture->vector_count = 0;
}

/* So many are always kept. More are, while a device may not have done what was started with them: it is never as many
 * runs behind as a ring has marks. */
enum { BINDINGS_LEAST = 8 };

/* The place of the binding for `elems`, or of one that may be replaced, or a new one; -1: no memory. */
static int32_t find_place(struct sl_exec *exec, struct sl_exec_vector_bindings *bindings, int64_t elems)
{
    const int32_t last = bindings->count - 1;
    for (int32_t k = 0; k <= last; k++)
        if (bindings->kept[k].elems == elems)
            return k;
    if (bindings->count >= BINDINGS_LEAST && bindings->kept[last].last_run + SL_EXEC_MARKS <= exec->runs)
        return last;
    struct sl_exec_vector_binding *more =
        realloc(bindings->kept, ((size_t)bindings->count + 1) * sizeof *bindings->kept);
    if (more == NULL)
        return -1;
    more[bindings->count] = (struct sl_exec_vector_binding){.binding = NULL};
    bindings->kept = more;
    return bindings->count++;
}

static seqlstm_status bind_vector(struct sl_exec *exec, int32_t v, int64_t elems, struct seqlstm_binding **out_binding,
                                  struct seqlstm_error *err)
{
    struct sl_exec_vector_bindings *bindings = &exec->vectors[v];
    const int32_t k = find_place(exec, bindings, elems);
    if (k < 0)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the sums of a step");
    struct sl_exec_vector_binding found = bindings->kept[k];
    if (found.binding == NULL || found.elems != elems) {
        SEQLSTM_TRY(create_binding(exec, v, elems, &found, err));
        if (bindings->kept[k].binding)
            sl_plugin_destroy_binding(sl_backend_get_table(exec->plan->vectors[v].backend), bindings->kept[k].binding);
    }
    found.last_run = exec->runs;
    memmove(bindings->kept + 1, bindings->kept, (size_t)k * sizeof found);
    bindings->kept[0] = found;
    *out_binding = found.binding;
    return SEQLSTM_OK;
}

void sl_exec_unbind_vectors(struct sl_exec *exec)
{
    for (int32_t v = 0; exec->vectors && v < exec->plan->vector_count; v++) {
        for (int32_t k = 0; k < exec->vectors[v].count; k++)
            if (exec->vectors[v].kept[k].binding)
                sl_plugin_destroy_binding(sl_backend_get_table(exec->plan->vectors[v].backend),
                                          exec->vectors[v].kept[k].binding);
        free(exec->vectors[v].kept);
    }
}

struct sl_call_time sl_exec_begin_vector(struct sl_exec *exec, int32_t v)
{
    return sl_call_time_begin(exec->places[exec->vector_places[v]].domain, SL_ACTIVITY_OPTIMIZER,
                              sl_op_name(exec->plan->vectors[v].desc->head.op));
}

void sl_exec_end_vector(struct sl_exec *exec, int32_t v, const struct sl_call_time *time, int64_t elems)
{
    const struct sl_vector_call *call = &exec->plan->vectors[v];
    sl_call_time_end(time, exec->places[exec->vector_places[v]].domain, SL_ACTIVITY_OPTIMIZER,
                     sl_op_name(call->desc->head.op), sl_backend_get_table(call->backend)->id, elems);
}

seqlstm_status sl_exec_run_vector_part(struct sl_exec *exec, int32_t v, void *const *slots, uint32_t slot_count,
                                       int64_t elems, struct seqlstm_error *err)
{
    struct seqlstm_binding *binding = NULL;
    SEQLSTM_TRY(sl_exec_is_recording(exec) ? bind_captured(exec, v, elems, &binding, err)
                                           : bind_vector(exec, v, elems, &binding, err));
    const struct sl_vector_call *call = &exec->plan->vectors[v];
    struct seqlstm_step step = exec->step;
    if (!exec->capturing) /* only in a frame is it known to be in the operation's place */
        step.device = NULL;
    struct seqlstm_forward args = {
        .struct_size = sizeof args,
        .slot_count = slot_count,
        .slots = slots,
        .workspace = call->sizes.workspace_bytes ? exec->places[exec->vector_places[v]].workspace : NULL,
        .step = &step,
    };
    const struct seqlstm_backend *table = sl_backend_get_table(call->backend);
    const seqlstm_status status = sl_plugin_forward(table, binding, get_queue(exec, v), &args, err);
    return status == SEQLSTM_OK ? status : sl_plan_blame_vector(call, SL_FUNCTION_FORWARD, status, err);
}

seqlstm_status sl_exec_run_vector(struct sl_exec *exec, int32_t v, void *const *slots, uint32_t slot_count,
                                  int64_t elems, struct seqlstm_error *err)
{
    const struct sl_call_time time = sl_exec_begin_vector(exec, v);
    const seqlstm_status status = sl_exec_run_vector_part(exec, v, slots, slot_count, elems, err);
    sl_exec_end_vector(exec, v, &time, elems);
    return status;
}

seqlstm_status sl_exec_find_vector(const struct sl_exec *exec, uint32_t op, uint32_t kind, int32_t *out_v,
                                   struct seqlstm_error *err)
{
    *out_v = find_vector(exec, op, kind);
    if (*out_v < 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the plan has no %s: it is not one of training", sl_op_name(op));
    return SEQLSTM_OK;
}

/* An operand of a flat operation: a range of a parameter buffer, or any other host buffer, which is staged. */
struct operand {
    float *host;
    int64_t elems;
    bool is_part;
    enum sl_param_part part;
    int64_t begin;
};

static struct operand find_operand(const struct sl_exec *exec, const float *pointer, int64_t elems)
{
    struct operand operand = {.host = (float *)pointer, .elems = elems};
    operand.is_part = sl_params_find_part(exec->params, pointer, &operand.part, &operand.begin);
    return operand;
}

/* The address of the operand in place p, with its newest contents. `which`: 0 or 1, the buffer to stage it in. */
static seqlstm_status take(struct sl_exec *exec, int32_t p, const struct operand *operand, int which, void **out,
                           struct seqlstm_error *err)
{
    struct sl_exec_place *place = &exec->places[p];
    int64_t bytes = operand->elems * (int64_t)sizeof(float);
    if (operand->is_part) {
        float *elems;
        SEQLSTM_TRY(sl_exec_provide_part(exec, p, operand->part, operand->begin, operand->elems, &elems, err));
        *out = elems;
        return SEQLSTM_OK;
    }
    *out = operand->host;
    if (p == SL_PLACE_HOST)
        return SEQLSTM_OK;
    if (place->staged_bytes[which] < bytes) {
        sl_domain_release(place->domain, place->staged[which]);
        place->staged[which] = NULL;
        place->staged_bytes[which] = 0;
        SEQLSTM_TRY(sl_exec_allocate(exec, place, bytes, &place->staged[which], err));
        place->staged_bytes[which] = bytes;
    }
    *out = place->staged[which];
    return sl_domain_upload(place->domain, *out, operand->host, bytes, err);
}

/* After the operand has been written in place p. */
static seqlstm_status leave(struct sl_exec *exec, int32_t p, const struct operand *operand, void *written,
                            struct seqlstm_error *err)
{
    if (operand->is_part)
        sl_params_note_written(exec->params, p, operand->part, operand->begin, operand->elems);
    else if (p != SL_PLACE_HOST)
        return sl_domain_download(exec->places[p].domain, operand->host, written,
                                  operand->elems * (int64_t)sizeof(float), err);
    return SEQLSTM_OK;
}

int32_t sl_exec_get_vector_place(const struct sl_exec *exec, uint32_t op, uint32_t kind)
{
    int32_t v = find_vector(exec, op, kind);
    return v < 0 ? SL_PLACE_HOST : exec->vector_places[v];
}

seqlstm_status sl_exec_add(struct sl_exec *exec, float *y, const float *x, int64_t elems, struct seqlstm_error *err)
{
    int32_t v;
    SEQLSTM_TRY(sl_exec_find_vector(exec, SEQLSTM_OP_VECTOR, SEQLSTM_KIND_VECTOR_AXPY, &v, err));
    void *slots[SEQLSTM_SLOT_VECTOR_COUNT] = {[SEQLSTM_SLOT_VECTOR_Y] = y, [SEQLSTM_SLOT_VECTOR_X] = (void *)x};
    exec->step.alpha = 1.0f;
    return elems > 0 ? sl_exec_run_vector(exec, v, slots, SEQLSTM_SLOT_VECTOR_COUNT, elems, err) : SEQLSTM_OK;
}

seqlstm_status sl_exec_vector(struct sl_exec *exec, uint32_t kind, float *y, const float *x, int64_t elems, float alpha,
                              struct seqlstm_error *err)
{
    int32_t v;
    SEQLSTM_TRY(sl_exec_find_vector(exec, SEQLSTM_OP_VECTOR, kind, &v, err));
    if (elems <= 0)
        return SEQLSTM_OK;
    int32_t place = exec->vector_places[v];
    struct operand operands[2] = {find_operand(exec, y, elems), {0}};
    void *slots[SEQLSTM_SLOT_VECTOR_COUNT] = {NULL};
    SEQLSTM_TRY(take(exec, place, &operands[0], 0, &slots[SEQLSTM_SLOT_VECTOR_Y], err));
    if (x) {
        operands[1] = find_operand(exec, x, elems);
        SEQLSTM_TRY(take(exec, place, &operands[1], 1, &slots[SEQLSTM_SLOT_VECTOR_X], err));
    }
    exec->step.alpha = alpha;
    SEQLSTM_TRY(sl_exec_run_vector(exec, v, slots, SEQLSTM_SLOT_VECTOR_COUNT, elems, err));
    return leave(exec, place, &operands[0], slots[SEQLSTM_SLOT_VECTOR_Y], err);
}
