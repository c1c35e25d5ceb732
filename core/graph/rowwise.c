/* SPDX-License-Identifier: Apache-2.0 */
/* Layers without recurrence: embedding, dense, output, activation, dropout, layer norm, pool, concat, add, repeat.
 *
 * A layer that changes nothing (a linear activation, dropout outside training) adds no operation: its output is the
 * tensor of its input.
 */
#include <stdio.h>
#include <string.h>

#include "graph/builder.h"

static seqlstm_status need_values(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    if (b->tensors[x].dtype == SEQLSTM_DTYPE_FLOAT32)
        return SEQLSTM_OK;
    return sl_builder_fail(b, layer->place,
                           "layer `%s` needs numbers, but the data are token ids; put an embedding layer before it",
                           layer->name);
}

static seqlstm_status add_embedding(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    if (b->tensors[x].dtype != SEQLSTM_DTYPE_INT32)
        return sl_builder_fail(
            b, layer->place, "layer `%s` needs token ids, but the data are numbers; remove the embedding", layer->name);
    int64_t v = (layer->side == SL_SIDE_ENCODER ? b->facts->source : b->facts->input).classes;
    int64_t e = layer->embedding.dim;
    struct sl_param_spec w = {.initializer = layer->embedding.initializer,
                              .regularizer = layer->embedding.regularizer,
                              .fan_in = v,
                              .fan_out = e,
                              .fan_units = e};
    int32_t table = -1;
    for (int32_t p = 0; layer->embedding.share && p < b->param_count; p++)
        if (b->params[p].layer == layer->embedding.share_layer) {
            table = b->params[p].tensor;
            if (b->params[p].rows != v)
                return sl_builder_fail(b, sl_layer_find_option_place(layer, "share"),
                                       "`share: %s` needs one vocabulary, but that of the source has %lld tokens, and "
                                       "that of the target %lld; use `shared: true` in the tokenizer",
                                       layer->embedding.share, (long long)b->params[p].rows, (long long)v);
        }
    if (table < 0)
        table = sl_builder_add_param(b, layer, "w", v, e, &w);
    enum sl_axis axis = b->tensors[x].axis;
    int32_t y = sl_builder_add_activation(b, layer->name, axis, e, !b->failed && b->tensors[table].needs_grad);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_EMBEDDING, axis);
    desc.embedding.vocabulary = v;
    desc.embedding.features = e;
    int32_t slots[SEQLSTM_SLOT_EMBEDDING_COUNT] = {
        [SEQLSTM_SLOT_EMBEDDING_IDS] = x, [SEQLSTM_SLOT_EMBEDDING_Y] = y, [SEQLSTM_SLOT_EMBEDDING_W] = table};
    sl_builder_add_node(b, layer->name, layer->index, &desc, slots, SEQLSTM_SLOT_EMBEDDING_COUNT);
    b->layer_outputs[layer->index] = y;
    return SEQLSTM_OK;
}

static int64_t get_target_width(const struct sl_builder *b)
{
    const struct sl_field_facts *target = &b->facts->target;
    return target->kind == SL_FIELD_IDS ? target->classes : target->features;
}

/* Is this the last layer, and does the loss compute its activation? */
static bool leaves_activation(const struct sl_builder *b, const struct sl_layer *layer,
                              const struct sl_activation *activation)
{
    if (b->request->phase == SL_PHASE_PREDICT || layer->index + 1 != (int)b->model->layer_count)
        return false;
    enum sl_loss_kind loss = b->model->train.loss.kind;
    return (loss == SL_LOSS_CROSS_ENTROPY && activation->kind == SL_ACTIVATION_SOFTMAX) ||
           (loss == SL_LOSS_BINARY_CROSS_ENTROPY && activation->kind == SL_ACTIVATION_SIGMOID);
}

/* Finds the matrix of the embedding that a tied output uses; its width must be that of the input. */
static seqlstm_status find_tied(struct sl_builder *b, const struct sl_layer *layer, int32_t x, int64_t units,
                                int32_t *out_tensor)
{
    const struct sl_layer *home = &b->model->layers[layer->dense.tie_layer];
    if (home->embedding.share)
        home = &b->model->layers[home->embedding.share_layer];
    for (int32_t p = 0; p < b->param_count; p++)
        if (b->params[p].layer == home->index) {
            const struct sl_param *w = &b->params[p];
            if (w->columns != b->tensors[x].features)
                return sl_builder_fail(
                    b, sl_layer_find_option_place(layer, "tie"),
                    "`tie: %s` needs an input as wide as the embedding (%lld), but it has %lld features",
                    layer->dense.tie, (long long)w->columns, (long long)b->tensors[x].features);
            if (w->rows != units)
                return sl_builder_fail(
                    b, sl_layer_find_option_place(layer, "tie"),
                    "`tie: %s` needs as many classes as the embedding has rows (%lld), but the target has %lld",
                    layer->dense.tie, (long long)w->rows, (long long)units);
            *out_tensor = w->tensor;
            return SEQLSTM_OK;
        }
    return sl_builder_fail(b, sl_layer_find_option_place(layer, "tie"),
                           "`tie: %s` names no embedding before this layer", layer->dense.tie);
}

static seqlstm_status add_dense(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    SEQLSTM_TRY(need_values(b, layer, x));
    const struct sl_dense *o = &layer->dense;
    int64_t input = b->tensors[x].features;
    int64_t units = o->units == SL_UNITS_FROM_TARGET ? get_target_width(b) : o->units;
    if (units <= 0)
        return sl_builder_fail(b, layer->place, "layer `%s` takes its width from the target, but the data have none",
                               layer->name);
    int32_t w = -1, bias = -1;
    if (o->tie_layer >= 0 && o->tie) {
        SEQLSTM_TRY(find_tied(b, layer, x, units, &w));
    } else {
        struct sl_param_spec spec = {.initializer = o->kernel_initializer,
                                     .regularizer = o->kernel_regularizer,
                                     .fan_in = input,
                                     .fan_out = units,
                                     .fan_units = input};
        w = sl_builder_add_param(b, layer, "w", units, input, &spec);
    }
    if (o->use_bias) {
        struct sl_param_spec spec = {.is_vector = true,
                                     .initializer = o->bias_initializer,
                                     .regularizer = o->bias_regularizer,
                                     .fan_in = input,
                                     .fan_out = units,
                                     .fan_units = input};
        bias = sl_builder_add_param(b, layer, "bias", units, 1, &spec);
    }
    if (b->failed)
        return SEQLSTM_OK;
    enum sl_axis axis = b->tensors[x].axis;
    bool grad = layer->trainable || b->tensors[x].needs_grad || b->tensors[w].needs_grad;
    int32_t y = sl_builder_add_activation(b, layer->name, axis, units, grad);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_DENSE, axis);
    desc.dense.input = input;
    desc.dense.output = units;
    desc.dense.options = o->use_bias ? SEQLSTM_BIT_DENSE_USE_BIAS : 0;
    if (leaves_activation(b, layer, &o->activation))
        b->output_is_logits = true;
    else
        desc.dense.activation = sl_builder_get_activation(&o->activation);
    int32_t slots[SEQLSTM_SLOT_DENSE_COUNT] = {[SEQLSTM_SLOT_DENSE_X] = x,
                                               [SEQLSTM_SLOT_DENSE_Y] = y,
                                               [SEQLSTM_SLOT_DENSE_W] = w,
                                               [SEQLSTM_SLOT_DENSE_BIAS] = bias};
    sl_builder_add_node(b, layer->name, layer->index, &desc, slots, SEQLSTM_SLOT_DENSE_COUNT);
    b->layer_outputs[layer->index] = y;
    return SEQLSTM_OK;
}

/* Adds an operation with one input and one output of the given width. */
static void add_unary(struct sl_builder *b, const struct sl_layer *layer, int32_t x, enum sl_axis axis,
                      const union seqlstm_any_desc *desc)
{
    int32_t y = sl_builder_add_activation(b, layer->name, axis, b->tensors[x].features, b->tensors[x].needs_grad);
    int32_t slots[SEQLSTM_SLOT_UNARY_COUNT] = {[SEQLSTM_SLOT_UNARY_X] = x, [SEQLSTM_SLOT_UNARY_Y] = y};
    sl_builder_add_node(b, layer->name, layer->index, desc, slots, SEQLSTM_SLOT_UNARY_COUNT);
    b->layer_outputs[layer->index] = y;
}

static seqlstm_status add_activation(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    SEQLSTM_TRY(need_values(b, layer, x));
    b->layer_outputs[layer->index] = x;
    if (leaves_activation(b, layer, &layer->activation)) {
        b->output_is_logits = true;
        return SEQLSTM_OK;
    }
    if (layer->activation.kind == SL_ACTIVATION_LINEAR)
        return SEQLSTM_OK;
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_ACTIVATION, b->tensors[x].axis);
    desc.activation.features = b->tensors[x].features;
    desc.activation.activation = sl_builder_get_activation(&layer->activation);
    add_unary(b, layer, x, b->tensors[x].axis, &desc);
    return SEQLSTM_OK;
}

static seqlstm_status add_dropout(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    SEQLSTM_TRY(need_values(b, layer, x));
    b->layer_outputs[layer->index] = x;
    if (!b->training || layer->dropout.rate == 0)
        return SEQLSTM_OK;
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_DROPOUT, b->tensors[x].axis);
    desc.dropout.features = b->tensors[x].features;
    desc.dropout.stream = sl_builder_get_stream(layer, 0);
    desc.dropout.rate = (float)layer->dropout.rate;
    desc.dropout.mask =
        layer->dropout.mask == SL_DROPOUT_MASK_SEQUENCE ? SEQLSTM_KIND_DROPOUT_SEQUENCE : SEQLSTM_KIND_DROPOUT_STEP;
    add_unary(b, layer, x, b->tensors[x].axis, &desc);
    return SEQLSTM_OK;
}

static seqlstm_status add_layer_norm(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    SEQLSTM_TRY(need_values(b, layer, x));
    int64_t features = b->tensors[x].features;
    enum sl_axis axis = b->tensors[x].axis;
    struct sl_param_spec gain = {.is_vector = true, .initializer = {.kind = SL_INITIALIZER_ONES}};
    struct sl_param_spec bias = {.is_vector = true, .initializer = {.kind = SL_INITIALIZER_ZEROS}};
    int32_t slots[SEQLSTM_SLOT_LAYER_NORM_COUNT];
    slots[SEQLSTM_SLOT_LAYER_NORM_X] = x;
    slots[SEQLSTM_SLOT_LAYER_NORM_GAIN] = sl_builder_add_param(b, layer, "gain", features, 1, &gain);
    slots[SEQLSTM_SLOT_LAYER_NORM_BIAS] = sl_builder_add_param(b, layer, "bias", features, 1, &bias);
    slots[SEQLSTM_SLOT_LAYER_NORM_Y] =
        sl_builder_add_activation(b, layer->name, axis, features, layer->trainable || b->tensors[x].needs_grad);
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_LAYER_NORM, axis);
    desc.layer_norm.features = features;
    desc.layer_norm.epsilon = (float)layer->layer_norm.epsilon;
    desc.layer_norm.options = SEQLSTM_BIT_LAYER_NORM_GAIN | SEQLSTM_BIT_LAYER_NORM_BIAS;
    sl_builder_add_node(b, layer->name, layer->index, &desc, slots, SEQLSTM_SLOT_LAYER_NORM_COUNT);
    b->layer_outputs[layer->index] = slots[SEQLSTM_SLOT_LAYER_NORM_Y];
    return SEQLSTM_OK;
}

static seqlstm_status add_pool(struct sl_builder *b, const struct sl_layer *layer, int32_t x)
{
    SEQLSTM_TRY(need_values(b, layer, x));
    if (!sl_axis_is_steps(b->tensors[x].axis))
        return sl_builder_fail(b, layer->place,
                               "layer `%s` pools over the steps of a sequence, but its input is one vector per record",
                               layer->name);
    static const uint32_t kinds[] = {[SL_POOL_MEAN] = SEQLSTM_KIND_POOL_MEAN,
                                     [SL_POOL_MAX] = SEQLSTM_KIND_POOL_MAX,
                                     [SL_POOL_SUM] = SEQLSTM_KIND_POOL_SUM,
                                     [SL_POOL_FIRST] = SEQLSTM_KIND_POOL_FIRST,
                                     [SL_POOL_LAST] = SEQLSTM_KIND_POOL_LAST};
    union seqlstm_any_desc desc = sl_builder_describe(b, SEQLSTM_OP_POOL, b->tensors[x].axis);
    desc.pool.features = b->tensors[x].features;
    desc.pool.kind = kinds[layer->pool.mode];
    add_unary(b, layer, x, sl_builder_get_side(b, layer)->sequences, &desc);
    return SEQLSTM_OK;
}

/* Repeats the vector of each sequence at all of its steps. */
static void add_repeat(struct sl_builder *b, const struct sl_layer *layer)
{
    if (b->sequence < 0)
        b->sequence =
            sl_builder_add_tensor(b, "sequence", SL_TENSOR_SEQUENCE, SL_AXIS_STEPS, SEQLSTM_DTYPE_INT32, 0, 1);
    b->layer_outputs[layer->index] =
        sl_builder_add_gather(b, layer->name, layer->index, b->repeated[layer->from[0]], b->sequence, -1);
}

static seqlstm_status add_merge(struct sl_builder *b, const struct sl_layer *layer)
{
    bool concat = layer->kind == SL_LAYER_CONCAT;
    if (layer->from_count < 2 || layer->from_count > SEQLSTM_MAX_MERGE_INPUTS)
        return sl_builder_fail(b, sl_layer_find_option_place(layer, "from"), "layer `%s` joins 2 to %d layers, not %zu",
                               layer->name, SEQLSTM_MAX_MERGE_INPUTS, layer->from_count);
    int32_t x[SEQLSTM_MAX_MERGE_INPUTS];
    for (size_t i = 0; i < layer->from_count; i++) {
        x[i] = sl_builder_get_input(b, layer, i);
        SEQLSTM_TRY(need_values(b, layer, x[i]));
        for (size_t j = 0; j < i; j++)
            if (x[j] == x[i])
                return sl_builder_fail(b, sl_layer_find_option_place(layer, "from"),
                                       "layer `%s` joins the same values twice", layer->name);
        const struct sl_tensor *t = &b->tensors[x[i]], *first = &b->tensors[x[0]];
        if (t->axis != first->axis)
            return sl_builder_fail(b, sl_layer_find_option_place(layer, "from"),
                                   "layer `%s` joins a sequence with a vector", layer->name);
        if (!concat && t->features != first->features)
            return sl_builder_fail(b, sl_layer_find_option_place(layer, "from"),
                                   "layer `%s` adds inputs of %lld and %lld features; they must be equal", layer->name,
                                   (long long)first->features, (long long)t->features);
    }
    b->layer_outputs[layer->index] = sl_builder_add_merge(b, layer->name, layer->index, x, layer->from_count,
                                                          concat ? SEQLSTM_KIND_MERGE_CONCAT : SEQLSTM_KIND_MERGE_SUM);
    return SEQLSTM_OK;
}

seqlstm_status sl_graph_add_rowwise(struct sl_builder *b, const struct sl_layer *layer)
{
    int32_t x = sl_builder_get_input(b, layer, 0);
    switch (layer->kind) {
    case SL_LAYER_REPEAT:
        add_repeat(b, layer);
        return SEQLSTM_OK;
    case SL_LAYER_ATTENTION:
        return sl_graph_add_attention(b, layer);
    case SL_LAYER_EMBEDDING:
        return add_embedding(b, layer, x);
    case SL_LAYER_DENSE:
    case SL_LAYER_OUTPUT:
        return add_dense(b, layer, x);
    case SL_LAYER_ACTIVATION:
        return add_activation(b, layer, x);
    case SL_LAYER_DROPOUT:
        return add_dropout(b, layer, x);
    case SL_LAYER_LAYER_NORM:
        return add_layer_norm(b, layer, x);
    case SL_LAYER_POOL:
        return add_pool(b, layer, x);
    case SL_LAYER_CONCAT:
    case SL_LAYER_ADD:
        return add_merge(b, layer);
    default:
        return sl_builder_fail(b, layer->place, "layers of type %s are not available in this version",
                               sl_layer_kind_get_name(layer->kind));
    }
}
