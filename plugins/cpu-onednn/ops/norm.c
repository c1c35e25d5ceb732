/* SPDX-License-Identifier: Apache-2.0 */
/* LAYER_NORM: the library's primitive. In training the reserve holds mean and variance of each row.
 *
 * Gradients of one part: gain, bias. If dx is not wanted, it is written behind them. */
#include "cpu-onednn/ops/rowwise.h"

enum { FORWARD, BACKWARD };

static bool supports(const union seqlstm_any_desc *desc, struct seqlstm_answer *answer)
{
    if (desc->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "cpu-onednn computes layer normalisation only in float32.", "precision: float32", "%s",
                         answer_dtype_name(desc->head.dtype_compute));
    return true;
}

static dnnl_status_t describe(const struct seqlstm_op *op, int32_t which, int64_t rows,
                              const_dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *out_pd)
{
    const struct seqlstm_layer_norm_desc *d = &op->desc.layer_norm;
    const int64_t dims[] = {rows, d->features}, strides[] = {d->features, 1}, one = 1;
    struct odn_layout x = {0}, statistics = {0};
    dnnl_status_t status = dnnl_out_of_memory;
    if (odn_layout_init(&x, 2, dims, dnnl_f32, strides) && odn_layout_init(&statistics, 1, &rows, dnnl_f32, &one)) {
        const struct odn_norm_spec spec = {
            .pass = which == BACKWARD ? dnnl_backward
                    : op->training    ? dnnl_forward_training
                                      : dnnl_forward_inference,
            .x = odn_layout_get(&x),
            .statistics = odn_layout_get(&statistics),
            .epsilon = d->epsilon,
            .scale = (d->options & SEQLSTM_BIT_LAYER_NORM_GAIN) != 0,
            .shift = (d->options & SEQLSTM_BIT_LAYER_NORM_BIAS) != 0,
            .attr = op->instance->attr,
            .forward = forward,
        };
        status = odn_norm_describe(op->instance->engine, &spec, out_pd);
    }
    odn_layout_deinit(&x);
    odn_layout_deinit(&statistics);
    return status;
}

static uint64_t vector_bytes(const struct seqlstm_op *op)
{
    return align_bytes((uint64_t)op->desc.layer_norm.features * sizeof(float));
}

static uint64_t grad_bytes(const struct seqlstm_op *op)
{
    return 2 * vector_bytes(op);
}

static const struct odn_rowwise_rules rules = {2, describe, grad_bytes};

static seqlstm_status create(struct seqlstm_op *op, struct seqlstm_error *err)
{
    const uint64_t rows = (uint64_t)op->desc.head.max_rows;
    SEQLSTM_TRY(odn_rowwise_create(op, &rules, err));
    if (op->training) {
        op->sizes.reserve_bytes = 2 * align_bytes(rows * sizeof(float));
        op->sizes.workspace_bytes += rows * (uint64_t)op->desc.layer_norm.features * sizeof(float);
    }
    return SEQLSTM_OK;
}

static seqlstm_status bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue, struct seqlstm_error *err)
{
    return odn_rowwise_bind(binding, queue, &rules, err);
}

static seqlstm_status rebind(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    return odn_rowwise_rebind(binding, &rules, err);
}

static void set_values(const struct odn_rowwise_call *call, const struct odn_part *part, struct odn_call *c)
{
    const struct seqlstm_op *op = call->binding->op;
    const int64_t offset = part->begin * op->desc.layer_norm.features;
    float *mean = call->reserve;
    odn_call_set(c, DNNL_ARG_SRC, (const float *)call->slots[SEQLSTM_SLOT_LAYER_NORM_X] + offset);
    odn_call_set(c, DNNL_ARG_SCALE, call->slots[SEQLSTM_SLOT_LAYER_NORM_GAIN]);
    odn_call_set(c, DNNL_ARG_SHIFT, call->slots[SEQLSTM_SLOT_LAYER_NORM_BIAS]);
    if (mean == NULL)
        return;
    odn_call_set(c, DNNL_ARG_MEAN, mean + part->begin);
    odn_call_set(c, DNNL_ARG_VARIANCE,
                 (float *)odn_at(mean, align_bytes((uint64_t)op->desc.head.max_rows * sizeof(float))) + part->begin);
}

static dnnl_status_t run_forward(struct odn_rowwise_call *call, struct odn_part *part)
{
    struct odn_call *c = &part->own->calls[FORWARD];
    const int64_t offset = part->begin * call->binding->op->desc.layer_norm.features;
    set_values(call, part, c);
    odn_call_set(c, DNNL_ARG_DST, (float *)call->slots[SEQLSTM_SLOT_LAYER_NORM_Y] + offset);
    return odn_call_run(c, call->binding->op->instance->stream);
}

static seqlstm_status forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct odn_rowwise_call call = {.binding = binding,
                                    .queue = queue,
                                    .slots = args->slots,
                                    .workspace = args->workspace,
                                    .run = run_forward,
                                    .reserve = binding->op->training ? args->reserve : NULL};
    return odn_rowwise_run(&call, err);
}

static dnnl_status_t run_backward(struct odn_rowwise_call *call, struct odn_part *part)
{
    const struct seqlstm_op *op = call->binding->op;
    const int64_t features = op->desc.layer_norm.features, offset = part->begin * features;
    const bool wanted =
        (call->parts & SEQLSTM_BIT_BACKWARD_INPUTS) != 0 && call->grads[SEQLSTM_SLOT_LAYER_NORM_X] != NULL;
    const uint64_t rows_bytes = (uint64_t)op->desc.head.max_rows * (uint64_t)features * sizeof(float);
    float *dx = wanted ? call->grads[SEQLSTM_SLOT_LAYER_NORM_X]
                       : odn_at(call->workspace, op->sizes.workspace_bytes - rows_bytes);
    struct odn_call *c = &part->own->calls[BACKWARD];
    void *grads = odn_at(call->workspace, part->grads);
    set_values(call, part, c);
    odn_call_set(c, DNNL_ARG_DIFF_DST, (const float *)call->grads[SEQLSTM_SLOT_LAYER_NORM_Y] + offset);
    odn_call_set(c, DNNL_ARG_DIFF_SRC, dx + offset);
    odn_call_set(c, DNNL_ARG_DIFF_SCALE, grads);
    odn_call_set(c, DNNL_ARG_DIFF_SHIFT, odn_at(grads, vector_bytes(op)));
    return odn_call_run(c, op->instance->stream);
}

static seqlstm_status backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    const struct seqlstm_layer_norm_desc *d = &binding->op->desc.layer_norm;
    struct odn_rowwise_call call = {.binding = binding,
                                    .queue = queue,
                                    .slots = args->slots,
                                    .grads = args->grads,
                                    .parts = args->parts,
                                    .workspace = args->workspace,
                                    .reserve = args->reserve,
                                    .run = run_backward};
    if (args->grads[SEQLSTM_SLOT_LAYER_NORM_Y] == NULL)
        odn_rowwise_clear(&call, SEQLSTM_SLOT_LAYER_NORM_X, d->features);
    else
        SEQLSTM_TRY(odn_rowwise_run(&call, err));
    if (d->options & SEQLSTM_BIT_LAYER_NORM_GAIN)
        odn_rowwise_reduce(&call, 0, d->features, args->grads[SEQLSTM_SLOT_LAYER_NORM_GAIN]);
    if (d->options & SEQLSTM_BIT_LAYER_NORM_BIAS)
        odn_rowwise_reduce(&call, vector_bytes(binding->op), d->features, args->grads[SEQLSTM_SLOT_LAYER_NORM_BIAS]);
    return SEQLSTM_OK;
}

const struct odn_operation odn_norm_operation = {
    .supports = supports,
    .create = create,
    .destroy = odn_rowwise_destroy,
    .bind = bind,
    .rebind = rebind,
    .unbind = odn_rowwise_unbind,
    .forward = forward,
    .backward = backward,
};
