/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine's arithmetic can do at most: fused multiply-adds on float32 in registers, on all members of a
 * pool at once, with the widest vectors that the processor has. The denominator of "fraction of peak". */
#ifndef SL_MEASURE_PEAK_H
#define SL_MEASURE_PEAK_H

#include "base/system/pool.h"

/* `turns`, a multiple of 4, times twelve independent multiply-adds with the widest vectors, on this thread. What comes
 * back means nothing but that it was done; *out_flops: of all. [any thread] */
float sl_peak_run_chain(int turns, double *out_flops);

/* GFLOP/s; the best of a few passes, about 60 ms in all. [one thread at a time per pool] */
double sl_peak_measure(struct sl_pool *pool);

#endif
