/* SPDX-License-Identifier: Apache-2.0 */
/* Copies parameters to cuDNN's weight spaces and gradients back, by the copies of network.h. */
#include "plugin.h"

/* The elements of a copy in the host's tensors at `slots`; NULL: the host has none. */
static float *find_elements(const struct seqlstm_op *op, const struct cdn_copy *copy, void *const *slots)
{
    const int64_t count = op->desc.layers * cdn_directions(&op->desc);
    float *tensor = slots[SEQLSTM_SLOT_RECURRENT_PARAM(count, copy->n, copy->which)];
    return tensor != NULL ? tensor + copy->from : NULL;
}

/* Collects what is copied between the host's tensors at `slots` and the weight space of a network. */
static seqlstm_status collect(struct cdn_ranges *ranges, const struct cdn_net *net, void *const *slots,
                              unsigned char *space, struct seqlstm_error *err)
{
    for (int32_t k = 0; k < net->copy_count; k++) {
        const struct cdn_copy *p = &net->copies[k];
        float *tensor = find_elements(ranges->op, p, slots);
        unsigned char *inside = space + p->to_bytes;
        if (tensor == NULL)
            continue;
        if (ranges->direction == CDN_GIVE)
            SEQLSTM_TRY(cdn_ranges_put(ranges, inside, tensor, p->elems, err));
        else
            SEQLSTM_TRY(cdn_ranges_put(ranges, tensor, inside, p->elems, err));
    }
    return SEQLSTM_OK;
}

/* What no copy fills (the second bias, cuDNN's padding) must be 0. */
seqlstm_status cdn_weights_pack(const struct seqlstm_op *op, void *stream, void *const *slots, unsigned char *packed,
                                struct seqlstm_error *err)
{
    struct cdn_ranges ranges = {.op = op, .stream = stream, .direction = CDN_GIVE};
    SEQLSTM_TRY(gpu_fill(op->ordinal, stream, packed, 0, op->packed_bytes, err));
    for (int32_t p = 0; p < op->plan_count; p++)
        for (int32_t k = 0; k < op->plans[p].count; k++) {
            const struct cdn_net *net = &op->plans[p].nets[k];
            const bool shared = p > 0 && net->packed_offset == op->plans[0].nets[k].packed_offset;
            if (!shared)
                SEQLSTM_TRY(collect(&ranges, net, slots, packed + net->packed_offset, err));
        }
    return cdn_ranges_copy(&ranges, err);
}

/* Does cuDNN add to the earlier gradients itself? It always adds to what is in the weight space. In 16 bits the earlier
 * gradients would lose most of their precision, so cuDNN starts from zero, and its result is added in float32. */
static bool adds_inside(const struct cdn_call *call)
{
    return (call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) && !cdn_is_narrow(&call->op->desc);
}

static seqlstm_status collect_gradients(const struct cdn_call *call, struct cdn_ranges *ranges,
                                        struct seqlstm_error *err)
{
    unsigned char *gradients = call->workspace + call->run->places.gradients;
    for (int32_t k = 0; k < call->plan->count; k++)
        SEQLSTM_TRY(
            collect(ranges, &call->plan->nets[k], call->grads, gradients + call->plan->nets[k].gradient_offset, err));
    return SEQLSTM_OK;
}

static seqlstm_status copy_gradients(const struct cdn_call *call, enum cdn_direction direction,
                                     struct seqlstm_error *err)
{
    struct cdn_ranges ranges = {.op = call->op, .stream = call->stream, .direction = direction};
    SEQLSTM_TRY(collect_gradients(call, &ranges, err));
    return cdn_ranges_copy(&ranges, err);
}

seqlstm_status cdn_gradients_begin(const struct cdn_call *call, struct seqlstm_error *err)
{
    unsigned char *gradients = call->workspace + call->run->places.gradients;
    SEQLSTM_TRY(gpu_fill(call->op->ordinal, call->stream, gradients, 0, call->plan->weight_bytes, err));
    return adds_inside(call) ? copy_gradients(call, CDN_GIVE, err) : SEQLSTM_OK;
}

seqlstm_status cdn_gradients_end(const struct cdn_call *call, struct cdn_ranges *out, struct seqlstm_error *err)
{
    const bool add = (call->parts & SEQLSTM_BIT_BACKWARD_ACCUMULATE) && !adds_inside(call);
    return add ? copy_gradients(call, CDN_TAKE_ADD, err) : collect_gradients(call, out, err);
}
