/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of cuda-generic on the emulated device: its options, which bindings take another shape, and the variants
 * that an instance or a device cannot run.
 *
 *   test_generic_calls PLUGIN.so [LIBCUBLASLT.so] */
#include "generic_fixture.h"

#include <stdlib.h>

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void captures_are_of_any_shape_where_nothing_depends_on_it(void **state)
{
    static const struct {
        uint32_t op, capture;
    } rows[] = {
        {SEQLSTM_OP_FINITE_CHECK, SEQLSTM_CAPTURE_ANY_SHAPE}, {SEQLSTM_OP_SQUARED_NORM, SEQLSTM_CAPTURE_ANY_SHAPE},
        {SEQLSTM_OP_OPTIMIZER, SEQLSTM_CAPTURE_ANY_SHAPE},    {SEQLSTM_OP_VECTOR, SEQLSTM_CAPTURE_ANY_SHAPE},
        {SEQLSTM_OP_DENSE, SEQLSTM_CAPTURE_PER_SHAPE},        {SEQLSTM_OP_POOL, SEQLSTM_CAPTURE_PER_SHAPE},
        {SEQLSTM_OP_RECURRENT, SEQLSTM_CAPTURE_PER_SHAPE}};
    static const char *const values[] = {NULL, "true", "false"};
    (void)state;
    for (int v = 0; v < 3; v++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_instance *instance =
            values[v] == NULL ? open_plain() : open_with("capture", values[v], SEQLSTM_OK, &err);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            union seqlstm_any_desc d;
            set_head(&d, rows[k].op, INFERENCE, 64);
            if (rows[k].op == SEQLSTM_OP_DENSE)
                d = make_dense(INFERENCE);
            else if (rows[k].op == SEQLSTM_OP_POOL)
                d = make_pool();
            else if (rows[k].op == SEQLSTM_OP_RECURRENT)
                d = make_layer(INFERENCE, 8, SEQLSTM_DTYPE_FLOAT32);
            else if (rows[k].op == SEQLSTM_OP_OPTIMIZER)
                d.optimizer.kind = SEQLSTM_KIND_OPTIMIZER_SGD;
            else if (rows[k].op == SEQLSTM_OP_VECTOR)
                d.vector.kind = SEQLSTM_KIND_VECTOR_FILL;
            struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
            struct seqlstm_op *op = create(instance, &d, NULL, SEQLSTM_OK, &err);
            assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
            assert_int_equal(sizes.capture, v == 2 ? SEQLSTM_CAPTURE_NONE : rows[k].capture);
            table->op_destroy(op);
        }
        table->close(instance);
    }
}

/* Whether three float16 products may stand for one in float32 is asked where a variant needs them. */
static void variants_of_three_products_can_be_switched_off(void **state)
{
    enum { F32 = SEQLSTM_DTYPE_FLOAT32, BF16 = SEQLSTM_DTYPE_BFLOAT16 };
    static const struct {
        const char *variant;
        int64_t hidden; /* 0: a dense layer */
        uint32_t dtype;
        const char *refusal; /* NULL: it needs none of them */
    } rows[] = {{"f16x3", 0, F32, "f16x3: the option f16x3 is false"},
                {"kernels", 0, F32, NULL},
                {"cluster_4", 128, F32, "cluster_4: the option f16x3 is false"},
                {"cluster_8", 128, F32, "cluster_8: the option f16x3 is false"},
                {"cluster_4", 128, BF16, NULL},
                {"resident", 128, F32, "resident: the option f16x3 is false"},
                {"resident", 128, BF16, NULL},
                {"step_graph+f16x3", 128, F32, "step_graph+f16x3: the option f16x3 is false"},
                {"step_graph", 128, F32, NULL},
                {"small", 8, F32, NULL}};
    static const char *const values[] = {"true", "false"};
    (void)state;
    for (int off = 0; off < 2; off++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_instance *instance = open_with("f16x3", values[off], SEQLSTM_OK, &err);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            for (uint32_t mode = INFERENCE; mode <= TRAINING; mode++) {
                const bool refused = off && rows[k].refusal != NULL;
                const union seqlstm_any_desc d =
                    rows[k].hidden > 0 ? make_layer(mode, rows[k].hidden, rows[k].dtype) : make_dense(mode);
                err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
                struct seqlstm_op *op =
                    create(instance, &d, rows[k].variant, refused ? SEQLSTM_UNSUPPORTED : SEQLSTM_OK, &err);
                assert_string_equal(err.message, refused ? rows[k].refusal : "");
                table->op_destroy(op);
            }
        table->close(instance);
    }
}

static void a_library_that_is_named_must_load(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    const int64_t before = host.memory.live_blocks;
    assert_null(open_with("cublaslt", "/nowhere/libcublasLt.so", SEQLSTM_UNAVAILABLE, &err));
    assert_non_null(strstr(err.message, "/nowhere/libcublasLt.so"));
    assert_int_equal(said_count, 1);
    assert_int_equal(said_level, SEQLSTM_LOG_DEBUG);
    assert_string_equal(said, err.message);
    assert_int_equal(host.memory.live_blocks, before);
    struct seqlstm_instance *instance = open_with("cublaslt", "none", SEQLSTM_OK, &err);
    assert_int_equal(said_count, 1);
    assert_int_equal(said_level, SEQLSTM_LOG_DEBUG);
    table->close(instance);
    assert_null(open_with("cublasLt", "none", SEQLSTM_INVALID_CONFIG, &err));
    assert_string_equal(err.message, "cuda-generic has no option `cublasLt`");
    assert_int_equal(host.memory.live_blocks, before);
}

/* One of the last tests, since a library that was loaded stays. */
static void a_library_that_loads_says_its_version(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    if (cublaslt == NULL) {
        print_message("# no fake cuBLASLt was built\n");
        return;
    }
    struct seqlstm_instance *instance = open_with("cublaslt", cublaslt, SEQLSTM_OK, &err);
    assert_int_equal(said_count, 1);
    assert_int_equal(said_level, SEQLSTM_LOG_DEBUG);
    assert_int_equal(strncmp(said, "cuBLASLt ", 9), 0);
    table->close(instance);
}

/* ---- bindings ---------------------------------------------------------------------------------------------------- */

static const int32_t ones[] = {1, 1, 1};
static const struct seqlstm_axis short_axis = {.struct_size = sizeof short_axis,
                                               .sequences = 3,
                                               .steps = 1,
                                               .rows = 3,
                                               .lengths = ones,
                                               .batch_sizes = batch_sizes,
                                               .row_offsets = row_offsets,
                                               .sequence_id = ids,
                                               .position0 = positions};

/* What lies on the device for its shape is not made anew; other bindings take any shape that fits. */
static void bindings_without_data_of_their_shape_take_another(void **state)
{
    static const char stays[] = "the binding has data of its shape on the device";
    const union seqlstm_any_desc descs[] = {make_dense(INFERENCE), make_pool(),
                                            make_layer(INFERENCE, 8, SEQLSTM_DTYPE_FLOAT32), make_dense(INFERENCE)};
    static const char *const variants[] = {"kernels", "kernels", "small", "cublaslt"};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *instance =
        cublaslt != NULL ? open_with("cublaslt", cublaslt, SEQLSTM_OK, &err) : open_plain();
    const struct seqlstm_rebind *rebind = table->get_extension(instance, SEQLSTM_REBIND_EXTENSION);
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1}, none = queue;
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
    const struct seqlstm_bind fewer = {
        .struct_size = sizeof bind, .rows = 3, .rows_in = 3, .axis = &short_axis, .t1 = 1};
    const struct seqlstm_bind more = {.struct_size = sizeof bind, .rows = 65, .rows_in = 65, .axis = &axis, .t1 = 2};
    (void)state;
    assert_int_equal(table->streams->create(instance, 0, &queue.native_stream, &err), SEQLSTM_OK);
    for (int k = 0; k < (cublaslt != NULL ? 4 : 3); k++) {
        struct seqlstm_binding *binding = NULL;
        struct seqlstm_op *op = create(instance, &descs[k], variants[k], SEQLSTM_OK, &err);
        assert_int_equal(table->op_bind(op, &none, &bind, &binding, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, "cuda-generic needs a queue of a CUDA device");
        assert_null(binding);
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        assert_int_equal(table->op_bind(op, &queue, &bind, &binding, &err), SEQLSTM_OK);
        assert_int_equal(rebind->rebind(binding, &queue, &fewer, &err), k == 0 ? SEQLSTM_OK : SEQLSTM_UNSUPPORTED);
        assert_string_equal(err.message, k == 0 ? "" : stays);
        assert_int_equal(rebind->rebind(binding, &queue, &more, &err), SEQLSTM_INVALID_ARGUMENT);
        table->binding_destroy(binding);
        table->op_destroy(op);
    }
    table->streams->destroy(instance, 0, queue.native_stream);
    table->close(instance);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Of sequences of 2, 2 and 1 steps: a value that is no number is the largest, whichever comes first. */
static void the_largest_of_what_is_no_number_is_none(void **state)
{
    enum { WIDTH = 2, ROWS = 5, SEQUENCES = 3 };
    static const float x[ROWS * WIDTH] = {NAN, 1, 4,  2, 7,
                                          -7,  3, -2, 5, NAN}; /* by steps: rows of 3 and of 2 sequences */
    static const float wanted[SEQUENCES * WIDTH] = {NAN, 1, 5, NAN, 7, -7};
    union seqlstm_any_desc d = make_pool();
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *instance = open_plain();
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1};
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = ROWS, .rows_in = ROWS, .axis = &axis, .t1 = 2};
    const struct seqlstm_step step = {.struct_size = sizeof step};
    struct seqlstm_binding *binding = NULL;
    void *slots[2] = {NULL, NULL};
    float y[SEQUENCES * WIDTH];
    (void)state;
    d.pool.kind = SEQLSTM_KIND_POOL_MAX;
    d.pool.features = WIDTH;
    struct seqlstm_op *op = create(instance, &d, NULL, SEQLSTM_OK, &err);
    assert_int_equal(table->streams->create(instance, 0, &queue.native_stream, &err), SEQLSTM_OK);
    for (int k = 0; k < 2; k++)
        assert_int_equal(table->memory->allocate(instance, 0, SEQLSTM_MEMORY_DEVICE, sizeof x, &slots[k], &err),
                         SEQLSTM_OK);
    assert_int_equal(
        table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_DEVICE, slots[0], x, sizeof x, &err),
        SEQLSTM_OK);
    const struct seqlstm_forward forward = {
        .struct_size = sizeof forward, .slot_count = 2, .slots = slots, .step = &step};
    assert_int_equal(table->op_bind(op, &queue, &bind, &binding, &err), SEQLSTM_OK);
    assert_int_equal(table->forward(binding, &queue, &forward, &err), SEQLSTM_OK);
    assert_int_equal(
        table->memory->copy(instance, 0, queue.native_stream, SEQLSTM_COPY_TO_HOST, y, slots[1], sizeof y, &err),
        SEQLSTM_OK);
    assert_int_equal(table->streams->synchronize(instance, 0, queue.native_stream, &err), SEQLSTM_OK);
    for (int k = 0; k < SEQUENCES * WIDTH; k++)
        if (isnan(wanted[k]) ? !isnan(y[k]) : !(y[k] == wanted[k]))
            fail_msg("y[%d] is %g, expected %g", k, (double)y[k], (double)wanted[k]);
    table->binding_destroy(binding);
    table->op_destroy(op);
    for (int k = 0; k < 2; k++)
        table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, slots[k]);
    table->streams->destroy(instance, 0, queue.native_stream);
    table->close(instance);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

/* The emulated device has 16 multiprocessors, whose blocks form clusters and wait for each other, unless it is told. */
static void a_layer_that_the_device_has_no_room_for_is_refused(void **state)
{
    enum { F32 = SEQLSTM_DTYPE_FLOAT32, BF16 = SEQLSTM_DTYPE_BFLOAT16 };
    static const struct {
        const char *property, *value, *variant;
        int64_t hidden;
        uint32_t dtype;
        const char *refusal;
    } rows[] = {
        {"MULTIPROCESSORS", "16", "resident", 1000, BF16,
         "resident: the blocks of 1000 units do not fit 16 multiprocessors"},
        {"COOPERATIVE", "0", "resident", 100, F32, "resident: the device cannot run blocks that wait for each other"},
        {"MULTIPROCESSORS", "3", "cluster_4", 100, F32, "cluster_4: the device runs no clusters of 4 blocks"},
        {"MULTIPROCESSORS", "15", "cluster_16", 300, BF16, "cluster_16: the device runs no clusters of 16 blocks"},
        {"SHARED", "101376", "cluster_16", 512, F32,
         "cluster_16: W_h of 512 units does not fit 101376 bytes of shared memory"},
        {"MULTIPROCESSORS", "1", "small", 100, F32,
         "small: the device cannot run a cluster of two blocks of these kernels"}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int with_library = 0; with_library <= (cublaslt != NULL); with_library++)
            for (uint32_t mode = INFERENCE; mode <= TRAINING; mode++) {
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                char name[64];
                const union seqlstm_any_desc d = make_layer(mode, rows[k].hidden, rows[k].dtype);
                snprintf(name, sizeof name, "SEQLSTM_EMULATED_%s", rows[k].property);
                setenv(name, rows[k].value, 1);
                struct seqlstm_instance *instance =
                    with_library ? open_with("cublaslt", cublaslt, SEQLSTM_OK, &err) : open_plain();
                const int64_t blocks = host.memory.live_blocks;
                assert_null(create(instance, &d, rows[k].variant, SEQLSTM_UNSUPPORTED, &err));
                assert_string_equal(err.message, rows[k].refusal);
                assert_int_equal(host.memory.live_blocks, blocks);
                table->close(instance);
                unsetenv(name);
                instance = open_plain();
                if (k > 0) /* the device as it is has room for the others */
                    table->op_destroy(create(instance, &d, rows[k].variant, SEQLSTM_OK, &err));
                table->close(instance);
            }
}

static void a_profile_asks_for_the_library_that_is_named(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *instance = open_with("cupti", "/nowhere/libcupti.so", SEQLSTM_OK, &err);
    const struct seqlstm_recorder *recorder = table->get_extension(instance, SEQLSTM_RECORDER_EXTENSION);
    assert_int_equal(recorder->start(instance, 0, &err), SEQLSTM_UNAVAILABLE);
    assert_non_null(strstr(err.message, "/nowhere/libcupti.so"));
    table->close(instance);
}

/* Inference has no backward, and neither have operations that nothing flows through. */
static void what_has_no_backward_says_so(void **state)
{
    (void)state;
    struct seqlstm_instance *instance = open_plain();
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward, .step = &step};
    assert_int_equal(table->streams->create(instance, 0, &queue.native_stream, &err), SEQLSTM_OK);
    for (int k = 0; k < 3; k++) {
        union seqlstm_any_desc d = k == 0 ? make_dense(INFERENCE) : make_pool();
        char expected[80];
        if (k == 2) {
            set_head(&d, SEQLSTM_OP_VECTOR, INFERENCE, 64);
            d.vector.kind = SEQLSTM_KIND_VECTOR_FILL;
        }
        struct seqlstm_binding *binding = NULL;
        struct seqlstm_op *op = create(instance, &d, NULL, SEQLSTM_OK, &err);
        assert_int_equal(table->op_bind(op, &queue, &bind, &binding, &err), SEQLSTM_OK);
        assert_int_equal(table->backward(binding, &queue, &backward, &err), SEQLSTM_INVALID_ARGUMENT);
        snprintf(expected, sizeof expected, "cuda-generic has no backward of operation %u", d.head.op);
        assert_string_equal(err.message, expected);
        table->binding_destroy(binding);
        table->op_destroy(op);
    }
    table->streams->destroy(instance, 0, queue.native_stream);
    table->close(instance);
}

/* Weight gradients of segments come in a call of their own, over the whole axis. */
static void weight_gradients_of_segments_need_a_call_of_their_own(void **state)
{
    enum { SLOTS = SEQLSTM_SLOT_RECURRENT_COUNT(1), INPUTS = SEQLSTM_BIT_BACKWARD_INPUTS };
    enum { STATES = SEQLSTM_BIT_BACKWARD_STATES, WEIGHTS = SEQLSTM_BIT_BACKWARD_WEIGHTS };
    static const char alone[] = "stepwise: weight gradients need a call of their own",
                      whole[] = "stepwise: weight gradients need a binding of the whole axis";
    static const struct {
        uint32_t parts;
        int64_t t0;
        const char *refusal;
    } rows[] = {{WEIGHTS | INPUTS, 0, alone},
                {WEIGHTS | STATES, 0, alone},
                {WEIGHTS | INPUTS | STATES, 1, alone},
                {WEIGHTS, 1, whole}};
    (void)state;
    struct seqlstm_instance *instance = open_plain();
    struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    const struct seqlstm_step step = {.struct_size = sizeof step};
    void *slots[SLOTS], *grads[SLOTS], *workspace, *reserve;
    union seqlstm_any_desc d = make_layer(TRAINING, 8, SEQLSTM_DTYPE_FLOAT32);
    d.recurrent.options |= SEQLSTM_BIT_RECURRENT_STEPWISE;
    struct seqlstm_op *op = create(instance, &d, "step_graph", SEQLSTM_OK, &err);
    assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    assert_int_equal(table->streams->create(instance, 0, &queue.native_stream, &err), SEQLSTM_OK);
    for (int k = 0; k < SLOTS; k++) {
        assert_int_equal(table->memory->allocate(instance, 0, SEQLSTM_MEMORY_DEVICE, 4096, &slots[k], &err),
                         SEQLSTM_OK);
        assert_int_equal(table->memory->allocate(instance, 0, SEQLSTM_MEMORY_DEVICE, 4096, &grads[k], &err),
                         SEQLSTM_OK);
    }
    assert_int_equal(
        table->memory->allocate(instance, 0, SEQLSTM_MEMORY_DEVICE, sizes.workspace_bytes, &workspace, &err),
        SEQLSTM_OK);
    assert_int_equal(table->memory->allocate(instance, 0, SEQLSTM_MEMORY_DEVICE, sizes.reserve_bytes, &reserve, &err),
                     SEQLSTM_OK);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_binding *binding = NULL;
        const int64_t count = rows[k].t0 > 0 ? 2 : 5;
        const struct seqlstm_bind bind = {
            .struct_size = sizeof bind, .rows = count, .rows_in = count, .axis = &axis, .t0 = rows[k].t0, .t1 = 2};
        const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                                  .slot_count = SLOTS,
                                                  .slots = slots,
                                                  .grads = grads,
                                                  .parts = rows[k].parts,
                                                  .workspace = workspace,
                                                  .reserve = reserve,
                                                  .step = &step};
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        if (table->op_bind(op, &queue, &bind, &binding, &err) != SEQLSTM_OK)
            fail_msg("row %zu: %s", k, err.message);
        assert_int_equal(table->backward(binding, &queue, &backward, &err), SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, rows[k].refusal);
        table->binding_destroy(binding);
    }
    for (int k = 0; k < SLOTS; k++) {
        table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, slots[k]);
        table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, grads[k]);
    }
    table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, workspace);
    table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, reserve);
    table->op_destroy(op);
    table->streams->destroy(instance, 0, queue.native_stream);
    table->close(instance);
}
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures_are_of_any_shape_where_nothing_depends_on_it),
        cmocka_unit_test(variants_of_three_products_can_be_switched_off),
        cmocka_unit_test(a_library_that_is_named_must_load),
        cmocka_unit_test(bindings_without_data_of_their_shape_take_another),
        cmocka_unit_test(the_largest_of_what_is_no_number_is_none),
        cmocka_unit_test(a_layer_that_the_device_has_no_room_for_is_refused),
        cmocka_unit_test(a_profile_asks_for_the_library_that_is_named),
        cmocka_unit_test(what_has_no_backward_says_so),
        cmocka_unit_test(weight_gradients_of_segments_need_a_call_of_their_own),
        cmocka_unit_test(a_library_that_loads_says_its_version),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
