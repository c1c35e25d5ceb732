/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that rearrange data. Only the order of the features and of the dimensions shows that they ran. */
#include <string.h>

#include "interop/import/onnx_params.h"
#include "interop/import/onnx_rules.h"

/* Selects `count` of the features along dimension d. */
static bool select_features(struct sl_onnx_lift *lift, const struct sl_onnx_value *in, int32_t d, int64_t first,
                            int64_t step, int64_t count, struct sl_onnx_value *out)
{
    int64_t outer, here, inner, at = 0;
    sl_onnx_dims_split(&in->dims, d, &outer, &here, &inner);
    struct sl_onnx_channel *list =
        SL_ARENA_ARRAY(lift->arena, struct sl_onnx_channel, (size_t)(outer * count * inner) + 1);
    if (list == NULL || count < 1)
        return false;
    *out = *in;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = 0; i < inner; i++)
                list[at++] = in->features.list[(o * here + first + k * step) * inner + i];
    out->features = (struct sl_onnx_features){list, at, in->features.via};
    sl_onnx_dims_set(&out->dims, d, SL_ONNX_ATOM_FEATURE, count);
    return true;
}

static bool transpose(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *in = job->inputs[0];
    const struct sl_onnx_attribute *perm = sl_onnx_node_find_attribute(job->node, "perm");
    int32_t rank = in->dims.rank, order[SL_ONNX_RANK_MAX], atoms = 0;
    int64_t sizes[SL_ONNX_RANK_MAX * SL_ONNX_ATOMS_MAX], strides[SL_ONNX_RANK_MAX * SL_ONNX_ATOMS_MAX];
    int64_t place[SL_ONNX_RANK_MAX * SL_ONNX_ATOMS_MAX] = {0}, offset = 0;
    if (perm && (perm->count != rank || perm->ints == NULL))
        return false;
    *out = *in;
    for (int32_t d = 0; d < rank; d++) {
        int64_t from = perm ? perm->ints[d] : rank - 1 - d;
        if (from < 0 || from >= rank)
            return false;
        order[d] = (int32_t)from;
        out->dims.at[d] = in->dims.at[from];
    }
    for (int32_t d = 0; d < rank; d++) {
        int64_t outer, here, inner;
        sl_onnx_dims_split(&in->dims, order[d], &outer, &here, &inner);
        for (int32_t a = 0; a < out->dims.at[d].count; a++) {
            if (out->dims.at[d].atoms[a].kind != SL_ONNX_ATOM_FEATURE)
                continue;
            here /= out->dims.at[d].atoms[a].size;
            sizes[atoms] = out->dims.at[d].atoms[a].size;
            strides[atoms++] = here * inner;
        }
    }
    struct sl_onnx_channel *list =
        SL_ARENA_ARRAY(job->lift->arena, struct sl_onnx_channel, (size_t)in->features.count + 1);
    if (list == NULL)
        return false;
    for (int64_t k = 0; k < in->features.count; k++) {
        list[k] = in->features.list[offset];
        for (int32_t a = atoms; a-- > 0;) {
            offset += strides[a];
            if (++place[a] < sizes[a])
                break;
            offset -= strides[a] * sizes[a];
            place[a] = 0;
        }
    }
    out->features.list = list;
    return true;
}

/* Distributes the parts of all dimensions, in order, over dimensions of the new sizes. Features may be split. */
static bool regroup(const struct sl_onnx_dims *in, int32_t rank, const int64_t *shape, struct sl_onnx_dims *out)
{
    struct sl_onnx_atom queue[SL_ONNX_RANK_MAX * SL_ONNX_ATOMS_MAX + SL_ONNX_RANK_MAX];
    int32_t count = 0, at = 0;
    for (int32_t d = 0; d < in->rank; d++)
        for (int32_t a = 0; a < in->at[d].count; a++)
            queue[count++] = in->at[d].atoms[a];
    *out = (struct sl_onnx_dims){.rank = rank};
    for (int32_t d = 0; d < rank; d++)
        for (int64_t left = shape[d]; left > 1;) {
            if (at == count || out->at[d].count == SL_ONNX_ATOMS_MAX)
                return false;
            struct sl_onnx_atom *atom = &queue[at], taken = *atom;
            if (left % atom->size == 0) {
                at++;
            } else if (atom->kind == SL_ONNX_ATOM_FEATURE && atom->size % left == 0) {
                taken.size = left;
                atom->size /= left;
            } else {
                return false;
            }
            out->at[d].atoms[out->at[d].count++] = taken;
            left /= taken.size;
        }
    return at == count;
}

static bool reshape(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *in = job->inputs[0];
    int64_t shape[SL_ONNX_RANK_MAX], made[SL_ONNX_RANK_MAX];
    int32_t rank;
    sl_onnx_dims_get_shape(&in->dims, shape);
    *out = *in;
    return sl_onnx_get_new_shape(job->node, job->constants, job->input_count, in->dims.rank, shape, &rank, made,
                                 job->lift->arena) &&
           regroup(&in->dims, rank, made, &out->dims);
}

/* The features at the first or the last step (`kind`: SEQLSTM_KIND_POOL_FIRST or _LAST). The last step of a cell
 * that runs forward is its final state. */
static bool pick_step(struct sl_onnx_lift *lift, const struct sl_onnx_value *in, int32_t d, uint32_t kind,
                      const struct sl_onnx_node *node, struct sl_onnx_value *out, const char **reason)
{
    if (lift->uses_lengths && kind == SEQLSTM_KIND_POOL_LAST) {
        *reason = "it takes the last step of the padded sequence, which is no real step of shorter ones; the model "
                  "takes the last real one";
        return false;
    }
    *out = *in;
    sl_onnx_dims_set(&out->dims, d, SL_ONNX_ATOM_FEATURE, 1);
    int64_t count = in->features.count;
    bool is_final = count > 0;
    for (int64_t k = 0; k < count && is_final; k++) {
        const struct sl_onnx_term *term = &lift->terms[in->features.list[k].term];
        const struct sl_onnx_term *first = &lift->terms[in->features.list[0].term];
        is_final =
            term->kind == SL_ONNX_TERM_SEQUENCE && term->cell == first->cell && term->direction == first->direction;
        const struct sl_onnx_attribute *a =
            is_final ? sl_onnx_node_find_attribute(lift->cells[term->cell].node, "direction") : NULL;
        bool is_reverse = a && a->text && (strcmp(a->text, "reverse") == 0 || term->direction == 1);
        is_final = is_final && is_reverse == (kind == SEQLSTM_KIND_POOL_FIRST);
    }
    if (is_final) { /* the terms of a cell are adjacent: SEQUENCE, FINAL_H, FINAL_C */
        struct sl_onnx_channel *list = SL_ARENA_ARRAY(lift->arena, struct sl_onnx_channel, (size_t)count);
        for (int64_t k = 0; list && k < count; k++)
            list[k] = (struct sl_onnx_channel){in->features.list[k].term + 1, in->features.list[k].channel};
        out->features = (struct sl_onnx_features){list, count, node};
        return list != NULL;
    }
    struct sl_onnx_term *pool = sl_onnx_lift_add_term(lift, SL_ONNX_TERM_POOL, node, count);
    if (pool == NULL)
        return false;
    pool->arg_count = 1;
    pool->args[0] = in->features;
    pool->pool_or_merge = kind;
    out->features = sl_onnx_lift_take_all(lift, node);
    return !lift->arena->failed;
}

/* A cut of dimension d: all of it, some of its features, or one step. */
static bool cut(const struct sl_onnx_job *job, const struct sl_onnx_value *in, int32_t d, int64_t first, int64_t step,
                int64_t count, struct sl_onnx_value *out, const char **reason)
{
    struct sl_onnx_lift *lift = job->lift;
    int64_t size = sl_onnx_dims_get_size(&in->dims, d);
    *out = *in;
    if (count == size && step == 1)
        return true;
    if (sl_onnx_dims_is_features(&in->dims, d))
        return select_features(lift, in, d, first, step, count, out);
    if (lift->time > 1 && sl_onnx_dims_is(&in->dims, d, SL_ONNX_ATOM_TIME, lift->time) && count == 1 &&
        (first == 0 || first == size - 1))
        return pick_step(lift, in, d, first == 0 ? SEQLSTM_KIND_POOL_FIRST : SEQLSTM_KIND_POOL_LAST, job->node, out,
                         reason);
    *reason = "it takes a part of the batch or of the steps";
    return false;
}

static bool slice(const struct sl_onnx_job *job, struct sl_onnx_value *out, const char **reason)
{
    struct sl_onnx_cut cuts[SL_ONNX_RANK_MAX];
    struct sl_onnx_value now = *job->inputs[0];
    int64_t shape[SL_ONNX_RANK_MAX];
    int32_t count;
    sl_onnx_dims_get_shape(&now.dims, shape);
    if (!sl_onnx_get_cuts(job->node, job->constants, job->input_count, now.dims.rank, shape, cuts, &count,
                          job->lift->arena))
        return false;
    for (int32_t k = 0; k < count; k++) {
        struct sl_onnx_value next;
        if (!cut(job, &now, cuts[k].axis, cuts[k].first, cuts[k].step, cuts[k].count, &next, reason))
            return false;
        now = next;
    }
    *out = now;
    return true;
}

static bool split(const struct sl_onnx_job *job, const char **reason)
{
    const struct sl_onnx_value *in = job->inputs[0];
    int64_t axis = sl_onnx_node_get_int(job->node, "axis", 0), parts[SL_ONNX_OUTPUTS_MAX], at = 0;
    int32_t count;
    axis += axis < 0 ? in->dims.rank : 0;
    if (axis < 0 || axis >= in->dims.rank ||
        !sl_onnx_get_parts(job->node, job->constants, job->input_count, sl_onnx_dims_get_size(&in->dims, (int32_t)axis),
                           parts, SL_ONNX_OUTPUTS_MAX, &count, job->lift->arena))
        return false;
    for (int32_t k = 0; k < count; k++, at += parts[k - 1])
        if (!cut(job, in, (int32_t)axis, at, 1, parts[k], &job->outputs[k], reason))
            return false;
    return true;
}

/* One index of a dimension, or a list of features. */
static bool gather(const struct sl_onnx_job *job, struct sl_onnx_value *out, const char **reason)
{
    const struct sl_onnx_value *in = job->inputs[0];
    const struct sl_onnx_constant *indices = job->input_count > 1 ? job->constants[1] : NULL;
    int64_t axis = sl_onnx_node_get_int(job->node, "axis", 0);
    axis += axis < 0 ? in->dims.rank : 0;
    if (indices == NULL || indices->rank > 1 || indices->elems < 1 || axis < 0 || axis >= in->dims.rank)
        return false;
    int32_t d = (int32_t)axis;
    int64_t size = sl_onnx_dims_get_size(&in->dims, d), first = sl_onnx_constant_get_int(indices, 0);
    first += first < 0 ? size : 0;
    for (int64_t k = 0; k < indices->elems; k++) {
        int64_t index = sl_onnx_constant_get_int(indices, k);
        index += index < 0 ? size : 0;
        if (index < 0 || index >= size || (indices->elems > 1 && index != first + k)) {
            *reason = "it reorders the features";
            return false;
        }
    }
    if (!cut(job, in, d, first, 1, indices->elems, out, reason))
        return false;
    if (indices->rank == 0)
        sl_onnx_dims_remove(&out->dims, d);
    return true;
}

/* Concatenates features. */
static bool join(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *first = job->inputs[0];
    int64_t axis = sl_onnx_node_get_int(job->node, "axis", 0), total = 0, sum = 0, at = 0, outer, here, inner;
    axis += axis < 0 ? first->dims.rank : 0;
    if (axis < 0 || axis >= first->dims.rank)
        return false;
    int32_t d = (int32_t)axis;
    for (int32_t k = 0; k < job->input_count; k++) {
        const struct sl_onnx_value *in = job->inputs[k];
        if (in == NULL || in->kind != SL_ONNX_DATA || in->dims.rank != first->dims.rank ||
            !sl_onnx_dims_is_features(&in->dims, d))
            return false;
        struct sl_onnx_dims a = first->dims, b = in->dims;
        a.at[d].count = b.at[d].count = 0;
        if (!sl_onnx_dims_are_equal(&a, &b))
            return false;
        total += in->features.count;
        sum += sl_onnx_dims_get_size(&in->dims, d);
    }
    struct sl_onnx_channel *list = SL_ARENA_ARRAY(job->lift->arena, struct sl_onnx_channel, (size_t)total + 1);
    if (list == NULL)
        return false;
    sl_onnx_dims_split(&first->dims, d, &outer, &here, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int32_t k = 0; k < job->input_count; k++) {
            int64_t block = job->inputs[k]->features.count / outer;
            memcpy(&list[at], &job->inputs[k]->features.list[o * block], (size_t)block * sizeof *list);
            at += block;
        }
    *out = *first;
    out->features = (struct sl_onnx_features){list, total, job->node};
    sl_onnx_dims_set(&out->dims, d, SL_ONNX_ATOM_FEATURE, sum);
    return true;
}

static bool expand(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const struct sl_onnx_value *in = job->inputs[0];
    const struct sl_onnx_constant *wanted = job->input_count > 1 ? job->constants[1] : NULL;
    if (wanted == NULL || wanted->elems != in->dims.rank)
        return false;
    *out = *in;
    for (int32_t d = 0; d < in->dims.rank; d++) {
        int64_t size = sl_onnx_constant_get_int(wanted, d);
        if (size != 1 && size != sl_onnx_dims_get_size(&in->dims, d))
            return false;
    }
    return true;
}

/* Is it one of the operators that only rearrange? */
static bool is_layout(const char *op)
{
    static const char *const ops[] = {"Identity",  "Dropout", "Cast",   "Transpose", "Reshape", "Flatten", "Squeeze",
                                      "Unsqueeze", "Slice",   "Gather", "Split",     "Concat",  "Expand"};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (strcmp(op, ops[k]) == 0)
            return true;
    return false;
}

/* An initial state that the caller passes keeps this meaning in every shape, and concatenated with zeros. */
static bool pass_fed(const struct sl_onnx_job *job)
{
    const struct sl_onnx_value *fed = NULL;
    bool is_concat = strcmp(job->node->op, "Concat") == 0;
    for (int32_t k = 0; k < job->input_count; k++) {
        const struct sl_onnx_value *in = job->inputs[k];
        if (in && in->kind == SL_ONNX_FED)
            fed = in;
        else if (in && (in->kind != SL_ONNX_CONSTANT || (is_concat && !sl_onnx_constant_is_all(&in->constant, 0))))
            return false;
    }
    for (int32_t k = 0; fed && k < job->node->output_count; k++)
        job->outputs[k] = *fed;
    return fed != NULL;
}

/* Lengths, steps and masks only gain and lose dimensions of size 1. */
static bool pass_other(const struct sl_onnx_job *job, struct sl_onnx_value *out)
{
    const char *op = job->node->op;
    const struct sl_onnx_value *in = job->inputs[0];
    bool is_shape = strcmp(op, "Unsqueeze") == 0 || strcmp(op, "Squeeze") == 0 || strcmp(op, "Reshape") == 0;
    if (is_shape)
        return reshape(job, out);
    *out = *in;
    return strcmp(op, "Identity") == 0 || strcmp(op, "Cast") == 0;
}

bool sl_onnx_lift_layout(const struct sl_onnx_job *job, const char **reason)
{
    enum { FLOAT = 1, DOUBLE = 11 };
    const char *op = job->node->op;
    struct sl_onnx_value *out = &job->outputs[0];
    const struct sl_onnx_value *in = job->inputs[0];
    if (!is_layout(op))
        return false;
    if (pass_fed(job))
        return true;
    if (in->kind == SL_ONNX_LENGTHS || in->kind == SL_ONNX_STEPS || in->kind == SL_ONNX_MASK)
        return pass_other(job, out);
    if (in->kind != SL_ONNX_DATA)
        return false;
    bool is_ids = job->lift->reading.is_ids && job->lift->terms[in->features.list[0].term].kind == SL_ONNX_TERM_INPUT;
    int64_t to = sl_onnx_node_get_int(job->node, "to", FLOAT);
    *out = *in;
    if (strcmp(op, "Identity") == 0 || (strcmp(op, "Cast") == 0 && ((to == FLOAT || to == DOUBLE) != is_ids)))
        return true;
    if (strcmp(op, "Dropout") == 0)
        return job->input_count < 3 || job->inputs[2] == NULL ||
               (job->constants[2] && sl_onnx_constant_is_all(job->constants[2], 0));
    bool is_made = strcmp(op, "Transpose") == 0 ? transpose(job, out)
                   : strcmp(op, "Slice") == 0   ? slice(job, out, reason)
                   : strcmp(op, "Gather") == 0  ? gather(job, out, reason)
                   : strcmp(op, "Split") == 0   ? split(job, reason)
                   : strcmp(op, "Concat") == 0  ? join(job, out)
                   : strcmp(op, "Expand") == 0  ? expand(job, out)
                   : strcmp(op, "Cast") == 0    ? false
                                                : reshape(job, out);
    for (int32_t k = 0; is_made && k < job->node->output_count && k < SL_ONNX_OUTPUTS_MAX; k++)
        job->outputs[k].features.via = job->node;
    return is_made;
}
