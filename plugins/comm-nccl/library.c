/* SPDX-License-Identifier: Apache-2.0 */
/* Opens NCCL. The table `ncc` is written once, under the lock. */
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "common/vendor_library.h"

static const char *const folders[] = {"", "lib/", "nvidia/nccl/lib/", NULL};
static const struct vendor_library nccl = {"libnccl.so.2", folders};

struct ncc_functions ncc;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

static seqlstm_status find_functions(void *library, struct seqlstm_error *err)
{
    const char *missing = NULL;
    int version = 0; /* 2804: 2.8.4; 20900 and later: 2.9.0 */
#define FIND(type, name, arguments) vendor_library_find(library, "nccl" #name, &ncc.name, &missing);
    NCC_FUNCTIONS(FIND)
#undef FIND
    if (ncc.GetVersion != NULL && ncc.GetVersion(&version) == NCC_SUCCESS && version < NCC_CONFIG_VERSION)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the library has NCCL's version %d.%d, and 2.14 is needed",
                     version < 10000 ? version / 1000 : version / 10000,
                     version < 10000 ? version / 100 % 10 : version / 100 % 100);
    if (missing != NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "NCCL %d.%d has no function %s", version / 10000, version / 100 % 100,
                     missing);
    return SEQLSTM_OK;
}

static seqlstm_status load_locked(const char *place, struct seqlstm_error *err)
{
    char reason[1024] = "";
    void *library = vendor_library_open(&nccl, place, reason, sizeof reason);
    if (library == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE,
                     "NCCL cannot be loaded: %.600s (Debian: libnccl2; pip: nvidia-nccl-cu12)", reason);
    const seqlstm_status status = find_functions(library, err);
    if (status != SEQLSTM_OK)
        dlclose(library);
    return status;
}

seqlstm_status ncc_library_load(const char *place, struct seqlstm_error *err)
{
    pthread_mutex_lock(&load_lock);
    const seqlstm_status status = loaded ? SEQLSTM_OK : load_locked(place, err);
    loaded = status == SEQLSTM_OK;
    pthread_mutex_unlock(&load_lock);
    return status;
}

seqlstm_status ncc_check(int result, const char *what, struct ncc_comm *comm, struct seqlstm_error *err)
{
    if (result == NCC_SUCCESS || result == NCC_IN_PROGRESS)
        return SEQLSTM_OK;
    const char *last = ncc.GetLastError(comm);
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "NCCL failed in %s: %s (%d)%s%.300s", what, ncc.GetErrorString(result), result,
                 last != NULL && last[0] != 0 ? ": " : "", last != NULL ? last : "");
}
