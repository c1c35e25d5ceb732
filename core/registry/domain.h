/* SPDX-License-Identifier: Apache-2.0 */
/* A memory domain: where buffers lie, and the queue that orders work on them.
 *
 * The host is a domain, too: there copies are memcpy, and all work is finished when a call returns. Other domains come
 * from the plugin that opened them first (ext/draft/memory.h). All plugins that name the same domain work on its
 * addresses and its stream.
 *
 * Invariants:
 *  1. Only calls on a domain access its buffers; those of the host may be accessed directly.
 *  2. Calls are ordered: each sees what the earlier ones of this domain wrote. One thread at a time.
 */
#ifndef SL_REGISTRY_DOMAIN_H
#define SL_REGISTRY_DOMAIN_H

#include <stdbool.h>

#include "base/memory/memory.h"
#include "registry/host.h"
#include "registry/registry.h"

struct sl_domain {
    char name[sizeof((struct seqlstm_device_info *)0)->domain]; /* "host", "cuda:<uuid>" */
    struct sl_queue queue;               /* passed to calls on this domain; must stay at its address */
    struct sl_memory *tracked;           /* the host: counts its memory; may be NULL */
    const struct seqlstm_backend *table; /* provides memory and streams; NULL: the host */
    struct seqlstm_instance *instance;
    uint32_t device;
    bool is_capturing;
    struct sl_device_clock *clock; /* call_time.h; NULL: no times of the device are wanted */
};

/* `pool` and `tracked` may be NULL. */
void sl_domain_init_host(struct sl_domain *domain, struct sl_pool *pool, struct sl_memory *tracked);

/* The domain of one device, with a stream of its own. Errors: INVALID_ARGUMENT if the backend has no tables for
 * memory and streams; the plugin's. */
seqlstm_status sl_domain_open(struct sl_domain *domain, const struct seqlstm_backend *table,
                              struct seqlstm_instance *instance, uint32_t device, const char *name,
                              struct seqlstm_error *err);
/* Waits for its work. What was allocated in it must have been released. A zeroed struct is fine. */
void sl_domain_close(struct sl_domain *domain);

static inline bool sl_domain_is_host(const struct sl_domain *domain)
{
    return domain->table == NULL;
}

/* The memory is zeroed. 0 bytes give a valid pointer, too. Errors: NO_MEMORY, DEVICE. */
seqlstm_status sl_domain_allocate(struct sl_domain *domain, int64_t bytes, void **out_pointer,
                                  struct seqlstm_error *err);
void sl_domain_release(struct sl_domain *domain, void *pointer); /* NULL is fine */

/* Copies from and to the host's memory, and within the domain. After upload `from` may change; after download `to` is
 * complete. */
seqlstm_status sl_domain_upload(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                                struct seqlstm_error *err);
seqlstm_status sl_domain_download(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                                  struct seqlstm_error *err);
seqlstm_status sl_domain_copy(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                              struct seqlstm_error *err);
/* Does the backend of `domain` copy from the memory of `other` by itself, and as which of its devices? The host has no
 * such peers. Asks the plugin. */
bool sl_domain_find_peer(struct sl_domain *domain, const struct sl_domain *other, uint32_t *out_device);
/* Copies from `other`, whose device `peer` is, in the order of both queues. */
seqlstm_status sl_domain_copy_across(struct sl_domain *domain, void *to, struct sl_domain *other, uint32_t peer,
                                     const void *from, int64_t bytes, struct seqlstm_error *err);
seqlstm_status sl_domain_clear(struct sl_domain *domain, void *to, int64_t bytes, struct seqlstm_error *err);

/* Pinned memory on the host, not zeroed. The device's copy engine reads it without the processor, when an upload from
 * it is reached in the queue. Not for the host's domain. Errors: NO_MEMORY, DEVICE. */
seqlstm_status sl_domain_allocate_pinned(struct sl_domain *domain, int64_t bytes, void **out_pinned,
                                         struct seqlstm_error *err);
void sl_domain_release_pinned(struct sl_domain *domain, void *pinned); /* NULL is fine; no upload may still read it */

/* Graphs (ext/draft/memory.h): calls between begin and end are recorded instead of run. After a failed end the queue is
 * as before begin. A backend has captures if it also has frames and all functions of events. */
bool sl_domain_has_captures(const struct seqlstm_backend *table);
seqlstm_status sl_domain_begin_capture(struct sl_domain *domain, struct seqlstm_error *err);
seqlstm_status sl_domain_end_capture(struct sl_domain *domain, void **out_capture, struct seqlstm_error *err);
seqlstm_status sl_domain_launch(struct sl_domain *domain, void *capture, struct seqlstm_error *err);
void sl_domain_drop_capture(struct sl_domain *domain, void *capture); /* NULL is fine */

/* Both ends of the frame of a training step (ext/draft/frame.h). */
struct seqlstm_frame;
seqlstm_status sl_domain_begin_frame(struct sl_domain *domain, const struct seqlstm_frame *frame,
                                     struct seqlstm_error *err);
seqlstm_status sl_domain_end_frame(struct sl_domain *domain, const struct seqlstm_frame *frame,
                                   struct seqlstm_error *err);

/* Waits until everything on the queue has finished. Failures after a call returned are reported here. */
seqlstm_status sl_domain_finish(struct sl_domain *domain, struct seqlstm_error *err);

#endif
