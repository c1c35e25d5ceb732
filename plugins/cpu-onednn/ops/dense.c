/* SPDX-License-Identifier: Apache-2.0 */
/* DENSE without activation: the library's inner product in float32, on weights that are not packed.
 *
 * Gradients of one part: W, then the bias. */
#include "cpu-onednn/ops/rowwise.h"

enum { FORWARD, DATA, WEIGHTS };

static bool supports(const union seqlstm_any_desc *desc, struct seqlstm_answer *answer)
{
    const struct seqlstm_dense_desc *d = &desc->dense;
    if (d->activation.kind != SEQLSTM_ACT_NONE)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_ACTIVATION,
                         "cpu-onednn computes only dense layers without activation.", "an `activation` layer after it",
                         "%s", answer_activation_name(d->activation.kind));
    if (d->head.dtype_compute != SEQLSTM_DTYPE_FLOAT32)
        return answer_no(answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                         "cpu-onednn computes dense layers only in float32.", "precision: float32", "%s",
                         answer_dtype_name(d->head.dtype_compute));
    return true;
}

static bool has_bias(const struct seqlstm_op *op)
{
    return (op->desc.dense.options & SEQLSTM_BIT_DENSE_USE_BIAS) != 0;
}

static dnnl_status_t describe(const struct seqlstm_op *op, int32_t which, int64_t rows,
                              const_dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *out_pd)
{
    const int64_t in = op->desc.dense.input, out = op->desc.dense.output;
    const int64_t x[] = {rows, in}, y[] = {rows, out}, w[] = {out, in}, by_in[] = {in, 1}, by_out[] = {out, 1};
    const int64_t one = 1;
    struct odn_layout layouts[4] = {0};
    dnnl_status_t status = dnnl_out_of_memory;
    if (odn_layout_init(&layouts[0], 2, x, dnnl_f32, by_in) && odn_layout_init(&layouts[1], 2, w, dnnl_f32, by_in) &&
        odn_layout_init(&layouts[2], 2, y, dnnl_f32, by_out) &&
        (!has_bias(op) || odn_layout_init(&layouts[3], 1, &out, dnnl_f32, &one))) {
        const struct odn_dense_spec spec = {
            .pass = which == DATA      ? dnnl_backward_data
                    : which == WEIGHTS ? dnnl_backward_weights
                    : op->training     ? dnnl_forward_training
                                       : dnnl_forward_inference,
            .x = odn_layout_get(&layouts[0]),
            .w = odn_layout_get(&layouts[1]),
            .y = odn_layout_get(&layouts[2]),
            .b = odn_layout_get(&layouts[3]),
            .attr = op->instance->attr,
            .forward = forward,
        };
        status = odn_dense_describe(op->instance->engine, &spec, out_pd);
    }
    for (int i = 0; i < 4; i++)
        odn_layout_deinit(&layouts[i]);
    return status;
}

static uint64_t weight_bytes(const struct seqlstm_op *op)
{
    return align_bytes((uint64_t)op->desc.dense.input * (uint64_t)op->desc.dense.output * sizeof(float));
}

static uint64_t grad_bytes(const struct seqlstm_op *op)
{
    return weight_bytes(op) + (uint64_t)op->desc.dense.output * sizeof(float);
}

static const struct odn_rowwise_rules rules = {3, describe, grad_bytes};

static seqlstm_status create(struct seqlstm_op *op, struct seqlstm_error *err)
{
    return odn_rowwise_create(op, &rules, err);
}

static seqlstm_status bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue, struct seqlstm_error *err)
{
    return odn_rowwise_bind(binding, queue, &rules, err);
}

static seqlstm_status rebind(struct seqlstm_binding *binding, struct seqlstm_error *err)
{
    return odn_rowwise_rebind(binding, &rules, err);
}

static dnnl_status_t run_forward(struct odn_rowwise_call *call, struct odn_part *part)
{
    const struct seqlstm_dense_desc *d = &call->binding->op->desc.dense;
    struct odn_call *c = &part->own->calls[FORWARD];
    odn_call_set(c, DNNL_ARG_SRC, (const float *)call->slots[SEQLSTM_SLOT_DENSE_X] + part->begin * d->input);
    odn_call_set(c, DNNL_ARG_WEIGHTS, call->slots[SEQLSTM_SLOT_DENSE_W]);
    odn_call_set(c, DNNL_ARG_BIAS, call->slots[SEQLSTM_SLOT_DENSE_BIAS]);
    odn_call_set(c, DNNL_ARG_DST, (float *)call->slots[SEQLSTM_SLOT_DENSE_Y] + part->begin * d->output);
    return odn_call_run(c, call->binding->op->instance->stream);
}

static seqlstm_status forward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err)
{
    struct odn_rowwise_call call = {
        .binding = binding, .queue = queue, .slots = args->slots, .workspace = args->workspace, .run = run_forward};
    return odn_rowwise_run(&call, err);
}

static dnnl_status_t run_backward(struct odn_rowwise_call *call, struct odn_part *part)
{
    const struct seqlstm_op *op = call->binding->op;
    const struct seqlstm_dense_desc *d = &op->desc.dense;
    const float *dy = (const float *)call->grads[SEQLSTM_SLOT_DENSE_Y] + part->begin * d->output;
    float *dx = call->grads[SEQLSTM_SLOT_DENSE_X];
    dnnl_status_t status = dnnl_success;
    if ((call->parts & SEQLSTM_BIT_BACKWARD_INPUTS) != 0 && dx != NULL) {
        struct odn_call *c = &part->own->calls[DATA];
        odn_call_set(c, DNNL_ARG_WEIGHTS, call->slots[SEQLSTM_SLOT_DENSE_W]);
        odn_call_set(c, DNNL_ARG_DIFF_DST, dy);
        odn_call_set(c, DNNL_ARG_DIFF_SRC, dx + part->begin * d->input);
        status = odn_call_run(c, op->instance->stream);
    }
    if (status == dnnl_success && (call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS) != 0) {
        struct odn_call *c = &part->own->calls[WEIGHTS];
        void *grads = odn_at(call->workspace, part->grads);
        odn_call_set(c, DNNL_ARG_SRC, (const float *)call->slots[SEQLSTM_SLOT_DENSE_X] + part->begin * d->input);
        odn_call_set(c, DNNL_ARG_DIFF_DST, dy);
        odn_call_set(c, DNNL_ARG_DIFF_WEIGHTS, grads);
        odn_call_set(c, DNNL_ARG_DIFF_BIAS, odn_at(grads, weight_bytes(op)));
        status = odn_call_run(c, op->instance->stream);
    }
    return status;
}

static seqlstm_status backward(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err)
{
    const struct seqlstm_dense_desc *d = &binding->op->desc.dense;
    struct odn_rowwise_call call = {.binding = binding,
                                    .queue = queue,
                                    .slots = args->slots,
                                    .grads = args->grads,
                                    .parts = args->parts,
                                    .workspace = args->workspace,
                                    .run = run_backward};
    seqlstm_status status = SEQLSTM_OK;
    if (args->grads[SEQLSTM_SLOT_DENSE_Y] == NULL)
        odn_rowwise_clear(&call, SEQLSTM_SLOT_DENSE_X, d->input);
    else
        status = odn_rowwise_run(&call, err);
    if (status == SEQLSTM_OK) {
        odn_rowwise_reduce(&call, 0, d->input * d->output, args->grads[SEQLSTM_SLOT_DENSE_W]);
        if (has_bias(binding->op))
            odn_rowwise_reduce(&call, weight_bytes(binding->op), d->output, args->grads[SEQLSTM_SLOT_DENSE_BIAS]);
    }
    return status;
}

const struct odn_operation odn_dense_operation = {
    .supports = supports,
    .create = create,
    .destroy = odn_rowwise_destroy,
    .bind = bind,
    .rebind = rebind,
    .unbind = odn_rowwise_unbind,
    .forward = forward,
    .backward = backward,
};
