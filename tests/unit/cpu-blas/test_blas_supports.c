/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu-blas refuses, and which variants a device class has. */
#include "blas_fixture.h"

#include <seqlstm/ext/footprint.h>
#include <seqlstm/ext/rebind.h>
#include <seqlstm/ext/recorder.h>

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

/* ---- refusals of layers, as a whole ------------------------------------------------------------------------------ */

struct layer {
    uint32_t cell, dtype, options;
    int64_t input, hidden, projection;
};

static struct seqlstm_answer ask_layer(struct blas_fixture *f, const char *class, const struct layer *layer)
{
    struct seqlstm_recurrent_desc d = {.head = fixture_head(SEQLSTM_OP_RECURRENT, sizeof d, 4),
                                       .cell = layer->cell,
                                       .options = SEQLSTM_BIT_RECURRENT_OUTPUT | layer->options,
                                       .layers = 1,
                                       .input = layer->input,
                                       .hidden = layer->hidden,
                                       .projection = layer->projection};
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    d.head.dtype_compute = layer->dtype;
    if (layer->dtype == SEQLSTM_DTYPE_INT8) {
        d.head.mode = SEQLSTM_MODE_INFERENCE;
        d.data_scale = 1.0f;
    }
    assert_int_equal(f->table->supports(class, &d.head, &answer, &err), SEQLSTM_OK);
    return answer;
}

static void layers_are_refused_by_the_value_that_is_too_much(void **state)
{
    enum { LSTM = SEQLSTM_CELL_LSTM, GRU = SEQLSTM_CELL_GRU, AFTER = SEQLSTM_BIT_RECURRENT_RESET_AFTER };
    enum { F32 = SEQLSTM_DTYPE_FLOAT32, BF16 = SEQLSTM_DTYPE_BFLOAT16, TF32 = SEQLSTM_DTYPE_TF32 };
    enum { INT8 = SEQLSTM_DTYPE_INT8, MOST = 1 << 20, SUM = 65536 };
    static const char wide[] = "cpu-blas runs recurrent layers up to 1048576 wide.";
    static const char projected[] = "cpu-blas has a projection in float32 alone.";
    static const char before[] = "cpu-blas has a GRU whose reset comes before the product in float32 alone.";
    static const char sums[] = "cpu-blas sums products of int8 over up to 65536 inputs and units.";
    static const char after[] = "precision: float32, or reset_after: true", wider[] = "precision: float32";
    static const struct {
        struct layer layer;
        uint32_t option;
        const char *value, *reason, *hint; /* NULL: it is accepted */
    } rows[] = {
        {{LSTM, F32, 0, MOST, MOST, MOST}, 0, NULL, NULL, NULL},
        {{LSTM, F32, 0, MOST + 1, 3, 2}, SEQLSTM_OPTION_SHAPE, "1048577", wide, ""},
        {{LSTM, F32, 0, 3, MOST + 2, 2}, SEQLSTM_OPTION_SHAPE, "1048578", wide, ""},
        {{LSTM, F32, 0, 3, 5, MOST + 3}, SEQLSTM_OPTION_SHAPE, "1048579", wide, ""},
        {{LSTM, BF16, 0, 3, 5, 2}, SEQLSTM_OPTION_DTYPE, "bfloat16", projected, wider},
        {{LSTM, TF32, 0, 3, 5, 2}, SEQLSTM_OPTION_DTYPE, "tf32", projected, wider},
        {{LSTM, INT8, 0, 3, 5, 2}, SEQLSTM_OPTION_DTYPE, "int8", projected, wider},
        {{GRU, F32, 0, 3, 5, 0}, 0, NULL, NULL, NULL},
        {{GRU, BF16, AFTER, 3, 5, 0}, 0, NULL, NULL, NULL},
        {{GRU, BF16, 0, 3, 5, 0}, SEQLSTM_OPTION_DTYPE, "bfloat16", before, after},
        {{GRU, TF32, 0, 3, 5, 0}, SEQLSTM_OPTION_DTYPE, "tf32", before, after},
        {{GRU, INT8, 0, 3, 5, 0}, SEQLSTM_OPTION_DTYPE, "int8", before, after},
        {{LSTM, INT8, 0, SUM - 5, 5, 0}, 0, NULL, NULL, NULL},
        {{LSTM, INT8, 0, SUM - 4, 5, 0}, SEQLSTM_OPTION_SHAPE, "65537", sums, wider},
        {{LSTM, INT8, 0, 5, SUM - 3, 0}, SEQLSTM_OPTION_SHAPE, "65538", sums, wider},
        {{LSTM, BF16, 0, SUM, SUM, 0}, 0, NULL, NULL, NULL},
    };
    struct blas_fixture *f = *state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const struct seqlstm_answer answer = ask_layer(f, "cpu:x86-64-v4+amx", &rows[k].layer);
        if (answer.accepted != (rows[k].reason == NULL))
            fail_msg("row %zu: %s", k, answer.reason);
        if (answer.accepted)
            continue;
        assert_int_equal(answer.option, rows[k].option);
        assert_string_equal(answer.value, rows[k].value);
        assert_string_equal(answer.reason, rows[k].reason);
        assert_string_equal(answer.hint, rows[k].hint);
    }
}

/* Without AMX: products in int8, and no narrower ones; the type of products is named. */
static void narrow_types_need_amx(void **state)
{
    static const struct {
        uint32_t dtype;
        const char *name, *reason;
    } rows[] = {
        {SEQLSTM_DTYPE_BFLOAT16, "bfloat16",
         "cpu-blas computes in bfloat16 on processors with AMX alone, with `instructions: auto`."},
        {SEQLSTM_DTYPE_TF32, "tf32",
         "cpu-blas computes in tf32 on processors with AMX alone, with `instructions: auto`."},
        {SEQLSTM_DTYPE_INT8, NULL, NULL},
    };
    struct blas_fixture *f = *state;
    for (size_t k = 0; k < 3; k++) {
        const struct layer layer = {.cell = SEQLSTM_CELL_LSTM, .dtype = rows[k].dtype, .input = 3, .hidden = 5};
        const struct seqlstm_answer answer = ask_layer(f, "cpu:x86-64-v4", &layer);
        assert_int_equal(answer.accepted, rows[k].reason == NULL);
        if (!answer.accepted) {
            assert_string_equal(answer.value, rows[k].name);
            assert_string_equal(answer.reason, rows[k].reason);
            assert_string_equal(answer.hint, "precision: float32");
        }
    }
}

/* Narrow products are those of layers; dense ones are not in int8. A class is known by its end. */
static void what_has_no_products_is_in_float32(void **state)
{
    static const char modern[] = "cpu:x86-64-v4+amx";
    static const struct {
        uint32_t dtype;
        const char *name;
    } types[] = {{SEQLSTM_DTYPE_BFLOAT16, "bfloat16"}, {SEQLSTM_DTYPE_TF32, "tf32"}, {SEQLSTM_DTYPE_INT8, "int8"}};
    struct blas_fixture *f = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < 3; k++) {
        struct seqlstm_layer_norm_desc norm = {
            .head = fixture_head(SEQLSTM_OP_LAYER_NORM, sizeof norm, 4), .features = 3, .epsilon = 1e-3f};
        struct seqlstm_answer answer = {.struct_size = sizeof answer};
        norm.head.dtype_compute = types[k].dtype;
        assert_int_equal(f->table->supports(modern, &norm.head, &answer, &err), SEQLSTM_OK);
        assert_false(answer.accepted);
        assert_string_equal(answer.value, types[k].name);
        assert_int_equal(ask_dense(f, modern, types[k].dtype).accepted, types[k].dtype != SEQLSTM_DTYPE_INT8);
    }
    assert_int_equal(ask_dense(f, "cpu:x86-64-v4+amx+later", SEQLSTM_DTYPE_FLOAT32).variant_count, 1);
    assert_int_equal(ask_dense(f, "cpu:+amx", SEQLSTM_DTYPE_FLOAT32).variant_count, 2);
}

/* What is stored is preferred while it is small: up to 512 MiB, in bfloat16 up to 24 MiB. */
static void a_loss_of_many_classes_is_stored_while_small(void **state)
{
    static const char columns[] = "columns", rows[] = "rows", stored[] = "stored", recomputed[] = "recomputed";
    static const struct {
        int64_t rows, classes;
        uint32_t mode, dtype;
        const char *variants[4];
    } cases[] = {
        {64, 1023, SEQLSTM_MODE_TRAINING, SEQLSTM_DTYPE_FLOAT32, {rows, "tiles"}},
        {64, 1023, SEQLSTM_MODE_INFERENCE, SEQLSTM_DTYPE_FLOAT32, {rows, "tiles"}},
        {64, 1024, SEQLSTM_MODE_TRAINING, SEQLSTM_DTYPE_FLOAT32, {stored, recomputed, "tiles"}},
        {64, 1024, SEQLSTM_MODE_INFERENCE, SEQLSTM_DTYPE_FLOAT32, {columns, "tiles"}},
        {127100, 1024, SEQLSTM_MODE_TRAINING, SEQLSTM_DTYPE_FLOAT32, {stored, recomputed, "tiles"}},
        {127101, 1024, SEQLSTM_MODE_TRAINING, SEQLSTM_DTYPE_FLOAT32, {recomputed, stored, "tiles"}},
        {127101, 1024, SEQLSTM_MODE_INFERENCE, SEQLSTM_DTYPE_FLOAT32, {columns, "tiles"}},
        {5957, 1024, SEQLSTM_MODE_TRAINING, SEQLSTM_DTYPE_BFLOAT16, {stored, recomputed}},
        {5958, 1024, SEQLSTM_MODE_TRAINING, SEQLSTM_DTYPE_BFLOAT16, {recomputed, stored}},
    };
    struct blas_fixture *f = *state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_dense_loss_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE_LOSS, sizeof d, cases[k].rows),
                                            .input = 3,
                                            .output = cases[k].classes,
                                            .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
        struct seqlstm_answer answer = {.struct_size = sizeof answer};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        uint32_t count = 0;
        d.head.mode = cases[k].mode;
        d.head.dtype_compute = cases[k].dtype;
        assert_int_equal(f->table->supports("cpu:x86-64-v4+amx", &d.head, &answer, &err), SEQLSTM_OK);
        for (; count < 4 && cases[k].variants[count] != NULL; count++)
            if (count >= answer.variant_count || strcmp(answer.variants[count], cases[k].variants[count]) != 0)
                fail_msg("case %zu: no variant %s at place %u", k, cases[k].variants[count], (unsigned)count);
        assert_int_equal(answer.variant_count, count);
    }
}

/* What is stored lies in the reserve; each is what its name says, whichever of them comes first. */
static void what_is_stored_takes_reserve(void **state)
{
    static const char *const variants[] = {"stored", "recomputed"};
    struct blas_fixture *f = *state;
    for (int large = 0; large < 2; large++) {
        const int64_t rows = large ? 127101 : 64;
        const struct seqlstm_dense_loss_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE_LOSS, sizeof d, rows),
                                                  .input = 3,
                                                  .output = 1024,
                                                  .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY};
        uint64_t reserve[2];
        for (int k = 0; k < 2; k++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
            struct seqlstm_op *op = NULL;
            assert_int_equal(f->table->op_create(f->instance, 0, &d.head, variants[k], &op, &err), SEQLSTM_OK);
            assert_int_equal(f->table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
            reserve[k] = sizes.reserve_bytes;
            f->table->op_destroy(op);
        }
        assert_true(reserve[0] - reserve[1] >= (uint64_t)rows * 1024 * sizeof(float));
    }
}

static void operations_of_later_headers_are_refused_by_number(void **state)
{
    struct blas_fixture *f = *state;
    const struct seqlstm_desc head = fixture_head(SEQLSTM_OP_COUNT + 2, sizeof head, 4);
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char number[16];
    assert_int_equal(f->table->supports("cpu", &head, &answer, &err), SEQLSTM_OK);
    snprintf(number, sizeof number, "%d", SEQLSTM_OP_COUNT + 2);
    assert_int_equal(answer.accepted, 0);
    assert_int_equal(answer.code, SEQLSTM_BIT_REFUSED_OPERATION);
    assert_string_equal(answer.value, number);
    assert_string_equal(answer.reason, "This operation is not among those of cpu-blas.");
}

/* ---- what an instance says and offers ---------------------------------------------------------------------------- */

static int32_t said_level, said_count;
static char said[128];

static void hear(void *context, int32_t level, const char *message)
{
    (void)context;
    said_level = level;
    said_count++;
    snprintf(said, sizeof said, "%s", message);
}

/* Once, in the log of those who ask for more. */
static void an_instance_says_what_it_runs_on(void **state)
{
    struct blas_fixture *f = *state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_host services = f->host.services;
    const struct seqlstm_setting setting = {"instructions", "portable"};
    struct seqlstm_instance *instance = NULL;
    services.log = hear;
    assert_int_equal(f->table->open(&services, &setting, 1, &instance, &err), SEQLSTM_OK);
    f->table->close(instance);
    assert_int_equal(said_count, 1);
    assert_int_equal(said_level, SEQLSTM_LOG_DEBUG);
    assert_int_equal(strncmp(said, "kernels portable, OpenBLAS core ", 32), 0);
}

static void extensions_are_found_by_their_whole_id(void **state)
{
    struct blas_fixture *f = *state;
    const struct seqlstm_rebind *rebind = f->table->get_extension(f->instance, SEQLSTM_REBIND_EXTENSION);
    const struct seqlstm_footprint *footprint = f->table->get_extension(f->instance, SEQLSTM_FOOTPRINT_EXTENSION);
    assert_non_null(rebind);
    assert_non_null(footprint);
    assert_int_equal(rebind->struct_size, sizeof *rebind);
    assert_int_equal(footprint->struct_size, sizeof *footprint);
    assert_ptr_not_equal(rebind, (const void *)footprint);
    assert_null(f->table->get_extension(f->instance, SEQLSTM_RECORDER_EXTENSION));
    assert_null(f->table->get_extension(f->instance, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_class_says_tiles),
        cmocka_unit_test(unknown_options_and_values_are_named),
        cmocka_unit_test(an_instance_has_the_class_of_its_instructions),
        cmocka_unit_test(calls_need_all_slots),
        cmocka_unit_test(layers_are_refused_by_the_value_that_is_too_much),
        cmocka_unit_test(narrow_types_need_amx),
        cmocka_unit_test(what_has_no_products_is_in_float32),
        cmocka_unit_test(a_loss_of_many_classes_is_stored_while_small),
        cmocka_unit_test(what_is_stored_takes_reserve),
        cmocka_unit_test(operations_of_later_headers_are_refused_by_number),
        cmocka_unit_test(an_instance_says_what_it_runs_on),
        cmocka_unit_test(extensions_are_found_by_their_whole_id),
    };
    return FIXTURE_RUN(tests);
}
