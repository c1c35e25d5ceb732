/* SPDX-License-Identifier: Apache-2.0 */
/* See piece_states.h. */
#include "exec/call/piece_states.h"

#include <stdlib.h>
#include <string.h>

#include "exec/place/place.h"

seqlstm_status sl_exec_open_piece_states(struct sl_exec *exec, struct seqlstm_error *err)
{
    const struct sl_plan *plan = exec->plan;
    exec->pieces.running = -1;
    exec->pieces.states = calloc((size_t)plan->call_count + 1, sizeof *exec->pieces.states);
    exec->pieces.outer = calloc((size_t)exec->graph->tensor_count + 1, sizeof *exec->pieces.outer);
    if (!exec->pieces.states || !exec->pieces.outer)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the executor");
    for (int32_t c = exec->stage.first; c < exec->stage.end; c++) {
        struct sl_exec_piece_states *states = &exec->pieces.states[c];
        const int64_t all = sl_call_count_piece_states(exec->graph, &plan->calls[c]);
        if (all == 0)
            continue;
        states->elems[0] = sl_call_count_piece_state(exec->graph, &plan->calls[c], false);
        states->elems[1] = sl_call_count_piece_state(exec->graph, &plan->calls[c], true);
        states->values = sl_memory_alloc_zeroed(exec->memory, (size_t)all * sizeof *states->values);
        if (states->values == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the states of `%s` between pieces",
                         plan->calls[c].node->name);
        states->grads = states->values + (exec->graph->pieces + 1) * (states->elems[0] + states->elems[1]);
    }
    return SEQLSTM_OK;
}

void sl_exec_close_piece_states(struct sl_exec *exec)
{
    for (int32_t c = 0; exec->pieces.states && c < exec->plan->call_count; c++)
        sl_memory_free(exec->memory, exec->pieces.states[c].values);
    free(exec->pieces.states);
    free(exec->pieces.outer);
}

enum { KINDS = 2 }; /* h and c */

static int32_t get_slot(int kind, bool is_final)
{
    return SEQLSTM_SLOT_RECURRENT_STATE(0, (is_final ? SEQLSTM_STATE_HN : SEQLSTM_STATE_H0) + kind);
}

/* The tensor of the model that holds a state; -1: none. */
static int32_t get_tensor(const struct sl_exec *exec, int32_t c, int kind, bool is_final)
{
    return exec->plan->calls[c].node->slots[get_slot(kind, is_final)];
}

static float *get_border(const struct sl_exec_piece_states *states, int64_t border, int kind)
{
    return states->values + border * (states->elems[0] + states->elems[1]) + (kind ? states->elems[0] : 0);
}

static float *get_grad_border(const struct sl_exec_piece_states *states, int64_t border, int kind)
{
    return states->grads + border % 2 * (states->elems[0] + states->elems[1]) + (kind ? states->elems[0] : 0);
}

static int64_t get_features(const struct sl_exec *exec, int32_t c, int kind)
{
    return exec->pieces.states[c].elems[kind] > 0 ? kind || exec->plan->calls[c].node->desc.recurrent.projection == 0
                                                        ? exec->plan->calls[c].node->desc.recurrent.hidden
                                                        : exec->plan->calls[c].node->desc.recurrent.projection
                                                  : 0;
}

/* Where the values of a border lie. The first and the last one are the model's tensors where it has some. */
static float *find_border(struct sl_exec *exec, int32_t c, int32_t border, int kind)
{
    const bool is_last = border == exec->shape->piece_count;
    const int32_t t = border == 0 || is_last ? get_tensor(exec, c, kind, is_last) : -1;
    return t >= 0 ? sl_exec_at(exec, SL_PLACE_HOST, t) : get_border(&exec->pieces.states[c], border, kind);
}

void sl_exec_place_piece_states(struct sl_exec *exec, int32_t c)
{
    const struct sl_exec_piece_states *states = &exec->pieces.states[c];
    const int32_t piece = exec->pieces.running;
    for (int kind = 0; states->values && kind < KINDS; kind++) {
        if (states->elems[kind] == 0)
            continue;
        exec->calls[c].slots[get_slot(kind, false)] = find_border(exec, c, piece, kind);
        exec->calls[c].slots[get_slot(kind, true)] = find_border(exec, c, piece + 1, kind);
    }
}

void sl_exec_place_first_states(struct sl_exec *exec, int32_t c)
{
    if (exec->shape->piece_count == 0)
        return;
    exec->pieces.running = 0;
    sl_exec_place_piece_states(exec, c);
    exec->pieces.running = -1;
}

/* Sequences that have a step after the border. */
static int64_t count_ongoing(const struct sl_exec *exec, int32_t border)
{
    const struct seqlstm_axis *axis = &exec->shape->sides[SL_EXEC_TARGET].steps;
    return border < exec->shape->piece_count ? axis->batch_sizes[exec->shape->piece_bounds[border]] : 0;
}

void sl_exec_collect_piece_states(struct sl_exec *exec, int32_t c)
{
    for (int kind = 0; exec->pieces.states[c].values && kind < KINDS; kind++) {
        const int32_t t = exec->pieces.states[c].elems[kind] > 0 ? get_tensor(exec, c, kind, true) : -1;
        float *to = t >= 0 ? sl_exec_at(exec, SL_PLACE_HOST, t) : NULL;
        const int64_t features = get_features(exec, c, kind);
        for (int32_t border = 1; to && border < exec->shape->piece_count; border++) {
            const int64_t first = count_ongoing(exec, border), end = count_ongoing(exec, border - 1);
            memcpy(to + first * features, get_border(&exec->pieces.states[c], border, kind) + first * features,
                   (size_t)((end - first) * features) * sizeof *to);
        }
    }
}

/* The gradient of the right border of the running piece: of sequences that go on, what the next piece has written; of
 * the others, that of their final state. NULL: all zero. */
static float *complete_right(struct sl_exec *exec, int32_t c, int kind)
{
    const int32_t border = exec->pieces.running + 1, t = get_tensor(exec, c, kind, true);
    const int64_t first = count_ongoing(exec, border), end = count_ongoing(exec, border - 1);
    const int64_t features = get_features(exec, c, kind);
    const float *final = t >= 0 && exec->grad_valid[t] ? sl_exec_grad_at(exec, SL_PLACE_HOST, t) : NULL;
    float *grad = get_grad_border(&exec->pieces.states[c], border, kind);
    if (border == exec->shape->piece_count)
        return (float *) final;
    if (final)
        memcpy(grad + first * features, final + first * features, (size_t)((end - first) * features) * sizeof *grad);
    else
        memset(grad + first * features, 0, (size_t)((end - first) * features) * sizeof *grad);
    return grad;
}

bool sl_exec_place_piece_grads(struct sl_exec *exec, int32_t c)
{
    const struct sl_exec_piece_states *states = &exec->pieces.states[c];
    for (int kind = 0; states->values && kind < KINDS; kind++) {
        if (states->elems[kind] == 0)
            continue;
        float **left = (float **)&exec->calls[c].grads[get_slot(kind, false)];
        exec->calls[c].grads[get_slot(kind, true)] = complete_right(exec, c, kind);
        if (exec->pieces.running > 0 || *left == NULL)
            *left = get_grad_border(states, exec->pieces.running, kind);
    }
    return states->values != NULL;
}
