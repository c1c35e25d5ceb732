/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on the constants of an ONNX graph, against results by hand from the operators' specification,
 * and against a plain walk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "interop/import/onnx_fold.h"

/* Lists end where `rank`, `count` or the product of the shape says. */
struct constant {
    int32_t rank; /* -1: there is no such input */
    int64_t shape[4];
    int64_t values[12];
};

#define NONE                                                                                                           \
    {                                                                                                                  \
        -1, {0},                                                                                                       \
        {                                                                                                              \
            0                                                                                                          \
        }                                                                                                              \
    }
#define SCALAR(x)                                                                                                      \
    {                                                                                                                  \
        0, {0},                                                                                                        \
        {                                                                                                              \
            x                                                                                                          \
        }                                                                                                              \
    }

struct attribute {
    const char *name;
    int64_t i;
    int32_t count; /* of `list`; 0: `i` counts */
    int64_t list[4];
};

static const struct {
    const char *op;
    struct constant in[3];
    struct attribute attribute;
    struct constant out; /* rank -1: refused */
} cases[] = {
    {"Identity", {{2, {1, 2}, {3, 4}}, NONE, NONE}, {0}, {2, {1, 2}, {3, 4}}},
    {"Transpose", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, NONE, NONE}, {0}, {2, {3, 2}, {1, 4, 2, 5, 3, 6}}},
    {"Transpose",
     {{3, {1, 2, 3}, {1, 2, 3, 4, 5, 6}}, NONE, NONE},
     {"perm", 0, 3, {2, 0, 1}},
     {3, {3, 1, 2}, {1, 4, 2, 5, 3, 6}}},
    {"Concat",
     {{2, {2, 1}, {1, 2}}, {2, {2, 2}, {3, 4, 5, 6}}, NONE},
     {"axis", 1, 0, {0}},
     {2, {2, 3}, {1, 3, 4, 2, 5, 6}}},
    {"Concat", {{2, {1, 2}, {1, 2}}, {2, {1, 2}, {3, 4}}, NONE}, {"axis", -2, 0, {0}}, {2, {2, 2}, {1, 2, 3, 4}}},
    {"Concat", {{2, {2, 1}, {1, 2}}, {2, {1, 2}, {3, 4}}, NONE}, {"axis", 0, 0, {0}}, NONE},
    {"Concat", {{2, {1, 2}, {1, 2}}, {2, {1, 2}, {3, 4}}, NONE}, {"axis", -3, 0, {0}}, NONE},
    {"Concat", {{2, {1, 2}, {1, 2}}, {2, {1, 2}, {3, 4}}, NONE}, {"axis", 2, 0, {0}}, NONE},
    {"Gather", {{2, {3, 2}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {2, 0}}, NONE}, {0}, {2, {2, 2}, {5, 6, 1, 2}}},
    {"Gather", {{2, {3, 2}, {1, 2, 3, 4, 5, 6}}, SCALAR(-1), NONE}, {"axis", 1, 0, {0}}, {1, {3}, {2, 4, 6}}},
    {"Gather", {{1, {3}, {1, 2, 3}}, SCALAR(3), NONE}, {0}, NONE},
    {"Gather", {{1, {3}, {1, 2, 3}}, SCALAR(-4), NONE}, {0}, NONE},
    {"Expand", {{2, {2, 1}, {1, 2}}, {1, {2}, {2, 3}}, NONE}, {0}, {2, {2, 3}, {1, 1, 1, 2, 2, 2}}},
    {"Expand", {{1, {2}, {1, 2}}, {1, {2}, {2, 1}}, NONE}, {0}, {2, {2, 2}, {1, 2, 1, 2}}},
    {"Expand", {{1, {2}, {1, 2}}, {1, {1}, {3}}, NONE}, {0}, NONE},
    {"Expand", {{1, {3}, {1, 2, 3}}, {1, {1}, {2}}, NONE}, {0}, NONE},
    {"Add", {{2, {2, 1}, {1, 2}}, {1, {2}, {10, 20}}, NONE}, {0}, {2, {2, 2}, {11, 21, 12, 22}}},
    {"Add", {{1, {2}, {1, 2}}, {1, {3}, {10, 20, 30}}, NONE}, {0}, NONE},
    {"Sub", {{1, {2}, {5, 7}}, SCALAR(2), NONE}, {0}, {1, {2}, {3, 5}}},
    {"Mul", {SCALAR(3), {1, {2}, {5, 7}}, NONE}, {0}, {1, {2}, {15, 21}}},
    {"Div", {{1, {2}, {7, -7}}, SCALAR(2), NONE}, {0}, {1, {2}, {3, -3}}},
    {"Div", {{1, {1}, {7}}, SCALAR(0), NONE}, {0}, NONE},
    {"Equal", {{1, {3}, {1, 2, 3}}, SCALAR(2), NONE}, {0}, {1, {3}, {0, 1, 0}}},
    {"Where", {{1, {2}, {1, 0}}, {2, {2, 1}, {1, 2}}, SCALAR(9)}, {0}, {2, {2, 2}, {1, 9, 2, 9}}},
    {"Where", {{1, {2}, {1, 0}}, {1, {3}, {1, 2, 3}}, SCALAR(9)}, {0}, NONE},
    {"Tile", {{2, {1, 2}, {4, 4}}, {1, {2}, {2, 1}}, NONE}, {0}, {2, {2, 2}, {4, 4, 4, 4}}},
    {"Tile", {{2, {1, 2}, {4, 4}}, {1, {2}, {0, 1}}, NONE}, {0}, {2, {0, 2}, {0}}},
    {"Tile", {{2, {1, 2}, {4, 4}}, {1, {2}, {-1, 1}}, NONE}, {0}, NONE},
    {"Tile", {{2, {1, 2}, {4, 5}}, {1, {2}, {2, 1}}, NONE}, {0}, NONE},
    {"ReduceProd", {{1, {3}, {2, 3, 4}}, NONE, NONE}, {0}, {1, {1}, {24}}},
    {"ReduceProd", {{1, {3}, {2, 3, 4}}, NONE, NONE}, {"keepdims", 0, 0, {0}}, SCALAR(24)},
    {"Reshape", {{1, {6}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {2, -1}}, NONE}, {0}, {2, {2, 3}, {1, 2, 3, 4, 5, 6}}},
    {"Reshape", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {0, 3}}, NONE}, {0}, {2, {2, 3}, {1, 2, 3, 4, 5, 6}}},
    {"Reshape", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {2, 0}}, NONE}, {0}, {2, {2, 3}, {1, 2, 3, 4, 5, 6}}},
    {"Reshape", {{1, {6}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {6, 0}}, NONE}, {0}, NONE}, /* there is nothing to copy */
    {"Reshape", {{1, {6}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {-1, -1}}, NONE}, {0}, NONE},
    {"Reshape", {{1, {6}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {4, 2}}, NONE}, {0}, NONE},
    {"Reshape", {{1, {6}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {4, -1}}, NONE}, {0}, NONE},
    {"Squeeze", {{3, {1, 2, 1}, {1, 2}}, {1, {1}, {0}}, NONE}, {0}, {2, {2, 1}, {1, 2}}},
    {"Squeeze", {{3, {1, 2, 1}, {1, 2}}, {1, {1}, {-1}}, NONE}, {0}, {2, {1, 2}, {1, 2}}},
    {"Squeeze", {{3, {1, 2, 1}, {1, 2}}, NONE, NONE}, {0}, {1, {2}, {1, 2}}},
    {"Squeeze", {{2, {1, 2}, {1, 2}}, {1, {1}, {1}}, NONE}, {0}, NONE},
    {"Unsqueeze", {{1, {2}, {1, 2}}, {1, {2}, {0, -1}}, NONE}, {0}, {3, {1, 2, 1}, {1, 2}}},
    {"Flatten", {{3, {2, 1, 2}, {1, 2, 3, 4}}, NONE, NONE}, {0}, {2, {2, 2}, {1, 2, 3, 4}}},
    {"Flatten", {{3, {2, 1, 2}, {1, 2, 3, 4}}, NONE, NONE}, {"axis", 0, 0, {0}}, {2, {1, 4}, {1, 2, 3, 4}}},
    {"Slice", {{1, {5}, {1, 2, 3, 4, 5}}, {1, {1}, {1}}, {1, {1}, {3}}}, {0}, {1, {2}, {2, 3}}},
    {"Slice", {{1, {5}, {1, 2, 3, 4, 5}}, {1, {1}, {-2}}, {1, {1}, {99}}}, {0}, {1, {2}, {4, 5}}},
    {"Slice", {{2, {2, 2}, {1, 2, 3, 4}}, {1, {2}, {0, 1}}, {1, {2}, {2, 2}}}, {0}, {2, {2, 1}, {2, 4}}},
    {"Split", {{1, {4}, {1, 2, 3, 4}}, {1, {2}, {1, 3}}, NONE}, {0}, {1, {1}, {1}}}, /* the first part */
    {"Split", {{1, {4}, {1, 2, 3, 4}}, {1, {2}, {1, 2}}, NONE}, {0}, NONE},
    {"ConstantOfShape", {{1, {2}, {2, 1}}, NONE, NONE}, {0}, {2, {2, 1}, {0, 0}}},
    {"Cast", {{1, {2}, {5, -3}}, NONE, NONE}, {"to", 1, 0, {0}}, {1, {2}, {5, -3}}},
    {"Cast", {{1, {2}, {5, 0}}, NONE, NONE}, {"to", 9, 0, {0}}, {1, {2}, {1, 0}}},
    {"Cast", {{1, {4}, {-1, 0, -300, 2}}, NONE, NONE}, {"to", 9, 0, {0}}, {1, {4}, {1, 0, 1, 1}}},
    {"Cast", {SCALAR(-7), NONE, NONE}, {"to", 6, 0, {0}}, SCALAR(-7)},
    {"Cast", {{1, {2}, {5, 0}}, NONE, NONE}, {"to", 8, 0, {0}}, NONE}, /* strings */
    {"Cast", {SCALAR(1), NONE, NONE}, {0}, NONE},
    {"Relu", {{1, {2}, {5, -3}}, NONE, NONE}, {0}, NONE},
    {"Transpose", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, NONE, NONE}, {"perm", 0, 1, {0}}, NONE},
    {"Transpose", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, NONE, NONE}, {"perm", 0, 2, {-1, 0}}, NONE},
    {"Transpose", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, NONE, NONE}, {"perm", 0, 2, {2, 0}}, NONE},
    {"Concat", {{1, {2}, {1, 2}}, {2, {2, 1}, {3, 4}}, NONE}, {"axis", 0, 0, {0}}, NONE},
    {"Concat", {{1, {2}, {1, 2}}, NONE, {1, {1}, {3}}}, {"axis", 0, 0, {0}}, NONE},
    {"Gather", {{1, {3}, {1, 2, 3}}, {2, {1, 2}, {0, 1}}, NONE}, {0}, NONE},
    {"Gather", {{1, {3}, {1, 2, 3}}, {1, {0}, {0}}, NONE}, {0}, NONE},
    {"Split", {{1, {4}, {1, 2, 3, 4}}, {1, {2}, {1, 3}}, NONE}, {"axis", 1, 0, {0}}, NONE},
    {"Where", {{1, {2}, {1, 0}}, {1, {2}, {1, 2}}, NONE}, {0}, NONE},
    {"Tile", {{1, {2}, {4, 4}}, {1, {2}, {2, 1}}, NONE}, {0}, NONE},
    {"ConstantOfShape", {{1, {2}, {2, -1}}, NONE, NONE}, {0}, NONE},
    {"ReduceProd", {{2, {1, 2}, {2, 3}}, NONE, NONE}, {0}, NONE},
    {"ReduceProd", {{1, {2}, {1LL << 40, 1LL << 40}}, NONE, NONE}, {0}, NONE},
};

static struct sl_onnx_constant make(const struct constant *from)
{
    struct sl_onnx_constant made = {.rank = from->rank, .elems = 1, .ints = from->values};
    for (int32_t d = 0; d < from->rank; d++) {
        made.shape[d] = from->shape[d];
        made.elems *= from->shape[d];
    }
    return made;
}

/* The node of a case. */
static bool fold_case(size_t i, struct sl_arena *arena, const struct sl_onnx_constant *const *inputs,
                      struct sl_onnx_constant *out, int32_t *out_count)
{
    const struct attribute *said = &cases[i].attribute;
    const struct sl_onnx_attribute attribute = {
        .name = said->name, .i = said->i, .count = said->count, .ints = said->count ? (int64_t *)said->list : NULL};
    const char *names[] = {"a", "b"};
    const struct sl_onnx_node node = {.op = cases[i].op,
                                      .name = "",
                                      .domain = "",
                                      .outputs = names,
                                      .output_count = strcmp(cases[i].op, "Split") == 0 ? 2 : 1,
                                      .attributes = &attribute,
                                      .attribute_count = said->name ? 1 : 0};
    int32_t count = 3;
    while (count > 0 && inputs[count - 1] == NULL)
        count--;
    return sl_onnx_constant_fold(arena, &node, inputs, count, out, 2, out_count);
}

static void operators_compute_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_arena arena = {0};
        struct sl_onnx_constant in[3], out[2];
        const struct sl_onnx_constant *inputs[3];
        int32_t outputs = 0;
        for (int k = 0; k < 3; k++) {
            in[k] = make(&cases[i].in[k]);
            inputs[k] = cases[i].in[k].rank < 0 ? NULL : &in[k];
        }
        const struct sl_onnx_constant want = make(&cases[i].out);
        const bool folded = fold_case(i, &arena, inputs, out, &outputs);
        if (folded != (want.rank >= 0))
            fail_msg("case %d, %s: %s", (int)i, cases[i].op, folded ? "computed" : "refused");
        if (folded) {
            assert_int_equal(outputs, strcmp(cases[i].op, "Split") == 0 ? 2 : 1);
            assert_int_equal(out->rank, want.rank);
            assert_int_equal(out->elems, want.elems);
            for (int32_t d = 0; d < want.rank; d++)
                assert_int_equal(out->shape[d], want.shape[d]);
            for (int64_t e = 0; e < want.elems; e++)
                if (sl_onnx_constant_get_int(out, e) != want.ints[e])
                    fail_msg("case %d, %s: element %d is %d", (int)i, cases[i].op, (int)e,
                             (int)sl_onnx_constant_get_int(out, e));
        }
        sl_arena_deinit(&arena);
    }
}

/* An operator on constants that has no attributes and one output. */
static bool fold(struct sl_arena *arena, const char *op, const struct sl_onnx_constant *const *inputs, int32_t count,
                 struct sl_onnx_constant *out)
{
    const char *names[] = {"a"};
    const struct sl_onnx_node node = {.op = op, .name = "", .domain = "", .outputs = names, .output_count = 1};
    int32_t outputs;
    return sl_onnx_constant_fold(arena, &node, inputs, count, out, 1, &outputs);
}

/* A constant of which only one number is stored, because all are the same, is as good as one with all of them. */
static void fills_are_like_numbers_that_are_written_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int filled = 0; filled < 3; filled++) {
            struct sl_arena arena = {0};
            struct sl_onnx_constant in[3], whole[2], made[2];
            const struct sl_onnx_constant *inputs[3];
            const int64_t value = cases[i].in[filled].values[0], one[] = {value, -77, -77, -77, -77, -77, -77};
            int64_t all[12];
            int32_t outputs;
            if (cases[i].in[filled].rank < 0)
                continue;
            for (int k = 0; k < 12; k++)
                all[k] = value;
            for (int k = 0; k < 3; k++) {
                in[k] = make(&cases[i].in[k]);
                inputs[k] = cases[i].in[k].rank < 0 ? NULL : &in[k];
            }
            in[filled].ints = all;
            const bool folded = fold_case(i, &arena, inputs, whole, &outputs);
            in[filled].ints = one;
            in[filled].is_fill = true;
            if (fold_case(i, &arena, inputs, made, &outputs) != folded)
                fail_msg("case %d, %s: %s with a fill", (int)i, cases[i].op, folded ? "refused" : "computed");
            if (folded) {
                assert_int_equal(made->rank, whole->rank);
                assert_int_equal(made->elems, whole->elems);
                assert_memory_equal(made->shape, whole->shape, (size_t)made->rank * sizeof *made->shape);
                for (int64_t e = 0; e < made->elems; e++)
                    if (sl_onnx_constant_get_int(made, e) != sl_onnx_constant_get_int(whole, e))
                        fail_msg("case %d, %s: element %d is %d, expected %d", (int)i, cases[i].op, (int)e,
                                 (int)sl_onnx_constant_get_int(made, e), (int)sl_onnx_constant_get_int(whole, e));
            }
            sl_arena_deinit(&arena);
        }
}

/* Up to 64 indices are gathered one by one. */
static void few_are_gathered(void **state)
{
    enum { MOST = 64 };
    (void)state;
    for (int64_t count = MOST - 1; count <= MOST + 1; count++) {
        struct sl_arena arena = {0};
        int64_t indices[MOST + 1];
        const int64_t values[] = {5, 6, 7};
        for (int64_t k = 0; k < count; k++)
            indices[k] = k % 3 - (k % 2 ? 3 : 0);
        const struct sl_onnx_constant data = {.rank = 1, .shape = {3}, .elems = 3, .ints = values};
        const struct sl_onnx_constant list = {.rank = 1, .shape = {count}, .elems = count, .ints = indices};
        const struct sl_onnx_constant *const inputs[] = {&data, &list};
        struct sl_onnx_constant out;
        assert_int_equal(fold(&arena, "Gather", inputs, 2, &out), count <= MOST);
        for (int64_t k = 0; k < count && count <= MOST; k++)
            assert_int_equal(sl_onnx_constant_get_int(&out, k), values[k % 3]);
        assert_true(count > MOST || out.elems == count);
        sl_arena_deinit(&arena);
    }
}

/* Floats are compared and cast as they are, and go with floats alone. */
static void floats_and_integers(void **state)
{
    (void)state;
    static const float values[] = {0.5f, -2.75f, 0};
    static const int64_t numbers[] = {1, 0, 1};
    static const struct {
        const char *op;
        int64_t to; /* of a Cast */
        bool is_float;
        double expected[3];
    } rows[] = {{"Equal", 0, false, {1, 1, 1}}, {"Add", 0, true, {1, -5.5, 0}}, {"Cast", 9, false, {1, 1, 0}},
                {"Cast", 7, false, {0, -2, 0}}, {"Cast", 6, false, {0, -2, 0}}, {"Cast", 11, true, {0.5, -2.75, 0}}};
    const struct sl_onnx_constant floats = {.rank = 1, .shape = {3}, .elems = 3, .floats = values};
    const struct sl_onnx_constant ints = {.rank = 1, .shape = {3}, .elems = 3, .ints = numbers};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct sl_onnx_constant *const inputs[] = {&floats, &floats};
        const char *names[] = {"a"};
        const struct sl_onnx_attribute to = {.name = "to", .i = rows[k].to};
        const struct sl_onnx_node node = {.op = rows[k].op,
                                          .name = "",
                                          .domain = "",
                                          .outputs = names,
                                          .output_count = 1,
                                          .attributes = &to,
                                          .attribute_count = rows[k].to != 0};
        struct sl_arena arena = {0};
        struct sl_onnx_constant out;
        int32_t count;
        assert_true(sl_onnx_constant_fold(&arena, &node, inputs, rows[k].to ? 1 : 2, &out, 1, &count));
        assert_true((out.floats != NULL) == rows[k].is_float && (out.ints == NULL) == rows[k].is_float);
        for (int64_t e = 0; e < 3; e++)
            if (sl_onnx_constant_get(&out, e) != rows[k].expected[e])
                fail_msg("row %d: element %d is %g", (int)k, (int)e, sl_onnx_constant_get(&out, e));
        sl_arena_deinit(&arena);
    }
    struct sl_arena arena = {0};
    struct sl_onnx_constant out;
    const struct sl_onnx_constant *const mixed[] = {&ints, &floats, &ints}, *const again[] = {&ints, &ints, &floats};
    assert_false(fold(&arena, "Where", mixed, 3, &out));
    assert_false(fold(&arena, "Where", again, 3, &out));
    assert_false(fold(&arena, "Mul", mixed, 2, &out));
    assert_false(fold(&arena, "Concat", mixed, 2, &out));
    assert_false(fold(&arena, "ReduceProd", mixed + 1, 1, &out));
    sl_arena_deinit(&arena);
}

/* A constant of one number has any size that can be counted, whether that number is stored once or not; of others up to
 * four million elements are written out. */
static void large_constants_of_one_number(void **state)
{
    (void)state;
    static const int64_t values[] = {3, 3, 5}, most = 1 << 22;
    static const struct {
        int64_t shape[2];    /* that is wanted, and 2 behind it */
        int32_t first, rank; /* the numbers are values[first … first + 2), or one of them */
        bool fill, folds;
    } rows[] = {
        {{1, most}, 0, 1, true, true},
        {{1, most}, 0, 1, false, true},
        {{1, most}, 0, 0, false, true},
        {{most, most}, 0, 1, true, true},
        {{most, most}, 0, 1, false, true},
        {{1, most / 2}, 1, 1, false, true},
        {{1, most / 2 + 1}, 1, 1, false, false},
        {{most, most}, 1, 1, false, false},
        {{1LL << 50, 1LL << 50}, 0, 1, true, false},
        {{1LL << 50, 1LL << 50}, 1, 1, false, false},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const int64_t shape[] = {rows[k].shape[0], rows[k].shape[1], 2}, elems = rows[k].rank ? 2 : 1;
        const struct sl_onnx_constant data = {.rank = rows[k].rank,
                                              .shape = {2},
                                              .elems = elems,
                                              .ints = values + rows[k].first,
                                              .is_fill = rows[k].fill};
        const struct sl_onnx_constant wanted = {.rank = 1, .shape = {3}, .elems = 3, .ints = shape};
        const struct sl_onnx_constant *const inputs[] = {&data, &wanted};
        struct sl_arena arena = {0};
        struct sl_onnx_constant out;
        if (fold(&arena, "Expand", inputs, 2, &out) != rows[k].folds)
            fail_msg("row %d: %s", (int)k, rows[k].folds ? "refused" : "computed");
        if (rows[k].folds) {
            assert_int_equal(out.rank, 3);
            assert_memory_equal(out.shape, shape, sizeof shape);
            assert_int_equal(out.elems, 2 * shape[0] * shape[1]);
            assert_int_equal(sl_onnx_constant_get_int(&out, 0), 3);
            assert_int_equal(sl_onnx_constant_get_int(&out, out.elems - 1), values[rows[k].first + elems - 1]);
        }
        sl_arena_deinit(&arena);
    }
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* The indices of a Slice, one after the other, as the specification walks. Returns how many. */
static int32_t walk(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *out)
{
    int32_t count = 0;
    const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
    int64_t at = clamp(start + (start < 0 ? size : 0), 0, highest);
    const int64_t stop = clamp(end + (end < 0 ? size : 0), lowest, highest);
    for (; step > 0 ? at < stop : at > stop; at += step)
        out[count++] = at;
    return count;
}

/* Of the rows [0 … n) and [n … 2 n), for all bounds and steps around the size. */
static void slices_walk_as_specified(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    for (int64_t size = 1; size <= 5; size++)
        for (int64_t start = -7; start <= 7; start++)
            for (int64_t end = -7; end <= 7; end++)
                for (int64_t step = -3; step <= 3; step++) {
                    struct sl_arena arena = {0};
                    int64_t want[8], axis = size % 2 ? 1 : -1;
                    const struct sl_onnx_constant data = {
                        .rank = 2, .shape = {2, size}, .elems = 2 * size, .ints = values};
                    const struct sl_onnx_constant lists[4] = {{.rank = 1, .shape = {1}, .elems = 1, .ints = &start},
                                                              {.rank = 1, .shape = {1}, .elems = 1, .ints = &end},
                                                              {.rank = 1, .shape = {1}, .elems = 1, .ints = &axis},
                                                              {.rank = 1, .shape = {1}, .elems = 1, .ints = &step}};
                    const struct sl_onnx_constant *const inputs[] = {&data, &lists[0], &lists[1], &lists[2], &lists[3]};
                    struct sl_onnx_constant out = {.rank = 0};
                    const int32_t count = step == 0 ? 0 : walk(size, start, end, step, want);
                    const bool folded = fold(&arena, "Slice", inputs, 5, &out);
                    bool same = folded == (step != 0) && (!folded || (out.rank == 2 && out.shape[1] == count));
                    for (int32_t k = 0; folded && same && k < 2 * count; k++)
                        same = sl_onnx_constant_get_int(&out, k) == (k < count ? want[k] : size + want[k - count]);
                    if (!same)
                        fail_msg("%d elements from %d to %d by %d: %d are left, expected %d", (int)size, (int)start,
                                 (int)end, (int)step, folded ? (int)out.shape[1] : -1, (int)count);
                    sl_arena_deinit(&arena);
                }
}

/* Axes of Unsqueeze count in the shape that is made, from either end: [2, 3] with 1 at two places, and back. */
static void axes_count_from_both_ends(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, 2, 3, 4, 5};
    const struct sl_onnx_constant data = {.rank = 2, .shape = {2, 3}, .elems = 6, .ints = values};
    for (int64_t a = -4; a < 4; a++)
        for (int64_t b = -4; b < 4; b++) {
            const int64_t axes[] = {a, b}, first = (a + 4) % 4, second = (b + 4) % 4;
            const struct sl_onnx_constant list = {.rank = 1, .shape = {2}, .elems = 2, .ints = axes};
            const struct sl_onnx_constant *const inputs[] = {&data, &list};
            struct sl_arena arena = {0};
            struct sl_onnx_constant out, back;
            assert_int_equal(fold(&arena, "Unsqueeze", inputs, 2, &out), first != second);
            for (int32_t d = 0, from = 0; first != second && d < 4; d++)
                assert_int_equal(out.shape[d], d == first || d == second ? 1 : data.shape[from++]);
            const struct sl_onnx_constant *const made[] = {&out, &list};
            if (first != second) {
                assert_true(fold(&arena, "Squeeze", made, 2, &back));
                assert_int_equal(back.rank, 2);
                assert_true(back.shape[0] == 2 && back.shape[1] == 3);
            }
            sl_arena_deinit(&arena);
        }
}

/* No shape has more than SL_ONNX_RANK_MAX dimensions. */
static void ranks_have_a_limit(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, 2, 3, 4, 5}, axes[] = {0, 1, 2, 3, 4, 5, 6};
    const struct sl_onnx_constant data = {.rank = 2, .shape = {2, 3}, .elems = 6, .ints = values};
    for (int64_t count = SL_ONNX_RANK_MAX - 3; count <= SL_ONNX_RANK_MAX - 1; count++) {
        const struct sl_onnx_constant list = {.rank = 1, .shape = {count}, .elems = count, .ints = axes};
        const struct sl_onnx_constant *const inputs[] = {&data, &list};
        struct sl_arena arena = {0};
        struct sl_onnx_constant out;
        assert_int_equal(fold(&arena, "Unsqueeze", inputs, 2, &out), 2 + count <= SL_ONNX_RANK_MAX);
        assert_true(2 + count > SL_ONNX_RANK_MAX || (out.rank == 2 + count && out.shape[count + 1] == 3));
        sl_arena_deinit(&arena);
    }
    for (int64_t rank = SL_ONNX_RANK_MAX; rank <= SL_ONNX_RANK_MAX + 1; rank++) { /* a shape is a list of sizes */
        static const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        const struct sl_onnx_constant one = {.rank = 1, .shape = {1}, .elems = 1, .ints = ones};
        const struct sl_onnx_constant shape = {.rank = 1, .shape = {rank}, .elems = rank, .ints = ones};
        const struct sl_onnx_constant *const inputs[] = {&one, &shape};
        struct sl_arena arena = {0};
        struct sl_onnx_constant out;
        assert_int_equal(fold(&arena, "Expand", inputs, 2, &out), rank <= SL_ONNX_RANK_MAX);
        assert_int_equal(fold(&arena, "ConstantOfShape", inputs + 1, 1, &out), rank <= SL_ONNX_RANK_MAX);
        sl_arena_deinit(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_compute_what_they_say),
        cmocka_unit_test(fills_are_like_numbers_that_are_written_out),
        cmocka_unit_test(few_are_gathered),
        cmocka_unit_test(floats_and_integers),
        cmocka_unit_test(large_constants_of_one_number),
        cmocka_unit_test(slices_walk_as_specified),
        cmocka_unit_test(axes_count_from_both_ends),
        cmocka_unit_test(ranks_have_a_limit),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
