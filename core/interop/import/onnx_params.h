/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of operators that rearrange constants or data. Old opsets have them as attributes, new ones as inputs. */
#ifndef SL_INTEROP_ONNX_PARAMS_H
#define SL_INTEROP_ONNX_PARAMS_H

#include "interop/import/onnx_constant.h"

/* The list in the attribute, or in input `k`. False: absent, or no constant. Values are clamped to 32 bits. */
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
