/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs the operations of a model with the terms of a lifted ONNX file, from the output back along the edges. */
#ifndef SL_INTEROP_ONNX_MATCH_H
#define SL_INTEROP_ONNX_MATCH_H

#include "base/value/buf.h"
#include "graph/graph.h"
#include "interop/import/onnx_lift.h"

/* What one operation of the model is in the file. Indices plus one; 0: not found yet. */
struct sl_onnx_pair {
    int32_t term;     /* of dense: the product; of others: theirs */
    int32_t bias;     /* of dense: the term that adds it; 0: none */
    int32_t cells[2]; /* of recurrent, by direction */
    int32_t directions[2];
};

struct sl_onnx_match {
    const struct sl_graph *graph;
    struct sl_onnx_lift *lift;
    const char *path;
    struct sl_onnx_pair *pairs; /* by node of the graph */
    struct sl_buf *notes;
    struct seqlstm_error *err;
};

/* INVALID_CONFIG: the file computes something else; the message names the node of the file or the option of the model.
 * CORRUPT_DATA: a layer of another width. */
seqlstm_status sl_onnx_match_output(struct sl_onnx_match *match, const struct sl_onnx_value *output);

/* Refuses whatever the value depends on that the model has no use for. */
seqlstm_status sl_onnx_match_extra_output(const struct sl_onnx_match *match, const char *name);

/* Compares the attributes of a recurrent node with the model's options, for one direction. */
seqlstm_status sl_onnx_match_cell(const struct sl_onnx_match *match, const struct sl_node *ours,
                                  const struct sl_onnx_cell_use *cell, int32_t our_direction, int32_t their_direction);

/* ---- errors ------------------------------------------------------------------------------------------------ */

/* "Relu `name`", or with its output where it has no name, into `text`. */
const char *sl_onnx_describe_node(const struct sl_onnx_node *node, char *text, size_t bytes);

seqlstm_status sl_onnx_match_fail_option(const struct sl_onnx_match *match, const struct sl_node *ours,
                                         const struct sl_onnx_node *theirs, uint32_t option, const char *key,
                                         const char *what);

/* The file has `theirs` where the model has `what` of layer `ours` (NULL: its input). */
seqlstm_status sl_onnx_match_fail_place(const struct sl_onnx_match *match, const struct sl_onnx_node *theirs,
                                        const struct sl_node *ours, const char *what);

/* Refuses a value that no layer computes. */
seqlstm_status sl_onnx_match_fail_opaque(const struct sl_onnx_match *match, const struct sl_onnx_value *value);

/* Adds the option's place to the error, which is INVALID_CONFIG. */
seqlstm_status sl_onnx_match_set_place(const struct sl_onnx_match *match, const struct sl_node *ours, uint32_t option);

/* The node to name if features are not what the model needs. */
const struct sl_onnx_node *sl_onnx_match_get_culprit(const struct sl_onnx_match *match,
                                                     const struct sl_onnx_features *theirs);

#endif
