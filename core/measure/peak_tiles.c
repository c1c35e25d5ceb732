/* SPDX-License-Identifier: Apache-2.0 */
/* The tiles of AMX, see peak.h: four sums from two tiles on each side, so that no product waits for the one before it.
 */
#include "measure/peak.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/system/clock.h"

#ifdef __clang__
#define KNOWS_TILES (__clang_major__ >= 12)
#else
#define KNOWS_TILES (__GNUC__ >= 11)
#endif

#if defined(__x86_64__) && defined(__linux__) && KNOWS_TILES
#define HAS_TILES
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#ifdef HAS_TILES

enum {
    AMX = 1 << 22 | 1 << 24,     /* CPUID 7, EDX: AMX-BF16, AMX-TILE */
    REQUEST_PERMISSION = 0x1023, /* arch_prctl: ARCH_REQ_XCOMP_PERM */
    TILE_DATA = 18,
    ROWS = 16,
    ROW_BYTES = 64,
    SUMS = 4,
    TURNS = 4000,
    PASSES = 12
};

static bool allowed;

/* The system refuses where it does not save tiles. */
static void ask(void)
{
    unsigned a, b, c, d;
    allowed = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX) == AMX &&
              syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

__attribute__((target("amx-tile,amx-bf16"))) static void multiply_tiles(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int t = 0; t < 8; t++) {
        config.bytes[t] = ROW_BYTES;
        config.rows[t] = ROWS;
    }
    _tile_loadconfig(&config);
    __asm__ volatile("" ::: "memory");
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);
    for (int turn = 0; turn < TURNS; turn++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
}

static void run_member(void *context, int32_t member, int32_t members)
{
    _Atomic int64_t *slowest = context;
    const int64_t begin = sl_clock_ns();
    (void)member;
    (void)members;
    multiply_tiles();
    int64_t took = sl_clock_ns() - begin, before = atomic_load(slowest);
    while (took > before && !atomic_compare_exchange_weak(slowest, &before, took)) {
    }
}

double sl_peak_measure_tiles(struct sl_pool *pool)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    /* 16 times 16 sums of 32 products, each a multiplication and an addition */
    const double flop = 2.0 * ROWS * ROWS * (ROW_BYTES / 2) * SUMS * TURNS * (double)sl_pool_get_members(pool);
    double best = 0;
    pthread_once(&once, ask);
    const int64_t end_ns = sl_clock_ns() + SL_PEAK_NS;
    for (int pass = 0; allowed && (pass < PASSES || sl_clock_ns() < end_ns); pass++) {
        _Atomic int64_t slowest = 0;
        sl_pool_team(pool, run_member, &slowest);
        const double ns = (double)atomic_load(&slowest), rate = ns > 0 ? flop / ns : 0;
        best = rate > best ? rate : best;
    }
    return best;
}

#else

double sl_peak_measure_tiles(struct sl_pool *pool)
{
    (void)pool;
    return 0;
}

#endif
