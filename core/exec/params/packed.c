/* SPDX-License-Identifier: Apache-2.0 */
/* See packed.h. */
#include "exec/params/packed.h"

#include <stdlib.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "dispatch/plan/blame.h"
#include "registry/host.h"
#include "registry/plugin.h"
#include "registry/watch/fence.h"

static bool is_packed(const struct sl_call *call)
{
    return call->packed_offset >= 0 && strcmp(sl_call_get_domain(call), "host") == 0 &&
           sl_backend_get_table(call->backend)->weights_pack != NULL;
}

bool sl_packed_has(const struct sl_packed *packed, const struct sl_call *call)
{
    return packed && packed->buffer && is_packed(call);
}

/* `slots` has room for every slot of the call. */
static seqlstm_status pack(const struct sl_packed *packed, const struct sl_plan *plan, const struct sl_params *params,
                           const struct sl_call *call, struct seqlstm_queue *queue, void **slots,
                           struct seqlstm_error *err)
{
    const struct sl_node *node = call->node;
    const struct seqlstm_step step = {.struct_size = sizeof step, .loss_scale = 1.0f, .grad_scale = 1.0f};
    struct sl_fence fence;
    for (int32_t s = 0; s < node->slot_count; s++) {
        const struct sl_tensor *tensor = node->slots[s] >= 0 ? &plan->graph->tensors[node->slots[s]] : NULL;
        slots[s] = NULL;
        if (tensor && tensor->role == SL_TENSOR_PARAM)
            slots[s] = params->values + params->views[tensor->owner].offset_elems;
    }
    char *to = packed->buffer + call->packed_offset;
    sl_fence_begin(&fence, to, call->sizes.packed_bytes);
    seqlstm_status status = sl_plugin_pack(sl_backend_get_table(call->backend), call->op, queue, slots, to, &step, err);
    if (status == SEQLSTM_OK)
        status =
            sl_fence_end(&fence, sl_backend_get_table(call->backend), SL_FUNCTION_WEIGHTS_PACK, "packed weights", err);
    return status == SEQLSTM_OK ? status : sl_plan_blame(call, SL_FUNCTION_WEIGHTS_PACK, status, err);
}

seqlstm_status sl_packed_init(struct sl_packed *packed, const struct sl_plan *plan, const struct sl_params *params,
                              struct sl_pool *pool, struct sl_memory *memory, struct seqlstm_error *err)
{
    struct sl_queue queue;
    bool any = false;
    *packed = (struct sl_packed){.memory = memory, .version = params->version};
    for (int32_t c = 0; c < plan->call_count; c++)
        any = any || is_packed(&plan->calls[c]);
    if (!any)
        return SEQLSTM_OK;
    void **slots = calloc(SL_SLOTS_MAX, sizeof *slots);
    packed->buffer = sl_memory_alloc_zeroed(memory, (size_t)(plan->packed_bytes + SL_FENCE_ROOM));
    seqlstm_status status = SEQLSTM_OK;
    if (slots == NULL || packed->buffer == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the packed weights");
    sl_queue_init(&queue, pool);
    for (int32_t c = 0; c < plan->call_count && status == SEQLSTM_OK; c++)
        if (is_packed(&plan->calls[c]))
            status = pack(packed, plan, params, &plan->calls[c], &queue.queue, slots, err);
    free(slots);
    if (status != SEQLSTM_OK)
        sl_packed_deinit(packed);
    return status;
}

void sl_packed_deinit(struct sl_packed *packed)
{
    sl_memory_free(packed->memory, packed->buffer);
    packed->buffer = NULL;
}
