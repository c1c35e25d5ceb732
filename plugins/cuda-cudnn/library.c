/* SPDX-License-Identifier: Apache-2.0 */
/* Opening of cuDNN. The table `cdn` is written once, under the lock, before any operation exists. */
#include "library.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define FILE_NAME  "libcudnn.so." TEXT(CUDNN_MAJOR)

enum { PATH_BYTES = 1024 };

struct cdn_functions cdn;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static char version_text[32];

/* Stores the function in the pointer at `out`; ISO C has no cast from one kind of pointer to the other. */
static void find(void *library, const char *name, void *out, const char **missing)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL && *missing == NULL)
        *missing = name;
    memcpy(out, &symbol, sizeof symbol);
}

/* ---- where it is ------------------------------------------------------------------------------------------------ */

static void *open_file(const char *path, char *reason)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *text = library == NULL ? dlerror() : NULL;
    if (library == NULL && reason[0] == '\0')
        snprintf(reason, PATH_BYTES, "%s", text != NULL ? text : path);
    return library;
}

/* The folder itself, or what Python's wheels put below site-packages. */
static void *open_folder(const char *folder, char *reason)
{
    static const char *const below[] = {"", "lib/", "nvidia/cudnn/lib/"};
    for (size_t k = 0; k < sizeof below / sizeof *below; k++) {
        char path[PATH_BYTES];
        struct stat status;
        const int length = snprintf(path, sizeof path, "%s/%s" FILE_NAME, folder, below[k]);
        if (length > 0 && (size_t)length < sizeof path && stat(path, &status) == 0)
            return open_file(path, reason);
    }
    snprintf(reason, PATH_BYTES, "%.512s has no " FILE_NAME ", neither itself nor in lib or nvidia/cudnn/lib", folder);
    return NULL;
}

/* The Python environment that is active. */
static void *open_environment(const char *variable, char *reason)
{
    const char *root = getenv(variable);
    char pattern[PATH_BYTES];
    glob_t found;
    if (root == NULL || root[0] != '/' ||
        (size_t)snprintf(pattern, sizeof pattern, "%s/lib/python3*/site-packages/nvidia/cudnn/lib/" FILE_NAME, root) >=
            sizeof pattern)
        return NULL;
    void *library = NULL;
    if (glob(pattern, 0, NULL, &found) == 0) {
        library = open_file(found.gl_pathv[0], reason);
        globfree(&found);
    }
    return library;
}

static void *open_library(const char *file, char *reason)
{
    struct stat status;
    if (strcmp(file, "auto") != 0)
        return stat(file, &status) == 0 && S_ISDIR(status.st_mode) ? open_folder(file, reason)
                                                                   : open_file(file, reason);
    void *library = open_file(FILE_NAME, reason);
    if (library == NULL)
        library = open_environment("VIRTUAL_ENV", reason);
    if (library == NULL)
        library = open_environment("CONDA_PREFIX", reason);
    if (library == NULL && stat("/usr/local/cuda/lib64/" FILE_NAME, &status) == 0)
        library = open_file("/usr/local/cuda/lib64/" FILE_NAME, reason);
    return library;
}

/* ---- what it is ------------------------------------------------------------------------------------------------- */

static seqlstm_status load_locked(const char *file, struct seqlstm_error *err)
{
    char reason[PATH_BYTES] = "";
    void *library = open_library(file, reason);
    if (library == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "cuDNN %d cannot be loaded: %.600s (its option `library` names a file or folder)", CUDNN_MAJOR,
                     reason);
    const char *missing = NULL;
    seqlstm_status status = SEQLSTM_OK;
    find(library, "cudnnGetVersion", &cdn.GetVersion, &missing);
    if (missing == NULL) {
        const size_t version = cdn.GetVersion();
        snprintf(version_text, sizeof version_text, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
        if (version / 10000 != CUDNN_MAJOR)
            status = seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
                                       "the library says that it is version %zu, expected cuDNN %d", version,
                                       CUDNN_MAJOR);
    }
#define FIND(function) find(library, "cudnn" #function, &cdn.function, &missing);
    if (status == SEQLSTM_OK) {
        CDN_FUNCTIONS(FIND)
    }
#undef FIND
    if (status == SEQLSTM_OK && missing != NULL)
        status = seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "cuDNN %s has no function %s",
                                   version_text, missing);
    if (status != SEQLSTM_OK) {
        version_text[0] = '\0';
        dlclose(library);
    }
    return status;
}

seqlstm_status cdn_library_load(const char *file, struct seqlstm_error *err)
{
    pthread_mutex_lock(&load_lock);
    seqlstm_status status = loaded ? SEQLSTM_OK : load_locked(file, err);
    loaded = status == SEQLSTM_OK;
    pthread_mutex_unlock(&load_lock);
    return status;
}

const char *cdn_library_version(void)
{
    return version_text;
}

/* ---- what it says ----------------------------------------------------------------------------------------------- */

bool cdn_is_refusal(cudnnStatus_t status)
{
    const int category = CUDNN_STATUS_CATEGORY((int)status);
    return category == CUDNN_STATUS_NOT_SUPPORTED || category == CUDNN_STATUS_BAD_PARAM;
}

seqlstm_status cdn_check(cudnnStatus_t status, const char *what, struct seqlstm_error *err)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return SEQLSTM_OK;
    char last[256] = "";
    cdn.GetLastErrorString(last, sizeof last);
    const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                        status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    const seqlstm_status ours =
        cdn_is_refusal(status) ? SEQLSTM_UNSUPPORTED : (memory ? SEQLSTM_NO_MEMORY : SEQLSTM_DEVICE);
    seqlstm_error_set(err, ours, __FILE__, __LINE__, "cuDNN %s %s cudnn%s: %s%s%.200s", version_text,
                      ours == SEQLSTM_UNSUPPORTED ? "refuses" : "failed in", what, cdn.GetErrorString(status),
                      last[0] ? ": " : "", last);
    if (err != NULL && err->struct_size >= sizeof *err)
        err->native_code = (int32_t)status;
    return ours;
}
