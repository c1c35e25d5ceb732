/* SPDX-License-Identifier: Apache-2.0 */
/* The initial states of recurrent layers, and what else a decoder reads from its encoder.
 *
 *   encoder's final states ─ both directions joined ─ dense bridge ─ gather: the decoder's order ─ h0, c0
 *   encoder's vector ────────────────────────────────────────────── gather ───────────────────── repeat
 *   encoder's steps ─────────────────────────────────────────────── attention.c
 *
 * A whole model uses the gathered states at once. If encoder and decoder run separately, the encoder writes them as the
 * decoder's carried states, which the decoder reads and updates from step to step. A vector that is repeated is a
 * carried state that does not change.
 */
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

/* A recurrent layer, and where its initial states come from. */
struct start {
    struct sl_builder *b;
    const struct sl_layer *layer, *giver; /* giver NULL: they are zero, or carried */
    int32_t directions;
    bool crosses; /* from the encoder to the decoder */
};

static int32_t get_directions(const struct sl_layer *layer)
{
    return layer->recurrent.direction == SL_DIRECTION_BIDIRECTIONAL ? 2 : 1;
}

static bool carries(const struct sl_builder *b, const struct sl_layer *layer)
{
    return b->carries_state && layer->side == SL_SIDE_DECODER;
}

/* Width of h (which 0) or c (1). */
static int64_t get_width(const struct sl_layer *layer, int which)
{
    const struct sl_recurrent *o = &layer->recurrent;
    return which == 0 && o->projection ? o->projection : o->units;
}

static void name_state(const struct start *s, int64_t l, int32_t d, const char *which, char *out, size_t bytes)
{
    bool backward = d == 1 || s->layer->recurrent.direction == SL_DIRECTION_BACKWARD;
    snprintf(out, bytes, "l%lld.%s.%s", (long long)l, backward ? "backward" : "forward", which);
}

static void carry(const struct start *s, int64_t l, int32_t d, struct sl_cell_states *states)
{
    struct sl_builder *b = s->b;
    for (int c = 0; c < (s->layer->kind == SL_LAYER_LSTM ? 2 : 1) && !b->failed; c++) {
        char suffix[64], name[256];
        name_state(s, l, d, c ? "c" : "h", suffix, sizeof suffix);
        snprintf(name, sizeof name, "%s.%s", s->layer->name, suffix);
        int32_t state = sl_builder_add_state(b, name, get_width(s->layer, c));
        if (b->failed)
            return;
        states->slots[c ? SEQLSTM_STATE_C0 : SEQLSTM_STATE_H0] = b->states[state].tensor_in;
        states->slots[c ? SEQLSTM_STATE_CN : SEQLSTM_STATE_HN] = b->states[state].tensor_out;
    }
}

/* The state of the giver for h or c of one (sub-layer, direction); its directions are merged if the layer has fewer. */
static int32_t find_given(const struct start *s, int64_t l, int32_t d, int which)
{
    struct sl_builder *b = s->b;
    const struct sl_layer *giver = s->giver;
    if (!sl_layer_is_recurrent(giver))
        return b->layer_outputs[giver->index];
    int32_t directions = get_directions(giver);
    const struct sl_cell_states *from = &b->layer_states[giver->index][l * directions];
    int slot = which == 1 && giver->kind == SL_LAYER_LSTM ? SEQLSTM_STATE_CN : SEQLSTM_STATE_HN;
    if (directions == s->directions)
        return from[d].slots[slot];
    int32_t both[2] = {from[0].slots[slot], from[1].slots[slot]};
    char name[256];
    snprintf(name, sizeof name, "%s.l%lld.joined_%c", s->layer->name, (long long)l, which ? 'c' : 'h');
    bool sum = s->layer->recurrent.initial_state.bridge == SL_BRIDGE_SUM;
    return sl_builder_add_merge(b, name, s->layer->index, both, 2,
                                sum ? SEQLSTM_KIND_MERGE_SUM : SEQLSTM_KIND_MERGE_CONCAT);
}

static int32_t get_place(struct sl_builder *b)
{
    if (b->place < 0)
        b->place = sl_builder_add_tensor(b, "place", SL_TENSOR_PLACE, SL_AXIS_SEQUENCES, SEQLSTM_DTYPE_INT32, 0, 1);
    return b->place;
}

/* Adds h0 or c0 of one (sub-layer, direction). */
static void start(const struct start *s, int64_t l, int32_t d, int which, struct sl_cell_states *states)
{
    struct sl_builder *b = s->b;
    char suffix[64], name[256];
    int32_t x = find_given(s, l, d, which);
    if (s->layer->recurrent.initial_state.bridge == SL_BRIDGE_DENSE && !b->failed) {
        name_state(s, l, d, which ? "bridge_c" : "bridge_h", suffix, sizeof suffix);
        x = sl_builder_add_linear(b, s->layer, suffix, x, get_width(s->layer, which),
                                  which ? SL_ACTIVATION_LINEAR : SL_ACTIVATION_TANH);
    }
    if (s->crosses && !b->failed) {
        name_state(s, l, d, which ? "c0" : "h0", suffix, sizeof suffix);
        snprintf(name, sizeof name, "%s.%s", s->layer->name, suffix);
        int32_t next = states->slots[which ? SEQLSTM_STATE_CN : SEQLSTM_STATE_HN];
        int32_t place = get_place(b), y = b->request->part == SL_PART_ENCODER ? next : -1;
        x = b->failed ? x : sl_builder_add_gather(b, name, s->layer->index, x, place, y);
    }
    if (b->request->part == SL_PART_WHOLE)
        states->slots[which ? SEQLSTM_STATE_C0 : SEQLSTM_STATE_H0] = x;
}

seqlstm_status sl_graph_add_starts(struct sl_builder *b, const struct sl_layer *layer)
{
    const struct sl_recurrent *o = &layer->recurrent;
    struct start s = {.b = b, .layer = layer, .directions = get_directions(layer)};
    size_t cells = (size_t)o->layers * (size_t)s.directions;
    struct sl_cell_states *states = SL_ARENA_ARRAY(b->arena, struct sl_cell_states, cells);
    if (states == NULL) {
        b->failed = true;
        return SEQLSTM_OK;
    }
    memset(states, 0xff, cells * sizeof *states); /* all -1 */
    b->layer_states[layer->index] = states;
    if (o->initial_state.layer != SL_NO_LAYER) {
        s.giver = &b->model->layers[o->initial_state.layer];
        s.crosses = s.giver->side != layer->side;
        if (!sl_layer_is_recurrent(s.giver) && sl_axis_is_steps(b->tensors[b->layer_outputs[s.giver->index]].axis))
            return sl_builder_fail(b, sl_layer_find_option_place(layer, "initial_state"),
                                   "layer `%s` starts from a vector, but `%s` yields one for each step", layer->name,
                                   s.giver->name);
    }
    for (int64_t l = 0; l < o->layers; l++)
        for (int32_t d = 0; d < s.directions; d++) {
            struct sl_cell_states *own = &states[l * s.directions + d];
            if (carries(b, layer))
                carry(&s, l, d, own);
            for (int c = 0; s.giver && c < (layer->kind == SL_LAYER_LSTM ? 2 : 1) && !b->failed; c++)
                start(&s, l, d, c, own);
        }
    return SEQLSTM_OK;
}

/* Adds the gathered vector of the encoder, once for all layers that repeat it. */
static seqlstm_status cross_vector(struct sl_builder *b, const struct sl_layer *repeat)
{
    const struct sl_layer *giver = &b->model->layers[repeat->from[0]];
    int32_t x = b->layer_outputs[giver->index];
    for (int i = (int)b->model->encoder_count; i < repeat->index; i++)
        if (b->model->layers[i].kind == SL_LAYER_REPEAT && b->model->layers[i].from[0] == giver->index)
            return SEQLSTM_OK;
    if (sl_axis_is_steps(b->tensors[x].axis) || b->tensors[x].dtype != SEQLSTM_DTYPE_FLOAT32)
        return sl_builder_fail(b, repeat->place, "layer `%s` repeats a vector, but `%s` yields one for each step",
                               repeat->name, giver->name);
    char name[256];
    snprintf(name, sizeof name, "%s.vector", giver->name);
    int32_t state = carries(b, repeat) ? sl_builder_add_state(b, name, b->tensors[x].features) : -1;
    int32_t place = get_place(b);
    if (b->failed)
        return SEQLSTM_OK;
    int32_t y = b->request->part == SL_PART_ENCODER ? b->states[state].tensor_out : -1;
    y = sl_builder_add_gather(b, name, repeat->index, x, place, y);
    b->repeated[giver->index] = state >= 0 ? b->states[state].tensor_in : y;
    return SEQLSTM_OK;
}

seqlstm_status sl_graph_cross(struct sl_builder *b)
{
    for (size_t l = b->model->encoder_count; l < b->model->layer_count && !b->failed; l++) {
        const struct sl_layer *layer = &b->model->layers[l];
        if (sl_layer_is_recurrent(layer))
            SEQLSTM_TRY(sl_graph_add_starts(b, layer));
        else if (layer->kind == SL_LAYER_REPEAT)
            SEQLSTM_TRY(cross_vector(b, layer));
        else if (layer->kind == SL_LAYER_ATTENTION)
            SEQLSTM_TRY(sl_graph_cross_memory(b, layer));
    }
    b->decoder_node = b->node_count;
    b->decoder_alternative = b->alternative_count;
    return SEQLSTM_OK;
}
