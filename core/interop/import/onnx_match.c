/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs the model's operations with what the file computes, from the output back along the edges. */
#include "interop/import/onnx_match.h"

#include <stdio.h>
#include <string.h>

#include "interop/onnx_cell.h"

enum { NODE_TEXT = 256 };

static seqlstm_status match_tensor(struct sl_onnx_match *m, int32_t tensor, struct sl_onnx_features theirs);

/* ---- layers ------------------------------------------------------------------------------------------------- */

static const struct sl_node *find_writer(const struct sl_onnx_match *m, int32_t tensor, int32_t *out_slot)
{
    for (int32_t n = 0; n < m->graph->node_count; n++) {
        const struct sl_node *node = &m->graph->nodes[n];
        for (int32_t s = 0; s < node->slot_count; s++) {
            bool is_written = false;
            switch (node->desc.head.op) {
            case SEQLSTM_OP_RECURRENT:
                is_written = s == SEQLSTM_SLOT_RECURRENT_Y;
                for (int32_t d = 0; d < 2; d++)
                    is_written = is_written || s == SEQLSTM_SLOT_RECURRENT_STATE(d, SEQLSTM_STATE_HN) ||
                                 s == SEQLSTM_SLOT_RECURRENT_STATE(d, SEQLSTM_STATE_CN);
                is_written = is_written && (s < SEQLSTM_SLOT_RECURRENT_STATE(1, 0) ||
                                            node->desc.recurrent.direction == SEQLSTM_DIRECTION_BIDIRECTIONAL);
                break;
            case SEQLSTM_OP_EMBEDDING:
                is_written = s == SEQLSTM_SLOT_EMBEDDING_Y;
                break;
            case SEQLSTM_OP_DENSE:
                is_written = s == SEQLSTM_SLOT_DENSE_Y;
                break;
            case SEQLSTM_OP_LAYER_NORM:
                is_written = s == SEQLSTM_SLOT_LAYER_NORM_Y;
                break;
            case SEQLSTM_OP_MERGE:
                is_written = s == SEQLSTM_SLOT_MERGE_Y;
                break;
            default:
                is_written = s == SEQLSTM_SLOT_UNARY_Y;
            }
            if (is_written && node->slots[s] == tensor) {
                *out_slot = s;
                return node;
            }
        }
    }
    return NULL;
}

static struct sl_onnx_features cut(const struct sl_onnx_features *theirs, int64_t first, int64_t count)
{
    return (struct sl_onnx_features){theirs->list + first, count, theirs->via};
}

/* Takes the term of that kind which is all of `theirs`, and marks it as used. NULL: there is none. */
static struct sl_onnx_term *take(struct sl_onnx_match *m, const struct sl_onnx_features *theirs,
                                 enum sl_onnx_term_kind kind)
{
    struct sl_onnx_term *term = sl_onnx_lift_get_whole(m->lift, theirs);
    if (term == NULL || term->kind != kind)
        return NULL;
    term->is_used = true;
    return term;
}

static int32_t get_index(const struct sl_onnx_match *m, const struct sl_onnx_term *term)
{
    return (int32_t)(term - m->lift->terms);
}

/* Initial states: the model's own, or zeros. */
static seqlstm_status match_states(struct sl_onnx_match *m, const struct sl_node *node, int32_t d,
                                   const struct sl_onnx_cell_use *use, int32_t their_direction)
{
    char text[NODE_TEXT];
    for (int32_t k = 0; k < (node->desc.recurrent.cell == SEQLSTM_CELL_LSTM ? 2 : 1); k++) {
        int32_t tensor = node->slots[SEQLSTM_SLOT_RECURRENT_STATE(d, k ? SEQLSTM_STATE_C0 : SEQLSTM_STATE_H0)];
        bool is_carried = tensor >= 0 && m->graph->tensors[tensor].role == SL_TENSOR_STATE_IN;
        bool is_computed = tensor >= 0 && !is_carried;
        const struct sl_onnx_value *theirs = use->states[k];
        if (theirs && theirs->kind == SL_ONNX_OPAQUE)
            return sl_onnx_match_fail_opaque(m, theirs);
        if (theirs && theirs->kind == SL_ONNX_DATA && is_computed &&
            theirs->features.count == use->directions * use->hidden && theirs->dims.rank == 3) {
            SEQLSTM_TRY(match_tensor(m, tensor, cut(&theirs->features, their_direction * use->hidden, use->hidden)));
            continue;
        }
        bool is_zero =
            theirs == NULL || (theirs->kind == SL_ONNX_CONSTANT && sl_onnx_constant_is_all(&theirs->constant, 0));
        if (theirs && theirs->kind == SL_ONNX_FED && !is_computed) {
            if (!is_carried && their_direction == 0 && (k == 0 || use->states[0] != theirs))
                sl_buf_printf(m->notes,
                              "`%s` is an input of the file, the initial state of layer `%s`; it begins at "
                              "zero here\n",
                              theirs->input, node->name);
            continue;
        }
        if (is_zero && !is_computed)
            continue;
        sl_onnx_describe_node(use->node, text, sizeof text);
        seqlstm_error_set(m->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                          is_computed
                              ? "%s: layer `%s` begins with another layer's states (`initial_state`), but %s of "
                                "the file does not"
                              : "%s: layer `%s` begins at zero, but %s of the file has an initial state that is "
                                "not zero (`initial_state`)",
                          m->path, node->name, text);
        return sl_onnx_match_set_place(m, node, SEQLSTM_OPTION_STATES);
    }
    return SEQLSTM_OK;
}

/* Direction d of a recurrent layer: its output at every step, or at the end. */
static seqlstm_status match_direction(struct sl_onnx_match *m, const struct sl_node *node, int32_t d,
                                      enum sl_onnx_term_kind kind, struct sl_onnx_features theirs)
{
    struct sl_onnx_pair *pair = &m->pairs[node - m->graph->nodes];
    const struct sl_onnx_term *term = take(m, &theirs, kind);
    if (term == NULL) {
        const struct sl_onnx_term *other = sl_onnx_lift_get_whole(m->lift, &theirs);
        bool is_cell = other && other->cell >= 0;
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node,
                                        !is_cell                        ? ""
                                        : kind == SL_ONNX_TERM_SEQUENCE ? " (its outputs of all steps)"
                                                                        : " (its state after the last step)");
    }
    const struct sl_onnx_cell_use *use = &m->lift->cells[term->cell];
    if (strcmp(use->node->op, sl_onnx_cell_get(&node->desc.recurrent)->op) != 0)
        return sl_onnx_match_fail_place(m, use->node, node, "");
    if (pair->cells[d])
        return pair->cells[d] == term->cell + 1 && pair->directions[d] == term->direction
                   ? SEQLSTM_OK
                   : sl_onnx_match_fail_place(m, use->node, node, "");
    SEQLSTM_TRY(sl_onnx_match_cell(m, node, use, d, term->direction));
    pair->cells[d] = term->cell + 1;
    pair->directions[d] = term->direction;
    if (use->has_fixed_lengths && term->direction == 0)
        sl_buf_printf(m->notes, "`%s` of the file has lengths of sequences of its own; here they are the records'\n",
                      *use->node->name ? use->node->name : use->node->op);
    int32_t their_direction = term->direction;
    SEQLSTM_TRY(match_states(m, node, d, use, their_direction));
    return match_tensor(m, node->slots[SEQLSTM_SLOT_RECURRENT_X], use->x);
}

/* Takes the parts of a merge of that kind; -1: `theirs` is no such merge. An average may be a sum that is divided. */
static int32_t take_merge(struct sl_onnx_match *m, struct sl_onnx_features theirs, uint32_t kind,
                          const struct sl_onnx_features **out_args)
{
    struct sl_onnx_term *term = sl_onnx_lift_get_whole(m->lift, &theirs);
    if (kind == SEQLSTM_KIND_MERGE_AVE && term && term->kind == SL_ONNX_TERM_SCALE) {
        const struct sl_onnx_term *sum = sl_onnx_lift_get_whole(m->lift, &term->args[0]);
        bool is_mean = sum && sum->kind == SL_ONNX_TERM_MERGE && sum->pool_or_merge == SEQLSTM_KIND_MERGE_SUM;
        for (int64_t k = 0; is_mean && k < term->width; k++)
            is_mean = term->vectors[0][k] == 1.0f / (float)sum->arg_count;
        if (!is_mean)
            return -1;
        term->is_used = true;
        theirs = term->args[0];
        kind = SEQLSTM_KIND_MERGE_SUM;
    }
    term = take(m, &theirs, SL_ONNX_TERM_MERGE);
    if (term == NULL || term->pool_or_merge != kind)
        return -1;
    *out_args = term->args;
    return term->arg_count;
}

static seqlstm_status match_sequence(struct sl_onnx_match *m, const struct sl_node *node,
                                     struct sl_onnx_features theirs)
{
    const struct seqlstm_recurrent_desc *desc = &node->desc.recurrent;
    const struct sl_onnx_features *args;
    if (desc->direction != SEQLSTM_DIRECTION_BIDIRECTIONAL)
        return match_direction(m, node, 0, SL_ONNX_TERM_SEQUENCE, theirs);
    if (desc->merge == SEQLSTM_KIND_MERGE_CONCAT) {
        int64_t half = theirs.count / 2; /* another width is refused by the cell */
        SEQLSTM_TRY(match_direction(m, node, 0, SL_ONNX_TERM_SEQUENCE, cut(&theirs, 0, half)));
        return match_direction(m, node, 1, SL_ONNX_TERM_SEQUENCE, cut(&theirs, half, theirs.count - half));
    }
    if (take_merge(m, theirs, desc->merge, &args) != 2)
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node, " (its `merge`)");
    const struct sl_onnx_term *first = sl_onnx_lift_get_whole(m->lift, &args[0]);
    const struct sl_onnx_attribute *a =
        first && first->cell >= 0 ? sl_onnx_node_find_attribute(m->lift->cells[first->cell].node, "direction") : NULL;
    bool is_swapped =
        first && first->cell >= 0 && (first->direction == 1 || (a && a->text && !strcmp(a->text, "reverse")));
    SEQLSTM_TRY(match_direction(m, node, 0, SL_ONNX_TERM_SEQUENCE, args[is_swapped]));
    return match_direction(m, node, 1, SL_ONNX_TERM_SEQUENCE, args[!is_swapped]);
}

static seqlstm_status match_recurrent(struct sl_onnx_match *m, const struct sl_node *node, int32_t slot,
                                      struct sl_onnx_features theirs)
{
    if (slot == SEQLSTM_SLOT_RECURRENT_Y)
        return match_sequence(m, node, theirs);
    for (int32_t d = 0; d < 2; d++) {
        if (slot == SEQLSTM_SLOT_RECURRENT_STATE(d, SEQLSTM_STATE_HN))
            return match_direction(m, node, d, SL_ONNX_TERM_FINAL_H, theirs);
        if (slot == SEQLSTM_SLOT_RECURRENT_STATE(d, SEQLSTM_STATE_CN))
            return match_direction(m, node, d, SL_ONNX_TERM_FINAL_C, theirs);
    }
    return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node, "");
}

/* Takes a scale or shift of all features by the number `wanted`. The neutral number (1 or 0) needs no term. */
static bool take_uniform(struct sl_onnx_match *m, enum sl_onnx_term_kind kind, float wanted, float neutral,
                         struct sl_onnx_features *theirs)
{
    if (wanted == neutral)
        return true;
    const struct sl_onnx_term *term = take(m, theirs, kind);
    if (term == NULL)
        return false;
    for (int64_t k = 0; k < term->width; k++)
        if (term->vectors[0][k] != wanted)
            return false;
    *theirs = term->args[0];
    return true;
}

static bool is_same_function(const struct seqlstm_activation *ours, const struct seqlstm_activation *theirs)
{
    const struct sl_onnx_activation *named = sl_onnx_activation_get(ours->kind);
    return ours->kind == theirs->kind && (!named->has_alpha || ours->alpha == theirs->alpha) &&
           (!named->has_beta || ours->beta == theirs->beta);
}

/* Takes the activation off `theirs`. A softmax or sigmoid at the model's end, which the loss includes, may be
 * absent. */
static seqlstm_status match_activation(struct sl_onnx_match *m, const struct sl_node *node,
                                       const struct seqlstm_activation *ours, struct sl_onnx_features *theirs)
{
    bool is_last = node->slots[node->desc.head.op == SEQLSTM_OP_DENSE ? SEQLSTM_SLOT_DENSE_Y : SEQLSTM_SLOT_UNARY_Y] ==
                   m->graph->output;
    if (ours->kind == SEQLSTM_ACT_NONE)
        return SEQLSTM_OK;
    if (ours->kind == SEQLSTM_ACT_AFFINE)
        return take_uniform(m, SL_ONNX_TERM_SHIFT, ours->beta, 0, theirs) &&
                       take_uniform(m, SL_ONNX_TERM_SCALE, ours->alpha, 1, theirs)
                   ? SEQLSTM_OK
                   : sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, theirs), node, " (its `activation`)");
    struct sl_onnx_features inner = *theirs;
    struct seqlstm_activation wanted = *ours;
    if (ours->kind == SEQLSTM_ACT_SCALED_TANH) {
        wanted.kind = SEQLSTM_ACT_TANH;
        if (!take_uniform(m, SL_ONNX_TERM_SCALE, ours->alpha, 1, &inner))
            return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, theirs), node, " (its `activation`)");
    }
    const struct sl_onnx_term *term = take(m, &inner, SL_ONNX_TERM_ACTIVATION);
    if (term == NULL && is_last && (ours->kind == SEQLSTM_ACT_SOFTMAX || ours->kind == SEQLSTM_ACT_SIGMOID)) {
        sl_buf_printf(m->notes, "the file ends before the %s of layer `%s`; predictions are the %s of its output\n",
                      ours->kind == SEQLSTM_ACT_SOFTMAX ? "softmax" : "sigmoid", node->name,
                      ours->kind == SEQLSTM_ACT_SOFTMAX ? "softmax" : "sigmoid");
        return SEQLSTM_OK;
    }
    if (term == NULL || !is_same_function(&wanted, &term->activation))
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &inner), node, " (its `activation`)");
    inner = term->args[0];
    if (ours->kind == SEQLSTM_ACT_SCALED_TANH && !take_uniform(m, SL_ONNX_TERM_SCALE, ours->beta, 1, &inner))
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &inner), node, " (its `activation`)");
    *theirs = inner;
    return SEQLSTM_OK;
}

static seqlstm_status match_dense(struct sl_onnx_match *m, const struct sl_node *node, struct sl_onnx_features theirs)
{
    struct sl_onnx_pair *pair = &m->pairs[node - m->graph->nodes];
    bool has_bias = (node->desc.dense.options & SEQLSTM_BIT_DENSE_USE_BIAS) != 0;
    int32_t bias = 0;
    SEQLSTM_TRY(match_activation(m, node, &node->desc.dense.activation, &theirs));
    const struct sl_onnx_term *shift = take(m, &theirs, SL_ONNX_TERM_SHIFT);
    if (shift) {
        const struct sl_onnx_term *inner = sl_onnx_lift_get_whole(m->lift, &shift->args[0]);
        if (!has_bias && inner && inner->kind == SL_ONNX_TERM_PRODUCT)
            return sl_onnx_match_fail_option(m, node, shift->node, SEQLSTM_OPTION_USE_BIAS, "use_bias", "a bias");
        if (!has_bias)
            return sl_onnx_match_fail_place(m, shift->node, node, "");
        bias = get_index(m, shift) + 1;
        theirs = shift->args[0];
    }
    const struct sl_onnx_term *product = take(m, &theirs, SL_ONNX_TERM_PRODUCT);
    if (product == NULL)
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node, "");
    int32_t term = get_index(m, product) + 1;
    if (pair->term)
        return pair->term == term && pair->bias == bias ? SEQLSTM_OK
                                                        : sl_onnx_match_fail_place(m, product->node, node, "");
    pair->term = term;
    pair->bias = bias;
    return match_tensor(m, node->slots[SEQLSTM_SLOT_DENSE_X], product->args[0]);
}

/* Operations with one input and a term of their own kind. */
static seqlstm_status match_simple(struct sl_onnx_match *m, const struct sl_node *node, enum sl_onnx_term_kind kind,
                                   int32_t x, struct sl_onnx_features theirs)
{
    struct sl_onnx_pair *pair = &m->pairs[node - m->graph->nodes];
    const struct sl_onnx_term *term = take(m, &theirs, kind);
    char text[64];
    if (term == NULL)
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node, "");
    if (kind == SL_ONNX_TERM_NORM && term->epsilon != node->desc.layer_norm.epsilon) {
        snprintf(text, sizeof text, "epsilon %g", (double)term->epsilon);
        return sl_onnx_match_fail_option(m, node, term->node, SEQLSTM_OPTION_KIND, "epsilon", text);
    }
    if (kind == SL_ONNX_TERM_POOL && term->pool_or_merge != node->desc.pool.kind)
        return sl_onnx_match_fail_place(m, term->node, node, " (its `mode`)");
    int32_t index = get_index(m, term) + 1;
    if (pair->term)
        return pair->term == index ? SEQLSTM_OK : sl_onnx_match_fail_place(m, term->node, node, "");
    pair->term = index;
    return match_tensor(m, node->slots[x], term->args[0]);
}

/* The last step of a layer that runs forward (the first of one that runs backward) is its final state. */
static seqlstm_status match_pool(struct sl_onnx_match *m, const struct sl_node *node, struct sl_onnx_features theirs)
{
    const struct sl_onnx_term *term = sl_onnx_lift_get_whole(m->lift, &theirs);
    int32_t slot, x = node->slots[SEQLSTM_SLOT_UNARY_X];
    const struct sl_node *writer = find_writer(m, x, &slot);
    if (term && term->kind == SL_ONNX_TERM_FINAL_H && writer && writer->desc.head.op == SEQLSTM_OP_RECURRENT) {
        uint32_t direction = writer->desc.recurrent.direction, kind = node->desc.pool.kind;
        if ((direction == SEQLSTM_DIRECTION_FORWARD && kind == SEQLSTM_KIND_POOL_LAST) ||
            (direction == SEQLSTM_DIRECTION_BACKWARD && kind == SEQLSTM_KIND_POOL_FIRST))
            return match_direction(m, writer, 0, SL_ONNX_TERM_FINAL_H, theirs);
    }
    return match_simple(m, node, SL_ONNX_TERM_POOL, SEQLSTM_SLOT_UNARY_X, theirs);
}

/* Tries the arguments in every order, because sums and products do not depend on it. */
static seqlstm_status match_either(struct sl_onnx_match *m, const int32_t *tensors, int32_t count,
                                   const struct sl_onnx_features *args)
{
    enum { TRIES = 5040 };
    int32_t order[SL_ONNX_ARGS_MAX], tries = 0;
    size_t bytes = (size_t)m->graph->node_count * sizeof *m->pairs;
    struct sl_onnx_pair *before = SL_ARENA_ARRAY(m->lift->arena, struct sl_onnx_pair, (size_t)m->graph->node_count + 1);
    struct seqlstm_error first = SEQLSTM_ERROR_INIT;
    size_t notes = m->notes->length_bytes;
    seqlstm_status status = SEQLSTM_OK;
    if (before == NULL)
        SEQLSTM_FAIL(m->err, SEQLSTM_NO_MEMORY, "no memory for %s", m->path);
    memcpy(before, m->pairs, bytes);
    for (int32_t k = 0; k < count; k++)
        order[k] = k;
    for (;;) {
        status = SEQLSTM_OK;
        for (int32_t k = 0; k < count && status == SEQLSTM_OK; k++)
            status = match_tensor(m, tensors[k], args[order[k]]);
        if (status == SEQLSTM_OK)
            return status;
        if (tries == 0 && m->err)
            first = *m->err;
        memcpy(m->pairs, before, bytes);
        sl_buf_truncate(m->notes, notes);
        int32_t i = count - 2, j = count - 1; /* the next order */
        while (i >= 0 && order[i] > order[i + 1])
            i--;
        if (i < 0 || ++tries == TRIES)
            break;
        while (order[j] < order[i])
            j--;
        int32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
        for (int32_t low = i + 1, high = count - 1; low < high; low++, high--) {
            swap = order[low];
            order[low] = order[high];
            order[high] = swap;
        }
    }
    if (m->err)
        *m->err = first;
    return m->err ? first.code : status;
}

static seqlstm_status match_merge(struct sl_onnx_match *m, const struct sl_node *node, struct sl_onnx_features theirs)
{
    const struct seqlstm_merge_desc *desc = &node->desc.merge;
    const struct sl_onnx_features *args;
    int64_t at = 0;
    if (desc->kind != SEQLSTM_KIND_MERGE_CONCAT) {
        if (take_merge(m, theirs, desc->kind, &args) != (int32_t)desc->inputs)
            return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node,
                                            " (a sum, mean or product)");
        return match_either(m, &node->slots[SEQLSTM_SLOT_MERGE_X], (int32_t)desc->inputs, args);
    }
    for (uint32_t k = 0; k < desc->inputs; k++) {
        if (at + desc->widths[k] > theirs.count)
            return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node, " (of another width)");
        SEQLSTM_TRY(match_tensor(m, node->slots[SEQLSTM_SLOT_MERGE_X + (int32_t)k], cut(&theirs, at, desc->widths[k])));
        at += desc->widths[k];
    }
    return at == theirs.count
               ? SEQLSTM_OK
               : sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), node, " (of another width)");
}

static seqlstm_status match_tensor(struct sl_onnx_match *m, int32_t tensor, struct sl_onnx_features theirs)
{
    int32_t slot;
    const struct sl_node *node = find_writer(m, tensor, &slot);
    if (node == NULL) {
        if (m->graph->tensors[tensor].role == SL_TENSOR_INPUT && take(m, &theirs, SL_ONNX_TERM_INPUT))
            return SEQLSTM_OK;
        return sl_onnx_match_fail_place(m, sl_onnx_match_get_culprit(m, &theirs), NULL, "");
    }
    switch (node->desc.head.op) {
    case SEQLSTM_OP_RECURRENT:
        return match_recurrent(m, node, slot, theirs);
    case SEQLSTM_OP_DENSE:
        return match_dense(m, node, theirs);
    case SEQLSTM_OP_EMBEDDING:
        return match_simple(m, node, SL_ONNX_TERM_EMBEDDING, SEQLSTM_SLOT_EMBEDDING_IDS, theirs);
    case SEQLSTM_OP_LAYER_NORM:
        return match_simple(m, node, SL_ONNX_TERM_NORM, SEQLSTM_SLOT_LAYER_NORM_X, theirs);
    case SEQLSTM_OP_POOL:
        return match_pool(m, node, theirs);
    case SEQLSTM_OP_MERGE:
        return match_merge(m, node, theirs);
    case SEQLSTM_OP_ACTIVATION:
        SEQLSTM_TRY(match_activation(m, node, &node->desc.activation.activation, &theirs));
        return match_tensor(m, node->slots[SEQLSTM_SLOT_UNARY_X], theirs);
    default:
        SEQLSTM_FAIL(m->err, SEQLSTM_INVALID_CONFIG,
                     "layer `%s` cannot be imported from an ONNX file; import weights under their names instead",
                     node->name);
    }
}

/* ---- outputs ------------------------------------------------------------------------------------------------ */

seqlstm_status sl_onnx_match_output(struct sl_onnx_match *m, const struct sl_onnx_value *output)
{
    if (output->kind == SL_ONNX_OPAQUE)
        return sl_onnx_match_fail_opaque(m, output);
    int32_t last = output->dims.rank - 1;
    bool is_steps = sl_axis_is_steps(m->graph->tensors[m->graph->output].axis), has_time = false;
    for (int32_t d = 0; output->kind == SL_ONNX_DATA && d < output->dims.rank; d++)
        for (int32_t a = 0; a < output->dims.at[d].count; a++)
            has_time = has_time || output->dims.at[d].atoms[a].kind == SL_ONNX_ATOM_TIME;
    bool is_laid_out = output->kind == SL_ONNX_DATA &&
                       (output->features.count == 1 || (last >= 0 && sl_onnx_dims_is_features(&output->dims, last)));
    if (!is_laid_out || (m->lift->time > 1 && has_time != is_steps)) {
        char text[NODE_TEXT];
        SEQLSTM_FAIL(m->err, SEQLSTM_INVALID_CONFIG, "%s: the file's output, of %s, is not %s, as the model's is",
                     m->path, sl_onnx_describe_node(output->via, text, sizeof text),
                     is_steps ? "[batch, time, features]" : "[batch, features]");
    }
    return match_tensor(m, m->graph->output, output->features);
}

seqlstm_status sl_onnx_match_extra_output(const struct sl_onnx_match *m, const char *name)
{
    const struct sl_onnx_value *value = sl_onnx_lift_find(m->lift, name);
    if (value && value->kind == SL_ONNX_OPAQUE)
        return sl_onnx_match_fail_opaque(m, value);
    for (int64_t k = 0; value && value->kind == SL_ONNX_DATA && k < value->features.count; k++) {
        const struct sl_onnx_term *term = &m->lift->terms[value->features.list[k].term];
        bool is_used = term->is_used;
        for (int32_t n = 0; term->cell >= 0 && n < m->graph->node_count; n++)
            for (int32_t d = 0; d < 2; d++)
                is_used = is_used || (m->graph->nodes[n].desc.head.op == SEQLSTM_OP_RECURRENT &&
                                      m->pairs[n].cells[d] == term->cell + 1);
        char text[NODE_TEXT];
        if (!is_used)
            SEQLSTM_FAIL(m->err, SEQLSTM_INVALID_CONFIG,
                         "%s: output `%s` of the file needs %s, which the model file does not describe", m->path, name,
                         sl_onnx_describe_node(term->node, text, sizeof text));
    }
    return SEQLSTM_OK;
}
