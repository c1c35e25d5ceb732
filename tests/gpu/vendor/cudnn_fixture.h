/* SPDX-License-Identifier: Apache-2.0 */
/* cuda-cudnn with the fake cuDNN on the emulated device: layers of two directions or one, and what a call needs. */
#ifndef CUDNN_FIXTURE_H
#define CUDNN_FIXTURE_H

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

#include <seqlstm/backend.h>
#include <seqlstm/ext/draft/memory.h>
#include <seqlstm/ext/rebind.h>

#include "registry/host.h"

enum { SEQUENCES = 3, STEPS = 4, ROWS = SEQUENCES * STEPS, SLOTS = SEQLSTM_SLOT_RECURRENT_COUNT(6), BYTES = 1 << 15 };

static const struct seqlstm_backend *table;
static struct seqlstm_instance *instance;
static struct sl_host host;
static const char *library;
static uint32_t direction; /* of new operations */
static float clip;
static uint32_t parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS; /* of backward */
static struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1};

static const int32_t lengths[SEQUENCES] = {STEPS, STEPS, STEPS};
static const int32_t batch_sizes[STEPS] = {SEQUENCES, SEQUENCES, SEQUENCES, SEQUENCES};
static const int64_t row_offsets[STEPS + 1] = {0, SEQUENCES, 2 * SEQUENCES, 3 * SEQUENCES, ROWS};
static const struct seqlstm_axis axis = {.struct_size = sizeof axis,
                                         .sequences = SEQUENCES,
                                         .steps = STEPS,
                                         .rows = ROWS,
                                         .lengths = lengths,
                                         .batch_sizes = batch_sizes,
                                         .row_offsets = row_offsets};

/* Two of the sequences. */
static const int32_t two_sizes[STEPS] = {2, 2, 2, 2};
static const int64_t two_offsets[STEPS + 1] = {0, 2, 4, 6, 8};
static const struct seqlstm_axis two = {.struct_size = sizeof two,
                                        .sequences = 2,
                                        .steps = STEPS,
                                        .rows = 8,
                                        .lengths = lengths,
                                        .batch_sizes = two_sizes,
                                        .row_offsets = two_offsets};

/* FAKE_CUDNN_REFUSE: the algorithm refuses this function; -1: none does. */
static inline void refuse(int algorithm, const char *function)
{
    char rule[64];
    snprintf(rule, sizeof rule, "%d:%s:%d", algorithm, function, SEQUENCES);
    if (algorithm < 0)
        unsetenv("FAKE_CUDNN_REFUSE");
    else
        setenv("FAKE_CUDNN_REFUSE", rule, 1);
}

/* Two layers of five inputs and six units, with an output. */
static inline struct seqlstm_recurrent_desc describe(int64_t most_steps, uint32_t mode)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head = (struct seqlstm_desc){.struct_size = sizeof d,
                                   .op = SEQLSTM_OP_RECURRENT,
                                   .mode = mode,
                                   .flags = SEQLSTM_BIT_DESC_UNIFORM,
                                   .max_rows = SEQUENCES * most_steps,
                                   .max_sequences = SEQUENCES,
                                   .max_steps = most_steps};
    d.cell = SEQLSTM_CELL_LSTM;
    d.options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT;
    d.direction = direction;
    d.cell_clip = clip;
    d.layers = 2;
    d.input = 5;
    d.hidden = 6;
    for (int i = 0; i < 2; i++) {
        d.activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d.activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

static inline seqlstm_status create(int64_t most_steps, uint32_t mode, const char *variant, struct seqlstm_op **out_op,
                                    struct seqlstm_error *err)
{
    const struct seqlstm_recurrent_desc d = describe(most_steps, mode);
    *out_op = NULL;
    return table->op_create(instance, 0, &d.head, variant, out_op, err);
}

/* ---- the memory of a call ------------------------------------------------------------------------------------ */

static inline void *make(uint64_t bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *block = NULL;
    assert_int_equal(table->memory->allocate(instance, 0, SEQLSTM_MEMORY_DEVICE, bytes + 256, &block, &err),
                     SEQLSTM_OK);
    assert_int_equal(table->memory->fill(instance, 0, queue.native_stream, block, 0, bytes + 256, &err), SEQLSTM_OK);
    return block;
}

struct call {
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    struct seqlstm_sizes sizes;
    void *slots[SLOTS], *grads[SLOTS], *workspace, *reserve, *packed;
};

/* Binds a new operation to an axis. */
static inline void open_layer(struct call *c, const struct seqlstm_recurrent_desc *d, const char *variant,
                              const struct seqlstm_axis *on)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_bind bind = {
        .struct_size = sizeof bind, .rows = on->rows, .rows_in = on->rows, .axis = on, .t1 = on->steps};
    if (table->op_create(instance, 0, &d->head, variant, &c->op, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", variant, err.message);
    c->sizes = (struct seqlstm_sizes){.struct_size = sizeof c->sizes};
    assert_int_equal(table->op_sizes(c->op, &c->sizes, &err), SEQLSTM_OK);
    for (int k = 0; k < SLOTS; k++) {
        c->slots[k] = make(BYTES);
        c->grads[k] = make(BYTES);
    }
    c->workspace = make(c->sizes.workspace_bytes);
    c->reserve = make(c->sizes.reserve_bytes);
    c->packed = make(c->sizes.packed_bytes);
    if (table->op_bind(c->op, &queue, &bind, &c->binding, &err) != SEQLSTM_OK ||
        table->weights_pack(c->op, &queue, c->slots, c->packed, &step, &err) != SEQLSTM_OK)
        fail_msg("%s: %s", variant, err.message);
}

static inline void close_call(struct call *c)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(table->streams->synchronize(instance, 0, queue.native_stream, &err), SEQLSTM_OK);
    table->binding_destroy(c->binding);
    table->op_destroy(c->op);
    for (int k = 0; k < SLOTS; k++) {
        table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, c->slots[k]);
        table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, c->grads[k]);
    }
    table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, c->workspace);
    table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, c->reserve);
    table->memory->release(instance, 0, SEQLSTM_MEMORY_DEVICE, c->packed);
}

static inline seqlstm_status forward(struct call *c, struct seqlstm_error *err)
{
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_forward args = {.struct_size = sizeof args,
                                         .slot_count = SLOTS,
                                         .slots = c->slots,
                                         .workspace = c->workspace,
                                         .reserve = c->reserve,
                                         .packed = c->packed,
                                         .step = &step};
    return table->forward(c->binding, &queue, &args, err);
}

static inline seqlstm_status backward(struct call *c, struct seqlstm_error *err)
{
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_backward args = {.struct_size = sizeof args,
                                          .slot_count = SLOTS,
                                          .slots = c->slots,
                                          .grads = c->grads,
                                          .parts = parts,
                                          .workspace = c->workspace,
                                          .reserve = c->reserve,
                                          .packed = c->packed,
                                          .step = &step};
    return table->backward(c->binding, &queue, &args, err);
}

/* ---- axes -------------------------------------------------------------------------------------------------------- */

enum { AXIS_STEPS = 8, AXIS_SEQUENCES = 12 };

struct some_axis {
    struct seqlstm_axis axis;
    int32_t lengths[AXIS_SEQUENCES], batch_sizes[AXIS_STEPS];
    int64_t row_offsets[AXIS_STEPS + 1];
};

/* Of sequences with these lengths, which never increase. */
static inline void make_axis(struct some_axis *a, const int32_t *of, int32_t sequences)
{
    memset(a, 0, sizeof *a);
    for (int32_t b = 0; b < sequences; b++) {
        a->lengths[b] = of[b];
        for (int32_t t = 0; t < of[b]; t++)
            a->batch_sizes[t]++;
    }
    for (int32_t t = 0; t < of[0]; t++)
        a->row_offsets[t + 1] = a->row_offsets[t] + a->batch_sizes[t];
    a->axis = (struct seqlstm_axis){.struct_size = sizeof a->axis,
                                    .sequences = sequences,
                                    .steps = of[0],
                                    .rows = a->row_offsets[of[0]],
                                    .lengths = a->lengths,
                                    .batch_sizes = a->batch_sizes,
                                    .row_offsets = a->row_offsets};
}

static inline struct seqlstm_bind bind_to(const struct some_axis *a, int64_t t0, int64_t t1)
{
    const int64_t rows = a->row_offsets[t1] - a->row_offsets[t0];
    return (struct seqlstm_bind){.struct_size = sizeof(struct seqlstm_bind),
                                 .rows = rows,
                                 .rows_in = rows,
                                 .axis = &a->axis,
                                 .t0 = t0,
                                 .t1 = t1};
}

/* Runs the tests with the plugin and the library that the arguments name. Returns the program's exit status. */
static inline int run_with(int argc, char **argv, const struct CMUnitTest *tests, size_t count)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_backend_query_fn query;
    void *module = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = module != NULL ? dlsym(module, SEQLSTM_QUERY_SYMBOL) : NULL;
    library = argc == 3 ? argv[2] : "";
    const struct seqlstm_setting settings[] = {{"library", library}};
    if (symbol == NULL) {
        printf("Bail out! %s\n", argc == 3 ? dlerror() : "expected a plugin and a library");
        return 1;
    }
    memcpy(&query, &symbol, sizeof query);
    table = query(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&host, "cuda-cudnn", NULL);
    const struct seqlstm_setting nowhere[] = {{"library", "/nowhere/libcudnn.so.9"}};
    if (table->open(&host.services, nowhere, 1, &instance, &err) != SEQLSTM_UNAVAILABLE ||
        strstr(err.message, "/nowhere/libcudnn.so.9") == NULL || host.memory.live_blocks != 0) {
        printf("Bail out! of a library that is not there: %s\n", err.message);
        return 1;
    }
    if (table->open(&host.services, settings, 1, &instance, &err) != SEQLSTM_OK ||
        table->streams->create(instance, 0, &queue.native_stream, &err) != SEQLSTM_OK) {
        printf("Bail out! %s\n", err.message);
        return 1;
    }
    const int failed = _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
    table->streams->destroy(instance, 0, queue.native_stream);
    table->close(instance);
    return failed || host.memory.live_blocks != 0;
}

#endif
