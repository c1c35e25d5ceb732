/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and bytes of the parts, and what limits them. Private to core/timeline. */
#ifndef SL_TIMELINE_LIMITS_H
#define SL_TIMELINE_LIMITS_H

#include "timeline/timeline.h"

void sl_timeline_judge(struct sl_timeline *timeline);

/* GFLOP/s of the arithmetic that the call uses, at most: vectors, or tiles; 0: unknown. */
double sl_timeline_find_peak(const struct sl_timeline_peaks *peaks, const struct sl_call *call);

#endif
