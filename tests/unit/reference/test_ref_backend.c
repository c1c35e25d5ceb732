/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI side of the reference: its table, refusals with code, option, value and reason, bindings that do not
 * fit, memory that runs out, sizes that are upper bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "ref_harness.h"

static union seqlstm_any_desc lstm(void)
{
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    struct seqlstm_recurrent_desc *d = &any.recurrent;
    d->head = rh_head(SEQLSTM_OP_RECURRENT, SEQLSTM_MODE_TRAINING);
    d->cell = SEQLSTM_CELL_LSTM;
    d->options = SEQLSTM_BIT_RECURRENT_OUTPUT;
    d->layers = 2;
    d->input = 3;
    d->hidden = 4;
    return any;
}

static struct seqlstm_answer ask(const union seqlstm_any_desc *d, const char *device_class)
{
    struct seqlstm_instance *instance;
    const struct seqlstm_backend *backend = rh_reference(&instance);
    struct seqlstm_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.struct_size = sizeof answer;
    assert_int_equal(backend->supports(device_class, &d->head, &answer, NULL), SEQLSTM_OK);
    backend->close(instance);
    return answer;
}

static void assert_no(const union seqlstm_any_desc *d, uint32_t code, uint32_t option, const char *value)
{
    const struct seqlstm_answer a = ask(d, "cpu:any");
    assert_int_equal(a.accepted, 0);
    assert_true(a.code & code);
    assert_int_equal(a.option, option);
    assert_string_equal(a.value, value);
    assert_true(strlen(a.reason) > 10);
}

static void the_table_is_complete(void **state)
{
    (void)state;
    struct seqlstm_instance *instance;
    const struct seqlstm_backend *b = rh_reference(&instance);
    assert_int_equal(b->struct_size, sizeof *b);
    assert_int_equal(b->magic, SEQLSTM_MAGIC);
    assert_string_equal(b->id, "reference");
    for (uint32_t op = 1; op < SEQLSTM_OP_COUNT; op++)
        assert_int_equal(b->desc_bytes[op], sl_op_desc_bytes(op));
    uint32_t count = 0;
    assert_int_equal(b->device_count(instance, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, 1);
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    assert_int_equal(b->device_info(instance, 0, &info, NULL), SEQLSTM_OK);
    assert_string_equal(info.domain, "host");
    assert_int_equal(b->device_info(instance, 1, &info, NULL), SEQLSTM_INVALID_ARGUMENT);
    assert_null(b->get_extension(instance, "nothing/1"));
    b->close(instance);
    b->close(NULL);
}

static void refusals_say_why(void **state)
{
    (void)state;
    union seqlstm_any_desc d = lstm();
    assert_int_equal(ask(&d, "cpu:x86-64-v4").accepted, 1);
    assert_string_equal(ask(&d, "cpu:any").variants[0], "loops");
    assert_int_equal(ask(&d, "cuda:sm_90").code, SEQLSTM_BIT_REFUSED_DEVICE);
    d.recurrent.options |= 1u << 20;
    assert_no(&d, SEQLSTM_BIT_REFUSED_ABI, SEQLSTM_OPTION_NONE, "0x100000");
    d = lstm();
    d.recurrent.activations[SEQLSTM_PLACE_GATE][0].kind = SEQLSTM_ACT_COUNT;
    assert_no(&d, SEQLSTM_BIT_REFUSED_ABI, SEQLSTM_OPTION_RECURRENT_ACTIVATION, "14");
    d = lstm();
    d.recurrent.dropout = 1.5f;
    assert_no(&d, SEQLSTM_BIT_REFUSED_OPTION, SEQLSTM_OPTION_DROPOUT, "1.5000");
    d = lstm();
    d.head.dtype_activation = SEQLSTM_DTYPE_BFLOAT16;
    assert_no(&d, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, "bfloat16");
    d = lstm();
    d.head.dtype_compute = SEQLSTM_DTYPE_FLOAT64;
    assert_int_equal(ask(&d, "cpu:any").accepted, 1);
    d.head.dtype_compute = SEQLSTM_DTYPE_TF32;
    assert_no(&d, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, "tf32");
    d = lstm();
    d.head.op = 99;
    assert_no(&d, SEQLSTM_BIT_REFUSED_ABI, SEQLSTM_OPTION_NONE, "99");
    d = (union seqlstm_any_desc){
        .cast = {.head = rh_head(SEQLSTM_OP_CAST, SEQLSTM_MODE_TRAINING), .features = 1, .to = SEQLSTM_DTYPE_INT8}};
    assert_no(&d, SEQLSTM_BIT_REFUSED_DTYPE, SEQLSTM_OPTION_DTYPE, "int8");
}

/* From each dtype to each. */
static void casts_are_between_floats(void **state)
{
    (void)state;
    for (uint32_t from = 0; from <= SEQLSTM_DTYPE_UINT8; from++)
        for (uint32_t to = 0; to <= SEQLSTM_DTYPE_UINT8; to++) {
            const bool floats = from != SEQLSTM_DTYPE_TF32 && from <= SEQLSTM_DTYPE_FLOAT64 &&
                                to != SEQLSTM_DTYPE_TF32 && to <= SEQLSTM_DTYPE_FLOAT64;
            const union seqlstm_any_desc d = {
                .cast = {
                    .head = rh_head(SEQLSTM_OP_CAST, SEQLSTM_MODE_TRAINING), .features = 1, .from = from, .to = to}};
            assert_int_equal(ask(&d, "cpu:any").accepted, floats);
        }
}

static void create_refuses_what_supports_refuses(void **state)
{
    (void)state;
    struct seqlstm_instance *instance;
    const struct seqlstm_backend *b = rh_reference(&instance);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    union seqlstm_any_desc d = lstm();
    struct seqlstm_op *op = (struct seqlstm_op *)(void *)&d;
    assert_int_equal(b->op_create(instance, 1, &d.head, "loops", &op, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_int_equal(b->op_create(instance, 0, &d.head, "fast", &op, &err), SEQLSTM_INVALID_ARGUMENT);
    d.recurrent.cell = 9;
    assert_int_equal(b->op_create(instance, 0, &d.head, "loops", &op, &err), SEQLSTM_UNSUPPORTED);
    assert_non_null(strstr(err.message, "cell"));
    assert_ptr_equal(op, &d); /* not written */
    const struct seqlstm_setting settings[] = {{"tile", "4"}, {"speed", "5"}};
    struct seqlstm_instance *second;
    const struct seqlstm_host host = {.struct_size = sizeof host};
    assert_int_equal(b->open(&host, settings, 2, &second, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "the reference backend has no options, so not `tile`");
    b->binding_destroy(NULL);
    b->op_destroy(NULL);
    b->close(instance);
}

static void bindings_must_fit(void **state)
{
    (void)state;
    const int32_t lengths[2] = {3, 2};
    union seqlstm_any_desc d = lstm();
    d.recurrent.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    struct rh rh;
    rh_open(&rh, &d, lengths, 2, 0, 3, 1);
    struct seqlstm_binding *binding;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_bind bind = rh.bind;
#define ASSERT_MISFIT(word)                                                                                            \
    do {                                                                                                               \
        assert_int_equal(rh.backend->op_bind(rh.op, &rh.queue, &bind, &binding, &err), SEQLSTM_INVALID_ARGUMENT);      \
        assert_non_null(strstr(err.message, word));                                                                    \
        bind = rh.bind;                                                                                                \
    } while (0)
    bind.t1 = 4;
    ASSERT_MISFIT("range");
    bind.t0 = 3;
    ASSERT_MISFIT("range");
    bind.rows = 4;
    ASSERT_MISFIT("rows is 4, the range has 5");
    bind.t1 = 2;
    bind.rows = 4;
    ASSERT_MISFIT("whole"); /* bidirectional */
    bind.axis = NULL;
    ASSERT_MISFIT("axis");
    rh_close(&rh);

    d = lstm();
    d.head.max_rows = 5;
    d.head.max_sequences = 2;
    rh_open(&rh, &d, lengths, 2, 0, 3, 1);
    rh_forward(&rh);
    const int32_t three[3] = {2, 2, 1};
    struct rh other;
    rh_open(&other, &d, (const int32_t[1]){1}, 1, 0, 1, 1);
    struct seqlstm_axis axis = rh.axis;
    const int32_t sizes[2] = {3, 2};
    const int64_t offsets[3] = {0, 3, 5};
    axis.sequences = 3;
    axis.steps = 2;
    axis.lengths = three;
    axis.batch_sizes = sizes;
    axis.row_offsets = offsets;
    bind = rh.bind;
    bind.axis = &axis;
    bind.t1 = 2;
    assert_int_equal(rh.backend->op_bind(rh.op, &rh.queue, &bind, &binding, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "3 sequences"));
    rh_close(&other);
    rh_close(&rh);

    d.head.max_steps = 2; /* of three steps, two at once and no more */
    rh_open(&rh, &d, lengths, 2, 0, 2, 1);
    bind = rh.bind;
    bind.t1 = 3;
    bind.rows = 5;
    ASSERT_MISFIT("3 steps, the descriptor allows 2");
    bind.t0 = 1;
    bind.t1 = 3;
    bind.rows = 3;
    assert_int_equal(rh.backend->op_bind(rh.op, &rh.queue, &bind, &binding, &err), SEQLSTM_OK);
    rh.backend->binding_destroy(binding);
    rh_close(&rh);
}

static void calls_are_checked(void **state)
{
    (void)state;
    const int32_t lengths[2] = {3, 2};
    const union seqlstm_any_desc d = lstm();
    struct rh rh;
    rh_open(&rh, &d, lengths, 2, 0, 3, 1);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_forward args = {.struct_size = sizeof args,
                                   .slot_count = (uint32_t)rh.count - 1,
                                   .slots = rh.values,
                                   .workspace = rh.workspace,
                                   .reserve = rh.reserve,
                                   .step = &rh.step};
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    args.slot_count++;
    args.reserve = NULL;
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    args.reserve = rh.reserve;
    void *w_x = rh.values[SEQLSTM_SLOT_RECURRENT_PARAM(2, 0, 0)];
    rh.values[SEQLSTM_SLOT_RECURRENT_PARAM(2, 0, 0)] = NULL;
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    rh.values[SEQLSTM_SLOT_RECURRENT_PARAM(2, 0, 0)] = w_x;
    assert_int_equal(rh.backend->forward(rh.binding, &rh.queue, &args, &err), SEQLSTM_OK);
    rh_close(&rh);
}

/* Forward and backward of every entry point allocate nothing. */
static void calls_do_not_allocate(void **state)
{
    (void)state;
    const int32_t lengths[3] = {4, 2, 1};
    union seqlstm_any_desc d = lstm();
    d.recurrent.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    d.recurrent.dropout = d.recurrent.recurrent_dropout = d.recurrent.weight_drop = 0.25f;
    d.recurrent.zoneout_cell = 0.25f;
    d.recurrent.options |= SEQLSTM_BIT_RECURRENT_LAYER_NORM | SEQLSTM_BIT_RECURRENT_PEEPHOLE;
    d.recurrent.layer_norm_epsilon = 1e-3f;
    struct rh rh;
    rh_open(&rh, &d, lengths, 3, 0, 4, 1);
    oom_count_start();
    rh_forward(&rh);
    rh_backward(&rh, RH_ALL);
    assert_int_equal(oom_count(), 0);
    rh_close(&rh);
}

static struct seqlstm_cost estimate(const union seqlstm_any_desc *d, int64_t rows)
{
    struct seqlstm_instance *instance;
    const struct seqlstm_backend *b = rh_reference(&instance);
    struct seqlstm_cost cost = {.struct_size = sizeof cost, .confidence = 1};
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = rows, .rows_in = rows};
    struct seqlstm_op *op = NULL;
    assert_int_equal(b->op_create(instance, 0, &d->head, "loops", &op, NULL), SEQLSTM_OK);
    assert_int_equal(b->estimate(op, &bind, &cost, NULL), SEQLSTM_OK);
    b->op_destroy(op);
    b->close(instance);
    return cost;
}

/* Each row is multiplied with all of a matrix, but looks up one row of a table. */
static void estimates_count_products_and_moves(void **state)
{
    (void)state;
    const union seqlstm_any_desc dense = {
        .dense = {.head = rh_head(SEQLSTM_OP_DENSE, SEQLSTM_MODE_TRAINING), .input = 40, .output = 50}};
    const union seqlstm_any_desc table = {
        .embedding = {.head = rh_head(SEQLSTM_OP_EMBEDDING, SEQLSTM_MODE_TRAINING), .vocabulary = 40, .features = 50}};
    const struct seqlstm_cost few = estimate(&dense, 3), many = estimate(&dense, 33), looked = estimate(&table, 33);
    assert_true(few.forward_ns == 1000 + 3 * (40 + 50) * 4 + 40 * 50 * (3 + 2)); /* x, y and the products */
    assert_true(many.forward_ns - few.forward_ns >= 30.0 * 40 * 50);
    assert_true(looked.forward_ns < 33.0 * 40 * 50);
    assert_true(looked.backward_ns > 2 * looked.forward_ns && many.backward_ns > 2 * many.forward_ns);
    assert_int_equal(many.confidence, 0);
}

/* A host whose memory runs out at the n-th allocation. */
struct poor {
    int left, live;
};

static void *poor_allocate(void *context, uint64_t bytes)
{
    struct poor *poor = context;
    if (poor->left-- <= 0)
        return NULL;
    poor->live++;
    return malloc((size_t)bytes);
}

static void poor_release(void *context, void *pointer)
{
    ((struct poor *)context)->live -= pointer != NULL;
    free(pointer);
}

static void memory_runs_out(void **state)
{
    (void)state;
    struct seqlstm_instance *unused;
    const struct seqlstm_backend *b = rh_reference(&unused);
    b->close(unused);
    const union seqlstm_any_desc d = {
        .vector = {.head = rh_head(SEQLSTM_OP_VECTOR, SEQLSTM_MODE_TRAINING), .kind = SEQLSTM_KIND_VECTOR_COPY}};
    for (int n = 0; n < 4; n++) {
        struct poor poor = {n, 0};
        const struct seqlstm_host host = {
            .struct_size = sizeof host, .context = &poor, .allocate = poor_allocate, .release = poor_release};
        struct seqlstm_instance *instance = NULL;
        struct seqlstm_op *op = NULL;
        struct seqlstm_binding *binding = NULL;
        struct seqlstm_queue queue = {.struct_size = sizeof queue, .members = 1};
        const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 3, .rows_in = 3};
        seqlstm_status got = b->open(&host, NULL, 0, &instance, NULL);
        if (got == SEQLSTM_OK)
            got = b->op_create(instance, 0, &d.head, NULL, &op, NULL);
        if (got == SEQLSTM_OK)
            got = b->op_bind(op, &queue, &bind, &binding, NULL);
        assert_int_equal(got, n < 3 ? SEQLSTM_NO_MEMORY : SEQLSTM_OK);
        b->binding_destroy(binding);
        b->op_destroy(op);
        b->close(instance);
        assert_int_equal(poor.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(casts_are_between_floats),
        cmocka_unit_test(create_refuses_what_supports_refuses),
        cmocka_unit_test(bindings_must_fit),
        cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(calls_do_not_allocate),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(estimates_count_products_and_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
