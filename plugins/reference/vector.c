/* SPDX-License-Identifier: Apache-2.0 */
/* Flat vectors: FINITE_CHECK, SQUARED_NORM and VECTOR. bind.rows elements, forward only. */
#include <math.h>

#include "reference.h"

static int32_t reduce_slots(struct ref_slot *slot, const struct ref_extent *extent, uint32_t dtype)
{
    ref_slot_set(&slot[SEQLSTM_SLOT_REDUCE_X], REF_CONST, extent->rows);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_REDUCE_RESULT], REF_INOUT, dtype, 1);
    return SEQLSTM_SLOT_REDUCE_COUNT;
}

static int32_t finite_slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    (void)desc;
    return reduce_slots(slot, extent, SEQLSTM_DTYPE_INT32);
}

static int32_t norm_slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    (void)desc;
    return reduce_slots(slot, extent, SEQLSTM_DTYPE_FLOAT64);
}

static seqlstm_status finite_forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const double *x = call->values[SEQLSTM_SLOT_REDUCE_X];
    int32_t *flag = call->values[SEQLSTM_SLOT_REDUCE_RESULT];
    for (int64_t k = 0; k < call->extent->rows; k++)
        if (!isfinite(x[k]))
            *flag |= 1;
    return SEQLSTM_OK;
}

static seqlstm_status norm_forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const double *x = call->values[SEQLSTM_SLOT_REDUCE_X];
    double *sum = call->values[SEQLSTM_SLOT_REDUCE_RESULT];
    *sum += ref_dot(call->extent->rows, x, x);
    return SEQLSTM_OK;
}

static int32_t vector_slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const uint32_t kind = desc->vector.kind;
    const bool alone =
        kind == SEQLSTM_KIND_VECTOR_FILL || kind == SEQLSTM_KIND_VECTOR_SCALE || kind == SEQLSTM_KIND_VECTOR_CLAMP;
    const bool overwrites = kind == SEQLSTM_KIND_VECTOR_FILL || kind == SEQLSTM_KIND_VECTOR_COPY;
    ref_slot_set(&slot[SEQLSTM_SLOT_VECTOR_Y], overwrites ? REF_OUTPUT : REF_INOUT, extent->rows);
    ref_slot_set(&slot[SEQLSTM_SLOT_VECTOR_X], REF_CONST, alone ? 0 : extent->rows);
    return SEQLSTM_SLOT_VECTOR_COUNT;
}

static double vector_element(uint32_t kind, double a, double x, double y)
{
    switch (kind) {
    case SEQLSTM_KIND_VECTOR_FILL:
        return a;
    case SEQLSTM_KIND_VECTOR_AXPY:
        return y + a * x;
    case SEQLSTM_KIND_VECTOR_SCALE:
        return y * a;
    case SEQLSTM_KIND_VECTOR_LERP:
        return y + a * (x - y);
    case SEQLSTM_KIND_VECTOR_SIGN_AXPY:
        return y + a * (x > 0 ? 1 : x < 0 ? -1 : x); /* a value that is NaN must show */
    case SEQLSTM_KIND_VECTOR_CLAMP:
        return !isfinite(y) ? (double)NAN : fmin(fmax(y, -a), a); /* an infinite value must show */
    default:                                                      /* SEQLSTM_KIND_VECTOR_COPY */
        return x;
    }
}

static seqlstm_status vector_forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const uint32_t kind = call->desc->vector.kind;
    const double *x = call->values[SEQLSTM_SLOT_VECTOR_X];
    double *y = call->values[SEQLSTM_SLOT_VECTOR_Y];
    const double a = kind == SEQLSTM_KIND_VECTOR_COPY ? 0 : (double)call->step->alpha;
    const bool overwrites = kind == SEQLSTM_KIND_VECTOR_FILL || kind == SEQLSTM_KIND_VECTOR_COPY;
    for (int64_t k = 0; k < call->extent->rows; k++)
        y[k] = vector_element(kind, a, x ? x[k] : 0, overwrites ? 0 : y[k]);
    return SEQLSTM_OK;
}

const struct ref_family ref_finite_check = {.slots = finite_slots, .forward = finite_forward};
const struct ref_family ref_squared_norm = {.slots = norm_slots, .forward = norm_forward};
const struct ref_family ref_vector = {.slots = vector_slots, .forward = vector_forward};
