/* SPDX-License-Identifier: Apache-2.0 */
/* Opens cuDNN. The table `cdn` is written once, under the lock, before any operation exists. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "common/vendor_library.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static const char *const folders[] = {"", "lib/", "nvidia/cudnn/lib/", NULL};
static const struct vendor_library cudnn = {"libcudnn.so." TEXT(CUDNN_MAJOR), folders};

struct cdn_functions cdn;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;
static char version_text[32];

/* ---- what it is ------------------------------------------------------------------------------------------------- */

static seqlstm_status load_locked(const char *file, struct seqlstm_error *err)
{
    char reason[1024] = "";
    void *library = vendor_library_open(&cudnn, file, reason, sizeof reason);
    if (library == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "cuDNN %d cannot be loaded: %.600s (its option `library` names a file or folder)", CUDNN_MAJOR,
                     reason);
    const char *missing = NULL;
    seqlstm_status status = SEQLSTM_OK;
    vendor_library_find(library, "cudnnGetVersion", &cdn.GetVersion, &missing);
    if (missing == NULL) {
        const size_t version = cdn.GetVersion();
        snprintf(version_text, sizeof version_text, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
        if (version / 10000 != CUDNN_MAJOR)
            status = seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
                                       "the library has version %zu, expected cuDNN %d", version, CUDNN_MAJOR);
    }
#define FIND(function) vendor_library_find(library, "cudnn" #function, &cdn.function, &missing);
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
