/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-blas: memory that runs out at each place, calls that cannot be, sizes as a whole, bindings that get another
 * shape. */
#include "blas_fixture.h"

#include <seqlstm/ext/rebind.h>

static const int32_t lengths[] = {5, 5, 3, 2};

static struct seqlstm_dense_desc dense_of(uint32_t mode)
{
    struct seqlstm_dense_desc d = {.head = fixture_head(SEQLSTM_OP_DENSE, sizeof d, 8),
                                   .input = 3,
                                   .output = 2,
                                   .options = SEQLSTM_BIT_DENSE_USE_BIAS};
    d.head.mode = mode;
    return d;
}

static struct seqlstm_recurrent_desc lstm_of(uint32_t mode)
{
    struct seqlstm_recurrent_desc d = {.head = fixture_head(SEQLSTM_OP_RECURRENT, sizeof d, 15),
                                       .cell = SEQLSTM_CELL_LSTM,
                                       .options = SEQLSTM_BIT_RECURRENT_OUTPUT,
                                       .layers = 1,
                                       .input = 3,
                                       .hidden = 5};
    d.head.mode = mode;
    for (int i = 0; i < 2; i++) {
        d.activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d.activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

/* Operations of an instance of its own, each with a binding. */
struct bound {
    struct seqlstm_instance *instance;
    struct seqlstm_op *op[2];
    struct seqlstm_binding *binding[2];
};

static seqlstm_status bind_both(struct blas_fixture *f, const struct seqlstm_axis *axis, struct bound *out,
                                struct seqlstm_error *err)
{
    const struct seqlstm_dense_desc dense = dense_of(SEQLSTM_MODE_TRAINING);
    const struct seqlstm_recurrent_desc lstm = lstm_of(SEQLSTM_MODE_TRAINING);
    const struct seqlstm_desc *const descs[] = {&dense.head, &lstm.head};
    const struct seqlstm_bind binds[] = {
        {.struct_size = sizeof binds[0], .rows = 8, .rows_in = 8},
        {.struct_size = sizeof binds[0], .rows = 9, .rows_in = 9, .axis = axis, .t0 = 1, .t1 = 4}};
    SEQLSTM_TRY(f->table->open(&f->host.services, NULL, 0, &out->instance, err));
    for (int k = 0; k < 2; k++) {
        SEQLSTM_TRY(f->table->op_create(out->instance, 0, descs[k], NULL, &out->op[k], err));
        SEQLSTM_TRY(f->table->op_bind(out->op[k], &f->alone.queue, &binds[k], &out->binding[k], err));
    }
    return SEQLSTM_OK;
}

static void release_both(struct blas_fixture *f, struct bound *b)
{
    for (int k = 0; k < 2; k++) {
        f->table->binding_destroy(b->binding[k]);
        f->table->op_destroy(b->op[k]);
    }
    f->table->close(b->instance);
}

static void what_has_no_memory_is_named_and_given_back(void **state)
{
    static const char *const messages[] = {"no memory for an instance of cpu-blas",
                                           "no memory for an operation",
                                           "no memory for a binding",
                                           "no memory for an operation",
                                           "no memory for a recurrent operation",
                                           "no memory for a binding",
                                           "no memory for a binding of 3 steps"};
    struct blas_fixture *f = *state;
    struct fixture_axis a;
    fixture_axis(&a, 4, lengths);
    const int64_t before = f->host.memory.live_blocks;
    for (size_t k = 0; k <= sizeof messages / sizeof *messages; k++) {
        struct bound b = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const bool fails = k < sizeof messages / sizeof *messages;
        f->host.fail_after = f->host.memory.n_allocs + (int64_t)k;
        assert_int_equal(bind_both(f, &a.axis, &b, &err), fails ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        f->host.fail_after = -1;
        assert_string_equal(err.message, fails ? messages[k] : "");
        release_both(f, &b);
        assert_int_equal(f->host.memory.live_blocks, before);
    }
}

static void expect_no_backward(struct blas_fixture *f, const struct seqlstm_desc *desc, const struct seqlstm_bind *bind,
                               const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    const struct seqlstm_backward backward = {.struct_size = sizeof backward, .slot_count = FIXTURE_SLOTS};
    assert_int_equal(f->table->op_create(f->instance, 0, desc, NULL, &op, &err), SEQLSTM_OK);
    assert_int_equal(f->table->op_bind(op, &f->alone.queue, bind, &binding, &err), SEQLSTM_OK);
    assert_int_equal(f->table->backward(binding, &f->alone.queue, &backward, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, message);
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
}

static void operations_without_backward_say_so(void **state)
{
    struct blas_fixture *f = *state;
    struct fixture_axis a;
    fixture_axis(&a, 4, lengths);
    static const char inference[] = "backward of an operation that was made for inference";
    const struct seqlstm_dense_desc dense = dense_of(SEQLSTM_MODE_INFERENCE);
    const struct seqlstm_recurrent_desc lstm = lstm_of(SEQLSTM_MODE_INFERENCE);
    const struct seqlstm_top_k_desc top_k = {
        .head = fixture_head(SEQLSTM_OP_TOP_K, sizeof top_k, 8), .features = 4, .k = 2};
    const struct seqlstm_bind rows = {.struct_size = sizeof rows, .rows = 8, .rows_in = 8};
    const struct seqlstm_bind steps = {
        .struct_size = sizeof steps, .rows = 15, .rows_in = 15, .axis = &a.axis, .t1 = 5};
    expect_no_backward(f, &dense.head, &rows, inference);
    expect_no_backward(f, &lstm.head, &steps, inference);
    expect_no_backward(f, &top_k.head, &rows, "this operation has no backward");
}

/* The first one that is not there; inference has no reserve. */
static void buffers_that_are_missing_are_named(void **state)
{
    struct blas_fixture *f = *state;
    static const uint32_t modes[] = {SEQLSTM_MODE_INFERENCE, SEQLSTM_MODE_TRAINING};
    struct fixture_axis a;
    char bytes[8], message[80];
    fixture_axis(&a, 4, lengths);
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 15, .rows_in = 15, .axis = &a.axis, .t1 = 5};
    for (int training = 0; training < 2; training++) {
        const struct seqlstm_recurrent_desc lstm = lstm_of(modes[training]);
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op = NULL;
        struct seqlstm_binding *binding = NULL;
        assert_int_equal(f->table->op_create(f->instance, 0, &lstm.head, NULL, &op, &err), SEQLSTM_OK);
        assert_int_equal(f->table->op_bind(op, &f->alone.queue, &bind, &binding, &err), SEQLSTM_OK);
        for (int missing = 1; missing < (training ? 8 : 4); missing++) {
            void *packed = missing & 1 ? NULL : bytes, *workspace = missing & 2 ? NULL : bytes;
            void *reserve = missing & 4 || !training ? NULL : bytes;
            const struct seqlstm_forward forward = {
                .struct_size = sizeof forward, .packed = packed, .workspace = workspace, .reserve = reserve};
            const struct seqlstm_backward backward = {
                .struct_size = sizeof backward, .packed = packed, .workspace = workspace, .reserve = reserve};
            snprintf(message, sizeof message, "%s is NULL, a buffer of op_sizes was expected",
                     packed == NULL      ? "packed"
                     : workspace == NULL ? "workspace"
                                         : "reserve");
            assert_int_equal(f->table->forward(binding, &f->alone.queue, &forward, &err), SEQLSTM_INVALID_ARGUMENT);
            assert_string_equal(err.message, message);
            if (!training)
                continue;
            err.message[0] = '\0';
            assert_int_equal(f->table->backward(binding, &f->alone.queue, &backward, &err), SEQLSTM_INVALID_ARGUMENT);
            assert_string_equal(err.message, message);
        }
        assert_int_equal(f->table->weights_pack(op, &f->alone.queue, NULL, NULL, NULL, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, "packed is NULL, a buffer of op_sizes was expected");
        f->table->binding_destroy(binding);
        f->table->op_destroy(op);
    }
}

/* Whatever the caller had there. */
static void sizes_are_said_as_a_whole(void **state)
{
    struct blas_fixture *f = *state;
    const struct seqlstm_dense_desc dense = dense_of(SEQLSTM_MODE_INFERENCE);
    const struct seqlstm_layer_norm_desc norm = {
        .head = fixture_head(SEQLSTM_OP_LAYER_NORM, sizeof norm, 8), .features = 5, .epsilon = 1e-3f};
    const struct seqlstm_recurrent_desc lstm = lstm_of(SEQLSTM_MODE_TRAINING);
    const struct seqlstm_desc *const descs[] = {&dense.head, &norm.head, &lstm.head};
    for (int k = 0; k < 3; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op = NULL;
        struct seqlstm_sizes clean = {.struct_size = sizeof clean}, used = clean;
        used.workspace_bytes = used.reserve_bytes = used.packed_bytes = 1 << 20;
        assert_int_equal(f->table->op_create(f->instance, 0, descs[k], NULL, &op, &err), SEQLSTM_OK);
        assert_int_equal(f->table->op_sizes(op, &clean, &err), SEQLSTM_OK);
        assert_int_equal(f->table->op_sizes(op, &used, &err), SEQLSTM_OK);
        assert_memory_equal(&used, &clean, sizeof clean);
        assert_true(k == 2 ? clean.packed_bytes > 0 : clean.packed_bytes == 0);
        assert_int_equal(clean.reserve_bytes > 0, k > 0);
        f->table->op_destroy(op);
    }
}

/* A layer of which the queue has one member needs less than one for any queue; more members than there are need no
 * more. */
static void fewer_members_need_less(void **state)
{
    struct blas_fixture *f = *state;
    const struct seqlstm_recurrent_desc lstm = lstm_of(SEQLSTM_MODE_TRAINING);
    static const int32_t members[] = {0, 1, FIXTURE_MEMBERS, FIXTURE_MEMBERS + 1};
    uint64_t bytes[4];
    for (int k = 0; k < 4; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op = NULL;
        struct seqlstm_sizes sizes = {.struct_size = sizeof sizes, .members = members[k]};
        assert_int_equal(f->table->op_create(f->instance, 0, &lstm.head, NULL, &op, &err), SEQLSTM_OK);
        assert_int_equal(f->table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
        bytes[k] = sizes.workspace_bytes;
        f->table->op_destroy(op);
    }
    assert_true(bytes[1] < bytes[0] && bytes[2] <= bytes[0]);
    assert_int_equal(bytes[3], bytes[0]);
}

/* A binding of 7 rows becomes one of 5. One that is refused stays as it was. */
static void a_binding_gets_other_rows(void **state)
{
    struct blas_fixture *f = *state;
    const struct seqlstm_rebind *rebind = f->table->get_extension(f->instance, SEQLSTM_REBIND_EXTENSION);
    const struct seqlstm_dense_desc d = dense_of(SEQLSTM_MODE_INFERENCE);
    struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 7, .rows_in = 7};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    float *x = fixture_floats(8 * 3, 1), *w = fixture_floats(2 * 3, 2), *bias = fixture_floats(2, 3), y[16];
    void *slots[] = {x, y, w, bias};
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_forward forward = {
        .struct_size = sizeof forward, .slot_count = SEQLSTM_SLOT_DENSE_COUNT, .slots = slots, .step = &step};
    static const int64_t rows[] = {7, 5, 9, 8}, written[] = {7, 5, 5, 8};
    assert_int_equal(f->table->op_create(f->instance, 0, &d.head, NULL, &op, &err), SEQLSTM_OK);
    assert_int_equal(f->table->op_bind(op, &f->alone.queue, &bind, &binding, &err), SEQLSTM_OK);
    for (int k = 0; k < 4; k++) {
        bind.rows = bind.rows_in = rows[k];
        assert_int_equal(rebind->rebind(binding, &f->alone.queue, &bind, &err),
                         rows[k] > 8 ? SEQLSTM_INVALID_ARGUMENT : SEQLSTM_OK);
        assert_string_equal(err.message, k < 2 ? "" : "9 rows (9 in), the descriptor allows 1 to 8");
        for (int i = 0; i < 16; i++)
            y[i] = 77.0f;
        assert_int_equal(f->table->forward(binding, &f->alone.queue, &forward, &err), SEQLSTM_OK);
        for (int64_t i = 0; i < 16; i++) {
            double want = (double)bias[i % 2];
            for (int64_t j = 0; j < 3; j++)
                want += (double)x[i / 2 * 3 + j] * (double)w[i % 2 * 3 + j];
            fixture_close_to((double)y[i], i / 2 < written[k] ? want : 77.0, 1e-6, "y", i);
        }
    }
    f->table->binding_destroy(binding);
    f->table->op_destroy(op);
    free(x), free(w), free(bias);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_memory_is_named_and_given_back),
        cmocka_unit_test(operations_without_backward_say_so),
        cmocka_unit_test(buffers_that_are_missing_are_named),
        cmocka_unit_test(sizes_are_said_as_a_whole),
        cmocka_unit_test(fewer_members_need_less),
        cmocka_unit_test(a_binding_gets_other_rows),
    };
    return FIXTURE_RUN(tests);
}
