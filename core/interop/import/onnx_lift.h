/* SPDX-License-Identifier: Apache-2.0 */
/* Translates an ONNX graph into our operations ("lifts" it). Each value is described by the features of a record (or
 * step), and by where batch, time and features lie in its dimensions. Nodes that only rearrange leave no trace; each
 * node that computes becomes a term. A node that cannot be described makes its outputs opaque, with the reason. The
 * matching (onnx_match.h) refuses such a node by name if the model's output depends on it.
 *
 * Free dimensions get sizes that occur nowhere else, so that shapes which a file computes are plain numbers here. */
#ifndef SL_INTEROP_ONNX_LIFT_H
#define SL_INTEROP_ONNX_LIFT_H

#include "interop/import/onnx_term.h"

/* Describes all values of the file. Terms and values live in the file's arena. CORRUPT_DATA: names written twice, or
 * a cycle; NO_MEMORY. */
seqlstm_status sl_onnx_lift_file(struct sl_onnx_lift *lift, const char *path, struct seqlstm_error *err);

/* The value of that name; NULL: there is none. */
struct sl_onnx_value *sl_onnx_lift_find(const struct sl_onnx_lift *lift, const char *name);

#endif
