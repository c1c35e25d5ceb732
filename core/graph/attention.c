/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a decoder over its encoder.
 *
 *   encoder's output [source steps] ─ gather ─ memory ┬───────── values ┐
 *                                                     └ U (additive) ─ keys ─ ATTENTION ─ context ┐
 *   query [steps] ┬ W (general, additive) ──────────────────── queries ──────┘                 concat: the output
 *                 └───────────────────────────────────────────────────────────────────────────────┘
 *
 * The memory is made once for all attention layers, the keys once for each layer. If encoder and decoder run
 * separately, the encoder writes both, and the decoder reads them.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

/* Adds a tensor on the memory axis: an activation, or one that encoder and decoder share. */
static int32_t add_rows(struct sl_builder *b, const char *name, int64_t features, bool needs_grad)
{
    enum sl_part part = b->request->part;
    if (part == SL_PART_WHOLE)
        return sl_builder_add_activation(b, name, SL_AXIS_MEMORY, features, needs_grad);
    bool in = part == SL_PART_DECODER;
    int32_t tensor = sl_builder_add_tensor(b, name, in ? SL_TENSOR_MEMORY_IN : SL_TENSOR_MEMORY_OUT, SL_AXIS_MEMORY,
                                           SEQLSTM_DTYPE_FLOAT32, 0, features);
    if (!b->failed) {
        b->tensors[tensor].owner = b->memory_count;
        b->memories[b->memory_count++] = (struct sl_memory_pair){in ? tensor : -1, in ? -1 : tensor};
    }
    return tensor;
}

/* x W' into y (-1: a new activation), W [units, features of x] the parameter "<layer>.<suffix>". `computes`
 * false: the other part computes it. */
static int32_t add_product(struct sl_builder *b, const struct sl_layer *layer, const char *suffix, int32_t x,
                           int64_t units, int32_t y, bool computes)
{
    int64_t input = b->tensors[x].features;
    struct sl_param_spec spec = {
        .initializer = layer->attention.kernel_initializer, .fan_in = input, .fan_out = units, .fan_units = units};
    int32_t slots[SEQLSTM_SLOT_DENSE_COUNT] = {[SEQLSTM_SLOT_DENSE_X] = x, [SEQLSTM_SLOT_DENSE_BIAS] = -1};
    slots[SEQLSTM_SLOT_DENSE_W] = sl_builder_add_param(b, layer, suffix, units, input, &spec);
    if (b->failed)
        return 0;
    enum sl_axis axis = b->tensors[x].axis;
    char name[256];
    snprintf(name, sizeof name, "%s.%s", layer->name, suffix);
    if (y < 0)
        y = sl_builder_add_activation(b, name, axis, units, layer->trainable || b->tensors[x].needs_grad);
    slots[SEQLSTM_SLOT_DENSE_Y] = y;
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_DENSE, axis);
    desc.dense.input = input;
    desc.dense.output = units;
    if (computes && !b->failed)
        sl_builder_add_node(b, name, layer->index, &desc, slots, SEQLSTM_SLOT_DENSE_COUNT);
    return y;
}

seqlstm_status sl_graph_cross_memory(struct sl_builder *b, const struct sl_layer *layer)
{
    const struct sl_layer *giver = &b->model->layers[b->model->encoder_count - 1];
    int32_t x = b->layer_outputs[giver->index];
    bool computes = b->request->part != SL_PART_DECODER;
    if (b->tensors[x].axis != SL_AXIS_SOURCE_STEPS || b->tensors[x].dtype != SEQLSTM_DTYPE_FLOAT32)
        return sl_builder_fail(b, layer->place,
                               "layer `%s` attends to the steps of the encoder, but `%s` yields one vector for "
                               "each sequence; set `return_sequences: true` there",
                               layer->name, giver->name);
    if (b->memory < 0) {
        b->memory_row =
            sl_builder_add_tensor(b, "memory_row", SL_TENSOR_MEMORY_ROW, SL_AXIS_MEMORY, SEQLSTM_DTYPE_INT32, 0, 1);
        b->memory_offset = sl_builder_add_tensor(b, "memory_offset", SL_TENSOR_MEMORY_OFFSET, SL_AXIS_FREE,
                                                 SEQLSTM_DTYPE_INT32, b->facts->envelope.sequences + 1, 1);
        b->memory_of =
            sl_builder_add_tensor(b, "memory_of", SL_TENSOR_MEMORY_OF, SL_AXIS_STEPS, SEQLSTM_DTYPE_INT32, 0, 1);
        b->memory = add_rows(b, "memory", b->tensors[x].features, b->tensors[x].needs_grad);
        if (computes && !b->failed)
            sl_builder_add_gather(b, "memory", layer->index, x, b->memory_row, b->memory);
    }
    b->keys[layer->index] = b->memory;
    if (layer->attention.score == SL_SCORE_ADDITIVE && !b->failed) {
        char name[256];
        snprintf(name, sizeof name, "%s.keys", layer->name);
        int64_t units = layer->attention.units ? layer->attention.units : b->tensors[x].features;
        int32_t keys = add_rows(b, name, units, layer->trainable || b->tensors[b->memory].needs_grad);
        if (!b->failed)
            b->keys[layer->index] = add_product(b, layer, "keys", b->memory, units, keys, computes);
    }
    return SEQLSTM_OK;
}

/* [context, query], Luong et al. 2015, eq. 5. */
static void join(struct sl_builder *b, const struct sl_layer *layer, int32_t context, int32_t query)
{
    char name[256];
    snprintf(name, sizeof name, "%s.joined", layer->name);
    b->layer_outputs[layer->index] =
        sl_builder_add_merge(b, name, layer->index, (int32_t[]){context, query}, 2, SEQLSTM_KIND_MERGE_CONCAT);
}

static union seqlstm_any_desc describe(const struct sl_builder *b, const struct sl_layer *layer, int64_t key,
                                       bool shared)
{
    const struct sl_envelope *envelope = &b->facts->envelope;
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_ATTENTION, SL_AXIS_STEPS);
    enum sl_attention_score score = layer->attention.score;
    if (envelope->source_rows > desc.head.max_rows)
        desc.head.max_rows = envelope->source_rows;
    desc.head.max_steps = envelope->source_steps;
    desc.attention.key = key;
    desc.attention.value = b->tensors[b->memory].features;
    desc.attention.kind = score == SL_SCORE_ADDITIVE ? SEQLSTM_KIND_ATTENTION_ADDITIVE : SEQLSTM_KIND_ATTENTION_DOT;
    if (score != SL_SCORE_ADDITIVE)
        desc.attention.scale = score == SL_SCORE_SCALED ? (float)(1 / sqrt((double)key)) : 1.0f;
    desc.attention.options = shared ? SEQLSTM_BIT_ATTENTION_SHARED : 0;
    return desc;
}

seqlstm_status sl_graph_add_attention(struct sl_builder *b, const struct sl_layer *layer)
{
    int32_t x = sl_builder_get_input(b, layer, 0), keys = b->keys[layer->index], query = x, score = -1;
    enum sl_attention_score rule = layer->attention.score;
    if (b->tensors[x].axis != SL_AXIS_STEPS || b->tensors[x].dtype != SEQLSTM_DTYPE_FLOAT32)
        return sl_builder_fail(b, layer->place, "layer `%s` needs a query for each step", layer->name);
    int64_t key = b->tensors[keys].features;
    if (rule == SL_SCORE_GENERAL || rule == SL_SCORE_ADDITIVE)
        query = add_product(b, layer, "query", x, key, -1, true);
    else if (b->tensors[x].features != key)
        return sl_builder_fail(b, layer->place,
                               "layer `%s` multiplies %lld feature%s of its query with %lld of the encoder; say "
                               "`score: general`, or make the widths equal",
                               layer->name, (long long)b->tensors[x].features, b->tensors[x].features == 1 ? "" : "s",
                               (long long)key);
    if (rule == SL_SCORE_ADDITIVE && !b->failed) {
        struct sl_param_spec spec = {
            .initializer = layer->attention.kernel_initializer, .fan_in = key, .fan_out = 1, .fan_units = key};
        score = sl_builder_add_param(b, layer, "score", key, 1, &spec);
    }
    if (b->failed)
        return SEQLSTM_OK;
    bool shared = keys == b->memory, reports = b->request->attention_weights;
    bool grad = b->tensors[query].needs_grad || b->tensors[keys].needs_grad || b->tensors[b->memory].needs_grad ||
                (score >= 0 && b->tensors[score].needs_grad);
    int32_t context = sl_builder_add_activation(b, layer->name, SL_AXIS_STEPS, b->tensors[b->memory].features, grad);
    int32_t slots[SEQLSTM_SLOT_ATTENTION_COUNT] = {[SEQLSTM_SLOT_ATTENTION_QUERIES] = query,
                                                   [SEQLSTM_SLOT_ATTENTION_KEYS] = keys,
                                                   [SEQLSTM_SLOT_ATTENTION_VALUES] = shared ? -1 : b->memory,
                                                   [SEQLSTM_SLOT_ATTENTION_CONTEXT] = context,
                                                   [SEQLSTM_SLOT_ATTENTION_OFFSETS] = b->memory_offset,
                                                   [SEQLSTM_SLOT_ATTENTION_MEMORY_OF] = b->memory_of,
                                                   [SEQLSTM_SLOT_ATTENTION_WEIGHTS] = -1,
                                                   [SEQLSTM_SLOT_ATTENTION_SCORE] = score};
    union seqlstm_any_desc desc = describe(b, layer, key, shared);
    if (reports) {
        desc.attention.options |= SEQLSTM_BIT_ATTENTION_WEIGHTS;
        slots[SEQLSTM_SLOT_ATTENTION_WEIGHTS] =
            sl_builder_add_activation(b, "attention_weights", SL_AXIS_STEPS, desc.head.max_steps, false);
    }
    sl_builder_add_node(b, layer->name, layer->index, &desc, slots, SEQLSTM_SLOT_ATTENTION_COUNT);
    if (!b->failed)
        join(b, layer, context, x);
    return SEQLSTM_OK;
}
