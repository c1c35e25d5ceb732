/* SPDX-License-Identifier: Apache-2.0 */
/* See ticks.h. On x86 the kernel uses the time stamp counter for its clock only where that is constant and the same on
 * all processors, and says so in a file. */
#include "base/system/ticks.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"

enum source { UNKNOWN, CLOCK, COUNTER };

static _Atomic int source; /* enum source */

#if defined(__x86_64__)
#include <x86intrin.h>

static int64_t read_counter(void)
{
    return (int64_t)__rdtsc();
}

static enum source find_source(void)
{
    char name[8] = "";
    const int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = file < 0 ? -1 : read(file, name, sizeof name - 1);
    if (file >= 0)
        close(file);
    return bytes > 0 && strcmp(name, "tsc\n") == 0 ? COUNTER : CLOCK;
}
#else
static int64_t read_counter(void)
{
    return sl_clock_ns();
}

static enum source find_source(void)
{
    return CLOCK;
}
#endif

int64_t sl_ticks_read(void)
{
    int now = atomic_load_explicit(&source, memory_order_relaxed);
    if (now == UNKNOWN)
        atomic_store_explicit(&source, now = (int)find_source(), memory_order_relaxed);
    return now == COUNTER ? read_counter() : sl_clock_ns();
}

/* Of some readings the one that took least: the thread may be interrupted between both clocks. */
struct sl_moment sl_moment_read(void)
{
    struct sl_moment best = {.ticks = 0};
    int64_t least = INT64_MAX;
    for (int k = 0; k < 4; k++) {
        const int64_t before = sl_ticks_read(), ns = sl_clock_ns(), width = sl_ticks_read() - before;
        if (width < least) {
            least = width;
            best = (struct sl_moment){.ticks = before + width / 2, .ns = ns};
        }
    }
    return best;
}

int64_t sl_ticks_to_ns(int64_t ticks, const struct sl_moment *first, const struct sl_moment *last)
{
    const double width = (double)(last->ticks - first->ticks);
    const double rate = width > 0 ? (double)(last->ns - first->ns) / width : 1;
    return first->ns + (int64_t)((double)(ticks - first->ticks) * rate);
}
