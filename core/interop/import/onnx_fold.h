/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on constants that rearrange or compute shapes. Exporters leave them between a stored tensor and the
 * operator that uses it. */
#ifndef SL_INTEROP_ONNX_FOLD_H
#define SL_INTEROP_ONNX_FOLD_H

#include "interop/import/onnx_constant.h"

/* Outputs of a node whose inputs are all constants (NULL: absent). False: not an operator of this kind, or one that
 * would need much memory. `*out_count` outputs are written, at most `most`. */
bool sl_onnx_constant_fold(struct sl_arena *arena, const struct sl_onnx_node *node,
                           const struct sl_onnx_constant *const *inputs, int32_t input_count,
                           struct sl_onnx_constant *outputs, int32_t most, int32_t *out_count);

#endif
