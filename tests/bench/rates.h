/* SPDX-License-Identifier: Apache-2.0 */
/* What a core gives a product at this moment: multiply-adds with the loads of a register tile.
 *
 * The peak that kernels are divided by (core/measure/peak.h) has no loads. Where a core's other processor is busy, with
 * another machine's work perhaps, it stays as it is and loads become slow: this says how much of it a product can have
 * then. It is the kernels' own tile: for AVX-512 6 rows of 4 vectors, 10 loads for 24 multiply-adds; for AVX2 6 rows of
 * 2, 8 for 12. */
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
    RATES_UNROLL for (int r = 0; r < 6; r++)
    {
        RATES_UNROLL for (int v = 0; v < 4; v++) acc[r][v] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < (size_t)n; k++) {
        const float *bk = b + (k * 64 & mask), *ak = a + (k & 127);
        __m512 bv[4];
        RATES_UNROLL for (int v = 0; v < 4; v++) bv[v] = _mm512_loadu_ps(bk + 16 * v);
        RATES_UNROLL for (int r = 0; r < 6; r++)
        {
            const __m512 av = _mm512_set1_ps(ak[r * 128]);
            RATES_UNROLL for (int v = 0; v < 4; v++) acc[r][v] = _mm512_fmadd_ps(av, bv[v], acc[r][v]);
        }
    }
    float sum = 0;
    for (int r = 0; r < 6; r++)
        for (int v = 0; v < 4; v++)
            sum += _mm512_reduce_add_ps(acc[r][v]);
    return sum;
}

#define RATES_B(k) "vmovups 64*" #k "(%[b]), %%ymm12\n\tvmovups 64*" #k "+32(%[b]), %%ymm13\n\t"
#define RATES_ROW(k, r, from, to)                                                                                      \
    "vbroadcastss 4*" #k from ", %%ymm" #to "\n\tvfmadd231ps %%ymm12, %%ymm" #to ", %[c" #r "0]\n\t"                   \
    "vfmadd231ps %%ymm13, %%ymm" #to ", %[c" #r "1]\n\t"
#define RATES_K(k)                                                                                                     \
    RATES_B(k)                                                                                                         \
    RATES_ROW(k, 0, "(%[a])", 14)                                                                                      \
    RATES_ROW(k, 1, "(%[a],%[s])", 15)                                                                                 \
    RATES_ROW(k, 2, "(%[a],%[s],2)", 14)                                                                               \
    RATES_ROW(k, 3, "(%[a3])", 15) RATES_ROW(k, 4, "(%[a3],%[s])", 14) RATES_ROW(k, 5, "(%[a3],%[s],2)", 15)
#define RATES_SUM(r) [c##r##0] "+x"(acc[r][0]), [c##r##1] "+x"(acc[r][1])

/* The same of 12 n multiply-adds of 8 lanes, four k a turn; in assembly, as the kernels' own. */
__attribute__((target("avx2,fma"))) static float rates_tile_avx2(int64_t n, const float *b, size_t bytes)
{
    const float *a = b + bytes / sizeof *b;
    const size_t mask = bytes / sizeof *b - 1, row = 128;
    __m256 acc[6][2];
    RATES_UNROLL for (int r = 0; r < 6; r++) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < (size_t)n; k += 4) {
        const float *ak = a + (k & 127), *bk = b + (k * 16 & mask);
        __asm__ volatile(RATES_K(0) RATES_K(1) RATES_K(2) RATES_K(3)
                         : RATES_SUM(0), RATES_SUM(1), RATES_SUM(2), RATES_SUM(3), RATES_SUM(4), RATES_SUM(5)
                         : [a] "r"(ak), [a3] "r"(ak + 3 * row), [s] "r"(row * 4), [b] "r"(bk)
                         : "xmm12", "xmm13", "xmm14", "xmm15", "memory");
    }
    float sum = 0;
    RATES_UNROLL for (int r = 0; r < 6; r++) sum += acc[r][0][0] + acc[r][1][0];
    return sum;
}
#endif

/* `turns` times the multiply-adds of a tile, a multiple of four; *out_flops: of all, 0 where the processor has no AVX2.
 * `b` as above. */
static float rates_run_tile(int64_t turns, const float *b, size_t bytes, double *out_flops)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        *out_flops = 2.0 * 16 * 24 * (double)turns;
        return rates_tile_avx512(turns, b, bytes);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *out_flops = 2.0 * 8 * 12 * (double)turns;
        return rates_tile_avx2(turns, b, bytes);
    }
#endif
    (void)turns, (void)b, (void)bytes;
    *out_flops = 0;
    return 0;
}

#endif
