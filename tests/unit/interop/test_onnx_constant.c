/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on the constants of an ONNX graph, against results by hand from the operators' specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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
    {"Tile", {{2, {1, 2}, {4, 5}}, {1, {2}, {2, 1}}, NONE}, {0}, NONE},
    {"ReduceProd", {{1, {3}, {2, 3, 4}}, NONE, NONE}, {0}, {1, {1}, {24}}},
    {"ReduceProd", {{1, {3}, {2, 3, 4}}, NONE, NONE}, {"keepdims", 0, 0, {0}}, SCALAR(24)},
    {"Reshape", {{1, {6}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {2, -1}}, NONE}, {0}, {2, {2, 3}, {1, 2, 3, 4, 5, 6}}},
    {"Reshape", {{2, {2, 3}, {1, 2, 3, 4, 5, 6}}, {1, {2}, {0, 3}}, NONE}, {0}, {2, {2, 3}, {1, 2, 3, 4, 5, 6}}},
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
    {"Relu", {{1, {2}, {5, -3}}, NONE, NONE}, {0}, NONE},
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

static void operators_compute_what_they_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_arena arena = {0};
        struct sl_onnx_constant in[3], out[2];
        const struct sl_onnx_constant *inputs[3];
        int32_t count = 0, outputs = 0;
        for (int k = 0; k < 3; k++) {
            in[k] = make(&cases[i].in[k]);
            inputs[k] = cases[i].in[k].rank < 0 ? NULL : &in[k];
            count = inputs[k] ? k + 1 : count;
        }
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
        const struct sl_onnx_constant want = make(&cases[i].out);
        const bool folded = sl_onnx_constant_fold(&arena, &node, inputs, count, out, 2, &outputs);
        if (folded != (want.rank >= 0))
            fail_msg("case %d, %s: %s", (int)i, cases[i].op, folded ? "computed" : "refused");
        if (folded) {
            assert_int_equal(outputs, node.output_count);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_compute_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
