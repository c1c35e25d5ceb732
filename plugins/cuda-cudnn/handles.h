/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's handles: one for each stream in use. Idle handles are kept, since creating one is slow.
 *
 * Invariants
 * 1. A handle with users has one stream, and all its users are on that stream, so that calls on it never overlap.
 * 2. A handle without users has no stream: a stream may be destroyed once its bindings are. */
#ifndef CDN_HANDLES_H
#define CDN_HANDLES_H

#include <pthread.h>

#include "common/cuda_domain.h"
#include "library.h"

enum { CDN_HANDLES_MAX = 64 };

struct cdn_handle {
    cudnnHandle_t native;
    void *stream;
    int32_t ordinal;
    int32_t users;
};

struct cdn_handles {
    pthread_mutex_t lock;
    int32_t count;
    struct cdn_handle items[CDN_HANDLES_MAX];
};

void cdn_handles_init(struct cdn_handles *handles);
void cdn_handles_deinit(struct cdn_handles *handles);

/* Errors: NO_MEMORY; UNSUPPORTED if cuDNN does not start on the device; DEVICE. [any] */
seqlstm_status cdn_handles_acquire(struct cdn_handles *handles, int32_t ordinal, void *stream,
                                   struct cdn_handle **out_handle, struct seqlstm_error *err);
void cdn_handles_release(struct cdn_handles *handles, struct cdn_handle *handle); /* may be NULL. [any] */

#endif
