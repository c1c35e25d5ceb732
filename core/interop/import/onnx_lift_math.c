/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that compute something for each record or step: products, sums, activations, norms, embeddings. */
#include <string.h>

#include "interop/onnx_cell.h"
#include "interop/import/onnx_fold.h"
#include "interop/import/onnx_rules.h"

/* Is the last dimension all of the features? */
static bool has_features_last(const struct sl_onnx_value *v)
{
    int32_t last = v->dims.rank - 1;
    return last >= 0 && sl_onnx_dims_is_features(&v->dims, last) &&
           sl_onnx_dims_get_size(&v->dims, last) == v->features.count;
}

/* A term that reads all of `in` and has the same width. Its output has the same dimensions. */
static struct sl_onnx_term *add_unary(const struct sl_onnx_job *job, enum sl_onnx_term_kind kind,
                                      const struct sl_onnx_features *in, int64_t width)
{
    struct sl_onnx_term *term = sl_onnx_lift_add_term(job->lift, kind, job->node, width);
    if (term) {
        term->arg_count = 1;
        term->args[0] = *in;
    }
    return term;
}

static bool finish(const struct sl_onnx_job *job, const struct sl_onnx_value *like, struct sl_onnx_value *out)
{
    *out = *like;
    out->features = sl_onnx_lift_take_all(job->lift, job->node);
    return !job->lift->arena->failed;
}

/* The constant's number for each feature of `v`; NULL: it differs along batch or time, or makes `v` wider. */
static float *spread(const struct sl_onnx_job *job, const struct sl_onnx_constant *c, const struct sl_onnx_value *v)
{
    float *out = SL_ARENA_ARRAY(job->lift->arena, float, (size_t)v->features.count + 1);
    int32_t shift = v->dims.rank - c->rank;
    if (out == NULL || c->elems < 1 || (c->floats == NULL))
        return NULL;
    for (int32_t d = 0; d < c->rank; d++) {
        bool is_alike = d + shift >= 0 && sl_onnx_dims_is_features(&v->dims, d + shift) &&
                        sl_onnx_dims_get_size(&v->dims, d + shift) == c->shape[d];
        if (c->shape[d] != 1 && !is_alike)
            return NULL;
    }
    for (int64_t k = 0; k < v->features.count; k++) {
        int64_t index = 0, stride = 1;
        for (int32_t d = c->rank; d-- > 0;) {
            int64_t outer, here, inner;
            if (c->shape[d] != 1) {
                sl_onnx_dims_split(&v->dims, d + shift, &outer, &here, &inner);
                index += k / inner % here * stride;
            }
            stride *= c->shape[d];
        }
        out[k] = (float)sl_onnx_constant_get(c, index);
    }
    return out;
}

static bool is_all(const float *values, int64_t count, float wanted)
{
    for (int64_t k = 0; k < count; k++)
        if (values[k] != wanted)
            return false;
    return true;
}

/* Dimensions of 1 that a constant of higher rank adds in front. */
static bool widen(struct sl_onnx_value *v, int32_t rank)
{
    while (v->dims.rank < rank) {
        memmove(&v->dims.at[1], &v->dims.at[0], (size_t)v->dims.rank * sizeof v->dims.at[0]);
        v->dims.at[0].count = 0;
        v->dims.rank++;
    }
    return true;
}

/* Adds a vector. Zeros add no term, and two vectors in a row become one. */
static bool add_shift(const struct sl_onnx_job *job, const struct sl_onnx_value *in, const float *values,
                      struct sl_onnx_value *out)
{
    struct sl_onnx_lift *lift = job->lift;
    int64_t count = in->features.count;
    *out = *in;
    out->features.via = job->node;
    if (is_all(values, count, 0))
        return true;
    const struct sl_onnx_term *inner = sl_onnx_lift_get_whole(lift, &in->features);
    struct sl_onnx_features from = in->features;
    float *sum = SL_ARENA_ARRAY(lift->arena, float, (size_t)count + 1);
    if (sum == NULL)
        return false;
    memcpy(sum, values, (size_t)count * sizeof *sum);
    if (inner && inner->kind == SL_ONNX_TERM_SHIFT) {
        from = inner->args[0];
        for (int64_t k = 0; k < count; k++)
            sum[k] += inner->vectors[0][k];
    }
    if (is_all(sum, count, 0)) {
        out->features = from;
        return true;
    }
    struct sl_onnx_term *term = add_unary(job, SL_ONNX_TERM_SHIFT, &from, count);
    if (term == NULL)
        return false;
    term->vectors[0] = sum;
    return finish(job, in, out);
}

/* Multiplies by a vector. Ones add no term, and two vectors in a row become one. */
static bool add_scale(const struct sl_onnx_job *job, const struct sl_onnx_value *in, float *values,
                      struct sl_onnx_value *out)
{
    *out = *in;
    out->features.via = job->node;
    if (is_all(values, in->features.count, 1))
        return true;
    const struct sl_onnx_term *inner = sl_onnx_lift_get_whole(job->lift, &in->features);
    struct sl_onnx_features from = in->features;
    if (inner && inner->kind == SL_ONNX_TERM_SCALE) {
        from = inner->args[0];
        for (int64_t k = 0; k < in->features.count; k++)
            values[k] *= inner->vectors[0][k];
    }
    if (is_all(values, in->features.count, 1)) {
        out->features = from;
        return true;
    }
    struct sl_onnx_term *term = add_unary(job, SL_ONNX_TERM_SCALE, &from, from.count);
    if (term == NULL)
        return false;
    term->vectors[0] = values;
    return finish(job, in, out);
}

/* x + c, c + x, x - c, c * x, x / c. */
static bool with_constant(const struct sl_onnx_job *job, int32_t data, struct sl_onnx_value *out)
{
    const char *op = job->node->op;
    struct sl_onnx_value in = *job->inputs[data];
    const struct sl_onnx_constant *c = job->constants[1 - data];
    bool is_sub = strcmp(op, "Sub") == 0, is_div = strcmp(op, "Div") == 0;
    if ((is_sub || is_div) && data != 0)
        return false;
    widen(&in, c->rank);
    float *values = spread(job, c, &in);
    if (values == NULL)
        return false;
    for (int64_t k = 0; k < in.features.count; k++)
        values[k] = is_sub ? -values[k] : is_div ? 1.0f / values[k] : values[k];
    bool is_sum = is_sub || strcmp(op, "Add") == 0 || strcmp(op, "Sum") == 0;
    return is_sum ? add_shift(job, &in, values, out) : add_scale(job, &in, values, out);
}

/* Sum, Mean or product of data of equal dimensions. A sum of sums becomes one sum. */
static bool merge(const struct sl_onnx_job *job, uint32_t kind, struct sl_onnx_value *out)
{
    struct sl_onnx_lift *lift = job->lift;
    struct sl_onnx_features args[SL_ONNX_ARGS_MAX];
    int32_t count = 0;
    for (int32_t k = 0; k < job->input_count; k++) {
        const struct sl_onnx_value *in = job->inputs[k];
        if (in == NULL || in->kind != SL_ONNX_DATA || !sl_onnx_dims_are_equal(&in->dims, &job->inputs[0]->dims))
            return false;
        const struct sl_onnx_term *inner = sl_onnx_lift_get_whole(lift, &in->features);
        bool is_flat = inner && inner->kind == SL_ONNX_TERM_MERGE && inner->pool_or_merge == kind &&
                       kind != SEQLSTM_KIND_MERGE_AVE;
        for (int32_t a = 0; a < (is_flat ? inner->arg_count : 1); a++) {
            if (count == SL_ONNX_ARGS_MAX)
                return false;
            args[count++] = is_flat ? inner->args[a] : in->features;
        }
    }
    struct sl_onnx_term *term =
        sl_onnx_lift_add_term(lift, SL_ONNX_TERM_MERGE, job->node, job->inputs[0]->features.count);
    if (term == NULL)
        return false;
    term->pool_or_merge = kind;
    term->arg_count = count;
    memcpy(term->args, args, sizeof args);
    return finish(job, job->inputs[0], out);
}

static bool combine(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const char *op = job->node->op;
    bool is_mean = strcmp(op, "Mean") == 0, is_product = strcmp(op, "Mul") == 0;
    bool is_sum = strcmp(op, "Add") == 0 || strcmp(op, "Sum") == 0;
    if (!is_mean && !is_product && !is_sum && strcmp(op, "Sub") && strcmp(op, "Div"))
        return false;
    if (job->input_count == 2 && job->inputs[0] && job->inputs[1] && !is_mean)
        for (int32_t k = 0; k < 2; k++)
            if (job->inputs[k]->kind == SL_ONNX_DATA && job->constants[1 - k])
                return with_constant(job, k, out);
    if (job->input_count < 2 || (!is_mean && !is_product && !is_sum))
        return false;
    return merge(job,
                 is_mean      ? SEQLSTM_KIND_MERGE_AVE
                 : is_product ? SEQLSTM_KIND_MERGE_MUL
                              : SEQLSTM_KIND_MERGE_SUM,
                 out);
}

/* x W, with W [inputs, outputs]. */
static bool multiply(const struct sl_onnx_job *job, const struct sl_onnx_value *x, const struct sl_onnx_constant *w,
                     struct sl_onnx_value *out, const char **reason)
{
    *reason = "its matrix is not a constant of the file";
    if (w == NULL || w->floats == NULL)
        return false;
    *reason = "its matrix or its input has another shape than a dense layer's";
    if (w->rank != 2 || !has_features_last(x) || w->shape[0] != x->features.count)
        return false;
    struct sl_onnx_term *term = add_unary(job, SL_ONNX_TERM_PRODUCT, &x->features, w->shape[1]);
    if (term == NULL)
        return false;
    term->table = *w;
    if (!finish(job, x, out))
        return false;
    sl_onnx_dims_set(&out->dims, x->dims.rank - 1, SL_ONNX_ATOM_FEATURE, w->shape[1]);
    return true;
}

static bool multiply_general(const struct sl_onnx_job *job, struct sl_onnx_value *out, const char **reason)
{
    const struct sl_onnx_node *node = job->node;
    const struct sl_onnx_constant *w = job->input_count > 1 ? job->constants[1] : NULL;
    struct sl_onnx_constant turned;
    struct sl_onnx_node transposition = {.op = "Transpose", .name = "", .domain = ""};
    int32_t count;
    if (sl_onnx_node_get_float(node, "alpha", 1) != 1.0f || sl_onnx_node_get_float(node, "beta", 1) != 1.0f ||
        sl_onnx_node_get_int(node, "transA", 0)) {
        *reason = "it has an alpha, beta or transA of its own, which a dense layer has not";
        return false;
    }
    if (w && sl_onnx_node_get_int(node, "transB", 0)) {
        if (!sl_onnx_constant_fold(job->lift->arena, &transposition, &w, 1, &turned, 1, &count))
            return false;
        w = &turned;
    }
    struct sl_onnx_value product;
    if (!multiply(job, job->inputs[0], w, &product, reason))
        return false;
    *out = product;
    if (job->input_count < 3 || job->inputs[2] == NULL)
        return true;
    *reason = "its bias is not a constant vector of the file";
    float *bias = job->constants[2] ? spread(job, job->constants[2], &product) : NULL;
    return bias && add_shift(job, &product, bias, out);
}

/* Rows of a table. */
static bool embed(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_constant *table = job->constants[0];
    const struct sl_onnx_value *ids = job->input_count > 1 ? job->inputs[1] : NULL;
    int64_t axis = sl_onnx_node_get_int(job->node, "axis", 0);
    if (table == NULL || table->floats == NULL || table->rank != 2 || (axis != 0 && axis != -2) || ids == NULL ||
        ids->kind != SL_ONNX_DATA || ids->features.count != 1 || ids->dims.rank >= SL_ONNX_RANK_MAX)
        return false;
    struct sl_onnx_term *term = add_unary(job, SL_ONNX_TERM_EMBEDDING, &ids->features, table->shape[1]);
    if (term == NULL)
        return false;
    term->table = *table;
    if (!finish(job, ids, out))
        return false;
    sl_onnx_dims_set(&out->dims, out->dims.rank++, SL_ONNX_ATOM_FEATURE, table->shape[1]);
    return true;
}

static bool normalise(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *x = job->inputs[0];
    int64_t axis = sl_onnx_node_get_int(job->node, "axis", -1);
    if (!has_features_last(x) || (axis != -1 && axis != x->dims.rank - 1) || job->input_count < 2 ||
        job->constants[1] == NULL || (job->input_count > 2 && job->inputs[2] && job->constants[2] == NULL))
        return false;
    const float *gain = spread(job, job->constants[1], x), *bias = NULL;
    if (job->input_count > 2 && job->inputs[2])
        bias = spread(job, job->constants[2], x);
    else
        bias = SL_ARENA_ARRAY(job->lift->arena, float, (size_t)x->features.count + 1);
    struct sl_onnx_term *term =
        gain && bias ? add_unary(job, SL_ONNX_TERM_NORM, &x->features, x->features.count) : NULL;
    if (term == NULL)
        return false;
    term->vectors[0] = gain;
    term->vectors[1] = bias;
    term->epsilon = sl_onnx_node_get_float(job->node, "epsilon", 1e-5f);
    return finish(job, x, out);
}

static bool activate(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_node *node = job->node;
    const struct sl_onnx_value *x = job->inputs[0];
    struct seqlstm_activation activation = {0};
    bool is_softmax = strcmp(node->op, "Softmax") == 0, is_log = strcmp(node->op, "LogSoftmax") == 0;
    if (is_softmax || is_log) {
        int64_t axis = sl_onnx_node_get_int(node, "axis", job->lift->file->opset < 13 ? 1 : -1);
        if (!has_features_last(x) || (axis != -1 && axis != x->dims.rank - 1))
            return false;
        activation.kind = is_softmax ? SEQLSTM_ACT_SOFTMAX : SEQLSTM_ACT_LOG_SOFTMAX;
    } else if (!sl_onnx_activation_find(node->op, &activation) || activation.kind == SEQLSTM_ACT_AFFINE ||
               activation.kind == SEQLSTM_ACT_SCALED_TANH) {
        return false;
    } else {
        activation.alpha = sl_onnx_node_get_float(node, "alpha", activation.alpha);
        activation.beta = sl_onnx_node_get_float(node, "beta", activation.beta);
    }
    struct sl_onnx_term *term = add_unary(job, SL_ONNX_TERM_ACTIVATION, &x->features, x->features.count);
    if (term == NULL)
        return false;
    term->activation = activation;
    return finish(job, x, out);
}

bool sl_onnx_lift_math(const struct sl_onnx_job *job, const char **reason)
{
    const char *op = job->node->op;
    struct sl_onnx_value *out = &job->outputs[0];
    if (strcmp(op, "Gather") == 0)
        return embed(job, out);
    if (combine(job, out))
        return true;
    if (job->inputs[0]->kind != SL_ONNX_DATA)
        return false;
    if (strcmp(op, "MatMul") == 0)
        return multiply(job, job->inputs[0], job->input_count > 1 ? job->constants[1] : NULL, out, reason);
    if (strcmp(op, "Gemm") == 0)
        return multiply_general(job, out, reason);
    if (strcmp(op, "LayerNormalization") == 0)
        return normalise(job, out);
    return activate(job, out);
}
