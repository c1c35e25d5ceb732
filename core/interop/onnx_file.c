/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file, read. Field numbers are those of onnx.proto. */
#include "interop/onnx_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "interop/protobuf_read.h"

#define FILE_BYTES_MAX ((size_t)INT32_MAX)

struct parse {
    struct sl_onnx_file *file;
    const char *path;
    struct seqlstm_error *err;
};

static seqlstm_status fail(const struct parse *p, const char *what)
{
    SEQLSTM_FAIL(p->err, SEQLSTM_CORRUPT_DATA, "%s: no ONNX file, or a damaged one: %s", p->path, what);
}

static seqlstm_status no_memory(const struct parse *p)
{
    SEQLSTM_FAIL(p->err, SEQLSTM_NO_MEMORY, "no memory for %s", p->path);
}

/* A terminated copy; NULL: no memory. */
static const char *copy_text(const struct parse *p, const struct sl_protobuf_field *field)
{
    char *text = sl_arena_alloc(&p->file->arena, field->bytes + 1);
    if (text) {
        memcpy(text, field->data, field->bytes);
        text[field->bytes] = '\0';
    }
    return text;
}

static int32_t count_fields(const void *data, size_t bytes, uint32_t number)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(data, bytes);
    struct sl_protobuf_field field;
    int32_t count = 0;
    while (sl_protobuf_next(&reader, &field))
        count += field.number == number;
    return count;
}

/* ---- tensors --------------------------------------------------------------------------------------------- */

static bool add_dim(struct sl_onnx_tensor *tensor, uint64_t dim)
{
    if (tensor->rank == SL_ONNX_RANK_MAX || dim == 0 || dim > INT32_MAX || tensor->elems > INT32_MAX / (int64_t)dim)
        return false;
    tensor->shape[tensor->rank++] = (int64_t)dim;
    tensor->elems *= (int64_t)dim;
    return true;
}

/* Raw bytes and packed floats look the same: little-endian float32. */
static seqlstm_status copy_values(const struct parse *p, const struct sl_protobuf_field *data,
                                  struct sl_onnx_tensor *tensor)
{
    if (data->bytes != (size_t)tensor->elems * sizeof(float))
        return fail(p, "a tensor has another size than its shape says");
    float *values = SL_ARENA_ARRAY(&p->file->arena, float, (size_t)tensor->elems);
    if (values == NULL)
        return no_memory(p);
    memcpy(values, data->data, data->bytes);
    tensor->values = values;
    return SEQLSTM_OK;
}

static seqlstm_status parse_tensor(const struct parse *p, const struct sl_protobuf_field *message,
                                   struct sl_onnx_tensor *tensor)
{
    enum { DIMS = 1, TYPE = 2, FLOATS = 4, NAME = 8, RAW = 9, EXTERNAL = 13, TYPE_FLOAT = 1 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field, data = {0};
    bool is_float = false, is_sound = true;
    *tensor = (struct sl_onnx_tensor){.name = "", .elems = 1};
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == DIMS && !field.is_bytes) {
            is_sound = is_sound && add_dim(tensor, field.value);
        } else if (field.number == DIMS) {
            struct sl_protobuf_reader dims = sl_protobuf_begin(field.data, field.bytes);
            for (uint64_t dim; sl_protobuf_next_varint(&dims, &dim);)
                is_sound = is_sound && add_dim(tensor, dim);
        } else if (field.number == TYPE) {
            is_float = field.value == TYPE_FLOAT;
        } else if (field.number == NAME) {
            tensor->name = copy_text(p, &field);
        } else if (field.number == RAW || (field.number == FLOATS && field.is_bytes)) {
            data = field;
        } else if (field.number == EXTERNAL) {
            return fail(p, "its weights are in other files (external data); save the model as one file");
        }
    }
    if (reader.failed)
        return fail(p, "a tensor is cut off");
    if (tensor->name == NULL)
        return no_memory(p);
    return is_float && is_sound ? copy_values(p, &data, tensor) : SEQLSTM_OK; /* others are not weights */
}

/* ---- nodes ----------------------------------------------------------------------------------------------- */

/* Numbers of a list, packed or one by one. */
static bool add_number(struct sl_onnx_attribute *a, const struct sl_protobuf_field *field, bool is_float)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(field->data, field->bytes);
    if (!field->is_bytes) {
        if (a->count == SL_ONNX_LIST_MAX)
            return false;
        a->floats[a->count] = sl_protobuf_field_get_float(field);
        a->ints[a->count++] = (int64_t)field->value;
        return true;
    }
    if (is_float) {
        for (size_t at = 0; at + sizeof(float) <= field->bytes; at += sizeof(float)) {
            if (a->count == SL_ONNX_LIST_MAX)
                return false;
            memcpy(&a->floats[a->count++], field->data + at, sizeof(float));
        }
        return true;
    }
    for (uint64_t value; sl_protobuf_next_varint(&reader, &value);) {
        if (a->count == SL_ONNX_LIST_MAX)
            return false;
        a->ints[a->count++] = (int64_t)value;
    }
    return true;
}

/* `out_tensor`: the value of a Constant node. */
static seqlstm_status parse_attribute(const struct parse *p, const struct sl_protobuf_field *message,
                                      struct sl_onnx_attribute *a, struct sl_onnx_tensor *out_tensor)
{
    enum { NAME = 1, FLOAT = 2, INT = 3, TEXT = 4, TENSOR = 5, FLOATS = 7, INTS = 8, TEXTS = 9 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    *a = (struct sl_onnx_attribute){.name = ""};
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == NAME) {
            a->name = copy_text(p, &field);
        } else if (field.number == FLOAT) {
            a->f = sl_protobuf_field_get_float(&field);
        } else if (field.number == INT) {
            a->i = (int64_t)field.value;
        } else if (field.number == TEXT) {
            a->text = copy_text(p, &field);
        } else if (field.number == TENSOR) {
            SEQLSTM_TRY(parse_tensor(p, &field, out_tensor));
        } else if (field.number == FLOATS || field.number == INTS) {
            if (!add_number(a, &field, field.number == FLOATS))
                return SEQLSTM_OK; /* a list as long is none of a layer */
        } else if (field.number == TEXTS && a->count < SL_ONNX_LIST_MAX) {
            a->texts[a->count++] = copy_text(p, &field);
        }
    }
    return reader.failed ? fail(p, "an attribute is cut off") : a->name ? SEQLSTM_OK : no_memory(p);
}

static seqlstm_status parse_node(const struct parse *p, const struct sl_protobuf_field *message,
                                 struct sl_onnx_node *node, struct sl_onnx_tensor *out_constant)
{
    enum { INPUT = 1, OUTPUT = 2, NAME = 3, OP = 4, ATTRIBUTE = 5 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    int32_t count = count_fields(message->data, message->bytes, ATTRIBUTE);
    struct sl_onnx_attribute *attributes = SL_ARENA_ARRAY(&p->file->arena, struct sl_onnx_attribute, (size_t)count + 1);
    *node = (struct sl_onnx_node){.op = "", .name = "", .attributes = attributes};
    if (attributes == NULL)
        return no_memory(p);
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == INPUT && node->input_count < SL_ONNX_INPUTS_MAX)
            node->inputs[node->input_count++] = copy_text(p, &field);
        else if (field.number == OUTPUT && node->output == NULL)
            node->output = copy_text(p, &field);
        else if (field.number == NAME)
            node->name = copy_text(p, &field);
        else if (field.number == OP)
            node->op = copy_text(p, &field);
        else if (field.number == ATTRIBUTE)
            SEQLSTM_TRY(parse_attribute(p, &field, &attributes[node->attribute_count++], out_constant));
    }
    if (reader.failed)
        return fail(p, "a node is cut off");
    bool is_whole = node->op && node->name;
    for (int32_t k = 0; k < node->input_count; k++)
        is_whole = is_whole && node->inputs[k];
    return is_whole ? SEQLSTM_OK : no_memory(p);
}

/* ---- the graph -------------------------------------------------------------------------------------------- */

static seqlstm_status parse_graph(const struct parse *p, const struct sl_protobuf_field *graph)
{
    enum { NODE = 1, INITIALIZER = 5 };
    int32_t nodes = count_fields(graph->data, graph->bytes, NODE);
    int32_t tensors = nodes + count_fields(graph->data, graph->bytes, INITIALIZER);
    struct sl_onnx_node *node = SL_ARENA_ARRAY(&p->file->arena, struct sl_onnx_node, (size_t)nodes + 1);
    struct sl_onnx_tensor *tensor = SL_ARENA_ARRAY(&p->file->arena, struct sl_onnx_tensor, (size_t)tensors + 1);
    struct sl_protobuf_reader reader = sl_protobuf_begin(graph->data, graph->bytes);
    struct sl_protobuf_field field;
    if (node == NULL || tensor == NULL)
        return no_memory(p);
    p->file->nodes = node;
    p->file->tensors = tensor;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == INITIALIZER) {
            SEQLSTM_TRY(parse_tensor(p, &field, &tensor[p->file->tensor_count++]));
        } else if (field.number == NODE) {
            struct sl_onnx_tensor constant = {0};
            struct sl_onnx_node *here = &node[p->file->node_count++];
            SEQLSTM_TRY(parse_node(p, &field, here, &constant));
            if (strcmp(here->op, "Constant") == 0 && here->output) {
                constant.name = here->output;
                tensor[p->file->tensor_count++] = constant;
            }
        }
    }
    return reader.failed ? fail(p, "its graph is cut off") : SEQLSTM_OK;
}

static seqlstm_status parse_model(const struct parse *p, size_t bytes)
{
    enum { MODEL_GRAPH = 7 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(p->file->bytes, bytes);
    struct sl_protobuf_field field;
    bool has_graph = false;
    while (sl_protobuf_next(&reader, &field))
        if (field.number == MODEL_GRAPH && field.is_bytes && !has_graph) {
            has_graph = true;
            SEQLSTM_TRY(parse_graph(p, &field));
        }
    return reader.failed ? fail(p, "a field runs over the end") : has_graph ? SEQLSTM_OK : fail(p, "it has no graph");
}

seqlstm_status sl_onnx_file_open(const char *path, struct sl_onnx_file **out_file, struct seqlstm_error *err)
{
    struct sl_onnx_file *file = calloc(1, sizeof *file);
    struct parse p = {file, path, err};
    size_t bytes = 0;
    if (file == NULL)
        return no_memory(&p);
    sl_arena_init(&file->arena);
    seqlstm_status status = sl_file_read(path, FILE_BYTES_MAX, &file->bytes, &bytes, err);
    if (status == SEQLSTM_OK)
        status = parse_model(&p, bytes);
    if (status != SEQLSTM_OK) {
        sl_onnx_file_close(file);
        return status;
    }
    *out_file = file;
    return SEQLSTM_OK;
}

void sl_onnx_file_close(struct sl_onnx_file *file)
{
    if (file == NULL)
        return;
    sl_arena_deinit(&file->arena);
    free(file->bytes);
    free(file);
}

const struct sl_onnx_tensor *sl_onnx_file_find_tensor(const struct sl_onnx_file *file, const char *name)
{
    for (int32_t t = 0; name && t < file->tensor_count; t++)
        if (strcmp(file->tensors[t].name, name) == 0)
            return &file->tensors[t];
    return NULL;
}

const struct sl_onnx_attribute *sl_onnx_node_find_attribute(const struct sl_onnx_node *node, const char *name)
{
    for (int32_t a = 0; a < node->attribute_count; a++)
        if (strcmp(node->attributes[a].name, name) == 0)
            return &node->attributes[a];
    return NULL;
}

const struct sl_onnx_node *sl_onnx_file_find_writer(const struct sl_onnx_file *file, const char *name)
{
    for (int32_t n = 0; name && n < file->node_count; n++)
        if (file->nodes[n].output && strcmp(file->nodes[n].output, name) == 0)
            return &file->nodes[n];
    return NULL;
}
