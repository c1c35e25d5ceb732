/* SPDX-License-Identifier: Apache-2.0 */
/* Finds vendors' libraries. No state. */
#include "common/vendor_library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 1024 };

/* ISO C has no cast between pointers to functions and pointers to data. */
void vendor_library_find(void *library, const char *name, void *out, const char **missing)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL && *missing == NULL)
        *missing = name;
    memcpy(out, &symbol, sizeof symbol);
}

static void *open_file(const char *path, char *reason, size_t capacity)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = library == NULL ? dlerror() : NULL;
    if (library == NULL && reason[0] == '\0')
        snprintf(reason, capacity, "%s", text != NULL ? text : path);
    return library;
}

static void *open_folder(const struct vendor_library *library, const char *folder, char *reason, size_t capacity)
{
    for (const char *const *below = library->folders; *below != NULL; below++) {
        char path[PATH_BYTES];
        struct stat status;
        const int length = snprintf(path, sizeof path, "%s/%s%s", folder, *below, library->file);
        if (length > 0 && (size_t)length < sizeof path && stat(path, &status) == 0)
            return open_file(path, reason, capacity);
    }
    const int length = snprintf(reason, capacity, "%.512s has no %s, neither itself nor in", folder, library->file);
    size_t at = length > 0 && (size_t)length < capacity ? (size_t)length : capacity;
    for (const char *const *below = library->folders; *below != NULL && at < capacity; below++)
        if ((*below)[0] != '\0')
            at += (size_t)snprintf(reason + at, capacity - at, " %s", *below);
    return NULL;
}

/* Searches the active Python environment. */
static void *open_environment(const struct vendor_library *library, const char *variable, char *reason, size_t capacity)
{
    const char *root = getenv(variable);
    void *opened = NULL;
    for (const char *const *below = library->folders; *below != NULL && opened == NULL; below++) {
        char pattern[PATH_BYTES];
        glob_t found;
        if (root == NULL || root[0] != '/' || strncmp(*below, "nvidia/", 7) != 0 ||
            (size_t)snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/%s%s", root, *below,
                             library->file) >= sizeof pattern)
            continue;
        if (glob(pattern, 0, NULL, &found) == 0) {
            opened = open_file(found.gl_pathv[0], reason, capacity);
            globfree(&found);
        }
    }
    return opened;
}

void *vendor_library_open(const struct vendor_library *library, const char *place, char *reason, size_t capacity)
{
    struct stat status;
    char usual[PATH_BYTES];
    if (strcmp(place, "auto") != 0)
        return stat(place, &status) == 0 && S_ISDIR(status.st_mode) ? open_folder(library, place, reason, capacity)
                                                                    : open_file(place, reason, capacity);
    void *opened = open_file(library->file, reason, capacity);
    if (opened == NULL)
        opened = open_environment(library, "VIRTUAL_ENV", reason, capacity);
    if (opened == NULL)
        opened = open_environment(library, "CONDA_PREFIX", reason, capacity);
    snprintf(usual, sizeof usual, "/usr/local/cuda/lib64/%s", library->file);
    if (opened == NULL && stat(usual, &status) == 0)
        opened = open_file(usual, reason, capacity);
    return opened;
}
