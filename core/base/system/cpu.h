/* SPDX-License-Identifier: Apache-2.0 */
/* How many processors this process may use. [any thread] */
#ifndef SL_BASE_SYSTEM_CPU_H
#define SL_BASE_SYSTEM_CPU_H

#include <stdint.h>

/* Threads worth starting: physical cores within the affinity mask, at most the cgroup's CPU quota (rounded down: a
 * throttled thread delays all that wait for it); at least 1. Reads /sys and /proc at each call. */
int32_t sl_cpu_count(void);

/* The same for logical processors (two per core with SMT). */
int32_t sl_cpu_count_logical(void);

/* The CPU quota in thousandths of a processor as the cgroup files below `root` say ("" in production; tests pass a
 * folder that holds proc/self/cgroup and sys/fs/cgroup); 0: no limit. */
int64_t sl_cpu_quota_milli(const char *root);

#endif
