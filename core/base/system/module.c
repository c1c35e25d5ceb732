/* SPDX-License-Identifier: Apache-2.0 */
/* The only dlopen apart from core/registry/loader.c. See module.h. */
#include "base/system/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/system/owner.h"

enum { LAST_PLACE = 3 };

/* In another program that uses libseqlstm.so: `seqlstm/modules` beside the library. */
static bool get_beside_library(const char *name, char out[PATH_MAX])
{
    Dl_info info;
    char library[PATH_MAX];
    if (dladdr(SL_MODULES_DIR, &info) == 0 || !info.dli_fname || info.dli_fname[0] != '/' ||
        realpath(info.dli_fname, library) == NULL)
        return false;
    *strrchr(library, '/') = 0;
    return snprintf(out, PATH_MAX, "%s/seqlstm/modules/libseqlstm_%s.so", library, name) < PATH_MAX;
}

/* The n-th place to look for the module; false when there are no more. */
static bool get_candidate(const char *name, int n, char out[PATH_MAX])
{
    static const char *const tails[] = {"modules", "../" SL_LIBDIR "/seqlstm/modules"};
    const char *said = getenv("SEQLSTM_MODULE_PATH");
    char program[PATH_MAX];
    int length;
    if (said && *said) {
        length = snprintf(out, PATH_MAX, "%s/libseqlstm_%s.so", said, name);
        return n == 0 && said[0] == '/' && length < PATH_MAX;
    }
    if (n == LAST_PLACE) {
        length = snprintf(out, PATH_MAX, "%s/libseqlstm_%s.so", SL_MODULES_DIR, name);
        return length < PATH_MAX;
    }
    if (n == 2)
        return get_beside_library(name, out);
    ssize_t bytes = n < 2 ? readlink("/proc/self/exe", program, sizeof program - 1) : -1;
    if (bytes <= 0)
        return false;
    program[bytes] = 0;
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = 0;
    length = snprintf(out, PATH_MAX, "%s/%s/libseqlstm_%s.so", program, tails[n], name);
    return length < PATH_MAX;
}

/* The file itself, links followed, if no other user can have written it or a folder above it. */
static seqlstm_status check_module(const char *path, char real[PATH_MAX], struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct stat status;
    if (!realpath(path, real))
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s cannot be opened: %s", path, strerror(errno));
    if (stat(real, &status) != 0 || !S_ISREG(status.st_mode))
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s is not a file", path);
    if (sl_owner_check(real, &why) != SEQLSTM_OK)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the module %s %s", path, why.message);
    return SEQLSTM_OK;
}

seqlstm_status sl_module_open(const char *name, const char *symbol, const void **out_table, struct seqlstm_error *err)
{
    char path[PATH_MAX] = "", looked[PATH_MAX] = "", real[PATH_MAX];
    for (int n = 0; n <= LAST_PLACE; n++) {
        if (!get_candidate(name, n, path))
            continue;
        if (access(path, F_OK) != 0) {
            memcpy(looked, path, sizeof looked);
            continue;
        }
        SEQLSTM_TRY(check_module(path, real, err));
        void *handle = dlopen(real, RTLD_NOW | RTLD_LOCAL);
        if (!handle)
            SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s cannot be mapped: %s", path, dlerror());
        const void *table = dlsym(handle, symbol);
        if (!table)
            SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "%s does not export %s", path, symbol);
        *out_table = table;
        return SEQLSTM_OK;
    }
    SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "there is no module libseqlstm_%s.so (the last place searched: %s)", name,
                 looked[0] ? looked : "none");
}
