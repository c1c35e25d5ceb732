/* SPDX-License-Identifier: Apache-2.0 */
/* The time of the emulated devices, and the profiler that is told of their work (emulated_observe in
 * emulated_device.h).
 *
 * With SEQLSTM_EMULATED_COSTS=LAUNCH,NODE (nanoseconds) events tell the time of a device which does nothing but start
 * work: each call of the host that starts a kernel, copy or fill takes LAUNCH, and each node of a capture takes NODE.
 */
#ifndef EMULATED_CLOCK_H
#define EMULATED_CLOCK_H

#include <cstddef>
#include <functional>

namespace emulation
{

/* Returns false after writing what was wrong to `failure`. */
typedef std::function<bool(char *failure, size_t capacity)> work;

/* The model of costs. */
struct costs {
    bool known = false;
    double launch = 0, node = 0;

    costs();
};
extern const costs model;

/* Nanoseconds, by the model or of the machine. */
double read_clock();

/* Tells the observer of the job: at once by the model, of which it takes cost_ns, or else when the job has run. */
work observe(int kind, const char *name, double cost_ns, work job);

} // namespace emulation

#endif
