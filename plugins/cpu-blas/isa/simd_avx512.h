/* SPDX-License-Identifier: Apache-2.0 */
/* The vector operations of the kernels, for AVX-512 F, BW, DQ and VL.
 *
 * simd_avx2.h and simd_portable.h define the same names for other instruction sets. Kernels are written once, in
 * terms of these names. `v_min` and `v_max` return the second operand where it is NaN. */
#ifndef BLAS_SIMD_AVX512_H
#define BLAS_SIMD_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VW              16 /* floats in a vector */
#define NN_ROWS         6  /* rows of a register tile in a product */
#define NN_VECTORS      4  /* vectors of a register tile: 24 accumulators */
#define BLAS_SIMD_SCALE 1  /* v_fraction, v_floor_rest and v_scale are one instruction each */

typedef __m512 vf;
typedef __mmask16 vm;

static inline vf v_zero(void)
{
    return _mm512_setzero_ps();
}
static inline vf v_set(float x)
{
    return _mm512_set1_ps(x);
}
/* A constant that is used in many lanes. Where registers are few, a compiler would load it for each lane. */
static inline vf v_constant(float x)
{
    return v_set(x);
}
static inline vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
/* Loads a value that is used more than once. Otherwise the compiler may fold the load into each use and load it
 * again. */
static inline vf v_load_once(const float *p)
{
    vf a = v_load(p);
    __asm__("" : "+v"(a));
    return a;
}
static inline void v_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}
static inline vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
static inline vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
static inline vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
static inline vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
static inline vf v_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
static inline vf v_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
/* a b + c, and c - a b */
static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
static inline vf v_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
/* 2^n, where n + 127 is the integer that was rounded into the low bits of `pushed` = n + 127 + 1.5 2^23 */
static inline vf v_pow2_pushed(vf pushed)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pushed), 23));
}
static inline vf v_abs(vf a)
{
    return _mm512_abs_ps(a);
}
/* a minus the nearest integer, and a minus the next lower integer; 0 for infinity */
static inline vf v_fraction(vf a)
{
    return _mm512_reduce_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vf v_floor_rest(vf a)
{
    return _mm512_reduce_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
/* a 2^n, where n is the integer below t */
static inline vf v_scale(vf a, vf t)
{
    return _mm512_scalef_ps(a, t);
}

/* 1 / a for 1 <= a < 2^127, to about one unit in the last place; NaN stays NaN. */
static inline vf v_reciprocal(vf a)
{
    vf y = _mm512_rcp14_ps(a);
    return v_fma(y, v_fnma(a, y, v_set(1.0f)), y);
}

static inline vm v_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
static inline vm v_ge(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ);
}
static inline vm v_le(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
static inline vm v_both(vm a, vm b)
{
    return a & b;
}
/* m ? a : b */
static inline vf v_select(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
/* Stores the mask in the last bit of each number, and reads it back. */
static inline vf v_mark(vm m, vf a)
{
    const __m512i one = _mm512_set1_epi32(1), rest = _mm512_andnot_si512(one, _mm512_castps_si512(a));
    return _mm512_castsi512_ps(_mm512_mask_or_epi32(rest, m, rest, one));
}
static inline vm v_marked(vf a)
{
    return _mm512_test_epi32_mask(_mm512_castps_si512(a), _mm512_set1_epi32(1));
}
/* Lane i is set if bit i of the word is. */
static inline vm v_bits(uint32_t bits)
{
    return (vm)bits;
}

static inline vm v_first_mask(int n)
{
    return n >= VW ? (vm)0xFFFF : n <= 0 ? (vm)0 : (vm)((1u << n) - 1u);
}
/* The first n lanes (n <= 0: none, n >= VW: all); the others are zero. */
static inline vf v_first(vf a, int n)
{
    return _mm512_maskz_mov_ps(v_first_mask(n), a);
}
static inline vf v_load_first(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(v_first_mask(n), p);
}
static inline void v_store_first(float *p, vf a, int n)
{
    _mm512_mask_storeu_ps(p, v_first_mask(n), a);
}
/* Stores a vector. If `stream`, the store bypasses the caches, p must be a multiple of 64 bytes, and other threads
 * see the result only after v_stream_end. */
static inline void v_put(bool stream, float *p, vf a)
{
    if (stream)
        _mm512_stream_ps(p, a);
    else
        v_store(p, a);
}
static inline void v_stream_end(void)
{
    _mm_sfence();
}
static inline float v_sum(vf a)
{
    return _mm512_reduce_add_ps(a);
}

/* Transposes a 16 x 16 block: out[c * out_row + r] = in[r * in_row + c]. Rows from `rows` on are zero, and columns
 * of `in` from `columns` on are read as zero. `stream`: store as v_put does. Lanes are placed during the load, which
 * saves half of the shuffles. */
static inline void v_transpose16(bool stream, const float *in, int64_t in_row, int rows, int columns, float *out,
                                 int64_t out_row)
{
    float whole[16 * 16];
    if (rows < 16 || columns < 16) {
        for (int i = 0; i < 16; i++)
            v_store(whole + i * 16, i < rows ? v_load_first(in + i * in_row, columns) : v_zero());
        in = whole;
        in_row = 16;
    }
    for (int c = 0; c < 16; c += 4) {
        __m512 r[4];
        for (int j = 0; j < 4; j++) {
            const float *from = in + j * in_row + c;
            r[j] = _mm512_castps128_ps512(_mm_loadu_ps(from));
            r[j] = _mm512_insertf32x4(r[j], _mm_loadu_ps(from + 4 * in_row), 1);
            r[j] = _mm512_insertf32x4(r[j], _mm_loadu_ps(from + 8 * in_row), 2);
            r[j] = _mm512_insertf32x4(r[j], _mm_loadu_ps(from + 12 * in_row), 3);
        }
        const __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1]));
        const __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
        const __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3]));
        const __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
        v_put(stream, out + c * out_row, _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23)));
        v_put(stream, out + (c + 1) * out_row, _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23)));
        v_put(stream, out + (c + 2) * out_row, _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23)));
        v_put(stream, out + (c + 3) * out_row, _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23)));
    }
}

#endif
