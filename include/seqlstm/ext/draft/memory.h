/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and streams of a domain that is not the host's: what `memory` and `streams` of the backend's table point to.
 *
 * A backend one of whose devices names a domain other than "host" has both. Buffers of its calls (slots, gradients,
 * workspace, reserve, packed weights) then lie in that domain; descriptors, axes and the step block stay the host's.
 * Two backends that name the same domain work on the same addresses and the same native streams: the first that
 * the host opens provides them for both.
 *
 * Asynchronous failures. A call that only starts work may succeed although the work fails later: the failure is
 * returned by the next call of this table that notices it, at the latest by synchronize, with the vendor's
 * code. A domain that failed so stays failed. Draft: it may change with any release before 1.0.
 */
#ifndef SEQLSTM_EXT_DRAFT_MEMORY_H
#define SEQLSTM_EXT_DRAFT_MEMORY_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SEQLSTM_MEMORY_DEVICE = 0, /* the device's own; the host never dereferences it */
    SEQLSTM_MEMORY_PINNED = 1  /* the host's, reachable by the device's copy engine */
};

enum {
    SEQLSTM_COPY_TO_DEVICE = 1, /* `from` may be changed as soon as the call returns; if it is SEQLSTM_MEMORY_PINNED,
                                 * when the stream has got there: the copy then overlaps with other streams */
    SEQLSTM_COPY_TO_HOST = 2,   /* `to` is complete when the call returns */
    SEQLSTM_COPY_WITHIN = 3     /* both in the domain, not overlapping */
};

struct seqlstm_memory {
    uint32_t struct_size;
    uint32_t reserved0;
    /* `bytes` aligned to SEQLSTM_ALIGNMENT, not zeroed. NO_MEMORY says how much was asked for. [any] */
    seqlstm_status (*allocate)(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err);
    /* After all work on it has finished; NULL is fine. [any] */
    void (*release)(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer);
    /* Ordered on the stream; `direction` of SEQLSTM_COPY_…. [queue] */
    seqlstm_status (*copy)(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err);
    /* Sets every byte to `value`, ordered on the stream. [queue] */
    seqlstm_status (*fill)(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err);
};

/* Streams and events are the vendor's (cudaStream_t, cudaEvent_t), streams independent of each other. */
struct seqlstm_streams {
    uint32_t struct_size;
    uint32_t reserved0;
    seqlstm_status (*create)(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                             struct seqlstm_error *err); /* [any] */
    /* Waits for what was started on it; NULL is fine. [any] */
    void (*destroy)(struct seqlstm_instance *instance, uint32_t device, void *stream);
    /* Returns when all that was started on the stream has finished. [queue] */
    seqlstm_status (*synchronize)(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  struct seqlstm_error *err);
    seqlstm_status (*event_create)(struct seqlstm_instance *instance, uint32_t device, void **out_event,
                                   struct seqlstm_error *err);                              /* [any] */
    void (*event_destroy)(struct seqlstm_instance *instance, uint32_t device, void *event); /* NULL is fine. [any] */
    /* The event happens when all that was started on the stream so far has finished. [queue] */
    seqlstm_status (*event_record)(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err);
    /* What is started on the stream from now on runs after the event. [queue] */
    seqlstm_status (*event_wait)(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err);
    /* Nanoseconds between two events that have happened. [any] */
    seqlstm_status (*event_elapsed)(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                    double *out_ns, struct seqlstm_error *err);
    /* Graphs (all four or none; NULL: none). What is started on the stream between begin and end is not run but kept:
     * copies WITHIN, fills, and calls of operations whose sizes allow it. Everything else on the stream, waiting,
     * allocating and releasing memory are errors meanwhile, and spoil the capture. A failed end leaves no graph, and
     * the stream as it was before begin. [queue] */
    seqlstm_status (*capture_begin)(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                    struct seqlstm_error *err);
    seqlstm_status (*capture_end)(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out_graph,
                                  struct seqlstm_error *err);
    /* Starts all that was kept, in its order, with what memory then holds. [queue] */
    seqlstm_status (*graph_launch)(struct seqlstm_instance *instance, uint32_t device, void *graph, void *stream,
                                   struct seqlstm_error *err);
    void (*graph_destroy)(struct seqlstm_instance *instance, uint32_t device, void *graph); /* NULL is fine. [queue] */
};

#ifdef __cplusplus
}
#endif

#endif
