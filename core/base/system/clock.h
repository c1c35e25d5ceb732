/* SPDX-License-Identifier: Apache-2.0 */
/* Time that only moves forward. [any thread] */
#ifndef SL_BASE_SYSTEM_CLOCK_H
#define SL_BASE_SYSTEM_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary start; differences are real time, unaffected by clock settings. */
int64_t sl_clock_ns(void);

/* Processor time that all threads of the process have used, in nanoseconds. */
int64_t sl_clock_process_cpu_ns(void);
/* That which the calling thread has used. */
int64_t sl_clock_thread_cpu_ns(void);

#endif
