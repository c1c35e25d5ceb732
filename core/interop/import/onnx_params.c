/* SPDX-License-Identifier: Apache-2.0 */
/* See onnx_params.h. */
#include "interop/import/onnx_params.h"

#include <string.h>

enum { AXES_MAX = 4096 };

static int64_t clamp(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < -INT32_MAX ? -INT32_MAX : value;
}

bool sl_onnx_get_list(const struct sl_onnx_node *node, const char *attribute,
                      const struct sl_onnx_constant *const *inputs, int32_t input_count, int32_t k, const int64_t **out,
                      int32_t *out_count, struct sl_arena *arena)
{
    const struct sl_onnx_attribute *a = sl_onnx_node_find_attribute(node, attribute);
    const struct sl_onnx_constant *c = k >= 0 && k < input_count ? inputs[k] : NULL;
    int64_t count = a ? a->count : c ? c->elems : 0;
    if ((a && a->ints == NULL && a->count) || (a == NULL && c == NULL) || count > AXES_MAX)
        return false;
    int64_t *list = SL_ARENA_ARRAY(arena, int64_t, (size_t)count + 1);
    for (int64_t i = 0; list && i < count; i++)
        list[i] = clamp(a ? a->ints[i] : sl_onnx_constant_get_int(c, i));
    *out = list;
    *out_count = (int32_t)count;
    return list != NULL;
}

static bool set_cut(struct sl_onnx_cut *cut, int64_t axis, int64_t start, int64_t end, int64_t step, int32_t rank,
                    const int64_t *shape)
{
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || step == 0)
        return false;
    int64_t size = shape[axis], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > size ? size : end;
    int64_t count = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
    *cut = (struct sl_onnx_cut){(int32_t)axis, start, step, count > 0 ? count : 0};
    return true;
}

bool sl_onnx_get_cuts(const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                      int32_t input_count, int32_t rank, const int64_t *shape, struct sl_onnx_cut *out,
                      int32_t *out_count, struct sl_arena *arena)
{
    const int64_t *starts, *ends, *axes = NULL, *steps = NULL;
    int32_t count, ends_count, axes_count = 0, steps_count = 0;
    bool has_axes = sl_onnx_node_find_attribute(node, "axes") || (input_count > 3 && inputs[3]);
    bool has_steps = input_count > 4 && inputs[4];
    if (!sl_onnx_get_list(node, "starts", inputs, input_count, 1, &starts, &count, arena) ||
        !sl_onnx_get_list(node, "ends", inputs, input_count, 2, &ends, &ends_count, arena) || count != ends_count ||
        count > rank)
        return false;
    if (has_axes &&
        (!sl_onnx_get_list(node, "axes", inputs, input_count, 3, &axes, &axes_count, arena) || axes_count != count))
        return false;
    if (has_steps &&
        (!sl_onnx_get_list(node, "steps", inputs, input_count, 4, &steps, &steps_count, arena) || steps_count != count))
        return false;
    for (int32_t k = 0; k < count; k++)
        if (!set_cut(&out[k], axes ? axes[k] : k, starts[k], ends[k], steps ? steps[k] : 1, rank, shape))
            return false;
    *out_count = count;
    return true;
}

bool sl_onnx_get_parts(const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                       int32_t input_count, int64_t size, int64_t *out, int32_t most, int32_t *out_count,
                       struct sl_arena *arena)
{
    const int64_t *parts;
    int32_t count = node->output_count;
    int64_t sum = 0;
    if (count < 1 || count > most)
        return false;
    *out_count = count;
    if (sl_onnx_node_find_attribute(node, "split") || (input_count > 1 && inputs[1])) {
        int32_t given;
        if (!sl_onnx_get_list(node, "split", inputs, input_count, 1, &parts, &given, arena) || given != count)
            return false;
        for (int32_t k = 0; k < count; k++) {
            out[k] = parts[k];
            sum += parts[k] < 0 ? size + 1 : parts[k];
        }
        return sum == size;
    }
    int64_t each = (size + count - 1) / count;
    for (int32_t k = 0; k < count; k++)
        out[k] = k + 1 < count ? each : size - each * (count - 1);
    return out[count - 1] > 0;
}

static bool get_reshape(const int64_t *wanted, int32_t count, int32_t rank, const int64_t *shape, int64_t *out)
{
    int64_t elems = 1, known = 1;
    int32_t unknown = -1;
    for (int32_t d = 0; d < rank; d++)
        elems *= shape[d];
    for (int32_t d = 0; d < count; d++) {
        out[d] = wanted[d] == 0 && d < rank ? shape[d] : wanted[d];
        if (wanted[d] == -1 && unknown >= 0)
            return false;
        if (wanted[d] == -1)
            unknown = d;
        else if (out[d] <= 0 || known > elems / out[d])
            return false;
        else
            known *= out[d];
    }
    if (unknown >= 0)
        out[unknown] = elems / known;
    return unknown >= 0 ? out[unknown] * known == elems : known == elems;
}

static bool get_flatten(int64_t axis, int32_t rank, const int64_t *shape, int64_t *out)
{
    axis += axis < 0 ? rank : 0;
    out[0] = out[1] = 1;
    for (int32_t d = 0; d < rank; d++)
        out[d >= axis] *= shape[d];
    return axis >= 0 && axis <= rank;
}

static bool get_squeeze(const int64_t *axes, int32_t count, bool is_all, int32_t rank, const int64_t *shape,
                        int32_t *out_rank, int64_t *out)
{
    *out_rank = 0;
    for (int32_t d = 0; d < rank; d++) {
        bool is_named = is_all && shape[d] == 1;
        for (int32_t k = 0; k < count; k++)
            is_named = is_named || axes[k] == d || axes[k] == d - rank;
        if (is_named && shape[d] != 1)
            return false;
        if (!is_named)
            out[(*out_rank)++] = shape[d];
    }
    return true;
}

static bool get_unsqueeze(const int64_t *axes, int32_t count, int32_t rank, const int64_t *shape, int32_t *out_rank,
                          int64_t *out)
{
    int32_t made = rank + count, from = 0;
    if (made > SL_ONNX_RANK_MAX)
        return false;
    *out_rank = made;
    for (int32_t d = 0; d < made; d++) {
        bool is_new = false;
        for (int32_t k = 0; k < count; k++)
            is_new = is_new || axes[k] == d || axes[k] == d - made;
        if (!is_new && from == rank)
            return false;
        out[d] = is_new ? 1 : shape[from++];
    }
    return from == rank;
}

bool sl_onnx_get_new_shape(const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                           int32_t input_count, int32_t rank, const int64_t *shape, int32_t *out_rank, int64_t *out,
                           struct sl_arena *arena)
{
    const int64_t *list = NULL;
    int32_t count = 0;
    if (strcmp(node->op, "Flatten") == 0) {
        *out_rank = 2;
        return get_flatten(sl_onnx_node_get_int(node, "axis", 1), rank, shape, out);
    }
    bool is_reshape = strcmp(node->op, "Reshape") == 0, is_squeeze = strcmp(node->op, "Squeeze") == 0;
    bool is_given = sl_onnx_get_list(node, is_reshape ? "shape" : "axes", inputs, input_count, 1, &list, &count, arena);
    bool is_unknown = !is_given && input_count > 1; /* computed from something that is no constant */
    if (is_unknown || (!is_given && !is_squeeze) || count > SL_ONNX_RANK_MAX)
        return false;
    if (is_reshape) {
        *out_rank = count;
        bool has_zero = false; /* which stands for the size as it was, unless the node says otherwise */
        for (int32_t d = 0; d < count; d++)
            has_zero = has_zero || list[d] == 0;
        if (has_zero && sl_onnx_node_get_int(node, "allowzero", 0) != 0)
            return false;
        return get_reshape(list, count, rank, shape, out);
    }
    return is_squeeze ? get_squeeze(list, count, !is_given, rank, shape, out_rank, out)
                      : get_unsqueeze(list, count, rank, shape, out_rank, out);
}
