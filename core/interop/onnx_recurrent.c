/* SPDX-License-Identifier: Apache-2.0 */
/* lstm, gru and rnn layers as ONNX's LSTM, GRU and RNN operators.
 *
 *   ours                  ONNX
 *   gates i f g o         i o f c
 *   gates r z n           z r h
 *   bias [G H]            [Wb, Rb]: Rb is zero but for the candidate of a GRU that resets after the product
 *   peephole i f o        i o f
 *   [batch, time, I]      X [time, batch, I]
 *   y                     Y [time, directions, batch, H]
 */
#include <stdlib.h>
#include <string.h>

#include "interop/onnx_builder.h"

struct cell {
    struct sl_onnx_builder *b;
    const struct sl_node *node;
    const struct seqlstm_recurrent_desc *desc;
    int32_t directions;
    int32_t gates;
};

static int32_t get_tensor(const struct cell *c, int32_t d, int32_t which)
{
    return c->node->slots[SEQLSTM_RECURRENT_PARAM(c->directions, d, which)];
}

static const float *find_values(const struct cell *c, int32_t d, int32_t which)
{
    int32_t tensor = get_tensor(c, d, which);
    return tensor < 0 ? NULL : c->b->values[c->b->graph->tensors[tensor].owner];
}

static seqlstm_status check(const struct cell *c)
{
    const struct seqlstm_recurrent_desc *d = c->desc;
    const struct {
        bool is_on;
        uint32_t option;
        const char *reason;
    } refusals[] = {
        {d->projection > 0, SEQLSTM_OPTION_PROJECTION, "ONNX's LSTM has no projection"},
        {(d->options & SEQLSTM_RECURRENT_LAYER_NORM) != 0, SEQLSTM_OPTION_LAYER_NORM,
         "ONNX's recurrent operators have no layer norm inside"},
        {d->cell_clip > 0, SEQLSTM_OPTION_CELL_CLIP, "ONNX's LSTM limits the inputs of its activations, not the cell"},
        {d->zoneout_cell > 0 || d->zoneout_hidden > 0, SEQLSTM_OPTION_ZONEOUT,
         "ONNX's recurrent operators have no zoneout, which changes inference too"},
    };
    for (size_t k = 0; k < sizeof refusals / sizeof *refusals; k++)
        if (refusals[k].is_on)
            return sl_onnx_refuse(c->b, c->node, refusals[k].option, refusals[k].reason);
    return SEQLSTM_OK;
}

/* Blocks of H rows: out block k = in block of[k], < 0: zeros. All directions one after the other. */
static struct sl_onnx_name add_blocks(const struct cell *c, const char *name, int32_t which, const int32_t *of,
                                      int32_t count, int64_t columns)
{
    int64_t height = c->desc->hidden, block = height * columns;
    int64_t shape[3] = {c->directions, count * height, columns};
    struct sl_onnx_name none = {""};
    float *all = calloc((size_t)(c->directions * count * block), sizeof *all);
    if (all == NULL) {
        c->b->graph_fields.failed = true;
        return none;
    }
    for (int32_t d = 0; d < c->directions; d++) {
        const float *values = find_values(c, d, which);
        for (int32_t k = 0; values && k < count; k++)
            if (of[k] >= 0)
                memcpy(all + (d * count + k) * block, values + of[k] * block, (size_t)block * sizeof *all);
    }
    int32_t rank = which == SEQLSTM_PARAM_W_X || which == SEQLSTM_PARAM_W_H ? 3 : 2;
    struct sl_onnx_name added = sl_onnx_add_floats(c->b, name, shape, rank, all);
    free(all);
    return added;
}

static void set_activations(const struct cell *c)
{
    static const char *const names[SEQLSTM_ACT_COUNT] = {
        [SEQLSTM_ACT_NONE] = "Affine",          [SEQLSTM_ACT_TANH] = "Tanh",
        [SEQLSTM_ACT_SIGMOID] = "Sigmoid",      [SEQLSTM_ACT_RELU] = "Relu",
        [SEQLSTM_ACT_LEAKY_RELU] = "LeakyRelu", [SEQLSTM_ACT_THRESHOLDED_RELU] = "ThresholdedRelu",
        [SEQLSTM_ACT_SCALED_TANH] = "ScaledTanh", [SEQLSTM_ACT_HARD_SIGMOID] = "HardSigmoid",
        [SEQLSTM_ACT_ELU] = "Elu",              [SEQLSTM_ACT_SOFTSIGN] = "Softsign",
        [SEQLSTM_ACT_SOFTPLUS] = "Softplus",    [SEQLSTM_ACT_AFFINE] = "Affine",
    };
    static const bool has_alpha[SEQLSTM_ACT_COUNT] = {
        [SEQLSTM_ACT_NONE] = true, [SEQLSTM_ACT_LEAKY_RELU] = true, [SEQLSTM_ACT_THRESHOLDED_RELU] = true,
        [SEQLSTM_ACT_SCALED_TANH] = true, [SEQLSTM_ACT_HARD_SIGMOID] = true, [SEQLSTM_ACT_ELU] = true,
        [SEQLSTM_ACT_AFFINE] = true};
    static const bool has_beta[SEQLSTM_ACT_COUNT] = {
        [SEQLSTM_ACT_NONE] = true, [SEQLSTM_ACT_SCALED_TANH] = true, [SEQLSTM_ACT_HARD_SIGMOID] = true,
        [SEQLSTM_ACT_AFFINE] = true};
    /* ONNX's f g h: gates, candidate, output; a simple RNN has the candidate alone */
    int first = c->desc->cell == SEQLSTM_CELL_RNN ? SEQLSTM_PLACE_CANDIDATE : SEQLSTM_PLACE_GATE;
    int last = c->desc->cell == SEQLSTM_CELL_LSTM ? SEQLSTM_PLACE_OUTPUT : SEQLSTM_PLACE_CANDIDATE;
    const char *texts[6];
    float alphas[6], betas[6];
    int32_t count = 0, alpha_count = 0, beta_count = 0;
    for (int32_t d = 0; d < c->directions; d++)
        for (int place = first; place <= last; place++) {
            const struct seqlstm_activation *a = &c->desc->activations[place][d];
            texts[count++] = names[a->kind];
            if (has_alpha[a->kind])
                alphas[alpha_count++] = a->kind == SEQLSTM_ACT_NONE ? 1.0f : a->alpha;
            if (has_beta[a->kind])
                betas[beta_count++] = a->kind == SEQLSTM_ACT_NONE ? 0.0f : a->beta;
        }
    sl_onnx_set_texts(c->b, "activations", texts, count);
    if (alpha_count)
        sl_onnx_set_floats(c->b, "activation_alpha", alphas, alpha_count);
    if (beta_count)
        sl_onnx_set_floats(c->b, "activation_beta", betas, beta_count);
}

static void set_attributes(const struct cell *c)
{
    static const char *const directions[] = {[SEQLSTM_DIRECTION_FORWARD] = "forward",
                                             [SEQLSTM_DIRECTION_BACKWARD] = "reverse",
                                             [SEQLSTM_DIRECTION_BIDIRECTIONAL] = "bidirectional"};
    sl_onnx_set_int(c->b, "hidden_size", c->desc->hidden);
    sl_onnx_set_text(c->b, "direction", directions[c->desc->direction]);
    set_activations(c);
    if (c->desc->gate_clip > 0)
        sl_onnx_set_float(c->b, "clip", c->desc->gate_clip);
    if (c->desc->options & SEQLSTM_RECURRENT_COUPLED_GATES)
        sl_onnx_set_int(c->b, "input_forget", 1);
    if (c->desc->options & SEQLSTM_RECURRENT_RESET_AFTER)
        sl_onnx_set_int(c->b, "linear_before_reset", 1);
}

/* Weights at inputs 1, 2, 3 and 7. */
static void add_weights(const struct cell *c, struct sl_onnx_name *inputs)
{
    static const int32_t lstm[8] = {0, 3, 1, 2, -1, -1, -1, -1}, rnn[2] = {0, -1}, peephole[3] = {0, 2, 1};
    static const int32_t gru[6] = {1, 0, 2, -1, -1, -1}, gru_after[6] = {1, 0, 2, -1, -1, 3};
    bool is_after = (c->desc->options & SEQLSTM_RECURRENT_RESET_AFTER) != 0;
    const int32_t *of = c->desc->cell == SEQLSTM_CELL_LSTM  ? lstm
                        : c->desc->cell == SEQLSTM_CELL_RNN ? rnn
                        : is_after                          ? gru_after
                                                            : gru;
    inputs[1] = add_blocks(c, "W", SEQLSTM_PARAM_W_X, of, c->gates, c->desc->input);
    inputs[2] = add_blocks(c, "R", SEQLSTM_PARAM_W_H, of, c->gates, c->desc->hidden);
    if (c->desc->options & SEQLSTM_RECURRENT_USE_BIAS)
        inputs[3] = add_blocks(c, "B", SEQLSTM_PARAM_BIAS, of, 2 * c->gates, 1);
    if (c->desc->options & SEQLSTM_RECURRENT_PEEPHOLE)
        inputs[7] = add_blocks(c, "P", SEQLSTM_PARAM_PEEPHOLE, peephole, 3, 1);
}

/* [batch, H] of each direction as [directions, batch, H]. */
static struct sl_onnx_name stack_states(const struct cell *c, int32_t which)
{
    struct sl_onnx_name parts[2], none = {""}, stacked;
    int64_t zero = 0;
    struct sl_onnx_name axis = sl_onnx_add_ints(c->b, &zero, 1);
    for (int32_t d = 0; d < c->directions; d++) {
        int32_t tensor = c->node->slots[SEQLSTM_RECURRENT_STATE(d, which)];
        if (tensor < 0)
            return none;
        parts[d] = sl_onnx_add(c->b, "Unsqueeze", &c->b->tensors[tensor], &axis, NULL);
    }
    if (c->directions == 1)
        return parts[0];
    stacked = sl_onnx_make_name(c->b, "state");
    sl_onnx_set_int(c->b, "axis", 0);
    sl_onnx_add_node(c->b, "Concat", parts, 2, &stacked, 1);
    return stacked;
}

/* Final states of one kind, direction by direction, where somebody wants them. */
static void unstack_states(const struct cell *c, int32_t which, const struct sl_onnx_name *stacked)
{
    for (int32_t d = 0; d < c->directions; d++) {
        int32_t tensor = c->node->slots[SEQLSTM_RECURRENT_STATE(d, which)];
        if (tensor < 0)
            continue;
        struct sl_onnx_name index = sl_onnx_add_index(c->b, d);
        sl_onnx_set_int(c->b, "axis", 0);
        c->b->tensors[tensor] = sl_onnx_add(c->b, "Gather", stacked, &index, NULL);
    }
}

static struct sl_onnx_name transpose(struct sl_onnx_builder *b, const struct sl_onnx_name *x, const int64_t *order,
                                     int32_t rank)
{
    sl_onnx_set_ints(b, "perm", order, rank);
    return sl_onnx_add(b, "Transpose", x, NULL, NULL);
}

/* [time, directions, batch, H] to [batch, time, features]. */
static struct sl_onnx_name join_directions(const struct cell *c, const struct sl_onnx_name *y)
{
    static const int64_t batch_first[3] = {1, 0, 2}, apart[4] = {2, 0, 1, 3}, one = 1;
    struct sl_onnx_name joined, axis;
    if (c->directions == 2 && c->desc->merge == SEQLSTM_MERGE_CONCAT) {
        int64_t shape[3] = {0, 0, 2 * c->desc->hidden};
        joined = transpose(c->b, y, apart, 4);
        struct sl_onnx_name wanted = sl_onnx_add_ints(c->b, shape, 3);
        return sl_onnx_add(c->b, "Reshape", &joined, &wanted, NULL);
    }
    if (c->directions == 1) {
        axis = sl_onnx_add_ints(c->b, &one, 1);
        joined = sl_onnx_add(c->b, "Squeeze", y, &axis, NULL);
    } else if (c->desc->merge == SEQLSTM_MERGE_SUM) {
        axis = sl_onnx_add_ints(c->b, &one, 1);
        sl_onnx_set_int(c->b, "keepdims", 0);
        joined = sl_onnx_add(c->b, "ReduceSum", y, &axis, NULL);
    } else {
        sl_onnx_set_int(c->b, "keepdims", 0);
        sl_onnx_set_ints(c->b, "axes", &one, 1);
        joined = sl_onnx_add(c->b, c->desc->merge == SEQLSTM_MERGE_MUL ? "ReduceProd" : "ReduceMean", y, NULL, NULL);
    }
    return transpose(c->b, &joined, batch_first, 3);
}

seqlstm_status sl_onnx_add_recurrent(struct sl_onnx_builder *b, const struct sl_node *node)
{
    static const char *const ops[] = {[SEQLSTM_CELL_LSTM] = "LSTM", [SEQLSTM_CELL_GRU] = "GRU",
                                      [SEQLSTM_CELL_RNN] = "RNN"};
    static const int64_t time_first[3] = {1, 0, 2};
    const struct seqlstm_recurrent_desc *desc = &node->desc.recurrent;
    struct cell c = {.b = b, .node = node, .desc = desc,
                     .directions = desc->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1,
                     .gates = desc->cell == SEQLSTM_CELL_LSTM ? 4 : desc->cell == SEQLSTM_CELL_GRU ? 3 : 1};
    SEQLSTM_TRY(check(&c));
    bool is_lstm = desc->cell == SEQLSTM_CELL_LSTM;
    struct sl_onnx_name inputs[8] = {{""}}, outputs[3];
    inputs[0] = transpose(b, &b->tensors[node->slots[SEQLSTM_RECURRENT_X]], time_first, 3);
    add_weights(&c, inputs);
    strcpy(inputs[4].text, "lengths");
    if (desc->options & SEQLSTM_RECURRENT_INITIAL_STATE) {
        inputs[5] = stack_states(&c, SEQLSTM_STATE_H0);
        if (is_lstm)
            inputs[6] = stack_states(&c, SEQLSTM_STATE_C0);
    }
    for (int k = 0; k < 3; k++)
        outputs[k] = sl_onnx_make_name(b, node->name);
    set_attributes(&c);
    sl_onnx_add_node(b, ops[desc->cell], inputs, is_lstm ? 8 : 6, outputs, is_lstm ? 3 : 2);
    int32_t y = node->slots[SEQLSTM_RECURRENT_Y];
    if (y >= 0)
        b->tensors[y] = join_directions(&c, &outputs[0]);
    unstack_states(&c, SEQLSTM_STATE_HN, &outputs[1]);
    if (is_lstm)
        unstack_states(&c, SEQLSTM_STATE_CN, &outputs[2]);
    return SEQLSTM_OK;
}
