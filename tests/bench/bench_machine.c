/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rates and round trips. See bench_machine.h. */
#include "bench_machine.h"

#include <math.h>
#include <stdatomic.h>

#include "base/system/clock.h"
#include "measure/peak.h"
#include "rates.h"

struct peak {
    _Alignas(128) _Atomic int ball;
    _Alignas(128) int64_t loops; /* of the ball */
    float sink[64];
    double flops;      /* of a member */
    const float *tile; /* operands of the tile; NULL: multiply-adds alone */
};

enum { CHAIN_TURNS = 40000, TILE_TURNS = 20000 };

static void peak_member(void *context, int32_t member, int32_t members)
{
    struct peak *p = context;
    double flops;
    (void)members;
    p->sink[member % 64] += p->tile ? rates_run_tile(TILE_TURNS, p->tile, BENCH_TILE_BYTES, &flops)
                                    : sl_peak_run_chain(CHAIN_TURNS, &flops);
    if (member == 0)
        p->flops = flops;
}

double bench_peak_measure(struct sl_pool *pool, int32_t members, const float *tile)
{
    struct peak p = {.tile = tile};
    double best = 0;
    for (int i = 0; i < 6; i++) {
        int64_t t = sl_clock_ns();
        if (pool)
            sl_pool_team(pool, peak_member, &p);
        else
            peak_member(&p, 0, 1);
        double rate = p.flops * members / (double)(sl_clock_ns() - t);
        best = rate > best ? rate : best;
    }
    return best;
}

static void play(void *context, int32_t member, int32_t members)
{
    struct peak *p = context;
    (void)members;
    for (int64_t i = 0; member < 2 && i < p->loops; i++) {
        while (atomic_load_explicit(&p->ball, memory_order_acquire) != member)
            ;
        atomic_store_explicit(&p->ball, !member, memory_order_release);
    }
}

double bench_round_trip(struct sl_pool *pool)
{
    struct peak p = {.loops = 20000};
    double best = INFINITY;
    for (int i = 0; pool && i < 9; i++) {
        int64_t t = sl_clock_ns();
        sl_pool_team(pool, play, &p);
        double ns = (double)(sl_clock_ns() - t) / (double)p.loops;
        best = ns < best ? ns : best;
    }
    return best;
}
