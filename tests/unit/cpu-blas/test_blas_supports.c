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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_class_says_tiles),
    };
    return FIXTURE_RUN(tests);
}
