/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder takes from its encoder, and attention, as ONNX nodes. ONNX keeps one order of the batch, so a gather
 * from one order into the other needs no node; memories are [batch, source time, features], padded.
 *
 *   scores [batch, time, source time] = q k' scale, or v . tanh(q + k); softmax over the real steps of the source
 */
#include <float.h>
#include <string.h>

#include "interop/onnx_builder.h"

struct sl_onnx_name sl_onnx_get_lengths(const struct sl_onnx_builder *b, enum sl_axis axis)
{
    struct sl_onnx_name none = {""}, lengths = {"lengths"}, source = {"source_lengths"};
    if (sl_axis_is_source(axis))
        return source;
    return b->graph->part == SL_PART_DECODER ? none : lengths;
}

/* x [batch, F] at every step of the decoder's input. */
static struct sl_onnx_name repeat(struct sl_onnx_builder *b, const struct sl_onnx_name *x)
{
    static const int64_t time = 1, one = 1;
    struct sl_onnx_name axis = sl_onnx_add_ints(b, &time, 1), input = {"input"}, begin, end, dims, shape[2], wanted;
    struct sl_onnx_name y = sl_onnx_add(b, "Unsqueeze", x, &axis, NULL); /* [batch, 1, F] */
    int64_t zero = 0, two = 2;
    begin = sl_onnx_add_ints(b, &zero, 1);
    end = sl_onnx_add_ints(b, &two, 1);
    dims = sl_onnx_add(b, "Shape", &input, NULL, NULL);
    shape[0] = sl_onnx_add(b, "Slice", &dims, &begin, &end); /* batch, time */
    shape[1] = sl_onnx_add_ints(b, &one, 1);
    wanted = sl_onnx_make_name(b, "shape");
    sl_onnx_set_int(b, "axis", 0);
    sl_onnx_add_node(b, "Concat", shape, 2, &wanted, 1);
    return sl_onnx_add(b, "Expand", &y, &wanted, NULL);
}

seqlstm_status sl_onnx_add_gather(struct sl_onnx_builder *b, const struct sl_node *node)
{
    const int32_t *slots = node->slots;
    const struct sl_onnx_name *x = &b->tensors[slots[SEQLSTM_SLOT_GATHER_X]];
    bool repeats = b->graph->tensors[slots[SEQLSTM_SLOT_GATHER_INDEX]].role == SL_TENSOR_SEQUENCE;
    b->tensors[slots[SEQLSTM_SLOT_GATHER_Y]] = repeats ? repeat(b, x) : *x;
    return SEQLSTM_OK;
}

/* [batch, 1, source time] booleans: the steps of the source that count. */
static struct sl_onnx_name add_mask(struct sl_onnx_builder *b, const struct sl_onnx_name *memory)
{
    static const int64_t both[2] = {1, 2};
    struct sl_onnx_name lengths = {"source_lengths"}, zero = sl_onnx_add_index(b, 0), one = sl_onnx_add_index(b, 1);
    struct sl_onnx_name shape = sl_onnx_add(b, "Shape", memory, NULL, NULL);
    struct sl_onnx_name time = sl_onnx_add(b, "Gather", &shape, &one, NULL);
    struct sl_onnx_name steps = sl_onnx_add(b, "Range", &zero, &time, &one), axes = sl_onnx_add_ints(b, both, 2), limit;
    sl_onnx_set_int(b, "to", SL_ONNX_INT64);
    limit = sl_onnx_add(b, "Cast", &lengths, NULL, NULL);
    limit = sl_onnx_add(b, "Unsqueeze", &limit, &axes, NULL);
    return sl_onnx_add(b, "Less", &steps, &limit, NULL);
}

static struct sl_onnx_name unsqueeze(struct sl_onnx_builder *b, const struct sl_onnx_name *x, int64_t at)
{
    struct sl_onnx_name axis = sl_onnx_add_ints(b, &at, 1);
    return sl_onnx_add(b, "Unsqueeze", x, &axis, NULL);
}

static struct sl_onnx_name add_scores(struct sl_onnx_builder *b, const struct sl_node *node)
{
    static const int64_t swapped[3] = {0, 2, 1};
    const struct seqlstm_attention_desc *d = &node->desc.attention;
    struct sl_onnx_name q = b->tensors[node->slots[SEQLSTM_SLOT_ATTENTION_QUERIES]];
    struct sl_onnx_name k = b->tensors[node->slots[SEQLSTM_SLOT_ATTENTION_KEYS]], scale, sum;
    if (d->kind == SEQLSTM_KIND_ATTENTION_ADDITIVE) {
        int32_t score = node->slots[SEQLSTM_SLOT_ATTENTION_SCORE];
        const struct sl_param *param = &b->graph->params[b->graph->tensors[score].owner];
        struct sl_onnx_name v =
            sl_onnx_add_floats(b, param->name, &d->key, 1, b->values[b->graph->tensors[score].owner]);
        q = unsqueeze(b, &q, 2);
        k = unsqueeze(b, &k, 1);
        sum = sl_onnx_add(b, "Add", &q, &k, NULL);
        sum = sl_onnx_add(b, "Tanh", &sum, NULL, NULL);
        return sl_onnx_add(b, "MatMul", &sum, &v, NULL);
    }
    sl_onnx_set_ints(b, "perm", swapped, 3);
    k = sl_onnx_add(b, "Transpose", &k, NULL, NULL);
    sum = sl_onnx_add(b, "MatMul", &q, &k, NULL);
    if (d->scale >= 1.0f && d->scale <= 1.0f)
        return sum;
    scale = sl_onnx_add_scalar(b, d->scale);
    return sl_onnx_add(b, "Mul", &sum, &scale, NULL);
}

seqlstm_status sl_onnx_add_attention(struct sl_onnx_builder *b, const struct sl_node *node)
{
    int32_t keys = node->slots[SEQLSTM_SLOT_ATTENTION_KEYS], values = node->slots[SEQLSTM_SLOT_ATTENTION_VALUES];
    struct sl_onnx_name scores = add_scores(b, node), mask = add_mask(b, &b->tensors[keys]);
    struct sl_onnx_name blank = sl_onnx_add_scalar(b, -FLT_MAX), weights;
    scores = sl_onnx_add(b, "Where", &mask, &scores, &blank);
    sl_onnx_set_int(b, "axis", -1);
    weights = sl_onnx_add(b, "Softmax", &scores, NULL, NULL);
    b->tensors[node->slots[SEQLSTM_SLOT_ATTENTION_CONTEXT]] =
        sl_onnx_add(b, "MatMul", &weights, &b->tensors[values >= 0 ? values : keys], NULL);
    return SEQLSTM_OK;
}
