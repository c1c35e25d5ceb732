/* SPDX-License-Identifier: Apache-2.0 */
/* LOSS, and DENSE_LOSS: a dense layer followed by a loss, without a matrix of all logits.
 *
 * Both process row by row with ref_loss_row, which gives the loss of a row, its weight, and the derivative. */
#include <math.h>

#include "reference.h"

/* mean over n of f(x - target) and its derivative */
static double pointwise(const struct ref_loss_rule *rule, const double *x, const double *target, double *grad)
{
    const double n = (double)rule->n, delta = rule->delta;
    double loss = 0;
    for (int64_t k = 0; k < rule->n; k++) {
        const double e = x[k] - target[k];
        double value, slope;
        switch (rule->kind) {
        case SEQLSTM_KIND_LOSS_MSE:
            value = e * e;
            slope = 2 * e;
            break;
        case SEQLSTM_KIND_LOSS_MAE:
            value = fabs(e);
            slope = e > 0 ? 1 : e < 0 ? -1 : 0;
            break;
        case SEQLSTM_KIND_LOSS_HUBER:
            value = fabs(e) <= delta ? e * e / 2 : delta * (fabs(e) - delta / 2);
            slope = fabs(e) <= delta ? e : e > 0 ? delta : -delta;
            break;
        default: /* SEQLSTM_KIND_LOSS_BINARY_CROSS_ENTROPY: softplus(x) - target x */
            value = fmax(x[k], 0) + log1p(exp(-fabs(x[k]))) - target[k] * x[k];
            slope = 1 / (1 + exp(-x[k])) - target[k];
            break;
        }
        loss += value / n;
        if (grad)
            grad[k] = slope / n;
    }
    return loss;
}

/* -sum over the smoothed target distribution of log softmax(x) */
static double cross_entropy(const struct ref_loss_rule *rule, const double *x, int32_t target, double *grad)
{
    const int64_t n = rule->n;
    const double each = rule->label_smoothing / (double)n, rest = 1 - rule->label_smoothing;
    double most = x[0], total = 0, loss = 0;
    for (int64_t k = 1; k < n; k++)
        most = fmax(most, x[k]);
    for (int64_t k = 0; k < n; k++)
        total += exp(x[k] - most);
    const double log_total = most + log(total);
    for (int64_t k = 0; k < n; k++) {
        const double expected = each + (k == target ? rest : 0);
        if (expected > 0)
            loss += expected * (log_total - x[k]);
        if (grad)
            grad[k] = exp(x[k] - log_total) - expected;
    }
    return loss;
}

seqlstm_status ref_loss_row(const struct ref_loss_rule *rule, int64_t row, const double *x, double *out_loss,
                            double *out_weight, double *grad, struct seqlstm_error *err)
{
    if (rule->kind != SEQLSTM_KIND_LOSS_CROSS_ENTROPY) {
        *out_loss = pointwise(rule, x, rule->targets + row * rule->n, grad);
        *out_weight = 1;
        return SEQLSTM_OK;
    }
    const int32_t target = rule->classes[row];
    if (target >= rule->n)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "target %d of row %lld, but there are %lld classes", target,
                     (long long)row, (long long)rule->n);
    *out_weight = target < 0 ? 0 : rule->class_weights ? rule->class_weights[target] : 1;
    if (target < 0) {
        *out_loss = 0;
        for (int64_t k = 0; grad && k < rule->n; k++)
            grad[k] = 0;
        return SEQLSTM_OK;
    }
    *out_loss = cross_entropy(rule, x, target, grad);
    return SEQLSTM_OK;
}

/* ---- the operations --------------------------------------------------------------------------------- */

static void common_slots(uint32_t kind, uint32_t options, int64_t rows, int64_t classes, struct ref_slot *slot)
{
    const bool cross = kind == SEQLSTM_KIND_LOSS_CROSS_ENTROPY;
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_LOSS_TARGET], REF_CONST, cross ? SEQLSTM_DTYPE_INT32 : SEQLSTM_DTYPE_FLOAT32,
                       cross ? rows : rows * classes);
    ref_slot_set(&slot[SEQLSTM_SLOT_LOSS_ROW_WEIGHT], REF_CONST, options & SEQLSTM_BIT_LOSS_ROW_WEIGHT ? rows : 0);
    ref_slot_set(&slot[SEQLSTM_SLOT_LOSS_CLASS_WEIGHT], REF_CONST,
                 options & SEQLSTM_BIT_LOSS_CLASS_WEIGHT ? classes : 0);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_LOSS_SUMS], REF_INOUT, SEQLSTM_DTYPE_FLOAT64, 2);
    ref_slot_set(&slot[SEQLSTM_SLOT_LOSS_ROW_LOSS], REF_OUTPUT, options & SEQLSTM_BIT_LOSS_ROW_LOSS ? rows : 0);
}

static int32_t loss_slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_loss_desc *d = &desc->loss;
    ref_slot_set(&slot[SEQLSTM_SLOT_LOSS_X], REF_INPUT, extent->rows * d->features);
    common_slots(d->kind, d->options, extent->rows, d->features, slot);
    return SEQLSTM_SLOT_LOSS_COUNT;
}

static int32_t dense_loss_slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent,
                                struct ref_slot *slot)
{
    const struct seqlstm_dense_loss_desc *d = &desc->dense_loss;
    ref_slot_set(&slot[SEQLSTM_SLOT_LOSS_X], REF_INPUT, extent->rows * d->input);
    common_slots(d->kind, d->options, extent->rows, d->output, slot);
    ref_slot_set(&slot[SEQLSTM_SLOT_DENSE_LOSS_W], REF_PARAM, d->output * d->input);
    ref_slot_set(&slot[SEQLSTM_SLOT_DENSE_LOSS_BIAS], REF_PARAM,
                 d->dense_options & SEQLSTM_BIT_DENSE_USE_BIAS ? d->output : 0);
    return SEQLSTM_SLOT_DENSE_LOSS_COUNT;
}

/* One row of logits and one of their gradient. */
static int64_t loss_scratch(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    (void)extent;
    return 2 * desc->loss.features;
}

static int64_t dense_loss_scratch(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    (void)extent;
    return 2 * desc->dense_loss.output;
}

static struct ref_loss_rule make_rule(const struct ref_call *call)
{
    const bool compound = call->desc->head.op == SEQLSTM_OP_DENSE_LOSS;
    const struct seqlstm_loss_desc *d = &call->desc->loss;
    const struct seqlstm_dense_loss_desc *c = &call->desc->dense_loss;
    return (struct ref_loss_rule){.kind = compound ? c->kind : d->kind,
                                  .label_smoothing = (double)(compound ? c->label_smoothing : d->label_smoothing),
                                  .delta = (double)(compound ? c->delta : d->delta),
                                  .class_weights = call->values[SEQLSTM_SLOT_LOSS_CLASS_WEIGHT],
                                  .classes = call->values[SEQLSTM_SLOT_LOSS_TARGET],
                                  .targets = call->values[SEQLSTM_SLOT_LOSS_TARGET],
                                  .n = compound ? c->output : d->features};
}

/* The logits of one row: the row itself, or the dense layer's output in scratch. */
static const double *logits(const struct ref_call *call, int64_t row)
{
    const double *x = call->values[SEQLSTM_SLOT_LOSS_X];
    if (call->desc->head.op == SEQLSTM_OP_LOSS)
        return x + row * call->desc->loss.features;
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    ref_matvec(d->output, d->input, call->values[SEQLSTM_SLOT_DENSE_LOSS_W], x + row * d->input,
               call->values[SEQLSTM_SLOT_DENSE_LOSS_BIAS], call->scratch);
    return call->scratch;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct ref_loss_rule rule = make_rule(call);
    const double *weights = call->values[SEQLSTM_SLOT_LOSS_ROW_WEIGHT];
    double *sums = call->values[SEQLSTM_SLOT_LOSS_SUMS], *row_losses = call->values[SEQLSTM_SLOT_LOSS_ROW_LOSS];
    double loss_sum = 0, weight_sum = 0;
    for (int64_t r = 0; r < call->extent->rows; r++) {
        double loss = 0, weight = 0;
        SEQLSTM_TRY(ref_loss_row(&rule, r, logits(call, r), &loss, &weight, NULL, err));
        weight *= weights ? weights[r] : 1;
        loss_sum += weight * loss;
        weight_sum += weight;
        if (row_losses)
            row_losses[r] = loss;
    }
    sums[0] += loss_sum;
    sums[1] += weight_sum;
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    const struct ref_loss_rule rule = make_rule(call);
    const struct seqlstm_dense_loss_desc *d = &call->desc->dense_loss;
    const bool compound = call->desc->head.op == SEQLSTM_OP_DENSE_LOSS;
    const double *weights = call->values[SEQLSTM_SLOT_LOSS_ROW_WEIGHT], *x = call->values[SEQLSTM_SLOT_LOSS_X];
    const double scale = (double)call->step->normaliser * (double)call->step->loss_scale;
    double *dx = call->grads[SEQLSTM_SLOT_LOSS_X], *grad = call->scratch + rule.n;
    for (int64_t r = 0; r < call->extent->rows; r++) {
        double loss = 0, weight = 0;
        SEQLSTM_TRY(ref_loss_row(&rule, r, logits(call, r), &loss, &weight, grad, err));
        weight *= scale * (weights ? weights[r] : 1);
        for (int64_t k = 0; k < rule.n; k++)
            grad[k] *= weight;
        if (compound) {
            ref_matvec_backward(d->output, d->input, call->values[SEQLSTM_SLOT_DENSE_LOSS_W], x + r * d->input, grad,
                                dx ? dx + r * d->input : NULL, call->grads[SEQLSTM_SLOT_DENSE_LOSS_W]);
            if (call->grads[SEQLSTM_SLOT_DENSE_LOSS_BIAS])
                ref_axpy(d->output, 1, grad, call->grads[SEQLSTM_SLOT_DENSE_LOSS_BIAS]);
        } else if (dx) {
            ref_axpy(rule.n, 1, grad, dx + r * rule.n);
        }
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_loss = {
    .slots = loss_slots, .scratch_elems = loss_scratch, .forward = forward, .backward = backward};
const struct ref_family ref_dense_loss = {
    .slots = dense_loss_slots, .scratch_elems = dense_loss_scratch, .forward = forward, .backward = backward};
