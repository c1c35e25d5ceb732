/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and streams of a domain other than the host: `memory` and `streams` of the backend's table point to them.
 *
 * A backend needs both if one of its devices names a domain other than "host". The buffers of its calls (slots,
 * gradients, workspace, reserve, packed weights) then lie in that domain; descriptors, axes and the step block stay in
 * the host's memory. Two backends that name the same domain work with the same addresses and the same native streams:
 * the backend that the host opens first provides them for both.
 *
 * Asynchronous failures. A call that only starts work may succeed although the work fails later. The next call of this
 * table that notices the failure returns it with the vendor's code, at the latest synchronize. After such a failure the
 * domain cannot be used any more. Draft: it may change with any release before 1.0.
 */
#ifndef SEQLSTM_EXT_DRAFT_MEMORY_H
#define SEQLSTM_EXT_DRAFT_MEMORY_H

#include <seqlstm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SEQLSTM_MEMORY_DEVICE = 0, /* memory of the device; the host never dereferences it */
    SEQLSTM_MEMORY_PINNED = 1  /* memory of the host that the copy engine of the device can reach */
};

enum {
    SEQLSTM_COPY_TO_DEVICE = 1, /* `from` may be changed once the call has returned; if it is SEQLSTM_MEMORY_PINNED,
                                 * once the stream has done the copy, which then overlaps with other streams */
    SEQLSTM_COPY_TO_HOST = 2,   /* `to` is complete when the call returns */
    SEQLSTM_COPY_WITHIN = 3     /* both lie in the domain and do not overlap */
};

struct seqlstm_memory {
    uint32_t struct_size;
    uint32_t reserved0;
    /* Allocates `bytes` bytes aligned to SEQLSTM_ALIGNMENT, not zeroed. The message of NO_MEMORY gives the number.
     * [any] */
    seqlstm_status (*allocate)(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err);
    /* Releases it, after all work on it has finished; NULL is allowed. [any] */
    void (*release)(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer);
    /* Copies in the order of the stream; `direction` is one of SEQLSTM_COPY_…. [queue] */
    seqlstm_status (*copy)(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err);
    /* Sets every byte to `value`, in the order of the stream. [queue] */
    seqlstm_status (*fill)(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err);
    /* Copies from the memory of one device to that of another, or of the same one, and does not wait. The copy runs
     * after the work that was started on either stream before, and before the work that is started on either later.
     * Each stream belongs to its device, and neither is captured. The host finds `from_device` by its domain: it may
     * have been another backend that allocated there and made that stream. NULL, or a table that ends before: the host
     * copies through its own memory. INVALID_ARGUMENT: both ranges overlap. [queue], of both queues */
    seqlstm_status (*copy_across)(struct seqlstm_instance *instance, uint32_t to_device, void *to_stream, void *to,
                                  uint32_t from_device, void *from_stream, const void *from, uint64_t bytes,
                                  struct seqlstm_error *err);
};

struct seqlstm_frame; /* ext/draft/frame.h */

/* Streams and events are those of the vendor (cudaStream_t, cudaEvent_t). Streams are independent of each other. */
struct seqlstm_streams {
    uint32_t struct_size;
    uint32_t reserved0;
    seqlstm_status (*create)(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                             struct seqlstm_error *err); /* [any] */
    /* Waits for the work that was started on it; NULL is allowed. [any] */
    void (*destroy)(struct seqlstm_instance *instance, uint32_t device, void *stream);
    /* Returns when all work that was started on the stream has finished. [queue] */
    seqlstm_status (*synchronize)(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  struct seqlstm_error *err);
    seqlstm_status (*event_create)(struct seqlstm_instance *instance, uint32_t device, void **out_event,
                                   struct seqlstm_error *err);                              /* [any] */
    void (*event_destroy)(struct seqlstm_instance *instance, uint32_t device, void *event); /* NULL is allowed. [any] */
    /* The event happens when all work that was started on the stream before has finished. [queue] */
    seqlstm_status (*event_record)(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err);
    /* Work that is started on the stream from now on runs after the event. [queue] */
    seqlstm_status (*event_wait)(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err);
    /* Nanoseconds between two events that have happened. [any] */
    seqlstm_status (*event_elapsed)(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                    double *out_ns, struct seqlstm_error *err);
    /* Captures, which CUDA calls graphs (either all four functions or none; NULL: none). Work that is started on the
     * stream between begin and end does not run, but is recorded: copies WITHIN, fills, and calls of operations whose
     * `capture` in struct seqlstm_sizes allows it. In the meantime anything else on the stream is an error and spoils
     * the capture, and so is waiting, allocating or releasing memory. If end fails, there is no capture, and the stream
     * is as it was before begin. [queue] */
    seqlstm_status (*capture_begin)(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                    struct seqlstm_error *err);
    seqlstm_status (*capture_end)(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out_capture,
                                  struct seqlstm_error *err);
    /* Starts the recorded work in its order, on the contents that memory has by then. [queue] */
    seqlstm_status (*capture_launch)(struct seqlstm_instance *instance, uint32_t device, void *capture, void *stream,
                                     struct seqlstm_error *err);
    void (*capture_destroy)(struct seqlstm_instance *instance, uint32_t device,
                            void *capture); /* NULL is allowed. [queue] */
    /* Returns when the event has happened. [any] */
    seqlstm_status (*event_synchronize)(struct seqlstm_instance *instance, uint32_t device, void *event,
                                        struct seqlstm_error *err);
    /* Start the work of both ends of a frame, also in a capture. `frame` is read until they return. The host captures
     * training steps only if these and event_synchronize are there. [queue] */
    seqlstm_status (*frame_begin)(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  const struct seqlstm_frame *frame, struct seqlstm_error *err);
    seqlstm_status (*frame_end)(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                const struct seqlstm_frame *frame, struct seqlstm_error *err);
};

#ifdef __cplusplus
}
#endif

#endif
