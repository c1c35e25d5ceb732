/* SPDX-License-Identifier: Apache-2.0 */
/* The processors that this process may use. */
#ifndef COMMON_PROCESSORS_H
#define COMMON_PROCESSORS_H

#include <sched.h>
#include <unistd.h>

/* Where there are too many for a cpu_set_t, those of the machine. */
static inline int processors_count(void)
{
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed)
                                                               : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

#endif
