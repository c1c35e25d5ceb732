/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that the fake cuDNN compiles for cuda-cudnn: how many, and which layers they serve.
 *
 *   test_cudnn_compiled PLUGIN.so LIBCUDNN.so */
#include "cudnn_fixture.h"

#include <unistd.h>

#include "../../unit/support/temporary.h"

enum { TRAINING = SEQLSTM_MODE_TRAINING };

static char builds[TEMPORARY_BYTES];

/* Networks that have been compiled so far. */
static int count_builds(void)
{
    FILE *file = fopen(builds, "r");
    int lines = 0;
    for (int c = file != NULL ? fgetc(file) : EOF; c != EOF; c = fgetc(file))
        lines += c == '\n';
    if (file != NULL)
        fclose(file);
    return lines;
}

static int begin_builds(void **state)
{
    (void)state;
    const int file = mkstemp(temporary_template(builds, "builds"));
    if (file < 0)
        return 1;
    close(file);
    return setenv("FAKE_CUDNN_BUILDS", builds, 1);
}

static int end_builds(void **state)
{
    (void)state;
    unsetenv("FAKE_CUDNN_BUILDS");
    return unlink(builds);
}

static void change_input(struct seqlstm_recurrent_desc *d)
{
    d->input = 3;
}
static void change_hidden(struct seqlstm_recurrent_desc *d)
{
    d->hidden = 8;
}
static void change_layers(struct seqlstm_recurrent_desc *d)
{
    d->layers = 3;
}
static void change_direction(struct seqlstm_recurrent_desc *d)
{
    d->direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
}
static void change_cell(struct seqlstm_recurrent_desc *d)
{
    d->cell = SEQLSTM_CELL_GRU;
    d->options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
}
static void change_math(struct seqlstm_recurrent_desc *d)
{
    d->head.dtype_compute = SEQLSTM_DTYPE_TF32;
}
static void change_type(struct seqlstm_recurrent_desc *d)
{
    d->head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
}
static void change_type_again(struct seqlstm_recurrent_desc *d)
{
    d->head.dtype_compute = SEQLSTM_DTYPE_FLOAT16;
}
static void change_sequences(struct seqlstm_recurrent_desc *d)
{
    d->head.max_sequences = 4;
    d->head.max_rows = 4 * STEPS;
}
static void change_steps(struct seqlstm_recurrent_desc *d)
{
    d->head.max_steps = 3; /* nothing that is compiled */
}

/* A compiled network serves the layer that it was compiled for, also in inference and with fewer steps, and no layer
 * that differs in anything else. */
static void compiled_networks_are_for_their_layer(void **state)
{
    static const struct {
        const char *what;
        void (*change)(struct seqlstm_recurrent_desc *d);
        int builds;
    } rows[] = {
        {"steps", change_steps, 0},        {"input", change_input, 1},          {"units", change_hidden, 1},
        {"layers", change_layers, 1},      {"directions", change_direction, 1}, {"cell", change_cell, 1},
        {"math", change_math, 1},          {"bfloat16", change_type, 1},        {"float16", change_type_again, 1},
        {"sequences", change_sequences, 1}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_instance *const usual = instance;
        const struct seqlstm_setting settings[] = {{"library", library}};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(table->open(&host.services, settings, 1, &instance, &err), SEQLSTM_OK);
        for (int changed = 0; changed < 4; changed++) { /* the layer, the other one, and both again */
            struct seqlstm_recurrent_desc d = describe(STEPS, changed < 2 ? TRAINING : SEQLSTM_MODE_INFERENCE);
            struct seqlstm_op *op = NULL;
            const int before = count_builds(), wanted = changed == 0 ? 1 : changed == 1 ? rows[k].builds : 0;
            if (changed % 2 == 1)
                rows[k].change(&d);
            if (table->op_create(instance, 0, &d.head, "persist_dynamic", &op, &err) != SEQLSTM_OK)
                fail_msg("%s: %s", rows[k].what, err.message);
            if (count_builds() - before != wanted)
                fail_msg("%s, layer %d: %d networks are compiled, expected %d", rows[k].what, changed,
                         count_builds() - before, wanted);
            table->op_destroy(op);
        }
        table->close(instance);
        instance = usual;
    }
}

/* Another size of a batch needs a network that some binding has left; the own one is left for others. */
static void a_binding_takes_what_others_have_compiled(void **state)
{
    enum { LONG = 8 };
    static const int32_t three[] = {2, 2, 2}, one[] = {3};
    (void)state;
    const struct seqlstm_rebind *rebind = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    const struct seqlstm_recurrent_desc d = describe(LONG, TRAINING);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct some_axis wide, narrow;
    struct seqlstm_binding *other = NULL;
    struct call c;
    make_axis(&wide, three, 3);
    make_axis(&narrow, one, 1);
    const struct seqlstm_bind to_wide = bind_to(&wide, 0, 2), to_narrow = bind_to(&narrow, 0, 3);
    open_layer(&c, &d, "persist_dynamic", &wide.axis);
    assert_int_equal(count_builds(), 1);
    assert_int_equal(rebind->rebind(c.binding, &queue, &to_narrow, &err), SEQLSTM_UNSUPPORTED);
    assert_string_equal(err.message, "cuDNN has not compiled the network for a batch of this size: 1");
    table->binding_destroy(c.binding);
    assert_int_equal(table->op_bind(c.op, &queue, &to_wide, &c.binding, &err), SEQLSTM_OK); /* which was left */
    assert_int_equal(count_builds(), 1);
    assert_int_equal(table->op_bind(c.op, &queue, &to_narrow, &other, &err), SEQLSTM_OK);
    table->binding_destroy(other);
    assert_int_equal(count_builds(), 2);
    for (int turn = 0; turn < 3; turn++) {
        assert_int_equal(rebind->rebind(c.binding, &queue, turn % 2 ? &to_wide : &to_narrow, &err), SEQLSTM_OK);
        if (forward(&c, &err) != SEQLSTM_OK || backward(&c, &err) != SEQLSTM_OK)
            fail_msg("turn %d: %s", turn, err.message);
    }
    assert_int_equal(count_builds(), 2);
    close_call(&c);
}

/* A network is compiled again for another clip alone. */
static void compiled_networks_are_for_their_clip(void **state)
{
    enum { LONGEST = 1001 }; /* of no other test */
    static const struct {
        float clip;
        bool builds;
    } rows[] = {{0.25f, true}, {0.25f, false}, {0.5f, true}, {0.25f, false}, {0.5f, false}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op;
        const int before = count_builds();
        clip = rows[k].clip;
        assert_int_equal(create(LONGEST, SEQLSTM_MODE_INFERENCE, "persist_dynamic", &op, &err), SEQLSTM_OK);
        table->op_destroy(op);
        if ((count_builds() > before) != rows[k].builds)
            fail_msg("row %zu: %d networks after %d", k, count_builds(), before);
    }
    clip = 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(compiled_networks_are_for_their_layer, begin_builds, end_builds),
        cmocka_unit_test_setup_teardown(compiled_networks_are_for_their_clip, begin_builds, end_builds),
        cmocka_unit_test_setup_teardown(a_binding_takes_what_others_have_compiled, begin_builds, end_builds),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
