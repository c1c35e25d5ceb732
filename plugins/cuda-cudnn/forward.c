/* SPDX-License-Identifier: Apache-2.0 */
/* Forward under a plan: runs its networks one after another. */
#include "edges.h"

/* The output of a network: slot Y for the last one, if wanted; otherwise the reserve, or in inference the workspace. */
static void *get_output(const struct cdn_call *call, int32_t net)
{
    const struct cdn_places *places = &call->run->places;
    if (!cdn_keeps_output(&call->op->desc, call->plan, net))
        return cdn_edge_write(call, call->again ? NULL : call->slots[SEQLSTM_SLOT_RECURRENT_Y],
                              call->workspace + places->y);
    if (call->op->desc.head.mode == SEQLSTM_MODE_TRAINING)
        return call->reserve + places->outputs[net];
    return net + 1 < call->plan->count ? call->workspace + places->between[net % 2] : call->workspace + places->y;
}

static seqlstm_status run(const struct cdn_call *call, struct cdn_moves *moves, int32_t k, const void *x, void *y,
                          struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &call->op->desc;
    const struct cdn_net *net = &call->plan->nets[k];
    const struct cdn_session *s = &call->run->sessions[k];
    const struct cdn_places *places = &call->run->places;
    const bool training = d->head.mode == SEQLSTM_MODE_TRAINING, lstm = d->cell == SEQLSTM_CELL_LSTM;
    const struct cdn_states h0 = {call->slots, SEQLSTM_STATE_H0, cdn_output(d), CDN_STATE_H};
    const struct cdn_states c0 = {call->slots, SEQLSTM_STATE_C0, d->hidden, CDN_STATE_C};
    const struct cdn_states hn = {call->slots, SEQLSTM_STATE_HN, cdn_output(d), CDN_STATE_HN};
    const struct cdn_states cn = {call->slots, SEQLSTM_STATE_CN, d->hidden, CDN_STATE_CN};
    const void *hx = NULL, *cx = NULL;
    void *hy = NULL, *cy = NULL;
    if (d->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) {
        SEQLSTM_TRY(cdn_states_read(call, moves, net, &h0, &hx, err));
        if (lstm)
            SEQLSTM_TRY(cdn_states_read(call, moves, net, &c0, &cx, err));
    }
    if ((d->options & SEQLSTM_BIT_RECURRENT_FINAL_STATE) && !call->again) {
        hy = cdn_states_write(call, net, &hn);
        cy = lstm ? cdn_states_write(call, net, &cn) : NULL;
    }
    SEQLSTM_TRY(cdn_ranges_copy(&moves->in, err));
    SEQLSTM_TRY(cdn_check(cdn.RNNForward(call->binding->handle->native, s->rnn,
                                         training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, NULL, s->x, x,
                                         s->y, y, s->h, hx, hy, s->c, cx, cy, (size_t)net->weight_bytes,
                                         call->packed + net->packed_offset, s->workspace_bytes,
                                         call->workspace + places->library, training ? s->reserve_bytes : 0,
                                         training ? call->reserve + places->reserves[k] : NULL),
                          "RNNForward", err));
    if (hy != NULL)
        SEQLSTM_TRY(cdn_states_written(call, moves, net, &hn, err));
    return cy != NULL ? cdn_states_written(call, moves, net, &cn, err) : SEQLSTM_OK;
}

seqlstm_status cdn_forward(const struct cdn_call *call, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &call->op->desc;
    const int64_t rows = call->binding->shape.rows;
    const struct cdn_places *places = &call->run->places;
    unsigned char *input = cdn_keeps_edges(d) ? call->reserve + places->input : call->workspace + places->x;
    struct cdn_moves moves = cdn_moves_make(call);
    const void *x;
    SEQLSTM_TRY(cdn_edge_read(call, &moves, call->slots[SEQLSTM_SLOT_RECURRENT_X], input, rows * d->input, &x, err));
    for (int32_t k = 0; k < call->plan->count; k++) {
        void *y = get_output(call, k);
        SEQLSTM_TRY(cdn_ranges_copy(&moves.out, err)); /* the next network writes where this one has */
        SEQLSTM_TRY(run(call, &moves, k, x, y, err));
        x = y;
    }
    if ((d->options & SEQLSTM_BIT_RECURRENT_OUTPUT) && !call->again)
        SEQLSTM_TRY(cdn_edge_written(&moves, call->slots[SEQLSTM_SLOT_RECURRENT_Y], x, rows * cdn_width(d), err));
    return cdn_ranges_copy(&moves.out, err);
}
