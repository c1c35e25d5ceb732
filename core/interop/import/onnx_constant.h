/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of an ONNX graph. */
#ifndef SL_INTEROP_ONNX_CONSTANT_H
#define SL_INTEROP_ONNX_CONSTANT_H

#include "interop/import/onnx_file.h"

struct sl_onnx_constant {
    int32_t rank;
    int64_t shape[SL_ONNX_RANK_MAX];
    int64_t elems;
    const float *floats;
    const int64_t *ints; /* either `floats` or `ints` is NULL */
    bool is_fill;        /* only one number is stored: all elements have it */
};

double sl_onnx_constant_get(const struct sl_onnx_constant *c, int64_t index);
/* The same without its fraction, at most 2^53 in size: no shape or index is larger. NaN is -2^53. */
int64_t sl_onnx_constant_get_int(const struct sl_onnx_constant *c, int64_t index);
bool sl_onnx_constant_is_all(const struct sl_onnx_constant *c, double value);

/* A list of integers, as axes or shapes are. */
struct sl_onnx_constant sl_onnx_constant_of_ints(struct sl_arena *arena, const int64_t *values, int32_t count);

#endif
