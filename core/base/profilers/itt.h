/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of ITT, which Intel's profilers show (VTune, Advisor): each activity (trace.h) is one, of the domain `seqlstm`,
 * while such a profiler is attached.
 *
 * A profiler names its library (the collector) in the variable INTEL_LIBITTNOTIFY64. The library is opened as ITT's
 * static part does it: it gets a list of functions by name and enters its own. Nothing of Intel's is linked.
 */
#ifndef SL_BASE_PROFILERS_ITT_H
#define SL_BASE_PROFILERS_ITT_H

/* Opens the library of the profiler and shows it activities from now on. Nothing happens where the variable is not set,
 * or its library is none. Once in a process. */
void sl_itt_attach(void);

#endif
