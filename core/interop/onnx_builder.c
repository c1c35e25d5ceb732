/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an ONNX graph. Field numbers are those of onnx.proto. */
#include "interop/onnx_builder.h"

#include <stdio.h>
#include <string.h>

#include "base/value/error_place.h"
#include "interop/protobuf.h"

enum graph_field { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum node_field { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum attribute_field {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_TEXT = 4,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_TEXTS = 9,
    ATTRIBUTE_TYPE = 20
};
enum attribute_type { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_TEXT = 3, TYPE_FLOATS = 6, TYPE_INTS = 7, TYPE_TEXTS = 8 };
enum tensor_field { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };

/* ---- attributes ---------------------------------------------------------------------------------------- */

static struct sl_buf begin_attribute(const char *name, enum attribute_type type)
{
    struct sl_buf attribute = {0};
    sl_protobuf_append_text(&attribute, ATTRIBUTE_NAME, name);
    sl_protobuf_append_int(&attribute, ATTRIBUTE_TYPE, type);
    return attribute;
}

static void end_attribute(struct sl_onnx_builder *b, struct sl_buf *attribute)
{
    sl_protobuf_append_message(&b->attributes, NODE_ATTRIBUTE, attribute);
    sl_buf_deinit(attribute);
}

void sl_onnx_set_int(struct sl_onnx_builder *b, const char *name, int64_t value)
{
    struct sl_buf attribute = begin_attribute(name, TYPE_INT);
    sl_protobuf_append_int(&attribute, ATTRIBUTE_INT, value);
    end_attribute(b, &attribute);
}

void sl_onnx_set_float(struct sl_onnx_builder *b, const char *name, float value)
{
    struct sl_buf attribute = begin_attribute(name, TYPE_FLOAT);
    sl_protobuf_append_float(&attribute, ATTRIBUTE_FLOAT, value);
    end_attribute(b, &attribute);
}

void sl_onnx_set_text(struct sl_onnx_builder *b, const char *name, const char *value)
{
    struct sl_buf attribute = begin_attribute(name, TYPE_TEXT);
    sl_protobuf_append_text(&attribute, ATTRIBUTE_TEXT, value);
    end_attribute(b, &attribute);
}

void sl_onnx_set_ints(struct sl_onnx_builder *b, const char *name, const int64_t *values, int32_t count)
{
    struct sl_buf attribute = begin_attribute(name, TYPE_INTS);
    for (int32_t k = 0; k < count; k++)
        sl_protobuf_append_int(&attribute, ATTRIBUTE_INTS, values[k]);
    end_attribute(b, &attribute);
}

void sl_onnx_set_floats(struct sl_onnx_builder *b, const char *name, const float *values, int32_t count)
{
    struct sl_buf attribute = begin_attribute(name, TYPE_FLOATS);
    for (int32_t k = 0; k < count; k++)
        sl_protobuf_append_float(&attribute, ATTRIBUTE_FLOATS, values[k]);
    end_attribute(b, &attribute);
}

void sl_onnx_set_texts(struct sl_onnx_builder *b, const char *name, const char *const *values, int32_t count)
{
    struct sl_buf attribute = begin_attribute(name, TYPE_TEXTS);
    for (int32_t k = 0; k < count; k++)
        sl_protobuf_append_text(&attribute, ATTRIBUTE_TEXTS, values[k]);
    end_attribute(b, &attribute);
}

/* ---- nodes and names ------------------------------------------------------------------------------------ */

struct sl_onnx_name sl_onnx_make_name(struct sl_onnx_builder *b, const char *stem)
{
    struct sl_onnx_name name;
    snprintf(name.text, sizeof name.text, "%.*s:%d", SL_ONNX_NAME_BYTES - 16, stem, b->serial++);
    return name;
}

void sl_onnx_add_node(struct sl_onnx_builder *b, const char *op, const struct sl_onnx_name *inputs, int32_t input_count,
                      const struct sl_onnx_name *outputs, int32_t output_count)
{
    struct sl_buf node = {0};
    while (input_count > 0 && inputs[input_count - 1].text[0] == '\0')
        input_count--;
    for (int32_t k = 0; k < input_count; k++)
        sl_protobuf_append_text(&node, NODE_INPUT, inputs[k].text);
    for (int32_t k = 0; k < output_count; k++)
        sl_protobuf_append_text(&node, NODE_OUTPUT, outputs[k].text);
    struct sl_onnx_name name = sl_onnx_make_name(b, op);
    sl_protobuf_append_text(&node, NODE_NAME, name.text);
    sl_protobuf_append_text(&node, NODE_OP, op);
    node.failed = node.failed || b->attributes.failed;
    sl_buf_append(&node, b->attributes.data, b->attributes.length_bytes);
    sl_buf_truncate(&b->attributes, 0);
    sl_protobuf_append_message(&b->graph_fields, GRAPH_NODE, &node);
    sl_buf_deinit(&node);
}

struct sl_onnx_name sl_onnx_add(struct sl_onnx_builder *b, const char *op, const struct sl_onnx_name *x,
                                const struct sl_onnx_name *y, const struct sl_onnx_name *z)
{
    struct sl_onnx_name inputs[3], output = sl_onnx_make_name(b, op);
    const struct sl_onnx_name *given[3] = {x, y, z};
    int32_t count = 0;
    while (count < 3 && given[count]) {
        inputs[count] = *given[count];
        count++;
    }
    sl_onnx_add_node(b, op, inputs, count, &output, 1);
    return output;
}

/* ---- constants, inputs, outputs --------------------------------------------------------------------------- */

/* Tensors are little-endian in the file, as this program's machines are (base/file.h). */
static struct sl_onnx_name add_constant(struct sl_onnx_builder *b, const char *stem, enum sl_onnx_type type,
                                        const int64_t *shape, int32_t rank, const void *data, size_t element_bytes)
{
    struct sl_onnx_name name = sl_onnx_make_name(b, stem);
    struct sl_buf tensor = {0};
    size_t elems = 1;
    for (int32_t d = 0; d < rank; d++) {
        sl_protobuf_append_int(&tensor, TENSOR_DIMS, shape[d]);
        elems *= (size_t)shape[d];
    }
    sl_protobuf_append_int(&tensor, TENSOR_TYPE, type);
    sl_protobuf_append_text(&tensor, TENSOR_NAME, name.text);
    sl_protobuf_append_bytes(&tensor, TENSOR_RAW, data, elems * element_bytes);
    sl_protobuf_append_message(&b->graph_fields, GRAPH_INITIALIZER, &tensor);
    sl_buf_deinit(&tensor);
    return name;
}

struct sl_onnx_name sl_onnx_add_floats(struct sl_onnx_builder *b, const char *name, const int64_t *shape, int32_t rank,
                                       const float *data)
{
    return add_constant(b, name, SL_ONNX_FLOAT, shape, rank, data, sizeof *data);
}

struct sl_onnx_name sl_onnx_add_ints(struct sl_onnx_builder *b, const int64_t *values, int32_t count)
{
    int64_t shape = count;
    return add_constant(b, "constant", SL_ONNX_INT64, &shape, 1, values, sizeof *values);
}

struct sl_onnx_name sl_onnx_add_scalar(struct sl_onnx_builder *b, float value)
{
    return add_constant(b, "constant", SL_ONNX_FLOAT, NULL, 0, &value, sizeof value);
}

struct sl_onnx_name sl_onnx_add_index(struct sl_onnx_builder *b, int64_t value)
{
    return add_constant(b, "constant", SL_ONNX_INT64, NULL, 0, &value, sizeof value);
}

static void add_value_info(struct sl_onnx_builder *b, enum graph_field field, const char *name, enum sl_onnx_type type,
                           const int64_t *dims, int32_t rank)
{
    enum {
        INFO_NAME = 1,
        INFO_TYPE = 2,
        TYPE_TENSOR = 1,
        TENSOR_ELEMENT = 1,
        TENSOR_SHAPE = 2,
        SHAPE_DIM = 1,
        DIM_VALUE = 1,
        DIM_NAME = 2
    };
    static const char *const free_names[] = {"batch", "time", "source_time"};
    struct sl_buf shape = {0}, tensor = {0}, wrapped = {0}, info = {0};
    for (int32_t d = 0; d < rank; d++) {
        struct sl_buf dim = {0};
        if (dims[d] < 0)
            sl_protobuf_append_text(&dim, DIM_NAME, free_names[-1 - dims[d]]);
        else
            sl_protobuf_append_int(&dim, DIM_VALUE, dims[d]);
        sl_protobuf_append_message(&shape, SHAPE_DIM, &dim);
        sl_buf_deinit(&dim);
    }
    sl_protobuf_append_int(&tensor, TENSOR_ELEMENT, type);
    sl_protobuf_append_message(&tensor, TENSOR_SHAPE, &shape);
    sl_protobuf_append_message(&wrapped, TYPE_TENSOR, &tensor);
    sl_protobuf_append_text(&info, INFO_NAME, name);
    sl_protobuf_append_message(&info, INFO_TYPE, &wrapped);
    sl_protobuf_append_message(&b->graph_fields, field, &info);
    sl_buf_deinit(&shape);
    sl_buf_deinit(&tensor);
    sl_buf_deinit(&wrapped);
    sl_buf_deinit(&info);
}

void sl_onnx_add_input(struct sl_onnx_builder *b, const char *name, enum sl_onnx_type type, const int64_t *dims,
                       int32_t rank)
{
    add_value_info(b, GRAPH_INPUT, name, type, dims, rank);
}

void sl_onnx_add_output(struct sl_onnx_builder *b, const char *name, enum sl_onnx_type type, const int64_t *dims,
                        int32_t rank)
{
    add_value_info(b, GRAPH_OUTPUT, name, type, dims, rank);
}

seqlstm_status sl_onnx_refuse(struct sl_onnx_builder *b, const struct sl_node *node, uint32_t option,
                              const char *reason)
{
    struct sl_option_place place = sl_graph_find_option(b->graph, node, option);
    const bool valued = option != SEQLSTM_OPTION_NONE && place.value != NULL;
    seqlstm_error_set(b->err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "layer `%s`, `%s%s%s`: %s", node->name,
                      place.key, valued ? ": " : "", valued ? place.value : "", reason);
    if (place.place.line > 0)
        sl_error_place_set(b->err, place.place.file, place.place.line, place.place.column);
    return SEQLSTM_INVALID_CONFIG;
}
