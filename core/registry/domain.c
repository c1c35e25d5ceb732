/* SPDX-License-Identifier: Apache-2.0 */
/* See domain.h. */
#include "registry/domain.h"

#include <stdio.h>
#include <string.h>

#include <seqlstm/ext/draft/memory.h>

#include "registry/call_time.h"
#include "registry/device_call.h"
#include "registry/plugin.h"

void sl_domain_init_host(struct sl_domain *domain, struct sl_pool *pool, struct sl_memory *tracked)
{
    *domain = (struct sl_domain){.name = "host", .tracked = tracked};
    sl_queue_init(&domain->queue, pool);
}

static bool has_tables(const struct seqlstm_backend *table)
{
    const struct seqlstm_memory *memory = table->memory;
    const struct seqlstm_streams *streams = table->streams;
    return memory && SEQLSTM_HAS(memory, fill) && memory->allocate && memory->release && memory->copy && memory->fill &&
           streams && SEQLSTM_HAS(streams, event_elapsed) && streams->create && streams->destroy &&
           streams->synchronize;
}

seqlstm_status sl_domain_open(struct sl_domain *domain, const struct seqlstm_backend *table,
                              struct seqlstm_instance *instance, uint32_t device, const char *name,
                              struct seqlstm_error *err)
{
    *domain = (struct sl_domain){.name = ""};
    if (!has_tables(table))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT,
                     "the backend %s works in the domain %s, but has no tables for memory and streams", table->id,
                     name);
    void *stream = NULL;
    SL_DEVICE_TRY(table, SL_FUNCTION_STREAMS, table->streams->create(instance, device, &stream, err), err);
    domain->table = table;
    domain->instance = instance;
    domain->device = device;
    snprintf(domain->name, sizeof domain->name, "%s", name);
    sl_queue_init(&domain->queue, NULL);
    domain->queue.queue.native_stream = stream;
    return SEQLSTM_OK;
}

void sl_domain_close(struct sl_domain *domain)
{
    if (domain->table) {
        sl_call_time_close(domain);
        SL_DEVICE_RUN(
            domain->table, SL_FUNCTION_STREAMS,
            domain->table->streams->destroy(domain->instance, domain->device, domain->queue.queue.native_stream));
    }
    *domain = (struct sl_domain){.name = ""};
}

seqlstm_status sl_domain_allocate(struct sl_domain *domain, int64_t bytes, void **out_pointer,
                                  struct seqlstm_error *err)
{
    void *pointer = NULL;
    if (bytes < SEQLSTM_ALIGNMENT)
        bytes = SEQLSTM_ALIGNMENT;
    if (sl_domain_is_host(domain)) {
        pointer = sl_memory_alloc_zeroed(domain->tracked, (size_t)bytes);
        if (pointer == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
    } else {
        SL_DEVICE_TRY(domain->table, SL_FUNCTION_MEMORY,
                      domain->table->memory->allocate(domain->instance, domain->device, SEQLSTM_MEMORY_DEVICE,
                                                      (uint64_t)bytes, &pointer, err),
                      err);
        seqlstm_status status = sl_domain_clear(domain, pointer, bytes, err);
        if (status != SEQLSTM_OK) {
            sl_domain_release(domain, pointer);
            return status;
        }
    }
    *out_pointer = pointer;
    return SEQLSTM_OK;
}

void sl_domain_release(struct sl_domain *domain, void *pointer)
{
    if (pointer == NULL)
        return;
    if (sl_domain_is_host(domain)) {
        sl_memory_free(domain->tracked, pointer);
    } else {
        sl_domain_finish(domain, NULL);
        SL_DEVICE_RUN(domain->table, SL_FUNCTION_MEMORY,
                      domain->table->memory->release(domain->instance, domain->device, SEQLSTM_MEMORY_DEVICE, pointer));
    }
}

static seqlstm_status move(struct sl_domain *domain, uint32_t direction, void *to, const void *from, int64_t bytes,
                           struct seqlstm_error *err)
{
    if (bytes <= 0)
        return SEQLSTM_OK;
    if (sl_domain_is_host(domain)) {
        memcpy(to, from, (size_t)bytes);
        return SEQLSTM_OK;
    }
    static const char *const names[] = {"", "to the device", "to the host", "on the device"};
    const struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_COPY, names[direction]);
    seqlstm_status status;
    SL_DEVICE_CALL(domain->table, SL_FUNCTION_MEMORY,
                   domain->table->memory->copy(domain->instance, domain->device, domain->queue.queue.native_stream,
                                               direction, to, from, (uint64_t)bytes, err),
                   &status, err);
    sl_call_time_end(&time, domain, SL_ACTIVITY_COPY, names[direction], domain->table->id, bytes);
    return status;
}

seqlstm_status sl_domain_upload(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                                struct seqlstm_error *err)
{
    return move(domain, SEQLSTM_COPY_TO_DEVICE, to, from, bytes, err);
}

seqlstm_status sl_domain_download(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                                  struct seqlstm_error *err)
{
    return move(domain, SEQLSTM_COPY_TO_HOST, to, from, bytes, err);
}

seqlstm_status sl_domain_copy(struct sl_domain *domain, void *to, const void *from, int64_t bytes,
                              struct seqlstm_error *err)
{
    return move(domain, SEQLSTM_COPY_WITHIN, to, from, bytes, err);
}

bool sl_domain_find_peer(struct sl_domain *domain, const struct sl_domain *other, uint32_t *out_device)
{
    uint32_t count = 0;
    if (sl_domain_is_host(domain) || sl_domain_is_host(other))
        return false;
    const struct seqlstm_memory *memory = domain->table->memory;
    if (!SEQLSTM_HAS(memory, copy_across) || !memory->copy_across ||
        sl_plugin_count_devices(domain->table, domain->instance, &count, NULL) != SEQLSTM_OK)
        return false;
    for (uint32_t d = 0; d < count; d++) {
        struct seqlstm_device_info info = {.struct_size = sizeof info};
        if (sl_plugin_describe_device(domain->table, domain->instance, d, &info, NULL) == SEQLSTM_OK &&
            strcmp(info.domain, other->name) == 0) {
            *out_device = d;
            return true;
        }
    }
    return false;
}

seqlstm_status sl_domain_copy_across(struct sl_domain *domain, void *to, struct sl_domain *other, uint32_t peer,
                                     const void *from, int64_t bytes, struct seqlstm_error *err)
{
    static const char name[] = "between devices";
    if (bytes <= 0)
        return SEQLSTM_OK;
    const struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_COPY, name);
    seqlstm_status status;
    SL_DEVICE_CALL(domain->table, SL_FUNCTION_MEMORY,
                   domain->table->memory->copy_across(domain->instance, domain->device,
                                                      domain->queue.queue.native_stream, to, peer,
                                                      other->queue.queue.native_stream, from, (uint64_t)bytes, err),
                   &status, err);
    sl_call_time_end(&time, domain, SL_ACTIVITY_COPY, name, domain->table->id, bytes);
    return status;
}

seqlstm_status sl_domain_clear(struct sl_domain *domain, void *to, int64_t bytes, struct seqlstm_error *err)
{
    if (bytes <= 0)
        return SEQLSTM_OK;
    if (sl_domain_is_host(domain)) {
        memset(to, 0, (size_t)bytes);
        return SEQLSTM_OK;
    }
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_MEMORY,
                  domain->table->memory->fill(domain->instance, domain->device, domain->queue.queue.native_stream, to,
                                              0, (uint64_t)bytes, err),
                  err);
    return SEQLSTM_OK;
}

/* ---- pinned memory, captures ------------------------------------------------------------------------------- */

seqlstm_status sl_domain_allocate_pinned(struct sl_domain *domain, int64_t bytes, void **out_pinned,
                                         struct seqlstm_error *err)
{
    const int64_t least = SEQLSTM_ALIGNMENT;
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_MEMORY,
                  domain->table->memory->allocate(domain->instance, domain->device, SEQLSTM_MEMORY_PINNED,
                                                  (uint64_t)(bytes > least ? bytes : least), out_pinned, err),
                  err);
    return SEQLSTM_OK;
}

void sl_domain_release_pinned(struct sl_domain *domain, void *pinned)
{
    if (pinned)
        SL_DEVICE_RUN(domain->table, SL_FUNCTION_MEMORY,
                      domain->table->memory->release(domain->instance, domain->device, SEQLSTM_MEMORY_PINNED, pinned));
}

bool sl_domain_has_captures(const struct seqlstm_backend *table)
{
    const struct seqlstm_streams *streams = table->streams;
    return streams && SEQLSTM_HAS(streams, frame_end) && streams->capture_begin && streams->capture_end &&
           streams->capture_launch && streams->capture_destroy && streams->event_create && streams->event_destroy &&
           streams->event_record && streams->event_wait && streams->event_synchronize && streams->event_elapsed &&
           streams->frame_begin && streams->frame_end;
}

seqlstm_status sl_domain_begin_capture(struct sl_domain *domain, struct seqlstm_error *err)
{
    SL_DEVICE_TRY(
        domain->table, SL_FUNCTION_STREAMS,
        domain->table->streams->capture_begin(domain->instance, domain->device, domain->queue.queue.native_stream, err),
        err);
    domain->is_capturing = true;
    return SEQLSTM_OK;
}

seqlstm_status sl_domain_end_capture(struct sl_domain *domain, void **out_capture, struct seqlstm_error *err)
{
    domain->is_capturing = false;
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->capture_end(domain->instance, domain->device,
                                                      domain->queue.queue.native_stream, out_capture, err),
                  err);
    return SEQLSTM_OK;
}

seqlstm_status sl_domain_launch(struct sl_domain *domain, void *capture, struct seqlstm_error *err)
{
    static const char *const name = "captured step";
    const struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_LAUNCH, name);
    seqlstm_status status;
    SL_DEVICE_CALL(domain->table, SL_FUNCTION_STREAMS,
                   domain->table->streams->capture_launch(domain->instance, domain->device, capture,
                                                          domain->queue.queue.native_stream, err),
                   &status, err);
    sl_call_time_end(&time, domain, SL_ACTIVITY_LAUNCH, name, domain->table->id, 0);
    return status;
}

void sl_domain_drop_capture(struct sl_domain *domain, void *capture)
{
    if (capture)
        SL_DEVICE_RUN(domain->table, SL_FUNCTION_STREAMS,
                      domain->table->streams->capture_destroy(domain->instance, domain->device, capture));
}

seqlstm_status sl_domain_begin_frame(struct sl_domain *domain, const struct seqlstm_frame *frame,
                                     struct seqlstm_error *err)
{
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->frame_begin(domain->instance, domain->device,
                                                      domain->queue.queue.native_stream, frame, err),
                  err);
    return SEQLSTM_OK;
}

seqlstm_status sl_domain_end_frame(struct sl_domain *domain, const struct seqlstm_frame *frame,
                                   struct seqlstm_error *err)
{
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->frame_end(domain->instance, domain->device, domain->queue.queue.native_stream,
                                                    frame, err),
                  err);
    return SEQLSTM_OK;
}

seqlstm_status sl_domain_finish(struct sl_domain *domain, struct seqlstm_error *err)
{
    if (sl_domain_is_host(domain))
        return SEQLSTM_OK;
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_WAIT, domain->name);
    seqlstm_status status;
    SL_DEVICE_CALL(
        domain->table, SL_FUNCTION_STREAMS,
        domain->table->streams->synchronize(domain->instance, domain->device, domain->queue.queue.native_stream, err),
        &status, err);
    sl_trace_end(begin, SL_ACTIVITY_WAIT, domain->name, domain->table->id, 0);
    if (status == SEQLSTM_OK && domain->clock)
        sl_call_time_settle(domain);
    return status;
}
