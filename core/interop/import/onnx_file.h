/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file in memory: its nodes in order, with their attributes, its constant tensors (also those kept in other
 * files of its folder), its inputs and outputs. Everything lives as long as the file.
 *
 * Only the structure is checked here: lengths and shapes that do not fit are CORRUPT_DATA. */
#ifndef SL_INTEROP_ONNX_FILE_H
#define SL_INTEROP_ONNX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"

struct sl_onnx_external;

enum { SL_ONNX_RANK_MAX = 8 };

/* A constant. Only numbers of the types float32, float64, int32, int64 and bool are read. */
struct sl_onnx_tensor {
    const char *name;
    int32_t rank;
    int64_t shape[SL_ONNX_RANK_MAX];
    int64_t elems;
    const float *floats; /* NULL: it holds integers */
    const int64_t *ints; /* both NULL: of another type */
};

struct sl_onnx_attribute {
    const char *name;
    int64_t i;
    float f;
    const char *text; /* NULL: none */
    int32_t count;    /* of the list that is not NULL */
    float *floats;
    int64_t *ints;
    const char **texts;
    const struct sl_onnx_tensor *tensor;
};

struct sl_onnx_node {
    const char *op;
    const char *name;
    const char *domain;  /* "": ONNX's own operators */
    const char **inputs; /* "": absent */
    int32_t input_count;
    const char **outputs; /* "": absent */
    int32_t output_count;
    const struct sl_onnx_attribute *attributes;
    int32_t attribute_count;
};

/* An input or output of the graph. */
struct sl_onnx_port {
    const char *name;
    int64_t type;                         /* SL_ONNX_FLOAT …; 0: not given */
    int32_t rank;                         /* -1: not given */
    int64_t dims[SL_ONNX_RANK_MAX];       /* -1: free */
    const char *params[SL_ONNX_RANK_MAX]; /* names of free dimensions; NULL: none */
};

struct sl_onnx_file {
    struct sl_arena arena;
    char *bytes;
    struct sl_onnx_external *external; /* files with numbers of tensors */
    int64_t opset;
    const struct sl_onnx_node *nodes;
    int32_t node_count;
    struct sl_onnx_tensor *tensors; /* initializers */
    int32_t tensor_count;
    struct sl_onnx_port *inputs; /* including those that have a value among `tensors` */
    int32_t input_count;
    struct sl_onnx_port *outputs;
    int32_t output_count;
};

/* Errors: NOT_FOUND, IO, NO_MEMORY, CORRUPT_DATA. [any thread] */
seqlstm_status sl_onnx_file_open(const char *path, struct sl_onnx_file **out_file, struct seqlstm_error *err);
void sl_onnx_file_close(struct sl_onnx_file *file);

/* NULL where there is none. */
const struct sl_onnx_attribute *sl_onnx_node_find_attribute(const struct sl_onnx_node *node, const char *name);

/* The attribute's number, or `absent`. */
int64_t sl_onnx_node_get_int(const struct sl_onnx_node *node, const char *name, int64_t absent);
float sl_onnx_node_get_float(const struct sl_onnx_node *node, const char *name, float absent);

/* Name of input or output k; "" where it is absent. */
const char *sl_onnx_node_get_input(const struct sl_onnx_node *node, int32_t k);
const char *sl_onnx_node_get_output(const struct sl_onnx_node *node, int32_t k);

#endif
