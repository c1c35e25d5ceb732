/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file, read: its nodes in order, with their attributes, and its constant tensors. Everything is borrowed from
 * the file's bytes, which stay in memory with it.
 *
 * Structure alone is checked here, all of it: indices, lengths and shapes that do not fit are CORRUPT_DATA. */
#ifndef SL_INTEROP_ONNX_FILE_H
#define SL_INTEROP_ONNX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/memory/arena.h"

enum { SL_ONNX_RANK_MAX = 4, SL_ONNX_INPUTS_MAX = 8, SL_ONNX_LIST_MAX = 16 };

/* A constant: float32, as float16 and float64 are not in LSTMs of real files. */
struct sl_onnx_tensor {
    const char *name;
    int32_t rank;
    int64_t shape[SL_ONNX_RANK_MAX];
    int64_t elems;
    const float *values; /* NULL: of another type */
};

struct sl_onnx_attribute {
    const char *name;
    int64_t i;
    float f;
    const char *text; /* NULL: none */
    int32_t count;    /* of the list */
    float floats[SL_ONNX_LIST_MAX];
    int64_t ints[SL_ONNX_LIST_MAX];
    const char *texts[SL_ONNX_LIST_MAX];
};

struct sl_onnx_node {
    const char *op;
    const char *name;
    const char *inputs[SL_ONNX_INPUTS_MAX]; /* "" and NULL: absent */
    int32_t input_count;
    const char *output; /* the first one */
    const struct sl_onnx_attribute *attributes;
    int32_t attribute_count;
};

struct sl_onnx_file {
    struct sl_arena arena;
    char *bytes;
    const struct sl_onnx_node *nodes;
    int32_t node_count;
    struct sl_onnx_tensor *tensors;
    int32_t tensor_count;
};

/* Errors: NOT_FOUND, IO, NO_MEMORY, CORRUPT_DATA. [any thread] */
seqlstm_status sl_onnx_file_open(const char *path, struct sl_onnx_file **out_file, struct seqlstm_error *err);
void sl_onnx_file_close(struct sl_onnx_file *file);

/* NULL where there is none. */
const struct sl_onnx_tensor *sl_onnx_file_find_tensor(const struct sl_onnx_file *file, const char *name);
const struct sl_onnx_attribute *sl_onnx_node_find_attribute(const struct sl_onnx_node *node, const char *name);
/* The node that writes `name`; NULL: an input of the graph or a constant. */
const struct sl_onnx_node *sl_onnx_file_find_writer(const struct sl_onnx_file *file, const char *name);

#endif
