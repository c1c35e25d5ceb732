/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and tables of the CUDA domain. See cuda_domain.h. */
#include "common/cuda_domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cuda_frame.h"
#include "common/cuda_recorder.h"
#include "common/host_memory.h"

static struct gpu_domain *get_domain(struct seqlstm_instance *instance)
{
    return (struct gpu_domain *)(void *)instance;
}

static int32_t get_ordinal(struct seqlstm_instance *instance, uint32_t device)
{
    return get_domain(instance)->devices[device].ordinal;
}

seqlstm_status gpu_domain_create(const struct seqlstm_host *host, uint64_t bytes, const char *id, const char *cupti,
                                 struct seqlstm_instance **out_instance, struct seqlstm_error *err)
{
    struct gpu_domain *domain = host_allocate(host, bytes);
    if (domain == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the instance of %s", id);
    domain->host = *host;
    snprintf(domain->cupti, sizeof domain->cupti, "%s", cupti);
    seqlstm_status status = gpu_runtime_open(domain->devices, &domain->device_count, err);
    if (status == SEQLSTM_OK)
        *out_instance = (struct seqlstm_instance *)(void *)domain;
    else
        host_release(host, domain);
    return status;
}

seqlstm_status gpu_domain_check_queue(const struct seqlstm_queue *queue, const char *id, struct seqlstm_error *err)
{
    if (queue->native_stream == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "%s needs a queue of a CUDA device", id);
    return SEQLSTM_OK;
}

seqlstm_status gpu_domain_device_count(struct seqlstm_instance *instance, uint32_t *out_count,
                                       struct seqlstm_error *err)
{
    (void)err;
    *out_count = get_domain(instance)->device_count;
    return SEQLSTM_OK;
}

seqlstm_status gpu_domain_device_info(struct seqlstm_instance *instance, uint32_t device,
                                      struct seqlstm_device_info *info, struct seqlstm_error *err)
{
    const struct gpu_domain *domain = get_domain(instance);
    if (device >= domain->device_count)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "CUDA device %u of %u", device, domain->device_count);
    const struct gpu_device *d = &domain->devices[device];
    info->flags = 0;
    info->memory_bytes = d->memory_bytes;
    snprintf(info->name, sizeof info->name, "%s", d->name);
    snprintf(info->device_class, sizeof info->device_class, "cuda:sm_%d%d", (int)d->major, (int)d->minor);
    snprintf(info->domain, sizeof info->domain, "cuda:%s", d->uuid);
    return SEQLSTM_OK;
}

const void *gpu_domain_get_extension(struct seqlstm_instance *instance, const char *id)
{
    (void)instance;
    return strcmp(id, SEQLSTM_RECORDER_EXTENSION) == 0 ? &gpu_recorder : NULL;
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

static seqlstm_status allocate(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, uint64_t bytes,
                               void **out_pointer, struct seqlstm_error *err)
{
    return gpu_allocate(get_ordinal(instance, device), kind, bytes, out_pointer, err);
}

static void release(struct seqlstm_instance *instance, uint32_t device, uint32_t kind, void *pointer)
{
    gpu_release(get_ordinal(instance, device), kind, pointer);
}

static seqlstm_status copy(struct seqlstm_instance *instance, uint32_t device, void *stream, uint32_t direction,
                           void *to, const void *from, uint64_t bytes, struct seqlstm_error *err)
{
    return gpu_copy(get_ordinal(instance, device), stream, direction, to, from, bytes, err);
}

static seqlstm_status fill(struct seqlstm_instance *instance, uint32_t device, void *stream, void *to, uint32_t value,
                           uint64_t bytes, struct seqlstm_error *err)
{
    return gpu_fill(get_ordinal(instance, device), stream, to, value, bytes, err);
}

/* Work that is started on `second` from now on runs after that on `first`. An event that is destroyed still happens. */
static seqlstm_status order(int32_t ordinal_first, void *first, int32_t ordinal_second, void *second,
                            struct seqlstm_error *err)
{
    void *event = NULL;
    SEQLSTM_TRY(gpu_event_create(ordinal_first, &event, err));
    seqlstm_status status = gpu_event_record(ordinal_first, event, first, err);
    if (status == SEQLSTM_OK)
        status = gpu_event_wait(ordinal_second, event, second, err);
    gpu_event_destroy(ordinal_first, event);
    return status;
}

static seqlstm_status copy_across(struct seqlstm_instance *instance, uint32_t to_device, void *to_stream, void *to,
                                  uint32_t from_device, void *from_stream, const void *from, uint64_t bytes,
                                  struct seqlstm_error *err)
{
    const int32_t ordinal = get_ordinal(instance, to_device), peer = get_ordinal(instance, from_device);
    const uintptr_t a = (uintptr_t)to, b = (uintptr_t)from; /* devices have no addresses in common */
    if (bytes > 0 && a < b + bytes && b < a + bytes)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a copy of %llu bytes to memory that overlaps with its source",
                     (unsigned long long)bytes);
    SEQLSTM_TRY(order(peer, from_stream, ordinal, to_stream, err));
    if (bytes > 0)
        SEQLSTM_TRY(gpu_copy_peer(ordinal, to_stream, to, peer, from, bytes, err));
    return order(ordinal, to_stream, peer, from_stream, err);
}

const struct seqlstm_memory gpu_domain_memory = {.struct_size = sizeof gpu_domain_memory,
                                                 .allocate = allocate,
                                                 .release = release,
                                                 .copy = copy,
                                                 .fill = fill,
                                                 .copy_across = copy_across};

static seqlstm_status stream_create(struct seqlstm_instance *instance, uint32_t device, void **out_stream,
                                    struct seqlstm_error *err)
{
    return gpu_stream_create(get_ordinal(instance, device), out_stream, err);
}

static void stream_destroy(struct seqlstm_instance *instance, uint32_t device, void *stream)
{
    gpu_stream_destroy(get_ordinal(instance, device), stream);
}

static seqlstm_status stream_synchronize(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                         struct seqlstm_error *err)
{
    return gpu_stream_synchronize(get_ordinal(instance, device), stream, err);
}

static seqlstm_status event_create(struct seqlstm_instance *instance, uint32_t device, void **out_event,
                                   struct seqlstm_error *err)
{
    return gpu_event_create(get_ordinal(instance, device), out_event, err);
}

static void event_destroy(struct seqlstm_instance *instance, uint32_t device, void *event)
{
    gpu_event_destroy(get_ordinal(instance, device), event);
}

static seqlstm_status event_record(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                   struct seqlstm_error *err)
{
    return gpu_event_record(get_ordinal(instance, device), event, stream, err);
}

static seqlstm_status event_wait(struct seqlstm_instance *instance, uint32_t device, void *event, void *stream,
                                 struct seqlstm_error *err)
{
    return gpu_event_wait(get_ordinal(instance, device), event, stream, err);
}

static seqlstm_status event_synchronize(struct seqlstm_instance *instance, uint32_t device, void *event,
                                        struct seqlstm_error *err)
{
    return gpu_event_synchronize(get_ordinal(instance, device), event, err);
}

static seqlstm_status event_elapsed(struct seqlstm_instance *instance, uint32_t device, void *begin, void *end,
                                    double *out_ns, struct seqlstm_error *err)
{
    return gpu_event_elapsed(get_ordinal(instance, device), begin, end, out_ns, err);
}

static seqlstm_status capture_begin(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                    struct seqlstm_error *err)
{
    return gpu_capture_begin(get_ordinal(instance, device), stream, err);
}

static seqlstm_status capture_end(struct seqlstm_instance *instance, uint32_t device, void *stream, void **out_capture,
                                  struct seqlstm_error *err)
{
    return gpu_capture_end(get_ordinal(instance, device), stream, out_capture, err);
}

static seqlstm_status capture_launch(struct seqlstm_instance *instance, uint32_t device, void *capture, void *stream,
                                     struct seqlstm_error *err)
{
    return gpu_capture_launch(get_ordinal(instance, device), capture, stream, err);
}

static void capture_destroy(struct seqlstm_instance *instance, uint32_t device, void *capture)
{
    gpu_capture_destroy(get_ordinal(instance, device), capture);
}

#if GPU_KERNELS
typedef int start_frame_fn(void *stream, const struct seqlstm_frame *frame);

static seqlstm_status start_frame(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  start_frame_fn *start, const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    const int32_t ordinal = get_ordinal(instance, device);
    if (!SEQLSTM_HAS(frame, copies) || frame->copy_count > SEQLSTM_FRAME_COPIES || frame->slots == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a frame of %u copies and %u slots", frame->copy_count,
                     frame->slots);
    SEQLSTM_TRY(gpu_use(ordinal, err));
    return gpu_check_launch(ordinal, start(stream, frame), "the frame of a step", err);
}

static seqlstm_status begin_frame(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                  const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    return start_frame(instance, device, stream, gpu_frame_begin, frame, err);
}

static seqlstm_status end_frame(struct seqlstm_instance *instance, uint32_t device, void *stream,
                                const struct seqlstm_frame *frame, struct seqlstm_error *err)
{
    return start_frame(instance, device, stream, gpu_frame_end, frame, err);
}
#else
/* Frames need kernels: without them no step is captured. */
#define begin_frame NULL
#define end_frame   NULL
#endif

const struct seqlstm_streams gpu_domain_streams = {.struct_size = sizeof gpu_domain_streams,
                                                   .create = stream_create,
                                                   .destroy = stream_destroy,
                                                   .synchronize = stream_synchronize,
                                                   .event_create = event_create,
                                                   .event_destroy = event_destroy,
                                                   .event_record = event_record,
                                                   .event_wait = event_wait,
                                                   .event_elapsed = event_elapsed,
                                                   .capture_begin = capture_begin,
                                                   .capture_end = capture_end,
                                                   .capture_launch = capture_launch,
                                                   .capture_destroy = capture_destroy,
                                                   .event_synchronize = event_synchronize,
                                                   .frame_begin = begin_frame,
                                                   .frame_end = end_frame};
