/* SPDX-License-Identifier: Apache-2.0 */
/* Each call of CUDA that cuda-generic makes fails in its turn: the backend says so, and what it has begun leaves
 * nothing. The same call, repeated, computes what it would have computed.
 *
 *   test_generic_failures PLUGIN.so [LIBCUBLASLT.so] */
#include "generic_fixture.h"

#include <seqlstm/philox.h>

#include "emulated_device.h"

enum { SLOTS = SEQLSTM_SLOT_RECURRENT_COUNT(1), BYTES = 1 << 18, FLOATS = 600 /* that are looked at */ };
enum { WAIT = -1, CREATE, BIND, PACK, CALLS };

/* An operation, and how often it runs forward and backward: the second time captures its loops over steps. */
struct row {
    const char *variant;
    int64_t hidden; /* 0: a dense layer */
    int rounds;
};

struct life {
    struct seqlstm_instance *instance;
    struct seqlstm_queue queue;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    void *slots[SLOTS], *grads[SLOTS], *workspace, *reserve, *packed;
};

struct results {
    float slots[SLOTS][FLOATS], grads[SLOTS][FLOATS];
};

/* Without an error to tell of, none of this fails. */
static void *allocate(const struct life *l, uint64_t bytes)
{
    void *block = NULL;
    assert_int_equal(table->memory->allocate(l->instance, 0, SEQLSTM_MEMORY_DEVICE, bytes + 256, &block, NULL),
                     SEQLSTM_OK);
    assert_int_equal(table->memory->fill(l->instance, 0, l->queue.native_stream, block, 0, bytes + 256, NULL),
                     SEQLSTM_OK);
    return block;
}

/* Other values in each slot that the operation has, and in each element. */
static void make_slots(struct life *l, const union seqlstm_any_desc *d)
{
    static float values[BYTES / sizeof(float)];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    for (int k = 0; k < SLOTS; k++) {
        const bool absent = d->head.op == SEQLSTM_OP_RECURRENT && k > SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, 2);
        for (size_t e = 0; e < sizeof values / sizeof *values; e++)
            values[e] = (float)(seqlstm_mix64(1, (uint64_t)k, e) % 2001) / 8000 - 0.125f;
        l->slots[k] = absent ? NULL : allocate(l, BYTES);
        l->grads[k] = absent ? NULL : allocate(l, BYTES);
        for (int of_grads = 0; !absent && of_grads < 2; of_grads++)
            assert_int_equal(table->memory->copy(l->instance, 0, l->queue.native_stream, SEQLSTM_COPY_TO_DEVICE,
                                                 of_grads ? l->grads[k] : l->slots[k], values, BYTES, &err),
                             SEQLSTM_OK);
    }
}

static seqlstm_status run_step(struct life *l, const union seqlstm_any_desc *d, const char *variant, int step,
                               struct seqlstm_error *err)
{
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
    const struct seqlstm_step block = {.struct_size = sizeof block};
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = SLOTS,
                                            .slots = l->slots,
                                            .workspace = l->workspace,
                                            .reserve = l->reserve,
                                            .packed = l->packed,
                                            .step = &block};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                              .slot_count = SLOTS,
                                              .slots = l->slots,
                                              .grads = l->grads,
                                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES |
                                                       SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                              .workspace = l->workspace,
                                              .reserve = l->reserve,
                                              .packed = l->packed,
                                              .step = &block};
    switch (step) {
    case CREATE:
        return table->op_create(l->instance, 0, &d->head, variant, &l->op, err);
    case BIND:
        return table->op_bind(l->op, &l->queue, &bind, &l->binding, err);
    case PACK:
        return l->packed == NULL ? SEQLSTM_OK : table->weights_pack(l->op, &l->queue, l->slots, l->packed, &block, err);
    case WAIT:
        return table->streams->synchronize(l->instance, 0, l->queue.native_stream, err);
    default:
        return (step - CALLS) % 2 == 0 ? table->forward(l->binding, &l->queue, &forward, err)
                                       : table->backward(l->binding, &l->queue, &backward, err);
    }
}

static void make_spaces(struct life *l)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(table->op_sizes(l->op, &sizes, &err), SEQLSTM_OK);
    l->workspace = allocate(l, sizes.workspace_bytes);
    l->reserve = allocate(l, sizes.reserve_bytes);
    l->packed = sizes.packed_bytes > 0 ? allocate(l, sizes.packed_bytes) : NULL;
}

static void take_results(const struct life *l, struct results *out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < SLOTS; k++)
        for (int of_grads = 0; l->slots[k] != NULL && of_grads < 2; of_grads++)
            assert_int_equal(table->memory->copy(l->instance, 0, l->queue.native_stream, SEQLSTM_COPY_TO_HOST,
                                                 of_grads ? out->grads[k] : out->slots[k],
                                                 of_grads ? l->grads[k] : l->slots[k], sizeof out->slots[k], &err),
                             SEQLSTM_OK);
}

static void end_life(struct life *l)
{
    void *const spaces[] = {l->workspace, l->reserve, l->packed};
    table->binding_destroy(l->binding);
    table->op_destroy(l->op);
    for (int k = 0; k < 3; k++)
        table->memory->release(l->instance, 0, SEQLSTM_MEMORY_DEVICE, spaces[k]);
    for (int k = 0; k < SLOTS; k++) {
        table->memory->release(l->instance, 0, SEQLSTM_MEMORY_DEVICE, l->slots[k]);
        table->memory->release(l->instance, 0, SEQLSTM_MEMORY_DEVICE, l->grads[k]);
    }
    table->streams->destroy(l->instance, 0, l->queue.native_stream);
    table->close(l->instance);
}

/* The n-th call of CUDA fails; 0: none does. Returns false if there are fewer. */
static bool live(const struct row *row, const union seqlstm_any_desc *d, int n, struct results *out)
{
    struct life l = {.queue = {.struct_size = sizeof l.queue, .members = 1}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int alive = emulated_count_alive();
    const int64_t blocks = host.memory.live_blocks;
    const size_t bytes = emulated_count_memory();
    bool failed = false;
    l.instance = cublaslt != NULL ? open_with("cublaslt", cublaslt, SEQLSTM_OK, &err) : open_plain();
    assert_int_equal(table->streams->create(l.instance, 0, &l.queue.native_stream, &err), SEQLSTM_OK);
    make_slots(&l, d);
    emulated_fail_at(n);
    const int last = CALLS + 2 * row->rounds;
    for (int k = 0; k <= last; k++) {
        const int step = k < last ? k : WAIT;
        const seqlstm_status status = run_step(&l, d, row->variant, step, &err);
        if (status != SEQLSTM_OK) {
            if (!emulated_disarm() || failed || status != SEQLSTM_DEVICE || err.code != status ||
                (strstr(err.message, "told to fail") == NULL && strstr(err.message, "(719)") == NULL) ||
                (step == CREATE && l.op != NULL) || (step == BIND && l.binding != NULL))
                fail_msg("%s, call %d: step %d gives %d, `%s`", row->variant, n, step, (int)status, err.message);
            failed = true;
            err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
            if (run_step(&l, d, row->variant, step, &err) != SEQLSTM_OK)
                fail_msg("%s, call %d: step %d is repeated: %s", row->variant, n, step, err.message);
        }
        if (step == CREATE)
            make_spaces(&l);
    }
    const bool told = emulated_disarm() || failed;
    if (told && !failed)
        fail_msg("%s, call %d: no call of the backend says that it failed", row->variant, n);
    take_results(&l, out);
    end_life(&l);
    if (emulated_count_alive() != alive || host.memory.live_blocks != blocks || emulated_count_memory() != bytes)
        fail_msg("%s, call %d: %d streams, events or captures, %d blocks and %lld bytes are left", row->variant, n,
                 emulated_count_alive() - alive, (int)(host.memory.live_blocks - blocks),
                 (long long)(emulated_count_memory() - bytes));
    return told;
}

static void what_fails_says_so_and_leaves_nothing(void **state)
{
    static const struct row rows[] = {{"kernels", 0, 1},    {"cublaslt", 0, 1},   {"small", 8, 2},
                                      {"step_graph", 8, 2}, {"cluster_4", 66, 1}, {"resident", 66, 1}};
    static struct results wanted, got;
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (cublaslt == NULL && strcmp(rows[k].variant, "cublaslt") == 0)
            continue;
        union seqlstm_any_desc d =
            rows[k].hidden > 0 ? make_layer(TRAINING, rows[k].hidden, SEQLSTM_DTYPE_FLOAT32) : make_dense(TRAINING);
        if (rows[k].hidden > 0) {
            d.recurrent.options |= SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_INITIAL_STATE |
                                   SEQLSTM_BIT_RECURRENT_FINAL_STATE;
            d.recurrent.weight_drop = 0.25f;
        }
        assert_false(live(&rows[k], &d, 0, &wanted));
        int n = 1;
        for (; live(&rows[k], &d, n, &got); n++)
            if (memcmp(&got, &wanted, sizeof got) != 0)
                fail_msg("%s, call %d: other results", rows[k].variant, n);
        assert_true(n > 8);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_says_so_and_leaves_nothing),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
