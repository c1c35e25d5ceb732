/* SPDX-License-Identifier: Apache-2.0 */
/* A model as an ONNX file (opset 17): the graph of SL_PHASE_PREDICT with its weights.
 *
 *   input    [batch, time, I] float32, or [batch, time] int64 token ids; [batch, I] where records are vectors
 *   lengths  [batch] int32, 1 .. time: the real steps of each sequence (where the input is a sequence)
 *   output   [batch, time, O] or [batch, O]; rows of a sequence beyond its length mean nothing
 *
 * batch and time are free dimensions. ONNX pads where we pack; the values at real steps are the same.
 * What ONNX's operators cannot say (projection, layer norm inside a cell, cell clip, zoneout) is refused with the
 * option and its place.
 */
#ifndef SL_INTEROP_ONNX_H
#define SL_INTEROP_ONNX_H

#include <seqlstm/status.h>

#include "graph/graph.h"

/* Writes the graph atomically; `values[p]` is parameter p as [rows, columns]. Errors: INVALID_CONFIG with the place of
 * the option in `where`; INVALID_ARGUMENT: over 2 GB, ONNX's limit for one file; IO; NO_MEMORY. [any thread] */
seqlstm_status sl_onnx_write(const struct sl_graph *graph, const float *const *values, const char *path,
                             struct seqlstm_error *err);

#endif
