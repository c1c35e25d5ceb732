/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of operations as ops.h says them, and the refusal of descriptors that are not well formed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/operation/op_signature.h"
#include "oom.h"

static struct seqlstm_desc head(uint32_t op)
{
    return (struct seqlstm_desc){.struct_size = sl_op_desc_bytes(op),
                                 .op = op,
                                 .mode = SEQLSTM_MODE_TRAINING,
                                 .max_rows = 10,
                                 .max_sequences = 4,
                                 .max_steps = 5};
}

static union seqlstm_any_desc lstm(void)
{
    union seqlstm_any_desc d;
    memset(&d, 0, sizeof d);
    d.recurrent = (struct seqlstm_recurrent_desc){.head = head(SEQLSTM_OP_RECURRENT),
                                                  .cell = SEQLSTM_CELL_LSTM,
                                                  .options = SEQLSTM_BIT_RECURRENT_OUTPUT,
                                                  .layers = 1,
                                                  .input = 3,
                                                  .hidden = 4};
    for (int direction = 0; direction < 2; direction++) {
        d.recurrent.activations[SEQLSTM_PLACE_GATE][direction].kind = SEQLSTM_ACT_SIGMOID;
        d.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][direction].kind = SEQLSTM_ACT_TANH;
        d.recurrent.activations[SEQLSTM_PLACE_OUTPUT][direction].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

static struct sl_slot slots[SL_SLOTS_MAX];

static int32_t sign(const union seqlstm_any_desc *d)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t count = -1;
    if (sl_op_signature(&d->head, slots, SL_SLOTS_MAX, &count, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    return count;
}

static void assert_slot(int32_t k, const char *name, enum sl_slot_role role, enum sl_slot_axis axis, int64_t rows,
                        int64_t features)
{
    assert_string_equal(slots[k].name, name);
    assert_int_equal(slots[k].role, role);
    if (role == SL_SLOT_ABSENT) {
        assert_int_equal(slots[k].rows, 0);
        return;
    }
    assert_int_equal(slots[k].axis, axis);
    assert_int_equal(slots[k].rows, rows);
    assert_int_equal(slots[k].features, features);
}

static void plain_lstm(void **state)
{
    (void)state;
    union seqlstm_any_desc d = lstm();
    assert_int_equal(sign(&d), SEQLSTM_SLOT_RECURRENT_COUNT(1));
    assert_slot(0, "x", SL_SLOT_INPUT, SL_SLOT_ON_ROWS, 0, 3);
    assert_slot(1, "y", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, 0, 4);
    assert_slot(2, "h0.l0.forward", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(5, "cn.l0.forward", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(6, "w_x.l0.forward", SL_SLOT_PARAM, SL_SLOT_FREE, 16, 3);
    assert_slot(7, "w_h.l0.forward", SL_SLOT_PARAM, SL_SLOT_FREE, 16, 4);
    assert_slot(8, "bias.l0.forward", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(11, "norm.l0.forward", SL_SLOT_ABSENT, 0, 0, 0);
}

static void full_lstm(void **state)
{
    (void)state;
    union seqlstm_any_desc d = lstm();
    d.recurrent.layers = 2;
    d.recurrent.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    d.recurrent.projection = 2;
    d.recurrent.layer_norm_epsilon = 1e-5f;
    d.recurrent.options = 0x1FF & ~(uint32_t)SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    assert_int_equal(sign(&d), SEQLSTM_SLOT_RECURRENT_COUNT(4));
    assert_slot(1, "y", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, 0, 4);
    const int32_t n = 3; /* layer 1, backward */
    assert_slot(SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_H0), "h0.l1.backward", SL_SLOT_INPUT, SL_SLOT_ON_STATES,
                0, 2);
    assert_slot(SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_CN), "cn.l1.backward", SL_SLOT_OUTPUT, SL_SLOT_ON_STATES,
                0, 4);
    assert_true(slots[SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_HN)].optional);
    assert_false(slots[SEQLSTM_SLOT_RECURRENT_STATE(n, SEQLSTM_STATE_H0)].optional);
    const int32_t p = SEQLSTM_SLOT_RECURRENT_PARAM(4, n, 0);
    assert_slot(p + SEQLSTM_PARAM_W_X, "w_x.l1.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 16, 4);
    assert_slot(p + SEQLSTM_PARAM_W_H, "w_h.l1.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 16, 2);
    assert_slot(p + SEQLSTM_PARAM_BIAS, "bias.l1.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 1, 16);
    assert_slot(p + SEQLSTM_PARAM_PEEPHOLE, "peephole.l1.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 1, 12);
    assert_slot(p + SEQLSTM_PARAM_PROJECTION, "projection.l1.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 2, 4);
    assert_slot(p + SEQLSTM_PARAM_NORM, "norm.l1.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 1, 40);
    assert_int_equal(slots[SEQLSTM_SLOT_RECURRENT_PARAM(4, 0, SEQLSTM_PARAM_W_X)].features, 3);
    d.recurrent.merge = SEQLSTM_KIND_MERGE_MUL;
    sign(&d);
    assert_int_equal(slots[1].features, 2);
    assert_int_equal(slots[p + SEQLSTM_PARAM_W_X].features, 2);
}

static void gru_and_rnn(void **state)
{
    (void)state;
    union seqlstm_any_desc d = lstm();
    d.recurrent.cell = SEQLSTM_CELL_GRU;
    d.recurrent.direction = SEQLSTM_DIRECTION_BACKWARD;
    d.recurrent.options = SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_FINAL_STATE;
    sign(&d);
    assert_slot(1, "y", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(4, "hn.l0.backward", SL_SLOT_OUTPUT, SL_SLOT_ON_STATES, 0, 4);
    assert_slot(5, "cn.l0.backward", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(6, "w_x.l0.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 12, 3);
    assert_slot(8, "bias.l0.backward", SL_SLOT_PARAM, SL_SLOT_FREE, 1, 12);
    d.recurrent.options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER;
    sign(&d);
    assert_int_equal(slots[8].features, 16);
    d = lstm();
    d.recurrent.cell = SEQLSTM_CELL_RNN;
    d.recurrent.options |= SEQLSTM_BIT_RECURRENT_USE_BIAS | SEQLSTM_BIT_RECURRENT_LAYER_NORM;
    d.recurrent.layer_norm_epsilon = 1e-3f;
    sign(&d);
    assert_int_equal(slots[8].features, 4);
    assert_int_equal(slots[11].features, 8);
}

static void other_operations(void **state)
{
    (void)state;
    union seqlstm_any_desc d = {.loss = {.head = head(SEQLSTM_OP_LOSS),
                                         .features = 6,
                                         .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY,
                                         .options = SEQLSTM_BIT_LOSS_CLASS_WEIGHT | SEQLSTM_BIT_LOSS_ROW_LOSS}};
    assert_int_equal(sign(&d), SEQLSTM_SLOT_LOSS_COUNT);
    assert_slot(SEQLSTM_SLOT_LOSS_TARGET, "target", SL_SLOT_CONST, SL_SLOT_ON_ROWS, 0, 1);
    assert_int_equal(slots[SEQLSTM_SLOT_LOSS_TARGET].dtype, SEQLSTM_DTYPE_INT32);
    assert_slot(SEQLSTM_SLOT_LOSS_ROW_WEIGHT, "weight", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(SEQLSTM_SLOT_LOSS_CLASS_WEIGHT, "class_weight", SL_SLOT_CONST, SL_SLOT_FREE, 1, 6);
    assert_int_equal(slots[SEQLSTM_SLOT_LOSS_SUMS].dtype, SEQLSTM_DTYPE_FLOAT64);

    d = (union seqlstm_any_desc){.pool = {.head = head(SEQLSTM_OP_POOL), .features = 2}};
    sign(&d);
    assert_slot(SEQLSTM_SLOT_UNARY_Y, "y", SL_SLOT_OUTPUT, SL_SLOT_ON_SEQUENCES, 0, 2);

    d = (union seqlstm_any_desc){.merge = {.head = head(SEQLSTM_OP_MERGE), .inputs = 3, .widths = {1, 2, 4}}};
    sign(&d);
    assert_slot(SEQLSTM_SLOT_MERGE_Y, "y", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, 0, 7);
    assert_slot(SEQLSTM_SLOT_MERGE_X + 2, "x2", SL_SLOT_INPUT, SL_SLOT_ON_ROWS, 0, 4);
    assert_slot(SEQLSTM_SLOT_MERGE_X + 3, "x3", SL_SLOT_ABSENT, 0, 0, 0);

    d = (union seqlstm_any_desc){.gather = {.head = head(SEQLSTM_OP_SCATTER), .features = 2}};
    sign(&d);
    assert_slot(SEQLSTM_SLOT_GATHER_INDEX, "index", SL_SLOT_CONST, SL_SLOT_ON_ROWS_IN, 0, 1);

    d = (union seqlstm_any_desc){.cast = {.head = head(SEQLSTM_OP_CAST), .features = 2, .to = SEQLSTM_DTYPE_BFLOAT16}};
    sign(&d);
    assert_int_equal(slots[SEQLSTM_SLOT_UNARY_Y].dtype, SEQLSTM_DTYPE_BFLOAT16);

    d = (union seqlstm_any_desc){
        .optimizer = {.head = head(SEQLSTM_OP_OPTIMIZER), .kind = SEQLSTM_KIND_OPTIMIZER_RMSPROP, .momentum = 0.5f}};
    sign(&d);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_STATE_2, "state_2", SL_SLOT_INOUT, SL_SLOT_ON_ROWS, 0, 1);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_SUMS, "sums", SL_SLOT_CONST, SL_SLOT_FREE, 1, 2);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_SQUARES, "squares", SL_SLOT_CONST, SL_SLOT_FREE, 1, 1);
    assert_int_equal(slots[SEQLSTM_SLOT_OPTIMIZER_SQUARES].dtype, SEQLSTM_DTYPE_FLOAT64);
    d.optimizer.momentum = 0;
    sign(&d);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_STATE_2, "state_2", SL_SLOT_ABSENT, 0, 0, 0);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_STATE_1, "state_1", SL_SLOT_INOUT, SL_SLOT_ON_ROWS, 0, 1);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_STATE_3, "state_3", SL_SLOT_ABSENT, SL_SLOT_ON_ROWS, 0, 1);
    d.optimizer.options = SEQLSTM_BIT_OPTIMIZER_CENTERED;
    sign(&d);
    assert_slot(SEQLSTM_SLOT_OPTIMIZER_STATE_3, "state_3", SL_SLOT_INOUT, SL_SLOT_ON_ROWS, 0, 1);
    d.optimizer.options = SEQLSTM_BIT_OPTIMIZER_AMSGRAD;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);

    d = (union seqlstm_any_desc){
        .attention = {.head = head(SEQLSTM_OP_ATTENTION),
                      .key = 3,
                      .value = 3,
                      .kind = SEQLSTM_KIND_ATTENTION_ADDITIVE,
                      .options = SEQLSTM_BIT_ATTENTION_SHARED | SEQLSTM_BIT_ATTENTION_WEIGHTS}};
    d.head.max_sequences = 7;
    d.head.max_steps = 9;
    assert_int_equal(sign(&d), SEQLSTM_SLOT_ATTENTION_COUNT);
    assert_slot(SEQLSTM_SLOT_ATTENTION_KEYS, "keys", SL_SLOT_INPUT, SL_SLOT_ON_ROWS_IN, 0, 3);
    assert_slot(SEQLSTM_SLOT_ATTENTION_VALUES, "values", SL_SLOT_ABSENT, SL_SLOT_ON_ROWS_IN, 0, 0);
    assert_slot(SEQLSTM_SLOT_ATTENTION_OFFSETS, "offsets", SL_SLOT_CONST, SL_SLOT_FREE, 8, 1);
    assert_slot(SEQLSTM_SLOT_ATTENTION_WEIGHTS, "weights", SL_SLOT_OUTPUT, SL_SLOT_ON_ROWS, 0, 9);
    assert_slot(SEQLSTM_SLOT_ATTENTION_SCORE, "score", SL_SLOT_PARAM, SL_SLOT_FREE, 1, 3);
    d.attention.scale = 1; /* additive has none */
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
    d.attention.kind = SEQLSTM_KIND_ATTENTION_DOT;
    sign(&d);
    assert_slot(SEQLSTM_SLOT_ATTENTION_SCORE, "score", SL_SLOT_ABSENT, SL_SLOT_FREE, 0, 0);
    d.attention.value = 4; /* shared */
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);

    for (uint32_t kind = SEQLSTM_KIND_VECTOR_FILL; kind <= SEQLSTM_KIND_VECTOR_COPY; kind++) {
        const bool alone =
            kind == SEQLSTM_KIND_VECTOR_FILL || kind == SEQLSTM_KIND_VECTOR_SCALE || kind == SEQLSTM_KIND_VECTOR_CLAMP;
        d = (union seqlstm_any_desc){.vector = {.head = head(SEQLSTM_OP_VECTOR), .kind = kind}};
        sign(&d);
        assert_slot(SEQLSTM_SLOT_VECTOR_Y, "y", SL_SLOT_INOUT, SL_SLOT_ON_ROWS, 0, 1);
        if (alone)
            assert_slot(SEQLSTM_SLOT_VECTOR_X, "x", SL_SLOT_ABSENT, 0, 0, 0);
        else
            assert_slot(SEQLSTM_SLOT_VECTOR_X, "x", SL_SLOT_CONST, SL_SLOT_ON_ROWS, 0, 1);
    }
}

static void capacity_is_respected(void **state)
{
    (void)state;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    union seqlstm_any_desc d = lstm();
    int32_t count = -7;
    slots[5].name = "untouched";
    assert_int_equal(sl_op_signature(&d.head, slots, 5, &count, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, " slots, there is room for 5"));
    assert_int_equal(count, -7);
    assert_string_equal(slots[5].name, "untouched");
    d.recurrent.layers = 64;
    d.recurrent.direction = SEQLSTM_DIRECTION_BIDIRECTIONAL;
    assert_int_equal(sign(&d), SL_SLOTS_MAX);
    assert_string_equal(slots[SL_SLOTS_MAX - 1].name, "norm.l63.backward");
}

/* Sets one field of a plain LSTM to something wrong and wants the reason to name it. */
#define ASSERT_REFUSED(assignment, word)                                                                               \
    do {                                                                                                               \
        union seqlstm_any_desc d_ = lstm();                                                                            \
        struct seqlstm_recurrent_desc *r = &d_.recurrent;                                                              \
        struct seqlstm_error err_ = SEQLSTM_ERROR_INIT;                                                                \
        assert_int_equal(sl_op_desc_check(&d_.head, &err_), SEQLSTM_OK);                                               \
        assignment;                                                                                                    \
        assert_int_equal(sl_op_desc_check(&d_.head, &err_), SEQLSTM_INVALID_ARGUMENT);                                 \
        if (!strstr(err_.message, word))                                                                               \
            fail_msg("\"%s\" does not name %s", err_.message, word);                                                   \
    } while (0)

static void refused_descriptors(void **state)
{
    (void)state;
    ASSERT_REFUSED(r->head.op = 99, "unknown operation");
    ASSERT_REFUSED(r->head.struct_size -= 8, "struct_size is");
    ASSERT_REFUSED(r->head.struct_size += 8, "struct_size is 272");
    ASSERT_REFUSED(r->head.mode = 3, "mode is 3");
    ASSERT_REFUSED(r->head.flags = 1u << 9, "flags has the bits 0x200");
    ASSERT_REFUSED(r->head.dtype_state = 8, "dtype_state");
    ASSERT_REFUSED(r->head.max_rows = 0, "max_rows");
    ASSERT_REFUSED(r->head.max_steps = 0, "max_steps");
    ASSERT_REFUSED(r->head.reserved0 = 1, "reserved0");
    ASSERT_REFUSED(r->cell = 0, "cell");
    ASSERT_REFUSED(r->direction = 3, "direction");
    ASSERT_REFUSED(r->merge = 4, "merge");
    ASSERT_REFUSED(r->options |= 1u << 9, "0x200");
    ASSERT_REFUSED(r->options = 0, "neither");
    ASSERT_REFUSED(r->layers = 65, "layers");
    ASSERT_REFUSED(r->hidden = 0, "hidden");
    ASSERT_REFUSED(r->activations[2][0].kind = SEQLSTM_ACT_SOFTMAX, "activation is 12");
    ASSERT_REFUSED(r->activations[0][1].reserved0 = 1, "reserved0");
    ASSERT_REFUSED(r->activations[0][0].alpha = NAN, "alpha is nan");
    ASSERT_REFUSED(r->dropout = 1.0f, "dropout is 1.0000");
    ASSERT_REFUSED(r->recurrent_dropout = -0.25f, "-0.2500");
    ASSERT_REFUSED(r->zoneout_hidden = NAN, "nan");
    ASSERT_REFUSED(r->cell_clip = INFINITY, "out of range");
    ASSERT_REFUSED(r->options |= SEQLSTM_BIT_RECURRENT_LAYER_NORM, "epsilon");
    ASSERT_REFUSED(r->options |= SEQLSTM_BIT_RECURRENT_RESET_AFTER, "reset_after");
    ASSERT_REFUSED((r->cell = SEQLSTM_CELL_GRU, r->projection = 2), "projection");
    ASSERT_REFUSED((r->cell = SEQLSTM_CELL_RNN, r->options |= SEQLSTM_BIT_RECURRENT_PEEPHOLE), "peephole");
    ASSERT_REFUSED((r->cell = SEQLSTM_CELL_RNN, r->cell_clip = 1), "cell_clip");
    ASSERT_REFUSED((r->cell = SEQLSTM_CELL_RNN, r->zoneout_cell = 0.5f), "zoneout");
    ASSERT_REFUSED(
        (r->cell = SEQLSTM_CELL_GRU, r->options |= SEQLSTM_BIT_RECURRENT_LAYER_NORM, r->layer_norm_epsilon = 1),
        "reset_after");

    union seqlstm_any_desc d = {.merge = {.head = head(SEQLSTM_OP_MERGE), .kind = 1, .inputs = 2, .widths = {1, 2}}};
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
    d.merge.widths[1] = 1;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_OK);
    d.merge.widths[2] = 1;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
    d = (union seqlstm_any_desc){
        .loss = {.head = head(SEQLSTM_OP_LOSS), .features = 2, .kind = SEQLSTM_KIND_LOSS_HUBER}};
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
    d.loss.delta = 1;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_OK);
    d.loss.label_smoothing = 0.1f;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
    d = (union seqlstm_any_desc){.top_k = {.head = head(SEQLSTM_OP_TOP_K), .features = 4, .k = 5}};
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
    d.top_k.k = 4;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_OK);
    d.top_k.kind = SEQLSTM_KIND_TOP_K_SAMPLE;
    assert_int_equal(sl_op_desc_check(&d.head, NULL), SEQLSTM_INVALID_ARGUMENT);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(sl_op_name(SEQLSTM_OP_RECURRENT), "recurrent");
    assert_string_equal(sl_op_name(SEQLSTM_OP_VECTOR), "vector");
    assert_string_equal(sl_op_name(SEQLSTM_OP_ATTENTION), "attention");
    assert_string_equal(sl_op_name(1000), "unknown operation");
    assert_true(sl_op_has_backward(SEQLSTM_OP_ATTENTION) && sl_op_has_backward(SEQLSTM_OP_DENSE_LOSS));
    assert_false(sl_op_has_backward(SEQLSTM_OP_TOP_K) || sl_op_has_backward(SEQLSTM_OP_VECTOR));
    assert_string_equal(sl_activation_name(SEQLSTM_ACT_LEAKY_RELU), "leaky_relu");
    assert_string_equal(sl_activation_name(SEQLSTM_ACT_LOG_SOFTMAX), "log_softmax");
    assert_int_equal(sl_dtype_bytes(SEQLSTM_DTYPE_FLOAT32), 4);
    assert_int_equal(sl_dtype_bytes(SEQLSTM_DTYPE_FLOAT64), 8);
    assert_int_equal(sl_dtype_bytes(SEQLSTM_DTYPE_FLOAT16), 2);
    assert_int_equal(sl_dtype_bytes(SEQLSTM_DTYPE_UINT8), 1);
    assert_int_equal(sl_op_desc_bytes(SEQLSTM_OP_RECURRENT), 264);
    assert_int_equal(sl_op_desc_bytes(SEQLSTM_OP_NONE), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lstm),
        cmocka_unit_test(full_lstm),
        cmocka_unit_test(gru_and_rnn),
        cmocka_unit_test(other_operations),
        cmocka_unit_test(capacity_is_respected),
        cmocka_unit_test(refused_descriptors),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
