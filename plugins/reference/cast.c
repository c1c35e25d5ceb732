/* SPDX-License-Identifier: Apache-2.0 */
/* CAST between float32, float64, float16 and bfloat16; rounds to nearest, ties to even.
 *
 * float32 slots arrive as float64, as in all operations, so each end is float64 or one of the 16-bit types. */
#include <math.h>

#include "reference.h"

/* Rounds |x| to `bits` significant bits, but no finer than 2^min_exponent. */
static double round_to(double x, int bits, int min_exponent)
{
    if (x == 0 || !isfinite(x))
        return x;
    int exponent;
    frexp(x, &exponent); /* |x| in [2^(exponent-1), 2^exponent) */
    int unit = exponent - bits;
    if (unit < min_exponent)
        unit = min_exponent;
    return ldexp(nearbyint(ldexp(x, -unit)), unit);
}

/* The bits of x in a format of `fraction` fraction bits and `exponent` exponent bits. */
static uint16_t encode(double x, int fraction, int exponent)
{
    const int bias = (1 << (exponent - 1)) - 1;
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const uint16_t infinity = (uint16_t)(((1 << exponent) - 1) << fraction);
    if (isnan(x))
        return (uint16_t)(sign | infinity | 1u << (fraction - 1));
    double m = fabs(round_to(x, fraction + 1, 1 - bias - fraction));
    if (m >= ldexp(1, bias + 1))
        return sign | infinity;
    if (m < ldexp(1, 1 - bias)) /* zero and subnormals */
        return (uint16_t)(sign | (uint16_t)ldexp(m, bias - 1 + fraction));
    int e;
    m = frexp(m, &e) * 2 - 1; /* m in [0, 1), x = (1 + m) 2^(e-1) */
    return (uint16_t)(sign | (uint16_t)((e - 1 + bias) << fraction) | (uint16_t)ldexp(m, fraction));
}

static double decode(uint16_t word, int fraction, int exponent)
{
    const int bias = (1 << (exponent - 1)) - 1, e = word >> fraction & ((1 << exponent) - 1);
    const int f = word & ((1 << fraction) - 1);
    double x;
    if (e == (1 << exponent) - 1)
        x = f ? (double)NAN : (double)INFINITY;
    else
        x = e ? ldexp(f + (1 << fraction), e - bias - fraction) : ldexp(f, 1 - bias - fraction);
    return word & 0x8000 ? -x : x;
}

static double read_element(const void *from, uint32_t dtype, int64_t k)
{
    if (dtype == SEQLSTM_DTYPE_BFLOAT16)
        return decode(((const uint16_t *)from)[k], 7, 8);
    if (dtype == SEQLSTM_DTYPE_FLOAT16)
        return decode(((const uint16_t *)from)[k], 10, 5);
    return ((const double *)from)[k];
}

static void write_element(void *to, uint32_t dtype, int64_t k, double x)
{
    if (dtype == SEQLSTM_DTYPE_BFLOAT16)
        ((uint16_t *)to)[k] = encode(x, 7, 8);
    else if (dtype == SEQLSTM_DTYPE_FLOAT16)
        ((uint16_t *)to)[k] = encode(x, 10, 5);
    else
        ((double *)to)[k] = x;
}

static int32_t slots(const union seqlstm_any_desc *desc, const struct ref_extent *extent, struct ref_slot *slot)
{
    const int64_t n = extent->rows * desc->cast.features;
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_UNARY_X], REF_INPUT, desc->cast.from, n);
    ref_slot_set_typed(&slot[SEQLSTM_SLOT_UNARY_Y], REF_OUTPUT, desc->cast.to, n);
    return SEQLSTM_SLOT_UNARY_COUNT;
}

static void convert(const struct ref_call *call, const void *from, uint32_t from_dtype, void *to, uint32_t to_dtype)
{
    const int64_t n = call->extent->rows * call->desc->cast.features;
    for (int64_t k = 0; k < n; k++)
        write_element(to, to_dtype, k, read_element(from, from_dtype, k));
}

static seqlstm_status forward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_cast_desc *d = &call->desc->cast;
    convert(call, call->values[SEQLSTM_SLOT_UNARY_X], d->from, call->values[SEQLSTM_SLOT_UNARY_Y], d->to);
    return SEQLSTM_OK;
}

static seqlstm_status backward(const struct ref_call *call, struct seqlstm_error *err)
{
    (void)err;
    const struct seqlstm_cast_desc *d = &call->desc->cast;
    const void *dy = call->grads[SEQLSTM_SLOT_UNARY_Y];
    void *dx = call->grads[SEQLSTM_SLOT_UNARY_X];
    if (dx && dy)
        convert(call, dy, d->to, dx, d->from);
    else if (dx)
        for (int64_t k = 0; k < call->extent->rows * d->features; k++)
            write_element(dx, d->from, k, 0);
    return SEQLSTM_OK;
}

const struct ref_family ref_cast = {.slots = slots, .forward = forward, .backward = backward};
