/* SPDX-License-Identifier: Apache-2.0 */
/* Profilers that are attached to the process: each activity (trace.h) is shown to them as it happens. */
#ifndef SL_BASE_PROFILERS_PROFILERS_H
#define SL_BASE_PROFILERS_PROFILERS_H

/* Opens the libraries of NVIDIA's (nvtx.h) and Intel's profilers (itt.h), once in a process, and shows them activities
 * from now on. Nothing happens where the environment names none, or a library is none of a profiler. [any] */
void sl_profilers_attach(void);

#endif
