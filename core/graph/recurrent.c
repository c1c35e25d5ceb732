/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of type lstm, gru and rnn.
 *
 * A layer of the model file with `layers: L` becomes L operations of one layer each and, where L > 1, an
 * alternative for each contiguous part of the stack. Mask streams belong to the sub-layer, so the masks do not
 * depend on the choice. With `return_sequences: false` a layer only outputs final states, and the last h of both
 * directions are merged.
 */
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

/* Parts of deeper stacks are not offered: their number grows with the square of the depth. */
enum { SEGMENTED_LAYERS = 12 };

/* The tensors of one (sub-layer, direction), -1 where absent, in the order of the slots. */
struct cell_tensors {
    struct sl_cell_states *states;
    int32_t params[SEQLSTM_PARAM_COUNT];
};

/* One layer of the model file. */
struct stack {
    struct sl_builder *b;
    const struct sl_layer *layer;
    const struct sl_recurrent *options;
    int32_t directions;
    int64_t gates;  /* G */
    int64_t output; /* O: projection or units */
    int64_t width;  /* features of the merged output */
    bool is_lstm;
};

static const char *const direction_names[2] = {"forward", "backward"};

static int32_t get_direction(const struct stack *s, int32_t d)
{
    return s->options->direction == SL_DIRECTION_BACKWARD ? 1 : d;
}

static void fill_activations(const struct stack *s, struct seqlstm_recurrent_desc *desc)
{
    const struct sl_recurrent *o = s->options;
    for (int32_t d = 0; d < s->directions; d++) {
        int32_t from = get_direction(s, d);
        if (s->layer->kind != SL_LAYER_RNN)
            desc->activations[SEQLSTM_PLACE_GATE][d] = sl_builder_get_activation(&o->recurrent_activation[from]);
        desc->activations[SEQLSTM_PLACE_CANDIDATE][d] = sl_builder_get_activation(&o->activation[from]);
        if (s->is_lstm)
            desc->activations[SEQLSTM_PLACE_OUTPUT][d] = sl_builder_get_activation(&o->output_activation[from]);
    }
}

static bool runs_in_pieces(const struct stack *s)
{
    return s->b->training && s->b->request->pieces > 0 && s->options->direction == SL_DIRECTION_FORWARD &&
           sl_builder_get_side(s->b, s->layer)->steps == SL_AXIS_STEPS;
}

static uint32_t get_options(const struct stack *s)
{
    const struct sl_recurrent *o = s->options;
    uint32_t bits = 0;
    if (o->use_bias)
        bits |= SEQLSTM_BIT_RECURRENT_USE_BIAS;
    if (o->peephole)
        bits |= SEQLSTM_BIT_RECURRENT_PEEPHOLE;
    if (o->coupled_gates)
        bits |= SEQLSTM_BIT_RECURRENT_COUPLED_GATES;
    if (o->layer_norm)
        bits |= SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    if (s->layer->kind == SL_LAYER_GRU && o->reset_after)
        bits |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    const struct sl_cell_states *first = s->b->layer_states[s->layer->index];
    if (first->slots[SEQLSTM_STATE_H0] >= 0)
        bits |= SEQLSTM_BIT_RECURRENT_INITIAL_STATE;
    if (first->slots[SEQLSTM_STATE_HN] >= 0 || o->gives_state)
        bits |= SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    if (s->b->training && first->slots[SEQLSTM_STATE_H0] >= 0 &&
        s->b->tensors[first->slots[SEQLSTM_STATE_H0]].role == SL_TENSOR_BEFORE)
        bits |= SEQLSTM_BIT_RECURRENT_STEPWISE;
    if (runs_in_pieces(s)) /* a piece begins where the one before has ended */
        bits |=
            SEQLSTM_BIT_RECURRENT_STEPWISE | SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    return bits;
}

static union seqlstm_any_desc describe(const struct stack *s, int64_t input, int64_t layers, int64_t first_layer,
                                       bool has_output, bool has_final)
{
    const struct sl_recurrent *o = s->options;
    union seqlstm_any_desc any =
        sl_builder_describe(s->b, SEQLSTM_OP_RECURRENT, sl_builder_get_side(s->b, s->layer)->steps);
    struct seqlstm_recurrent_desc *desc = &any.recurrent;
    desc->cell = s->is_lstm ? SEQLSTM_CELL_LSTM : s->layer->kind == SL_LAYER_GRU ? SEQLSTM_CELL_GRU : SEQLSTM_CELL_RNN;
    desc->direction = o->direction == SL_DIRECTION_FORWARD    ? SEQLSTM_DIRECTION_FORWARD
                      : o->direction == SL_DIRECTION_BACKWARD ? SEQLSTM_DIRECTION_BACKWARD
                                                              : SEQLSTM_DIRECTION_BIDIRECTIONAL;
    static const uint32_t merges[] = {[SL_MERGE_CONCAT] = SEQLSTM_KIND_MERGE_CONCAT,
                                      [SL_MERGE_SUM] = SEQLSTM_KIND_MERGE_SUM,
                                      [SL_MERGE_MUL] = SEQLSTM_KIND_MERGE_MUL,
                                      [SL_MERGE_AVE] = SEQLSTM_KIND_MERGE_AVE};
    desc->merge = s->directions == 2 ? merges[o->merge] : 0;
    desc->options = get_options(s);
    if (has_output)
        desc->options |= SEQLSTM_BIT_RECURRENT_OUTPUT;
    if (has_final)
        desc->options |= SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    desc->layers = layers;
    desc->input = input;
    desc->hidden = o->units;
    desc->projection = o->projection;
    desc->stream_base = sl_builder_get_stream(s->layer, first_layer);
    fill_activations(s, desc);
    if (s->b->training) {
        desc->dropout = (float)o->dropout;
        desc->recurrent_dropout = (float)o->recurrent_dropout;
        desc->weight_drop = (float)o->weight_drop;
    }
    desc->zoneout_cell = (float)o->zoneout_cell;
    desc->zoneout_hidden = (float)o->zoneout_hidden;
    desc->cell_clip = (float)o->cell_clip;
    desc->gate_clip = (float)o->gate_clip;
    desc->layer_norm_epsilon = o->layer_norm ? (float)o->layer_norm_epsilon : 0.0f;
    return any;
}

/* Sets the precision that the request asks for for this node, if it does. */
static bool quantize(const struct stack *s, const char *node, union seqlstm_any_desc *any)
{
    const struct sl_quantization *q = s->b->request->quantization;
    for (int32_t i = 0; q && i < q->count; i++)
        if (strcmp(q->layers[i].node, node) == 0) {
            any->head.dtype_compute = q->layers[i].dtype;
            any->recurrent.data_scale = q->layers[i].scale;
            any->recurrent.data_shift = q->layers[i].shift;
            return true;
        }
    return false;
}

static struct cell_tensors add_params(const struct stack *s, int64_t l, int32_t d, int64_t input)
{
    const struct sl_recurrent *o = s->options;
    struct cell_tensors t;
    memset(&t, 0xff, sizeof t); /* all -1 */
    int64_t h = o->units, gh = s->gates * h;
    char prefix[64], name[96];
    snprintf(prefix, sizeof prefix, "l%lld.%s", (long long)l, direction_names[get_direction(s, d)]);
#define NAMED(suffix) (snprintf(name, sizeof name, "%s.%s", prefix, suffix), name)
    struct sl_param_spec w_x = {.initializer = o->kernel_initializer,
                                .regularizer = o->kernel_regularizer,
                                .fan_in = input,
                                .fan_out = gh,
                                .fan_units = h,
                                .gates = s->gates};
    t.params[SEQLSTM_PARAM_W_X] = sl_builder_add_param(s->b, s->layer, NAMED("w_x"), gh, input, &w_x);
    struct sl_param_spec w_h = {.initializer = o->recurrent_initializer,
                                .regularizer = o->recurrent_regularizer,
                                .fan_in = s->output,
                                .fan_out = gh,
                                .fan_units = h,
                                .gates = s->gates};
    t.params[SEQLSTM_PARAM_W_H] = sl_builder_add_param(s->b, s->layer, NAMED("w_h"), gh, s->output, &w_h);
    if (o->use_bias) {
        bool two = s->layer->kind == SL_LAYER_GRU && o->reset_after;
        struct sl_param_spec bias = {.is_vector = true,
                                     .initializer = o->bias_initializer,
                                     .regularizer = o->bias_regularizer,
                                     .fan_in = input,
                                     .fan_out = gh,
                                     .fan_units = h};
        if (s->is_lstm && o->unit_forget_bias) {
            bias.one_begin = h;
            bias.one_end = 2 * h;
        }
        t.params[SEQLSTM_PARAM_BIAS] = sl_builder_add_param(s->b, s->layer, NAMED("bias"), two ? 4 * h : gh, 1, &bias);
    }
    if (o->peephole) {
        struct sl_param_spec peephole = {
            .is_vector = true, .initializer = o->peephole_initializer, .fan_in = h, .fan_out = h, .fan_units = h};
        t.params[SEQLSTM_PARAM_PEEPHOLE] = sl_builder_add_param(s->b, s->layer, NAMED("peephole"), 3 * h, 1, &peephole);
    }
    if (o->projection) {
        struct sl_param_spec projection = {
            .initializer = o->projection_initializer, .fan_in = h, .fan_out = o->projection, .fan_units = h};
        t.params[SEQLSTM_PARAM_PROJECTION] =
            sl_builder_add_param(s->b, s->layer, NAMED("projection"), o->projection, h, &projection);
    }
    if (o->layer_norm) {
        int64_t gains = 2 * gh + (s->is_lstm ? h : 0), all = gains + (s->is_lstm ? h : 0);
        struct sl_param_spec norm = {
            .is_vector = true, .initializer = {.kind = SL_INITIALIZER_ZEROS}, .one_begin = 0, .one_end = gains};
        t.params[SEQLSTM_PARAM_NORM] = sl_builder_add_param(s->b, s->layer, NAMED("norm"), all, 1, &norm);
    }
#undef NAMED
    return t;
}

/* Adds final states that are read: h if it is the layer's output, h and c if another layer reads them. */
static void add_finals(const struct stack *s, int64_t l, int32_t d, bool is_output, struct sl_cell_states *states)
{
    char name[256];
    enum sl_axis axis = sl_builder_get_side(s->b, s->layer)->sequences;
    bool gives = s->options->gives_state;
    for (int c = 0; c < (s->is_lstm && gives ? 2 : 1) && (is_output || gives); c++) {
        int32_t *slot = &states->slots[c ? SEQLSTM_STATE_CN : SEQLSTM_STATE_HN];
        snprintf(name, sizeof name, "%s.l%lld.%s.last%s", s->layer->name, (long long)l,
                 direction_names[get_direction(s, d)], c ? "_c" : "");
        if (*slot < 0)
            *slot = sl_builder_add_activation(s->b, name, axis, c ? s->options->units : s->output, true);
        else if (!s->b->failed) /* carried */
            s->b->tensors[*slot].needs_grad = s->b->training;
    }
}

/* Does something that is trained lie below the output of a layer with these cells: its own weights, its input, or what
 * its states start from? */
static bool depends_on_trained(const struct stack *s, int32_t x, const struct cell_tensors *cells)
{
    const struct sl_tensor *tensors = s->b->tensors;
    bool depends = s->layer->trainable || tensors[x].needs_grad;
    for (int32_t d = 0; d < s->directions; d++)
        for (int k = SEQLSTM_STATE_H0; k <= SEQLSTM_STATE_C0; k++)
            depends = depends || (cells[d].states->slots[k] >= 0 && tensors[cells[d].states->slots[k]].needs_grad);
    return depends;
}

static void place_cell(int32_t *slots, int32_t cells, int32_t n, const struct cell_tensors *t)
{
    for (int32_t k = 0; k < 4; k++)
        slots[SEQLSTM_SLOT_RECURRENT_STATE(n, k)] = t->states->slots[k];
    for (int32_t k = 0; k < SEQLSTM_PARAM_COUNT; k++)
        slots[SEQLSTM_SLOT_RECURRENT_PARAM(cells, n, k)] = t->params[k];
}

/* Merges the last h of all directions into one tensor on the sequences axis. */
static int32_t join_final(const struct stack *s, const struct cell_tensors *last)
{
    if (s->directions == 1)
        return last[0].states->slots[SEQLSTM_STATE_HN];
    if (!s->layer->output_used && s->b->request->output_layer != s->layer)
        return -1;
    char name[256];
    snprintf(name, sizeof name, "%s.merge", s->layer->name);
    static const uint32_t merges[] = {[SL_MERGE_CONCAT] = SEQLSTM_KIND_MERGE_CONCAT,
                                      [SL_MERGE_SUM] = SEQLSTM_KIND_MERGE_SUM,
                                      [SL_MERGE_MUL] = SEQLSTM_KIND_MERGE_MUL,
                                      [SL_MERGE_AVE] = SEQLSTM_KIND_MERGE_AVE};
    int32_t x[2] = {last[0].states->slots[SEQLSTM_STATE_HN], last[1].states->slots[SEQLSTM_STATE_HN]};
    return sl_builder_add_merge(s->b, name, s->layer->index, x, 2, merges[s->options->merge]);
}

/* Offers layers [first, first + count) as one operation, as an alternative to their nodes. */
static void offer_segment(const struct stack *s, const struct cell_tensors *tensors, const int32_t *xs, int64_t first,
                          int64_t count, int32_t node)
{
    struct sl_builder *b = s->b;
    int32_t cells = (int32_t)count * s->directions, slot_count = SEQLSTM_SLOT_RECURRENT_COUNT(cells);
    int32_t *slots = SL_ARENA_ARRAY(b->arena, int32_t, (size_t)slot_count);
    if (slots == NULL) {
        b->failed = true;
        return;
    }
    memset(slots, 0xff, (size_t)slot_count * sizeof *slots);
    for (int32_t n = 0; n < cells; n++)
        place_cell(slots, cells, n, &tensors[first * s->directions + n]);
    slots[SEQLSTM_SLOT_RECURRENT_X] = xs[first];
    slots[SEQLSTM_SLOT_RECURRENT_Y] = xs[first + count];
    char name[256];
    if (count == s->options->layers)
        snprintf(name, sizeof name, "%s", s->layer->name);
    else
        snprintf(name, sizeof name, "%s.l%lld-l%lld", s->layer->name, (long long)first, (long long)(first + count - 1));
    bool has_output = xs[first + count] >= 0;
    union seqlstm_any_desc desc = describe(s, b->tensors[xs[first]].features, count, first, has_output, !has_output);
    sl_builder_add_alternative(b, name, s->layer->index, &desc, slots, slot_count, node, (int32_t)count);
}

/* Offers every contiguous part of the stack, the whole stack first. Of a deep stack it offers only the whole; of a
 * stack that is deeper than an operation may be, nothing. */
static void offer_segments(const struct stack *s, const struct cell_tensors *tensors, const int32_t *xs,
                           int32_t first_node)
{
    int64_t layers = s->options->layers;
    if (layers > 1 && layers <= SEQLSTM_MAX_LAYERS)
        offer_segment(s, tensors, xs, 0, layers, first_node);
    for (int64_t count = layers - 1; count > 1 && layers <= SEGMENTED_LAYERS; count--)
        for (int64_t first = 0; first + count <= layers && !s->b->failed; first++)
            offer_segment(s, tensors, xs, first, count, first_node + (int32_t)first);
}

seqlstm_status sl_graph_add_recurrent(struct sl_builder *b, const struct sl_layer *layer)
{
    const struct sl_recurrent *o = &layer->recurrent;
    int32_t x = sl_builder_get_input(b, layer, 0);
    if (!sl_axis_is_steps(b->tensors[x].axis))
        return sl_builder_fail(b, layer->place, "layer `%s` needs a sequence, but its input is one vector per record",
                               layer->name);
    if (b->tensors[x].dtype != SEQLSTM_DTYPE_FLOAT32)
        return sl_builder_fail(b, layer->place,
                               "layer `%s` needs numbers, but the data are token ids; put an embedding layer before it",
                               layer->name);
    struct stack s = {.b = b,
                      .layer = layer,
                      .options = o,
                      .directions = o->direction == SL_DIRECTION_BIDIRECTIONAL ? 2 : 1,
                      .gates = layer->kind == SL_LAYER_LSTM  ? 4
                               : layer->kind == SL_LAYER_GRU ? 3
                                                             : 1,
                      .output = o->projection ? o->projection : o->units,
                      .is_lstm = layer->kind == SL_LAYER_LSTM};
    s.width = s.directions == 2 && o->merge == SL_MERGE_CONCAT ? 2 * s.output : s.output;
    int32_t cells = (int32_t)o->layers * s.directions;
    struct cell_tensors *tensors = SL_ARENA_ARRAY(b->arena, struct cell_tensors, (size_t)cells);
    int32_t *xs = SL_ARENA_ARRAY(b->arena, int32_t, (size_t)o->layers + 1); /* between the layers; -1: no output */
    if (tensors == NULL || xs == NULL) {
        b->failed = true;
        return SEQLSTM_OK;
    }
    int32_t first_node = b->node_count;
    xs[0] = x;
    for (int64_t l = 0; l < o->layers && !b->failed; l++) {
        bool last = l + 1 == o->layers, has_output = !last || layer->recurrent.return_sequences;
        int64_t input = b->tensors[x].features;
        int32_t slots[SEQLSTM_SLOT_RECURRENT_COUNT(2)];
        memset(slots, 0xff, sizeof slots);
        for (int32_t d = 0; d < s.directions && !b->failed; d++) {
            struct cell_tensors *t = &tensors[l * s.directions + d];
            *t = add_params(&s, l, d, input);
            t->states = &b->layer_states[layer->index][l * s.directions + d];
            add_finals(&s, l, d, last && !has_output, t->states);
            place_cell(slots, s.directions, d, t);
        }
        char name[256];
        if (o->layers > 1)
            snprintf(name, sizeof name, "%s.l%lld", layer->name, (long long)l);
        else
            snprintf(name, sizeof name, "%s", layer->name);
        slots[SEQLSTM_SLOT_RECURRENT_X] = x;
        if (has_output)
            slots[SEQLSTM_SLOT_RECURRENT_Y] =
                sl_builder_add_activation(b, name, sl_builder_get_side(b, layer)->steps, s.width,
                                          depends_on_trained(&s, x, &tensors[l * s.directions]));
        union seqlstm_any_desc desc = describe(&s, input, 1, l, has_output, last && !has_output);
        const bool is_quantized = quantize(&s, name, &desc);
        sl_builder_add_node(b, name, layer->index, &desc, slots, SEQLSTM_SLOT_RECURRENT_COUNT(s.directions));
        if (!b->failed)
            b->nodes[b->node_count - 1].is_quantized = is_quantized;
        x = xs[l + 1] = slots[SEQLSTM_SLOT_RECURRENT_Y];
    }
    if (b->failed)
        return SEQLSTM_OK;
    if (b->request->quantization == NULL && !runs_in_pieces(&s))
        offer_segments(&s, tensors, xs, first_node);
    b->layer_outputs[layer->index] = o->return_sequences ? x : join_final(&s, &tensors[cells - s.directions]);
    return SEQLSTM_OK;
}
