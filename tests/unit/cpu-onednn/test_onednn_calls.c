/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-onednn: memory that runs out at each place, calls that cannot be, and the threads that calls leave to the
 * library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/pool.h"
#include "onednn_fixture.h"

static struct seqlstm_dense_desc dense_of(uint32_t mode)
{
    return (struct seqlstm_dense_desc){.head = {.struct_size = sizeof(struct seqlstm_dense_desc),
                                                .op = SEQLSTM_OP_DENSE,
                                                .mode = mode,
                                                .max_rows = 8,
                                                .max_sequences = 8,
                                                .max_steps = 8},
                                       .input = 5,
                                       .output = 3};
}

/* What is asked of an instance of its own, one after the other. */
struct asked {
    struct seqlstm_instance *instance;
    struct seqlstm_op *dense, *lstm;
    struct seqlstm_binding *rows, *steps;
};

static seqlstm_status create_lstm(struct seqlstm_instance *of, struct seqlstm_op **out_op, struct seqlstm_error *err)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head = (struct seqlstm_desc){.struct_size = sizeof d,
                                   .op = SEQLSTM_OP_RECURRENT,
                                   .mode = SEQLSTM_MODE_TRAINING,
                                   .max_rows = 32,
                                   .max_sequences = 8,
                                   .max_steps = 4};
    d.cell = SEQLSTM_CELL_LSTM;
    d.options = SEQLSTM_BIT_RECURRENT_OUTPUT;
    d.layers = 1;
    d.input = 3;
    d.hidden = 4;
    for (int i = 0; i < 2; i++) {
        d.activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d.activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    return table->op_create(of, 0, &d.head, "sliced", out_op, err);
}

static seqlstm_status ask_all(const struct batch *b, struct asked *out, struct seqlstm_error *err)
{
    const struct seqlstm_dense_desc dense = dense_of(SEQLSTM_MODE_TRAINING);
    const struct seqlstm_bind rows = {.struct_size = sizeof rows, .rows = 8, .rows_in = 8}, steps = describe(b);
    const struct seqlstm_axis *axes[] = {&b->axis};
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    struct seqlstm_range ranges[2][64];
    struct seqlstm_idle idle = {.struct_size = sizeof idle,
                                .workspace = {.at = ranges[0], .room = 64},
                                .reserve = {.at = ranges[1], .room = 64}};
    struct sl_queue queue;
    uint64_t bytes = 0;
    sl_queue_init(&queue, NULL);
    SEQLSTM_TRY(table->open(&host.services, NULL, 0, &out->instance, err));
    SEQLSTM_TRY(table->op_create(out->instance, 0, &dense.head, "sliced", &out->dense, err));
    SEQLSTM_TRY(table->op_bind(out->dense, &queue.queue, &rows, &out->rows, err));
    SEQLSTM_TRY(create_lstm(out->instance, &out->lstm, err));
    SEQLSTM_TRY(table->op_bind(out->lstm, &queue.queue, &steps, &out->steps, err));
    SEQLSTM_TRY(table->op_sizes(out->lstm, &sizes, err));
    sizes.members = 1;
    SEQLSTM_TRY(get_footprint()->idle_ranges(out->lstm, &sizes, &b->axis, &idle, err));
    return get_footprint()->own_bytes(out->lstm, axes, 1, 1, &bytes, err);
}

static void release_all(struct asked *a)
{
    table->binding_destroy(a->rows);
    table->binding_destroy(a->steps);
    table->op_destroy(a->dense);
    table->op_destroy(a->lstm);
    if (a->instance != NULL)
        table->close(a->instance);
}

/* A batch of two lengths, 4 and 3: three rectangles, with primitives and calls each. */
static void what_has_no_memory_is_named_and_given_back(void **state)
{
    enum { MOST = 64 };
    static const char *const expected[] = {
        "no memory for an instance of cpu-onednn",
        "no memory for an operation",
        "no memory for a binding",
        "no memory for the parts of a batch",
        "no memory for the primitives of a binding",
        "no memory for an operation",
        "no memory for a recurrent operation",
        "no memory for a binding",
        "no memory for the binding of a recurrent layer",
        "no memory for the slices of a batch",
        "no memory for the rectangles of a batch",
        "no memory for a primitive",
        "no memory for the calls of a primitive",
        "no memory for a primitive",
        "no memory for the calls of a primitive",
        "no memory for a primitive",
        "no memory for the calls of a primitive",
        "no memory for the slices of a batch",
        "no memory for the rectangles of a batch",
        "no memory for what calls leave idle",
        "no memory for the slices of a batch",
        "no memory for the rectangles of a batch",
        "no memory for shapes",
    };
    (void)state;
    static struct batch b;
    batch_fill(&b, 8, 2, 4);
    const int64_t before = host.memory.live_blocks;
    const char *last = "";
    static char said[MOST][sizeof((struct seqlstm_error *)0)->message];
    size_t count = 0;
    for (int64_t k = 0;; k++) {
        struct asked a = {0};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        host.fail_after = host.memory.n_allocs + k;
        const seqlstm_status status = ask_all(&b, &a, &err);
        host.fail_after = -1;
        release_all(&a);
        assert_int_equal(host.memory.live_blocks, before);
        if (status == SEQLSTM_OK)
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        if (strcmp(last, err.message) != 0) { /* several blocks of a kind */
            assert_true(count < MOST);
            strcpy(said[count], err.message);
            last = said[count++];
        }
    }
    for (size_t k = 0; k < count; k++)
        assert_string_equal(said[k], k < sizeof expected / sizeof *expected ? expected[k] : "");
    assert_int_equal(count, sizeof expected / sizeof *expected);
}

static void inference_has_no_backward(void **state)
{
    const struct seqlstm_dense_desc dense = dense_of(SEQLSTM_MODE_INFERENCE);
    const struct seqlstm_bind rows = {.struct_size = sizeof rows, .rows = 8, .rows_in = 8};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward, .slot_count = 4};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    struct seqlstm_binding *binding = NULL;
    struct sl_queue queue;
    (void)state;
    sl_queue_init(&queue, NULL);
    assert_int_equal(table->op_create(instance, 0, &dense.head, NULL, &op, &err), SEQLSTM_OK);
    assert_int_equal(table->op_bind(op, &queue.queue, &rows, &binding, &err), SEQLSTM_OK);
    assert_int_equal(table->backward(binding, &queue.queue, &backward, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "an operation in inference mode has no backward");
    table->binding_destroy(binding);
    table->op_destroy(op);
}

/* Also where the range of steps would fit: buffers are for the whole axis. */
static void batches_beyond_the_descriptor_are_refused(void **state)
{
    static const char axis[] = "a recurrent layer needs an axis within its descriptor";
    static const struct {
        int32_t sequences, shortest, longest, t0, t1;
        const char *message; /* "": it fits */
    } rows[] = {{8, 4, 4, 0, 4, ""},
                {8, 4, 4, 1, 3, ""},
                {9, 1, 1, 0, 1, "9 sequences, the descriptor allows 8"},
                {9, 1, 3, 2, 3, axis},
                {1, 5, 5, 0, 5, "5 steps, the descriptor allows 4"},
                {1, 5, 5, 0, 4, axis}};
    struct seqlstm_op *op = NULL;
    struct sl_queue queue;
    (void)state;
    static struct batch b;
    sl_queue_init(&queue, NULL);
    assert_int_equal(create_lstm(instance, &op, NULL), SEQLSTM_OK);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_binding *binding = NULL;
        batch_fill(&b, rows[k].sequences, rows[k].shortest, rows[k].longest);
        struct seqlstm_bind steps = describe(&b);
        steps.t0 = rows[k].t0;
        steps.t1 = rows[k].t1;
        steps.rows = steps.rows_in = b.row_offsets[steps.t1] - b.row_offsets[steps.t0];
        const seqlstm_status status = table->op_bind(op, &queue.queue, &steps, &binding, &err);
        assert_int_equal(status, rows[k].message[0] == 0 ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        assert_string_equal(err.message, rows[k].message);
        table->binding_destroy(binding);
    }
    table->op_destroy(op);
}

/* ---- threads of the library -------------------------------------------------------------------------------------- */

/* Those of OpenMP, which the plugin has loaded; NULL: the library is built without. */
static int (*get_threads)(void);
static void (*set_threads)(int);

static bool find_threads(void)
{
    void *library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == NULL)
        return false;
    void *get = dlsym(library, "omp_get_max_threads"), *set = dlsym(library, "omp_set_num_threads");
    memcpy(&get_threads, &get, sizeof get);
    memcpy(&set_threads, &set, sizeof set);
    return get != NULL && set != NULL;
}

static void expect_threads(int threads, const char *what)
{
    if (get_threads() != threads)
        fail_msg("%s leaves %d threads instead of %d", what, get_threads(), threads);
}

static void run_dense(struct seqlstm_op *op, struct sl_queue *queue, int threads)
{
    static float values[64], results[3][64];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    struct seqlstm_binding *binding = NULL;
    const struct seqlstm_bind rows = {.struct_size = sizeof rows, .rows = 8, .rows_in = 8};
    assert_int_equal(table->op_sizes(op, &sizes, &err), SEQLSTM_OK);
    assert_int_equal(table->op_bind(op, &queue->queue, &rows, &binding, &err), SEQLSTM_OK);
    expect_threads(threads, "op_bind");
    void *workspace = aligned_alloc(64, ((size_t)sizes.workspace_bytes / 64 + 1) * 64);
    void *slots[] = {values, results[0], values, NULL}, *grads[] = {results[1], values, results[2], NULL};
    const struct seqlstm_forward forward = {
        .struct_size = sizeof forward, .slot_count = 4, .slots = slots, .workspace = workspace};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                              .slot_count = 4,
                                              .slots = slots,
                                              .grads = grads,
                                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                              .workspace = workspace};
    assert_int_equal(table->forward(binding, &queue->queue, &forward, &err), SEQLSTM_OK);
    expect_threads(threads, "forward");
    assert_int_equal(table->backward(binding, &queue->queue, &backward, &err), SEQLSTM_OK);
    expect_threads(threads, "backward");
    free(workspace);
    table->binding_destroy(binding);
}

/* The number is of the calling thread, whose program may use OpenMP as well. */
static void the_library_has_as_many_threads_as_before(void **state)
{
    static const char *const variants[] = {"sliced", "exclusive"};
    (void)state;
    if (!find_threads()) {
        print_message("# the library does not run on OpenMP\n");
        return;
    }
    static struct batch b;
    static struct idle idle;
    const struct seqlstm_dense_desc dense = dense_of(SEQLSTM_MODE_TRAINING);
    const struct seqlstm_axis *axes[] = {&b.axis};
    const int before = get_threads(), threads = 7; /* neither 1 nor, here, the number of processors */
    struct sl_queue queue;
    sl_queue_init(&queue, NULL);
    batch_fill(&b, 8, 2, 4);
    set_threads(threads);
    for (int k = 0; k < 2; k++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_op *op = NULL;
        uint64_t bytes = 0;
        assert_int_equal(table->op_create(instance, 0, &dense.head, variants[k], &op, &err), SEQLSTM_OK);
        expect_threads(threads, "op_create");
        run_dense(op, &queue, threads);
        bytes = 77;
        assert_int_equal(get_footprint()->own_bytes(op, NULL, 0, 1, &bytes, &err), SEQLSTM_OK);
        assert_int_equal(bytes, 0); /* only layers hold memory of their own */
        table->op_destroy(op);
        op = make_lstm_for(8, 4, 16, SEQLSTM_MODE_TRAINING, variants[k]);
        expect_threads(threads, "op_create of a layer");
        bind_once(op, &b);
        expect_threads(threads, "op_bind of a layer");
        ask(&idle, op, &b.axis);
        expect_threads(threads, "idle_ranges");
        assert_int_equal(get_footprint()->own_bytes(op, axes, 1, 1, &bytes, &err), SEQLSTM_OK);
        expect_threads(threads, "own_bytes");
        table->op_destroy(op);
    }
    set_threads(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_has_as_many_threads_as_before),
        cmocka_unit_test(inference_has_no_backward),
        cmocka_unit_test(batches_beyond_the_descriptor_are_refused),
        cmocka_unit_test(what_has_no_memory_is_named_and_given_back),
    };
    if (!open_backend())
        return 0;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table->close(instance);
    return failed || host.memory.live_blocks != 0;
}
