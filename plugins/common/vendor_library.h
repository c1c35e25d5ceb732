/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's library that may be absent: opened at run time, and never linked against, so that its absence is a
 * sentence and not a dynamic linker's error. */
#ifndef COMMON_VENDOR_LIBRARY_H
#define COMMON_VENDOR_LIBRARY_H

#include <stddef.h>

struct vendor_library {
    const char *file; /* "libcudnn.so.9" */
    /* Where it lies below a folder that the user names; ends with NULL. Those that begin with `nvidia/` are Python's
     * wheels: they are also looked for in the active environment. */
    const char *const *folders;
};

/* `place`: "auto" (the system's, then that of the active virtual or conda environment, then /usr/local/cuda/lib64), the
 * file, or a folder that has it. NULL, with the reason (empty before). [control] */
void *vendor_library_open(const struct vendor_library *library, const char *place, char *reason, size_t capacity);

/* Stores the function in the pointer at `out`. `*missing`: the first name that was not found, NULL before. */
void vendor_library_find(void *library, const char *name, void *out, const char **missing);

#endif
