/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that say what a core gives at this moment: multiply-adds alone, and with the loads of a register tile.
 *
 * The first is the peak that kernels are divided by. It has no loads. Where a core's other processor is busy, with
 * another machine's work perhaps, it stays as it is and loads become slow: the second says how much of it a product can
 * have then. It is the kernels' own tile for AVX-512, 6 rows of 4 vectors: 10 loads for 24 multiply-adds. */
#ifndef TESTS_BENCH_RATES_H
#define TESTS_BENCH_RATES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#define RATES_UNROLL _Pragma("unroll")
#else
#define RATES_UNROLL _Pragma("GCC unroll 8")
#endif

/* 12 n multiply-adds of 16 lanes. */
__attribute__((target("avx512f"), unused)) static float rates_fma_avx512(int64_t n)
{
    __m512 a[12];
    for (int i = 0; i < 12; i++)
        a[i] = _mm512_set1_ps((float)i);
    const __m512 m = _mm512_set1_ps(0.999f), c = _mm512_set1_ps(0.001f);
    for (int64_t k = 0; k < n; k++) {
#define ONE(i) a[i] = _mm512_fmadd_ps(a[i], m, c);
        ONE(0) ONE(1) ONE(2) ONE(3) ONE(4) ONE(5) ONE(6) ONE(7) ONE(8) ONE(9) ONE(10) ONE(11)
#undef ONE
    }
    float sum = 0;
    for (int i = 0; i < 12; i++)
        sum += _mm512_reduce_add_ps(a[i]);
    return sum;
}

/* 24 n multiply-adds of 16 lanes. b: a ring of `bytes`, a power of two; six rows of 128 behind it. */
__attribute__((target("avx512f"), unused)) static float rates_tile_avx512(int64_t n, const float *b, size_t bytes)
{
    const float *a = b + bytes / sizeof *b;
    const size_t mask = bytes / sizeof *b - 1;
    __m512 acc[6][4];
    RATES_UNROLL for (int r = 0; r < 6; r++) {
        RATES_UNROLL for (int v = 0; v < 4; v++)
            acc[r][v] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < (size_t)n; k++) {
        const float *bk = b + (k * 64 & mask), *ak = a + (k & 127);
        __m512 bv[4];
        RATES_UNROLL for (int v = 0; v < 4; v++)
            bv[v] = _mm512_loadu_ps(bk + 16 * v);
        RATES_UNROLL for (int r = 0; r < 6; r++) {
            const __m512 av = _mm512_set1_ps(ak[r * 128]);
            RATES_UNROLL for (int v = 0; v < 4; v++)
                acc[r][v] = _mm512_fmadd_ps(av, bv[v], acc[r][v]);
        }
    }
    float sum = 0;
    for (int r = 0; r < 6; r++)
        for (int v = 0; v < 4; v++)
            sum += _mm512_reduce_add_ps(acc[r][v]);
    return sum;
}
#endif

#endif
