/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of floats in the compiler's own type, with exp, tanh, sigmoid and log1p.
 *
 * For the units that are compiled once for each instruction set (meson.build): BLAS_LANES is 16, 8 or 4. All
 * functions are static and inlined. All propagate NaN. The error is below 3 units in the last place over the whole
 * range; results under 1.2e-38 become 0. */
#ifndef BLAS_LANES_H
#define BLAS_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "cpu-blas/isa/unit.h"

typedef float vf __attribute__((vector_size(4 * BLAS_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * BLAS_LANES)));
typedef float vf_mem __attribute__((vector_size(4 * BLAS_LANES), aligned(4), may_alias));

INLINE vf v_load(const float *p)
{
    return *(const vf_mem *)p;
}

INLINE void v_store(float *p, vf v)
{
    *(vf_mem *)p = v;
}

INLINE vf v_set(float x)
{
    return (vf){0} + x;
}

/* Loads the first n < BLAS_LANES elements; the others are `fill`. */
INLINE vf v_load_tail(const float *p, int n, float fill)
{
#if BLAS_LANES == 16 && defined(__AVX512F__)
    return (vf)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), (__mmask16)((1u << n) - 1u), p);
#else
    float part[BLAS_LANES];
    for (int i = 0; i < BLAS_LANES; i++)
        part[i] = fill;
    for (int i = 0; i < n; i++)
        part[i] = p[i];
    return v_load(part);
#endif
}

INLINE void v_store_tail(float *p, int n, vf v)
{
#if BLAS_LANES == 16 && defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)v);
#else
    float part[BLAS_LANES];
    v_store(part, v);
    for (int i = 0; i < n; i++)
        p[i] = part[i];
#endif
}

INLINE vf v_select(vi mask, vf yes, vf no)
{
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* Returns b where a is NaN. */
INLINE vf v_max(vf a, vf b)
{
#if BLAS_LANES == 16 && defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif BLAS_LANES == 8 && defined(__AVX__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return v_select(a > b, a, b);
#endif
}

INLINE vf v_abs(vf x)
{
    return (vf)((vi)x & 0x7FFFFFFF);
}

/* The sum of the elements, in the fixed order of a binary tree. */
INLINE float v_sum(vf v)
{
    float part[BLAS_LANES];
    v_store(part, v);
    for (int width = BLAS_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            part[i] += part[i + width];
    return part[0];
}

INLINE float v_largest(vf v)
{
    float part[BLAS_LANES];
    v_store(part, v);
    for (int width = BLAS_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            part[i] = part[i] > part[i + width] ? part[i] : part[i + width];
    return part[0];
}

/* x = n ln 2 + r with |r| <= ln 2 / 2; *scale = 2^n. For -87.4 < x < 88. */
INLINE vf v_reduce(vf x, vf *scale)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: rounds to an integer in the low bits */
    vf t = x * 1.44269504f + magic;
    vf n = t - magic;
    *scale = (vf)(((vi)t - (0x4B400000 - 127)) << 23);
    vf r = x - n * 0.693359375f;
    return r + n * 2.12194440e-4f;
}

/* (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2: its Taylor series, remainder 5e-9. */
INLINE vf v_exp_rest(vf r)
{
    vf p = r * (1.0f / 5040.0f) + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    return p * r + 0.5f;
}

/* exp(x) for x <= 88; exactly 0 below -87.33 and for -infinity. */
INLINE vf v_exp(vf x)
{
    const float low = -87.33f;
    vi under = x < low;
    vf scale, r = v_reduce(v_select(under, v_set(low), x), &scale);
    vf e = (v_exp_rest(r) * (r * r) + r) * scale + scale;
    return (vf)(~under & (vi)e);
}

/* exp(x) - 1 for x <= 0, exact to the last places near 0. */
INLINE vf v_expm1(vf x)
{
    const float low = -40.0f;
    vf scale, r = v_reduce(v_select(x < low, v_set(low), x), &scale);
    return (v_exp_rest(r) * (r * r) + r) * scale + (scale - 1.0f);
}

INLINE vf v_sigmoid(vf x)
{
    vf e = v_exp((vf)((vi)x | (int32_t)0x80000000));
    vf s = 1.0f / (1.0f + e);
    return v_select(x < 0.0f, e * s, s);
}

INLINE vf v_tanh(vf x)
{
    vi sign = (vi)x & (int32_t)0x80000000;
    vf e = v_expm1(v_abs(x) * -2.0f);
    return (vf)((vi)(-e / (e + 2.0f)) | sign);
}

/* log(1 + u) for 0 <= u <= 1: 2 atanh(u / (2 + u)). */
INLINE vf v_log1p(vf u)
{
    vf s = u / (u + 2.0f), q = s * s;
    vf p = q * (1.0f / 15.0f) + 1.0f / 13.0f;
    p = p * q + 1.0f / 11.0f;
    p = p * q + 1.0f / 9.0f;
    p = p * q + 1.0f / 7.0f;
    p = p * q + 1.0f / 5.0f;
    p = p * q + 1.0f / 3.0f;
    vf d = s + s;
    return d * (p * q) + d;
}

/* log(1 + exp(x)) without overflow. */
INLINE vf v_softplus(vf x)
{
    vf rest = v_log1p(v_exp((vf)((vi)x | (int32_t)0x80000000)));
    return v_select(x > 0.0f, x + rest, rest);
}

#endif
