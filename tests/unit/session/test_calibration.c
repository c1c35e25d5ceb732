/* SPDX-License-Identifier: Apache-2.0 */
/* What is noted of the values of a layer: their ranges, from which int8 is chosen, and how many of them are outside of
 * a range that was. meson.build leads here what an executor is asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ok.h"
#include "oom.h"
#include "session/evaluate/calibration.h"
#include "session/evaluate/clipping.h"

enum { X = 3, Y = 4 };

static const int32_t slots[SEQLSTM_SLOT_RECURRENT_Y + 1] = {
    [SEQLSTM_SLOT_RECURRENT_X] = X, [SEQLSTM_SLOT_RECURRENT_Y] = Y};
static const int32_t hidden_slots[SEQLSTM_SLOT_RECURRENT_Y + 1] = {
    [SEQLSTM_SLOT_RECURRENT_X] = X, [SEQLSTM_SLOT_RECURRENT_Y] = -1};
static const float *read_values[8]; /* of each tensor, two of them */

seqlstm_status __wrap_sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **values, int64_t *elems,
                                   struct seqlstm_error *err);
void __wrap_sl_exec_watch(struct sl_exec *exec, sl_exec_watch_fn *watch, void *context);

seqlstm_status __wrap_sl_exec_read(struct sl_exec *exec, int32_t tensor, const float **values, int64_t *elems,
                                   struct seqlstm_error *err)
{
    (void)exec, (void)err;
    *values = read_values[tensor];
    *elems = 2;
    return SEQLSTM_OK;
}

static sl_exec_watch_fn *watch_fn;
static void *watch_context;

void __wrap_sl_exec_watch(struct sl_exec *exec, sl_exec_watch_fn *watch, void *context)
{
    (void)exec;
    watch_fn = watch;
    watch_context = context;
}

/* Whether the states of a layer are between -1 and 1 follows from its curves alone. */
static void test_which_states_are_bounded(void **state)
{
    enum {
        SIGMOID = SEQLSTM_ACT_SIGMOID,
        HARD = SEQLSTM_ACT_HARD_SIGMOID,
        TANH = SEQLSTM_ACT_TANH,
        SOFTSIGN = SEQLSTM_ACT_SOFTSIGN,
        RELU = SEQLSTM_ACT_RELU
    };
    static const struct {
        uint32_t cell, gate, candidate, output;
        int64_t projection;
        bool bounded;
    } rows[] = {
        {SEQLSTM_CELL_LSTM, SIGMOID, RELU, TANH, 0, true},  {SEQLSTM_CELL_LSTM, SIGMOID, TANH, RELU, 0, false},
        {SEQLSTM_CELL_LSTM, HARD, TANH, SOFTSIGN, 0, true}, {SEQLSTM_CELL_LSTM, TANH, TANH, TANH, 0, false},
        {SEQLSTM_CELL_LSTM, RELU, TANH, TANH, 0, false},    {SEQLSTM_CELL_LSTM, SIGMOID, TANH, SIGMOID, 0, true},
        {SEQLSTM_CELL_LSTM, SIGMOID, TANH, TANH, 2, false}, {SEQLSTM_CELL_GRU, SIGMOID, TANH, RELU, 0, true},
        {SEQLSTM_CELL_GRU, SIGMOID, RELU, TANH, 0, false},  {SEQLSTM_CELL_GRU, RELU, TANH, TANH, 0, false},
        {SEQLSTM_CELL_RNN, RELU, TANH, RELU, 0, true},      {SEQLSTM_CELL_RNN, SIGMOID, RELU, TANH, 0, false}};
    static const float x[2] = {1, -3}, y[2] = {0.5f, 2};
    (void)state;
    read_values[X] = x;
    read_values[Y] = y;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int both = 0; both < 3; both++) { /* one direction; two; two, of which the second is not bounded */
            struct sl_arena arena;
            struct sl_calibration calibration = {.arena = &arena};
            struct seqlstm_error err = SEQLSTM_ERROR_INIT;
            struct sl_node node = {.name = "a", .slots = slots, .slot_count = SEQLSTM_SLOT_RECURRENT_Y + 1};
            struct seqlstm_recurrent_desc *d = &node.desc.recurrent;
            sl_arena_init(&arena);
            *d = (struct seqlstm_recurrent_desc){
                .head.op = SEQLSTM_OP_RECURRENT, .cell = rows[k].cell, .projection = rows[k].projection};
            d->direction = both ? SEQLSTM_DIRECTION_BIDIRECTIONAL : SEQLSTM_DIRECTION_FORWARD;
            d->merge = SEQLSTM_KIND_MERGE_CONCAT;
            for (int i = 0; i < 2; i++) {
                const bool other = i == 1 && both == 2;
                d->activations[SEQLSTM_PLACE_GATE][i].kind = rows[k].gate;
                d->activations[SEQLSTM_PLACE_CANDIDATE][i].kind = other ? RELU : rows[k].candidate;
                d->activations[SEQLSTM_PLACE_OUTPUT][i].kind = other ? RELU : rows[k].output;
            }
            for (int times = 0; times < 3; times++)
                ok(sl_calibration_watch(&calibration, NULL, &node, &err), &err);
            node.name = "b";
            ok(sl_calibration_watch(&calibration, NULL, &node, &err), &err);
            node.desc.head.op = SEQLSTM_OP_DENSE; /* no recurrent layer */
            node.name = "c";
            ok(sl_calibration_watch(&calibration, NULL, &node, &err), &err);
            assert_int_equal(calibration.count, 2);
            if (calibration.layers[0].is_bounded != (rows[k].bounded && both < 2))
                fail_msg("row %d, %d", (int)k, both);
            assert_string_equal(calibration.layers[1].name, "b");
            assert_true(calibration.layers[0].x->total == 6 && calibration.layers[1].h->total == 2);
            assert_true(calibration.layers[0].x->low == -3 && calibration.layers[0].h->high == 2);
            sl_calibration_deinit(&calibration);
            sl_arena_deinit(&arena);
        }
}

/* Values outside of a range by more than rounding are counted, of inputs and states of the layer of their name. */
static void test_clipped_values_are_counted(void **state)
{
    struct sl_quantized_layer layers[] = {{.node = "other", .dtype = SEQLSTM_DTYPE_INT8, .scale = 1},
                                          {.node = "a", .dtype = SEQLSTM_DTYPE_INT8, .scale = 51, .shift = 102}};
    const struct sl_quantization quantization = {.layers = layers, .count = 2};
    static const float inside[2] = {-2.0098f, 3.0098f}, outside[2] = {-2.0099f, 3.0099f}, far[2] = {-7, 2},
                       between[2] = {-3, 3};
    struct sl_clipping clipping;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    (void)state;
    ok(sl_clipping_init(&clipping, &quantization, &err), &err);
    watch_fn = NULL;
    sl_clipping_watch(&clipping, NULL);
    assert_non_null(watch_fn);
    struct sl_node node = {.name = "a", .slots = slots, .slot_count = SEQLSTM_SLOT_RECURRENT_Y + 1};
    node.desc.recurrent = (struct seqlstm_recurrent_desc){.head.op = SEQLSTM_OP_RECURRENT, .cell = SEQLSTM_CELL_LSTM};
    node.desc.recurrent.activations[SEQLSTM_PLACE_GATE][0].kind = SEQLSTM_ACT_SIGMOID;
    node.desc.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][0].kind = SEQLSTM_ACT_TANH;
    node.desc.recurrent.activations[SEQLSTM_PLACE_OUTPUT][0].kind = SEQLSTM_ACT_TANH;
    read_values[X] = inside;
    read_values[Y] = inside;
    ok(watch_fn(watch_context, NULL, &node, &err), &err);
    assert_true(clipping.layers[1].clipped == 0 && clipping.layers[1].values == 4);
    assert_true(clipping.layers[1].lowest == 0 && clipping.layers[1].highest == 0);
    read_values[X] = outside;
    read_values[Y] = far;
    ok(watch_fn(watch_context, NULL, &node, &err), &err);
    assert_true(clipping.layers[1].clipped == 3 && clipping.layers[1].values == 8);
    assert_true(clipping.layers[1].lowest == -7 && clipping.layers[1].highest == (double)3.0099f);
    node.slots = hidden_slots; /* its states are not seen */
    ok(watch_fn(watch_context, NULL, &node, &err), &err);
    assert_true(clipping.layers[1].clipped == 5 && clipping.layers[1].values == 10);
    read_values[X] = between; /* what was farther stays the farthest */
    ok(watch_fn(watch_context, NULL, &node, &err), &err);
    assert_true(clipping.layers[1].clipped == 6 && clipping.layers[1].values == 12);
    assert_true(clipping.layers[1].lowest == -7 && clipping.layers[1].highest == (double)3.0099f);
    node.desc.head.op = SEQLSTM_OP_DENSE;
    ok(watch_fn(watch_context, NULL, &node, &err), &err);
    assert_true(clipping.layers[1].values == 12 && clipping.layers[0].values == 0);
    sl_clipping_deinit(&clipping);
    watch_fn = NULL;
    sl_clipping_watch(&clipping, NULL); /* nothing is in int8 */
    assert_null(watch_fn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_states_are_bounded),
        cmocka_unit_test(test_clipped_values_are_counted),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
