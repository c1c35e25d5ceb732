/* SPDX-License-Identifier: Apache-2.0 */
/* A model as an ONNX file, written (opset 17) and read: the graph of SL_PHASE_PREDICT with its weights.
 *
 *   input    [batch, time, I] float32, or [batch, time] int64 token ids; [batch, I] where records are vectors
 *   lengths  [batch] int32, 1 .. time: the real steps of each sequence (where the input is a sequence)
 *   output   [batch, time, O] or [batch, O]; rows of a sequence beyond its length mean nothing
 *
 * Of SL_PART_ENCODER and SL_PART_DECODER a file each: `source` and `source_lengths` in; the decoder's first states and
 * the attention memories out, under the names of the decoder's inputs; for the next step as NAME.next.
 *
 * batch and time are free dimensions. ONNX pads where we pack; the values at real steps are the same. What ONNX's
 * operators cannot express (projection, layer norm inside a cell, cell clip, zoneout) is refused with the option and
 * its place.
 */
#ifndef SL_INTEROP_ONNX_H
#define SL_INTEROP_ONNX_H

#include <seqlstm/status.h>

#include "base/value/buf.h"
#include "graph/graph.h"

/* Writes the graph atomically; `values[p]` is parameter p as [rows, columns]. Errors: INVALID_CONFIG with the place of
 * the option in `where`; INVALID_ARGUMENT: over 2 GB, ONNX's limit for one file; IO; NO_MEMORY. [any thread] */
seqlstm_status sl_onnx_write(const struct sl_graph *graph, const float *const *values, const char *path,
                             struct seqlstm_error *err);

/* Fills `values` from a file that holds the same network. The file's graph is followed from its input to its output:
 * each node is a part of the model, changes nothing (or only rearranges, weights included), or is refused by name. All
 * attributes of the recurrent operators must be what the model says, as must activations, pools and the epsilon of a
 * norm. `notes` gets a line for what the file leaves to its caller: initial states that are fed, fixed lengths, a final
 * softmax or sigmoid that only the model has. Values are undefined after a failure. Errors: INVALID_CONFIG: another
 * network, with the node's name or the option's place; CORRUPT_DATA: no ONNX file, other widths; NOT_FOUND, IO,
 * NO_MEMORY. [any thread] */
seqlstm_status sl_onnx_read(const struct sl_graph *graph, const char *path, float *const *values, struct sl_buf *notes,
                            struct seqlstm_error *err);

#endif
