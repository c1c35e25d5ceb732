/* SPDX-License-Identifier: Apache-2.0 */
/* See library.h. */
#include "base/profilers/library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

void *sl_profiler_library_open(const char *variable)
{
    const char *path = getenv(variable);
    return path && path[0] ? dlopen(path, RTLD_LAZY) : NULL;
}

void *sl_profiler_library_find(void *library, const char *symbol)
{
    return dlsym(library, symbol);
}
