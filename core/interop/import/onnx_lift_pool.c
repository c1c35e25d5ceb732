/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over time and over directions, and the masks of padded steps which pooling needs, as our own exporter
 * writes them. */
#include <float.h>
#include <string.h>

#include "interop/import/onnx_params.h"
#include "interop/import/onnx_rules.h"

static bool is_op(const struct sl_onnx_job *job, const char *op)
{
    return strcmp(job->node->op, op) == 0;
}

/* Dimensions of two values, one of which is repeated along the other's. */
static bool broadcast(const struct sl_onnx_dims *a, const struct sl_onnx_dims *b, struct sl_onnx_dims *out)
{
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int32_t d = 0; d < out->rank; d++) {
        int32_t at_a = d - (out->rank - a->rank), at_b = d - (out->rank - b->rank);
        bool has_a = at_a >= 0 && a->at[at_a].count > 0, has_b = at_b >= 0 && b->at[at_b].count > 0;
        if (has_a && has_b) {
            struct sl_onnx_dims one = {.rank = 1}, other = {.rank = 1};
            one.at[0] = a->at[at_a];
            other.at[0] = b->at[at_b];
            if (!sl_onnx_dims_are_equal(&one, &other))
                return false;
        }
        out->at[d].count = 0;
        if (has_a)
            out->at[d] = a->at[at_a];
        else if (has_b)
            out->at[d] = b->at[at_b];
    }
    return true;
}

/* Range(0, time, 1). */
static bool count_steps(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    if (job->input_count != 3 || !job->constants[0] || !job->constants[1] || !job->constants[2] ||
        sl_onnx_constant_get(job->constants[0], 0) != 0 || sl_onnx_constant_get(job->constants[2], 0) != 1 ||
        sl_onnx_constant_get(job->constants[1], 0) != (double)job->lift->time)
        return false;
    out->kind = SL_ONNX_STEPS;
    out->dims.rank = 1;
    sl_onnx_dims_set(&out->dims, 0, SL_ONNX_ATOM_TIME, job->lift->time);
    return true;
}

/* Lengths minus one, or clamped to at most one. */
static bool change_lengths(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_constant *one = job->input_count == 2 ? job->constants[1] : NULL;
    if (one == NULL || !sl_onnx_constant_is_all(one, 1) || one->elems != 1)
        return false;
    *out = *job->inputs[0];
    if (is_op(job, "Min"))
        out->is_capped = true;
    else
        out->shift--;
    return is_op(job, "Min") || is_op(job, "Sub");
}

static bool compare_steps(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *lengths = job->input_count == 2 ? job->inputs[1] : NULL;
    if (lengths == NULL || lengths->kind != SL_ONNX_LENGTHS)
        return false;
    bool is_less = is_op(job, "Less"), is_equal = is_op(job, "Equal");
    out->kind = SL_ONNX_MASK;
    if (is_less && lengths->shift == 0)
        out->mask = lengths->is_capped ? SEQLSTM_KIND_POOL_FIRST : SEQLSTM_KIND_POOL_SUM;
    else if (is_equal && lengths->shift == -1 && !lengths->is_capped)
        out->mask = SEQLSTM_KIND_POOL_LAST;
    else
        return false;
    return broadcast(&job->inputs[0]->dims, &lengths->dims, &out->dims);
}

static bool mask(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *m = job->inputs[0], *x = job->input_count == 3 ? job->inputs[1] : NULL;
    const struct sl_onnx_constant *blank = job->input_count == 3 ? job->constants[2] : NULL;
    struct sl_onnx_dims dims;
    if (x == NULL || x->kind != SL_ONNX_DATA || blank == NULL || blank->elems != 1 ||
        !broadcast(&m->dims, &x->dims, &dims) || !sl_onnx_dims_are_equal(&dims, &x->dims))
        return false;
    struct sl_onnx_term *term = sl_onnx_lift_add_term(job->lift, SL_ONNX_TERM_MASKED, job->node, x->features.count);
    if (term == NULL)
        return false;
    term->arg_count = 1;
    term->args[0] = x->features;
    term->pool_or_merge = m->mask;
    term->blank = sl_onnx_constant_get(blank, 0);
    *out = *x;
    out->features = sl_onnx_lift_take_all(job->lift, job->node);
    return true;
}

/* Pools `from` over time. */
static bool pool(const struct sl_onnx_job *job, struct sl_onnx_features from, uint32_t kind,
                 const struct sl_onnx_value *like, struct sl_onnx_value *out)
{
    struct sl_onnx_term *term = sl_onnx_lift_add_term(job->lift, SL_ONNX_TERM_POOL, job->node, from.count);
    if (term == NULL)
        return false;
    term->arg_count = 1;
    term->args[0] = from;
    term->pool_or_merge = kind;
    *out = *like;
    out->features = sl_onnx_lift_take_all(job->lift, job->node);
    return true;
}

static bool reduce_time(const struct sl_onnx_job *job, struct sl_onnx_value *out, const char **reason)
{
    const struct sl_onnx_value *x = job->inputs[0];
    bool is_sum = is_op(job, "ReduceSum"), is_max = is_op(job, "ReduceMax"), is_mean = is_op(job, "ReduceMean");
    const struct sl_onnx_term *term = sl_onnx_lift_get_whole(job->lift, &x->features);
    if (term && term->kind == SL_ONNX_TERM_MASKED) {
        if (is_sum && term->blank == 0)
            return pool(job, term->args[0], term->pool_or_merge, x, out);
        return is_max && term->pool_or_merge == SEQLSTM_KIND_POOL_SUM && term->blank <= -(double)FLT_MAX &&
               pool(job, term->args[0], SEQLSTM_KIND_POOL_MAX, x, out);
    }
    if (job->lift->uses_lengths) {
        *reason = "it pools over padded steps too, which are no steps of shorter sequences";
        return false;
    }
    return (is_sum || is_max || is_mean) && pool(job, x->features,
                                                 is_sum   ? SEQLSTM_KIND_POOL_SUM
                                                 : is_max ? SEQLSTM_KIND_POOL_MAX
                                                          : SEQLSTM_KIND_POOL_MEAN,
                                                 x, out);
}

/* Merges the directions, which are side by side in the features. */
static bool reduce_features(const struct sl_onnx_job *job, int32_t d, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *x = job->inputs[0];
    int64_t outer, here, inner;
    sl_onnx_dims_split(&x->dims, d, &outer, &here, &inner);
    int64_t width = outer * inner;
    bool is_sum = is_op(job, "ReduceSum"), is_product = is_op(job, "ReduceProd"), is_mean = is_op(job, "ReduceMean");
    if (here > SL_ONNX_ARGS_MAX || (!is_sum && !is_product && !is_mean))
        return false;
    *out = *x;
    if (here == 1)
        return true;
    struct sl_onnx_term *term = sl_onnx_lift_add_term(job->lift, SL_ONNX_TERM_MERGE, job->node, width);
    if (term == NULL)
        return false;
    term->pool_or_merge = is_sum ? SEQLSTM_KIND_MERGE_SUM : is_mean ? SEQLSTM_KIND_MERGE_AVE : SEQLSTM_KIND_MERGE_MUL;
    term->arg_count = (int32_t)here;
    for (int64_t h = 0; h < here; h++) {
        struct sl_onnx_channel *list = SL_ARENA_ARRAY(job->lift->arena, struct sl_onnx_channel, (size_t)width + 1);
        if (list == NULL)
            return false;
        for (int64_t k = 0; k < width; k++)
            list[k] = x->features.list[(k / inner * here + h) * inner + k % inner];
        term->args[h] = (struct sl_onnx_features){list, width, job->node};
    }
    out->features = sl_onnx_lift_take_all(job->lift, job->node);
    return true;
}

static bool reduce(const struct sl_onnx_job *job, struct sl_onnx_value *out, const char **reason)
{
    const struct sl_onnx_value *x = job->inputs[0];
    const int64_t *axes;
    int32_t count;
    if (!sl_onnx_get_list(job->node, "axes", job->constants, job->input_count, 1, &axes, &count, job->lift->arena) ||
        count != 1)
        return false;
    int32_t d = (int32_t)(axes[0] + (axes[0] < 0 ? x->dims.rank : 0));
    if (d < 0 || d >= x->dims.rank)
        return false;
    bool is_time = job->lift->time > 1 && sl_onnx_dims_is(&x->dims, d, SL_ONNX_ATOM_TIME, job->lift->time);
    if (x->kind == SL_ONNX_MASK) {
        *out = *x;
        out->kind = SL_ONNX_COUNT;
        if (!is_time || x->mask != SEQLSTM_KIND_POOL_SUM || !is_op(job, "ReduceSum"))
            return false;
    } else if (x->kind != SL_ONNX_DATA) {
        return false;
    } else if (is_time ? !reduce_time(job, out, reason)
                       : !sl_onnx_dims_is_features(&x->dims, d) || !reduce_features(job, d, out)) {
        return false;
    }
    out->dims.at[d].count = 0;
    if (sl_onnx_node_get_int(job->node, "keepdims", 1) == 0)
        sl_onnx_dims_remove(&out->dims, d);
    return true;
}

/* The sum over the real steps, divided by their number. */
static bool average(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *x = job->inputs[0], *count = job->input_count == 2 ? job->inputs[1] : NULL;
    struct sl_onnx_dims dims;
    if (count == NULL || count->kind != SL_ONNX_COUNT || x->kind != SL_ONNX_DATA ||
        !broadcast(&x->dims, &count->dims, &dims) || !sl_onnx_dims_are_equal(&dims, &x->dims))
        return false;
    const struct sl_onnx_term *term = sl_onnx_lift_get_whole(job->lift, &x->features);
    return term && term->kind == SL_ONNX_TERM_POOL && term->pool_or_merge == SEQLSTM_KIND_POOL_SUM &&
           pool(job, term->args[0], SEQLSTM_KIND_POOL_MEAN, x, out);
}

bool sl_onnx_lift_pool(const struct sl_onnx_job *job, const char **reason)
{
    struct sl_onnx_value *out = &job->outputs[0];
    const struct sl_onnx_value *in = job->inputs[0];
    if (is_op(job, "Range"))
        return count_steps(job, out);
    if (strncmp(job->node->op, "Reduce", strlen("Reduce")) == 0)
        return reduce(job, out, reason);
    if (is_op(job, "Div"))
        return average(job, out);
    if (is_op(job, "Where"))
        return in->kind == SL_ONNX_MASK && mask(job, out);
    if (in->kind == SL_ONNX_LENGTHS)
        return change_lengths(job, out);
    return in->kind == SL_ONNX_STEPS && compare_steps(job, out);
}
