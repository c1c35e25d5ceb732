/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's library that may be missing. It is opened at run time and not linked, so that a missing library gives a
 * clear message instead of an error of the dynamic linker. */
#ifndef COMMON_VENDOR_LIBRARY_H
#define COMMON_VENDOR_LIBRARY_H

#include <stddef.h>

struct vendor_library {
    const char *file; /* "libcudnn.so.9" */
    /* The folders below one that the user names in which the library may be; ends with NULL. Those that begin with
     * `nvidia/` are Python wheels, which are also searched in the active environment. */
    const char *const *folders;
};

/* Opens the library. `place`: "auto" (the system's library, then that of the active virtual or conda environment,
 * then /usr/local/cuda/lib64), the file itself, or a folder that contains it. If it returns NULL, `reason` holds the
 * first reason found; it must be empty before. [control] */
void *vendor_library_open(const struct vendor_library *library, const char *place, char *reason, size_t capacity);

/* Stores the function in the pointer at `out`. If it is missing and *missing is NULL, sets *missing to `name`. */
void vendor_library_find(void *library, const char *name, void *out, const char **missing);

#endif
