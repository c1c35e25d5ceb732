/* SPDX-License-Identifier: Apache-2.0 */
/* Time for many short measurements: ticks of the processor, where the kernel takes its own time from them, and
 * nanoseconds elsewhere. Reading them takes half as long as reading the clock. */
#ifndef SL_BASE_SYSTEM_TICKS_H
#define SL_BASE_SYSTEM_TICKS_H

#include <stdint.h>

/* The same moment on both. */
struct sl_moment {
    int64_t ticks, ns; /* ns: of sl_clock_ns */
};

/* Ticks of one thread never decrease, and are those of the other threads. [any] */
int64_t sl_ticks_read(void);
struct sl_moment sl_moment_read(void);
/* The nanoseconds of `ticks`, by two moments: a later tick is never an earlier nanosecond. */
int64_t sl_ticks_to_ns(int64_t ticks, const struct sl_moment *first, const struct sl_moment *last);

#endif
