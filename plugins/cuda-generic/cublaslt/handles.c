/* SPDX-License-Identifier: Apache-2.0 */
/* See handles.h. */
#include "cuda-generic/cublaslt/handles.h"

#include <pthread.h>
#include <string.h>

#include "common/cuda_domain.h"
#include "common/host_memory.h"
#include "cuda-generic/cublaslt/library.h"

enum { REMEMBERED = 256 };

struct remembered {
    struct cg_lt_key key;
    struct cg_lt_algorithm algorithm;
};

struct cg_lt_handles {
    pthread_mutex_t lock;
    struct cg_lt_context *of[GPU_DEVICES_MAX]; /* by the host's number of the device; NULL: not created yet */
    int32_t ordinals[GPU_DEVICES_MAX];
    int64_t count; /* algorithms remembered so far; the newest are in `remembered` */
    struct remembered remembered[REMEMBERED];
};

seqlstm_status cg_lt_handles_create(const struct seqlstm_host *host, struct cg_lt_handles **out_handles,
                                    struct seqlstm_error *err)
{
    struct cg_lt_handles *handles = host_allocate(host, sizeof *handles);
    if (handles == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the handles of cuBLASLt");
    pthread_mutex_init(&handles->lock, NULL);
    *out_handles = handles;
    return SEQLSTM_OK;
}

void cg_lt_handles_destroy(const struct seqlstm_host *host, struct cg_lt_handles *handles)
{
    if (handles == NULL)
        return;
    for (int32_t k = 0; k < GPU_DEVICES_MAX; k++)
        if (handles->of[k] != NULL && gpu_use(handles->ordinals[k], NULL) == SEQLSTM_OK)
            cg_lt.Destroy(handles->of[k]);
    pthread_mutex_destroy(&handles->lock);
    host_release(host, handles);
}

seqlstm_status cg_lt_handles_find(struct cg_lt_handles *handles, uint32_t device, int32_t ordinal,
                                  struct cg_lt_context **out_handle, struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_use(ordinal, err));
    pthread_mutex_lock(&handles->lock);
    const int code = handles->of[device] == NULL ? cg_lt.Create(&handles->of[device]) : CG_LT_SUCCESS;
    if (code != CG_LT_SUCCESS)
        handles->of[device] = NULL;
    handles->ordinals[device] = ordinal;
    *out_handle = handles->of[device];
    pthread_mutex_unlock(&handles->lock);
    if (code != CG_LT_SUCCESS)
        SEQLSTM_FAIL(err, SEQLSTM_UNSUPPORTED, "cuBLASLt %s does not start on CUDA device %d: %s", cg_lt_version(),
                     (int)ordinal, cg_lt.GetStatusName(code));
    return SEQLSTM_OK;
}

bool cg_lt_handles_recall(struct cg_lt_handles *handles, const struct cg_lt_key *key,
                          struct cg_lt_algorithm *out_algorithm)
{
    bool found = false;
    pthread_mutex_lock(&handles->lock);
    for (int64_t k = 0; !found && k < handles->count && k < REMEMBERED; k++) {
        found = memcmp(&handles->remembered[k].key, key, sizeof *key) == 0;
        if (found)
            *out_algorithm = handles->remembered[k].algorithm;
    }
    pthread_mutex_unlock(&handles->lock);
    return found;
}

void cg_lt_handles_remember(struct cg_lt_handles *handles, const struct cg_lt_key *key,
                            const struct cg_lt_algorithm *algorithm)
{
    pthread_mutex_lock(&handles->lock);
    struct remembered *r = &handles->remembered[handles->count++ % REMEMBERED];
    r->key = *key;
    r->algorithm = *algorithm;
    pthread_mutex_unlock(&handles->lock);
}
