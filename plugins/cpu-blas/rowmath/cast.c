/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between dtypes, rounded to nearest even (compiled once for each instruction set).
 *
 * All values pass through float in blocks of 512. That is exact from 16 bits. From float64 to 16 bits, values are
 * first rounded to odd, so that two roundings give the result of one. */
#include "cpu-blas/rowmath/unit.h"

enum { BLOCK = 512 };

INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint16_t to_bfloat16(float x)
{
    uint32_t bits = bits_of(x);
    uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40u; /* quiet, and rounding never makes it an infinity */
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded);
}

INLINE uint16_t to_float16(float x)
{
    uint32_t bits = bits_of(x), sign = (bits >> 16) & 0x8000u, a = bits & 0x7FFFFFFFu;
    /* Below 2^-14: after adding 0.5, the low bits are those of the subnormal number, rounded. */
    uint32_t small = bits_of(float_of(a) + 0.5f) - 0x3F000000u;
    uint32_t normal = (a - 0x38000000u + 0xFFFu + ((a >> 13) & 1u)) >> 13;
    uint32_t r = a < 0x38800000u ? small : normal;
    r = a >= 0x477FF000u ? 0x7C00u : r; /* 65520 and above */
    r = a > 0x7F800000u ? (0x7E00u | ((a >> 13) & 0x3FFu)) : r;
    return (uint16_t)(r | sign);
}

INLINE float from_float16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = (uint32_t)(h & 0x7FFFu) << 13;
    uint32_t exponent = a & 0x0F800000u;
    uint32_t normal = a + 0x38000000u;
    uint32_t special = a + 0x70000000u;
    uint32_t small = bits_of(float_of(a + 0x38800000u) - float_of(0x38800000u));
    uint32_t r = exponent == 0 ? small : exponent == 0x0F800000u ? special : normal;
    return float_of(r | sign);
}

/* The float next to d towards zero, with its last bit set if anything was lost. */
INLINE float round_to_odd(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t bits = bits_of(f);
    bool above = (back < 0.0 ? -back : back) > (d < 0.0 ? -d : d);
    uint32_t odd = (above ? bits - 1u : bits) | 1u;
    return back == d || d != d ? f : float_of(odd);
}

static void widen(uint32_t from, bool odd, int n, const void *x, float *out)
{
    if (from == SEQLSTM_DTYPE_FLOAT32) {
        memcpy(out, x, (size_t)n * sizeof *out);
    } else if (from == SEQLSTM_DTYPE_FLOAT64) {
        const double *d = x;
        if (odd)
            for (int i = 0; i < n; i++)
                out[i] = round_to_odd(d[i]);
        else
            for (int i = 0; i < n; i++)
                out[i] = (float)d[i];
    } else if (from == SEQLSTM_DTYPE_BFLOAT16) {
        const uint16_t *h = x;
        for (int i = 0; i < n; i++)
            out[i] = float_of((uint32_t)h[i] << 16);
    } else {
        const uint16_t *h = x;
        for (int i = 0; i < n; i++)
            out[i] = from_float16(h[i]);
    }
}

static void narrow(uint32_t to, int n, const float *x, void *y)
{
    if (to == SEQLSTM_DTYPE_FLOAT32) {
        memcpy(y, x, (size_t)n * sizeof *x);
    } else if (to == SEQLSTM_DTYPE_FLOAT64) {
        double *d = y;
        for (int i = 0; i < n; i++)
            d[i] = (double)x[i];
    } else if (to == SEQLSTM_DTYPE_BFLOAT16) {
        uint16_t *h = y;
        for (int i = 0; i < n; i++)
            h[i] = to_bfloat16(x[i]);
    } else {
        uint16_t *h = y;
        for (int i = 0; i < n; i++)
            h[i] = to_float16(x[i]);
    }
}

static size_t bytes_of(uint32_t dtype)
{
    return dtype == SEQLSTM_DTYPE_FLOAT64 ? 8 : dtype == SEQLSTM_DTYPE_FLOAT32 ? 4 : 2;
}

void BLAS_NAME(cast)(uint32_t from, uint32_t to, int64_t n, const void *x, void *y)
{
    if (from == to) {
        memcpy(y, x, (size_t)n * bytes_of(from));
        return;
    }
    const bool odd = to == SEQLSTM_DTYPE_BFLOAT16 || to == SEQLSTM_DTYPE_FLOAT16;
    float block[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int count = n - i < BLOCK ? (int)(n - i) : BLOCK;
        widen(from, odd, count, (const char *)x + (size_t)i * bytes_of(from), block);
        narrow(to, count, block, (char *)y + (size_t)i * bytes_of(to));
    }
}
