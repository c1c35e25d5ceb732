/* SPDX-License-Identifier: Apache-2.0 */
/* What a core gives a product at this moment: multiply-adds with the loads of a register tile.
 *
 * The peak that kernels are divided by (core/lab/peak.h) has no loads. Where a core's other processor is busy, with
 * another machine's work perhaps, it stays as it is and loads become slow: this says how much of it a product can have
 * then. It is the kernels' own tile for AVX-512, 6 rows of 4 vectors: 10 loads for 24 multiply-adds. */
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

/* 24 n multiply-adds of 16 lanes. b: a ring of `bytes`, a power of two; six rows of 128 behind it. */
__attribute__((target("avx512f"))) static float rates_tile_avx512(int64_t n, const float *b, size_t bytes)
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

/* `turns` times 24 multiply-adds of a tile; *out_flops: of all, 0 where the processor has no AVX-512. `b` as above. */
static float rates_run_tile(int64_t turns, const float *b, size_t bytes, double *out_flops)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        *out_flops = 2.0 * 16 * 24 * (double)turns;
        return rates_tile_avx512(turns, b, bytes);
    }
#endif
    (void)turns, (void)b, (void)bytes;
    *out_flops = 0;
    return 0;
}

#endif
