/* SPDX-License-Identifier: Apache-2.0 */
/* The answers and refusals that backends share, each as a whole, and how a CPU backend describes its processor, of
 * which the test makes up what the system tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/answer.h"
#include "common/cpu_device.h"
#include "oom.h"

/* ---- the processor ------------------------------------------------------------------------------------------- */

static const char *cpuinfo; /* NULL: there is no such file */

FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    assert_string_equal(path, "/proc/cpuinfo");
    assert_int_equal(mode[0], 'r');
    return cpuinfo == NULL ? NULL : fmemopen((void *)(uintptr_t)cpuinfo, strlen(cpuinfo), "r");
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    return __wrap_fopen(path, mode);
}

static struct seqlstm_device_info describe(int level, const char *library)
{
    struct seqlstm_device_info info;
    memset(&info, 0xFF, sizeof info);
    info.struct_size = sizeof info;
    cpu_device_describe(level, library, &info);
    return info;
}

static void a_device_has_the_name_of_the_first_processor(void **state)
{
    (void)state;
    static const struct {
        const char *cpuinfo, *library, *name;
    } rows[] = {
        {"processor\t: 0\nmodel\t\t: 17\nmodel name\t: Two 2: x\nmodel name\t: Other\n", "oneDNN 2.6",
         "Two 2: x, oneDNN 2.6"},
        {"model name :\t One\n", "OpenBLAS", "One, OpenBLAS"},
        {"model name\nmodel name\t:\nmodel name\t: \t\nmodel name\t: Last", "L", "Last, L"},
        {"my model name\t: No\nmodel\t: 3\n", "L", "CPU, L"},
        {"\n", "L", "CPU, L"},
        {NULL, "L", "CPU, L"},
        {"model name\t: 0123456789 123456789 123456789 123456789 123456789 123456789 123456789\n", "Library",
         "0123456789 123456789 123456789 123456789 123456789 123, Library"},
        {"model name\t: One\n", "0123456789 123456789 123456789", "One, 0123456789 123456789 "},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        cpuinfo = rows[k].cpuinfo;
        const struct seqlstm_device_info info = describe(3, rows[k].library);
        assert_string_equal(info.name, rows[k].name);
    }
}

static void a_device_has_the_class_of_its_level(void **state)
{
    (void)state;
    static const char *const classes[] = {"cpu", "cpu:x86-64", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"};
    cpuinfo = NULL;
    for (int level = 0; level < 5; level++) {
        const struct seqlstm_device_info info = describe(level, "L");
        assert_string_equal(info.device_class, classes[level]);
        assert_string_equal(info.domain, "host");
        assert_int_equal(info.flags, 0);
        assert_int_equal(info.memory_bytes, 0);
    }
}

static void there_is_one_device(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    uint32_t count = 7;
    assert_int_equal(cpu_device_report_count(NULL, &count, &err), SEQLSTM_OK);
    assert_int_equal(count, 1);
    assert_int_equal(cpu_device_check(0, "cpu-x", &err), SEQLSTM_OK);
    assert_int_equal(cpu_device_check(1, "cpu-x", &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "device 1 does not exist: cpu-x has one");
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static struct seqlstm_answer make_answer(void)
{
    struct seqlstm_answer answer;
    memset(&answer, 0xFF, sizeof answer);
    answer.struct_size = sizeof answer;
    return answer;
}

static void expect_no(const struct seqlstm_answer *answer, uint32_t code, uint32_t option, const char *value,
                      const char *reason, const char *hint)
{
    assert_int_equal(answer->accepted, 0);
    assert_int_equal(answer->code, code);
    assert_int_equal(answer->option, option);
    assert_string_equal(answer->value, value);
    assert_string_equal(answer->reason, reason);
    assert_string_equal(answer->hint, hint);
}

static void a_yes_has_its_variants_in_order(void **state)
{
    (void)state;
    static const char *const few[] = {"b", "a", "c", NULL};
    const char *many[SEQLSTM_MAX_VARIANTS + 2] = {NULL};
    struct seqlstm_answer answer = make_answer();
    assert_true(answer_yes(&answer, few));
    assert_int_equal(answer.accepted, 1);
    assert_int_equal(answer.variant_count, 3);
    for (int k = 0; k < 3; k++)
        assert_string_equal(answer.variants[k], few[k]);
    for (int k = 0; k < SEQLSTM_MAX_VARIANTS + 1; k++)
        many[k] = k == SEQLSTM_MAX_VARIANTS - 1 ? "last" : "one of many";
    assert_true(answer_yes(&answer, many));
    assert_int_equal(answer.variant_count, SEQLSTM_MAX_VARIANTS);
    assert_string_equal(answer.variants[SEQLSTM_MAX_VARIANTS - 1], "last");
}

static void a_no_has_all_its_parts(void **state)
{
    (void)state;
    struct seqlstm_answer answer = make_answer();
    assert_false(answer_no(&answer, SEQLSTM_BIT_REFUSED_MODE, SEQLSTM_OPTION_ZONEOUT, "why", "what instead", "%d of %s",
                           3, "x"));
    expect_no(&answer, SEQLSTM_BIT_REFUSED_MODE, SEQLSTM_OPTION_ZONEOUT, "3 of x", "why", "what instead");
}

static void other_devices_are_refused(void **state)
{
    (void)state;
    static const char *const others[] = {"cuda:sm_90", "cpux", "cp", "", "gpu:cpu"};
    struct seqlstm_answer answer = make_answer();
    assert_true(answer_on_cpu(&answer, "cpu-x", "cpu"));
    assert_true(answer_on_cpu(&answer, "cpu-x", "cpu:x86-64-v4"));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        answer = make_answer();
        assert_false(answer_on_cpu(&answer, "cpu-x", others[k]));
        expect_no(&answer, SEQLSTM_BIT_REFUSED_DEVICE, SEQLSTM_OPTION_NONE, others[k], "cpu-x runs on CPUs alone.",
                  "device: cpu");
    }
}

static void rows_are_limited_but_for_flat_vectors(void **state)
{
    (void)state;
    static const struct {
        uint32_t op;
        int64_t rows;
        bool accepted;
    } rows[] = {{SEQLSTM_OP_RECURRENT, INT32_MAX, true},
                {SEQLSTM_OP_RECURRENT, INT32_MAX + 1LL, false},
                {SEQLSTM_OP_FINITE_CHECK - 1, INT32_MAX + 1LL, false},
                {SEQLSTM_OP_FINITE_CHECK, INT32_MAX + 1LL, true},
                {SEQLSTM_OP_VECTOR, INT32_MAX + 1LL, true},
                {SEQLSTM_OP_VECTOR + 1, INT32_MAX + 1LL, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct seqlstm_desc head = {
            .op = rows[k].op, .max_rows = rows[k].rows, .max_steps = 5, .max_sequences = 7};
        struct seqlstm_answer answer = make_answer();
        assert_int_equal(answer_rows_in_32_bits(&answer, "cpu-x", &head), rows[k].accepted);
        if (!rows[k].accepted)
            expect_no(&answer, SEQLSTM_BIT_REFUSED_SHAPE, SEQLSTM_OPTION_SHAPE, "2147483648",
                      "cpu-x runs at most 2147483647 rows a call.", "smaller batches");
    }
}

/* Each type in each role is named as itself; a role that is not asked about may have any. */
static void other_types_than_float32_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"float32", "tf32", "bfloat16", "float16", "float64",
                                        "int32",   "int8", "uint8",    "?"};
    enum { ROLES = 6, COMPUTE = 5 };
    for (int role = 0; role < ROLES; role++)
        for (uint32_t dtype = 0; dtype < sizeof names / sizeof *names; dtype++) {
            struct seqlstm_desc head = {.op = SEQLSTM_OP_RECURRENT};
            uint32_t *const roles[ROLES] = {&head.dtype_activation, &head.dtype_activation_grad, &head.dtype_state,
                                            &head.dtype_weight,     &head.dtype_weight_grad,     &head.dtype_compute};
            *roles[role] = dtype;
            struct seqlstm_answer answer = make_answer();
            assert_string_equal(answer_dtype_name(dtype), names[dtype]);
            assert_int_equal(answer_float32(&answer, "cpu-x", &head), dtype == SEQLSTM_DTYPE_FLOAT32);
            if (dtype != SEQLSTM_DTYPE_FLOAT32)
                expect_no(&answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, names[dtype],
                          role == COMPUTE ? "cpu-x computes in float32 alone." : "cpu-x takes and gives float32 alone.",
                          "precision: float32");
            answer = make_answer();
            assert_int_equal(answer_float32_edges(&answer, "cpu-x", &head),
                             dtype == SEQLSTM_DTYPE_FLOAT32 || role == COMPUTE);
            head.op = SEQLSTM_OP_CAST; /* what it reads and writes is not the activation's type */
            assert_int_equal(answer_float32_edges(&answer, "cpu-x", &head),
                             dtype == SEQLSTM_DTYPE_FLOAT32 || role == COMPUTE || role == 0);
        }
    const struct seqlstm_desc both = {.dtype_weight = SEQLSTM_DTYPE_INT8, .dtype_compute = SEQLSTM_DTYPE_FLOAT16};
    struct seqlstm_answer answer = make_answer();
    assert_false(answer_float32(&answer, "cpu-x", &both));
    expect_no(&answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, "int8", "cpu-x takes and gives float32 alone.",
              "precision: float32");
}

static void casts_are_between_four_types(void **state)
{
    (void)state;
    static const bool accepted[] = {true, false, true, true, true, false, false, false, false};
    enum { TYPES = sizeof accepted / sizeof *accepted };
    for (uint32_t from = 0; from < TYPES; from++)
        for (uint32_t to = 0; to < TYPES; to++) {
            const struct seqlstm_cast_desc desc = {.from = from, .to = to};
            struct seqlstm_answer answer = make_answer();
            assert_int_equal(answer_cast(&answer, &desc), accepted[from] && accepted[to]);
            if (!accepted[from] || !accepted[to])
                expect_no(&answer, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE,
                          answer_dtype_name(accepted[from] ? to : from),
                          "A cast is between float32, float64, float16 and bfloat16.", "");
        }
}

static void activations_have_the_names_of_the_model_file(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        const char *name;
    } rows[] = {{SEQLSTM_ACT_NONE, "linear"},
                {SEQLSTM_ACT_TANH, "tanh"},
                {SEQLSTM_ACT_SIGMOID, "sigmoid"},
                {SEQLSTM_ACT_RELU, "relu"},
                {SEQLSTM_ACT_LEAKY_RELU, "leaky_relu"},
                {SEQLSTM_ACT_THRESHOLDED_RELU, "thresholded_relu"},
                {SEQLSTM_ACT_SCALED_TANH, "scaled_tanh"},
                {SEQLSTM_ACT_HARD_SIGMOID, "hard_sigmoid"},
                {SEQLSTM_ACT_ELU, "elu"},
                {SEQLSTM_ACT_SOFTSIGN, "softsign"},
                {SEQLSTM_ACT_SOFTPLUS, "softplus"},
                {SEQLSTM_ACT_AFFINE, "affine"},
                {SEQLSTM_ACT_SOFTMAX, "softmax"},
                {SEQLSTM_ACT_LOG_SOFTMAX, "log_softmax"},
                {SEQLSTM_ACT_COUNT, "?"}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        assert_string_equal(answer_activation_name(rows[k].kind), rows[k].name);
}

/* ---- the choice ---------------------------------------------------------------------------------------------- */

static void a_variant_is_chosen_by_its_whole_name(void **state)
{
    (void)state;
    static const char *const variants[] = {"tiles_deep", "tiles", "loops", NULL};
    struct seqlstm_answer answer = make_answer();
    answer_yes(&answer, variants);
    for (uint32_t k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        uint32_t index = 9;
        assert_int_equal(answer_choose(&answer, "cpu-x", variants[k], &index, &err), SEQLSTM_OK);
        assert_int_equal(index, k);
    }
    static const char *const none[] = {NULL, ""}, *const wrong[] = {"tile", "loops2", "cpu-x"};
    for (int k = 0; k < 2; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        uint32_t index = 9;
        assert_int_equal(answer_choose(&answer, "cpu-x", none[k], &index, &err), SEQLSTM_OK);
        assert_int_equal(index, 0);
    }
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        uint32_t index = 9;
        char expected[128];
        assert_int_equal(answer_choose(&answer, "cpu-x", wrong[k], &index, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "cpu-x has no variant `%s` of this operation", wrong[k]);
        assert_string_equal(err.message, expected);
        assert_int_equal(index, 9);
    }
}

static void nothing_is_chosen_of_a_no(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer = make_answer();
    uint32_t index = 9;
    answer_no(&answer, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_ZONEOUT, "the reason", "the hint", "%s", "the value");
    assert_int_equal(answer_choose(&answer, "cpu-x", "loops", &index, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "the reason (the value)");
    assert_int_equal(index, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_the_name_of_the_first_processor),
        cmocka_unit_test(a_device_has_the_class_of_its_level),
        cmocka_unit_test(there_is_one_device),
        cmocka_unit_test(a_yes_has_its_variants_in_order),
        cmocka_unit_test(a_no_has_all_its_parts),
        cmocka_unit_test(other_devices_are_refused),
        cmocka_unit_test(rows_are_limited_but_for_flat_vectors),
        cmocka_unit_test(other_types_than_float32_are_refused_by_name),
        cmocka_unit_test(casts_are_between_four_types),
        cmocka_unit_test(activations_have_the_names_of_the_model_file),
        cmocka_unit_test(a_variant_is_chosen_by_its_whole_name),
        cmocka_unit_test(nothing_is_chosen_of_a_no),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
