/* SPDX-License-Identifier: Apache-2.0 */
/* See handles.h. */
#include "handles.h"

#include <string.h>

void cdn_handles_init(struct cdn_handles *handles)
{
    memset(handles, 0, sizeof *handles);
    pthread_mutex_init(&handles->lock, NULL);
}

void cdn_handles_deinit(struct cdn_handles *handles)
{
    for (int32_t k = 0; k < handles->count; k++)
        if (gpu_use(handles->items[k].ordinal, NULL) == SEQLSTM_OK)
            cdn.Destroy(handles->items[k].native);
    pthread_mutex_destroy(&handles->lock);
}

/* If cuDNN does not start (for example, because it was built for a later driver), this is a refusal: the program
 * continues with other backends. */
static seqlstm_status start(int32_t ordinal, cudnnHandle_t *out_handle, struct seqlstm_error *err)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = cdn_check(cdn.Create(out_handle), "Create", &why);
    if (status == SEQLSTM_OK)
        return SEQLSTM_OK;
    SEQLSTM_FAIL(err, status == SEQLSTM_NO_MEMORY ? SEQLSTM_NO_MEMORY : SEQLSTM_UNSUPPORTED,
                 "cuDNN does not start on CUDA device %d: %s", (int)ordinal, why.message);
}

/* The handle in use on the stream; else an idle one of the device; else NULL. */
static struct cdn_handle *find(struct cdn_handles *handles, int32_t ordinal, const void *stream)
{
    struct cdn_handle *idle = NULL;
    for (int32_t k = 0; k < handles->count; k++) {
        struct cdn_handle *h = &handles->items[k];
        if (h->ordinal == ordinal && h->users > 0 && h->stream == stream)
            return h;
        if (h->ordinal == ordinal && h->users == 0)
            idle = h;
    }
    return idle;
}

static seqlstm_status acquire_locked(struct cdn_handles *handles, int32_t ordinal, void *stream,
                                     struct cdn_handle **out_handle, struct seqlstm_error *err)
{
    struct cdn_handle *h = find(handles, ordinal, stream);
    SEQLSTM_TRY(gpu_use(ordinal, err));
    if (h == NULL) {
        if (handles->count == CDN_HANDLES_MAX)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "more than %d streams use cuda-cudnn at once", CDN_HANDLES_MAX);
        h = &handles->items[handles->count];
        *h = (struct cdn_handle){.ordinal = ordinal};
        SEQLSTM_TRY(start(ordinal, &h->native, err));
        handles->count++;
    }
    if (h->users == 0)
        SEQLSTM_TRY(cdn_check(cdn.SetStream(h->native, stream), "SetStream", err));
    h->stream = stream;
    h->users++;
    *out_handle = h;
    return SEQLSTM_OK;
}

seqlstm_status cdn_handles_acquire(struct cdn_handles *handles, int32_t ordinal, void *stream,
                                   struct cdn_handle **out_handle, struct seqlstm_error *err)
{
    pthread_mutex_lock(&handles->lock);
    const seqlstm_status status = acquire_locked(handles, ordinal, stream, out_handle, err);
    pthread_mutex_unlock(&handles->lock);
    return status;
}

void cdn_handles_release(struct cdn_handles *handles, struct cdn_handle *handle)
{
    if (handle == NULL)
        return;
    pthread_mutex_lock(&handles->lock);
    if (--handle->users == 0) {
        handle->stream = NULL;
        if (gpu_use(handle->ordinal, NULL) == SEQLSTM_OK)
            cdn.SetStream(handle->native, NULL);
    }
    pthread_mutex_unlock(&handles->lock);
}
