/* SPDX-License-Identifier: Apache-2.0 */
/* See onnx_constant.h. */
#include "interop/import/onnx_constant.h"

#include <string.h>

double sl_onnx_constant_get(const struct sl_onnx_constant *c, int64_t index)
{
    int64_t at = c->is_fill ? 0 : index;
    return c->floats ? (double)c->floats[at] : (double)c->ints[at];
}

int64_t sl_onnx_constant_get_int(const struct sl_onnx_constant *c, int64_t index)
{
    const double most = 0x1p53, value = sl_onnx_constant_get(c, index);
    return (int64_t)(value > most ? most : value > -most ? value : -most);
}

bool sl_onnx_constant_is_all(const struct sl_onnx_constant *c, double value)
{
    for (int64_t e = 0; e < (c->is_fill ? 1 : c->elems); e++)
        if (sl_onnx_constant_get(c, e) != value)
            return false;
    return true;
}

struct sl_onnx_constant sl_onnx_constant_of_ints(struct sl_arena *arena, const int64_t *values, int32_t count)
{
    int64_t *copy = SL_ARENA_ARRAY(arena, int64_t, (size_t)count + 1);
    if (copy && count)
        memcpy(copy, values, (size_t)count * sizeof *copy);
    return (struct sl_onnx_constant){.rank = 1, .shape = {count}, .elems = count, .ints = copy};
}
