/* SPDX-License-Identifier: Apache-2.0 */
/* DENSE: y = act(x W' + b), row by row. Backward computes the pre-activation z again. */
#include "reference.h"

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const struct seqlstm_dense_desc *d = &desc->dense;
    ref_slot_set(&slot[SEQLSTM_SLOT_DENSE_X], REF_INPUT, extent->rows * d->input);
    ref_slot_set(&slot[SEQLSTM_SLOT_DENSE_Y], REF_OUTPUT, extent->rows * d->output);
    ref_slot_set(&slot[SEQLSTM_SLOT_DENSE_W], REF_PARAM, d->output * d->input);
    ref_slot_set(&slot[SEQLSTM_SLOT_DENSE_BIAS], REF_PARAM, d->options & SEQLSTM_BIT_DENSE_USE_BIAS ? d->output : 0);
    return SEQLSTM_SLOT_DENSE_COUNT;
}

/* One row of z, of y and of dz. */
static int64_t scratch_elems(const union seqlstm_any_desc *desc, const struct ref_extent *extent)
{
    (void)extent;
    return 3 * desc->dense.output;
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_dense_desc *d = &call->desc->dense;
    const double *x = call->values[SEQLSTM_SLOT_DENSE_X], *w = call->values[SEQLSTM_SLOT_DENSE_W];
    const double *bias = call->values[SEQLSTM_SLOT_DENSE_BIAS];
    double *y = call->values[SEQLSTM_SLOT_DENSE_Y], *z = call->scratch;
    for (int64_t r = 0; r < call->extent->rows; r++) {
        ref_matvec(d->output, d->input, w, x + r * d->input, bias, z);
        ref_activate_row(&d->activation, z, y + r * d->output, d->output);
    }
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_dense_desc *d = &call->desc->dense;
    const double *x = call->values[SEQLSTM_SLOT_DENSE_X], *w = call->values[SEQLSTM_SLOT_DENSE_W];
    const double *bias = call->values[SEQLSTM_SLOT_DENSE_BIAS], *dy = call->grads[SEQLSTM_SLOT_DENSE_Y];
    double *dx = call->grads[SEQLSTM_SLOT_DENSE_X], *dw = call->grads[SEQLSTM_SLOT_DENSE_W];
    double *dbias = call->grads[SEQLSTM_SLOT_DENSE_BIAS];
    double *z = call->scratch, *y = z + d->output, *dz = y + d->output;
    for (int64_t r = 0; dy && r < call->extent->rows; r++) {
        const double *row = x + r * d->input;
        ref_matvec(d->output, d->input, w, row, bias, z);
        ref_activate_row(&d->activation, z, y, d->output);
        ref_activation_backward_row(&d->activation, z, y, dy + r * d->output, dz, d->output);
        ref_matvec_backward(d->output, d->input, w, row, dz, dx ? dx + r * d->input : NULL, dw);
        if (dbias)
            ref_axpy(d->output, 1, dz, dbias);
    }
    return SEQLSTM_OK;
}

const struct ref_family ref_dense = {
    .slots = slots, .scratch_elems = scratch_elems, .forward = forward, .backward = backward};
