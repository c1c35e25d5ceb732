/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu-blas refuses, and which variants a device class has. */
#include "blas_fixture.h"

/* Refusals name option, value and reason. */
static void test_refusals(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, 4), .input = 3, .output = 2};
    for (int k = 0; k < 6; k++) {
        struct seqlstm_dense_desc bad = d;
        const char *class = "cpu:x86-64-v3";
        if (k == 0)
            bad.activation.kind = 99;
        else if (k == 1)
            bad.options = 8;
        else if (k == 2)
            bad.head.dtype_activation = SEQLSTM_DTYPE_BFLOAT16;
        else if (k == 3)
            class = "cuda:sm_90";
        else if (k == 4)
            bad.head.max_rows = INT64_C(1) << 40;
        else
            bad.activation.alpha = NAN;
        struct seqlstm_answer answer = {.struct_size = sizeof answer};
        assert_int_equal(f->table->supports(class, &bad.head, &answer, &err), SEQLSTM_OK);
        assert_int_equal(answer.accepted, 0);
        assert_true(answer.code != 0 && answer.reason[0] != '\0' && answer.value[0] != '\0');
        static const uint32_t options[] = {SEQLSTM_OPTION_ACTIVATION, SEQLSTM_OPTION_USE_BIAS,
                                           SEQLSTM_OPTION_DTYPE,      SEQLSTM_OPTION_NONE,
                                           SEQLSTM_OPTION_SHAPE,      SEQLSTM_OPTION_ACTIVATION};
        assert_int_equal(answer.option, options[k]);
        struct seqlstm_op *op = NULL;
        if (k != 3)
            assert_int_equal(f->table->op_create(f->instance, 0, &bad.head, "default", &op, &err), SEQLSTM_UNSUPPORTED);
        assert_null(op);
    }
    struct seqlstm_op *op = NULL;
    assert_int_equal(f->table->op_create(f->instance, 0, &d.head, "fastest", &op, &err), SEQLSTM_INVALID_ARGUMENT);
    f->host.fail_after = f->host.memory.n_allocs;
    assert_int_equal(f->table->op_create(f->instance, 0, &d.head, NULL, &op, &err), SEQLSTM_NO_MEMORY);
    f->host.fail_after = -1;
    assert_null(op);
}

static struct seqlstm_answer ask_dense(struct blas_fixture *f, const char *class, uint32_t dtype)
{
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, 4), .input = 3, .output = 2};
    d.head.dtype_compute = dtype;
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(f->table->supports(class, &d.head, &answer, &err), SEQLSTM_OK);
    return answer;
}

/* Whether there are tiles depends only on the class, whatever this machine has. An instance which must not use them has
 * another class. */
static void test_class_says_tiles(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_answer with = ask_dense(f, "cpu:x86-64-v4+amx", SEQLSTM_DTYPE_FLOAT32);
    assert_int_equal(with.variant_count, 2);
    assert_string_equal(with.variants[1], "tiles");
    assert_int_equal(ask_dense(f, "cpu:x86-64-v4", SEQLSTM_DTYPE_FLOAT32).variant_count, 1);
    assert_true(ask_dense(f, "cpu:x86-64-v4+amx", SEQLSTM_DTYPE_BFLOAT16).accepted);
    const struct seqlstm_answer without = ask_dense(f, "cpu:x86-64-v4", SEQLSTM_DTYPE_BFLOAT16);
    assert_false(without.accepted);
    assert_int_equal(without.option, SEQLSTM_OPTION_DTYPE);
    struct seqlstm_setting setting = {"instructions", "portable"};
    struct seqlstm_instance *lesser = NULL;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    assert_int_equal(f->table->open(&f->host.services, &setting, 1, &lesser, &err), SEQLSTM_OK);
    assert_int_equal(f->table->device_info(lesser, 0, &info, &err), SEQLSTM_OK);
    assert_null(strstr(info.device_class, "+amx"));
    assert_false(ask_dense(f, info.device_class, SEQLSTM_DTYPE_BFLOAT16).accepted);
    f->table->close(lesser);
}

static void unknown_options_and_values_are_named(void **state)
{
    struct blas_fixture *f = *state;
    static const struct {
        struct seqlstm_setting settings[3];
        uint32_t count;
        const char *message;
    } cases[] = {
        {{{"instructions", "sse"}}, 1, "instructions is `sse`, expected auto, avx512, avx2 or portable"},
        {{{"instructions", "avx51"}}, 1, "instructions is `avx51`, expected auto, avx512, avx2 or portable"},
        {{{"instructions", ""}}, 1, "instructions is ``, expected auto, avx512, avx2 or portable"},
        {{{"openblas_core", "auto"}, {"threads", "4"}, {"instructions", "sse"}}, 3, "cpu-blas has no option `threads`"},
        {{{"instructions", "portable"}, {"openblas_core", "auto"}, {"tiles", "1"}},
         3,
         "cpu-blas has no option `tiles`"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_instance *instance = NULL;
        assert_int_equal(f->table->open(&f->host.services, cases[k].settings, cases[k].count, &instance, &err),
                         SEQLSTM_INVALID_CONFIG);
        assert_string_equal(err.message, cases[k].message);
        assert_null(instance);
    }
}

/* The class that costs belong to: that of the instructions, or of the processor where it offers less. */
static void an_instance_has_the_class_of_its_instructions(void **state)
{
    struct blas_fixture *f = *state;
    static const char *const sets[] = {"auto", "portable", "avx2", "avx512"};
    static const char *const most[] = {"", "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"};
    char best[sizeof((struct seqlstm_device_info *)0)->device_class] = "";
    for (int k = 0; k < 4; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_setting setting = {"instructions", sets[k]};
        struct seqlstm_instance *instance = NULL;
        struct seqlstm_device_info info = {.struct_size = sizeof info};
        if (f->table->open(&f->host.services, &setting, 1, &instance, &err) != SEQLSTM_OK) {
            assert_true(k > 1 && strstr(err.message, sets[k]) != NULL); /* the processor lacks them */
            continue;
        }
        assert_int_equal(f->table->device_info(instance, 0, &info, &err), SEQLSTM_OK);
        if (k == 0)
            snprintf(best, sizeof best, "%.*s", (int)strcspn(info.device_class, "+"), info.device_class);
        else
            assert_string_equal(info.device_class, strcmp(best, most[k]) < 0 ? best : most[k]);
        assert_int_equal(f->table->device_info(instance, 1, &info, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, "device 1 does not exist: cpu-blas has one");
        f->table->close(instance);
    }
}

/* A call with fewer slots than the operation has reads none of them. */
static void calls_need_all_slots(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, 4), .input = 3, .output = 2};
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 4, .rows_in = 4};
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    char expected[80];
    assert_int_equal(f->table->op_create(f->instance, 0, &d.head, NULL, &op, &err), SEQLSTM_OK);
    assert_int_equal(f->table->op_bind(op, &f->alone.queue, &bind, &binding, &err), SEQLSTM_OK);
    for (uint32_t count = 0; count < SEQLSTM_SLOT_DENSE_COUNT; count++) {
        const struct seqlstm_forward forward = {.struct_size = sizeof forward, .slot_count = count};
        const struct seqlstm_backward backward = {.struct_size = sizeof backward, .slot_count = count};
        snprintf(expected, sizeof expected, "%u slots were given, %d are needed", count, (int)SEQLSTM_SLOT_DENSE_COUNT);
        assert_int_equal(f->table->forward(binding, &f->alone.queue, &forward, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, expected);
        err.message[0] = 0;
        assert_int_equal(f->table->backward(binding, &f->alone.queue, &backward, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, expected);
    }
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_class_says_tiles),
        cmocka_unit_test(unknown_options_and_values_are_named),
        cmocka_unit_test(an_instance_has_the_class_of_its_instructions),
        cmocka_unit_test(calls_need_all_slots),
    };
    return FIXTURE_RUN(tests);
}
