/* SPDX-License-Identifier: Apache-2.0 */
/* Backward under a plan: runs its networks from the last to the first. Data come before weights, since the former
 * prepares the reserve for the latter. Gradients of parameters are copied out at the end, so that a call which cuDNN
 * refuses midway can be repeated. */
#include "edges.h"

/* The output of a network, as forward has left it. */
static seqlstm_status read_output(const struct cdn_call *call, struct cdn_moves *moves, int32_t net, const void **out_y,
                                  struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &call->op->desc;
    *out_y = call->reserve + call->run->places.outputs[net];
    if (cdn_keeps_output(d, call->plan, net))
        return SEQLSTM_OK;
    *out_y = call->workspace + call->run->places.y;
    return call->again ? SEQLSTM_OK
                       : cdn_edge_read(call, moves, call->slots[SEQLSTM_SLOT_RECURRENT_Y],
                                       call->workspace + call->run->places.y, call->binding->shape.rows * cdn_width(d),
                                       out_y, err);
}

static seqlstm_status read_input(const struct cdn_call *call, struct cdn_moves *moves, int32_t net, const void **out_x,
                                 struct seqlstm_error *err)
{
    if (net > 0)
        return read_output(call, moves, net - 1, out_x, err);
    *out_x = call->reserve + call->run->places.input;
    return cdn_keeps_edges(&call->op->desc)
               ? SEQLSTM_OK
               : cdn_edge_read(call, moves, call->slots[SEQLSTM_SLOT_RECURRENT_X],
                               call->workspace + call->run->places.x, call->binding->shape.rows * call->op->desc.input,
                               out_x, err);
}

/* The gradient of the last network's output; zero if the host has none. */
static seqlstm_status read_output_gradient(const struct cdn_call *call, struct cdn_moves *moves, const void **out_dy,
                                           struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &call->op->desc;
    const int64_t elems = call->binding->shape.rows * cdn_width(d);
    void *slot = d->options & SEQLSTM_BIT_RECURRENT_OUTPUT ? call->grads[SEQLSTM_SLOT_RECURRENT_Y] : NULL;
    if (slot != NULL)
        return cdn_edge_read(call, moves, slot, call->workspace + call->run->places.dy, elems, out_dy, err);
    *out_dy = call->workspace + call->run->places.dy;
    return gpu_fill(call->op->ordinal, call->stream, call->workspace + call->run->places.dy, 0,
                    (uint64_t)elems * cdn_element_bytes(d), err);
}

/* The states of one network in backward. */
struct states {
    struct cdn_states dh0, dc0;
    const void *hx, *cx, *dhy, *dcy;
    void *dhx, *dcx;
};

static seqlstm_status read_states(const struct cdn_call *call, struct cdn_moves *moves, const struct cdn_net *net,
                                  struct states *s, struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc *d = &call->op->desc;
    const int64_t h = d->hidden, o = cdn_output(d);
    const bool lstm = d->cell == SEQLSTM_CELL_LSTM;
    const struct cdn_states h0 = {call->slots, SEQLSTM_STATE_H0, o, CDN_STATE_H};
    const struct cdn_states c0 = {call->slots, SEQLSTM_STATE_C0, h, CDN_STATE_C};
    const struct cdn_states dhn = {call->grads, SEQLSTM_STATE_HN, o, CDN_STATE_HN};
    const struct cdn_states dcn = {call->grads, SEQLSTM_STATE_CN, h, CDN_STATE_CN};
    *s = (struct states){.dh0 = {call->grads, SEQLSTM_STATE_H0, o, CDN_STATE_DH},
                         .dc0 = {call->grads, SEQLSTM_STATE_C0, h, CDN_STATE_DC}};
    if (d->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) {
        SEQLSTM_TRY(cdn_states_read(call, moves, net, &h0, &s->hx, err));
        if (lstm)
            SEQLSTM_TRY(cdn_states_read(call, moves, net, &c0, &s->cx, err));
    }
    if ((d->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) && (call->parts & SEQLSTM_BIT_BACKWARD_STATES)) {
        s->dhx = cdn_states_write(call, net, &s->dh0);
        s->dcx = lstm ? cdn_states_write(call, net, &s->dc0) : NULL;
    }
    if (d->options & SEQLSTM_BIT_RECURRENT_FINAL_STATE) {
        SEQLSTM_TRY(cdn_states_read(call, moves, net, &dhn, &s->dhy, err));
        if (lstm)
            SEQLSTM_TRY(cdn_states_read(call, moves, net, &dcn, &s->dcy, err));
    }
    return SEQLSTM_OK;
}

static seqlstm_status run(const struct cdn_call *call, struct cdn_moves *moves, int32_t k, const void *dy, void *dx,
                          struct seqlstm_error *err)
{
    const struct cdn_net *net = &call->plan->nets[k];
    const struct cdn_session *s = &call->run->sessions[k];
    const struct cdn_places *places = &call->run->places;
    const cudnnHandle_t handle = call->binding->handle->native;
    const unsigned char *weights = call->packed + net->packed_offset;
    unsigned char *library = call->workspace + places->library, *reserve = call->reserve + places->reserves[k];
    struct states states;
    const void *x, *y;
    SEQLSTM_TRY(read_output(call, moves, k, &y, err));
    SEQLSTM_TRY(read_states(call, moves, net, &states, err));
    SEQLSTM_TRY(cdn_ranges_copy(&moves->in, err));
    SEQLSTM_TRY(
        cdn_check(cdn.RNNBackwardData_v8(handle, s->rnn, NULL, s->y, y, dy, s->x, dx, s->h, states.hx, states.dhy,
                                         states.dhx, s->c, states.cx, states.dcy, states.dcx, (size_t)net->weight_bytes,
                                         weights, s->workspace_bytes, library, s->reserve_bytes, reserve),
                  "RNNBackwardData_v8", err));
    if (states.dhx != NULL)
        SEQLSTM_TRY(cdn_states_written(call, moves, net, &states.dh0, err));
    if (states.dcx != NULL)
        SEQLSTM_TRY(cdn_states_written(call, moves, net, &states.dc0, err));
    if (!(call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS))
        return SEQLSTM_OK;
    SEQLSTM_TRY(read_input(call, moves, k, &x, err));
    SEQLSTM_TRY(cdn_ranges_copy(&moves->in, err));
    return cdn_check(cdn.RNNBackwardWeights_v8(handle, s->rnn, CUDNN_WGRAD_MODE_ADD, NULL, s->x, x, s->h, states.hx,
                                               s->y, y, (size_t)net->weight_bytes,
                                               call->workspace + places->gradients + net->gradient_offset,
                                               s->workspace_bytes, library, s->reserve_bytes, reserve),
                     "RNNBackwardWeights_v8", err);
}

seqlstm_status cdn_backward(const struct cdn_call *call, struct seqlstm_error *err)
{
    const struct cdn_places *places = &call->run->places;
    const bool weights = call->parts & SEQLSTM_BIT_BACKWARD_WEIGHTS;
    void *slot = call->parts & SEQLSTM_BIT_BACKWARD_INPUTS ? call->grads[SEQLSTM_SLOT_RECURRENT_X] : NULL;
    struct cdn_moves moves = cdn_moves_make(call);
    const void *dy;
    if (weights)
        SEQLSTM_TRY(cdn_gradients_begin(call, err));
    SEQLSTM_TRY(read_output_gradient(call, &moves, &dy, err));
    for (int32_t k = call->plan->count - 1; k >= 0; k--) {
        void *dx = k > 0 ? (void *)(call->workspace + places->between[k % 2])
                         : cdn_edge_write(call, slot, call->workspace + places->dx);
        SEQLSTM_TRY(cdn_ranges_copy(&moves.out, err)); /* the next network writes where this one has */
        SEQLSTM_TRY(run(call, &moves, k, dy, dx, err));
        dy = dx;
    }
    SEQLSTM_TRY(cdn_edge_written(&moves, slot, dy, call->binding->shape.rows * call->op->desc.input, err));
    if (weights)
        SEQLSTM_TRY(cdn_gradients_end(call, &moves.out, err));
    return cdn_ranges_copy(&moves.out, err);
}
