/* SPDX-License-Identifier: Apache-2.0 */
/* See lane.h. */
#include "registry/lane.h"

#include <seqlstm/ext/draft/memory.h>

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
