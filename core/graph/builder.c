/* SPDX-License-Identifier: Apache-2.0 */
/* See builder.h. */
#include "graph/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/operation/op_signature.h"
#include "base/value/error_place.h"

seqlstm_status sl_builder_fail(struct sl_builder *b, struct sl_place place, const char *format, ...)
{
    char text[sizeof b->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    seqlstm_error_set(b->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "%s", text);
    if (place.line > 0)
        sl_error_place_set(b->err, place.file, place.line, place.column);
    return SEQLSTM_INVALID_CONFIG;
}

/* Makes room for one more element; the old table stays in the arena, unused. NULL: out of memory. */
static void *grow(struct sl_builder *b, void *items, int32_t count, int32_t *capacity, size_t bytes)
{
    if (count < *capacity)
        return items;
    int32_t bigger = *capacity ? 2 * *capacity : 16;
    void *moved = sl_arena_alloc_array(b->arena, (size_t)bigger, bytes);
    if (moved == NULL) {
        b->failed = true;
        return NULL;
    }
    if (count)
        memcpy(moved, items, (size_t)count * bytes);
    *capacity = bigger;
    return moved;
}

#define GROW(b, table)                                                                                                 \
    do {                                                                                                               \
        void *moved_ = grow((b), (b)->table##s, (b)->table##_count, &(b)->table##_capacity, sizeof *(b)->table##s);    \
        if (moved_ == NULL)                                                                                            \
            return GROW_FAILED;                                                                                        \
        (b)->table##s = moved_;                                                                                        \
    } while (0)

#define GROW_FAILED 0

static const char *copy_text(struct sl_builder *b, const char *text)
{
    const char *copy = sl_arena_strdup(b->arena, text);
    if (copy == NULL)
        b->failed = true;
    return copy ? copy : "";
}

int32_t sl_builder_add_tensor(struct sl_builder *b, const char *name, enum sl_tensor_role role, enum sl_axis axis,
                              uint32_t dtype, int64_t rows, int64_t features)
{
    GROW(b, tensor);
    b->tensors[b->tensor_count] = (struct sl_tensor){.name = copy_text(b, name),
                                                     .role = role,
                                                     .axis = axis,
                                                     .dtype = dtype,
                                                     .rows = rows,
                                                     .features = features,
                                                     .owner = -1};
    return b->tensor_count++;
}

int32_t sl_builder_add_activation(struct sl_builder *b, const char *name, enum sl_axis axis, int64_t features,
                                  bool needs_grad)
{
    int32_t tensor = sl_builder_add_tensor(b, name, SL_TENSOR_ACTIVATION, axis, SEQLSTM_DTYPE_FLOAT32, 0, features);
    if (!b->failed)
        b->tensors[tensor].needs_grad = needs_grad && b->training;
    return tensor;
}

int32_t sl_builder_add_param(struct sl_builder *b, const struct sl_layer *layer, const char *suffix, int64_t rows,
                             int64_t columns, const struct sl_param_spec *spec)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", layer->name, suffix);
    int32_t tensor =
        sl_builder_add_tensor(b, name, SL_TENSOR_PARAM, SL_AXIS_FREE, SEQLSTM_DTYPE_FLOAT32, rows, columns);
    GROW(b, param);
    if (b->failed)
        return 0;
    b->tensors[tensor].needs_grad = layer->trainable && b->training;
    b->tensors[tensor].owner = b->param_count;
    b->params[b->param_count++] = (struct sl_param){
        .name = b->tensors[tensor].name,
        .tensor = tensor,
        .layer = layer->index,
        .rows = rows,
        .columns = columns,
        .is_vector = spec->is_vector,
        .trainable = layer->trainable,
        .initializer = spec->initializer,
        .fan_in = spec->fan_in,
        .fan_out = spec->fan_out,
        .fan_units = spec->fan_units,
        .gates = spec->gates ? spec->gates : 1,
        .one_begin = spec->one_begin,
        .one_end = spec->one_end,
        .regularizer = spec->regularizer,
    };
    return tensor;
}

static struct sl_node make_node(struct sl_builder *b, const char *name, int32_t layer,
                                const union seqlstm_any_desc *desc, const int32_t *slots, int32_t slot_count)
{
    int32_t *copy = SL_ARENA_ARRAY(b->arena, int32_t, (size_t)slot_count);
    if (copy == NULL) {
        b->failed = true;
        return (struct sl_node){0};
    }
    memcpy(copy, slots, (size_t)slot_count * sizeof *copy);
    struct sl_node node = {
        .name = copy_text(b, name), .layer = layer, .desc = *desc, .slot_count = slot_count, .slots = copy};
    for (int32_t s = 0; s < slot_count && b->training; s++)
        if (slots[s] >= 0 && b->tensors[slots[s]].needs_grad)
            node.needs_backward = true;
    return node;
}

#undef GROW_FAILED
#define GROW_FAILED

void sl_builder_add_node(struct sl_builder *b, const char *name, int32_t layer, const union seqlstm_any_desc *desc,
                         const int32_t *slots, int32_t slot_count)
{
    GROW(b, node);
    b->nodes[b->node_count++] = make_node(b, name, layer, desc, slots, slot_count);
}

void sl_builder_add_alternative(struct sl_builder *b, const char *name, int32_t layer,
                                const union seqlstm_any_desc *desc, const int32_t *slots, int32_t slot_count,
                                int32_t first, int32_t count)
{
    GROW(b, alternative);
    b->alternatives[b->alternative_count++] = (struct sl_alternative){
        .node = make_node(b, name, layer, desc, slots, slot_count), .first = first, .count = count};
}

#undef GROW_FAILED
#define GROW_FAILED 0

int32_t sl_builder_add_state(struct sl_builder *b, const char *name, int64_t features)
{
    GROW(b, state);
    char text[256];
    int32_t in =
        sl_builder_add_tensor(b, name, SL_TENSOR_STATE_IN, SL_AXIS_SEQUENCES, SEQLSTM_DTYPE_FLOAT32, 0, features);
    snprintf(text, sizeof text, "%s.next", name);
    int32_t out =
        sl_builder_add_tensor(b, text, SL_TENSOR_STATE_OUT, SL_AXIS_SEQUENCES, SEQLSTM_DTYPE_FLOAT32, 0, features);
    if (b->failed)
        return 0;
    b->tensors[in].owner = b->tensors[out].owner = b->state_count;
    b->states[b->state_count] =
        (struct sl_state){.name = b->tensors[in].name, .tensor_in = in, .tensor_out = out, .features = features};
    return b->state_count++;
}

/* A lower precision pays off for products. Other operations are limited by memory, or are sums that need all bits. */
static bool has_products(uint32_t op)
{
    return op == SEQLSTM_OP_RECURRENT || op == SEQLSTM_OP_DENSE || op == SEQLSTM_OP_DENSE_LOSS;
}

union seqlstm_any_desc sl_builder_describe(const struct sl_builder *b, uint32_t op, enum sl_axis axis)
{
    const struct sl_envelope *envelope = &b->facts->envelope;
    union seqlstm_any_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.head.struct_size = sl_op_desc_bytes(op);
    desc.head.op = op;
    desc.head.mode = b->training ? SEQLSTM_MODE_TRAINING : SEQLSTM_MODE_INFERENCE;
    if (b->model->deterministic)
        desc.head.flags |= SEQLSTM_BIT_DESC_DETERMINISTIC;
    if (envelope->uniform && b->facts->has_steps && b->facts->source.kind == SL_FIELD_NONE)
        desc.head.flags |= SEQLSTM_BIT_DESC_UNIFORM;
    static const uint32_t computes[] = {[SL_PRECISION_FLOAT32] = SEQLSTM_DTYPE_FLOAT32,
                                        [SL_PRECISION_TF32] = SEQLSTM_DTYPE_TF32,
                                        [SL_PRECISION_BFLOAT16] = SEQLSTM_DTYPE_BFLOAT16,
                                        [SL_PRECISION_FLOAT16] = SEQLSTM_DTYPE_FLOAT16};
    if (has_products(op))
        desc.head.dtype_compute = computes[b->model->precision];
    desc.head.max_rows = axis == SL_AXIS_STEPS                                    ? envelope->rows
                         : axis == SL_AXIS_SOURCE_STEPS || axis == SL_AXIS_MEMORY ? envelope->source_rows
                                                                                  : envelope->sequences;
    desc.head.max_sequences = envelope->sequences;
    desc.head.max_steps = sl_axis_is_source(axis) ? envelope->source_steps : envelope->steps;
    return desc;
}

int32_t sl_builder_add_gather(struct sl_builder *b, const char *name, int32_t layer, int32_t x, int32_t index,
                              int32_t y)
{
    enum sl_axis axis = b->tensors[index].axis, from = b->tensors[x].axis;
    int64_t features = b->tensors[x].features;
    if (y < 0)
        y = sl_builder_add_activation(b, name, axis, features, b->tensors[x].needs_grad);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_GATHER, axis);
    int64_t rows_in = sl_builder_describe(b, SEQLSTM_OP_GATHER, from).head.max_rows;
    if (rows_in > desc.head.max_rows)
        desc.head.max_rows = rows_in;
    desc.gather.features = features;
    int32_t slots[SEQLSTM_SLOT_GATHER_COUNT] = {
        [SEQLSTM_SLOT_GATHER_X] = x, [SEQLSTM_SLOT_GATHER_Y] = y, [SEQLSTM_SLOT_GATHER_INDEX] = index};
    sl_builder_add_node(b, name, layer, &desc, slots, SEQLSTM_SLOT_GATHER_COUNT);
    return y;
}

int32_t sl_builder_add_merge(struct sl_builder *b, const char *name, int32_t layer, const int32_t *x, size_t count,
                             uint32_t kind)
{
    enum sl_axis axis = b->tensors[x[0]].axis;
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_MERGE, axis);
    int32_t slots[SEQLSTM_SLOT_MERGE_COUNT];
    int64_t sum = 0;
    bool grad = false;
    memset(slots, 0xff, sizeof slots);
    desc.merge.kind = kind;
    desc.merge.inputs = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const struct sl_tensor *t = &b->tensors[x[i]];
        slots[SEQLSTM_SLOT_MERGE_X + i] = x[i];
        desc.merge.widths[i] = t->features;
        sum += t->features;
        grad = grad || t->needs_grad;
    }
    int64_t width = kind == SEQLSTM_KIND_MERGE_CONCAT ? sum : b->tensors[x[0]].features;
    slots[SEQLSTM_SLOT_MERGE_Y] = sl_builder_add_activation(b, name, axis, width, grad);
    sl_builder_add_node(b, name, layer, &desc, slots, SEQLSTM_SLOT_MERGE_COUNT);
    return slots[SEQLSTM_SLOT_MERGE_Y];
}

int32_t sl_builder_add_linear(struct sl_builder *b, const struct sl_layer *layer, const char *suffix, int32_t x,
                              int64_t units, enum sl_activation_kind activation)
{
    const struct sl_recurrent *o = &layer->recurrent;
    char name[256];
    int64_t input = b->tensors[x].features;
    struct sl_param_spec w = {.initializer = o->kernel_initializer,
                              .regularizer = o->kernel_regularizer,
                              .fan_in = input,
                              .fan_out = units,
                              .fan_units = units};
    struct sl_param_spec bias = {.is_vector = true,
                                 .initializer = o->bias_initializer,
                                 .regularizer = o->bias_regularizer,
                                 .fan_in = input,
                                 .fan_out = units,
                                 .fan_units = units};
    int32_t slots[SEQLSTM_SLOT_DENSE_COUNT] = {[SEQLSTM_SLOT_DENSE_X] = x};
    snprintf(name, sizeof name, "%s.w", suffix);
    slots[SEQLSTM_SLOT_DENSE_W] = sl_builder_add_param(b, layer, name, units, input, &w);
    snprintf(name, sizeof name, "%s.bias", suffix);
    slots[SEQLSTM_SLOT_DENSE_BIAS] = sl_builder_add_param(b, layer, name, units, 1, &bias);
    if (b->failed)
        return 0;
    snprintf(name, sizeof name, "%s.%s", layer->name, suffix);
    enum sl_axis axis = b->tensors[x].axis;
    slots[SEQLSTM_SLOT_DENSE_Y] =
        sl_builder_add_activation(b, name, axis, units, layer->trainable || b->tensors[x].needs_grad);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_DENSE, axis);
    desc.dense.input = input;
    desc.dense.output = units;
    desc.dense.options = SEQLSTM_BIT_DENSE_USE_BIAS;
    desc.dense.activation = sl_builder_get_activation(&(struct sl_activation){.kind = activation});
    sl_builder_add_node(b, name, layer->index, &desc, slots, SEQLSTM_SLOT_DENSE_COUNT);
    return slots[SEQLSTM_SLOT_DENSE_Y];
}

struct seqlstm_activation sl_builder_get_activation(const struct sl_activation *activation)
{
    static const uint32_t kinds[] = {
        [SL_ACTIVATION_LINEAR] = SEQLSTM_ACT_NONE,
        [SL_ACTIVATION_TANH] = SEQLSTM_ACT_TANH,
        [SL_ACTIVATION_SIGMOID] = SEQLSTM_ACT_SIGMOID,
        [SL_ACTIVATION_RELU] = SEQLSTM_ACT_RELU,
        [SL_ACTIVATION_LEAKY_RELU] = SEQLSTM_ACT_LEAKY_RELU,
        [SL_ACTIVATION_THRESHOLDED_RELU] = SEQLSTM_ACT_THRESHOLDED_RELU,
        [SL_ACTIVATION_SCALED_TANH] = SEQLSTM_ACT_SCALED_TANH,
        [SL_ACTIVATION_HARD_SIGMOID] = SEQLSTM_ACT_HARD_SIGMOID,
        [SL_ACTIVATION_ELU] = SEQLSTM_ACT_ELU,
        [SL_ACTIVATION_SOFTSIGN] = SEQLSTM_ACT_SOFTSIGN,
        [SL_ACTIVATION_SOFTPLUS] = SEQLSTM_ACT_SOFTPLUS,
        [SL_ACTIVATION_AFFINE] = SEQLSTM_ACT_AFFINE,
        [SL_ACTIVATION_SOFTMAX] = SEQLSTM_ACT_SOFTMAX,
    };
    return (struct seqlstm_activation){
        .kind = kinds[activation->kind], .alpha = (float)activation->alpha, .beta = (float)activation->beta};
}

int32_t sl_builder_get_input(const struct sl_builder *b, const struct sl_layer *layer, size_t which)
{
    int from = layer->from[which];
    if (b->fed_input >= 0 && layer->index == b->model->feeding.reader)
        return b->fed_input;
    return from == SL_LAYER_MODEL_INPUT ? sl_builder_get_side(b, layer)->input : b->layer_outputs[from];
}

uint64_t sl_builder_get_stream(const struct sl_layer *layer, int64_t sub_layer)
{
    /* Each layer has STREAMS streams, enough for the sub-layers of ordinary stacks. Those of deeper stacks, which are
     * operations of one sub-layer each, continue beyond the streams of all layers. */
    enum { STREAMS = 4096 };
    const uint64_t first = ((uint64_t)layer->index + 1) * STREAMS;
    const uint64_t offset = SEQLSTM_STREAMS_PER_LAYER * (uint64_t)sub_layer;
    return offset < STREAMS ? first + offset : (first << 32) + offset;
}
