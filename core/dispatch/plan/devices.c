/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that a plan uses. The bits of its results depend on them, besides its choices and threads. */
#include "dispatch/plan/plan.h"

#include <string.h>

#include "base/memory/arena.h"

static void add(struct sl_plan_device *devices, int32_t *count, const struct sl_backend *backend, uint32_t device)
{
    const struct seqlstm_device_info *info = sl_backend_get_device(backend, device);
    struct sl_plan_device found = {sl_backend_get_id(backend), info->device_class, info->name};
    for (int32_t d = 0; d < *count; d++)
        if (strcmp(devices[d].backend, found.backend) == 0 && strcmp(devices[d].name, found.name) == 0)
            return;
    devices[(*count)++] = found;
}

seqlstm_status sl_plan_list_devices(struct sl_plan *plan, struct seqlstm_error *err)
{
    size_t most = (size_t)(plan->call_count + plan->vector_count);
    struct sl_plan_device *devices = SL_ARENA_ARRAY(plan->arena, struct sl_plan_device, most + 1);
    if (devices == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (int32_t c = 0; c < plan->call_count; c++)
        add(devices, &plan->device_count, plan->calls[c].backend, plan->calls[c].device);
    for (int32_t v = 0; v < plan->vector_count; v++)
        add(devices, &plan->device_count, plan->vectors[v].backend, plan->vectors[v].device);
    plan->devices = devices;
    return SEQLSTM_OK;
}
