/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of an ONNX graph, and the operators on them that rearrange or compute shapes. Exporters leave such
 * operators between a stored tensor and the operator that uses it. */
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

/* Outputs of a node whose inputs are all constants (NULL: absent). False: not an operator of this kind, or one that
 * would need much memory. `*out_count` outputs are written, at most `most`. */
bool sl_onnx_constant_fold(struct sl_arena *arena, const struct sl_onnx_node *node,
                           const struct sl_onnx_constant *const *inputs, int32_t input_count,
                           struct sl_onnx_constant *outputs, int32_t most, int32_t *out_count);

/* Parameters of operators that constants and data share: the list in the attribute, or in input `k`. False: absent,
 * or no constant. Values are clamped to 32 bits. */
enum { SL_ONNX_AXES_MAX = 4096 };
bool sl_onnx_get_list(const struct sl_onnx_node *node, const char *attribute,
                      const struct sl_onnx_constant *const *inputs, int32_t input_count, int32_t k, const int64_t **out,
                      int32_t *out_count, struct sl_arena *arena);

/* Where a Slice cuts an axis of `size`: first index, step, count. */
struct sl_onnx_cut {
    int32_t axis;
    int64_t first, step, count;
};
bool sl_onnx_get_cuts(const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                      int32_t input_count, int32_t rank, const int64_t *shape, struct sl_onnx_cut *out,
                      int32_t *out_count, struct sl_arena *arena);

/* The sizes of the parts of a Split. */
bool sl_onnx_get_parts(const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                       int32_t input_count, int64_t size, int64_t *out, int32_t most, int32_t *out_count,
                       struct sl_arena *arena);

/* The shape that a Reshape, Flatten, Squeeze or Unsqueeze gives. */
bool sl_onnx_get_new_shape(const struct sl_onnx_node *node, const struct sl_onnx_constant *const *inputs,
                           int32_t input_count, int32_t rank, const int64_t *shape, int32_t *out_rank, int64_t *out,
                           struct sl_arena *arena);

#endif
