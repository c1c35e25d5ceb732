/* SPDX-License-Identifier: Apache-2.0 */
/* lstm, gru and rnn layers as ONNX's LSTM, GRU and RNN operators.
 *
 *   ours                  ONNX
 *   gates i f g o         i o f c           (onnx_cell.h)
 *   gates r z n           z r h
 *   [batch, time, I]      X [time, batch, I]
 *   y                     Y [time, directions, batch, H]
 */
#include <stdlib.h>
#include <string.h>

#include "interop/onnx_builder.h"
#include "interop/onnx_cell.h"

struct cell {
    struct sl_onnx_builder *b;
    const struct sl_node *node;
    const struct seqlstm_recurrent_desc *desc;
    int32_t directions;
    const struct sl_onnx_cell *parts;
};

static int32_t get_tensor(const struct cell *c, int32_t d, int32_t which)
{
    return c->node->slots[SEQLSTM_SLOT_RECURRENT_PARAM(c->directions, d, which)];
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
        {(d->options & SEQLSTM_BIT_RECURRENT_LAYER_NORM) != 0, SEQLSTM_OPTION_LAYER_NORM,
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
    const char *texts[6];
    float alphas[6], betas[6];
    int32_t count = 0, alpha_count = 0, beta_count = 0;
    for (int32_t d = 0; d < c->directions; d++)
        for (int32_t place = c->parts->first_place; place <= c->parts->last_place; place++) {
            const struct seqlstm_activation *a = &c->desc->activations[place][d];
            const struct sl_onnx_activation *named = sl_onnx_activation_get(a->kind);
            bool is_none = a->kind == SEQLSTM_ACT_NONE;
            texts[count++] = named->name;
            if (named->has_alpha)
                alphas[alpha_count++] = is_none ? named->alpha : a->alpha;
            if (named->has_beta)
                betas[beta_count++] = is_none ? named->beta : a->beta;
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
    if (c->desc->options & SEQLSTM_BIT_RECURRENT_COUPLED_GATES)
        sl_onnx_set_int(c->b, "input_forget", 1);
    if (c->desc->options & SEQLSTM_BIT_RECURRENT_RESET_AFTER)
        sl_onnx_set_int(c->b, "linear_before_reset", 1);
}

/* Weights at inputs 1, 2, 3 and 7. */
static void add_weights(const struct cell *c, struct sl_onnx_name *inputs)
{
    int32_t gates = c->parts->gates;
    inputs[1] = add_blocks(c, "W", SEQLSTM_PARAM_W_X, c->parts->weight, gates, c->desc->input);
    inputs[2] = add_blocks(c, "R", SEQLSTM_PARAM_W_H, c->parts->weight, gates, c->desc->hidden);
    if (c->desc->options & SEQLSTM_BIT_RECURRENT_USE_BIAS)
        inputs[3] = add_blocks(c, "B", SEQLSTM_PARAM_BIAS, c->parts->bias_home, 2 * gates, 1);
    if (c->desc->options & SEQLSTM_BIT_RECURRENT_PEEPHOLE)
        inputs[7] = add_blocks(c, "P", SEQLSTM_PARAM_PEEPHOLE, sl_onnx_peephole_order, 3, 1);
}

/* [batch, H] of each direction as [directions, batch, H]. */
static struct sl_onnx_name stack_states(const struct cell *c, int32_t which)
{
    struct sl_onnx_name parts[2], none = {""}, stacked;
    int64_t zero = 0;
    struct sl_onnx_name axis = sl_onnx_add_ints(c->b, &zero, 1);
    for (int32_t d = 0; d < c->directions; d++) {
        int32_t tensor = c->node->slots[SEQLSTM_SLOT_RECURRENT_STATE(d, which)];
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

/* Final states of one kind, direction by direction, where a later operation reads them. */
static void unstack_states(const struct cell *c, int32_t which, const struct sl_onnx_name *stacked)
{
    for (int32_t d = 0; d < c->directions; d++) {
        int32_t tensor = c->node->slots[SEQLSTM_SLOT_RECURRENT_STATE(d, which)];
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
    if (c->directions == 2 && c->desc->merge == SEQLSTM_KIND_MERGE_CONCAT) {
        int64_t shape[3] = {0, 0, 2 * c->desc->hidden};
        joined = transpose(c->b, y, apart, 4);
        struct sl_onnx_name wanted = sl_onnx_add_ints(c->b, shape, 3);
        return sl_onnx_add(c->b, "Reshape", &joined, &wanted, NULL);
    }
    if (c->directions == 1) {
        axis = sl_onnx_add_ints(c->b, &one, 1);
        joined = sl_onnx_add(c->b, "Squeeze", y, &axis, NULL);
    } else if (c->desc->merge == SEQLSTM_KIND_MERGE_SUM) {
        axis = sl_onnx_add_ints(c->b, &one, 1);
        sl_onnx_set_int(c->b, "keepdims", 0);
        joined = sl_onnx_add(c->b, "ReduceSum", y, &axis, NULL);
    } else {
        sl_onnx_set_int(c->b, "keepdims", 0);
        sl_onnx_set_ints(c->b, "axes", &one, 1);
        joined =
            sl_onnx_add(c->b, c->desc->merge == SEQLSTM_KIND_MERGE_MUL ? "ReduceProd" : "ReduceMean", y, NULL, NULL);
    }
    return transpose(c->b, &joined, batch_first, 3);
}

seqlstm_status sl_onnx_add_recurrent(struct sl_onnx_builder *b, const struct sl_node *node)
{
    static const int64_t time_first[3] = {1, 0, 2};
    const struct seqlstm_recurrent_desc *desc = &node->desc.recurrent;
    struct cell c = {.b = b,
                     .node = node,
                     .desc = desc,
                     .directions = desc->direction == SEQLSTM_DIRECTION_BIDIRECTIONAL ? 2 : 1,
                     .parts = sl_onnx_cell_get(desc)};
    SEQLSTM_TRY(check(&c));
    bool is_lstm = desc->cell == SEQLSTM_CELL_LSTM;
    struct sl_onnx_name inputs[8] = {{""}}, outputs[3];
    inputs[0] = transpose(b, &b->tensors[node->slots[SEQLSTM_SLOT_RECURRENT_X]], time_first, 3);
    add_weights(&c, inputs);
    inputs[4] = sl_onnx_get_lengths(b, sl_graph_get_axis(b->graph, node));
    if (desc->options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE) {
        inputs[5] = stack_states(&c, SEQLSTM_STATE_H0);
        if (is_lstm)
            inputs[6] = stack_states(&c, SEQLSTM_STATE_C0);
    }
    for (int k = 0; k < 3; k++)
        outputs[k] = sl_onnx_make_name(b, node->name);
    set_attributes(&c);
    sl_onnx_add_node(b, c.parts->op, inputs, is_lstm ? 8 : 6, outputs, is_lstm ? 3 : 2);
    int32_t y = node->slots[SEQLSTM_SLOT_RECURRENT_Y];
    if (y >= 0)
        b->tensors[y] = join_directions(&c, &outputs[0]);
    unstack_states(&c, SEQLSTM_STATE_HN, &outputs[1]);
    if (is_lstm)
        unstack_states(&c, SEQLSTM_STATE_CN, &outputs[2]);
    return SEQLSTM_OK;
}
