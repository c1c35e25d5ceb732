/* SPDX-License-Identifier: Apache-2.0 */
/* Operations without recurrence as ONNX nodes: embedding, dense, activation, layer norm, pool, merge. */
#include "interop/onnx_builder.h"

#include <float.h>
#include <string.h>

static const struct sl_onnx_name *get_name(const struct sl_onnx_builder *b, const struct sl_node *node, int32_t slot)
{
    return &b->tensors[node->slots[slot]];
}

static void set_name(struct sl_onnx_builder *b, const struct sl_node *node, int32_t slot, struct sl_onnx_name name)
{
    b->tensors[node->slots[slot]] = name;
}

/* A parameter under its canonical name, written once however many operations read it. */
static struct sl_onnx_name add_param(struct sl_onnx_builder *b, int32_t tensor)
{
    const struct sl_param *param = &b->graph->params[b->graph->tensors[tensor].owner];
    int64_t shape[2] = {param->rows, param->columns};
    if (b->tensors[tensor].text[0] == '\0')
        b->tensors[tensor] = sl_onnx_add_floats(b, param->name, shape, param->is_vector ? 1 : 2,
                                                b->values[b->graph->tensors[tensor].owner]);
    return b->tensors[tensor];
}

struct sl_onnx_name sl_onnx_add_activation(struct sl_onnx_builder *b, const struct seqlstm_activation *activation,
                                           const struct sl_onnx_name *x)
{
    static const char *const ops[SEQLSTM_ACT_COUNT] = {
        [SEQLSTM_ACT_TANH] = "Tanh",
        [SEQLSTM_ACT_SIGMOID] = "Sigmoid",
        [SEQLSTM_ACT_RELU] = "Relu",
        [SEQLSTM_ACT_LEAKY_RELU] = "LeakyRelu",
        [SEQLSTM_ACT_THRESHOLDED_RELU] = "ThresholdedRelu",
        [SEQLSTM_ACT_HARD_SIGMOID] = "HardSigmoid",
        [SEQLSTM_ACT_ELU] = "Elu",
        [SEQLSTM_ACT_SOFTSIGN] = "Softsign",
        [SEQLSTM_ACT_SOFTPLUS] = "Softplus",
        [SEQLSTM_ACT_SOFTMAX] = "Softmax",
        [SEQLSTM_ACT_LOG_SOFTMAX] = "LogSoftmax",
    };
    struct sl_onnx_name alpha, beta, inner;
    switch (activation->kind) {
    case SEQLSTM_ACT_NONE:
        return *x;
    case SEQLSTM_ACT_AFFINE:
        alpha = sl_onnx_add_scalar(b, activation->alpha);
        beta = sl_onnx_add_scalar(b, activation->beta);
        inner = sl_onnx_add(b, "Mul", x, &alpha, NULL);
        return sl_onnx_add(b, "Add", &inner, &beta, NULL);
    case SEQLSTM_ACT_SCALED_TANH:
        alpha = sl_onnx_add_scalar(b, activation->alpha);
        beta = sl_onnx_add_scalar(b, activation->beta);
        inner = sl_onnx_add(b, "Mul", x, &beta, NULL);
        inner = sl_onnx_add(b, "Tanh", &inner, NULL, NULL);
        return sl_onnx_add(b, "Mul", &inner, &alpha, NULL);
    case SEQLSTM_ACT_HARD_SIGMOID:
        sl_onnx_set_float(b, "alpha", activation->alpha);
        sl_onnx_set_float(b, "beta", activation->beta);
        break;
    case SEQLSTM_ACT_LEAKY_RELU:
    case SEQLSTM_ACT_THRESHOLDED_RELU:
    case SEQLSTM_ACT_ELU:
        sl_onnx_set_float(b, "alpha", activation->alpha);
        break;
    case SEQLSTM_ACT_SOFTMAX:
    case SEQLSTM_ACT_LOG_SOFTMAX:
        sl_onnx_set_int(b, "axis", -1);
        break;
    default:
        break;
    }
    return sl_onnx_add(b, ops[activation->kind], x, NULL, NULL);
}

static void add_embedding(struct sl_onnx_builder *b, const struct sl_node *node)
{
    struct sl_onnx_name table = add_param(b, node->slots[SEQLSTM_SLOT_EMBEDDING_W]);
    sl_onnx_set_int(b, "axis", 0);
    set_name(b, node, SEQLSTM_SLOT_EMBEDDING_Y,
             sl_onnx_add(b, "Gather", &table, get_name(b, node, SEQLSTM_SLOT_EMBEDDING_IDS), NULL));
}

/* x W' + b. The matrix is stored as ours is, so that a tied one is stored once. */
static void add_dense(struct sl_onnx_builder *b, const struct sl_node *node)
{
    static const int64_t swapped[2] = {1, 0};
    struct sl_onnx_name w = add_param(b, node->slots[SEQLSTM_SLOT_DENSE_W]);
    sl_onnx_set_ints(b, "perm", swapped, 2);
    w = sl_onnx_add(b, "Transpose", &w, NULL, NULL);
    struct sl_onnx_name y = sl_onnx_add(b, "MatMul", get_name(b, node, SEQLSTM_SLOT_DENSE_X), &w, NULL);
    if (node->desc.dense.options & SEQLSTM_BIT_DENSE_USE_BIAS) {
        struct sl_onnx_name bias = add_param(b, node->slots[SEQLSTM_SLOT_DENSE_BIAS]);
        y = sl_onnx_add(b, "Add", &y, &bias, NULL);
    }
    set_name(b, node, SEQLSTM_SLOT_DENSE_Y, sl_onnx_add_activation(b, &node->desc.dense.activation, &y));
}

static void add_layer_norm(struct sl_onnx_builder *b, const struct sl_node *node)
{
    struct sl_onnx_name gain = add_param(b, node->slots[SEQLSTM_SLOT_LAYER_NORM_GAIN]);
    struct sl_onnx_name bias = add_param(b, node->slots[SEQLSTM_SLOT_LAYER_NORM_BIAS]);
    sl_onnx_set_int(b, "axis", -1);
    sl_onnx_set_float(b, "epsilon", node->desc.layer_norm.epsilon);
    set_name(b, node, SEQLSTM_SLOT_LAYER_NORM_Y,
             sl_onnx_add(b, "LayerNormalization", get_name(b, node, SEQLSTM_SLOT_LAYER_NORM_X), &gain, &bias));
}

/* [batch, time, 1] booleans: the steps that count. `kind` POOL_FIRST and POOL_LAST leave one of each sequence. */
static struct sl_onnx_name add_mask(struct sl_onnx_builder *b, const struct sl_onnx_name *x,
                                    struct sl_onnx_name lengths, uint32_t kind)
{
    static const int64_t last_axis[1] = {-1}, both[2] = {-1, -2};
    struct sl_onnx_name zero = sl_onnx_add_index(b, 0), one = sl_onnx_add_index(b, 1);
    struct sl_onnx_name shape = sl_onnx_add(b, "Shape", x, NULL, NULL);
    struct sl_onnx_name time = sl_onnx_add(b, "Gather", &shape, &one, NULL);
    struct sl_onnx_name steps = sl_onnx_add(b, "Range", &zero, &time, &one); /* [time] */
    struct sl_onnx_name axis = sl_onnx_add_ints(b, last_axis, 1), axes = sl_onnx_add_ints(b, both, 2), limit, mask;
    steps = sl_onnx_add(b, "Unsqueeze", &steps, &axis, NULL); /* [time, 1] */
    sl_onnx_set_int(b, "to", SL_ONNX_INT64);
    limit = sl_onnx_add(b, "Cast", &lengths, NULL, NULL);
    limit = sl_onnx_add(b, "Unsqueeze", &limit, &axes, NULL); /* [batch, 1, 1] */
    if (kind == SEQLSTM_KIND_POOL_FIRST)
        limit = sl_onnx_add(b, "Min", &limit, &one, NULL);
    mask = sl_onnx_add(b, "Less", &steps, &limit, NULL);
    if (kind != SEQLSTM_KIND_POOL_LAST)
        return mask;
    limit = sl_onnx_add(b, "Sub", &limit, &one, NULL);
    return sl_onnx_add(b, "Equal", &steps, &limit, NULL);
}

/* Sum over time, which is axis 1. */
static struct sl_onnx_name add_time_sum(struct sl_onnx_builder *b, const struct sl_onnx_name *x)
{
    static const int64_t time = 1;
    struct sl_onnx_name axis = sl_onnx_add_ints(b, &time, 1);
    sl_onnx_set_int(b, "keepdims", 0);
    return sl_onnx_add(b, "ReduceSum", x, &axis, NULL);
}

static void add_pool(struct sl_onnx_builder *b, const struct sl_node *node)
{
    static const int64_t time = 1;
    uint32_t kind = node->desc.pool.kind;
    struct sl_onnx_name x = *get_name(b, node, SEQLSTM_SLOT_UNARY_X), y, steps, mask;
    struct sl_onnx_name lengths = sl_onnx_get_lengths(b, b->graph->tensors[node->slots[SEQLSTM_SLOT_UNARY_X]].axis);
    if (lengths.text[0] == '\0') { /* what input feeding carries: the one step of the decoder */
        y = sl_onnx_add_ints(b, &time, 1);
        set_name(b, node, SEQLSTM_SLOT_UNARY_Y, sl_onnx_add(b, "Squeeze", &x, &y, NULL));
        return;
    }
    mask = add_mask(b, &x, lengths, kind);
    struct sl_onnx_name blank = sl_onnx_add_scalar(b, kind == SEQLSTM_KIND_POOL_MAX ? -FLT_MAX : 0.0f);
    x = sl_onnx_add(b, "Where", &mask, &x, &blank);
    if (kind == SEQLSTM_KIND_POOL_MAX) {
        sl_onnx_set_int(b, "keepdims", 0);
        sl_onnx_set_ints(b, "axes", &time, 1);
        y = sl_onnx_add(b, "ReduceMax", &x, NULL, NULL);
    } else {
        y = add_time_sum(b, &x);
    }
    if (kind == SEQLSTM_KIND_POOL_MEAN) {
        sl_onnx_set_int(b, "to", SL_ONNX_FLOAT);
        mask = sl_onnx_add(b, "Cast", &mask, NULL, NULL);
        steps = add_time_sum(b, &mask); /* [batch, 1] */
        y = sl_onnx_add(b, "Div", &y, &steps, NULL);
    }
    set_name(b, node, SEQLSTM_SLOT_UNARY_Y, y);
}

struct sl_onnx_name sl_onnx_add_merge(struct sl_onnx_builder *b, uint32_t kind, const struct sl_onnx_name *x,
                                      int32_t count)
{
    static const char *const ops[] = {
        [SEQLSTM_KIND_MERGE_CONCAT] = "Concat", [SEQLSTM_KIND_MERGE_SUM] = "Sum", [SEQLSTM_KIND_MERGE_AVE] = "Mean"};
    struct sl_onnx_name y = x[0];
    if (kind == SEQLSTM_KIND_MERGE_MUL) {
        for (int32_t k = 1; k < count; k++)
            y = sl_onnx_add(b, "Mul", &y, &x[k], NULL);
        return y;
    }
    y = sl_onnx_make_name(b, ops[kind]);
    if (kind == SEQLSTM_KIND_MERGE_CONCAT)
        sl_onnx_set_int(b, "axis", -1);
    sl_onnx_add_node(b, ops[kind], x, count, &y, 1);
    return y;
}

static void add_merge_node(struct sl_onnx_builder *b, const struct sl_node *node)
{
    const struct seqlstm_merge_desc *desc = &node->desc.merge;
    struct sl_onnx_name x[SEQLSTM_MAX_MERGE_INPUTS];
    static const int64_t time = 1;
    bool on_steps = sl_axis_is_steps(sl_graph_get_axis(b->graph, node));
    for (uint32_t k = 0; k < desc->inputs; k++) {
        x[k] = *get_name(b, node, SEQLSTM_SLOT_MERGE_X + (int32_t)k);
        if (on_steps && !sl_axis_is_steps(b->graph->tensors[node->slots[SEQLSTM_SLOT_MERGE_X + (int32_t)k]].axis)) {
            struct sl_onnx_name axis = sl_onnx_add_ints(b, &time, 1); /* what input feeding carries: of one step */
            x[k] = sl_onnx_add(b, "Unsqueeze", &x[k], &axis, NULL);
        }
    }
    set_name(b, node, SEQLSTM_SLOT_MERGE_Y, sl_onnx_add_merge(b, desc->kind, x, (int32_t)desc->inputs));
}

seqlstm_status sl_onnx_add_rowwise(struct sl_onnx_builder *b, const struct sl_node *node)
{
    switch (node->desc.head.op) {
    case SEQLSTM_OP_EMBEDDING:
        add_embedding(b, node);
        return SEQLSTM_OK;
    case SEQLSTM_OP_DENSE:
        add_dense(b, node);
        return SEQLSTM_OK;
    case SEQLSTM_OP_ACTIVATION:
        set_name(b, node, SEQLSTM_SLOT_UNARY_Y,
                 sl_onnx_add_activation(b, &node->desc.activation.activation, get_name(b, node, SEQLSTM_SLOT_UNARY_X)));
        return SEQLSTM_OK;
    case SEQLSTM_OP_LAYER_NORM:
        add_layer_norm(b, node);
        return SEQLSTM_OK;
    case SEQLSTM_OP_POOL:
        add_pool(b, node);
        return SEQLSTM_OK;
    case SEQLSTM_OP_MERGE:
        add_merge_node(b, node);
        return SEQLSTM_OK;
    case SEQLSTM_OP_GATHER:
        return sl_onnx_add_gather(b, node);
    case SEQLSTM_OP_ATTENTION:
        return sl_onnx_add_attention(b, node);
    default:
        return sl_onnx_refuse(b, node, SEQLSTM_OPTION_NONE, "this operation has no form in ONNX files yet");
    }
}
