/* SPDX-License-Identifier: Apache-2.0 */
/* Weights under the names, gate orders and layouts of other frameworks, in safetensors files.
 *
 * core/interop: models and weights in the formats of other programs. The names and layouts of PyTorch and Keras
 * (names*), the files that hold weights (safetensors*, npy_write; foreign: those that are only recognised), and whole
 * models as ONNX (onnx*, on top of protobuf*; import/ reads them).
 *
 *   canonical                        PyTorch (state_dict)            Keras (paths of Keras 3)
 *   lstm_1.l0.forward.w_x  [4H, I]   lstm_1.weight_ih_l0             lstm_1/lstm_cell/kernel             [I, 4H]
 *   lstm_1.l0.forward.w_h  [4H, H]   lstm_1.weight_hh_l0             lstm_1/lstm_cell/recurrent_kernel   [H, 4H]
 *   lstm_1.l0.forward.bias [4H]      lstm_1.bias_ih_l0, bias_hh_l0   lstm_1/lstm_cell/bias
 *   lstm_1.l0.backward.…             ….weight_ih_l0_reverse          lstm_1/backward_lstm/lstm_cell/…
 *   lstm_1.l1.forward.…              ….weight_ih_l1                  lstm_1_l1/lstm_cell/…
 *   gru (reset after), bias [4H]     bias_ih: r z n_in               gru_1/gru_cell/bias [2, 3H]:
 *                                    bias_hh: 0 0 n_hidden             z r n_in, 0 0 n_hidden
 *   dense_1.w              [O, I]    dense_1.weight                  dense_1/kernel                      [I, O]
 *   embedding_1.w          [V, E]    embedding_1.weight              embedding_1/embeddings
 *   layer_norm_1.gain, bias          weight, bias                    gamma, beta
 *
 * Gates: ours i f g o, which is PyTorch's and Keras's order too; a GRU's r z n is PyTorch's, Keras has z r n. Where a
 * framework has two biases that are only ever added, the first holds ours and the second zeros; imported ones are
 * added.
 */
#ifndef SL_INTEROP_NAMES_H
#define SL_INTEROP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/value/buf.h"
#include "graph/graph.h"
#include "interop/safetensors.h"

enum sl_convention { SL_CONVENTION_PYTORCH, SL_CONVENTION_KERAS };

/* The layer that the file calls `theirs` is the model's `ours`. */
struct sl_rename {
    const char *theirs;
    const char *ours;
};

/* Writes `values[p]`, graph parameter p as [rows, columns], atomically. `notes` gets a line for each tensor that the
 * framework has no name for (it keeps its canonical one). INVALID_CONFIG: a layer whose equation the framework does not
 * have, with its place in `where`; IO; NO_MEMORY. [any thread] */
seqlstm_status sl_names_export(const struct sl_graph *graph, enum sl_convention convention, const float *const *values,
                               const char *path, struct sl_buf *notes, struct seqlstm_error *err);

/* Fills all of `values`; the file must hold every parameter, and no other tensor of a layer of the model. `notes` gets
 * a line for each tensor of the file that belongs to no layer. Values are undefined after a failure. CORRUPT_DATA: a
 * tensor is absent (the message lists what the file has) or of another shape or type; INVALID_CONFIG as above, or a
 * tensor of a layer that its options leave no use for. [any thread] */
seqlstm_status sl_names_import(const struct sl_graph *graph, enum sl_convention convention,
                               const struct sl_safetensors *file, const struct sl_rename *renames, size_t rename_count,
                               float *const *values, struct sl_buf *notes, struct seqlstm_error *err);

/* What the names in the file look like. False: like neither. */
bool sl_names_guess(const struct sl_safetensors *file, enum sl_convention *out_convention);

#endif
