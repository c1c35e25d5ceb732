/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of cuda-generic on the emulated device: what is closed leaves none, and neither does what finds none.
 *
 *   test_generic_memory PLUGIN.so [LIBCUBLASLT.so] */
#include "generic_fixture.h"

#include <stdlib.h>

static void take_counter(void *context, const struct seqlstm_counter *counter)
{
    double *value = context;
    *value = counter->value;
}

static double count_memory(struct seqlstm_instance *instance)
{
    const struct seqlstm_recorder *recorder = table->get_extension(instance, SEQLSTM_RECORDER_EXTENSION);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    double value = -1;
    const struct seqlstm_report to = {.struct_size = sizeof to, .context = &value, .counter = take_counter};
    assert_int_equal(recorder->report(instance, 0, &to, &err), SEQLSTM_OK);
    return value;
}

/* Blocks that bindings have left are kept for others until the instance is closed. */
static void what_is_closed_leaves_no_memory(void **state)
{
    static const struct {
        const char *variant;
        int64_t hidden; /* 0: a dense layer */
    } rows[] = {{"kernels", 0}, {"cublaslt", 0}, {"small", 8}, {"step_graph", 8}, {"cluster_4", 100}};
    (void)state;
    struct seqlstm_instance *const usual = open_plain();
    const double before = count_memory(usual);
    const int64_t blocks = host.memory.live_blocks;
    for (int round = 0; round < 2; round++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct seqlstm_instance *instance =
            cublaslt != NULL ? open_with("cublaslt", cublaslt, SEQLSTM_OK, &err) : open_plain();
        double after_one = 0;
        for (int turn = 0; turn < 3; turn++) {
            for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
                if (cublaslt == NULL && strcmp(rows[k].variant, "cublaslt") == 0)
                    continue;
                struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1};
                struct seqlstm_binding *binding = NULL;
                const struct seqlstm_bind bind = {
                    .struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
                const union seqlstm_any_desc d = rows[k].hidden > 0
                                                     ? make_layer(TRAINING, rows[k].hidden, SEQLSTM_DTYPE_FLOAT32)
                                                     : make_dense(TRAINING);
                struct seqlstm_op *op = create(instance, &d, rows[k].variant, SEQLSTM_OK, &err);
                assert_int_equal(table->streams->create(instance, 0, &queue.native_stream, &err), SEQLSTM_OK);
                assert_int_equal(table->op_bind(op, &queue, &bind, &binding, &err), SEQLSTM_OK);
                assert_true(count_memory(usual) > before);
                table->binding_destroy(binding);
                table->streams->destroy(instance, 0, queue.native_stream);
                table->op_destroy(op);
            }
            after_one = turn == 0 ? (double)(host.memory.live_blocks - blocks) : after_one;
            assert_true((double)(host.memory.live_blocks - blocks) == after_one); /* nothing is left each time */
        }
        table->close(instance);
        assert_true(count_memory(usual) == before);
        assert_int_equal(host.memory.live_blocks, blocks);
    }
    table->close(usual);
}

/* ---- where there is none ----------------------------------------------------------------------------------------- */

struct bound {
    struct seqlstm_instance *instance;
    struct seqlstm_queue queue;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
};

static void unbind(struct bound *b)
{
    table->binding_destroy(b->binding);
    table->op_destroy(b->op);
    if (b->queue.native_stream != NULL)
        table->streams->destroy(b->instance, 0, b->queue.native_stream);
    table->close(b->instance);
}

/* Opens an instance and binds an operation of it, as far as there is memory. */
static seqlstm_status bind_new(struct bound *b, const union seqlstm_any_desc *d, const char *variant,
                               struct seqlstm_error *err)
{
    const struct seqlstm_setting settings[] = {{"cublaslt", cublaslt != NULL ? cublaslt : "none"}};
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
    *b = (struct bound){.queue = {.struct_size = sizeof b->queue, .members = 1}};
    seqlstm_status status = table->open(&host.services, settings, 1, &b->instance, err);
    if (status == SEQLSTM_OK)
        status = table->streams->create(b->instance, 0, &b->queue.native_stream, err);
    if (status == SEQLSTM_OK)
        status = table->op_create(b->instance, 0, &d->head, variant, &b->op, err);
    return status == SEQLSTM_OK ? table->op_bind(b->op, &b->queue, &bind, &b->binding, err) : status;
}

/* Every allocation of the host fails, then every one of the device, from the last ones to the first. */
static void what_finds_no_memory_leaves_none(void **state)
{
    static const struct {
        const char *variant;
        int64_t hidden; /* 0: a dense layer */
    } rows[] = {{"kernels", 0}, {"cublaslt", 0}, {"small", 8}, {"step_graph", 8}, {"cluster_4", 100}, {"resident", 70}};
    (void)state;
    struct seqlstm_instance *const usual = open_plain();
    const double before = count_memory(usual);
    const int64_t blocks = host.memory.live_blocks;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int of_device = 0; of_device < 2; of_device++) {
            const union seqlstm_any_desc d =
                rows[k].hidden > 0 ? make_layer(TRAINING, rows[k].hidden, SEQLSTM_DTYPE_FLOAT32) : make_dense(TRAINING);
            seqlstm_status status = SEQLSTM_NO_MEMORY;
            if (cublaslt == NULL && strcmp(rows[k].variant, "cublaslt") == 0)
                continue;
            struct seqlstm_error why = SEQLSTM_ERROR_INIT;
            struct bound whole;
            int turns = 0;
            assert_int_equal(bind_new(&whole, &d, rows[k].variant, &why), SEQLSTM_OK);
            const double bytes = count_memory(usual);
            const int64_t held = host.memory.live_blocks;
            unbind(&whole);
            for (; status != SEQLSTM_OK; turns++) {
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                struct bound b;
                char limit[32];
                snprintf(limit, sizeof limit, "%.0f", before + 256 * turns);
                if (of_device)
                    setenv("SEQLSTM_EMULATED_MEMORY", limit, 1);
                else
                    host.fail_after = host.memory.n_allocs + turns;
                status = bind_new(&b, &d, rows[k].variant, &err);
                unsetenv("SEQLSTM_EMULATED_MEMORY");
                host.fail_after = -1;
                if (status != SEQLSTM_OK &&
                    (status != SEQLSTM_NO_MEMORY || err.message[0] == '\0' || b.binding != NULL))
                    fail_msg("%s, turn %d: status %d, `%s`", rows[k].variant, turns, (int)status, err.message);
                if (status == SEQLSTM_OK && (host.memory.live_blocks != held || count_memory(usual) != bytes))
                    fail_msg("%s, turn %d: bound although memory was missing", rows[k].variant, turns);
                unbind(&b);
                if (host.memory.live_blocks != blocks || count_memory(usual) != before)
                    fail_msg("%s, turn %d of the %s: %d blocks and %.0f bytes are left", rows[k].variant, turns,
                             of_device ? "device" : "host", (int)(host.memory.live_blocks - blocks),
                             count_memory(usual) - before);
                assert_true(turns < 10000);
            }
            assert_true(turns > 1);
        }
    table->close(usual);
}

/* More streams at once than an instance has room for without memory of the host. */
static void many_streams_leave_no_memory(void **state)
{
    enum { STREAMS = 70 };
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *const usual = open_plain();
    const double before = count_memory(usual);
    const int64_t blocks = host.memory.live_blocks;
    struct seqlstm_instance *instance = open_plain();
    const union seqlstm_any_desc d = make_dense(TRAINING);
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
    struct seqlstm_op *op = create(instance, &d, "kernels", SEQLSTM_OK, &err);
    const int64_t alone = host.memory.live_blocks;
    for (int round = 0; round < 2; round++) {
        struct seqlstm_queue queues[STREAMS] = {{0}};
        struct seqlstm_binding *bindings[STREAMS];
        for (int k = 0; k < STREAMS; k++) {
            queues[k] = (struct seqlstm_queue){.struct_size = sizeof queues[k], .members = 1};
            assert_int_equal(table->streams->create(instance, 0, &queues[k].native_stream, &err), SEQLSTM_OK);
            assert_int_equal(table->op_bind(op, &queues[k], &bind, &bindings[k], &err), SEQLSTM_OK);
        }
        for (int k = 0; k < STREAMS; k++) {
            table->binding_destroy(bindings[k]);
            table->streams->destroy(instance, 0, queues[k].native_stream);
        }
        assert_true(host.memory.live_blocks < alone + STREAMS / 2); /* few are kept */
    }
    table->op_destroy(op);
    table->close(instance);
    assert_int_equal(host.memory.live_blocks, blocks);
    assert_true(count_memory(usual) == before);
    table->close(usual);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_closed_leaves_no_memory),
        cmocka_unit_test(what_finds_no_memory_leaves_none),
        cmocka_unit_test(many_streams_leave_no_memory),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
