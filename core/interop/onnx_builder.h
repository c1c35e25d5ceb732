/* SPDX-License-Identifier: Apache-2.0 */
/* Building an ONNX graph: nodes, constants, inputs, outputs. Values have names; a name is written by one node. Failures
 * of memory are sticky in the buffers. Source: onnx.proto (ONNX IR version 8). */
#ifndef SL_INTEROP_ONNX_BUILDER_H
#define SL_INTEROP_ONNX_BUILDER_H

#include "base/value/buf.h"
#include "graph/graph.h"

enum { SL_ONNX_NAME_BYTES = 320 };

struct sl_onnx_name {
    char text[SL_ONNX_NAME_BYTES]; /* "": an absent input */
};

struct sl_onnx_builder {
    const struct sl_graph *graph;
    const float *const *values;   /* of the graph's parameters */
    struct sl_onnx_name *tensors; /* name of each tensor of the graph, "" until it is written */
    struct sl_buf graph_fields;   /* of GraphProto */
    struct sl_buf attributes;     /* of the node that comes next */
    int32_t serial;               /* numbers the names that are made up here */
    struct seqlstm_error *err;
};

enum sl_onnx_type { SL_ONNX_FLOAT = 1, SL_ONNX_INT32 = 6, SL_ONNX_INT64 = 7, SL_ONNX_BOOL = 9 };

/* Attributes of the next node. */
void sl_onnx_set_int(struct sl_onnx_builder *b, const char *name, int64_t value);
void sl_onnx_set_float(struct sl_onnx_builder *b, const char *name, float value);
void sl_onnx_set_text(struct sl_onnx_builder *b, const char *name, const char *value);
void sl_onnx_set_ints(struct sl_onnx_builder *b, const char *name, const int64_t *values, int32_t count);
void sl_onnx_set_floats(struct sl_onnx_builder *b, const char *name, const float *values, int32_t count);
void sl_onnx_set_texts(struct sl_onnx_builder *b, const char *name, const char *const *values, int32_t count);

/* A node with the attributes set since the last one. Names that are "" are absent. */
void sl_onnx_add_node(struct sl_onnx_builder *b, const char *op, const struct sl_onnx_name *inputs, int32_t input_count,
                      const struct sl_onnx_name *outputs, int32_t output_count);

/* The common case: up to three inputs (NULL ends them), one output under a new name. */
struct sl_onnx_name sl_onnx_add(struct sl_onnx_builder *b, const char *op, const struct sl_onnx_name *x,
                                const struct sl_onnx_name *y, const struct sl_onnx_name *z);

/* Constants. */
struct sl_onnx_name sl_onnx_add_floats(struct sl_onnx_builder *b, const char *name, const int64_t *shape, int32_t rank,
                                       const float *data);
struct sl_onnx_name sl_onnx_add_ints(struct sl_onnx_builder *b, const int64_t *values, int32_t count);
struct sl_onnx_name sl_onnx_add_scalar(struct sl_onnx_builder *b, float value);
struct sl_onnx_name sl_onnx_add_index(struct sl_onnx_builder *b, int64_t value);

/* Inputs and outputs of the graph. `dims[d]` < 0 is the free dimension named `free_names[-1 - dims[d]]`. */
enum { SL_ONNX_BATCH = -1, SL_ONNX_TIME = -2, SL_ONNX_SOURCE_TIME = -3 };
void sl_onnx_add_input(struct sl_onnx_builder *b, const char *name, enum sl_onnx_type type, const int64_t *dims,
                       int32_t rank);
void sl_onnx_add_output(struct sl_onnx_builder *b, const char *name, enum sl_onnx_type type, const int64_t *dims,
                        int32_t rank);

/* The real steps of each sequence on the axis: the input of the file; "": there is none, all steps are real. */
struct sl_onnx_name sl_onnx_get_lengths(const struct sl_onnx_builder *b, enum sl_axis axis);

/* A name that is not used yet, beginning with `stem`. */
struct sl_onnx_name sl_onnx_make_name(struct sl_onnx_builder *b, const char *stem);

/* y = activation(x); without an activation it is x itself. */
struct sl_onnx_name sl_onnx_add_activation(struct sl_onnx_builder *b, const struct seqlstm_activation *activation,
                                           const struct sl_onnx_name *x);

/* Joins what stands in `x` as `kind` (SEQLSTM_KIND_MERGE_…) over the last axis. */
struct sl_onnx_name sl_onnx_add_merge(struct sl_onnx_builder *b, uint32_t kind, const struct sl_onnx_name *x,
                                      int32_t count);

/* Refuses an option of a layer: INVALID_CONFIG with its place. */
seqlstm_status sl_onnx_refuse(struct sl_onnx_builder *b, const struct sl_node *node, uint32_t option,
                              const char *reason);

/* One operation of the graph, by file. */
seqlstm_status sl_onnx_add_recurrent(struct sl_onnx_builder *b, const struct sl_node *node);
seqlstm_status sl_onnx_add_attention(struct sl_onnx_builder *b, const struct sl_node *node);
seqlstm_status sl_onnx_add_gather(struct sl_onnx_builder *b, const struct sl_node *node);
seqlstm_status sl_onnx_add_rowwise(struct sl_onnx_builder *b, const struct sl_node *node);

#endif
