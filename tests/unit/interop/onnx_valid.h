/* SPDX-License-Identifier: Apache-2.0 */
/* What the specification of ONNX asks of every file: the type of an attribute is that of the field which it has, each
 * name is given once, and nothing is used before it is given. */
#ifndef SL_TESTS_ONNX_VALID_H
#define SL_TESTS_ONNX_VALID_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/file.h"
#include "interop/protobuf_read.h"

enum { ONNX_NAMES_MOST = 4000 };

struct onnx_names {
    struct sl_protobuf_field list[ONNX_NAMES_MOST];
    int count;
};

static inline bool onnx_names_have(const struct onnx_names *names, const struct sl_protobuf_field *name)
{
    for (int k = 0; k < names->count; k++)
        if (names->list[k].bytes == name->bytes && memcmp(names->list[k].data, name->data, name->bytes) == 0)
            return true;
    return false;
}

static inline void onnx_names_add(struct onnx_names *names, const struct sl_protobuf_field *name)
{
    if (name->bytes == 0)
        fail_msg("something has no name");
    if (onnx_names_have(names, name))
        fail_msg("`%.*s` is given twice", (int)name->bytes, (const char *)name->data);
    assert_true(names->count < ONNX_NAMES_MOST);
    names->list[names->count++] = *name;
}

static inline void onnx_names_need(const struct onnx_names *names, const struct sl_protobuf_field *name)
{
    if (name->bytes > 0 && !onnx_names_have(names, name))
        fail_msg("`%.*s` is used before it is given", (int)name->bytes, (const char *)name->data);
}

/* Calls `use` for each field of that number. */
static inline int onnx_each(const struct sl_protobuf_field *message, uint32_t number, struct onnx_names *names,
                            void use(struct onnx_names *names, const struct sl_protobuf_field *field))
{
    struct sl_protobuf_reader reader = sl_protobuf_begin(message->data, message->bytes);
    struct sl_protobuf_field field;
    int count = 0;
    while (sl_protobuf_next(&reader, &field))
        if (field.number == number) {
            count++;
            if (use)
                use(names, &field);
        }
    assert_false(reader.failed);
    return count;
}

/* Of an attribute: 20 says which of the fields there is. */
static inline void onnx_check_attribute(struct onnx_names *names, const struct sl_protobuf_field *attribute)
{
    static const uint32_t field_of_type[] = {0, 2, 3, 4, 5, 6, 7, 8, 9};
    struct sl_protobuf_reader reader = sl_protobuf_begin(attribute->data, attribute->bytes);
    struct sl_protobuf_field field;
    uint64_t type = 0;
    (void)names;
    while (sl_protobuf_next(&reader, &field))
        type = field.number == 20 ? field.value : type;
    assert_true(type > 0 && type < sizeof field_of_type / sizeof *field_of_type);
    assert_int_equal(onnx_each(attribute, 1, NULL, NULL), 1);
    for (uint32_t number = 2; number <= 11; number++)
        if (number != field_of_type[type])
            assert_int_equal(onnx_each(attribute, number, NULL, NULL), 0);
    assert_true(type > 5 || onnx_each(attribute, field_of_type[type], NULL, NULL) == 1);
}

static inline void onnx_need(struct onnx_names *names, const struct sl_protobuf_field *name)
{
    onnx_names_need(names, name);
}

static inline void onnx_give_output(struct onnx_names *names, const struct sl_protobuf_field *name)
{
    if (name->bytes > 0) /* an output that is not wanted */
        onnx_names_add(names, name);
}

static inline void onnx_check_node(struct onnx_names *names, const struct sl_protobuf_field *node)
{
    onnx_each(node, 1, names, onnx_need);
    assert_true(onnx_each(node, 2, names, onnx_give_output) > 0);
    assert_int_equal(onnx_each(node, 4, NULL, NULL), 1);
    onnx_each(node, 5, NULL, onnx_check_attribute);
}

static inline void onnx_give_tensor(struct onnx_names *names, const struct sl_protobuf_field *tensor)
{
    assert_int_equal(onnx_each(tensor, 8, names, onnx_give_output), 1);
}

static inline void onnx_give_port(struct onnx_names *names, const struct sl_protobuf_field *port)
{
    assert_int_equal(onnx_each(port, 1, names, onnx_give_output), 1);
    assert_int_equal(onnx_each(port, 2, NULL, NULL), 1);
}

static inline void onnx_need_port(struct onnx_names *names, const struct sl_protobuf_field *port)
{
    assert_int_equal(onnx_each(port, 1, names, onnx_need), 1);
    assert_int_equal(onnx_each(port, 2, NULL, NULL), 1);
}

static inline void onnx_check_graph(struct onnx_names *names, const struct sl_protobuf_field *graph)
{
    assert_int_equal(onnx_each(graph, 2, NULL, NULL), 1);
    assert_true(onnx_each(graph, 11, names, onnx_give_port) > 0);
    onnx_each(graph, 5, names, onnx_give_tensor);
    assert_true(onnx_each(graph, 1, names, onnx_check_node) > 0);
    assert_true(onnx_each(graph, 12, names, onnx_need_port) > 0);
}

static inline void onnx_check_file(const char *path)
{
    char *text = NULL;
    struct sl_protobuf_field model = {0};
    struct onnx_names *names = calloc(1, sizeof *names);
    assert_non_null(names);
    assert_int_equal(sl_file_read(path, 1 << 24, &text, &model.bytes, NULL), SEQLSTM_OK);
    model.data = (const unsigned char *)text;
    assert_int_equal(onnx_each(&model, 1, NULL, NULL), 1); /* the version of the format */
    assert_true(onnx_each(&model, 8, NULL, NULL) > 0);     /* those of operators */
    assert_int_equal(onnx_each(&model, 7, names, onnx_check_graph), 1);
    free(text);
    free(names);
}

#endif
