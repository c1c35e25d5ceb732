/* SPDX-License-Identifier: Apache-2.0 */
/* One shape under each plan of the operation: its sessions and places, and which plan runs it. */
#include <string.h>

#include "plugin.h"

static seqlstm_status check_bind(const struct seqlstm_op *op, const struct seqlstm_bind *bind,
                                 struct seqlstm_error *err)
{
    const struct seqlstm_desc *head = &op->desc.head;
    const struct seqlstm_axis *axis = bind->axis;
    if (axis == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a recurrent layer needs an axis");
    if (bind->t0 < 0 || bind->t0 >= bind->t1 || bind->t1 > axis->steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the segment [%lld, %lld) is not inside the axis [0, %lld)",
                     (long long)bind->t0, (long long)bind->t1, (long long)axis->steps);
    if (cdn_directions(&op->desc) == 2 && (bind->t0 > 0 || bind->t1 < axis->steps))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the segment [%lld, %lld): two directions need the whole axis [0, %lld)", (long long)bind->t0,
                     (long long)bind->t1, (long long)axis->steps);
    const int64_t rows = axis->row_offsets[bind->t1] - axis->row_offsets[bind->t0];
    if (rows != bind->rows || rows > head->max_rows || axis->batch_sizes[bind->t0] > head->max_sequences ||
        bind->t1 - bind->t0 > head->max_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "rows, sequences and steps: %lld, %d and %lld; the descriptor allows %lld, %lld and %lld",
                     (long long)bind->rows, (int)axis->batch_sizes[bind->t0], (long long)(bind->t1 - bind->t0),
                     (long long)head->max_rows, (long long)head->max_sequences, (long long)head->max_steps);
    return SEQLSTM_OK;
}

/* Reads the segment of the axis; `lengths` lies behind the binding, with room for the most sequences. */
static void read_shape(const struct seqlstm_bind *bind, struct cdn_shape *shape)
{
    const struct seqlstm_axis *axis = bind->axis;
    shape->steps = (int32_t)(bind->t1 - bind->t0);
    shape->sequences = axis->batch_sizes[bind->t0];
    shape->rows = bind->rows;
    shape->uniform = shape->rows == (int64_t)shape->steps * shape->sequences;
    for (int32_t b = 0; b < shape->sequences; b++) {
        const int64_t end = axis->lengths[b] < bind->t1 ? axis->lengths[b] : bind->t1;
        shape->lengths[b] = (int32_t)(end - bind->t0);
    }
}

typedef seqlstm_status describe_fn(struct cdn_session *session, const struct seqlstm_op *op,
                                   const struct cdn_plan *plan, const struct cdn_net *net,
                                   const struct cdn_shape *shape, struct cdn_handle *handle, struct seqlstm_error *err);

static seqlstm_status open_run(struct seqlstm_binding *b, int32_t index, describe_fn *describe,
                               struct seqlstm_error *err)
{
    const struct cdn_plan *plan = &b->op->plans[index];
    struct cdn_run *run = &b->runs[index];
    run->usable = false;
    for (int32_t k = 0; k < plan->count; k++)
        SEQLSTM_TRY(describe(&run->sessions[k], b->op, plan, &plan->nets[k], &b->shape, b->handle, err));
    cdn_places_make(&run->places, &b->op->desc, plan, b->shape.rows, b->shape.sequences, run->sessions);
    if (run->places.reserve_bytes > b->op->reserve_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED,
                     "cuDNN needs %llu bytes of reserve for this batch, but only %llu for the largest",
                     (unsigned long long)run->places.reserve_bytes, (unsigned long long)b->op->reserve_bytes);
    run->usable = true;
    return SEQLSTM_OK;
}

/* *out_workspace: the bytes that cuDNN needs under any plan. `every`: no plan may refuse the shape; otherwise those
 * that do are left out. */
static seqlstm_status open_runs(struct seqlstm_binding *b, describe_fn *describe, bool every, uint64_t *out_workspace,
                                struct seqlstm_error *err)
{
    const struct seqlstm_op *op = b->op;
    *out_workspace = 0;
    b->active = -1;
    for (int32_t p = 0; p < op->plan_count; p++) {
        const seqlstm_status status = open_run(b, p, describe, err);
        const bool last = p + 1 == op->plan_count, needed = every || (last && (op->mixed || b->active < 0));
        if (status != SEQLSTM_OK && (status != SEQLSTM_UNSUPPORTED || needed))
            return status;
        if (status == SEQLSTM_OK && b->active < 0)
            b->active = p;
        if (op->mixed && p == 1 && b->active == 0 && cdn_pair_check_sizes(b, NULL) != SEQLSTM_OK)
            b->active = 1;
        if (status == SEQLSTM_OK && b->runs[p].places.workspace_bytes > *out_workspace)
            *out_workspace = b->runs[p].places.workspace_bytes;
    }
    return SEQLSTM_OK;
}

static seqlstm_status open_all(struct seqlstm_binding *b, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = b->op;
    uint64_t workspace;
    SEQLSTM_TRY(open_runs(b, cdn_session_open, false, &workspace, err));
    if (workspace <= op->workspace_bytes)
        return SEQLSTM_OK;
    b->own_workspace_bytes = workspace;
    return gpu_allocate(op->ordinal, SEQLSTM_MEMORY_DEVICE, workspace, &b->own_workspace, err);
}

seqlstm_status cdn_binding_create(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                  const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                  struct seqlstm_error *err)
{
    const struct seqlstm_host *host = &op->instance->domain.host;
    size_t sessions = 0;
    SEQLSTM_TRY(check_bind(op, bind, err));
    const size_t lengths_bytes = cdn_align((uint64_t)op->desc.head.max_sequences * sizeof(int32_t));
    for (int32_t p = 0; p < op->plan_count; p++)
        sessions += (size_t)op->plans[p].count;
    const size_t bytes =
        cdn_align(sizeof(struct seqlstm_binding)) + lengths_bytes + sessions * sizeof(struct cdn_session);
    struct seqlstm_binding *b = host->allocate(host->context, bytes);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding of cuda-cudnn");
    memset(b, 0, bytes);
    b->op = op;
    b->shape.lengths = (int32_t *)(void *)((unsigned char *)b + cdn_align(sizeof *b));
    struct cdn_session *next = (struct cdn_session *)(void *)((unsigned char *)b->shape.lengths + lengths_bytes);
    for (int32_t p = 0; p < op->plan_count; p++) {
        b->runs[p].sessions = next;
        next += op->plans[p].count;
    }
    read_shape(bind, &b->shape);
    seqlstm_status status =
        cdn_handles_acquire(&op->instance->handles, op->ordinal, queue->native_stream, &b->handle, err);
    if (status == SEQLSTM_OK)
        status = open_all(b, err);
    if (status != SEQLSTM_OK) {
        cdn_binding_destroy(b);
        return status;
    }
    *out_binding = b;
    return SEQLSTM_OK;
}

seqlstm_status cdn_binding_renew(struct seqlstm_binding *b, const struct seqlstm_bind *bind, struct seqlstm_error *err)
{
    uint64_t workspace;
    SEQLSTM_TRY(check_bind(b->op, bind, err));
    for (int32_t p = 0; p < b->op->plan_count; p++)
        if (!b->runs[p].usable)
            SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "the binding lacks descriptors, since cuDNN refused its shape");
    read_shape(bind, &b->shape);
    SEQLSTM_TRY(open_runs(b, cdn_session_renew, true, &workspace, err)); /* a new binding may compile, or leave out */
    if (workspace > b->op->workspace_bytes && workspace > b->own_workspace_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cuDNN needs %llu bytes of workspace for this shape",
                     (unsigned long long)workspace);
    return SEQLSTM_OK;
}

void cdn_binding_destroy(struct seqlstm_binding *binding)
{
    if (binding == NULL)
        return;
    const struct seqlstm_op *op = binding->op;
    const struct seqlstm_host *host = &op->instance->domain.host;
    for (int32_t p = 0; p < op->plan_count; p++)
        for (int32_t k = 0; k < op->plans[p].count; k++)
            cdn_session_close(&binding->runs[p].sessions[k]);
    gpu_release(op->ordinal, SEQLSTM_MEMORY_DEVICE, binding->own_workspace);
    cdn_handles_release(&op->instance->handles, binding->handle);
    host->release(host->context, binding);
}
