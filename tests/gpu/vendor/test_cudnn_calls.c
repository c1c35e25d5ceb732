/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of cuda-cudnn on the fake cuDNN: each variant runs its own algorithm, and what is refused after an
 * operation was created is a failure.
 *
 *   test_cudnn_calls PLUGIN.so LIBCUDNN.so */
#include "cudnn_fixture.h"

static const struct seqlstm_axis *bound = &axis; /* of new calls */

static void open_call(struct call *c, uint32_t mode, const char *variant)
{
    const struct seqlstm_recurrent_desc d = describe(STEPS, mode);
    open_layer(c, &d, variant, bound);
}

/* ---- tests --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int forward, backward; /* algorithms */
} variants[] = {{"standard", 0, 0},         {"standard_layers", 0, 0},
                {"persist_dynamic", 2, 2},  {"persist_dynamic_layers", 2, 2},
                {"small_h", 3, 3},          {"small_h_layers", 3, 3},
                {"small_h+standard", 3, 0}, {"persist_dynamic+standard_layers", 2, 0}};

/* An operation is tried when it is created, under its own algorithms and no other; gradients of a pair are compared
 * with those of the standard one. (What has passed is not tried again: each has a length of its own.) */
static void each_variant_runs_its_own_algorithm(void **state)
{
    (void)state;
    static const char *const functions[] = {"forward", "data", "weights"};
    int64_t most_steps = STEPS;
    setenv("FAKE_CUDNN_RESERVE", "shared", 1);
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
        for (int algorithm = 0; algorithm < 4; algorithm++)
            for (int f = 0; f < 3; f++) {
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                struct seqlstm_op *op;
                const bool refused = algorithm == variants[v].backward || (f == 0 && algorithm == variants[v].forward);
                refuse(algorithm, functions[f]);
                const seqlstm_status status = create(most_steps++, SEQLSTM_MODE_TRAINING, variants[v].name, &op, &err);
                if (status != (refused ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK))
                    fail_msg("%s, where algorithm %d refuses %s: status %d, %s", variants[v].name, algorithm,
                             functions[f], (int)status, err.message);
                if (refused)
                    assert_non_null(strstr(err.message, "told to refuse"));
                table->op_destroy(op);
            }
    refuse(-1, NULL);
    unsetenv("FAKE_CUDNN_RESERVE");
}

static void another_name_is_no_variant(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op;
    assert_int_equal(create(STEPS, SEQLSTM_MODE_INFERENCE, "small_h+standard", &op, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "cuda-cudnn has no variant `small_h+standard` of this operation");
    assert_null(op);
}

static void expect_failure(seqlstm_status status, const struct seqlstm_error *err)
{
    assert_int_equal(status, SEQLSTM_DEVICE);
    assert_int_equal(err->code, SEQLSTM_DEVICE);
    assert_non_null(strstr(err->message, "told to refuse"));
}

static void what_is_refused_after_creation_is_a_failure(void **state)
{
    (void)state;
    static const char *const functions[] = {"data", "weights"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct call c;
    open_call(&c, SEQLSTM_MODE_TRAINING, "standard");
    refuse(0, "forward");
    expect_failure(forward(&c, &err), &err);
    for (int f = 0; f < 2; f++) {
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        refuse(-1, NULL);
        assert_int_equal(forward(&c, &err), SEQLSTM_OK);
        refuse(0, functions[f]);
        expect_failure(backward(&c, &err), &err);
    }
    refuse(-1, NULL);
    close_call(&c);
}

/* After the forward of one algorithm, backward of a pair is the standard one's, and no other is asked. */
static void a_pair_runs_backward_by_its_second_algorithm(void **state)
{
    (void)state;
    static const char *const pairs[] = {"small_h+standard", "persist_dynamic+standard", "small_h+standard_layers"};
    static const char *const functions[] = {"data", "weights"};
    setenv("FAKE_CUDNN_RESERVE", "shared", 1);
    for (int p = 0; p < 3; p++)
        for (int f = 0; f < 2; f++) {
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct call c;
            open_call(&c, SEQLSTM_MODE_TRAINING, pairs[p]);
            assert_int_equal(forward(&c, &err), SEQLSTM_OK);
            refuse(0, functions[f]);
            expect_failure(backward(&c, &err), &err);
            refuse(-1, NULL);
            close_call(&c);
        }
    unsetenv("FAKE_CUDNN_RESERVE");
}

/* As if the host had written there since forward. */
static seqlstm_status fill_output(struct call *c, struct seqlstm_error *err)
{
    return table->memory->fill(instance, 0, queue.native_stream, c->slots[SEQLSTM_SLOT_RECURRENT_Y], 0x5A, 64, err);
}

static void expect_filled_output(struct call *c)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    unsigned char bytes[64];
    assert_int_equal(table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_HOST, bytes,
                                         c->slots[SEQLSTM_SLOT_RECURRENT_Y], sizeof bytes, &err),
                     SEQLSTM_OK);
    for (size_t k = 0; k < sizeof bytes; k++)
        assert_int_equal(bytes[k], 0x5A);
}

/* Under an algorithm that refuses, a call is made again under the standard one, as are all later ones. Where backward
 * makes forward again, the output stays as it is. */
static void the_standard_algorithm_takes_over(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int in_backward = 0; in_backward < 2; in_backward++) {
        struct call c;
        open_call(&c, SEQLSTM_MODE_TRAINING, "small_h");
        refuse(0, "forward"); /* is not asked yet */
        assert_int_equal(forward(&c, &err), SEQLSTM_OK);
        refuse(3, in_backward ? "data" : "forward");
        assert_int_equal(in_backward ? SEQLSTM_OK : forward(&c, &err), SEQLSTM_OK);
        if (in_backward)
            assert_int_equal(fill_output(&c, &err), SEQLSTM_OK);
        assert_int_equal(backward(&c, &err), SEQLSTM_OK);
        if (in_backward)
            expect_filled_output(&c);
        refuse(3, "forward");
        assert_int_equal(forward(&c, &err), SEQLSTM_OK);
        refuse(0, "forward");
        expect_failure(forward(&c, &err), &err);
        refuse(-1, NULL);
        close_call(&c);
    }
}

static void inference_has_no_backward(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct call c;
    open_call(&c, SEQLSTM_MODE_INFERENCE, "small_h");
    assert_int_equal(forward(&c, &err), SEQLSTM_OK);
    assert_int_equal(backward(&c, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "an operation in inference mode has no backward");
    close_call(&c);
}

/* The same layer under the same variant; another variant is tried. */
static void what_has_passed_is_not_tried_again(void **state)
{
    enum { LONGEST = 1000 }; /* of no other test */
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op;
    for (int round = 0; round < 3; round++) {
        const char *const variant = round < 2 ? "small_h" : "small_h_layers";
        refuse(round == 0 ? -1 : 3, "forward");
        assert_int_equal(create(LONGEST, SEQLSTM_MODE_INFERENCE, variant, &op, &err),
                         round < 2 ? SEQLSTM_OK : SEQLSTM_UNSUPPORTED);
        table->op_destroy(op);
    }
    refuse(-1, NULL);
}

/* A pair of algorithms was checked for so many sequences; with another number of them the standard one runs. */
static void a_pair_runs_the_sequences_that_it_was_checked_for(void **state)
{
    static const struct {
        const struct seqlstm_axis *axis;
        const char *refused;
        bool fails;
    } rows[] = {{&axis, "0:forward:3", false},
                {&axis, "3:forward:3", false},
                {&two, "3:forward:2", false},
                {&two, "0:forward:2", true}};
    (void)state;
    setenv("FAKE_CUDNN_RESERVE", "shared", 1);
    for (int k = 0; k < 4; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct call c;
        bound = rows[k].axis;
        open_call(&c, SEQLSTM_MODE_TRAINING, "small_h+standard");
        setenv("FAKE_CUDNN_REFUSE", rows[k].refused, 1);
        if (rows[k].fails)
            expect_failure(forward(&c, &err), &err);
        else
            assert_int_equal(forward(&c, &err), SEQLSTM_OK);
        refuse(-1, NULL);
        close_call(&c);
    }
    bound = &axis;
    unsetenv("FAKE_CUDNN_RESERVE");
}

/* ---- what a binding must be ------------------------------------------------------------------------------------- */

/* The first sequence has all steps, the others one: 6 rows; and four sequences of one step. */
static const int32_t ragged_lengths[] = {STEPS, 1, 1}, ragged_sizes[] = {3, 1, 1, 1};
static const int64_t ragged_offsets[] = {0, 3, 4, 5, 6};
static const struct seqlstm_axis ragged = {.struct_size = sizeof ragged,
                                           .sequences = 3,
                                           .steps = STEPS,
                                           .rows = 6,
                                           .lengths = ragged_lengths,
                                           .batch_sizes = ragged_sizes,
                                           .row_offsets = ragged_offsets};
static const int32_t wide_lengths[] = {1, 1, 1, 1}, wide_sizes[] = {4};
static const int64_t wide_offsets[] = {0, 4};
static const struct seqlstm_axis wide = {.struct_size = sizeof wide,
                                         .sequences = 4,
                                         .steps = 1,
                                         .rows = 4,
                                         .lengths = wide_lengths,
                                         .batch_sizes = wide_sizes,
                                         .row_offsets = wide_offsets};

static void a_binding_must_fit_its_descriptor(void **state)
{
    static const struct {
        const struct seqlstm_axis *axis;
        int64_t most_steps; /* of the operation; with SEQUENCES sequences of them */
        int64_t t0, t1, rows;
        const char *message; /* NULL: it fits */
    } cases[] = {
        {NULL, 4, 0, 4, 12, "a recurrent layer needs an axis"},
        {&axis, 4, 0, 4, 12, NULL},
        {&axis, 4, 3, 4, 3, NULL},
        {&axis, 2, 2, 4, 6, NULL},
        {&axis, 4, -1, 4, 12, "the segment [-1, 4) is not inside the axis [0, 4)"},
        {&axis, 4, 2, 2, 0, "the segment [2, 2) is not inside the axis [0, 4)"},
        {&axis, 4, 3, 1, 0, "the segment [3, 1) is not inside the axis [0, 4)"},
        {&axis, 5, 0, 5, 12, "the segment [0, 5) is not inside the axis [0, 4)"},
        {&axis, 4, 0, 4, 11, "rows, sequences and steps: 11, 3 and 4; the descriptor allows 12, 3 and 4"},
        {&axis, 4, 1, 4, 12, "rows, sequences and steps: 12, 3 and 3; the descriptor allows 12, 3 and 4"},
        {&axis, 2, 1, 4, 9, "rows, sequences and steps: 9, 3 and 3; the descriptor allows 6, 3 and 2"},
        {&ragged, 3, 0, 4, 6, "rows, sequences and steps: 6, 3 and 4; the descriptor allows 9, 3 and 3"},
        {&ragged, 2, 1, 4, 3, "rows, sequences and steps: 3, 1 and 3; the descriptor allows 6, 3 and 2"},
        {&wide, 4, 0, 1, 4, "rows, sequences and steps: 4, 4 and 1; the descriptor allows 12, 3 and 4"},
    };
    (void)state;
    struct seqlstm_queue other = {.struct_size = sizeof other, .members = 1}; /* of no device */
    const struct seqlstm_rebind *rebind = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op;
        struct seqlstm_binding *binding = NULL;
        const struct seqlstm_bind bind = {.struct_size = sizeof bind,
                                          .rows = cases[k].rows,
                                          .rows_in = cases[k].rows,
                                          .axis = cases[k].axis,
                                          .t0 = cases[k].t0,
                                          .t1 = cases[k].t1};
        assert_int_equal(create(cases[k].most_steps, SEQLSTM_MODE_INFERENCE, "standard", &op, &err), SEQLSTM_OK);
        const seqlstm_status status = table->op_bind(op, &queue, &bind, &binding, &err);
        const char *const expected = cases[k].message != NULL ? cases[k].message : "";
        if (status != (cases[k].message ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK) || strcmp(err.message, expected) != 0)
            fail_msg("case %zu: status %d, '%s', expected '%s'", k, (int)status, err.message, expected);
        if (status == SEQLSTM_OK) {
            assert_int_equal(rebind->rebind(binding, &other, &bind, &err), SEQLSTM_INVALID_ARGUMENT);
            assert_string_equal(err.message, "cuda-cudnn needs a queue of a CUDA device");
            assert_int_equal(rebind->rebind(binding, &queue, &bind, &err), SEQLSTM_OK);
        }
        table->binding_destroy(binding);
        table->op_destroy(op);
    }
    direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    for (int64_t t0 = 0; t0 < 2; t0++) { /* [0, 3) and [1, 4) */
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op;
        struct seqlstm_binding *binding = NULL;
        char expected[96];
        const struct seqlstm_bind bind = {
            .struct_size = sizeof bind, .rows = 9, .rows_in = 9, .axis = &axis, .t0 = t0, .t1 = t0 + 3};
        snprintf(expected, sizeof expected, "the segment [%d, %d): two directions need the whole axis [0, 4)", (int)t0,
                 (int)t0 + 3);
        assert_int_equal(create(STEPS, SEQLSTM_MODE_INFERENCE, "standard", &op, &err), SEQLSTM_OK);
        assert_int_equal(table->op_bind(op, &queue, &bind, &binding, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, expected);
        table->op_destroy(op);
    }
    direction = SEQLSTM_DIRECTION_FORWARD;
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

static int32_t said_level;
static char said[80];

static void hear(void *context, int32_t level, const char *message)
{
    (void)context;
    said_level = level;
    snprintf(said, sizeof said, "%s", message);
}

static void options_have_their_effect(void **state)
{
    static const struct {
        const char *capture; /* NULL: by default */
        uint32_t expected;
    } cases[] = {
        {NULL, SEQLSTM_CAPTURE_PER_SHAPE}, {"false", SEQLSTM_CAPTURE_NONE}, {"true", SEQLSTM_CAPTURE_PER_SHAPE}};
    (void)state;
    struct seqlstm_instance *const usual = instance;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
        struct seqlstm_host services = host.services;
        struct seqlstm_op *op;
        const struct seqlstm_setting settings[] = {{"capture", cases[k].capture}, {"library", library}};
        const bool by_default = cases[k].capture == NULL;
        services.log = hear;
        assert_int_equal(table->open(&services, settings + by_default, by_default ? 1 : 2, &instance, &err),
                         SEQLSTM_OK);
        assert_int_equal(said_level, SEQLSTM_LOG_DEBUG);
        assert_int_equal(strncmp(said, "cuDNN 9.", 8), 0);
        assert_int_equal(create(STEPS, SEQLSTM_MODE_INFERENCE, "standard", &op, &err), SEQLSTM_OK);
        assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
        assert_int_equal(sizes.capture, cases[k].expected);
        table->op_destroy(op);
        table->close(instance);
    }
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_setting settings[] = {{"library", library}, {"captures", "true"}};
    struct seqlstm_instance *none = NULL;
    assert_int_equal(table->open(&host.services, settings, 2, &none, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "cuda-cudnn has no option `captures`");
    assert_null(none);
    instance = usual;
}

/* Of each number type; the error model of docs/numerics.md for four steps of two layers. */
static void rounding_explains_more_where_numbers_have_fewer_bits(void **state)
{
    static const struct {
        uint32_t dtype;
        double least, most;
    } rows[] = {{SEQLSTM_DTYPE_FLOAT32, 2e-5, 5e-5},
                {SEQLSTM_DTYPE_TF32, 0.03, 0.033},
                {SEQLSTM_DTYPE_FLOAT16, 0.03, 0.033},
                {SEQLSTM_DTYPE_BFLOAT16, 0.24, 0.26}};
    (void)state;
    setenv("FAKE_CUDNN_RESERVE", "biased", 1);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op = NULL;
        struct seqlstm_recurrent_desc d = describe(STEPS + 30, SEQLSTM_MODE_TRAINING); /* not tried before */
        d.head.dtype_compute = rows[k].dtype;
        assert_int_equal(table->op_create(instance, 0, &d.head, "small_h+standard", &op, &err), SEQLSTM_UNSUPPORTED);
        const char *at = strstr(err.message, "where rounding explains ");
        const double explained = at != NULL ? atof(at + strlen("where rounding explains ")) : -1;
        if (!(explained >= rows[k].least && explained <= rows[k].most))
            fail_msg("row %zu: `%s`", k, err.message);
    }
    unsetenv("FAKE_CUDNN_RESERVE");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_variant_runs_its_own_algorithm),
        cmocka_unit_test(another_name_is_no_variant),
        cmocka_unit_test(what_is_refused_after_creation_is_a_failure),
        cmocka_unit_test(a_pair_runs_backward_by_its_second_algorithm),
        cmocka_unit_test(the_standard_algorithm_takes_over),
        cmocka_unit_test(inference_has_no_backward),
        cmocka_unit_test(what_has_passed_is_not_tried_again),
        cmocka_unit_test(a_pair_runs_the_sequences_that_it_was_checked_for),
        cmocka_unit_test(a_binding_must_fit_its_descriptor),
        cmocka_unit_test(options_have_their_effect),
        cmocka_unit_test(rounding_explains_more_where_numbers_have_fewer_bits),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
