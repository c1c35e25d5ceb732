/* SPDX-License-Identifier: Apache-2.0 */
/* Creates recurrent operations, and distributes their calls over the host's threads. */
#include "cpu-onednn/recurrent/recurrent.h"

/* Offsets of the weight gradients in the workspace. */
static void place_grads(const struct odn_recurrent *r, struct odn_kind *kind)
{
    for (int w = 0; w < ODN_WEIGHTS; w++)
        if (odn_has_weight(r, w))
            kind->grad_place[w] =
                odn_take(&kind->grad_bytes, odn.memory_desc_get_size(odn_layout_get(&kind->grads[w])));
    kind->grad_bias = odn_take(&kind->grad_bytes, (uint64_t)(r->bias_gates * r->hidden) * sizeof(float));
    kind->grad_peephole = odn_take(&kind->grad_bytes, r->peephole ? 3 * (uint64_t)r->hidden * sizeof(float) : 0);
}

static void destroy(struct seqlstm_op *op)
{
    struct odn_recurrent *r = op->recurrent;
    if (r == NULL)
        return;
    odn_entries_destroy(r);
    if (!op->training)
        atomic_fetch_sub(&op->instance->inferences, 1);
    for (int k = 0; k < ODN_KINDS; k++) {
        odn_packing_release(&r->kind[k]);
        for (int w = 0; w < ODN_WEIGHTS; w++) {
            odn_layout_deinit(&r->kind[k].grads[w]);
            for (int p = 0; p < ODN_PASSES; p++)
                odn_layout_deinit(&r->kind[k].weights[p][w]);
        }
    }
    if (r->quantized && r->attr != NULL)
        odn.primitive_attr_destroy(r->attr);
    pthread_mutex_destroy(&r->lock);
    host_release(op->instance->host, r);
}

static seqlstm_status create(struct seqlstm_op *op, struct seqlstm_error *err)
{
    struct odn_recurrent *r = host_allocate(op->instance->host, sizeof *r);
    if (r == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a recurrent operation");
    op->recurrent = r;
    if (!op->training)
        atomic_fetch_add(&op->instance->inferences, 1);
    r->op = op;
    r->desc = &op->desc.recurrent;
    pthread_mutex_init(&r->lock, NULL);
    odn_recurrent_read_desc(r);
    const int before = odn_threads_set(op->exclusive ? op->instance->members_max : 1);
    r->attr = op->instance->attr;
    seqlstm_status status = SEQLSTM_OK;
    if (r->quantized) {
        r->attr = NULL;
        status =
            odn_check(odn_quantized_attr(r, NULL, dnnl_scratchpad_mode_user, &r->attr), "the attributes of int8", err);
    }
    for (int32_t k = 0; k < r->kinds && status == SEQLSTM_OK; k++) {
        status = odn_layouts_make(r, k, err);
        if (status == SEQLSTM_OK)
            status = odn_packing_make(r, k, err);
        if (status == SEQLSTM_OK && r->training)
            place_grads(r, &r->kind[k]);
    }
    if (status == SEQLSTM_OK)
        status = odn_recurrent_measure(r, &op->sizes, err);
    odn_threads_set(before);
    op->sizes.packed_bytes = odn_packed_of(r, r->layers, 0);
    return status;
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static seqlstm_status finish(const struct odn_run *run, struct seqlstm_error *err)
{
    return odn_check((dnnl_status_t)run->failed, "the execution of a recurrent primitive", err);
}

/* The library's own threads run; the host's threads are leased to it. */
static int lease_begin(struct seqlstm_queue *queue, int32_t threads)
{
    queue->services->lease_begin(queue);
    return odn_threads_set(threads);
}

static void lease_end(struct seqlstm_queue *queue, int before)
{
    odn_threads_set(before);
    queue->services->lease_end(queue);
}

static int32_t exclusive_threads(const struct odn_run *run)
{
    const int32_t most = run->b->r->op->instance->members_max;
    return run->queue->members < most ? run->queue->members : most;
}

static void forward_member(void *argument, int32_t member, int32_t members)
{
    struct odn_run *run = argument;
    (void)members;
    if (member >= run->b->slices_count)
        return;
    const int before = odn_threads_set(1);
    odn_forward_slice(run, member);
    odn_threads_set(before);
}

static seqlstm_status forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct odn_run run = {
        .b = binding->recurrent,
        .queue = queue,
        .slots = args->slots,
        .workspace = args->workspace,
        .reserve = binding->op->training ? args->reserve : args->workspace,
        .packed = args->packed,
    };
    if (run.b->r->quantized)
        SEQLSTM_TRY(odn_quantized_refresh(run.b, run.packed, err));
    if (!binding->op->exclusive) {
        queue->services->team(queue, forward_member, &run);
        return finish(&run, err);
    }
    const int before = lease_begin(queue, exclusive_threads(&run));
    odn_forward_slice(&run, 0);
    lease_end(queue, before);
    return finish(&run, err);
}

static void backward_member(void *argument, int32_t member, int32_t members)
{
    struct odn_run *run = argument;
    const struct odn_recurrent *r = run->b->r;
    const int before = odn_threads_set(1);
    for (int32_t l = r->layers - 1; l >= 0; l--)
        for (int32_t d = 0; d < r->directions; d++) {
            if (member < run->b->slices_count) {
                odn_zero_grads(run, member, l, 0, ODN_SHARES);
                odn_backward_layer(run, member, l, d);
            }
            run->queue->services->team_barrier(run->queue);
            odn_reduce_grads(run, l, d, (int64_t)ODN_SHARES * member / members,
                             (int64_t)ODN_SHARES * (member + 1) / members);
            run->queue->services->team_barrier(run->queue);
        }
    odn_threads_set(before);
}

/* Work of the host's threads before and after a layer, while those of the library are idle. */
struct sweep {
    struct odn_run *run;
    int32_t layer, direction;
};

static void zero_range(void *argument, int64_t begin, int64_t end)
{
    const struct sweep *sweep = argument;
    odn_zero_grads(sweep->run, 0, sweep->layer, begin, end);
}

static void reduce_range(void *argument, int64_t begin, int64_t end)
{
    const struct sweep *sweep = argument;
    odn_reduce_grads(sweep->run, sweep->layer, sweep->direction, begin, end);
}

static void backward_exclusive(struct odn_run *run)
{
    const struct odn_recurrent *r = run->b->r;
    struct sweep sweep = {run, 0, 0};
    for (int32_t l = r->layers - 1; l >= 0; l--)
        for (int32_t d = 0; d < r->directions; d++) {
            sweep.layer = l;
            sweep.direction = d;
            run->queue->services->parallel_for(run->queue, ODN_SHARES, ODN_SHARES / 16, zero_range, &sweep);
            const int before = lease_begin(run->queue, exclusive_threads(run));
            odn_backward_layer(run, 0, l, d);
            lease_end(run->queue, before);
            run->queue->services->parallel_for(run->queue, ODN_SHARES, ODN_SHARES / 16, reduce_range, &sweep);
        }
}

static seqlstm_status backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    struct odn_run run = {
        .b = binding->recurrent,
        .queue = queue,
        .slots = args->slots,
        .grads = args->grads,
        .parts = args->parts,
        .workspace = args->workspace,
        .reserve = args->reserve,
        .packed = args->packed,
    };
    if (binding->op->exclusive)
        backward_exclusive(&run);
    else
        queue->services->team(queue, backward_member, &run);
    return finish(&run, err);
}

const struct odn_operation odn_recurrent_operation = {
    .supports = odn_recurrent_supports,
    .create = create,
    .destroy = destroy,
    .bind = odn_recurrent_bind,
    .rebind = odn_recurrent_rebind,
    .unbind = odn_recurrent_unbind,
    .forward = forward,
    .backward = backward,
    .pack = odn_recurrent_pack,
    .find_idle = odn_recurrent_find_idle,
    .find_own = odn_recurrent_find_own,
};
