/* SPDX-License-Identifier: Apache-2.0 */
/* Opens cuBLASLt. The table `cg_lt` is written once, under the lock. */
#include "cuda-generic/cublaslt/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/vendor_library.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* The library has CUDA's major version. */
static const char *const folders[] = {
    "", "lib/", "lib64/", "nvidia/cu" TEXT(CG_CUDA_MAJOR) "/lib/", "nvidia/cublas/lib/", NULL};
static const struct vendor_library cublaslt = {"libcublasLt.so." TEXT(CG_CUDA_MAJOR), folders};

struct cg_lt_functions cg_lt;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static char version_text[32];

static void find_all(void *library, struct cg_lt_functions *out, const char **missing)
{
#define FIND(type, name, arguments) vendor_library_find(library, "cublasLt" #name, &out->name, missing);
    CG_LT_FUNCTIONS(FIND)
#undef FIND
}

static seqlstm_status load_locked(const char *place, struct seqlstm_error *err)
{
    char reason[1024] = "";
    const char *missing = NULL;
    struct cg_lt_functions found;
    if (strcmp(place, "none") == 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "cuBLASLt is switched off (option `cublaslt: none`)");
    void *library = vendor_library_open(&cublaslt, place, reason, sizeof reason);
    if (library == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "cuBLASLt cannot be loaded: %.600s (the option `cublaslt` names a file or folder)", reason);
    find_all(library, &found, &missing);
    const size_t version = missing == NULL ? found.GetVersion() : 0;
    if (missing != NULL || version / 10000 != CG_CUDA_MAJOR) {
        dlclose(library);
        if (missing != NULL)
            SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "cuBLASLt has no function %s", missing);
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the library has version %zu, expected cuBLASLt %d", version,
                     CG_CUDA_MAJOR);
    }
    cg_lt = found;
    snprintf(version_text, sizeof version_text, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    return SEQLSTM_OK;
}

seqlstm_status cg_lt_load(const char *place, struct seqlstm_error *err)
{
    pthread_mutex_lock(&load_lock);
    const seqlstm_status status =
        version_text[0] != '\0' && strcmp(place, "none") != 0 ? SEQLSTM_OK : load_locked(place, err);
    pthread_mutex_unlock(&load_lock);
    return status;
}

const char *cg_lt_version(void)
{
    return version_text;
}

seqlstm_status cg_lt_check(int status, const char *what, struct seqlstm_error *err)
{
    if (status == CG_LT_SUCCESS)
        return SEQLSTM_OK;
    const seqlstm_status ours = status == CG_LT_NOT_SUPPORTED       ? SEQLSTM_UNSUPPORTED
                                : status == CG_LT_ALLOCATION_FAILED ? SEQLSTM_NO_MEMORY
                                                                    : SEQLSTM_DEVICE;
    seqlstm_error_set(err, ours, __FILE__, __LINE__, "cuBLASLt %s %s cublasLt%s: %s", version_text,
                      ours == SEQLSTM_UNSUPPORTED ? "refuses" : "failed in", what, cg_lt.GetStatusName(status));
    if (err != NULL && err->struct_size >= sizeof *err)
        err->native_code = status;
    return ours;
}
