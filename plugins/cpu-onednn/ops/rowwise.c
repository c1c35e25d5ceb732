/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of rows: their primitives, their memory, and how they run. */
#include "cpu-onednn/ops/rowwise.h"

#include <string.h>

enum { IDLE_MOST = 16 }; /* primitives that an operation keeps for later bindings */

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

static seqlstm_status measure(struct seqlstm_op *op, const struct odn_rowwise_rules *rules, struct seqlstm_error *err)
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

/* ---- the cache ------------------------------------------------------------------------------------------- */

static void destroy_calls(const struct seqlstm_op *op, struct odn_row_calls *own)
{
    for (int32_t i = 0; i < ODN_ROWWISE_PRIMITIVES; i++) {
        odn_call_deinit(&own->calls[i]);
        if (own->primitive[i] != NULL)
            odn.primitive_destroy(own->primitive[i]);
    }
    host_release(op->instance->host, own);
}

static dnnl_status_t create_primitives(const struct seqlstm_op *op, const struct odn_rowwise_rules *rules,
                                       struct odn_row_calls *own, dnnl_primitive_desc_t pd[ODN_ROWWISE_PRIMITIVES])
{
    for (int32_t i = 0; i < primitives_of(op, rules); i++) {
        dnnl_status_t status = rules->describe(op, i, own->rows, pd[0], &pd[i]);
        if (status == dnnl_success)
            status = odn.primitive_create(&own->primitive[i], pd[i]);
        if (status != dnnl_success)
            return status;
        const uint64_t bytes = odn_argument_bytes(pd[i], DNNL_ARG_SCRATCHPAD);
        own->scratch_bytes = bytes > own->scratch_bytes ? bytes : own->scratch_bytes;
    }
    return dnnl_success;
}

static seqlstm_status create_calls(const struct seqlstm_op *op, const struct odn_rowwise_rules *rules, int64_t rows,
                                   int32_t threads, struct odn_row_calls **out_own, struct seqlstm_error *err)
{
    dnnl_primitive_desc_t pd[ODN_ROWWISE_PRIMITIVES] = {NULL, NULL, NULL};
    struct odn_row_calls *own = host_allocate(op->instance->host, sizeof *own);
    if (own == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the primitives of a binding");
    own->rows = rows;
    own->threads = threads;
    const int before = odn_threads_set(threads);
    seqlstm_status status = odn_check(create_primitives(op, rules, own, pd), "a primitive", err);
    odn_threads_set(before);
    for (int32_t i = 0; i < primitives_of(op, rules) && status == SEQLSTM_OK; i++)
        status = odn_call_init(&own->calls[i], op->instance->engine, pd[i], own->primitive[i], err);
    destroy_descriptions(pd);
    if (status != SEQLSTM_OK)
        destroy_calls(op, own);
    else
        *out_own = own;
    return status;
}

/* NULL: none is idle. */
static struct odn_row_calls *take_idle(struct odn_row_cache *cache, int64_t rows, int32_t threads)
{
    pthread_mutex_lock(&cache->lock);
    struct odn_row_calls **at = &cache->idle;
    while (*at != NULL && !((*at)->rows == rows && (*at)->threads == threads))
        at = &(*at)->next;
    struct odn_row_calls *own = *at;
    if (own != NULL)
        *at = own->next;
    pthread_mutex_unlock(&cache->lock);
    for (int32_t i = 0; own != NULL && i < ODN_ROWWISE_PRIMITIVES; i++)
        odn_call_forget(&own->calls[i]);
    return own;
}

/* Destroys those that were used longest ago if there are too many. */
static void leave_idle(const struct seqlstm_op *op, struct odn_row_calls *own)
{
    struct odn_row_cache *cache = op->row_cache;
    pthread_mutex_lock(&cache->lock);
    own->next = cache->idle;
    cache->idle = own;
    struct odn_row_calls **at = &cache->idle;
    for (int32_t k = 0; k < IDLE_MOST && *at != NULL; k++)
        at = &(*at)->next;
    struct odn_row_calls *over = *at;
    *at = NULL;
    pthread_mutex_unlock(&cache->lock);
    if (over != NULL)
        destroy_calls(op, over);
}

seqlstm_status odn_rowwise_create(struct seqlstm_op *op, const struct odn_rowwise_rules *rules,
                                  struct seqlstm_error *err)
{
    op->row_cache = host_allocate(op->instance->host, sizeof *op->row_cache);
    if (op->row_cache == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for an operation");
    pthread_mutex_init(&op->row_cache->lock, NULL);
    return measure(op, rules, err);
}

void odn_rowwise_destroy(struct seqlstm_op *op)
{
    struct odn_row_cache *cache = op->row_cache;
    if (cache == NULL)
        return;
    while (cache->idle != NULL) {
        struct odn_row_calls *own = cache->idle;
        cache->idle = own->next;
        destroy_calls(op, own);
    }
    pthread_mutex_destroy(&cache->lock);
    host_release(op->instance->host, cache);
}

/* ---- bindings -------------------------------------------------------------------------------------------- */

static seqlstm_status bind_part(const struct seqlstm_op *op, const struct odn_rowwise_rules *rules, int32_t threads,
                                bool only_idle, struct odn_part *part, struct seqlstm_error *err)
{
    part->own = take_idle(op->row_cache, part->end - part->begin, threads);
    if (part->own != NULL)
        return SEQLSTM_OK;
    if (only_idle)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "no idle primitives are for %lld rows",
                     (long long)(part->end - part->begin));
    return create_calls(op, rules, part->end - part->begin, threads, &part->own, err);
}

/* Cuts the rows into parts, and gives each its primitives. */
static seqlstm_status bind_parts(struct seqlstm_binding *binding, const struct odn_rowwise_rules *rules, bool only_idle,
                                 struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    struct odn_rowwise *w = binding->rowwise;
    const int64_t rows = binding->bind.rows;
    uint64_t end = 0;
    w->count = rows < w->most ? (int32_t)rows : w->most;
    for (int32_t p = 0; p < w->count; p++) {
        struct odn_part *part = &w->parts[p];
        part->begin = rows * p / w->count;
        part->end = rows * (p + 1) / w->count;
        SEQLSTM_TRY(bind_part(op, rules, w->threads, only_idle, part, err));
        part->scratch = odn_take(&end, part->own->scratch_bytes);
        part->grads = odn_take(&end, op->training ? rules->grad_bytes(op) : 0);
    }
    if (end > op->sizes.workspace_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL, "a batch needs %llu bytes of workspace, beyond the bound of %llu",
                     (unsigned long long)end, (unsigned long long)op->sizes.workspace_bytes);
    return SEQLSTM_OK;
}

static void release_parts(const struct seqlstm_op *op, struct odn_rowwise *w)
{
    for (int32_t p = 0; w->parts != NULL && p < w->count; p++) {
        if (w->parts[p].own != NULL)
            leave_idle(op, w->parts[p].own);
        w->parts[p].own = NULL;
    }
}

seqlstm_status odn_rowwise_bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                const struct odn_rowwise_rules *rules, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    const int32_t most = op->instance->members_max;
    const int32_t members = queue->members < most ? queue->members : most;
    struct odn_rowwise *w = host_allocate(op->instance->host, sizeof *w);
    if (w == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a binding");
    binding->rowwise = w;
    w->most = op->exclusive ? 1 : members;
    w->threads = op->exclusive ? members : 1;
    w->parts = host_allocate(op->instance->host, (uint64_t)w->most * sizeof *w->parts);
    if (w->parts == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the parts of a batch");
    return bind_parts(binding, rules, false, err);
}

/* As with recurrent layers, the first binding with a number of rows is a new one, which leaves its primitives. */
seqlstm_status odn_rowwise_rebind(struct seqlstm_binding *binding, const struct odn_rowwise_rules *rules,
                                  struct seqlstm_error *err)
{
    release_parts(binding->op, binding->rowwise);
    return bind_parts(binding, rules, true, err);
}

void odn_rowwise_unbind(struct seqlstm_binding *binding)
{
    struct odn_rowwise *w = binding->rowwise;
    const struct seqlstm_host *host = binding->op->instance->host;
    if (w == NULL)
        return;
    release_parts(binding->op, w);
    host_release(host, w->parts);
    host_release(host, w);
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

static void run_range(void *argument, int64_t begin, int64_t end)
{
    struct odn_rowwise_call *call = argument;
    struct odn_rowwise *w = call->binding->rowwise;
    const int before = odn_threads_set(w->threads);
    for (int64_t p = begin; p < end; p++) {
        struct odn_part *part = &w->parts[p];
        for (int32_t i = 0; i < ODN_ROWWISE_PRIMITIVES; i++)
            odn_call_set(&part->own->calls[i], DNNL_ARG_SCRATCHPAD, odn_at(call->workspace, part->scratch));
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
