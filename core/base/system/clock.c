/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock and the processor clock. */
#include "base/system/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now = {0, 0};
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t sl_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t sl_clock_process_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t sl_clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
