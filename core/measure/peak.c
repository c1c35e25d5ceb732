/* SPDX-License-Identifier: Apache-2.0 */
/* See peak.h. Twelve independent chains hide the latency of the instruction on all current processors. */
#include "measure/peak.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/memory/memory.h"
#include "base/system/clock.h"

enum { CHAINS = 12, TURNS = 100000, PASSES = 12 };

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
    const int64_t end_ns = sl_clock_ns() + SL_PEAK_NS;
    for (int pass = 0; pass < PASSES || sl_clock_ns() < end_ns; pass++) {
        struct work work = {0};
        sl_pool_team(pool, run_member, &work);
        int64_t slowest = atomic_load(&work.slowest_ns);
        double rate = slowest > 0 ? work.flops * (double)sl_pool_get_members(pool) / (double)slowest : 0;
        best = rate > best ? rate : best;
    }
    return best;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

enum { STREAM_FLOATS = 8 << 20, STREAM_PASSES = 5 };

struct stream {
    float *to, *a, *b; /* [STREAM_FLOATS] */
};

static void stream_range(void *context, int64_t begin, int64_t end)
{
    const struct stream *stream = context;
    float *restrict to = stream->to;
    const float *restrict a = stream->a, *restrict b = stream->b;
    for (int64_t i = begin; i < end; i++)
        to[i] = a[i] + 0.5f * b[i];
}

seqlstm_status sl_peak_measure_bytes(struct sl_pool *pool, double *out_gbytes, struct seqlstm_error *err)
{
    float *floats = sl_memory_alloc(NULL, 3 * (size_t)STREAM_FLOATS * sizeof *floats);
    if (!floats)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to measure the speed of memory");
    struct stream stream = {floats, floats + STREAM_FLOATS, floats + 2 * STREAM_FLOATS};
    for (int64_t i = 0; i < 3 * (int64_t)STREAM_FLOATS; i++)
        floats[i] = 1.0f;
    *out_gbytes = 0;
    for (int pass = 0; pass < STREAM_PASSES; pass++) {
        const int64_t begin = sl_clock_ns();
        sl_pool_parallel_for(pool, STREAM_FLOATS, 1 << 12, stream_range, &stream);
        const double ns = (double)(sl_clock_ns() - begin), rate = ns > 0 ? 12.0 * STREAM_FLOATS / ns : 0;
        *out_gbytes = rate > *out_gbytes ? rate : *out_gbytes;
    }
    sl_memory_free(NULL, floats);
    return SEQLSTM_OK;
}
