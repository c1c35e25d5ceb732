/* SPDX-License-Identifier: Apache-2.0 */
/* See edges.h. */
#include "edges.h"

/* Can cuDNN use the slot in place? */
static bool is_direct(const struct cdn_call *call, const void *slot)
{
    return !cdn_is_narrow(&call->op->desc) && (uintptr_t)slot % CDN_POINTER_ALIGNMENT == 0;
}

struct cdn_moves cdn_moves_make(const struct cdn_call *call)
{
    return (struct cdn_moves){.in = {.op = call->op, .stream = call->stream, .direction = CDN_GIVE},
                              .out = {.op = call->op, .stream = call->stream, .direction = CDN_TAKE}};
}

seqlstm_status cdn_edge_read(const struct cdn_call *call, struct cdn_moves *moves, void *slot, void *place,
                             int64_t elems, const void **out_pointer, struct seqlstm_error *err)
{
    if (!is_direct(call, slot)) {
        SEQLSTM_TRY(cdn_ranges_put(&moves->in, place, slot, elems, err));
        slot = place;
    }
    *out_pointer = slot;
    return SEQLSTM_OK;
}

void *cdn_edge_write(const struct cdn_call *call, void *slot, void *place)
{
    return slot != NULL && is_direct(call, slot) ? slot : place;
}

seqlstm_status cdn_edge_written(struct cdn_moves *moves, void *slot, const void *written, int64_t elems,
                                struct seqlstm_error *err)
{
    return slot == NULL || slot == written ? SEQLSTM_OK : cdn_ranges_put(&moves->out, slot, written, elems, err);
}

/* ---- states ----------------------------------------------------------------------------------------------------- */

static int64_t get_count(const struct cdn_call *call, const struct cdn_net *net)
{
    return net->layers * cdn_directions(&call->op->desc);
}

/* The slot of state k of the network. */
static void *get_slot(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *s, int64_t k)
{
    return s->slots[SEQLSTM_SLOT_RECURRENT_STATE(net->first * cdn_directions(&call->op->desc) + k, s->which)];
}

static bool any_slot(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *s)
{
    for (int64_t k = 0; k < get_count(call, net); k++)
        if (get_slot(call, net, s, k) != NULL)
            return true;
    return false;
}

static bool used_directly(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *s)
{
    return get_count(call, net) == 1 && is_direct(call, get_slot(call, net, s, 0));
}

seqlstm_status cdn_states_read(const struct cdn_call *call, struct cdn_moves *moves, const struct cdn_net *net,
                               const struct cdn_states *s, const void **out_pointer, struct seqlstm_error *err)
{
    const int64_t elems = call->binding->shape.sequences * s->width;
    const uint64_t bytes = (uint64_t)elems * cdn_element_bytes(&call->op->desc);
    unsigned char *together = call->workspace + call->run->places.states[s->place];
    *out_pointer = NULL;
    if (!any_slot(call, net, s))
        return SEQLSTM_OK;
    *out_pointer = used_directly(call, net, s) ? get_slot(call, net, s, 0) : together;
    for (int64_t k = 0; *out_pointer == together && k < get_count(call, net); k++) {
        const void *slot = get_slot(call, net, s, k);
        if (slot != NULL)
            SEQLSTM_TRY(cdn_ranges_put(&moves->in, together + (uint64_t)k * bytes, slot, elems, err));
        else
            SEQLSTM_TRY(gpu_fill(call->op->ordinal, call->stream, together + (uint64_t)k * bytes, 0, bytes, err));
    }
    return SEQLSTM_OK;
}

void *cdn_states_write(const struct cdn_call *call, const struct cdn_net *net, const struct cdn_states *s)
{
    if (!any_slot(call, net, s))
        return NULL;
    return used_directly(call, net, s) ? get_slot(call, net, s, 0)
                                       : call->workspace + call->run->places.states[s->place];
}

seqlstm_status cdn_states_written(const struct cdn_call *call, struct cdn_moves *moves, const struct cdn_net *net,
                                  const struct cdn_states *s, struct seqlstm_error *err)
{
    const int64_t elems = call->binding->shape.sequences * s->width;
    const uint64_t bytes = (uint64_t)elems * cdn_element_bytes(&call->op->desc);
    const unsigned char *together = call->workspace + call->run->places.states[s->place];
    if (!any_slot(call, net, s) || used_directly(call, net, s))
        return SEQLSTM_OK;
    for (int64_t k = 0; k < get_count(call, net); k++)
        if (get_slot(call, net, s, k) != NULL)
            SEQLSTM_TRY(
                cdn_ranges_put(&moves->out, get_slot(call, net, s, k), together + (uint64_t)k * bytes, elems, err));
    return SEQLSTM_OK;
}
