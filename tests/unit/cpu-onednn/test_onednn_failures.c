/* SPDX-License-Identifier: Apache-2.0 */
/* cpu-onednn when the library fails: each of its calls once, in all that is asked of an operation. What failed is said,
 * nothing of the library's and the host's stays behind, and the same call can be made again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/footprint.h>

#include "base/system/pool.h"
#include "cpu-onednn/library.h"
#include "cpu-onednn/version.h"
#include "registry/host.h"

const struct seqlstm_backend *seqlstm_backend_query_v0(uint32_t host_minor);

/* ---- a library that fails ---------------------------------------------------------------------------------------- */

static struct odn_functions real;
static int64_t calls, fails_at = -1; /* the call that fails; -1: none */
static dnnl_status_t failure;
static int64_t objects;    /* of the library, that were made and not destroyed */
static int64_t layouts;    /* likewise */
static const char *failed; /* the function */

static bool fails(const char *function)
{
    if (calls++ != fails_at)
        return false;
    failed = function;
    return true;
}

#define WITH(name, parameters, arguments, made)                                                                        \
    static dnnl_status_t with_##name parameters                                                                        \
    {                                                                                                                  \
        const dnnl_status_t status = fails(#name) ? failure : real.name arguments;                                     \
        objects += (made) && status == dnnl_success;                                                                   \
        return status;                                                                                                 \
    }
#define WITHOUT(name, type)                                                                                            \
    static dnnl_status_t with_##name(type object)                                                                      \
    {                                                                                                                  \
        objects--;                                                                                                     \
        return real.name(object);                                                                                      \
    }

WITH(engine_create, (dnnl_engine_t * out, dnnl_engine_kind_t kind, size_t index), (out, kind, index), 1)
WITH(stream_create, (dnnl_stream_t * out, dnnl_engine_t engine, unsigned flags), (out, engine, flags), 1)
WITH(primitive_create, (dnnl_primitive_t * out, const_dnnl_primitive_desc_t pd), (out, pd), 1)
WITH(primitive_get_primitive_desc, (const_dnnl_primitive_t primitive, const_dnnl_primitive_desc_t *out),
     (primitive, out), 0)
WITH(primitive_execute, (const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count, const dnnl_exec_arg_t *all),
     (primitive, stream, count, all), 0)
WITH(memory_create, (dnnl_memory_t * out, odn_md md, dnnl_engine_t engine, void *address), (out, md, engine, address),
     1)
WITH(memory_set_data_handle, (dnnl_memory_t memory, void *address), (memory, address), 0)
WITH(primitive_attr_create, (dnnl_primitive_attr_t * out), (out), 1)
WITH(primitive_attr_set_scratchpad_mode, (dnnl_primitive_attr_t attr, dnnl_scratchpad_mode_t mode), (attr, mode), 0)
WITH(primitive_attr_set_rnn_data_qparams, (dnnl_primitive_attr_t attr, float scale, float shift), (attr, scale, shift),
     0)
WITH(primitive_attr_set_rnn_weights_qparams, (dnnl_primitive_attr_t attr, dnnl_dim_t count, int mask, const float *all),
     (attr, count, mask, all), 0)
WITHOUT(engine_destroy, dnnl_engine_t)
WITHOUT(stream_destroy, dnnl_stream_t)
WITHOUT(primitive_destroy, dnnl_primitive_t)
WITHOUT(memory_destroy, dnnl_memory_t)
WITHOUT(primitive_attr_destroy, dnnl_primitive_attr_t)
#if DNNL_VERSION_MAJOR < 3
WITH(reorder_primitive_desc_create,
     (dnnl_primitive_desc_t * out, odn_md from, dnnl_engine_t a, odn_md to, dnnl_engine_t b,
      const_dnnl_primitive_attr_t attr),
     (out, from, a, to, b, attr), 1)
WITH(primitive_desc_create,
     (dnnl_primitive_desc_t * out, const_dnnl_op_desc_t desc, const_dnnl_primitive_attr_t attr, dnnl_engine_t engine,
      const_dnnl_primitive_desc_t hint),
     (out, desc, attr, engine, hint), 1)
WITHOUT(primitive_desc_destroy, dnnl_primitive_desc_t)
#else
WITH(memory_desc_create_with_strides,
     (dnnl_memory_desc_t * out, int n, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides),
     (out, n, dims, type, strides), 1)
WITH(memory_desc_clone, (dnnl_memory_desc_t * out, odn_md from), (out, from), 1)
WITH(memory_desc_create_with_tag,
     (dnnl_memory_desc_t * out, int n, const dnnl_dims_t dims, dnnl_data_type_t type, dnnl_format_tag_t tag),
     (out, n, dims, type, tag), 1)
WITHOUT(memory_desc_destroy, dnnl_memory_desc_t)
#endif

/* A layout that was made must be released, with each version of the library: only oneDNN 3 has an object for it. */
#define MAKES_LAYOUT(function, parameters, arguments)                                                                  \
    bool __real_##function parameters;                                                                                 \
    bool __wrap_##function parameters;                                                                                 \
    bool __wrap_##function parameters                                                                                  \
    {                                                                                                                  \
        const bool made = __real_##function arguments;                                                                 \
        layouts += made;                                                                                               \
        return made;                                                                                                   \
    }

MAKES_LAYOUT(odn_layout_init,
             (struct odn_layout * layout, int n, const int64_t *dims, dnnl_data_type_t type, const int64_t *strides),
             (layout, n, dims, type, strides))
MAKES_LAYOUT(odn_layout_copy, (struct odn_layout * layout, odn_md from), (layout, from))

void __real_odn_layout_deinit(struct odn_layout *layout);
void __wrap_odn_layout_deinit(struct odn_layout *layout);

void __wrap_odn_layout_deinit(struct odn_layout *layout)
{
    layouts -= odn_layout_get(layout) != NULL;
    __real_odn_layout_deinit(layout);
}

static void replace_functions(void)
{
    real = odn;
#define REPLACE(name) odn.name = with_##name
    REPLACE(engine_create), REPLACE(engine_destroy), REPLACE(stream_create), REPLACE(stream_destroy);
    REPLACE(primitive_create), REPLACE(primitive_destroy), REPLACE(primitive_get_primitive_desc);
    REPLACE(primitive_execute), REPLACE(memory_create), REPLACE(memory_destroy), REPLACE(memory_set_data_handle);
    REPLACE(primitive_attr_create), REPLACE(primitive_attr_destroy), REPLACE(primitive_attr_set_scratchpad_mode);
    REPLACE(primitive_attr_set_rnn_data_qparams), REPLACE(primitive_attr_set_rnn_weights_qparams);
#if DNNL_VERSION_MAJOR < 3
    REPLACE(primitive_desc_create), REPLACE(reorder_primitive_desc_create), REPLACE(primitive_desc_destroy);
#else
    REPLACE(memory_desc_create_with_strides), REPLACE(memory_desc_create_with_tag);
    REPLACE(memory_desc_clone), REPLACE(memory_desc_destroy);
#endif
#undef REPLACE
}

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

enum { SEQUENCES = 3, STEPS = 4, ROWS = 8, WIDTH = 5, SLOTS = 64, ROOM = 4096 };

static const struct seqlstm_backend *table;
static struct sl_host host;
static struct sl_queue queue;

/* Lengths 4, 3 and 1. */
static const int32_t lengths[] = {4, 3, 1}, batch_sizes[] = {3, 2, 2, 1};
static const int64_t row_offsets[] = {0, 3, 5, 7, 8};
static const uint64_t ids[SEQUENCES];
static const uint32_t positions[SEQUENCES];
static const struct seqlstm_axis axis = {.struct_size = sizeof axis,
                                         .sequences = SEQUENCES,
                                         .steps = STEPS,
                                         .rows = ROWS,
                                         .lengths = lengths,
                                         .batch_sizes = batch_sizes,
                                         .row_offsets = row_offsets,
                                         .sequence_id = ids,
                                         .position0 = positions};
static const struct seqlstm_bind batch = {
    .struct_size = sizeof batch, .rows = ROWS, .rows_in = ROWS, .axis = &axis, .t1 = STEPS};

enum {
    DENSE = SEQLSTM_OP_DENSE,
    NORM = SEQLSTM_OP_LAYER_NORM,
    RECURRENT = SEQLSTM_OP_RECURRENT,
    TRAINING = SEQLSTM_MODE_TRAINING,
    INFERENCE = SEQLSTM_MODE_INFERENCE,
    LSTM = SEQLSTM_CELL_LSTM,
    GRU = SEQLSTM_CELL_GRU,
    BOTH = SEQLSTM_DIRECTION_BIDIRECTIONAL
};

struct subject {
    const char *name, *variant;
    uint32_t op, mode, dtype, cell, direction;
};

union desc {
    struct seqlstm_desc head;
    struct seqlstm_dense_desc dense;
    struct seqlstm_layer_norm_desc norm;
    struct seqlstm_recurrent_desc recurrent;
};

static void describe_recurrent(const struct subject *s, struct seqlstm_recurrent_desc *d)
{
    d->cell = s->cell;
    d->direction = s->direction;
    d->options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_OUTPUT |
                 (s->cell == SEQLSTM_CELL_GRU ? SEQLSTM_BIT_RECURRENT_RESET_AFTER : 0u);
    d->layers = s->dtype == SEQLSTM_DTYPE_INT8 ? 1 : 2;
    d->input = d->hidden = WIDTH;
    d->data_scale = s->dtype == SEQLSTM_DTYPE_INT8 ? 64.0f : 0.0f;
    d->data_shift = s->dtype == SEQLSTM_DTYPE_INT8 ? 128.0f : 0.0f;
    for (int i = 0; i < 2; i++) {
        d->activations[SEQLSTM_PLACE_GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d->activations[SEQLSTM_PLACE_CANDIDATE][i].kind = SEQLSTM_ACT_TANH;
        d->activations[SEQLSTM_PLACE_OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
}

static void describe(const struct subject *s, union desc *out)
{
    memset(out, 0, sizeof *out);
    out->head = (struct seqlstm_desc){.op = s->op,
                                      .mode = s->mode,
                                      .dtype_compute = s->dtype,
                                      .max_rows = ROWS,
                                      .max_sequences = SEQUENCES,
                                      .max_steps = STEPS};
    if (s->op == SEQLSTM_OP_DENSE) {
        out->head.struct_size = sizeof out->dense;
        out->dense.input = out->dense.output = WIDTH;
        out->dense.options = SEQLSTM_BIT_DENSE_USE_BIAS;
    } else if (s->op == SEQLSTM_OP_LAYER_NORM) {
        out->head.struct_size = sizeof out->norm;
        out->norm.features = WIDTH;
        out->norm.epsilon = 1e-3f;
        out->norm.options = SEQLSTM_BIT_LAYER_NORM_GAIN | SEQLSTM_BIT_LAYER_NORM_BIAS;
    } else {
        out->head.struct_size = sizeof out->recurrent;
        describe_recurrent(s, &out->recurrent);
    }
}

/* An operation of an instance of its own, as far as it was made. */
struct used {
    struct seqlstm_instance *instance;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    void *workspace, *reserve, *packed, *slots[SLOTS], *grads[SLOTS];
    uint32_t slot_count;
    float results[SLOTS][ROOM / SLOTS * 2];
};

static void *take(uint64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64);
    assert_non_null(memory);
    memset(memory, 0, (size_t)bytes);
    return memory;
}

static void fill_slots(const struct subject *s, struct used *u)
{
    static float values[ROOM];
    const int32_t ld =
        (s->direction == BOTH ? 2 : 1) * (s->dtype == SEQLSTM_DTYPE_INT8 ? 1 : 2); /* layers, directions */
    for (int i = 0; i < ROOM; i++)
        values[i] = (float)(i % 97) / 300.0f - 0.15f;
    u->slot_count = s->op == SEQLSTM_OP_RECURRENT ? (uint32_t)SEQLSTM_SLOT_RECURRENT_COUNT(ld) : 4;
    assert_true(u->slot_count <= SLOTS);
    for (uint32_t k = 0; k < u->slot_count; k++) {
        u->slots[k] = values + 7 * k;
        u->grads[k] = u->results[k];
    }
    u->slots[SEQLSTM_SLOT_DENSE_Y] = u->results[SEQLSTM_SLOT_DENSE_Y]; /* the same place in all three */
    u->grads[SEQLSTM_SLOT_DENSE_Y] = values;
    for (int32_t n = 0; s->op == SEQLSTM_OP_RECURRENT && n < ld; n++)
        for (int p = SEQLSTM_PARAM_PEEPHOLE; p <= SEQLSTM_PARAM_PROJECTION; p++)
            if (p == SEQLSTM_PARAM_PEEPHOLE || p == SEQLSTM_PARAM_PROJECTION)
                u->slots[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, p)] = u->grads[SEQLSTM_SLOT_RECURRENT_PARAM(ld, n, p)] =
                    NULL;
}

static seqlstm_status make(const struct subject *s, struct used *u, struct seqlstm_error *err)
{
    union desc d;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes, .members = 1};
    struct seqlstm_range ranges[2][64];
    struct seqlstm_idle idle = {.struct_size = sizeof idle,
                                .workspace = {.at = ranges[0], .room = 64},
                                .reserve = {.at = ranges[1], .room = 64}};
    const struct seqlstm_axis *axes[] = {&axis};
    uint64_t bytes = 0;
    describe(s, &d);
    SEQLSTM_TRY(table->open(&host.services, NULL, 0, &u->instance, err));
    SEQLSTM_TRY(table->op_create(u->instance, 0, &d.head, s->variant, &u->op, err));
    const struct seqlstm_footprint *footprint = table->get_extension(u->instance, SEQLSTM_FOOTPRINT_EXTENSION);
    SEQLSTM_TRY(table->op_sizes(u->op, &sizes, err));
    SEQLSTM_TRY(footprint->idle_ranges(u->op, &sizes, &axis, &idle, err));
    SEQLSTM_TRY(footprint->own_bytes(u->op, axes, 1, 1, &bytes, err));
    SEQLSTM_TRY(table->op_bind(u->op, &queue.queue, &batch, &u->binding, err));
    u->workspace = take(sizes.workspace_bytes);
    u->reserve = take(sizes.reserve_bytes);
    u->packed = take(sizes.packed_bytes);
    fill_slots(s, u);
    return SEQLSTM_OK;
}

static seqlstm_status call(const struct subject *s, struct used *u, struct seqlstm_error *err)
{
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = u->slot_count,
                                            .slots = u->slots,
                                            .packed = u->packed,
                                            .workspace = u->workspace,
                                            .reserve = u->reserve,
                                            .step = &step};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                              .slot_count = u->slot_count,
                                              .slots = u->slots,
                                              .grads = u->grads,
                                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                              .packed = u->packed,
                                              .workspace = u->workspace,
                                              .reserve = u->reserve,
                                              .step = &step};
    memset(u->results, 0, sizeof u->results);
    SEQLSTM_TRY(table->weights_pack(u->op, &queue.queue, u->slots, u->packed, &step, err));
    SEQLSTM_TRY(table->forward(u->binding, &queue.queue, &forward, err));
    return s->mode == SEQLSTM_MODE_TRAINING ? table->backward(u->binding, &queue.queue, &backward, err) : SEQLSTM_OK;
}

static void release(struct used *u)
{
    free(u->workspace), free(u->reserve), free(u->packed);
    table->binding_destroy(u->binding);
    table->op_destroy(u->op);
    if (u->instance != NULL)
        table->close(u->instance);
}

static void expect_equal(const struct subject *s, const struct used *got, const struct used *want)
{
    const float *a = got->results[0], *b = want->results[0];
    for (size_t i = 0; i < sizeof got->results / sizeof *a; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5f))
            fail_msg("%s: failure of %s (%lld): result %zu is %g, expected %g", s->name, failed, (long long)fails_at, i,
                     (double)a[i], (double)b[i]);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static const struct subject subjects[] = {
    {"dense", "sliced", DENSE, TRAINING, 0, 0, 0},
    {"dense, exclusive", "exclusive", DENSE, INFERENCE, 0, 0, 0},
    {"norm", "sliced", NORM, TRAINING, 0, 0, 0},
    {"LSTM", "sliced", RECURRENT, TRAINING, 0, LSTM, 0},
    {"LSTM, both ways", "exclusive", RECURRENT, TRAINING, 0, LSTM, BOTH},
    {"GRU", "sliced", RECURRENT, INFERENCE, 0, GRU, 0},
    {"LSTM in bfloat16", "sliced", RECURRENT, TRAINING, SEQLSTM_DTYPE_BFLOAT16, LSTM, 0},
    {"LSTM in int8", "sliced", RECURRENT, INFERENCE, SEQLSTM_DTYPE_INT8, LSTM, BOTH},
};

/* What a call of the library that fails with `with` makes of a status and what is said of it. */
static void expect_said(const struct subject *s, dnnl_status_t with, seqlstm_status status,
                        const struct seqlstm_error *err)
{
    char number[32];
    snprintf(number, sizeof number, "with status %d", (int)with);
    if (with == dnnl_out_of_memory
            ? status == SEQLSTM_NO_MEMORY && strstr(err->message, "oneDNN had no memory for ") == err->message
            : (status == SEQLSTM_DEVICE && err->native_code == (int32_t)with && strstr(err->message, number)) ||
                  (status == SEQLSTM_UNSUPPORTED && strstr(err->message, number)))
        return;
    fail_msg("%s: failure %d of %s (%lld): status %d, \"%s\"", s->name, (int)with, failed, (long long)fails_at,
             (int)status, err->message);
}

/* Every call once. A layer may be made all the same, with another layout of its weights. And an address that was
 * refused may be set again before it is needed. */
static void fail_each(const struct subject *s, dnnl_status_t with)
{
    static struct used good, u;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    memset(&good, 0, sizeof good);
    const int64_t blocks = host.memory.live_blocks;
    seqlstm_status status = make(s, &good, &err);
    status = status == SEQLSTM_OK ? call(s, &good, &err) : status;
    release(&good);
    if (status == SEQLSTM_UNSUPPORTED && s->dtype != SEQLSTM_DTYPE_FLOAT32) {
        print_message("# %s: %s\n", s->name, err.message);
        return;
    }
    if (status != SEQLSTM_OK)
        fail_msg("%s: %s", s->name, err.message);
    failure = with;
    failed = "nothing";
    objects = layouts = 0;
    for (int64_t at = 0;; at++) {
        err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
        memset(&u, 0, sizeof u);
        calls = 0;
        fails_at = at;
        status = make(s, &u, &err);
        const bool made = status == SEQLSTM_OK;
        if (made)
            status = call(s, &u, &err);
        const bool over = calls <= at;
        if (status != SEQLSTM_OK)
            expect_said(s, with, status, &err);
        else if (!over && with == dnnl_out_of_memory && strcmp(failed, "memory_set_data_handle") != 0)
            fail_msg("%s: %s (%lld) has no memory, and nothing is said", s->name, failed, (long long)at);
        if (made && status != SEQLSTM_OK)
            assert_int_equal(call(s, &u, &err), SEQLSTM_OK);
        if (made)
            expect_equal(s, &u, &good);
        release(&u);
        fails_at = -1;
        if (objects != 0 || layouts != 0 || host.memory.live_blocks != blocks)
            fail_msg("%s: failure of %s (%lld) leaves %lld objects, %lld layouts and %lld blocks", s->name, failed,
                     (long long)at, (long long)objects, (long long)layouts,
                     (long long)(host.memory.live_blocks - blocks));
        if (over)
            break;
    }
}

static void a_library_without_memory_is_named(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++)
        fail_each(&subjects[k], dnnl_out_of_memory);
}

static void a_library_that_refuses_is_named(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++)
        fail_each(&subjects[k], dnnl_runtime_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_without_memory_is_named),
        cmocka_unit_test(a_library_that_refuses_is_named),
    };
    struct seqlstm_instance *first = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    table = seqlstm_backend_query_v0(SEQLSTM_ABI_MINOR);
    sl_host_init_minimal(&host, "cpu-onednn", NULL);
    sl_queue_init(&queue, NULL);
    if (table->open(&host.services, NULL, 0, &first, &err) != SEQLSTM_OK) {
        printf("1..0 # SKIP %s\n", err.message);
        return 0;
    }
    table->close(first);
    replace_functions();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
