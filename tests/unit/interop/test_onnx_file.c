/* SPDX-License-Identifier: Apache-2.0 */
/* A part of an ONNX file that is cut off, while all that is around it is whole, is told with what it belongs to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/system/file_writer.h"
#include "interop/import/onnx_file.h"
#include "interop/protobuf.h"
#include "ok.h"
#include "scratch.h"

/* The parts of the file, in the order in which they are complete. */
static const char *const parts[] = {
    "a tensor is cut off",                           /* its shape */
    "a tensor has another size than its shape says", /* its numbers */
    "a tensor is cut off",
    "a tensor has another size than its shape says", /* whole numbers */
    "a tensor is cut off",
    "an attribute is cut off", /* floats */
    "an attribute is cut off",
    "an attribute is cut off", /* whole numbers */
    "an attribute is cut off",
    "a node is cut off",
    "an input or output is cut off", /* a free dimension */
    "an input or output is cut off", /* a shape */
    "an input or output is cut off", /* of a tensor */
    "an input or output is cut off", /* as a type */
    "an input or output is cut off", /* the input */
    "an input or output is cut off", /* the output */
    "its graph is cut off",
    "a version of operators is cut off",
    "a field runs over the end",
};

enum { PARTS = sizeof parts / sizeof *parts };

static int part, cut_part; /* which comes next; which loses its last byte, -1: none */

static size_t count_bytes(size_t bytes)
{
    return part++ == cut_part ? bytes - 1 : bytes;
}

static void append_part(struct sl_buf *out, uint32_t field, struct sl_buf *message)
{
    assert_false(message->failed);
    sl_protobuf_append_bytes(out, field, message->data, count_bytes(message->length_bytes));
    sl_buf_deinit(message);
}

/* Each message ends with this text, so that it is cut off within a field. No reader knows the number. */
static void append_end(struct sl_buf *message)
{
    sl_protobuf_append_text(message, 999, "end");
}

static void append_packed(struct sl_buf *out, uint32_t field, const void *data, size_t bytes)
{
    sl_protobuf_append_bytes(out, field, data, count_bytes(bytes));
}

static const unsigned char long_numbers[] = {0x05, 0xac, 0x02}; /* 5 and 300 */
static const float floats[] = {1.5f, -2};

static void append_tensors(struct sl_buf *graph)
{
    enum { TENSOR = 5, DIMS = 1, TYPE = 2, FLOATS = 4, INT64S = 7, NAME = 8, FLOAT = 1, INT64 = 7 };
    static const unsigned char shape[] = {0x02, 0x81, 0x00}; /* 2 and 1, in two bytes */
    struct sl_buf tensor = {0}, whole = {0};
    append_packed(&tensor, DIMS, shape, sizeof shape);
    sl_protobuf_append_int(&tensor, TYPE, FLOAT);
    sl_protobuf_append_text(&tensor, NAME, "a");
    append_packed(&tensor, FLOATS, floats, sizeof floats);
    append_end(&tensor);
    append_part(graph, TENSOR, &tensor);
    sl_protobuf_append_int(&whole, DIMS, 2);
    sl_protobuf_append_int(&whole, TYPE, INT64);
    sl_protobuf_append_text(&whole, NAME, "b");
    append_packed(&whole, INT64S, long_numbers, sizeof long_numbers);
    append_end(&whole);
    append_part(graph, TENSOR, &whole);
}

static void append_node(struct sl_buf *graph)
{
    enum { NODE = 1, OP = 4, ATTRIBUTE = 5, NAME = 1, FLOATS = 7, INTS = 8 };
    struct sl_buf node = {0}, first = {0}, second = {0};
    sl_protobuf_append_text(&node, OP, "Some");
    sl_protobuf_append_text(&first, NAME, "f");
    append_packed(&first, FLOATS, floats, sizeof floats);
    append_end(&first);
    append_part(&node, ATTRIBUTE, &first);
    sl_protobuf_append_text(&second, NAME, "i");
    append_packed(&second, INTS, long_numbers, sizeof long_numbers);
    append_end(&second);
    append_part(&node, ATTRIBUTE, &second);
    append_end(&node);
    append_part(graph, NODE, &node);
}

static void append_ports(struct sl_buf *graph)
{
    enum { INPUT = 11, OUTPUT = 12, NAME = 1, TYPE = 2, TENSOR = 1, ELEMENT = 1, SHAPE = 2, DIM = 1, PARAM = 2 };
    struct sl_buf dim = {0}, shape = {0}, tensor = {0}, type = {0}, port = {0}, plain = {0};
    sl_protobuf_append_text(&dim, PARAM, "batch");
    append_end(&dim);
    append_part(&shape, DIM, &dim);
    append_end(&shape);
    sl_protobuf_append_int(&tensor, ELEMENT, 1);
    append_part(&tensor, SHAPE, &shape);
    append_end(&tensor);
    append_part(&type, TENSOR, &tensor);
    append_end(&type);
    sl_protobuf_append_text(&port, NAME, "x");
    append_part(&port, TYPE, &type);
    append_end(&port);
    append_part(graph, INPUT, &port);
    sl_protobuf_append_text(&plain, NAME, "y");
    append_end(&plain);
    append_part(graph, OUTPUT, &plain);
}

/* cut: the part that loses a byte. */
static seqlstm_status open_file(int cut, struct sl_onnx_file **file, struct seqlstm_error *err)
{
    enum { GRAPH = 7, OPSET = 8, DOMAIN = 1, VERSION = 2 };
    struct sl_buf model = {0}, graph = {0}, opset = {0};
    part = 0;
    cut_part = cut;
    append_tensors(&graph);
    append_node(&graph);
    append_ports(&graph);
    append_end(&graph);
    append_part(&model, GRAPH, &graph);
    sl_protobuf_append_text(&opset, DOMAIN, "");
    sl_protobuf_append_int(&opset, VERSION, 13);
    append_end(&opset);
    append_part(&model, OPSET, &opset);
    append_end(&model);
    ok(sl_file_write(scratch_path("m.onnx"), model.data, count_bytes(model.length_bytes), err), err);
    assert_int_equal(part, PARTS);
    sl_buf_deinit(&model);
    return sl_onnx_file_open(scratch_path("m.onnx"), file, err);
}

static void test_a_whole_file(void **state)
{
    struct sl_onnx_file *file;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(open_file(-1, &file, &err), &err);
    assert_int_equal(file->opset, 13);
    assert_true(file->tensor_count == 2 && file->node_count == 1 && file->input_count == 1 && file->output_count == 1);
    const struct sl_onnx_tensor *a = &file->tensors[0], *b = &file->tensors[1];
    assert_true(a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 1 && a->floats[0] == 1.5f && a->floats[1] == -2);
    assert_true(b->rank == 1 && b->elems == 2 && b->ints[0] == 5 && b->ints[1] == 300);
    const struct sl_onnx_attribute *f = sl_onnx_node_find_attribute(&file->nodes[0], "f"),
                                   *i = sl_onnx_node_find_attribute(&file->nodes[0], "i");
    assert_true(f && f->count == 2 && f->floats[0] == 1.5f && f->floats[1] == -2 && !f->ints);
    assert_true(i && i->count == 2 && i->ints[0] == 5 && i->ints[1] == 300 && !i->floats);
    assert_null(sl_onnx_node_find_attribute(&file->nodes[0], "g"));
    assert_string_equal(file->inputs[0].name, "x");
    assert_true(file->inputs[0].type == 1 && file->inputs[0].rank == 1 && file->inputs[0].dims[0] == -1);
    assert_string_equal(file->inputs[0].params[0], "batch");
    assert_string_equal(file->outputs[0].name, "y");
    assert_true(file->outputs[0].type == 0 && file->outputs[0].rank == -1);
    sl_onnx_file_close(file);
}

static void test_each_part_is_whole(void **state)
{
    (void)state;
    for (int cut = 0; cut < PARTS; cut++) {
        char expected[400];
        struct sl_onnx_file *file = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = open_file(cut, &file, &err);
        snprintf(expected, sizeof expected, "%s: no ONNX file, or a damaged one: %s", scratch_path("m.onnx"),
                 parts[cut]);
        if (status != SEQLSTM_CORRUPT_DATA || strcmp(err.message, expected) != 0)
            fail_msg("part %d: status %d, `%s`, expected `%s`", cut, (int)status, err.message, expected);
        assert_null(file);
    }
}

/* A tensor whose shape cannot be, at whichever place, has no values; that is told where it is used. */
static void test_shapes_that_cannot_be(void **state)
{
    enum { GRAPH = 7, TENSOR = 5, DIMS = 1, TYPE = 2, FLOATS = 4, NAME = 8, FLOAT = 1 };
    static const struct {
        int64_t dims[SL_ONNX_RANK_MAX + 1];
        int count;
        bool fits;
    } shapes[] = {{{2, 1}, 2, true},
                  {{1, 1, 1, 1, 1, 1, 1, 2}, SL_ONNX_RANK_MAX, true},
                  {{-1, 2}, 2, false},
                  {{2, -1}, 2, false},
                  {{INT64_MIN, 2, 1}, 3, false},
                  {{INT64_MAX, 2, 1}, 3, false},
                  {{1, 1, 1, 1, 1, 1, 1, 1, 2}, SL_ONNX_RANK_MAX + 1, false}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int packed = 0; packed < 2; packed++) {
            struct sl_onnx_file *file = NULL;
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_buf model = {0}, graph = {0}, tensor = {0}, all = {0};
            for (int d = 0; d < shapes[s].count; d++)
                if (packed)
                    for (uint64_t rest = (uint64_t)shapes[s].dims[d], more = 1; more; rest >>= 7) {
                        more = rest > 127;
                        sl_buf_append_char(&all, (char)((rest & 127) | (more ? 128 : 0)));
                    }
                else
                    sl_protobuf_append_int(&tensor, DIMS, shapes[s].dims[d]);
            if (packed)
                sl_protobuf_append_bytes(&tensor, DIMS, all.data, all.length_bytes);
            sl_protobuf_append_int(&tensor, TYPE, FLOAT);
            sl_protobuf_append_text(&tensor, NAME, "a");
            sl_protobuf_append_bytes(&tensor, FLOATS, floats, sizeof floats);
            sl_protobuf_append_bytes(&graph, TENSOR, tensor.data, tensor.length_bytes);
            sl_protobuf_append_bytes(&model, GRAPH, graph.data, graph.length_bytes);
            ok(sl_file_write(scratch_path("m.onnx"), model.data, model.length_bytes, &err), &err);
            ok(sl_onnx_file_open(scratch_path("m.onnx"), &file, &err), &err);
            if ((file->tensors[0].floats != NULL) != shapes[s].fits)
                fail_msg("shape %d, packed %d", (int)s, packed);
            sl_onnx_file_close(file);
            sl_buf_deinit(&all);
            sl_buf_deinit(&tensor);
            sl_buf_deinit(&graph);
            sl_buf_deinit(&model);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_file),
        cmocka_unit_test(test_each_part_is_whole),
        cmocka_unit_test(test_shapes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
