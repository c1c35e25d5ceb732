/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of cuda-generic from their creation to their end. Each call of CUDA, and each of cuBLASLt, fails in its
 * turn: the backend says so, and what it has begun leaves nothing. The same call, repeated, computes what it would have
 * computed. Those of two devices take turns.
 *
 *   test_generic_lives PLUGIN.so [LIBCUBLASLT.so] */
#include "generic_fixture.h"

#include <stdlib.h>

#include <seqlstm/philox.h>

#include "emulated_device.h"

enum { SLOTS = SEQLSTM_SLOT_RECURRENT_COUNT(1), MOST = 160 * 160, FLOATS = 600 /* that are looked at */ };
enum { WAIT = -1, CREATE, BIND, PACK, CALLS };

/* An operation, and how often it runs forward and backward: the second time captures its loops over steps. */
struct row {
    const char *variant;
    int64_t hidden, width; /* of a recurrent layer, or of a dense one */
    int rounds;
    uint32_t dtype; /* of products */
    int64_t rows;   /* of a dense layer; 0: those of the axis */
};

/* Of CUDA, or of cuBLASLt: as emulated_device.h and fake_cublaslt.c say. */
struct source {
    void (*fail_at)(int n);
    int (*disarm)(void);
};
static const struct source cuda = {emulated_fail_at, emulated_disarm};

static int count_none(void)
{
    return 0;
}
static int (*count_library)(void) = count_none; /* what is alive of cuBLASLt */

struct life {
    struct seqlstm_instance *instance;
    uint32_t device;
    struct seqlstm_queue queue;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    void *slots[SLOTS], *grads[SLOTS], *workspace, *reserve, *packed;
    void *spaces[3]; /* in which the last three lie, aligned as the contract says and no better */
};

struct results {
    float slots[SLOTS][FLOATS], grads[SLOTS][FLOATS];
};

/* Without an error to tell of, none of this fails. */
static void *allocate(const struct life *l, uint64_t bytes)
{
    void *block = NULL;
    assert_int_equal(table->memory->allocate(l->instance, l->device, SEQLSTM_MEMORY_DEVICE, bytes, &block, NULL),
                     SEQLSTM_OK);
    assert_int_equal(table->memory->fill(l->instance, l->device, l->queue.native_stream, block, 0, bytes, NULL),
                     SEQLSTM_OK);
    return block;
}

/* Of the largest slot: a matrix, or what is looked at. */
static uint64_t count_bytes(const union seqlstm_any_desc *d)
{
    const int64_t matrix = d->head.op == SEQLSTM_OP_RECURRENT ? 4 * d->recurrent.hidden * d->recurrent.hidden
                                                              : d->dense.input * d->dense.output;
    const int64_t rows = d->head.op == SEQLSTM_OP_RECURRENT ? 0 : d->head.max_rows * d->dense.input;
    int64_t floats = matrix > rows ? matrix : rows;
    floats = floats > FLOATS ? floats : FLOATS;
    assert_true(floats <= MOST);
    return (uint64_t)floats * sizeof(float);
}

/* Other values in each slot that the operation has, and in each element. */
static void make_slots(struct life *l, const union seqlstm_any_desc *d)
{
    static float values[SLOTS][MOST];
    static bool made;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const uint64_t bytes = count_bytes(d);
    for (int k = 0; !made && k < SLOTS; k++)
        for (uint64_t e = 0; e < MOST; e++)
            values[k][e] = (float)(seqlstm_mix64(1, (uint64_t)k, e) % 2001) / 8000 - 0.125f;
    made = true;
    for (int k = 0; k < SLOTS; k++) {
        const bool absent = d->head.op == SEQLSTM_OP_RECURRENT ? k > SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, 2)
                                                               : k >= SEQLSTM_SLOT_DENSE_COUNT;
        l->slots[k] = absent ? NULL : allocate(l, bytes);
        l->grads[k] = absent ? NULL : allocate(l, bytes);
        for (int of_grads = 0; !absent && of_grads < 2; of_grads++)
            assert_int_equal(table->memory->copy(l->instance, l->device, l->queue.native_stream, SEQLSTM_COPY_TO_DEVICE,
                                                 of_grads ? l->grads[k] : l->slots[k], values[k], bytes, &err),
                             SEQLSTM_OK);
    }
}

static seqlstm_status run_step(struct life *l, const union seqlstm_any_desc *d, const struct row *row, int step,
                               struct seqlstm_error *err)
{
    const int64_t rows = row->rows > 0 ? row->rows : axis.rows;
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = rows, .rows_in = rows, .axis = &axis, .t1 = 2};
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
        return table->op_create(l->instance, l->device, &d->head, row->variant, &l->op, err);
    case BIND:
        return table->op_bind(l->op, &l->queue, &bind, &l->binding, err);
    case PACK:
        return l->packed == NULL ? SEQLSTM_OK : table->weights_pack(l->op, &l->queue, l->slots, l->packed, &block, err);
    case WAIT:
        return table->streams->synchronize(l->instance, l->device, l->queue.native_stream, err);
    default:
        return (step - CALLS) % 2 == 0 ? table->forward(l->binding, &l->queue, &forward, err)
                                       : table->backward(l->binding, &l->queue, &backward, err);
    }
}

static void *allocate_space(struct life *l, int which, uint64_t bytes)
{
    l->spaces[which] = bytes > 0 ? allocate(l, SEQLSTM_ALIGNMENT + bytes) : NULL;
    return bytes > 0 ? (unsigned char *)l->spaces[which] + SEQLSTM_ALIGNMENT : NULL;
}

static void make_spaces(struct life *l)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    assert_int_equal(table->op_sizes(l->op, &sizes, &err), SEQLSTM_OK);
    l->workspace = allocate_space(l, 0, sizes.workspace_bytes);
    l->reserve = allocate_space(l, 1, sizes.reserve_bytes);
    l->packed = allocate_space(l, 2, sizes.packed_bytes);
}

static void take_results(const struct life *l, struct results *out)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(out, 0, sizeof *out);
    for (int k = 0; k < SLOTS; k++)
        for (int of_grads = 0; l->slots[k] != NULL && of_grads < 2; of_grads++)
            assert_int_equal(table->memory->copy(l->instance, l->device, l->queue.native_stream, SEQLSTM_COPY_TO_HOST,
                                                 of_grads ? out->grads[k] : out->slots[k],
                                                 of_grads ? l->grads[k] : l->slots[k], sizeof out->slots[k], &err),
                             SEQLSTM_OK);
}

static void begin_life(struct life *l, struct seqlstm_instance *instance, uint32_t device,
                       const union seqlstm_any_desc *d)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    *l = (struct life){.instance = instance, .device = device, .queue = {.struct_size = sizeof l->queue, .members = 1}};
    assert_int_equal(table->streams->create(l->instance, l->device, &l->queue.native_stream, &err), SEQLSTM_OK);
    make_slots(l, d);
}

static void end_life(struct life *l)
{
    table->binding_destroy(l->binding);
    table->op_destroy(l->op);
    for (int k = 0; k < 3; k++)
        table->memory->release(l->instance, l->device, SEQLSTM_MEMORY_DEVICE, l->spaces[k]);
    for (int k = 0; k < SLOTS; k++) {
        table->memory->release(l->instance, l->device, SEQLSTM_MEMORY_DEVICE, l->slots[k]);
        table->memory->release(l->instance, l->device, SEQLSTM_MEMORY_DEVICE, l->grads[k]);
    }
    table->streams->destroy(l->instance, l->device, l->queue.native_stream);
}

static struct seqlstm_instance *open_usual(void)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    return cublaslt != NULL ? open_with("cublaslt", cublaslt, SEQLSTM_OK, &err) : open_plain();
}

/* Status and message are of the same failure, the first: the end of a capture that it has spoilt fails, too. */
static bool is_expected(seqlstm_status status, const struct seqlstm_error *err)
{
    const char *why = err->message;
    const bool of_library = strstr(why, "CUBLAS_STATUS_INTERNAL_ERROR") != NULL;
    const bool starts = strstr(why, "does not start on CUDA device 0") == NULL;
    const bool has_memory = strstr(why, "(2)") == NULL;
    const seqlstm_status right = !starts ? SEQLSTM_UNSUPPORTED : has_memory ? SEQLSTM_DEVICE : SEQLSTM_NO_MEMORY;
    return status == right && err->code == status &&
           (of_library ? !starts || strstr(why, " failed in cublasLt") != NULL
                       : strstr(why, "told to fail") != NULL || strstr(why, "(719)") != NULL || !has_memory);
}

/* The n-th call of the source fails; 0: none does. Returns false if there are fewer. `out_silent`: the operation went
 * on without what has failed; NULL: it may not. */
static bool live(const struct source *source, const struct row *row, const union seqlstm_any_desc *d, int n,
                 bool *out_silent, struct results *out)
{
    struct life l;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const int alive = emulated_count_alive(), of_library = count_library();
    const int64_t blocks = host.memory.live_blocks;
    const size_t bytes = emulated_count_memory();
    bool failed = false;
    begin_life(&l, open_usual(), 0, d);
    source->fail_at(n);
    const int last = CALLS + 2 * row->rounds;
    for (int k = 0; k <= last; k++) {
        const int step = k < last ? k : WAIT;
        const seqlstm_status status = run_step(&l, d, row, step, &err);
        if (status != SEQLSTM_OK) {
            if (!source->disarm() || failed || !is_expected(status, &err) || (step == CREATE && l.op != NULL) ||
                (step == BIND && l.binding != NULL))
                fail_msg("%s, call %d: step %d gives %d, `%s`", row->variant, n, step, (int)status, err.message);
            failed = true;
            err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
            if (run_step(&l, d, row, step, &err) != SEQLSTM_OK)
                fail_msg("%s, call %d: step %d is repeated: %s", row->variant, n, step, err.message);
        }
        if (step == CREATE)
            make_spaces(&l);
    }
    const bool told = source->disarm() || failed;
    if (told && !failed && out_silent == NULL)
        fail_msg("%s, call %d: no call of the backend says that it failed", row->variant, n);
    if (out_silent != NULL)
        *out_silent = told && !failed;
    take_results(&l, out);
    end_life(&l);
    table->close(l.instance);
    if (emulated_count_alive() != alive || count_library() != of_library || host.memory.live_blocks != blocks ||
        emulated_count_memory() != bytes)
        fail_msg("%s, call %d: %d streams, events or captures, %d of cuBLASLt, %d blocks and %lld bytes are left",
                 row->variant, n, emulated_count_alive() - alive, count_library() - of_library,
                 (int)(host.memory.live_blocks - blocks), (long long)(emulated_count_memory() - bytes));
    return told;
}

enum { F32 = SEQLSTM_DTYPE_FLOAT32, BF16 = SEQLSTM_DTYPE_BFLOAT16 };
/* With forty rows, the depth of a gradient of weights has parts. */
static const struct row rows[] = {{"kernels", 0, 32, 1, F32, 40},  {"cublaslt", 0, 32, 1, F32, 5},
                                  {"f16x3", 0, 160, 1, F32, 5},    {"f16x3", 0, 32, 1, F32, 40},
                                  {"small", 8, 0, 2, F32, 0},      {"step_graph", 8, 0, 2, F32, 0},
                                  {"cluster_4", 66, 0, 1, F32, 0}, {"resident", 66, 0, 1, F32, 0}};

static bool exists(const struct row *row)
{
    return cublaslt != NULL || strcmp(row->variant, "cublaslt") != 0;
}

static union seqlstm_any_desc describe(const struct row *row)
{
    union seqlstm_any_desc d = row->hidden > 0 ? make_layer(TRAINING, row->hidden, row->dtype) : make_dense(TRAINING);
    d.head.dtype_compute = row->dtype;
    if (row->hidden == 0)
        d.dense.input = d.dense.output = row->width;
    if (row->hidden > 0) {
        d.recurrent.options |=
            SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
        d.recurrent.weight_drop = 0.25f;
    }
    return d;
}

static struct results wanted, got;

/* The sums may have another order on another device or without a library. */
static void expect_close(const struct row *row)
{
    for (int k = 0; k < SLOTS; k++)
        for (int e = 0; e < FLOATS; e++)
            if (!(fabsf(got.slots[k][e] - wanted.slots[k][e]) <= 1e-5f) ||
                !(fabsf(got.grads[k][e] - wanted.grads[k][e]) <= 1e-5f))
                fail_msg("%s: slot %d, element %d: %g or %g, expected %g or %g", row->variant, k, e, got.slots[k][e],
                         got.grads[k][e], wanted.slots[k][e], wanted.grads[k][e]);
}

static void what_fails_says_so_and_leaves_nothing(void **state)
{
    (void)state;
    setenv("SEQLSTM_EMULATED_MULTIPROCESSORS", "4", 1); /* fewer and larger blocks, which take less time here */
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const union seqlstm_any_desc d = describe(&rows[k]);
        int n = 1;
        if (!exists(&rows[k]))
            continue;
        assert_false(live(&cuda, &rows[k], &d, 0, NULL, &wanted));
        for (; live(&cuda, &rows[k], &d, n, NULL, &got); n++)
            if (memcmp(&got, &wanted, sizeof got) != 0)
                fail_msg("%s, call %d: other results", rows[k].variant, n);
        assert_true(n > 8);
    }
    unsetenv("SEQLSTM_EMULATED_MULTIPROCESSORS");
}

static void find_library(struct source *out)
{
    void *module = dlopen(cublaslt, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(module);
    void *const symbols[] = {dlsym(module, "fake_cublaslt_fail_at"), dlsym(module, "fake_cublaslt_disarm"),
                             dlsym(module, "fake_cublaslt_count_alive")};
    for (int k = 0; k < 3; k++)
        assert_non_null(symbols[k]);
    memcpy(&out->fail_at, &symbols[0], sizeof symbols[0]);
    memcpy(&out->disarm, &symbols[1], sizeof symbols[1]);
    memcpy(&count_library, &symbols[2], sizeof symbols[2]);
    dlclose(module);
}

/* A layer with steps goes on without a library that does not start, and a dense layer in 16 bits tries it again. */
static void what_fails_in_the_library_says_so_and_leaves_nothing(void **state)
{
    static const struct row of_library[] = {{"cublaslt", 0, 32, 1, F32, 5},
                                            {"cublaslt", 0, 32, 1, BF16, 5},
                                            {"step_graph", 8, 0, 2, F32, 0},
                                            {"step_graph", 16, 0, 1, BF16, 0}};
    struct source library;
    (void)state;
    if (cublaslt == NULL) {
        print_message("# no fake cuBLASLt was built\n");
        return;
    }
    table->close(open_usual()); /* it stays loaded */
    find_library(&library);
    for (size_t k = 0; k < sizeof of_library / sizeof *of_library; k++) {
        const struct row *row = &of_library[k];
        const union seqlstm_any_desc d = describe(row);
        bool silent = false;
        const bool starts_again = row->hidden > 0 || row->dtype != F32;
        int n = 1, silently = 0;
        assert_false(live(&library, row, &d, 0, NULL, &wanted));
        for (; live(&library, row, &d, n, starts_again ? &silent : NULL, &got); n++) {
            silently += silent;
            if (silent)
                expect_close(row);
            else if (memcmp(&got, &wanted, sizeof got) != 0)
                fail_msg("%s, call %d of cuBLASLt: other results", row->variant, n);
        }
        assert_true(n > 40);
        assert_int_equal(silently, starts_again);
    }
}

/* Each call is one for the other device than the call before. */
static void devices_take_turns(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const union seqlstm_any_desc d = describe(&rows[r]);
        struct life lives[2];
        const int of_library = count_library();
        if (!exists(&rows[r]))
            continue;
        assert_false(live(&cuda, &rows[r], &d, 0, NULL, &wanted));
        setenv("SEQLSTM_EMULATED_DEVICES", "2", 1);
        struct seqlstm_instance *instance = open_usual();
        unsetenv("SEQLSTM_EMULATED_DEVICES");
        for (uint32_t device = 0; device < 2; device++)
            begin_life(&lives[device], instance, device, &d);
        const int last = CALLS + 2 * rows[r].rounds;
        for (int k = 0; k <= last; k++)
            for (int device = 1; device >= 0; device--) {
                struct seqlstm_error err = SEQLSTM_ERROR_INIT;
                if (run_step(&lives[device], &d, &rows[r], k < last ? k : WAIT, &err) != SEQLSTM_OK)
                    fail_msg("%s, device %d, step %d: %s", rows[r].variant, device, k, err.message);
                if (k == CREATE)
                    make_spaces(&lives[device]);
            }
        for (int device = 0; device < 2; device++) {
            take_results(&lives[device], &got);
            if (memcmp(&got, &wanted, sizeof got) != 0)
                fail_msg("%s, device %d: other results", rows[r].variant, device);
        }
        for (int device = 1; device >= 0; device--)
            end_life(&lives[device]);
        table->close(instance);
        if (count_library() != of_library) /* a handle is destroyed on its own device */
            fail_msg("%s: %d handles or descriptors of cuBLASLt are left", rows[r].variant,
                     count_library() - of_library);
    }
}

/* As processors for graphics have it, where no kernel may need more than the device has. */
static void blocks_with_less_shared_memory_compute_the_same(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const union seqlstm_any_desc d = describe(&rows[k]);
        if (!exists(&rows[k]))
            continue;
        assert_false(live(&cuda, &rows[k], &d, 0, NULL, &wanted));
        setenv("SEQLSTM_EMULATED_SHARED", "101376", 1);
        assert_false(live(&cuda, &rows[k], &d, 0, NULL, &got));
        unsetenv("SEQLSTM_EMULATED_SHARED");
        expect_close(&rows[k]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fails_says_so_and_leaves_nothing),
        cmocka_unit_test(what_fails_in_the_library_says_so_and_leaves_nothing),
        cmocka_unit_test(devices_take_turns),
        cmocka_unit_test(blocks_with_less_shared_memory_compute_the_same),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
