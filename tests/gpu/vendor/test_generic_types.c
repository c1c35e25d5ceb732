/* SPDX-License-Identifier: Apache-2.0 */
/* The number types of the products of cuda-generic on the emulated device: with its own kernels and with cuBLASLt, in
 * both passes; and infinities, which concern only what they are multiplied with.
 *
 *   test_generic_types PLUGIN.so [LIBCUBLASLT.so] */
#include "generic_fixture.h"

enum { FORWARD, INPUTS, WEIGHTS, RECURRENT_WEIGHTS, RESULTS, MOST = 130, SLOT_BYTES = 4 * MOST * MOST * sizeof(float) };

/* A layer with its slots on the device. */
struct placed {
    struct seqlstm_instance *instance;
    struct seqlstm_queue queue;
    struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    void *slots[SEQLSTM_SLOT_RECURRENT_COUNT(1)], *grads[SEQLSTM_SLOT_RECURRENT_COUNT(1)], *spaces[3];
};
enum { PLACED_SLOTS = SEQLSTM_SLOT_RECURRENT_COUNT(1) };

static void *place(struct placed *p, uint64_t bytes)
{
    void *block = NULL;
    assert_int_equal(table->memory->allocate(p->instance, 0, SEQLSTM_MEMORY_DEVICE, bytes + 1, &block, NULL),
                     SEQLSTM_OK);
    assert_int_equal(table->memory->fill(p->instance, 0, p->queue.native_stream, block, 0, bytes + 1, NULL),
                     SEQLSTM_OK);
    return block;
}

static void move(const struct placed *p, uint32_t direction, void *to, const void *from, size_t floats)
{
    assert_int_equal(
        table->memory->copy(p->instance, 0, p->queue.native_stream, direction, to, from, floats * sizeof(float), NULL),
        SEQLSTM_OK);
}

static void open_placed(struct placed *p, const union seqlstm_any_desc *d, const char *variant)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_sizes sizes = {.struct_size = sizeof sizes};
    const struct seqlstm_bind bind = {.struct_size = sizeof bind, .rows = 5, .rows_in = 5, .axis = &axis, .t1 = 2};
    *p =
        (struct placed){.instance = cublaslt != NULL ? open_with("cublaslt", cublaslt, SEQLSTM_OK, &err) : open_plain(),
                        .queue = {.struct_size = sizeof p->queue, .members = 1}};
    assert_int_equal(table->streams->create(p->instance, 0, &p->queue.native_stream, &err), SEQLSTM_OK);
    p->op = create(p->instance, d, variant, SEQLSTM_OK, &err);
    assert_int_equal(table->op_sizes(p->op, &sizes, &err), SEQLSTM_OK);
    assert_int_equal(table->op_bind(p->op, &p->queue, &bind, &p->binding, &err), SEQLSTM_OK);
    const uint64_t bytes[] = {sizes.workspace_bytes, sizes.reserve_bytes, sizes.packed_bytes};
    for (int k = 0; k < 3; k++)
        p->spaces[k] = place(p, bytes[k]);
    for (int k = 0; k < PLACED_SLOTS; k++) {
        const bool initial =
            k == SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_H0) ||
            (k == SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_C0) && d->recurrent.cell == SEQLSTM_CELL_LSTM);
        const bool state = k >= SEQLSTM_SLOT_RECURRENT_STATES && k < SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, 0) &&
                           !(initial && (d->recurrent.options & SEQLSTM_BIT_RECURRENT_INITIAL_STATE));
        if (d->head.op == SEQLSTM_OP_RECURRENT ? state || k >= SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_BIAS)
                                               : k >= SEQLSTM_SLOT_DENSE_BIAS)
            continue; /* absent */
        p->slots[k] = place(p, SLOT_BYTES);
        p->grads[k] = place(p, SLOT_BYTES);
    }
}

static void close_placed(struct placed *p)
{
    table->binding_destroy(p->binding);
    table->op_destroy(p->op);
    for (int k = 0; k < 3; k++)
        table->memory->release(p->instance, 0, SEQLSTM_MEMORY_DEVICE, p->spaces[k]);
    for (int k = 0; k < PLACED_SLOTS; k++) {
        table->memory->release(p->instance, 0, SEQLSTM_MEMORY_DEVICE, p->slots[k]);
        table->memory->release(p->instance, 0, SEQLSTM_MEMORY_DEVICE, p->grads[k]);
    }
    table->streams->destroy(p->instance, 0, p->queue.native_stream);
    table->close(p->instance);
}

static void run(struct placed *p, const char *name, bool back)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_step step = {.struct_size = sizeof step};
    const struct seqlstm_forward forward = {.struct_size = sizeof forward,
                                            .slot_count = PLACED_SLOTS,
                                            .slots = p->slots,
                                            .workspace = p->spaces[0],
                                            .reserve = p->spaces[1],
                                            .packed = p->spaces[2],
                                            .step = &step};
    const struct seqlstm_backward backward = {.struct_size = sizeof backward,
                                              .slot_count = PLACED_SLOTS,
                                              .slots = p->slots,
                                              .grads = p->grads,
                                              .parts = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                              .workspace = p->spaces[0],
                                              .reserve = p->spaces[1],
                                              .packed = p->spaces[2],
                                              .step = &step};
    if (table->forward(p->binding, &p->queue, &forward, &err) != SEQLSTM_OK ||
        (back && table->backward(p->binding, &p->queue, &backward, &err) != SEQLSTM_OK))
        fail_msg("%s: %s", name, err.message);
}

/* Powers of two with so small an addend that the product shows whether its operands were rounded to 23, 10 or 7 bits,
 * and whether to the exponents of float16. */
static float get_operand(int k)
{
    return k % 3 == 0 ? 1 + 0x1p-12f : k % 3 == 1 ? 1 + 0x1p-9f : 0x1p-20f + 0x1p-26f;
}

static float get_rounded(uint32_t dtype, int k)
{
    switch (dtype) {
    case SEQLSTM_DTYPE_FLOAT32:
        return get_operand(k);
    case SEQLSTM_DTYPE_TF32:
        return k % 3 == 0 ? 1 : get_operand(k);
    case SEQLSTM_DTYPE_BFLOAT16:
        return k % 3 == 2 ? get_operand(k) : 1;
    default:
        return k % 3 == 0 ? 1 : k % 3 == 1 ? get_operand(k) : 0x1p-20f;
    }
}

/* A dense layer, or a linear RNN without recurrent weights, whose matrix is the unit matrix. The same operands come in
 * at row 0, and back at row 0 and at the row of the same sequence after it. */
static void check_products(const char *variant, uint32_t dtype, int width, bool recurrent)
{
    enum { NEXT = 3 /* the row */ };
    static const char *const names[] = {"y", "dx", "dW", "dW_h"};
    const int at_y = recurrent ? (int)SEQLSTM_SLOT_RECURRENT_Y : (int)SEQLSTM_SLOT_DENSE_Y;
    const int at_w = recurrent ? SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X) : (int)SEQLSTM_SLOT_DENSE_W;
    const int at_w_h = SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_H);
    float row[32] = {0}, unit[32 * 32] = {0}, got[RESULTS][32 * 32];
    union seqlstm_any_desc d = recurrent ? make_layer(TRAINING, width, dtype) : make_dense(TRAINING);
    struct placed p;
    d.head.dtype_compute = dtype;
    if (recurrent) {
        d.recurrent.cell = SEQLSTM_CELL_RNN;
        d.recurrent.input = width;
        memset(d.recurrent.activations, 0, sizeof d.recurrent.activations); /* linear */
    } else {
        d.dense.input = d.dense.output = width;
    }
    open_placed(&p, &d, variant);
    for (int k = 0; k < width; k++) {
        row[k] = get_operand(k);
        unit[k * width + k] = 1;
    }
    const size_t w = (size_t)width, all = w * w;
    move(&p, SEQLSTM_COPY_TO_DEVICE, p.slots[0], row, w);
    move(&p, SEQLSTM_COPY_TO_DEVICE, p.slots[at_w], unit, all);
    move(&p, SEQLSTM_COPY_TO_DEVICE, p.grads[at_y], row, w);
    move(&p, SEQLSTM_COPY_TO_DEVICE, (float *)p.grads[at_y] + NEXT * w, row, w);
    run(&p, variant, true);
    move(&p, SEQLSTM_COPY_TO_HOST, got[FORWARD], p.slots[at_y], w);
    move(&p, SEQLSTM_COPY_TO_HOST, got[INPUTS], (float *)p.grads[0] + NEXT * w, w);
    move(&p, SEQLSTM_COPY_TO_HOST, got[WEIGHTS], p.grads[at_w], all);
    if (recurrent)
        move(&p, SEQLSTM_COPY_TO_HOST, got[RECURRENT_WEIGHTS], p.grads[at_w_h], all);
    for (int what = 0; what < (recurrent ? RESULTS : RECURRENT_WEIGHTS); what++)
        for (int e = 0; e < (what < WEIGHTS ? width : width * width); e++) {
            const float other = what < WEIGHTS ? 1 : get_rounded(dtype, e / width);
            const float wanted = other * get_rounded(dtype, e % width);
            if (!(got[what][e] == wanted))
                fail_msg("%s, %d units, dtype %u: %s[%d] is %a, expected %a", variant, width, dtype, names[what], e,
                         (double)got[what][e], (double)wanted);
        }
    close_placed(&p);
}

/* Neither less nor more than asked for: who asks for tf32 pays with bits for time. With widths of a multiple of 8,
 * operands have 16 bits in memory where the type has. */
static void products_round_their_operands_as_the_type_says(void **state)
{
    static const struct {
        const char *variant;
        bool recurrent;
    } rows[] = {{"kernels", false}, {"cublaslt", false}, {"small", true}, {"step_graph", true}};
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (uint32_t dtype = SEQLSTM_DTYPE_FLOAT32; dtype <= SEQLSTM_DTYPE_FLOAT16; dtype++)
            for (int width = 30; width <= 32; width++)
                if (cublaslt != NULL || strcmp(rows[k].variant, "cublaslt") != 0)
                    check_products(rows[k].variant, dtype, width, rows[k].recurrent);
}

/* ---- infinities -------------------------------------------------------------------------------------------------- */

enum { ROWS = 5, SEQUENCES = 3 };
enum where { NOWHERE, IN_WEIGHTS, IN_STATE };

/* The output of an LSTM whose weights and states are small, but for an infinity: in the row of W_h of the input gate of
 * unit 1, or in the h of the second sequence before the first step. */
static void run_layer(const char *variant, int64_t hidden, uint32_t dtype, enum where where, float y[ROWS * MOST])
{
    static float values[4 * MOST * MOST];
    union seqlstm_any_desc d = make_layer(TRAINING, hidden, dtype);
    struct placed p;
    d.recurrent.options |= SEQLSTM_BIT_RECURRENT_INITIAL_STATE;
    open_placed(&p, &d, variant);
    const int slots[] = {SEQLSTM_SLOT_RECURRENT_X, SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_H0),
                         SEQLSTM_SLOT_RECURRENT_STATE(0, SEQLSTM_STATE_C0),
                         SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_X),
                         SEQLSTM_SLOT_RECURRENT_PARAM(1, 0, SEQLSTM_PARAM_W_H)};
    const int64_t counts[] = {ROWS * d.recurrent.input, SEQUENCES * hidden, SEQUENCES * hidden,
                              4 * hidden * d.recurrent.input, 4 * hidden * hidden};
    for (int k = 0; k < 5; k++) {
        for (int64_t e = 0; e < counts[k]; e++)
            values[e] = (float)((e * 37 + k * 11) % 101 + 1) / 512; /* none is 0 */
        if ((k == 4 && where == IN_WEIGHTS) || (k == 1 && where == IN_STATE))
            values[hidden + 5] = INFINITY;
        move(&p, SEQLSTM_COPY_TO_DEVICE, p.slots[slots[k]], values, (size_t)counts[k]);
    }
    run(&p, variant, false);
    move(&p, SEQLSTM_COPY_TO_HOST, y, p.slots[SEQLSTM_SLOT_RECURRENT_Y], (size_t)(ROWS * hidden));
    close_placed(&p);
}

/* Variants that give weights and states a scale do not take it from an infinity. */
static void an_infinity_concerns_its_unit_or_its_sequence(void **state)
{
    static const struct {
        const char *variant;
        int64_t hidden;
    } rows[] = {{"small", 20},     {"small", 70},       {"step_graph", 20}, {"cluster_4", 70},
                {"cluster_8", 70}, {"cluster_16", 130}, {"resident", 70}};
    static float plain[ROWS * MOST], got[ROWS * MOST];
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int narrow = 0; narrow < 2; narrow++) {
            const uint32_t dtype = narrow ? SEQLSTM_DTYPE_FLOAT16 : SEQLSTM_DTYPE_FLOAT32;
            const int64_t n = rows[k].hidden;
            run_layer(rows[k].variant, n, dtype, NOWHERE, plain);
            for (int where = IN_WEIGHTS; where <= IN_STATE; where++) {
                run_layer(rows[k].variant, n, dtype, (enum where)where, got);
                for (int64_t e = 0; e < ROWS * n; e++) {
                    const bool second_step = e / n >= SEQUENCES;
                    const bool concerned = where == IN_WEIGHTS ? second_step || e % n == 1 : e / n % SEQUENCES == 1;
                    if (!concerned && !(fabsf(got[e] - plain[e]) <= 1e-6f))
                        fail_msg("%s, %d units, dtype %u, %s: y[%d, %d] is %g, without an infinity %g", rows[k].variant,
                                 (int)n, dtype, where == IN_WEIGHTS ? "W_h" : "h", (int)(e / n), (int)(e % n),
                                 (double)got[e], (double)plain[e]);
                    if (where == IN_WEIGHTS && e / n < SEQUENCES && e % n == 1 && !(got[e] > plain[e]))
                        fail_msg("%s, %d units, dtype %u: y[%d, 1] is %g, without an open gate %g", rows[k].variant,
                                 (int)n, dtype, (int)(e / n), (double)got[e], (double)plain[e]);
                }
            }
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_round_their_operands_as_the_type_says),
        cmocka_unit_test(an_infinity_concerns_its_unit_or_its_sequence),
    };
    return run_with(argc, argv, tests, sizeof tests / sizeof *tests);
}
