/* SPDX-License-Identifier: Apache-2.0 */
/* An ONNX file, read. Field numbers are those of onnx.proto. */
#include "interop/import/onnx_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "interop/import/onnx_external.h"
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
        if (field->bytes > 0)
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

enum tensor_type { TYPE_FLOAT = 1, TYPE_INT32 = 6, TYPE_INT64 = 7, TYPE_BOOL = 9, TYPE_DOUBLE = 11 };

static bool add_dim(struct sl_onnx_tensor *tensor, uint64_t dim)
{
    if (tensor->rank == SL_ONNX_RANK_MAX || dim > INT32_MAX || (dim > 0 && tensor->elems > INT32_MAX / (int64_t)dim))
        return false;
    tensor->shape[tensor->rank++] = (int64_t)dim;
    tensor->elems *= (int64_t)dim;
    return true;
}

/* Counts the numbers of a list field, which are packed or one per field: integers are varints, floats are
 * little-endian bytes. -1: the last one is cut off. */
static int64_t count_numbers(const struct sl_protobuf_field *message, uint32_t number, size_t bytes_each)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    int64_t count = 0;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number != number)
            continue;
        struct sl_protobuf_reader list = sl_protobuf_begin(field.data, field.bytes);
        if (!field.is_bytes)
            count++;
        else if (bytes_each)
            count += (int64_t)(field.bytes / bytes_each);
        else
            for (uint64_t value; sl_protobuf_next_varint(&list, &value);)
                count++;
        if (list.failed || (field.is_bytes && bytes_each && field.bytes % bytes_each))
            return -1;
    }
    return count;
}

static void copy_integers(const struct sl_protobuf_field *message, uint32_t number, int64_t *out)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number != number)
            continue;
        struct sl_protobuf_reader list = sl_protobuf_begin(field.data, field.bytes);
        if (!field.is_bytes)
            *out++ = (int64_t)field.value;
        else
            for (uint64_t value; sl_protobuf_next_varint(&list, &value);)
                *out++ = (int64_t)value;
    }
}

static void copy_floats(const struct sl_protobuf_field *message, uint32_t number, float *out)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number != number)
            continue;
        size_t count = field.is_bytes ? field.bytes / sizeof(float) : 1;
        if (field.is_bytes && count)
            memcpy(out, field.data, count * sizeof(float));
        else if (!field.is_bytes)
            *out = sl_protobuf_field_get_float(&field);
        out += count;
    }
}

/* One number of `raw`. */
static void convert_raw(const unsigned char *raw, enum tensor_type type, float *out_float, int64_t *out_int)
{
    double wide;
    int32_t narrow;
    switch (type) {
    case TYPE_FLOAT:
        memcpy(out_float, raw, sizeof *out_float);
        break;
    case TYPE_DOUBLE:
        memcpy(&wide, raw, sizeof wide);
        *out_float = (float)wide;
        break;
    case TYPE_INT32:
        memcpy(&narrow, raw, sizeof narrow);
        *out_int = narrow;
        break;
    case TYPE_INT64:
        memcpy(out_int, raw, sizeof *out_int);
        break;
    default:
        *out_int = *raw;
    }
}

static size_t get_type_bytes(enum tensor_type type)
{
    return type == TYPE_BOOL ? 1 : type == TYPE_FLOAT || type == TYPE_INT32 ? 4 : 8;
}

static seqlstm_status copy_values(const struct parse *p, const struct sl_protobuf_field *message,
                                  const struct sl_protobuf_field *raw, enum tensor_type type,
                                  struct sl_onnx_tensor *tensor)
{
    enum { FLOATS = 4, INT32S = 5, INT64S = 7 };
    bool is_float = type == TYPE_FLOAT || type == TYPE_DOUBLE;
    size_t each = get_type_bytes(type), count = (size_t)tensor->elems;
    uint32_t list = type == TYPE_FLOAT ? FLOATS : type == TYPE_INT64 ? INT64S : INT32S;
    if (raw->number == 0 && type == TYPE_DOUBLE)
        return SEQLSTM_OK;
    bool fits = raw->number ? raw->bytes == count * each
                            : count_numbers(message, list, is_float ? sizeof(float) : 0) == tensor->elems;
    if (!fits)
        return fail(p, "a tensor has another size than its shape says");
    float *floats = is_float ? SL_ARENA_ARRAY(&p->file->arena, float, count + 1) : NULL;
    int64_t *ints = is_float ? NULL : SL_ARENA_ARRAY(&p->file->arena, int64_t, count + 1);
    if (floats == NULL && ints == NULL)
        return no_memory(p);
    for (size_t k = 0; raw->number && k < count; k++)
        convert_raw(raw->data + k * each, type, floats ? &floats[k] : NULL, ints ? &ints[k] : NULL);
    if (raw->number == 0 && is_float)
        copy_floats(message, list, floats);
    else if (raw->number == 0)
        copy_integers(message, list, ints);
    tensor->floats = floats;
    tensor->ints = ints;
    return SEQLSTM_OK;
}

static seqlstm_status parse_tensor(const struct parse *p, const struct sl_protobuf_field *message,
                                   struct sl_onnx_tensor *tensor)
{
    enum { DIMS = 1, TYPE = 2, NAME = 8, RAW = 9, LOCATION = 14, LOCATION_EXTERNAL = 1 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field, raw = {0};
    uint64_t type = 0;
    bool is_sound = true, is_external = false;
    *tensor = (struct sl_onnx_tensor){.name = "", .elems = 1};
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == DIMS && !field.is_bytes) {
            is_sound = is_sound && add_dim(tensor, field.value);
        } else if (field.number == DIMS) {
            struct sl_protobuf_reader dims = sl_protobuf_begin(field.data, field.bytes);
            for (uint64_t dim; sl_protobuf_next_varint(&dims, &dim);)
                is_sound = is_sound && add_dim(tensor, dim);
            reader.failed = reader.failed || dims.failed;
        } else if (field.number == TYPE) {
            type = field.value;
        } else if (field.number == NAME) {
            tensor->name = copy_text(p, &field);
        } else if (field.number == RAW && field.is_bytes) {
            raw = field;
        } else if (field.number == LOCATION) {
            is_external = field.value == LOCATION_EXTERNAL;
        }
    }
    if (reader.failed)
        return fail(p, "a tensor is cut off");
    if (tensor->name == NULL)
        return no_memory(p);
    bool is_read =
        type == TYPE_FLOAT || type == TYPE_INT32 || type == TYPE_INT64 || type == TYPE_BOOL || type == TYPE_DOUBLE;
    if (!is_read || !is_sound)
        return SEQLSTM_OK;
    if (is_external) {
        raw.number = RAW;
        SEQLSTM_TRY(sl_onnx_external_read(&p->file->external, p->path, message, &raw.data, &raw.bytes, p->err));
    }
    return copy_values(p, message, &raw, (enum tensor_type)type, tensor);
}

/* ---- nodes ----------------------------------------------------------------------------------------------- */

enum attribute_field {
    A_NAME = 1,
    A_FLOAT = 2,
    A_INT = 3,
    A_TEXT = 4,
    A_TENSOR = 5,
    A_FLOATS = 7,
    A_INTS = 8,
    A_TEXTS = 9
};

/* The attribute's list, of whichever type it has. */
static seqlstm_status parse_list(const struct parse *p, const struct sl_protobuf_field *message, uint32_t number,
                                 struct sl_onnx_attribute *a)
{
    struct sl_arena *arena = &p->file->arena;
    int64_t count = number == A_TEXTS ? count_fields(message->data, message->bytes, A_TEXTS)
                                      : count_numbers(message, number, number == A_FLOATS ? sizeof(float) : 0);
    bool is_made = false;
    if (count < 0)
        return fail(p, "an attribute is cut off");
    if (number == A_FLOATS) {
        is_made = (a->floats = SL_ARENA_ARRAY(arena, float, (size_t)count + 1)) != NULL;
        if (is_made)
            copy_floats(message, number, a->floats);
    } else if (number == A_INTS) {
        is_made = (a->ints = SL_ARENA_ARRAY(arena, int64_t, (size_t)count + 1)) != NULL;
        if (is_made)
            copy_integers(message, number, a->ints);
    } else {
        is_made = (a->texts = SL_ARENA_ARRAY(arena, const char *, (size_t)count + 1)) != NULL;
    }
    a->count = (int32_t)(number == A_TEXTS ? 0 : count);
    return is_made ? SEQLSTM_OK : no_memory(p);
}

static seqlstm_status parse_attribute(const struct parse *p, const struct sl_protobuf_field *message,
                                      struct sl_onnx_attribute *a)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    *a = (struct sl_onnx_attribute){.name = ""};
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == A_NAME) {
            a->name = copy_text(p, &field);
        } else if (field.number == A_FLOAT) {
            a->f = sl_protobuf_field_get_float(&field);
        } else if (field.number == A_INT) {
            a->i = (int64_t)field.value;
        } else if (field.number == A_TEXT) {
            a->text = copy_text(p, &field);
        } else if (field.number == A_TENSOR) {
            struct sl_onnx_tensor *tensor = SL_ARENA_NEW(&p->file->arena, struct sl_onnx_tensor);
            if (tensor == NULL)
                return no_memory(p);
            SEQLSTM_TRY(parse_tensor(p, &field, tensor));
            a->tensor = tensor;
        } else if (field.number >= A_FLOATS && field.number <= A_TEXTS) {
            if (a->floats == NULL && a->ints == NULL && a->texts == NULL)
                SEQLSTM_TRY(parse_list(p, message, field.number, a));
            if (field.number == A_TEXTS && a->texts)
                a->texts[a->count++] = copy_text(p, &field);
        }
    }
    return reader.failed ? fail(p, "an attribute is cut off") : a->name ? SEQLSTM_OK : no_memory(p);
}

static seqlstm_status parse_node(const struct parse *p, const struct sl_protobuf_field *message,
                                 struct sl_onnx_node *node)
{
    enum { INPUT = 1, OUTPUT = 2, NAME = 3, OP = 4, ATTRIBUTE = 5, DOMAIN = 7 };
    struct sl_arena *arena = &p->file->arena;
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    int32_t count = count_fields(message->data, message->bytes, ATTRIBUTE);
    struct sl_onnx_attribute *attributes = SL_ARENA_ARRAY(arena, struct sl_onnx_attribute, (size_t)count + 1);
    *node = (struct sl_onnx_node){.op = "", .name = "", .domain = "", .attributes = attributes};
    node->inputs = SL_ARENA_ARRAY(arena, const char *, (size_t)count_fields(message->data, message->bytes, INPUT) + 1);
    node->outputs =
        SL_ARENA_ARRAY(arena, const char *, (size_t)count_fields(message->data, message->bytes, OUTPUT) + 1);
    if (attributes == NULL || node->inputs == NULL || node->outputs == NULL)
        return no_memory(p);
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == INPUT)
            node->inputs[node->input_count++] = copy_text(p, &field);
        else if (field.number == OUTPUT)
            node->outputs[node->output_count++] = copy_text(p, &field);
        else if (field.number == NAME)
            node->name = copy_text(p, &field);
        else if (field.number == OP)
            node->op = copy_text(p, &field);
        else if (field.number == DOMAIN)
            node->domain = copy_text(p, &field);
        else if (field.number == ATTRIBUTE)
            SEQLSTM_TRY(parse_attribute(p, &field, &attributes[node->attribute_count++]));
    }
    if (reader.failed)
        return fail(p, "a node is cut off");
    bool is_whole = node->op && node->name && node->domain;
    for (int32_t k = 0; k < node->input_count; k++)
        is_whole = is_whole && node->inputs[k];
    for (int32_t k = 0; k < node->output_count; k++)
        is_whole = is_whole && node->outputs[k];
    return is_whole ? SEQLSTM_OK : no_memory(p);
}

/* ---- inputs and outputs ------------------------------------------------------------------------------------ */

/* The first field of that number within a message; zeros and false: none. *cut becomes true where it is cut off. */
static bool find_field(const struct sl_protobuf_field *message, uint32_t number, struct sl_protobuf_field *out,
                       bool *cut)
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    bool found = false;
    *out = (struct sl_protobuf_field){0};
    while (sl_protobuf_next(&reader, &field))
        if (!found && field.number == number) {
            *out = field;
            found = true;
        }
    *cut = *cut || reader.failed;
    return found;
}

static void read_shape(const struct parse *p, const struct sl_protobuf_field *shape, struct sl_onnx_port *port,
                       bool *cut)
{
    enum { DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
    struct sl_protobuf_reader dims = sl_protobuf_begin(shape->data, shape->bytes);
    struct sl_protobuf_field dim, value;
    if (count_fields(shape->data, shape->bytes, DIM) > SL_ONNX_RANK_MAX)
        return;
    port->rank = 0;
    while (sl_protobuf_next(&dims, &dim)) {
        if (dim.number != DIM)
            continue;
        bool has_value = find_field(&dim, DIM_VALUE, &value, cut) && (int64_t)value.value >= 0;
        port->dims[port->rank] = has_value ? (int64_t)value.value : -1;
        if (!has_value && find_field(&dim, DIM_PARAM, &value, cut))
            port->params[port->rank] = copy_text(p, &value);
        port->rank++;
    }
    *cut = *cut || dims.failed;
}

static seqlstm_status parse_port(const struct parse *p, const struct sl_protobuf_field *message,
                                 struct sl_onnx_port *port)
{
    enum { NAME = 1, TYPE = 2, TENSOR = 1, ELEMENT = 1, SHAPE = 2 };
    struct sl_protobuf_field name, type, tensor, element, shape;
    bool cut = false;
    *port = (struct sl_onnx_port){.name = "", .rank = -1};
    if (find_field(message, NAME, &name, &cut))
        port->name = copy_text(p, &name);
    if (port->name == NULL)
        return no_memory(p);
    if (find_field(message, TYPE, &type, &cut) && find_field(&type, TENSOR, &tensor, &cut)) {
        port->type = find_field(&tensor, ELEMENT, &element, &cut) ? (int64_t)element.value : 0;
        if (find_field(&tensor, SHAPE, &shape, &cut))
            read_shape(p, &shape, port, &cut);
    }
    return cut ? fail(p, "an input or output is cut off") : SEQLSTM_OK;
}

/* ---- the graph -------------------------------------------------------------------------------------------- */

static seqlstm_status parse_graph(const struct parse *p, const struct sl_protobuf_field *graph)
{
    enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12 };
    struct sl_onnx_file *file = p->file;
    size_t counts[] = {(size_t)count_fields(graph->data, graph->bytes, NODE),
                       (size_t)count_fields(graph->data, graph->bytes, INITIALIZER),
                       (size_t)count_fields(graph->data, graph->bytes, INPUT),
                       (size_t)count_fields(graph->data, graph->bytes, OUTPUT)};
    struct sl_onnx_node *nodes = SL_ARENA_ARRAY(&file->arena, struct sl_onnx_node, counts[0] + 1);
    file->tensors = SL_ARENA_ARRAY(&file->arena, struct sl_onnx_tensor, counts[1] + 1);
    file->inputs = SL_ARENA_ARRAY(&file->arena, struct sl_onnx_port, counts[2] + 1);
    file->outputs = SL_ARENA_ARRAY(&file->arena, struct sl_onnx_port, counts[3] + 1);
    struct sl_protobuf_reader reader = sl_protobuf_begin(graph->data, graph->bytes);
    struct sl_protobuf_field field;
    if (nodes == NULL || file->tensors == NULL || file->inputs == NULL || file->outputs == NULL)
        return no_memory(p);
    file->nodes = nodes;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == INITIALIZER)
            SEQLSTM_TRY(parse_tensor(p, &field, &file->tensors[file->tensor_count++]));
        else if (field.number == NODE)
            SEQLSTM_TRY(parse_node(p, &field, &nodes[file->node_count++]));
        else if (field.number == INPUT)
            SEQLSTM_TRY(parse_port(p, &field, &file->inputs[file->input_count++]));
        else if (field.number == OUTPUT)
            SEQLSTM_TRY(parse_port(p, &field, &file->outputs[file->output_count++]));
    }
    return reader.failed ? fail(p, "its graph is cut off") : SEQLSTM_OK;
}

/* The version of ONNX's own operators. */
static seqlstm_status parse_opset(const struct parse *p, const struct sl_protobuf_field *message)
{
    enum { DOMAIN = 1, VERSION = 2 };
    struct sl_protobuf_field domain, version;
    bool cut = false, is_named = find_field(message, DOMAIN, &domain, &cut) && domain.bytes > 0 &&
                                 !sl_protobuf_field_is(&domain, "ai.onnx");
    if (!is_named && find_field(message, VERSION, &version, &cut))
        p->file->opset = (int64_t)version.value;
    return cut ? fail(p, "a version of operators is cut off") : SEQLSTM_OK;
}

static seqlstm_status parse_model(const struct parse *p, size_t bytes)
{
    enum { MODEL_GRAPH = 7, MODEL_OPSET = 8 };
    struct sl_protobuf_reader reader = sl_protobuf_begin(p->file->bytes, bytes);
    struct sl_protobuf_field field;
    bool has_graph = false;
    p->file->opset = 17;
    while (sl_protobuf_next(&reader, &field)) {
        if (field.number == MODEL_GRAPH && field.is_bytes && !has_graph) {
            has_graph = true;
            SEQLSTM_TRY(parse_graph(p, &field));
        } else if (field.number == MODEL_OPSET && field.is_bytes) {
            SEQLSTM_TRY(parse_opset(p, &field));
        }
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
    if (status == SEQLSTM_OK && file->arena.failed) /* a text that would be missing */
        status = no_memory(&p);
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
    sl_onnx_external_free(file->external);
    free(file->bytes);
    free(file);
}

const struct sl_onnx_attribute *sl_onnx_node_find_attribute(const struct sl_onnx_node *node, const char *name)
{
    for (int32_t a = 0; a < node->attribute_count; a++)
        if (strcmp(node->attributes[a].name, name) == 0)
            return &node->attributes[a];
    return NULL;
}

int64_t sl_onnx_node_get_int(const struct sl_onnx_node *node, const char *name, int64_t absent)
{
    const struct sl_onnx_attribute *a = sl_onnx_node_find_attribute(node, name);
    return a ? a->i : absent;
}

float sl_onnx_node_get_float(const struct sl_onnx_node *node, const char *name, float absent)
{
    const struct sl_onnx_attribute *a = sl_onnx_node_find_attribute(node, name);
    return a ? a->f : absent;
}

const char *sl_onnx_node_get_input(const struct sl_onnx_node *node, int32_t k)
{
    return k < node->input_count ? node->inputs[k] : "";
}

const char *sl_onnx_node_get_output(const struct sl_onnx_node *node, int32_t k)
{
    return k < node->output_count ? node->outputs[k] : "";
}
