/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of one element and of a row, and the operation ACTIVATION. */
#include <math.h>

#include "reference.h"

static double sigmoid(double x)
{
    const double e = exp(-fabs(x)); /* never overflows */
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

double ref_activate(const struct seqlstm_activation *activation, double x)
{
    const double alpha = (double)activation->alpha, beta = (double)activation->beta;
    switch (activation->kind) {
    case SEQLSTM_ACT_TANH:
        return tanh(x);
    case SEQLSTM_ACT_SIGMOID:
        return sigmoid(x);
    case SEQLSTM_ACT_RELU:
        return fmax(0, x);
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? x : alpha * x;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > alpha ? x : 0;
    case SEQLSTM_ACT_SCALED_TANH:
        return alpha * tanh(beta * x);
    case SEQLSTM_ACT_HARD_SIGMOID:
        return fmin(fmax(alpha * x + beta, 0), 1);
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? x : alpha * expm1(x);
    case SEQLSTM_ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    case SEQLSTM_ACT_SOFTPLUS:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    case SEQLSTM_ACT_AFFINE:
        return alpha * x + beta;
    default: /* SEQLSTM_ACT_NONE */
        return x;
    }
}

double ref_activation_slope(const struct seqlstm_activation *activation, double x)
{
    const double alpha = (double)activation->alpha, beta = (double)activation->beta;
    double y;
    switch (activation->kind) {
    case SEQLSTM_ACT_TANH:
        y = tanh(x);
        return 1 - y * y;
    case SEQLSTM_ACT_SIGMOID:
        y = sigmoid(x);
        return y * (1 - y);
    case SEQLSTM_ACT_RELU:
        return x > 0 ? 1 : 0;
    case SEQLSTM_ACT_LEAKY_RELU:
        return x >= 0 ? 1 : alpha;
    case SEQLSTM_ACT_THRESHOLDED_RELU:
        return x > alpha ? 1 : 0;
    case SEQLSTM_ACT_SCALED_TANH:
        y = tanh(beta * x);
        return alpha * beta * (1 - y * y);
    case SEQLSTM_ACT_HARD_SIGMOID:
        y = alpha * x + beta;
        return y > 0 && y < 1 ? alpha : 0;
    case SEQLSTM_ACT_ELU:
        return x >= 0 ? 1 : alpha * exp(x);
    case SEQLSTM_ACT_SOFTSIGN:
        y = 1 + fabs(x);
        return 1 / (y * y);
    case SEQLSTM_ACT_SOFTPLUS:
        return sigmoid(x);
    case SEQLSTM_ACT_AFFINE:
        return alpha;
    default: /* SEQLSTM_ACT_NONE */
        return 1;
    }
}

/* log of the sum of exp(x), without overflow */
static double log_sum_exp(const double *x, int64_t n)
{
    double most = x[0], sum = 0;
    for (int64_t k = 1; k < n; k++)
        most = fmax(most, x[k]);
    for (int64_t k = 0; k < n; k++)
        sum += exp(x[k] - most);
    return most + log(sum);
}

void ref_activate_row(const struct seqlstm_activation *activation, const double *x, double *y, int64_t n)
{
    if (activation->kind == SEQLSTM_ACT_SOFTMAX || activation->kind == SEQLSTM_ACT_LOG_SOFTMAX) {
        const double total = log_sum_exp(x, n);
        for (int64_t k = 0; k < n; k++)
            y[k] = activation->kind == SEQLSTM_ACT_SOFTMAX ? exp(x[k] - total) : x[k] - total;
        return;
    }
    for (int64_t k = 0; k < n; k++)
        y[k] = ref_activate(activation, x[k]);
}

void ref_activation_backward_row(const struct seqlstm_activation *activation, const double *x, const double *y,
                                 const double *dy, double *dx, int64_t n)
{
    if (activation->kind == SEQLSTM_ACT_SOFTMAX) {
        const double inner = ref_dot(n, dy, y);
        for (int64_t k = 0; k < n; k++)
            dx[k] = y[k] * (dy[k] - inner);
    } else if (activation->kind == SEQLSTM_ACT_LOG_SOFTMAX) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++)
            sum += dy[k];
        for (int64_t k = 0; k < n; k++)
            dx[k] = dy[k] - exp(y[k]) * sum;
    } else {
        for (int64_t k = 0; k < n; k++)
            dx[k] = dy[k] * ref_activation_slope(activation, x[k]);
    }
}

/* ---- the operation ------------------------------------------------------------------------------- */

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    ref_slot_set(&slot[SEQLSTM_SLOT_UNARY_X], REF_INPUT, extent->rows * desc->activation.features);
    ref_slot_set(&slot[SEQLSTM_SLOT_UNARY_Y], REF_OUTPUT, extent->rows * desc->activation.features);
    return SEQLSTM_SLOT_UNARY_COUNT;
}

/* One row of y and one of dx. */
static int64_t scratch_elems(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    (void)extent;
    return 2 * desc->activation.features;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_activation_desc *d = &call->desc->activation;
    const double *x = call->values[SEQLSTM_SLOT_UNARY_X];
    double *y = call->values[SEQLSTM_SLOT_UNARY_Y];
    for (int64_t r = 0; r < call->extent->rows; r++)
        ref_activate_row(&d->activation, x + r * d->features, y + r * d->features, d->features);
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_activation_desc *d = &call->desc->activation;
    const int64_t n = d->features;
    const double *x = call->values[SEQLSTM_SLOT_UNARY_X], *dy = call->grads[SEQLSTM_SLOT_UNARY_Y];
    double *dx = call->grads[SEQLSTM_SLOT_UNARY_X], *y = call->scratch, *row = call->scratch + n;
    for (int64_t r = 0; dx && dy && r < call->extent->rows; r++) {
        ref_activate_row(&d->activation, x + r * n, y, n);
        ref_activation_backward_row(&d->activation, x + r * n, y, dy + r * n, row, n);
        ref_axpy(n, 1, row, dx + r * n);
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_activation = {
    .slots = slots, .scratch_elems = scratch_elems, .forward = forward, .backward = backward};
