/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters into cuDNN's weight spaces, gradients out of them: copies of pieces (network.h). */
#include "plugin.h"

/* Copies between the canonical tensors at `slots` and a plan's spaces, which begin at `spaces`. */
static seqlstm_status copy_pieces(const struct seqlstm_op *op, const struct cdn_net *net, void *stream,
                                  void *const *slots, unsigned char *space, bool into_space, struct seqlstm_error *err)
{
    const int64_t count = op->desc.layers * cdn_directions(&op->desc);
    for (int32_t k = 0; k < net->piece_count; k++) {
        const struct cdn_piece *p = &net->pieces[k];
        float *tensor = slots[SEQLSTM_RECURRENT_PARAM(count, p->n, p->which)];
        void *inside = space + p->to_bytes;
        if (tensor == NULL)
            continue;
        SEQLSTM_TRY(gpu_copy(op->ordinal, stream, SEQLSTM_COPY_WITHIN, into_space ? inside : (void *)(tensor + p->from),
                             into_space ? (void *)(tensor + p->from) : inside, (uint64_t)p->elems * sizeof(float),
                             err));
    }
    return SEQLSTM_OK;
}

/* What no piece fills (the second bias, what cuDNN pads) must be 0. */
seqlstm_status cdn_weights_pack(const struct seqlstm_op *op, void *stream, void *const *slots, unsigned char *packed,
                                struct seqlstm_error *err)
{
    SEQLSTM_TRY(gpu_fill(op->ordinal, stream, packed, 0, op->packed_bytes, err));
    for (int32_t p = 0; p < op->plan_count; p++)
        for (int32_t k = 0; k < op->plans[p].count; k++) {
            const struct cdn_net *net = &op->plans[p].nets[k];
            const bool shared = p > 0 && net->packed_offset == op->plans[0].nets[k].packed_offset;
            if (!shared)
                SEQLSTM_TRY(copy_pieces(op, net, stream, slots, packed + net->packed_offset, true, err));
        }
    return SEQLSTM_OK;
}

/* cuDNN adds to what is there, and knows no other way. */
seqlstm_status cdn_gradients_begin(const struct cdn_call *call, struct seqlstm_error *err)
{
    unsigned char *gradients = call->workspace + call->run->places.gradients;
    SEQLSTM_TRY(gpu_fill(call->op->ordinal, call->stream, gradients, 0, call->plan->weight_bytes, err));
    for (int32_t k = 0; (call->parts & SEQLSTM_BACKWARD_ACCUMULATE) && k < call->plan->count; k++)
        SEQLSTM_TRY(copy_pieces(call->op, &call->plan->nets[k], call->stream, call->grads,
                                gradients + call->plan->nets[k].gradient_offset, true, err));
    return SEQLSTM_OK;
}

seqlstm_status cdn_gradients_end(const struct cdn_call *call, struct seqlstm_error *err)
{
    unsigned char *gradients = call->workspace + call->run->places.gradients;
    for (int32_t k = 0; k < call->plan->count; k++)
        SEQLSTM_TRY(copy_pieces(call->op, &call->plan->nets[k], call->stream, call->grads,
                                gradients + call->plan->nets[k].gradient_offset, false, err));
    return SEQLSTM_OK;
}
