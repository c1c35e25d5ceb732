/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of NVTX, which NVIDIA's profilers show: each activity (trace.h) is one, while such a profiler is attached.
 *
 * A profiler names its library in the variable NVTX_INJECTION64_PATH. The library is opened as the headers of NVTX 3 do
 * it, asks for the table of functions, and enters its own.
 */
#ifndef SL_BASE_PROFILERS_NVTX_H
#define SL_BASE_PROFILERS_NVTX_H

/* Opens the library of the profiler and shows it activities from now on. Nothing happens where the variable is not set,
 * or its library is none. Once in a process. */
void sl_nvtx_attach(void);

#endif
