/* SPDX-License-Identifier: Apache-2.0 */
/* The peak arithmetic speed of this machine: fused multiply-adds on float32 in registers, on all members of a pool
 * at once, with the widest vectors of the processor. It is the denominator of "fraction of peak". And the peak speed of
 * its memory. */
#ifndef SL_MEASURE_PEAK_H
#define SL_MEASURE_PEAK_H

#include "base/system/pool.h"

/* How long a peak is looked for: long enough for a processor that has just begun to use its widest vectors to reach its
 * speed. */
#define SL_PEAK_NS INT64_C(50000000)

/* Runs `turns`, a multiple of 4, times twelve independent multiply-adds with the widest vectors, on this thread.
 * *out_flops: the operations of all of them. The returned value only keeps them from being optimised away. [any
 * thread] */
float sl_peak_run_chain(int turns, double *out_flops);

/* GB/s: how fast all members together read two arrays and write a third, larger than the caches of most machines; the
 * best of a few passes, in about 0.1 s. Takes 96 MiB meanwhile. NO_MEMORY. [one thread at a time per pool] */
seqlstm_status sl_peak_measure_bytes(struct sl_pool *pool, double *out_gbytes, struct seqlstm_error *err);

/* GFLOP/s: the best of the passes within SL_PEAK_NS. [one thread at a time per pool] */
double sl_peak_measure(struct sl_pool *pool);

/* The same in bfloat16 on the tiles of AMX. 0: the processor has none, or the system does not allow their use. [one
 * thread at a time per pool] */
double sl_peak_measure_tiles(struct sl_pool *pool);

#endif
