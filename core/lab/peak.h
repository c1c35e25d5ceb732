/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine's arithmetic can do at most: fused multiply-adds on float32 in registers, on all members of a
 * pool at once, with the widest vectors that the processor has. The denominator of "fraction of peak". */
#ifndef SL_LAB_PEAK_H
#define SL_LAB_PEAK_H

#include "base/pool.h"

/* GFLOP/s; the best of a few passes, about 60 ms in all. [one thread at a time per pool] */
double sl_peak_measure(struct sl_pool *pool);

#endif
