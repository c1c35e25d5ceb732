/* SPDX-License-Identifier: Apache-2.0 */
/* One memory domain as the core works with it: where buffers lie, and the queue that orders work on them.
 *
 * The host is a domain, too: there copies are memcpy and everything has finished when a call returns. Others come
 * from the plugin that opened them first (ext/draft/memory.h); every plugin that names the same domain then
 * works on its addresses and its stream.
 *
 * Invariants:
 *  1. A pointer from sl_domain_allocate is dereferenced only by calls on this domain, unless it is the host.
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
    struct sl_queue queue;               /* what calls on this domain get; must stay at its address */
    struct sl_memory *tracked;           /* host: counts its memory; may be NULL */
    const struct seqlstm_backend *table; /* who provides memory and stream; NULL: the host */
    struct seqlstm_instance *instance;
    uint32_t device;
};

/* `pool` and `tracked` may be NULL. */
void sl_domain_init_host(struct sl_domain *domain, struct sl_pool *pool, struct sl_memory *tracked);

/* The domain of one device, with a stream of its own. Errors: INVALID_ARGUMENT when the backend has no tables for
 * memory and streams; what the plugin returned. */
seqlstm_status sl_domain_open(struct sl_domain *domain, const struct seqlstm_backend *table,
                              struct seqlstm_instance *instance, uint32_t device, const char *name,
                              struct seqlstm_error *err);
/* Waits for its work. What was allocated in it must have been released. A zeroed struct is fine. */
void sl_domain_close(struct sl_domain *domain);

static inline bool sl_domain_is_host(const struct sl_domain *domain)
{
    return domain->table == NULL;
}

/* All bytes zero. 0 bytes give a valid pointer. Errors: NO_MEMORY, DEVICE. */
seqlstm_status sl_domain_allocate(struct sl_domain *domain, int64_t bytes, void **out_pointer,
                                  struct seqlstm_error *err);
void sl_domain_release(struct sl_domain *domain, void *pointer); /* NULL is fine */

/* From and to the host's memory. After upload `from` may change; after download `to` is complete. */
seqlstm_status sl_domain_upload(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                                struct seqlstm_error *err);
seqlstm_status sl_domain_download(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                                  struct seqlstm_error *err);
seqlstm_status sl_domain_copy(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                              struct seqlstm_error *err);
seqlstm_status sl_domain_clear(struct sl_domain *domain, void *to, int64_t bytes, struct seqlstm_error *err);

/* Pinned memory of the host's, not zeroed, which the device's copy engine reads by itself: an upload out of it reads it
 * when the queue has got there. Not of the host's domain. Errors: NO_MEMORY, DEVICE. */
seqlstm_status sl_domain_allocate_pinned(struct sl_domain *domain, int64_t bytes, void **out_pinned,
                                         struct seqlstm_error *err);
void sl_domain_release_pinned(struct sl_domain *domain, void *pinned); /* NULL is fine; nothing may read it any more */

/* Graphs (ext/draft/memory.h): calls between begin and end are kept instead of run. After a failed end the queue is as
 * it was before begin. */
bool sl_domain_has_graphs(const struct seqlstm_backend *table);
seqlstm_status sl_domain_begin_capture(struct sl_domain *domain, struct seqlstm_error *err);
seqlstm_status sl_domain_end_capture(struct sl_domain *domain, void **out_graph, struct seqlstm_error *err);
seqlstm_status sl_domain_launch(struct sl_domain *domain, void *graph, struct seqlstm_error *err);
void sl_domain_drop_graph(struct sl_domain *domain, void *graph); /* NULL is fine */

/* Returns when everything started on the queue has finished; failures that had no call to return them appear here. */
seqlstm_status sl_domain_finish(struct sl_domain *domain, struct seqlstm_error *err);

#endif
