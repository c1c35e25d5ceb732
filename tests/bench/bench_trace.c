/* SPDX-License-Identifier: Apache-2.0 */
/* What the places cost where activities begin and end (base/system/trace.h), while they are recorded and while not: the
 * shortest of many rounds, so it also holds on a machine that does other work.
 * meson test -C build --benchmark trace -v */
#include <stdio.h>

#include "base/system/trace.h"

enum { RECORDINGS = 300, ROUNDS = 20, PLACES = 200 };

static double time_places(void)
{
    const int64_t begin = sl_clock_ns();
    for (int k = 0; k < PLACES; k++) {
        const int64_t activity = sl_trace_begin(SL_ACTIVITY_FORWARD, "layer");
        __asm__ volatile("" : : "r"(activity) : "memory"); /* the work */
        sl_trace_end(activity, SL_ACTIVITY_FORWARD, "layer", "backend", 1);
    }
    return (double)(sl_clock_ns() - begin) / PLACES;
}

static double take_shortest(void)
{
    double shortest = time_places();
    for (int r = 0; r < ROUNDS; r++) {
        const double ns = time_places();
        shortest = ns < shortest ? ns : shortest;
    }
    return shortest;
}

int main(void)
{
    double on = 1e9, off = 1e9;
    struct sl_trace trace;
    for (int r = 0; r < RECORDINGS; r++) {
        const double without = take_shortest();
        if (sl_trace_start(SL_TRACE_CALLS, 1 << 16, NULL) != SEQLSTM_OK)
            return 6;
        const double with = take_shortest();
        sl_trace_stop(&trace);
        sl_trace_deinit(&trace);
        off = without < off ? without : off;
        on = with < on ? with : on;
    }
    printf("an activity: %.1f ns recorded, %.2f ns while nothing is recorded\n", on, off);
    return 0;
}
