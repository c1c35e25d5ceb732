/* SPDX-License-Identifier: Apache-2.0 */
/* The vector operations of simd_avx512.h for AVX2 and FMA. */
#ifndef BLAS_SIMD_AVX2_H
#define BLAS_SIMD_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VW         8
#define NN_ROWS    6
#define NN_VECTORS 8 /* in a tile of one row; tiles of more rows have at most 12 accumulators in 16 registers */

typedef __m256 vf;
typedef __m256 vm;

static inline vf v_zero(void)
{
    return _mm256_setzero_ps();
}
static inline vf v_set(float x)
{
    return _mm256_set1_ps(x);
}
static inline vf v_constant(float x)
{
    vf a = v_set(x);
    __asm__("" : "+x"(a));
    return a;
}
static inline vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
/* Loads a value that is used more than once. Otherwise the compiler may fold the load into each use and load it
 * again. */
static inline vf v_load_once(const float *p)
{
    vf a = v_load(p);
    __asm__("" : "+x"(a));
    return a;
}
static inline void v_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}
static inline vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
static inline vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
static inline vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
static inline vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
static inline vf v_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
static inline vf v_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
static inline vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
static inline vf v_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
static inline vf v_pow2_pushed(vf pushed)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pushed), 23));
}
static inline vf v_abs(vf a)
{
    return _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF)));
}
static inline vf v_reciprocal(vf a)
{
    return _mm256_div_ps(v_set(1.0f), a);
}
static inline vm v_gt(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GT_OQ);
}
static inline vm v_ge(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_GE_OQ);
}
static inline vm v_le(vf a, vf b)
{
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
static inline vm v_both(vm a, vm b)
{
    return _mm256_and_ps(a, b);
}
static inline vf v_select(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, m);
}
static inline vf v_mark(vm m, vf a)
{
    const __m256 one = _mm256_castsi256_ps(_mm256_set1_epi32(1));
    return _mm256_or_ps(_mm256_andnot_ps(one, a), _mm256_and_ps(one, m));
}
static inline vm v_marked(vf a)
{
    const __m256i one = _mm256_set1_epi32(1);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(a), one), one));
}
static inline vm v_bits(uint32_t bits)
{
    const __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i word = _mm256_and_si256(_mm256_set1_epi32((int)bits), lane);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(word, lane));
}
static inline __m256i v_first_lanes(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf v_first(vf a, int n)
{
    return _mm256_and_ps(a, _mm256_castsi256_ps(v_first_lanes(n)));
}
static inline vf v_load_first(const float *p, int n)
{
    return _mm256_maskload_ps(p, v_first_lanes(n));
}
static inline void v_store_first(float *p, vf a, int n)
{
    _mm256_maskstore_ps(p, v_first_lanes(n), a);
}
static inline void v_put(bool stream, float *p, vf a)
{
    if (stream)
        _mm256_stream_ps(p, a);
    else
        v_store(p, a);
}
static inline void v_stream_end(void)
{
    _mm_sfence();
}
static inline float v_sum(vf a)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_shuffle_ps(s, s, 1));
    return _mm_cvtss_f32(s);
}
/* As in simd_avx512.h, eight rows at once. */
static inline void v_transpose16(bool stream, const float *in, int64_t in_row, int rows, int columns, float *out,
                                 int64_t out_row)
{
    float whole[16 * 16];
    if (rows < 16 || columns < 16) {
        for (int i = 0; i < 16; i++) {
            for (int c = 0; c < 16; c += VW)
                v_store(whole + i * 16 + c,
                        i < rows && c < columns ? v_load_first(in + i * in_row + c, columns - c) : v_zero());
        }
        in = whole;
        in_row = 16;
    }
    for (int c = 0; c < 16; c += 4) {
        for (int half = 0; half < 16; half += VW) {
            vf r[4];
            for (int j = 0; j < 4; j++) {
                const float *from = in + (half + j) * in_row + c;
                r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * in_row),
                                            1);
            }
            const __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1]));
            const __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
            const __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3]));
            const __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
            float *to = out + c * out_row + half;
            v_put(stream, to, _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23)));
            v_put(stream, to + out_row, _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23)));
            v_put(stream, to + 2 * out_row, _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23)));
            v_put(stream, to + 3 * out_row, _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23)));
        }
    }
}

#endif
