/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of a vector, used by LAYER_NORM and by recurrent cells, and the operation LAYER_NORM. */
#include "norm.h"

#include <math.h>

#include "reference.h"

double ref_normalise(const double *x, double *y, int64_t n, double epsilon)
{
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < n; k++)
        mean += x[k];
    mean /= (double)n;
    for (int64_t k = 0; k < n; k++)
        variance += (x[k] - mean) * (x[k] - mean);
    variance /= (double)n;
    const double scale = 1 / sqrt(variance + epsilon);
    for (int64_t k = 0; k < n; k++)
        y[k] = (x[k] - mean) * scale;
    return scale;
}

void ref_normalise_backward(const double *y, double scale, const double *dy, double *dx, int64_t n)
{
    double mean_dy = 0, mean_dyy = 0;
    for (int64_t k = 0; k < n; k++) {
        mean_dy += dy[k];
        mean_dyy += dy[k] * y[k];
    }
    mean_dy /= (double)n;
    mean_dyy /= (double)n;
    for (int64_t k = 0; k < n; k++)
        dx[k] = scale * (dy[k] - mean_dy - y[k] * mean_dyy);
}

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_layer_norm_desc *d = &desc->layer_norm;
    ref_slot_set(&slot[SEQLSTM_SLOT_LAYER_NORM_X], REF_INPUT, extent->rows * d->features);
    ref_slot_set(&slot[SEQLSTM_SLOT_LAYER_NORM_Y], REF_OUTPUT, extent->rows * d->features);
    ref_slot_set(&slot[SEQLSTM_SLOT_LAYER_NORM_GAIN], REF_PARAM,
                 d->options & SEQLSTM_BIT_LAYER_NORM_GAIN ? d->features : 0);
    ref_slot_set(&slot[SEQLSTM_SLOT_LAYER_NORM_BIAS], REF_PARAM,
                 d->options & SEQLSTM_BIT_LAYER_NORM_BIAS ? d->features : 0);
    return SEQLSTM_SLOT_LAYER_NORM_COUNT;
}

/* One row each of N(x), d N(x) and dx. */
static int64_t scratch_elems(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    (void)extent;
    return 3 * desc->layer_norm.features;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_layer_norm_desc *d = &call->desc->layer_norm;
    const int64_t n = d->features;
    const double *x = call->values[SEQLSTM_SLOT_LAYER_NORM_X], *gain = call->values[SEQLSTM_SLOT_LAYER_NORM_GAIN];
    const double *bias = call->values[SEQLSTM_SLOT_LAYER_NORM_BIAS];
    double *y = call->values[SEQLSTM_SLOT_LAYER_NORM_Y];
    for (int64_t r = 0; r < call->extent->rows; r++) {
        double *row = y + r * n;
        ref_normalise(x + r * n, row, n, (double)d->epsilon);
        for (int64_t k = 0; k < n; k++)
            row[k] = row[k] * (gain ? gain[k] : 1) + (bias ? bias[k] : 0);
    }
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_layer_norm_desc *d = &call->desc->layer_norm;
    const int64_t n = d->features;
    const double *x = call->values[SEQLSTM_SLOT_LAYER_NORM_X], *gain = call->values[SEQLSTM_SLOT_LAYER_NORM_GAIN];
    const double *dy = call->grads[SEQLSTM_SLOT_LAYER_NORM_Y];
    double *dx = call->grads[SEQLSTM_SLOT_LAYER_NORM_X], *dgain = call->grads[SEQLSTM_SLOT_LAYER_NORM_GAIN];
    double *dbias = call->grads[SEQLSTM_SLOT_LAYER_NORM_BIAS];
    double *normal = call->scratch, *dnormal = normal + n, *row = dnormal + n;
    for (int64_t r = 0; dy && r < call->extent->rows; r++) {
        const double scale = ref_normalise(x + r * n, normal, n, (double)d->epsilon);
        for (int64_t k = 0; k < n; k++) {
            const double g = dy[r * n + k];
            if (dgain)
                dgain[k] += g * normal[k];
            if (dbias)
                dbias[k] += g;
            dnormal[k] = g * (gain ? gain[k] : 1);
        }
        if (dx) {
            ref_normalise_backward(normal, scale, dnormal, row, n);
            ref_axpy(n, 1, row, dx + r * n);
        }
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_layer_norm = {
    .slots = slots, .scratch_elems = scratch_elems, .forward = forward, .backward = backward};
