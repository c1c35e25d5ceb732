/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between float64 and the dtypes of slots. */
#include <math.h>
#include <string.h>

#include "judge/data.h"

/* Rounds to `bits` significant bits (24, 11, 8), but no finer than 2^low (subnormals). */
static double round_to(double value, int bits, int low)
{
    if (value == 0 || !isfinite(value))
        return value;
    int exponent;
    frexp(value, &exponent);
    int unit = exponent - bits < low ? low : exponent - bits;
    return ldexp(nearbyint(ldexp(value, -unit)), unit);
}

double sl_dtype_round(uint32_t dtype, double value)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT64:
        return value;
    case SEQLSTM_DTYPE_BFLOAT16:
        return round_to(value, 8, -133);
    case SEQLSTM_DTYPE_FLOAT16: {
        double rounded = round_to(value, 11, -24);
        return fabs(rounded) >= 65520 ? copysign(INFINITY, rounded) : rounded;
    }
    case SEQLSTM_DTYPE_FLOAT32:
    case SEQLSTM_DTYPE_TF32:
        return (double)(float)value;
    default:
        return nearbyint(value);
    }
}

double sl_dtype_eps(uint32_t dtype)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT64:
        return ldexp(1, -53);
    case SEQLSTM_DTYPE_TF32:
    case SEQLSTM_DTYPE_FLOAT16:
        return ldexp(1, -11);
    case SEQLSTM_DTYPE_BFLOAT16:
        return ldexp(1, -8);
    case SEQLSTM_DTYPE_INT8: /* half a step of 1/127 of the largest value: twice that of a typical one */
        return ldexp(1, -7);
    default:
        return ldexp(1, -24);
    }
}

static uint16_t to_bfloat16(double value)
{
    float rounded = (float)sl_dtype_round(SEQLSTM_DTYPE_BFLOAT16, value);
    uint32_t bits;
    memcpy(&bits, &rounded, 4);
    return (uint16_t)(bits >> 16);
}

static double from_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, 4);
    return (double)value;
}

static uint16_t to_float16(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return 0x7E00;
    double v = fabs(sl_dtype_round(SEQLSTM_DTYPE_FLOAT16, value));
    if (isinf(v))
        return (uint16_t)(sign | 0x7C00);
    if (v < ldexp(1, -14))
        return (uint16_t)(sign | (uint16_t)ldexp(v, 24));
    int exponent;
    double fraction = frexp(v, &exponent); /* [0.5, 1) */
    return (uint16_t)(sign | ((exponent + 14) << 10) | ((int)ldexp(fraction, 11) & 0x3FF));
}

static double from_float16(uint16_t half)
{
    int exponent = (half >> 10) & 31, fraction = half & 0x3FF;
    double v = exponent == 31  ? (fraction ? NAN : INFINITY)
               : exponent == 0 ? ldexp(fraction, -24)
                               : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -v : v;
}

void sl_dtype_store(uint32_t dtype, void *to, const double *from, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++)
        switch (dtype) {
        case SEQLSTM_DTYPE_FLOAT64:
            ((double *)to)[i] = from[i];
            break;
        case SEQLSTM_DTYPE_INT32:
            ((int32_t *)to)[i] = (int32_t)from[i];
            break;
        case SEQLSTM_DTYPE_INT8:
        case SEQLSTM_DTYPE_UINT8:
            ((uint8_t *)to)[i] = (uint8_t)(int32_t)from[i];
            break;
        case SEQLSTM_DTYPE_BFLOAT16:
            ((uint16_t *)to)[i] = to_bfloat16(from[i]);
            break;
        case SEQLSTM_DTYPE_FLOAT16:
            ((uint16_t *)to)[i] = to_float16(from[i]);
            break;
        default:
            ((float *)to)[i] = (float)from[i];
        }
}

void sl_dtype_load(uint32_t dtype, const void *from, double *to, int64_t elems)
{
    for (int64_t i = 0; i < elems; i++)
        switch (dtype) {
        case SEQLSTM_DTYPE_FLOAT64:
            to[i] = ((const double *)from)[i];
            break;
        case SEQLSTM_DTYPE_INT32:
            to[i] = ((const int32_t *)from)[i];
            break;
        case SEQLSTM_DTYPE_INT8:
            to[i] = ((const int8_t *)from)[i];
            break;
        case SEQLSTM_DTYPE_UINT8:
            to[i] = ((const uint8_t *)from)[i];
            break;
        case SEQLSTM_DTYPE_BFLOAT16:
            to[i] = from_bfloat16(((const uint16_t *)from)[i]);
            break;
        case SEQLSTM_DTYPE_FLOAT16:
            to[i] = from_float16(((const uint16_t *)from)[i]);
            break;
        default:
            to[i] = (double)((const float *)from)[i];
        }
}

bool sl_slot_is_float(const struct sl_slot *slot)
{
    return slot->dtype != SEQLSTM_DTYPE_INT32 && slot->dtype != SEQLSTM_DTYPE_INT8 &&
           slot->dtype != SEQLSTM_DTYPE_UINT8;
}
