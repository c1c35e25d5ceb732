/* SPDX-License-Identifier: Apache-2.0 */
/* See peak.h. Twelve independent chains hide the latency of the instruction on all current processors. */
#include "measure/peak.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/system/clock.h"

enum { CHAINS = 12, TURNS = 20000, PASSES = 12 };

struct work {
    _Atomic int64_t slowest_ns;
    _Atomic uint32_t sink; /* keeps the compiler from optimising the work away */
    double flops;          /* those of one member */
};

/* x = x * a + b in CHAINS vectors of `lanes` floats, four times in each iteration. */
#define CHAIN_BODY(vector, lanes, FMA)                                                                                 \
    vector x[CHAINS], a, b;                                                                                            \
    for (int k = 0; k < (lanes); k++)                                                                                  \
        a[k] = 0.999f, b[k] = 1e-3f;                                                                                   \
    for (int c = 0; c < CHAINS; c++)                                                                                   \
        x[c] = b * (float)c;                                                                                           \
    for (int t = 0; t < turns; t += 4) {                                                                               \
        _Pragma("GCC unroll 48") for (int c = 0; c < 4 * CHAINS; c++) x[c % CHAINS] = FMA(x[c % CHAINS], a, b);        \
        __asm__ volatile("" : "+r"(turns));                                                                            \
    }                                                                                                                  \
    float sum = 0;                                                                                                     \
    for (int c = 0; c < CHAINS; c++)                                                                                   \
        sum += x[c][0];                                                                                                \
    return sum

typedef float vector_4 __attribute__((vector_size(16)));
#define PLAIN(x, a, b) ((x) * (a) + (b))

static float chain_4(int turns)
{
    CHAIN_BODY(vector_4, 4, PLAIN);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static float chain_8(int turns)
{
    CHAIN_BODY(__m256, 8, _mm256_fmadd_ps);
}

__attribute__((target("avx512f"))) static float chain_16(int turns)
{
    CHAIN_BODY(__m512, 16, _mm512_fmadd_ps);
}
#endif

float sl_peak_run_chain(int turns, double *out_flops)
{
    int lanes = 4;
    float result = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        lanes = 16;
        result = chain_16(turns);
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        lanes = 8;
        result = chain_8(turns);
    } else {
        result = chain_4(turns);
    }
#else
    result = chain_4(turns);
#endif
    *out_flops = 2.0 * lanes * CHAINS * turns;
    return result;
}

static void run_member(void *context, int32_t member, int32_t members)
{
    struct work *work = context;
    double flops;
    (void)members;
    int64_t begin = sl_clock_ns();
    float result = sl_peak_run_chain(TURNS, &flops);
    int64_t took = sl_clock_ns() - begin, before = atomic_load(&work->slowest_ns);
    uint32_t bits;
    memcpy(&bits, &result, sizeof bits);
    atomic_fetch_xor(&work->sink, bits);
    while (took > before && !atomic_compare_exchange_weak(&work->slowest_ns, &before, took)) {
    }
    if (member == 0)
        work->flops = flops;
}

double sl_peak_measure(struct sl_pool *pool)
{
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        struct work work = {0};
        sl_pool_team(pool, run_member, &work);
        int64_t slowest = atomic_load(&work.slowest_ns);
        double rate = slowest > 0 ? work.flops * (double)sl_pool_get_members(pool) / (double)slowest : 0;
        best = rate > best ? rate : best;
    }
    return best;
}
