/* SPDX-License-Identifier: Apache-2.0 */
/* See lane.h. */
#include "registry/lane.h"

#include <seqlstm/ext/draft/memory.h>

#include "base/system/trace.h"
#include "registry/device_call.h"

seqlstm_status sl_lane_open(struct sl_lane *lane, struct sl_domain *domain, struct seqlstm_error *err)
{
    void *stream = NULL;
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->create(domain->instance, domain->device, &stream, err), err);
    *lane = (struct sl_lane){domain, stream};
    return SEQLSTM_OK;
}

void sl_lane_close(struct sl_lane *lane)
{
    if (lane->domain)
        SL_DEVICE_RUN(
            lane->domain->table, SL_FUNCTION_STREAMS,
            lane->domain->table->streams->destroy(lane->domain->instance, lane->domain->device, lane->stream));
    *lane = (struct sl_lane){NULL, NULL};
}

seqlstm_status sl_lane_upload(struct sl_lane *lane, void *to, const void *pinned, int64_t bytes,
                              struct seqlstm_error *err)
{
    const struct sl_domain *domain = lane->domain;
    if (bytes <= 0)
        return SEQLSTM_OK;
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_MEMORY,
                  domain->table->memory->copy(domain->instance, domain->device, lane->stream, SEQLSTM_COPY_TO_DEVICE,
                                              to, pinned, (uint64_t)bytes, err),
                  err);
    return SEQLSTM_OK;
}

seqlstm_status sl_lane_finish(struct sl_lane *lane, struct seqlstm_error *err)
{
    const struct sl_domain *domain = lane->domain;
    if (domain)
        SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                      domain->table->streams->synchronize(domain->instance, domain->device, lane->stream, err), err);
    return SEQLSTM_OK;
}

/* ---- events ---- */

seqlstm_status sl_event_create(struct sl_domain *domain, void **out_event, struct seqlstm_error *err)
{
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->event_create(domain->instance, domain->device, out_event, err), err);
    return SEQLSTM_OK;
}

void sl_event_destroy(struct sl_domain *domain, void *event)
{
    if (event)
        SL_DEVICE_RUN(domain->table, SL_FUNCTION_STREAMS,
                      domain->table->streams->event_destroy(domain->instance, domain->device, event));
}

static seqlstm_status record(struct sl_domain *domain, void *event, void *stream, struct seqlstm_error *err)
{
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->event_record(domain->instance, domain->device, event, stream, err), err);
    return SEQLSTM_OK;
}

seqlstm_status sl_event_record(struct sl_domain *domain, void *event, struct seqlstm_error *err)
{
    return record(domain, event, domain->queue.queue.native_stream, err);
}

seqlstm_status sl_event_record_lane(struct sl_lane *lane, void *event, struct seqlstm_error *err)
{
    return record(lane->domain, event, lane->stream, err);
}

seqlstm_status sl_event_wait(struct sl_domain *domain, void *event, struct seqlstm_error *err)
{
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->event_wait(domain->instance, domain->device, event,
                                                     domain->queue.queue.native_stream, err),
                  err);
    return SEQLSTM_OK;
}

seqlstm_status sl_event_synchronize(struct sl_domain *domain, void *event, struct seqlstm_error *err)
{
    const int64_t begin = sl_trace_begin(SL_ACTIVITY_WAIT, domain->name);
    seqlstm_status status;
    SL_DEVICE_CALL(domain->table, SL_FUNCTION_STREAMS,
                   domain->table->streams->event_synchronize(domain->instance, domain->device, event, err), &status,
                   err);
    sl_trace_end(begin, SL_ACTIVITY_WAIT, domain->name, domain->table->id, 0);
    return status;
}

seqlstm_status sl_event_elapsed(struct sl_domain *domain, void *begin, void *end, double *out_ns,
                                struct seqlstm_error *err)
{
    SL_DEVICE_TRY(domain->table, SL_FUNCTION_STREAMS,
                  domain->table->streams->event_elapsed(domain->instance, domain->device, begin, end, out_ns, err),
                  err);
    return SEQLSTM_OK;
}
