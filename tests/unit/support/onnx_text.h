/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files out of lines:
 *
 *   opset 17 [DOMAIN]
 *   input NAME TYPE DIMS            DIMS: "b,t,3", where a word is a free dimension, "?" one without a name; "-": none
 *   output NAME
 *   tensor NAME TYPE[/STORAGE] SHAPE VALUES
 *   OP[@DOMAIN] [NAME] < INPUTS > OUTPUTS [KEY=KIND:VALUE ...]
 *
 * TYPE is f32, f64, f16, i32, i64 or bool; STORAGE raw, packed or single (a field for each number). SHAPE is "2x3", or
 * "-" for a number. VALUES are numbers, or "~K": numbers that depend on K. Names are divided by commas; an empty one is
 * absent. KIND is i, f, s, is, fs, ss (lists divided by commas) or t (TYPE:SHAPE:VALUE). */
#ifndef SL_TESTS_ONNX_TEXT_H
#define SL_TESTS_ONNX_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "interop/protobuf.h"

enum onnx_type { ONNX_F32 = 1, ONNX_I32 = 6, ONNX_I64 = 7, ONNX_BOOL = 9, ONNX_F16 = 10, ONNX_F64 = 11 };

static inline int64_t onnx_find_type(const char *word)
{
    static const struct {
        const char *name;
        enum onnx_type type;
    } types[] = {{"f32", ONNX_F32}, {"i32", ONNX_I32},   {"i64", ONNX_I64},
                 {"f16", ONNX_F16}, {"bool", ONNX_BOOL}, {"f64", ONNX_F64}};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (strcmp(types[k].name, word) == 0)
            return types[k].type;
    fail_msg("no type `%s`", word);
    return 0;
}

/* Value e of "~K", a multiple of 1/8 between -9/8 and 9/8. */
static inline double onnx_draw(int64_t k, int64_t e)
{
    return (double)((e * 7 + k * 5) % 19 - 9) / 8;
}

static inline void onnx_append_number(struct sl_buf *raw, int64_t type, double value)
{
    const float narrow = (float)value;
    const int64_t whole = (int64_t)value;
    const int32_t half = (int32_t)value;
    const char bit = value != 0;
    switch (type) {
    case ONNX_F32:
        sl_buf_append(raw, (const char *)&narrow, sizeof narrow);
        break;
    case ONNX_F64:
        sl_buf_append(raw, (const char *)&value, sizeof value);
        break;
    case ONNX_I64:
        sl_buf_append(raw, (const char *)&whole, sizeof whole);
        break;
    case ONNX_I32:
        sl_buf_append(raw, (const char *)&half, sizeof half);
        break;
    default:
        sl_buf_append_char(raw, bit);
    }
}

/* One number as a field of its own, or all of them in one. */
static inline void onnx_append_list(struct sl_buf *out, int64_t type, const char *storage, const double *values,
                                    int64_t count)
{
    const uint32_t field = type == ONNX_F32 ? 4 : type == ONNX_I64 ? 7 : 5;
    struct sl_buf all = {0};
    for (int64_t e = 0; e < count; e++) {
        struct sl_buf *to = strcmp(storage, "packed") == 0 ? &all : out;
        if (type == ONNX_F32 && to == &all)
            onnx_append_number(to, type, values[e]);
        else if (type == ONNX_F32)
            sl_protobuf_append_float(to, field, (float)values[e]);
        else if (to == out)
            sl_protobuf_append_int(to, field, (int64_t)values[e]);
        else {
            struct sl_buf one = {0}; /* the number without its key, which takes one byte */
            sl_protobuf_append_int(&one, field, (int64_t)values[e]);
            sl_buf_append(&all, one.data + 1, one.length_bytes - 1);
            sl_buf_deinit(&one);
        }
    }
    if (all.length_bytes)
        sl_protobuf_append_bytes(out, field, all.data, all.length_bytes);
    sl_buf_deinit(&all);
}

/* `type` may have a storage behind it; `values` is the rest of the line. */
static inline void onnx_append_tensor(struct sl_buf *out, uint32_t field, const char *name, char *type, char *shape,
                                      char *values)
{
    enum { NUMBERS = 4096 };
    static double numbers[NUMBERS];
    struct sl_buf tensor = {0}, raw = {0};
    const char *storage = strchr(type, '/') ? strchr(type, '/') + 1 : "raw";
    type[strcspn(type, "/")] = '\0';
    const int64_t number = onnx_find_type(type);
    int64_t count = 0, wanted = 1;
    for (char *rest = shape, *word; strcmp(shape, "-") != 0 && (word = strsep(&rest, "x")) != NULL;) {
        sl_protobuf_append_int(&tensor, 1, atoll(word));
        wanted *= atoll(word);
    }
    sl_protobuf_append_int(&tensor, 2, number);
    if (values && *values == '~')
        for (; count < wanted; count++)
            numbers[count] = onnx_draw(atoll(values + 1), count);
    else
        for (char *word; (word = strsep(&values, " ,")) != NULL;)
            numbers[count++] = atof(word);
    assert_true(count < NUMBERS);
    if (strcmp(storage, "raw") != 0)
        onnx_append_list(&tensor, number, storage, numbers, count);
    sl_protobuf_append_text(&tensor, 8, name);
    for (int64_t e = 0; strcmp(storage, "raw") == 0 && e < count; e++)
        onnx_append_number(&raw, number, numbers[e]);
    if (strcmp(storage, "raw") == 0)
        sl_protobuf_append_bytes(&tensor, 9, raw.data, raw.length_bytes);
    sl_protobuf_append_message(out, field, &tensor);
    sl_buf_deinit(&raw);
    sl_buf_deinit(&tensor);
}

static inline void onnx_append_names(struct sl_buf *out, uint32_t field, char *names)
{
    for (char *name; (name = strsep(&names, ",")) != NULL;)
        sl_protobuf_append_text(out, field, name);
}

/* KEY=KIND:VALUE */
static inline void onnx_append_attribute(struct sl_buf *node, char *text)
{
    struct sl_buf a = {0};
    char *value = text, *key = strsep(&value, "="), *kind = strsep(&value, ":");
    assert_non_null(value);
    sl_protobuf_append_text(&a, 1, key);
    if (strcmp(kind, "i") == 0)
        sl_protobuf_append_int(&a, 3, atoll(value));
    else if (strcmp(kind, "f") == 0)
        sl_protobuf_append_float(&a, 2, (float)atof(value));
    else if (strcmp(kind, "s") == 0)
        sl_protobuf_append_text(&a, 4, value);
    else if (strcmp(kind, "t") == 0) {
        char *type = strsep(&value, ":"), *shape = strsep(&value, ":");
        onnx_append_tensor(&a, 5, "", type, shape, value);
    } else
        for (char *word; (word = strsep(&value, ",")) != NULL;) {
            if (strcmp(kind, "fs") == 0)
                sl_protobuf_append_float(&a, 7, (float)atof(word));
            else if (strcmp(kind, "is") == 0)
                sl_protobuf_append_int(&a, 8, atoll(word));
            else
                sl_protobuf_append_text(&a, 9, word);
        }
    sl_protobuf_append_message(node, 5, &a);
    sl_buf_deinit(&a);
}

static inline void onnx_append_node(struct sl_buf *graph, char *op, char *rest)
{
    struct sl_buf node = {0};
    char *domain = strchr(op, '@'), *word = strsep(&rest, " ");
    if (domain)
        *domain++ = '\0';
    if (strcmp(word, "<") != 0 && strcmp(word, ">") != 0) {
        sl_protobuf_append_text(&node, 3, word);
        word = strsep(&rest, " ");
    }
    if (strcmp(word, "<") == 0) {
        onnx_append_names(&node, 1, strsep(&rest, " "));
        strsep(&rest, " "); /* > */
    }
    onnx_append_names(&node, 2, strsep(&rest, " "));
    sl_protobuf_append_text(&node, 4, op);
    while ((word = strsep(&rest, " ")) != NULL)
        onnx_append_attribute(&node, word);
    if (domain)
        sl_protobuf_append_text(&node, 7, domain);
    sl_protobuf_append_message(graph, 1, &node);
    sl_buf_deinit(&node);
}

static inline void onnx_append_port(struct sl_buf *graph, uint32_t field, const char *name, const char *type,
                                    char *dims)
{
    struct sl_buf port = {0}, outer = {0}, tensor = {0}, shape = {0};
    sl_protobuf_append_text(&port, 1, name);
    for (char *word; dims && strcmp(dims, "-") != 0 && (word = strsep(&dims, ",")) != NULL;) {
        struct sl_buf dim = {0};
        if (*word >= '0' && *word <= '9')
            sl_protobuf_append_int(&dim, 1, atoll(word));
        else if (*word != '?')
            sl_protobuf_append_text(&dim, 2, word);
        sl_protobuf_append_message(&shape, 1, &dim);
        sl_buf_deinit(&dim);
    }
    if (type) {
        sl_protobuf_append_int(&tensor, 1, onnx_find_type(type));
        if (shape.length_bytes)
            sl_protobuf_append_message(&tensor, 2, &shape);
        sl_protobuf_append_message(&outer, 1, &tensor);
        sl_protobuf_append_message(&port, 2, &outer);
    }
    sl_protobuf_append_message(graph, field, &port);
    sl_buf_deinit(&shape);
    sl_buf_deinit(&tensor);
    sl_buf_deinit(&outer);
    sl_buf_deinit(&port);
}

static inline void onnx_append_line(struct sl_buf *model, struct sl_buf *graph, char *line)
{
    char *rest = line, *word = strsep(&rest, " ");
    if (strcmp(word, "opset") == 0) {
        struct sl_buf opset = {0};
        char *version = strsep(&rest, " ");
        if (rest)
            sl_protobuf_append_text(&opset, 1, rest);
        sl_protobuf_append_int(&opset, 2, atoll(version));
        sl_protobuf_append_message(model, 8, &opset);
        sl_buf_deinit(&opset);
    } else if (strcmp(word, "input") == 0 || strcmp(word, "output") == 0) {
        const char *name = strsep(&rest, " "), *type = strsep(&rest, " ");
        onnx_append_port(graph, *word == 'i' ? 11 : 12, name, type, rest);
    } else if (strcmp(word, "tensor") == 0) {
        char *name = strsep(&rest, " "), *type = strsep(&rest, " "), *shape = strsep(&rest, " ");
        onnx_append_tensor(graph, 5, name, type, shape, rest);
    } else {
        onnx_append_node(graph, word, rest);
    }
}

/* Writes the file that the lines describe. `text` is changed. */
static inline void onnx_write_text(char *text, const char *path)
{
    struct sl_buf model = {0}, graph = {0};
    for (char *line; (line = strsep(&text, "\n")) != NULL;)
        if (*line != '\0')
            onnx_append_line(&model, &graph, line);
    sl_protobuf_append_message(&model, 7, &graph);
    assert_false(model.failed);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(model.data, 1, model.length_bytes, file), model.length_bytes);
    assert_int_equal(fclose(file), 0);
    sl_buf_deinit(&graph);
    sl_buf_deinit(&model);
}

#endif
