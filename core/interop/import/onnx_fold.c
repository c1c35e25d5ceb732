/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on constants. A rearrangement is a view with strides, which is then copied. */
#include "interop/import/onnx_fold.h"

#include <string.h>

#include "base/value/checked.h"
#include "interop/import/onnx_params.h"

enum { ELEMS_MAX = 1 << 28, EXPANDED_MAX = 1 << 22 };

/* Elements of a constant in another order. */
struct view {
    int32_t rank;
    int64_t shape[SL_ONNX_RANK_MAX];
    int64_t strides[SL_ONNX_RANK_MAX];
    int64_t first;
};

static bool set_shape(struct sl_onnx_constant *c, int32_t rank, const int64_t *shape)
{
    c->rank = rank;
    c->elems = 1;
    for (int32_t d = 0; d < rank; d++) {
        c->shape[d] = shape[d];
        if (shape[d] < 0 || (shape[d] > 0 && c->elems > INT64_MAX / 2 / shape[d]))
            return false;
        c->elems *= shape[d];
    }
    return true;
}

static struct view look(const struct sl_onnx_constant *c)
{
    struct view v = {.rank = c->rank};
    int64_t stride = 1;
    for (int32_t d = c->rank; d-- > 0;) {
        v.shape[d] = c->shape[d];
        v.strides[d] = stride;
        stride *= c->shape[d];
    }
    return v;
}

/* Room for the elements of `out`, whose shape is set. */
static bool make_room(struct sl_arena *arena, struct sl_onnx_constant *out, bool is_float, float **floats,
                      int64_t **ints)
{
    if (out->elems > ELEMS_MAX)
        return false;
    *floats = is_float ? SL_ARENA_ARRAY(arena, float, (size_t)out->elems + 1) : NULL;
    *ints = is_float ? NULL : SL_ARENA_ARRAY(arena, int64_t, (size_t)out->elems + 1);
    out->floats = *floats;
    out->ints = *ints;
    out->is_fill = false;
    return *floats || *ints;
}

/* Moves `place` to the next element of the shape and returns the change of the offset. */
static int64_t step(const struct view *v, int64_t *place, int64_t offset)
{
    for (int32_t d = v->rank; d-- > 0;) {
        offset += v->strides[d];
        if (++place[d] < v->shape[d])
            return offset;
        offset -= v->strides[d] * v->shape[d];
        place[d] = 0;
    }
    return offset;
}

static bool copy_view(struct sl_arena *arena, const struct sl_onnx_constant *in, const struct view *v,
                      struct sl_onnx_constant *out)
{
    float *floats;
    int64_t *ints, place[SL_ONNX_RANK_MAX] = {0}, offset = v->first;
    struct sl_onnx_constant made = *in;
    if (!set_shape(&made, v->rank, v->shape))
        return false;
    if (!in->is_fill) {
        if (!make_room(arena, &made, in->floats != NULL, &floats, &ints))
            return false;
        for (int64_t e = 0; e < made.elems; e++) {
            if (floats)
                floats[e] = in->floats[offset];
            else
                ints[e] = in->ints[offset];
            offset = step(v, place, offset);
        }
    }
    *out = made;
    return true;
}

static bool transpose(struct sl_arena *arena, const struct sl_onnx_node *node, const struct sl_onnx_constant *in,
                      struct sl_onnx_constant *out)
{
    const struct sl_onnx_attribute *perm = sl_onnx_node_find_attribute(node, "perm");
    struct view from = look(in), v = from;
    if (perm && (perm->count != in->rank || (perm->count && perm->ints == NULL)))
        return false;
    for (int32_t d = 0; d < in->rank; d++) {
        int64_t source = perm ? perm->ints[d] : in->rank - 1 - d;
        if (source < 0 || source >= in->rank)
            return false;
        v.shape[d] = from.shape[source];
        v.strides[d] = from.strides[source];
    }
    return copy_view(arena, in, &v, out);
}

static bool slice(struct sl_arena *arena, const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                  int32_t count, struct sl_onnx_constant *out)
{
    struct sl_onnx_cut cuts[SL_ONNX_RANK_MAX];
    struct view v = look(inputs[0]);
    int32_t cut_count;
    if (!sl_onnx_get_cuts(node, inputs, count, v.rank, v.shape, cuts, &cut_count, arena))
        return false;
    for (int32_t k = 0; k < cut_count; k++) {
        v.first += cuts[k].first * v.strides[cuts[k].axis];
        v.strides[cuts[k].axis] *= cuts[k].step;
        v.shape[cuts[k].axis] = cuts[k].count;
    }
    return copy_view(arena, inputs[0], &v, out);
}

/* Copies `in` into `out` from index `at` of `axis`. */
static void paste(const struct sl_onnx_constant *in, int32_t axis, int64_t at, const struct sl_onnx_constant *out,
                  float *floats, int64_t *ints)
{
    int64_t outer = 1, inner = 1;
    for (int32_t d = 0; d < axis; d++)
        outer *= out->shape[d];
    for (int32_t d = axis + 1; d < out->rank; d++)
        inner *= out->shape[d];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < in->shape[axis] * inner; k++) {
            int64_t to = (o * out->shape[axis] + at) * inner + k, from = o * in->shape[axis] * inner + k;
            if (floats)
                floats[to] = (float)sl_onnx_constant_get(in, from);
            else
                ints[to] = in->ints[in->is_fill ? 0 : from];
        }
}

static bool join(struct sl_arena *arena, int64_t axis, const struct sl_onnx_constant *const *inputs, int32_t count,
                 struct sl_onnx_constant *out)
{
    const struct sl_onnx_constant *first = inputs[0];
    struct sl_onnx_constant made = *first;
    float *floats;
    int64_t *ints, shape[SL_ONNX_RANK_MAX], at = 0;
    axis += axis < 0 ? first->rank : 0;
    if (axis < 0 || axis >= first->rank)
        return false;
    memcpy(shape, first->shape, sizeof shape);
    shape[axis] = 0;
    for (int32_t k = 0; k < count; k++) {
        if (inputs[k] == NULL || inputs[k]->rank != first->rank ||
            (inputs[k]->floats == NULL) != (first->floats == NULL))
            return false;
        for (int32_t d = 0; d < first->rank; d++)
            if (d != axis && inputs[k]->shape[d] != first->shape[d])
                return false;
        shape[axis] += inputs[k]->shape[axis];
    }
    if (!set_shape(&made, first->rank, shape) || !make_room(arena, &made, first->floats != NULL, &floats, &ints))
        return false;
    for (int32_t k = 0; k < count; k++) {
        paste(inputs[k], (int32_t)axis, at, &made, floats, ints);
        at += inputs[k]->shape[axis];
    }
    *out = made;
    return true;
}

static bool gather(struct sl_arena *arena, int64_t axis, const struct sl_onnx_constant *in,
                   const struct sl_onnx_constant *indices, struct sl_onnx_constant *out)
{
    enum { INDICES_MAX = 64 };
    struct sl_onnx_constant parts[INDICES_MAX];
    const struct sl_onnx_constant *list[INDICES_MAX];
    axis += axis < 0 ? in->rank : 0;
    if (axis < 0 || axis >= in->rank || indices->rank > 1 || indices->elems > INDICES_MAX || indices->elems < 1)
        return false;
    for (int64_t k = 0; k < indices->elems; k++) {
        struct view v = look(in);
        int64_t index = sl_onnx_constant_get_int(indices, k);
        index += index < 0 ? in->shape[axis] : 0;
        if (index < 0 || index >= in->shape[axis])
            return false;
        v.first = index * v.strides[axis];
        v.shape[axis] = 1;
        if (indices->rank == 0) {
            for (int32_t d = (int32_t)axis; d + 1 < v.rank; d++) {
                v.shape[d] = v.shape[d + 1];
                v.strides[d] = v.strides[d + 1];
            }
            v.rank--;
        }
        if (!copy_view(arena, in, &v, &parts[k]))
            return false;
        list[k] = &parts[k];
    }
    if (indices->rank == 0) {
        *out = parts[0];
        return true;
    }
    return join(arena, axis, list, (int32_t)indices->elems, out);
}

static bool split(struct sl_arena *arena, const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                  int32_t count, struct sl_onnx_constant *outputs, int32_t most, int32_t *out_count)
{
    const struct sl_onnx_constant *in = inputs[0];
    int64_t axis = sl_onnx_node_get_int(node, "axis", 0), parts[16], at = 0;
    axis += axis < 0 ? in->rank : 0;
    if (most > 16 || axis < 0 || axis >= in->rank ||
        !sl_onnx_get_parts(node, inputs, count, in->shape[axis], parts, most, out_count, arena))
        return false;
    for (int32_t k = 0; k < *out_count; k++) {
        struct view v = look(in);
        v.first = at * v.strides[axis];
        v.shape[axis] = parts[k];
        at += parts[k];
        if (!copy_view(arena, in, &v, &outputs[k]))
            return false;
    }
    return true;
}

/* The view of `c` as a tensor of that shape, which its own is broadcast to. */
static bool broadcast(const struct sl_onnx_constant *c, int32_t rank, const int64_t *shape, struct view *out)
{
    struct view from = look(c);
    *out = (struct view){.rank = rank};
    for (int32_t d = 0; d < rank; d++) {
        int32_t source = d - (rank - c->rank);
        int64_t size = source < 0 ? 1 : c->shape[source];
        if (size != 1 && size != shape[d])
            return false;
        out->shape[d] = shape[d];
        out->strides[d] = size == 1 ? 0 : from.strides[source];
    }
    return rank >= c->rank;
}

static bool join_shapes(const struct sl_onnx_constant *a, const struct sl_onnx_constant *b, int32_t *out_rank,
                        int64_t *out)
{
    *out_rank = a->rank > b->rank ? a->rank : b->rank;
    for (int32_t d = 0; d < *out_rank; d++) {
        int32_t at_a = d - (*out_rank - a->rank), at_b = d - (*out_rank - b->rank);
        int64_t of_a = at_a < 0 ? 1 : a->shape[at_a], of_b = at_b < 0 ? 1 : b->shape[at_b];
        out[d] = of_a == 1 ? of_b : of_a;
        if (of_a != 1 && of_b != 1 && of_a != of_b)
            return false;
    }
    return true;
}

static bool compute(const char *op, double a, double b, bool is_float, double *out)
{
    if (strcmp(op, "Add") == 0)
        *out = a + b;
    else if (strcmp(op, "Sub") == 0)
        *out = a - b;
    else if (strcmp(op, "Mul") == 0)
        *out = a * b;
    else if (strcmp(op, "Div") == 0 && is_float)
        *out = a / b;
    else if (strcmp(op, "Div") == 0 && b != 0)
        *out = (double)((int64_t)a / (int64_t)b);
    else if (strcmp(op, "Equal") == 0)
        *out = a == b;
    else
        return false;
    return true;
}

static bool combine(struct sl_arena *arena, const char *op, const struct sl_onnx_constant *a,
                    const struct sl_onnx_constant *b, struct sl_onnx_constant *out)
{
    struct view of_a, of_b;
    struct sl_onnx_constant made = {0};
    int64_t shape[SL_ONNX_RANK_MAX], *ints, at_a[SL_ONNX_RANK_MAX] = {0}, at_b[SL_ONNX_RANK_MAX] = {0}, x = 0, y = 0;
    float *floats;
    int32_t rank;
    double value;
    bool is_float = a->floats != NULL;
    if ((b->floats != NULL) != is_float || !compute(op, 1, 1, is_float, &value) || !join_shapes(a, b, &rank, shape) ||
        !broadcast(a, rank, shape, &of_a) || !broadcast(b, rank, shape, &of_b) || !set_shape(&made, rank, shape) ||
        !make_room(arena, &made, is_float && strcmp(op, "Equal") != 0, &floats, &ints))
        return false;
    for (int64_t e = 0; e < made.elems; e++) {
        if (!compute(op, sl_onnx_constant_get(a, x), sl_onnx_constant_get(b, y), is_float, &value))
            return false;
        if (floats)
            floats[e] = (float)value;
        else
            ints[e] = (int64_t)value;
        x = step(&of_a, at_a, x);
        y = step(&of_b, at_b, y);
    }
    *out = made;
    return true;
}

/* Where: in[0] chooses between in[1] and in[2]. Exporters compute shapes with it. */
static bool choose(struct sl_arena *arena, const struct sl_onnx_constant *const *in, struct sl_onnx_constant *out)
{
    struct sl_onnx_constant made = {0}, both = {0};
    struct view views[3];
    int64_t *ints, shape[SL_ONNX_RANK_MAX], places[3][SL_ONNX_RANK_MAX] = {{0}}, at[3] = {0};
    float *floats;
    int32_t rank;
    const bool is_float = in[1]->floats != NULL;
    if ((in[2]->floats != NULL) != is_float || !join_shapes(in[1], in[2], &rank, shape) ||
        !set_shape(&both, rank, shape) || !join_shapes(in[0], &both, &rank, shape) || !set_shape(&made, rank, shape) ||
        !make_room(arena, &made, is_float, &floats, &ints))
        return false;
    for (int k = 0; k < 3; k++)
        if (!broadcast(in[k], rank, shape, &views[k]))
            return false;
    for (int64_t e = 0; e < made.elems; e++) {
        const int from = sl_onnx_constant_get(in[0], at[0]) != 0 ? 1 : 2;
        const double value = sl_onnx_constant_get(in[from], at[from]);
        if (floats)
            floats[e] = (float)value;
        else
            ints[e] = (int64_t)value;
        for (int k = 0; k < 3; k++)
            at[k] = step(&views[k], places[k], at[k]);
    }
    *out = made;
    return true;
}

static bool expand(struct sl_arena *arena, const struct sl_onnx_constant *in, const struct sl_onnx_constant *wanted,
                   struct sl_onnx_constant *out)
{
    struct sl_onnx_constant target = {.rank = (int32_t)wanted->elems};
    struct view v;
    int64_t shape[SL_ONNX_RANK_MAX];
    int32_t rank;
    if (wanted->elems > SL_ONNX_RANK_MAX)
        return false;
    for (int32_t d = 0; d < target.rank; d++)
        target.shape[d] = sl_onnx_constant_get_int(wanted, d);
    if (!join_shapes(in, &target, &rank, shape) || !broadcast(in, rank, shape, &v))
        return false;
    struct sl_onnx_constant from = *in;
    from.is_fill = in->elems > 0 && sl_onnx_constant_is_all(in, sl_onnx_constant_get(in, 0));
    int64_t elems = 1;
    for (int32_t d = 0; d < rank; d++)
        elems = elems > EXPANDED_MAX || shape[d] > EXPANDED_MAX ? EXPANDED_MAX + 1 : elems * shape[d];
    return (from.is_fill || elems <= EXPANDED_MAX) && copy_view(arena, &from, &v, out);
}

/* Tile of a constant that has one number. */
static bool tile(const struct sl_onnx_constant *in, const struct sl_onnx_constant *repeats,
                 struct sl_onnx_constant *out)
{
    int64_t shape[SL_ONNX_RANK_MAX];
    if (repeats->elems != in->rank || in->elems < 1 || !sl_onnx_constant_is_all(in, sl_onnx_constant_get(in, 0)))
        return false;
    for (int32_t d = 0; d < in->rank; d++) {
        int64_t times = sl_onnx_constant_get_int(repeats, d);
        if (times < 0 || times > INT32_MAX || in->shape[d] > INT32_MAX)
            return false;
        shape[d] = in->shape[d] * times;
    }
    *out = *in;
    out->is_fill = true;
    return set_shape(out, in->rank, shape);
}

static bool fill(struct sl_arena *arena, const struct sl_onnx_node *node, const struct sl_onnx_constant *wanted,
                 struct sl_onnx_constant *out)
{
    const struct sl_onnx_attribute *value = sl_onnx_node_find_attribute(node, "value");
    int64_t shape[SL_ONNX_RANK_MAX];
    if (wanted->elems > SL_ONNX_RANK_MAX)
        return false;
    for (int64_t d = 0; d < wanted->elems; d++)
        shape[d] = sl_onnx_constant_get_int(wanted, d);
    struct sl_onnx_constant made = {.floats = SL_ARENA_NEW(arena, float), .is_fill = true};
    if (value && value->tensor && value->tensor->elems == 1) {
        made.floats = value->tensor->floats;
        made.ints = value->tensor->ints;
    }
    *out = made;
    return (made.floats || made.ints) && set_shape(out, (int32_t)wanted->elems, shape);
}

static bool cast(struct sl_arena *arena, int64_t to, const struct sl_onnx_constant *in, struct sl_onnx_constant *out)
{
    enum { FLOAT = 1, INT32 = 6, INT64 = 7, BOOL = 9, DOUBLE = 11 };
    bool is_float = to == FLOAT || to == DOUBLE;
    struct sl_onnx_constant made = *in;
    float *floats;
    int64_t *ints;
    if (!is_float && to != INT32 && to != INT64 && to != BOOL)
        return false;
    *out = made;
    if (is_float == (in->floats != NULL) && to != BOOL)
        return true;
    int64_t stored = in->is_fill ? 1 : in->elems;
    made.elems = stored;
    if (!make_room(arena, &made, is_float, &floats, &ints))
        return false;
    for (int64_t e = 0; e < stored; e++) {
        double value = sl_onnx_constant_get(in, e);
        if (floats)
            floats[e] = (float)value;
        else if (to == BOOL)
            ints[e] = value != 0;
        else
            ints[e] = value > 9e18 || value < -9e18 || value != value ? 0 : (int64_t)value;
    }
    made.elems = in->elems;
    made.is_fill = in->is_fill;
    *out = made;
    return true;
}

static bool reduce_product(struct sl_arena *arena, const struct sl_onnx_node *node, const struct sl_onnx_constant *in,
                           struct sl_onnx_constant *out)
{
    int64_t product = 1;
    if (in->rank != 1 || in->ints == NULL)
        return false;
    for (int64_t e = 0; e < in->elems; e++)
        if (!sl_checked_mul_i64(product, sl_onnx_constant_get_int(in, e), &product))
            return false;
    *out = sl_onnx_constant_of_ints(arena, &product, 1);
    out->rank = sl_onnx_node_get_int(node, "keepdims", 1) != 0;
    return out->ints != NULL;
}

bool sl_onnx_constant_fold(struct sl_arena *arena, const struct sl_onnx_node *node,
                           const struct sl_onnx_constant *const *inputs, int32_t input_count,
                           struct sl_onnx_constant *outputs, int32_t most, int32_t *out_count)
{
    const char *op = node->op;
    const struct sl_onnx_constant *a = input_count > 0 ? inputs[0] : NULL, *b = input_count > 1 ? inputs[1] : NULL;
    *out_count = 1;
    if (a == NULL)
        return false;
    if (strcmp(op, "Identity") == 0) {
        *outputs = *a;
        return true;
    }
    if (strcmp(op, "Transpose") == 0)
        return transpose(arena, node, a, outputs);
    if (strcmp(op, "Slice") == 0)
        return slice(arena, node, inputs, input_count, outputs);
    if (strcmp(op, "Concat") == 0)
        return join(arena, sl_onnx_node_get_int(node, "axis", 0), inputs, input_count, outputs);
    if (strcmp(op, "Split") == 0)
        return split(arena, node, inputs, input_count, outputs, most, out_count);
    if (strcmp(op, "Cast") == 0)
        return cast(arena, sl_onnx_node_get_int(node, "to", 0), a, outputs);
    if (strcmp(op, "ConstantOfShape") == 0)
        return fill(arena, node, a, outputs);
    if (strcmp(op, "ReduceProd") == 0)
        return reduce_product(arena, node, a, outputs);
    if (strcmp(op, "Reshape") == 0 || strcmp(op, "Flatten") == 0 || strcmp(op, "Squeeze") == 0 ||
        strcmp(op, "Unsqueeze") == 0) {
        int64_t shape[SL_ONNX_RANK_MAX];
        int32_t rank;
        *outputs = *a;
        return sl_onnx_get_new_shape(node, inputs, input_count, a->rank, a->shape, &rank, shape, arena) &&
               set_shape(outputs, rank, shape) && outputs->elems == a->elems;
    }
    if (b && strcmp(op, "Gather") == 0)
        return gather(arena, sl_onnx_node_get_int(node, "axis", 0), a, b, outputs);
    if (b && strcmp(op, "Tile") == 0)
        return tile(a, b, outputs);
    if (b && strcmp(op, "Expand") == 0)
        return expand(arena, a, b, outputs);
    if (b && input_count > 2 && inputs[2] && strcmp(op, "Where") == 0)
        return choose(arena, inputs, outputs);
    return b && combine(arena, op, a, b, outputs);
}
