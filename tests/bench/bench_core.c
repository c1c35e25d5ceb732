/* SPDX-License-Identifier: Apache-2.0 */
/* What one core gives at this moment: multiply-adds alone, multiply-adds with the loads of a register tile whose
 * operands lie in so many KiB (rates.h), and reads by size; then the same loops for 20 ms on end, under which a core
 * lowers its clock, and not as far under multiply-adds alone; then loads that wait for each other, one in each of so
 * many pages, where the system maps 2 MiB at once and where it maps 4 KiB. bench_core [ROUNDS]
 *
 * Loops are timed in turn; shown are the median of the rounds, and their first and last tenth. For AVX-512 and AVX2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/system/clock.h"
#include "measure/peak.h"

#include "rates.h"

#if defined(__x86_64__)
enum { ROUNDS_MAX = 1001, LOOPS = 4, SIZES = 9, TURNS = 20000 };
enum { RINGS = 7, PAGES_MAX = 16384, PAGE_BYTES = 4096, LINE_BYTES = 64, LOADS = 20000 };

static const char *const loop_names[LOOPS] = {"multiply-adds alone", "tile, 4 KiB", "tile, 32 KiB", "tile, 512 KiB"};
static const size_t loop_bytes[LOOPS] = {0, 4u << 10, 32u << 10, 512u << 10};
static const size_t read_kib[SIZES] = {32, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

static const int ring_pages[RINGS] = {16, 64, 128, 512, 2048, 8192, PAGES_MAX};

static float sink;
static void *volatile last; /* place in a ring */

__attribute__((target("avx512f"), noinline)) static void read_through_avx512(const float *x, size_t bytes)
{
    __m512i sum[4];
    RATES_UNROLL for (int i = 0; i < 4; i++) sum[i] = _mm512_setzero_si512();
    for (size_t k = 0; k < bytes / 4; k += 64)
        RATES_UNROLL for (int i = 0; i < 4; i++) sum[i] = _mm512_or_si512(sum[i], _mm512_loadu_si512(x + k + 16 * i));
    for (int i = 0; i < 4; i++)
        sink += (float)sum[i][0];
}

__attribute__((target("avx2"), noinline)) static void read_through_avx2(const float *x, size_t bytes)
{
    __m256i sum[8];
    RATES_UNROLL for (int i = 0; i < 8; i++) sum[i] = _mm256_setzero_si256();
    for (size_t k = 0; k < bytes / 4; k += 64)
        RATES_UNROLL for (int i = 0; i < 8; i++) sum[i] =
            _mm256_or_si256(sum[i], _mm256_loadu_si256((const __m256i *)(const void *)(x + k + 8 * i)));
    for (int i = 0; i < 8; i++)
        sink += (float)sum[i][0];
}

static void read_through(const float *x, size_t bytes)
{
    (__builtin_cpu_supports("avx512f") ? read_through_avx512 : read_through_avx2)(x, bytes);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void row(const char *name, double *x, int n, double peak)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    printf("| %s | %.1f | %.1f | %.1f |", name, x[n / 2], x[n / 10], x[n * 9 / 10]);
    if (peak > 0)
        printf(" %.2f |", x[n / 2] / peak);
    printf("\n");
}

static float run_loop(int i, const float *x, double *out_flops)
{
    return loop_bytes[i] == 0 ? sl_peak_run_chain(2 * TURNS, out_flops)
                              : rates_run_tile(TURNS, x, loop_bytes[i], out_flops);
}

static void show_rates(const char *title, double rates[LOOPS][ROUNDS_MAX], int rounds)
{
    printf("\n| %s | GFLOP/s, median | tenth | nine tenths | of the first |\n|---|---|---|---|---|\n", title);
    double peak = 0;
    for (int i = 0; i < LOOPS; i++) {
        qsort(rates[i], (size_t)rounds, sizeof rates[i][0], by_value);
        peak = i == 0 ? rates[0][rounds / 2] : peak;
        row(loop_names[i], rates[i], rounds, peak);
    }
}

static void measure(int rounds, const float *x)
{
    static double rates[LOOPS][ROUNDS_MAX], reads[SIZES][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) /* before the reads: rates right after them were lower */
        for (int i = 0; i < LOOPS; i++) {
            double flops;
            int64_t t = sl_clock_ns();
            sink += run_loop(i, x, &flops);
            rates[i][round] = flops / (double)(sl_clock_ns() - t);
        }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < SIZES; i++) {
            const size_t bytes = read_kib[i] << 10, times = bytes < (1u << 20) ? (1u << 20) / bytes : 1;
            read_through(x, bytes);
            int64_t t = sl_clock_ns();
            for (size_t k = 0; k < times; k++)
                read_through(x, bytes);
            reads[i][round] = (double)(bytes * times) / (double)(sl_clock_ns() - t);
        }
    show_rates("0.1 to 0.3 ms", rates, rounds);
    printf("\n| reads of, KiB | GB/s, median | tenth | nine tenths |\n|---|---|---|---|\n");
    for (int i = 0; i < SIZES; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", read_kib[i]);
        row(name, reads[i], rounds, 0);
    }
}

/* Each loop for 20 ms, in turn. */
static void measure_sustained(int rounds, const float *x)
{
    static double rates[LOOPS][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < LOOPS; i++) {
            double flops, all = 0;
            const int64_t start = sl_clock_ns();
            while (sl_clock_ns() - start < 20000000) {
                sink += run_loop(i, x, &flops);
                all += flops;
            }
            rates[i][round] = all / (double)(sl_clock_ns() - start);
        }
    show_rates("20 ms on end", rates, rounds);
}

/* The lines differ from page to page, so that they do not all want one set of a cache. */
static void **get_cell(char *memory, int page)
{
    const size_t line = (size_t)page % (PAGE_BYTES / LINE_BYTES);
    return (void **)(void *)(memory + (size_t)page * PAGE_BYTES + line * LINE_BYTES);
}

/* One way through so many pages and back to the first, in an order that no prefetcher guesses. */
static void make_ring(char *memory, int pages)
{
    static int order[PAGES_MAX];
    uint32_t state = 1;
    for (int k = 0; k < pages; k++) {
        state = state * 1664525u + 1013904223u;
        const int other = (int)((uint64_t)state * (uint64_t)(k + 1) >> 32);
        order[k] = order[other];
        order[other] = k;
    }
    for (int k = 0; k < pages; k++)
        *get_cell(memory, order[k]) = get_cell(memory, order[(k + 1) % pages]);
    last = get_cell(memory, order[0]);
}

static void walk(int loads)
{
    void **at = last;
    for (int k = 0; k < loads; k++)
        at = *at;
    last = at;
}

static void measure_pages(int rounds, const char *title, char *memory)
{
    static double ns[ROUNDS_MAX];
    printf("\n| pages, mapped by %s | ns a load, median | tenth | nine tenths |\n|---|---|---|---|\n", title);
    for (int i = 0; i < RINGS; i++) {
        char name[32];
        make_ring(memory, ring_pages[i]);
        walk(2 * PAGES_MAX);
        for (int round = 0; round < rounds; round++) {
            const int64_t t = sl_clock_ns();
            walk(LOADS);
            ns[round] = (double)(sl_clock_ns() - t) / LOADS;
        }
        snprintf(name, sizeof name, "%d", ring_pages[i]);
        row(name, ns, rounds, 0);
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 101;
    const size_t bytes = (size_t)80 << 20;
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench_core [ROUNDS], 1 to %d\n", ROUNDS_MAX);
        return 2;
    }
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        printf("not measured: the processor has no AVX2 and FMA\n");
        return 0;
    }
    float *x = aligned_alloc((size_t)2 << 20, bytes);
    if (!x) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        return 6;
    }
    madvise(x, bytes, MADV_HUGEPAGE); /* as the host does */
    memset(x, 0, bytes);
    measure((int)rounds, x);
    measure_sustained((int)rounds, x);
    measure_pages((int)rounds, "2 MiB", (char *)x);
    madvise(x, bytes, MADV_DONTNEED);
    madvise(x, bytes, MADV_NOHUGEPAGE);
    measure_pages((int)rounds, "4 KiB", (char *)x);
    free(x);
    return 0;
}
#else
int main(void)
{
    printf("not measured: not an x86-64 processor\n");
    return 0;
}
#endif
