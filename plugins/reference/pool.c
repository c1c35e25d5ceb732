/* SPDX-License-Identifier: Apache-2.0 */
/* POOL: makes one row per sequence of the rows of its steps. */
#include <math.h>

#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    ref_slot_set(&slot[SEQLSTM_SLOT_UNARY_X], REF_INPUT, extent->rows * desc->pool.features);
    ref_slot_set(&slot[SEQLSTM_SLOT_UNARY_Y], REF_OUTPUT, extent->sequences * desc->pool.features);
    return SEQLSTM_SLOT_UNARY_COUNT;
}

static bool is_above(double x, double y)
{
    return x > y || (isnan(x) && !isnan(y));
}

/* Row of the first step at which feature k of sequence b is largest. */
static int64_t largest(const struct seqlstm_axis *axis, int64_t b, const double *x, int64_t features, int64_t k)
{
    int64_t best = b;
    for (int32_t t = 1; t < axis->lengths[b]; t++) {
        const int64_t row = axis->row_offsets[t] + b;
        if (is_above(x[row * features + k], x[best * features + k]))
            best = row;
    }
    return best;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_pool_desc *d = &call->desc->pool;
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t n = d->features;
    const double *x = call->values[SEQLSTM_SLOT_UNARY_X];
    double *y = call->values[SEQLSTM_SLOT_UNARY_Y];
    for (int64_t b = 0; b < axis->sequences; b++)
        for (int64_t k = 0; k < n; k++) {
            const int32_t length = axis->lengths[b];
            double sum = 0;
            for (int32_t t = 0; t < length; t++)
                sum += x[(axis->row_offsets[t] + b) * n + k];
            const int64_t row = d->kind == SEQLSTM_KIND_POOL_LAST  ? axis->row_offsets[length - 1] + b
                                : d->kind == SEQLSTM_KIND_POOL_MAX ? largest(axis, b, x, n, k)
                                                                   : b;
            y[b * n + k] = d->kind == SEQLSTM_KIND_POOL_MEAN  ? sum / length
                           : d->kind == SEQLSTM_KIND_POOL_SUM ? sum
                                                              : x[row * n + k];
        }
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_pool_desc *d = &call->desc->pool;
    const struct seqlstm_axis *axis = call->bind->axis;
    const int64_t n = d->features;
    const double *x = call->values[SEQLSTM_SLOT_UNARY_X], *dy = call->grads[SEQLSTM_SLOT_UNARY_Y];
    double *dx = call->grads[SEQLSTM_SLOT_UNARY_X];
    for (int64_t b = 0; dx && dy && b < axis->sequences; b++)
        for (int64_t k = 0; k < n; k++) {
            const int32_t length = axis->lengths[b];
            const double g = dy[b * n + k];
            if (d->kind == SEQLSTM_KIND_POOL_MEAN || d->kind == SEQLSTM_KIND_POOL_SUM) {
                for (int32_t t = 0; t < length; t++)
                    dx[(axis->row_offsets[t] + b) * n + k] += d->kind == SEQLSTM_KIND_POOL_MEAN ? g / length : g;
            } else {
                const int64_t row = d->kind == SEQLSTM_KIND_POOL_LAST  ? axis->row_offsets[length - 1] + b
                                    : d->kind == SEQLSTM_KIND_POOL_MAX ? largest(axis, b, x, n, k)
                                                                       : b;
                dx[row * n + k] += g;
            }
        }
    return SEQLSTM_OK;
}

const struct ref_family ref_pool = {.slots = slots, .forward = forward, .backward = backward};
