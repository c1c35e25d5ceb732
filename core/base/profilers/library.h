/* SPDX-License-Identifier: Apache-2.0 */
/* The library of a profiler, which the profiler names in the environment. */
#ifndef SL_BASE_PROFILERS_LIBRARY_H
#define SL_BASE_PROFILERS_LIBRARY_H

/* NULL: the variable is not set, or the library cannot be opened. It is never closed. */
void *sl_profiler_library_open(const char *variable);
/* NULL: there is no such symbol. */
void *sl_profiler_library_find(void *library, const char *symbol);

#endif
