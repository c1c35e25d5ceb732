/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of rows: their primitives, their memory, and how they run. */
#include "cpu-onednn/ops/rowwise.h"

#include <string.h>

static int32_t primitives_of(const struct seqlstm_op *op, const struct odn_rowwise_rules *rules)
{
    return op->training ? rules->primitives : 1;
}

static void destroy_descriptions(dnnl_primitive_desc_t *pd)
{
    for (int32_t i = 0; i < ODN_ROWWISE_PRIMITIVES; i++)
        if (pd[i] != NULL)
            odn.primitive_desc_destroy(pd[i]);
}

/* The scratch of a part with this many rows. */
static dnnl_status_t probe(const struct seqlstm_op *op, const struct odn_rowwise_rules *rules, int64_t rows,
                           uint64_t *most)
{
    dnnl_primitive_desc_t pd[ODN_ROWWISE_PRIMITIVES] = {NULL, NULL, NULL};
    dnnl_status_t status = dnnl_success;
    for (int32_t i = 0; i < primitives_of(op, rules) && status == dnnl_success; i++) {
        status = rules->describe(op, i, rows, pd[0], &pd[i]);
        const uint64_t bytes = status == dnnl_success ? odn_argument_bytes(pd[i], DNNL_ARG_SCRATCHPAD) : 0;
        *most = bytes > *most ? bytes : *most;
    }
    destroy_descriptions(pd);
    return status;
}

seqlstm_status odn_rowwise_measure(struct seqlstm_op *op, const struct odn_rowwise_rules *rules,
                                   struct seqlstm_error *err)
{
    const int64_t rows = op->desc.head.max_rows;
    const int32_t members = op->exclusive ? 1 : op->instance->members_max;
    const int32_t slices = rows < members ? (int32_t)rows : members;
    uint64_t most = 0;
    const int before = odn_threads_set(op->exclusive ? op->instance->members_max : 1);
    dnnl_status_t status = probe(op, rules, rows, &most);
    for (int64_t n = 1; n < rows && status == dnnl_success; n *= 2)
        status = probe(op, rules, n, &most);
    odn_threads_set(before);
    if (status == dnnl_out_of_memory)
        return odn_check(status, "a primitive", err);
    if (status != dnnl_success)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "oneDNN %s refuses this operation with status %d", odn_library_version(),
                     (int)status);
    const uint64_t grads = op->training ? align_bytes(rules->grad_bytes(op)) : 0;
    op->sizes.workspace_bytes += (uint64_t)slices * (align_bytes(most) + grads);
    return SEQLSTM_OK;
}

static seqlstm_status bind_part(struct seqlstm_binding *binding, struct odn_part *part,
                                const struct odn_rowwise_rules *rules, uint64_t *end, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    uint64_t scratch = 0;
    for (int32_t i = 0; i < primitives_of(op, rules); i++) {
        dnnl_status_t status = rules->describe(op, i, part->end - part->begin, part->pd[0], &part->pd[i]);
        if (status == dnnl_success)
            status = odn.primitive_create(&part->primitive[i], part->pd[i]);
        SEQLSTM_TRY(odn_check(status, "a primitive", err));
        SEQLSTM_TRY(odn_call_init(&part->calls[i], op->instance->engine, part->pd[i], part->primitive[i], err));
        const uint64_t bytes = odn_argument_bytes(part->pd[i], DNNL_ARG_SCRATCHPAD);
        scratch = bytes > scratch ? bytes : scratch;
    }
    part->scratch = odn_take(end, scratch);
    part->grads = odn_take(end, op->training ? rules->grad_bytes(op) : 0);
    return SEQLSTM_OK;
}

seqlstm_status odn_rowwise_bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                const struct odn_rowwise_rules *rules, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    const int64_t rows = binding->bind.rows;
    const int32_t most = op->instance->members_max;
    const int32_t members = queue->members < most ? queue->members : most;
    struct odn_rowwise *w = host_allocate(op->instance->host, sizeof *w);
    if (w == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding");
    binding->rowwise = w;
    const int32_t slices = op->exclusive ? 1 : members;
    const int32_t count = rows < slices ? (int32_t)rows : slices;
    w->threads = op->exclusive ? members : 1;
    w->parts = host_allocate(op->instance->host, (uint64_t)(count + 1) * sizeof *w->parts);
    if (w->parts == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parts of a batch");
    uint64_t end = 0;
    seqlstm_status status = SEQLSTM_OK;
    const int before = odn_threads_set(w->threads);
    for (; w->count < count && status == SEQLSTM_OK; w->count++) {
        struct odn_part *part = &w->parts[w->count];
        part->begin = rows * w->count / count;
        part->end = rows * (w->count + 1) / count;
        status = bind_part(binding, part, rules, &end, err);
    }
    odn_threads_set(before);
    if (status == SEQLSTM_OK && end > op->sizes.workspace_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "a batch needs %llu bytes of workspace, beyond the bound of %llu",
                     (unsigned long long)end, (unsigned long long)op->sizes.workspace_bytes);
    return status;
}

void odn_rowwise_unbind(struct seqlstm_binding *binding)
{
    struct odn_rowwise *w = binding->rowwise;
    const struct seqlstm_host *host = binding->op->instance->host;
    if (w == NULL)
        return;
    for (int32_t p = 0; w->parts != NULL && p < w->count; p++) {
        for (int32_t i = 0; i < ODN_ROWWISE_PRIMITIVES; i++) {
            odn_call_deinit(&w->parts[p].calls[i]);
            if (w->parts[p].primitive[i] != NULL)
                odn.primitive_destroy(w->parts[p].primitive[i]);
        }
        destroy_descriptions(w->parts[p].pd);
    }
    host_release(host, w->parts);
    host_release(host, w);
}

static void run_range(void *argument, int64_t begin, int64_t end)
{
    struct odn_rowwise_call *call = argument;
    struct odn_rowwise *w = call->binding->rowwise;
    const int before = odn_threads_set(w->threads);
    for (int64_t p = begin; p < end; p++) {
        struct odn_part *part = &w->parts[p];
        for (int32_t i = 0; i < ODN_ROWWISE_PRIMITIVES; i++)
            odn_call_set(&part->calls[i], DNNL_ARG_SCRATCHPAD, odn_at(call->workspace, part->scratch));
        const dnnl_status_t status = call->run(call, part);
        if (status != dnnl_success)
            call->failed = (int32_t)status;
    }
    odn_threads_set(before);
}

seqlstm_status odn_rowwise_run(struct odn_rowwise_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_queue_services *services = call->queue->services;
    const int32_t count = call->binding->rowwise->count;
    if (call->binding->op->exclusive) {
        services->lease_begin(call->queue);
        run_range(call, 0, count);
        services->lease_end(call->queue);
    } else {
        services->parallel_for(call->queue, count, 1, run_range, call);
    }
    return odn_check((dnnl_status_t)call->failed, "the execution of a primitive", err);
}

void odn_rowwise_clear(struct odn_rowwise_call *call, int slot, int64_t width)
{
    float *dx = call->grads[slot];
    call->no_gradient = true;
    if ((call->parts & SEQLSTM_BIT_BACKWARD_INPUTS) != 0 && dx != NULL)
        memset(dx, 0, (size_t)(call->binding->bind.rows * width) * sizeof *dx);
}

struct reduction {
    struct odn_rowwise_call *call;
    uint64_t place;
    float *ours;
};

static void reduce_range(void *argument, int64_t begin, int64_t end)
{
    const struct reduction *r = argument;
    const struct odn_rowwise *w = r->call->binding->rowwise;
    const bool accumulate = (r->call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) != 0;
    for (int64_t i = begin; i < end && !accumulate; i++)
        r->ours[i] = 0.0f;
    for (int32_t p = 0; p < w->count && !r->call->no_gradient; p++) {
        const float *from = odn_at(r->call->workspace, w->parts[p].grads + r->place);
        for (int64_t i = begin; i < end; i++)
            r->ours[i] += from[i];
    }
}

void odn_rowwise_reduce(struct odn_rowwise_call *call, uint64_t place, int64_t count, float *ours)
{
    struct reduction reduction = {call, place, ours};
    if (ours != NULL && (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) != 0)
        call->queue->services->parallel_for(call->queue, count, 16384, reduce_range, &reduction);
}
