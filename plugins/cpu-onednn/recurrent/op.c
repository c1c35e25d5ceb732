/* SPDX-License-Identifier: Apache-2.0 */
/* Creates recurrent operations and bindings, and distributes their calls over the host's threads. */
#include <string.h>

#include "cpu-onednn/recurrent/recurrent.h"

static void describe_cell(struct odn_recurrent *r)
{
    const struct seqlstm_recurrent_desc *d = r->desc;
    static const int32_t plain[4] = {0, 1, 2, 3}, gru[4] = {1, 0, 2, 3}; /* in the library, the update gate is first */
    const bool after = (d->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER) != 0;
    r->lstm = d->cell == SEQLSTM_CELL_LSTM;
    r->cell = r->lstm ? ODN_LSTM : d->cell == SEQLSTM_CELL_RNN ? ODN_RNN : after ? ODN_GRU_RESET_AFTER : ODN_GRU;
    r->gates = r->lstm ? 4 : d->cell == SEQLSTM_CELL_GRU ? 3 : 1;
    r->bias_gates = r->cell == ODN_GRU_RESET_AFTER ? 4 : r->gates;
    memcpy(r->gate_map, d->cell == SEQLSTM_CELL_GRU ? gru : plain, sizeof r->gate_map);
    switch (d->activations[SEQLSTM_PLACE_CANDIDATE][0].kind) {
    case SEQLSTM_ACT_RELU:
        r->activation = dnnl_eltwise_relu;
        break;
    case SEQLSTM_ACT_SIGMOID:
        r->activation = dnnl_eltwise_logistic;
        break;
    default:
        r->activation = dnnl_eltwise_tanh;
    }
}

static void describe_stack(struct odn_recurrent *r, const struct seqlstm_instance *instance)
{
    const struct seqlstm_recurrent_desc *d = r->desc;
    r->layers = (int32_t)d->layers;
    r->directions = d->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    r->concat = r->directions == 2 && d->merge == SEQLSTM_KIND_MERGE_CONCAT;
    r->hidden = d->hidden;
    r->output = d->projection > 0 ? d->projection : d->hidden;
    r->projection = d->projection > 0;
    r->peephole = (d->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE) != 0;
    r->training = r->op->training;
    r->elem = odn_float32;
    if (d->head.dtype_compute == SEQLSTM_DTYPE_BFLOAT16)
        r->elem = (struct odn_elem){.type = dnnl_bf16, .bytes = 2};
    r->quantized = d->head.dtype_compute == SEQLSTM_DTYPE_INT8;
    if (r->quantized)
        r->elem = (struct odn_elem){.type = dnnl_u8, .bytes = 1, .scale = d->data_scale, .shift = d->data_shift};
    r->weight_type = r->quantized ? dnnl_s8 : r->elem.type;
    r->slices_max = r->op->exclusive ? 1 : instance->members_max;
    if (d->head.max_sequences < r->slices_max)
        r->slices_max = (int32_t)d->head.max_sequences;
    r->kind[0].input = d->input;
    r->kind[1].input = odn_y_width(r);
    r->kinds = r->layers > 1 && r->kind[1].input != d->input ? 2 : 1;
    for (int32_t k = 0; k < r->kinds; k++) {
        struct odn_kind *kind = &r->kind[k];
        const int64_t x[] = {1, 1, kind->input, r->gates, r->hidden}, h[] = {1, 1, r->output, r->gates, r->hidden};
        const int64_t p[] = {1, 1, r->hidden, r->output};
        for (int i = 0; i < 5; i++) {
            kind->dims[ODN_WEIGHT_X][i] = x[i];
            kind->dims[ODN_WEIGHT_H][i] = h[i];
        }
        for (int i = 0; i < 4; i++)
            kind->dims[ODN_WEIGHT_P][i] = p[i];
        kind->n_dims[ODN_WEIGHT_X] = kind->n_dims[ODN_WEIGHT_H] = 5;
        kind->n_dims[ODN_WEIGHT_P] = 4;
    }
}

/* ---- layouts of weights --------------------------------------------------------------------------------- */

static const int weight_arguments[ODN_WEIGHTS] = {DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER,
                                                  DNNL_ARG_WEIGHTS_PROJECTION};
static const int grad_arguments[ODN_WEIGHTS] = {DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER,
                                                DNNL_ARG_DIFF_WEIGHTS_PROJECTION};

bool odn_plain_layout(struct odn_layout *layout, const struct odn_kind *kind, int w, dnnl_data_type_t type, bool outer)
{
    const int n = kind->n_dims[w];
    const int64_t *dims = kind->dims[w];
    const int64_t inputs = dims[2], gates = n == 5 ? dims[3] : 1, outputs = dims[n - 1];
    int64_t strides[5] = {inputs * gates * outputs, inputs * gates * outputs, 1, 0, 0};
    if (n == 5)
        strides[3] = outer ? inputs * outputs : outputs;
    strides[n - 1] = outer ? inputs : 1;
    strides[2] = outer ? 1 : gates * outputs;
    return odn_layout_init(layout, n, dims, type, strides);
}

/* Chooses the layouts of all rectangles: the library's choice for a large one. Where that choice depends on the shape
 * of one product, or does not work for the smallest rectangle, a plain layout. */
static dnnl_status_t choose_layouts(struct odn_recurrent *r, int32_t k, bool plain)
{
    struct odn_kind *kind = &r->kind[k];
    const int32_t way = odn_way_of(r, 0);
    const int64_t n = (r->desc->head.max_sequences + r->slices_max - 1) / r->slices_max;
    const int64_t steps = r->desc->head.max_steps;
    dnnl_primitive_desc_t pd[ODN_PASSES] = {NULL, NULL};
    dnnl_status_t status = dnnl_success;
    for (int32_t p = 0; p < odn_passes(r) && status == dnnl_success; p++) {
        status = odn_primitive_describe(r, k, way, n, steps, p, false, pd[ODN_FORWARD], r->attr, &pd[p]);
        for (int w = 0; w < ODN_WEIGHTS && status == dnnl_success; w++) {
            if (!odn_has_weight(r, w))
                continue;
            odn_layout_deinit(&kind->weights[p][w]);
            odn_md md = odn.primitive_desc_query_md(pd[p], dnnl_query_exec_arg_md, weight_arguments[w]);
            const bool ok = !plain && odn_md_open(md)
                                ? odn_layout_copy(&kind->weights[p][w], md)
                                : odn_plain_layout(&kind->weights[p][w], kind, w, r->weight_type, p == ODN_BACKWARD);
            status = ok ? dnnl_success : dnnl_out_of_memory;
            if (p != ODN_BACKWARD || status != dnnl_success)
                continue;
            odn_layout_deinit(&kind->grads[w]);
            md = odn.primitive_desc_query_md(pd[p], dnnl_query_exec_arg_md, grad_arguments[w]);
            const bool made = odn_md_plain(md, kind->grad_strides[w])
                                  ? odn_layout_copy(&kind->grads[w], md)
                                  : odn_plain_layout(&kind->grads[w], kind, w, dnnl_f32, false);
            if (!made)
                status = dnnl_out_of_memory;
            odn_md_plain(odn_layout_get(&kind->grads[w]), kind->grad_strides[w]);
        }
    }
    for (int p = 0; p < ODN_PASSES; p++)
        if (pd[p] != NULL)
            odn.primitive_desc_destroy(pd[p]);
    return status;
}

/* Do the layouts work for this rectangle? */
static dnnl_status_t try_layouts(const struct odn_recurrent *r, int32_t k, int64_t n, int64_t steps)
{
    dnnl_primitive_desc_t forward = NULL, backward = NULL;
    const int32_t way = odn_way_of(r, 0);
    dnnl_status_t status = odn_primitive_describe(r, k, way, n, steps, ODN_FORWARD, true, NULL, r->attr, &forward);
    if (status == dnnl_success && r->training)
        status = odn_primitive_describe(r, k, way, n, steps, ODN_BACKWARD, true, forward, r->attr, &backward);
    if (forward != NULL)
        odn.primitive_desc_destroy(forward);
    if (backward != NULL)
        odn.primitive_desc_destroy(backward);
    return status;
}

static seqlstm_status make_layouts(struct odn_recurrent *r, int32_t k, struct seqlstm_error *err)
{
    dnnl_status_t status = dnnl_success;
    for (int plain = 0; plain < 2; plain++) {
        status = choose_layouts(r, k, plain);
        if (status == dnnl_success)
            status = try_layouts(r, k, 1, 1);
        if (status == dnnl_success)
            status = try_layouts(r, k, r->desc->head.max_sequences, r->desc->head.max_steps);
        if (status == dnnl_success || status == dnnl_out_of_memory)
            break;
    }
    if (status == dnnl_success || status == dnnl_out_of_memory)
        return odn_check(status, "a recurrent primitive", err);
    SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "oneDNN %s refuses this recurrent layer with status %d",
                 odn_library_version(), (int)status);
}

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

/* ---- the operation ------------------------------------------------------------------------------------------ */

static void destroy(struct seqlstm_op *op)
{
    struct odn_recurrent *r = op->recurrent;
    if (r == NULL)
        return;
    odn_entries_destroy(r);
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
    r->op = op;
    r->desc = &op->desc.recurrent;
    pthread_mutex_init(&r->lock, NULL);
    describe_cell(r);
    describe_stack(r, op->instance);
    const int before = odn_threads_set(op->exclusive ? op->instance->members_max : 1);
    r->attr = op->instance->attr;
    seqlstm_status status = SEQLSTM_OK;
    if (r->quantized) {
        r->attr = NULL;
        status =
            odn_check(odn_quantized_attr(r, NULL, dnnl_scratchpad_mode_user, &r->attr), "the attributes of int8", err);
    }
    for (int32_t k = 0; k < r->kinds && status == SEQLSTM_OK; k++) {
        status = make_layouts(r, k, err);
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

/* ---- bindings ------------------------------------------------------------------------------------------------- */

static void unbind(struct seqlstm_binding *binding)
{
    struct odn_recurrent_binding *b = binding->recurrent;
    if (b == NULL)
        return;
    for (int32_t m = 0; b->slices != NULL && m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].shape_count; i++) {
            struct odn_shape *shape = &b->slices[m].shapes[i];
            for (int32_t c = 0; shape->calls != NULL && c < odn_calls_count(b->r); c++)
                odn_call_deinit(&shape->calls[c]);
            for (int k = 0; k < ODN_KINDS; k++)
                for (int way = 0; way < ODN_WAYS; way++)
                    odn_entry_release(b->r, shape->entries[k][way]);
        }
    odn_slices_release(b);
    host_release(b->r->op->instance->host, b->slices);
    host_release(b->r->op->instance->host, b);
}

seqlstm_status odn_shape_bind(struct odn_recurrent_binding *b, struct odn_shape *shape, int32_t kind, int32_t way,
                              uint64_t version, const float *scales, struct seqlstm_error *err)
{
    struct odn_recurrent *r = b->r;
    const struct odn_entry_key key = {.kind = kind,
                                      .way = way,
                                      .threads = b->threads,
                                      .n = shape->n,
                                      .steps = shape->steps,
                                      .version = version,
                                      .scales = scales};
    struct odn_entry *entry = NULL;
    SEQLSTM_TRY(odn_entry_acquire(r, &key, &entry, err));
    odn_entry_release(r, shape->entries[kind][way]);
    shape->entries[kind][way] = entry;
    for (int p = 0; p < odn_passes(r); p++) {
        struct odn_call *call = odn_shape_call(r, shape, kind, way, p);
        odn_call_deinit(call);
        SEQLSTM_TRY(odn_call_init(call, r->op->instance->engine, entry->pd[p], entry->primitive[p], err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status bind_shape(struct odn_recurrent_binding *b, struct odn_shape *shape, struct seqlstm_error *err)
{
    for (int32_t k = 0; k < b->r->kinds; k++)
        for (int32_t d = 0; d < b->r->directions; d++)
            SEQLSTM_TRY(odn_shape_bind(b, shape, k, odn_way_of(b->r, d), 0, NULL, err));
    return SEQLSTM_OK;
}

static seqlstm_status bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue, struct seqlstm_error *err)
{
    const struct seqlstm_op *op = binding->op;
    struct odn_recurrent *r = op->recurrent;
    const struct seqlstm_axis *axis = binding->bind.axis;
    if (axis->sequences > r->desc->head.max_sequences || axis->steps > r->desc->head.max_steps)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a recurrent layer needs an axis within its descriptor");
    struct odn_recurrent_binding *b = host_allocate(op->instance->host, sizeof *b);
    if (b == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the binding of a recurrent layer");
    binding->recurrent = b;
    b->r = r;
    b->axis = axis;
    b->t0 = binding->bind.t0;
    b->t1 = binding->bind.t1;
    b->rows = binding->bind.rows;
    const int64_t sequences = axis->batch_sizes[b->t0];
    b->slices_count = queue->members < r->slices_max ? queue->members : r->slices_max;
    if (sequences < b->slices_count)
        b->slices_count = (int32_t)sequences;
    b->in_place = b->slices_count == 1 && r->elem.type == dnnl_f32;
    b->slices = host_allocate(op->instance->host, (uint64_t)b->slices_count * sizeof *b->slices);
    if (b->slices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the slices of a batch");
    SEQLSTM_TRY(odn_slices_cut(b, err));
    SEQLSTM_TRY(odn_slices_make_calls(b, err));
    b->threads = 1;
    if (op->exclusive)
        b->threads = queue->members < op->instance->members_max ? queue->members : op->instance->members_max;
    for (int32_t m = 0; m < b->slices_count; m++)
        for (int32_t i = 0; i < b->slices[m].shape_count; i++)
            SEQLSTM_TRY(bind_shape(b, &b->slices[m].shapes[i], err));
    uint64_t reserve, workspace;
    odn_recurrent_place(b, &reserve, &workspace);
    if (reserve > op->sizes.reserve_bytes || workspace > op->sizes.workspace_bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INTERNAL,
                     "a batch needs %llu and %llu bytes of reserve and workspace, beyond the bounds of %llu and %llu",
                     (unsigned long long)reserve, (unsigned long long)workspace,
                     (unsigned long long)op->sizes.reserve_bytes, (unsigned long long)op->sizes.workspace_bytes);
    return SEQLSTM_OK;
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
    .bind = bind,
    .unbind = unbind,
    .forward = forward,
    .backward = backward,
    .pack = odn_recurrent_pack,
    .find_idle = odn_recurrent_find_idle,
    .find_own = odn_recurrent_find_own,
};
