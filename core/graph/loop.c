/* SPDX-License-Identifier: Apache-2.0 */
/* Input feeding: a loop over the steps. Its body, and the values that it carries.
 *
 *   x_t ────────────────╮
 *   fed_(t-1) ── concat ┴ recurrent ─ attention ─ … ─ fed_t          (Luong et al. 2015, section 3.3)
 *                          h_(t-1), c_(t-1) ⤴
 *
 * Carried values are on the steps axis as well: step t reads the first rows of step t-1, since sequences are sorted by
 * length. Recurrent layers compute their weight gradients over all steps at once (SEQLSTM_BIT_RECURRENT_STEPWISE).
 *
 * A separate decoder (SL_PART_DECODER) runs one step per batch, so it has no loop: the value that is fed is a carried
 * state, like the others.
 */
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

/* The width of the output of a layer of the decoder that is not added yet; 0: not known. */
static int64_t find_width(const struct sl_builder *b, int index)
{
    if (index == SL_LAYER_MODEL_INPUT)
        return b->tensors[b->sides[SL_SIDE_DECODER].input].features;
    const struct sl_layer *layer = &b->model->layers[index];
    int64_t width = 0;
    if (index < b->model->feeding.reader)
        return b->tensors[b->layer_outputs[index]].features;
    switch (layer->kind) {
    case SL_LAYER_LSTM:
    case SL_LAYER_GRU:
    case SL_LAYER_RNN:
        return layer->recurrent.projection ? layer->recurrent.projection : layer->recurrent.units;
    case SL_LAYER_EMBEDDING:
        return layer->embedding.dim;
    case SL_LAYER_DENSE:
        return layer->dense.units > 0 ? layer->dense.units : 0;
    case SL_LAYER_ATTENTION:
        return b->tensors[b->memory].features + find_width(b, layer->from[0]);
    case SL_LAYER_REPEAT:
        return b->tensors[b->repeated[layer->from[0]]].features;
    case SL_LAYER_CONCAT:
        for (size_t i = 0; i < layer->from_count; i++)
            width += find_width(b, layer->from[i]);
        return width;
    default:
        return find_width(b, layer->from[0]);
    }
}

/* Adds a tensor for the value of another one at the previous step. */
static int32_t add_before(struct sl_builder *b, const char *name, int64_t features)
{
    int32_t before =
        sl_builder_add_tensor(b, name, SL_TENSOR_BEFORE, SL_AXIS_STEPS, SEQLSTM_DTYPE_FLOAT32, 0, features);
    if (!b->failed)
        b->tensors[before].needs_grad = b->training;
    return before;
}

static void add_carry(struct sl_builder *b, int32_t value, int32_t before, int32_t initial)
{
    if (b->failed)
        return;
    b->tensors[before].owner = b->carry_count;
    b->carries[b->carry_count++] = (struct sl_carry){value, before, initial};
}

static size_t count_cells(const struct sl_layer *layer)
{
    return (size_t)layer->recurrent.layers;
}

/* Makes room for h and c of every layer of the body, and for the value that is fed. */
static bool make_carries(struct sl_builder *b, const struct sl_feeding *feeding)
{
    size_t count = 1;
    for (int i = feeding->reader; i <= feeding->giver; i++)
        if (sl_layer_is_recurrent(&b->model->layers[i]))
            count += 2 * count_cells(&b->model->layers[i]);
    b->carries = SL_ARENA_ARRAY(b->arena, struct sl_carry, count);
    b->failed = b->failed || b->carries == NULL;
    return !b->failed;
}

/* Carries the states of a layer of the body from step to step. */
static void carry_states(struct sl_builder *b, const struct sl_layer *layer)
{
    for (size_t l = 0; l < count_cells(layer) && !b->failed; l++)
        for (int c = 0; c < (layer->kind == SL_LAYER_LSTM ? 2 : 1) && !b->failed; c++) {
            int32_t *slots = b->layer_states[layer->index][l].slots;
            int32_t *first = &slots[c ? SEQLSTM_STATE_C0 : SEQLSTM_STATE_H0];
            int32_t *last = &slots[c ? SEQLSTM_STATE_CN : SEQLSTM_STATE_HN], initial = *first;
            const struct sl_recurrent *o = &layer->recurrent;
            int64_t width = !c && o->projection ? o->projection : o->units;
            char name[256];
            snprintf(name, sizeof name, "%s.l%zu.%c", layer->name, l, c ? 'c' : 'h');
            *last = sl_builder_add_activation(b, name, SL_AXIS_STEPS, width, true);
            snprintf(name, sizeof name, "%s.l%zu.%c.before", layer->name, l, c ? 'c' : 'h');
            *first = add_before(b, name, width);
            add_carry(b, *last, *first, initial);
        }
}

/* Concatenates x and the value that is fed; the reader reads it instead of x. */
static void join(struct sl_builder *b, const struct sl_layer *reader, int32_t fed)
{
    char name[256];
    snprintf(name, sizeof name, "%s.fed", reader->name);
    b->fed_input = sl_builder_add_merge(b, name, reader->index, (int32_t[]){sl_builder_get_input(b, reader, 0), fed}, 2,
                                        SEQLSTM_KIND_MERGE_CONCAT);
}

seqlstm_status sl_graph_enter_loop(struct sl_builder *b)
{
    const struct sl_feeding *feeding = &b->model->feeding;
    const struct sl_layer *reader = &b->model->layers[feeding->reader];
    const struct sl_layer *giver = &b->model->layers[feeding->giver];
    bool loops = b->request->part == SL_PART_WHOLE;
    int32_t x = sl_builder_get_input(b, reader, 0);
    int64_t width = find_width(b, feeding->giver);
    if (b->tensors[x].dtype != SEQLSTM_DTYPE_FLOAT32 || b->tensors[x].axis != SL_AXIS_STEPS)
        return SEQLSTM_OK; /* adding the layer reports what is wrong */
    if (loops && b->carries_state)
        return sl_builder_fail(
            b, reader->place,
            "layer `%s` is fed step by step within a batch, so its state cannot be carried to the next one",
            reader->name);
    char name[256];
    snprintf(name, sizeof name, "%s.before", giver->name);
    if (!loops) {
        b->fed_state = sl_builder_add_state(b, name, width);
        if (!b->failed)
            join(b, reader, b->states[b->fed_state].tensor_in);
        return SEQLSTM_OK;
    }
    if (!make_carries(b, feeding))
        return SEQLSTM_OK;
    b->loop.first = b->node_count;
    for (int i = feeding->reader; i <= feeding->giver; i++)
        if (sl_layer_is_recurrent(&b->model->layers[i]))
            carry_states(b, &b->model->layers[i]);
    b->fed_before = add_before(b, name, width);
    if (!b->failed)
        join(b, reader, b->fed_before);
    return SEQLSTM_OK;
}

/* Writes the state that the next step of the decoder reads: y of the only step, in the order of the sequences. */
static void keep_state(struct sl_builder *b, const struct sl_layer *giver, int32_t y)
{
    char name[256];
    snprintf(name, sizeof name, "%s.next", giver->name);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_POOL, SL_AXIS_STEPS);
    desc.pool.features = b->tensors[y].features;
    desc.pool.kind = SEQLSTM_KIND_POOL_LAST;
    int32_t slots[SEQLSTM_SLOT_UNARY_COUNT] = {
        [SEQLSTM_SLOT_UNARY_X] = y, [SEQLSTM_SLOT_UNARY_Y] = b->states[b->fed_state].tensor_out};
    sl_builder_add_node(b, name, giver->index, &desc, slots, SEQLSTM_SLOT_UNARY_COUNT);
}

seqlstm_status sl_graph_leave_loop(struct sl_builder *b)
{
    const struct sl_layer *giver = &b->model->layers[b->model->feeding.giver];
    int32_t y = b->layer_outputs[giver->index];
    if (b->fed_input < 0)
        return SEQLSTM_OK;
    if (b->request->part != SL_PART_WHOLE) {
        keep_state(b, giver, y);
        return SEQLSTM_OK;
    }
    b->loop.count = b->node_count - b->loop.first;
    add_carry(b, y, b->fed_before, -1);
    return SEQLSTM_OK;
}
