/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do at this moment, measured next to what is timed on it. */
#ifndef TESTS_BENCH_MACHINE_H
#define TESTS_BENCH_MACHINE_H

#include "base/system/pool.h"

enum { BENCH_TILE_BYTES = 32 << 10 };

/* GFLOP/s of all members (pool NULL: of one), the best of some tries of a tenth of a millisecond: of multiply-adds
 * alone, or of a register tile (rates.h) whose operands are at `tile`. 0 if the processor has no such tile. */
double bench_peak_measure(struct sl_pool *pool, int32_t members, const float *tile);

/* Least round trip of a cache line between members 0 and 1, in nanoseconds. INFINITY without a pool. */
double bench_round_trip(struct sl_pool *pool);

#endif
