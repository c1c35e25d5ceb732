/* SPDX-License-Identifier: Apache-2.0 */
/* What the reference says of calls that cannot be: each message as a whole, where no two numbers are the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/ext/draft/attention.h>

#include "ref_harness.h"

static void expect(struct rh *rh, seqlstm_status wanted, const char *message)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_forward args = {.struct_size = sizeof args,
                                         .slot_count = (uint32_t)rh->count,
                                         .slots = rh->values,
                                         .workspace = rh->workspace,
                                         .reserve = rh->reserve,
                                         .step = &rh->step};
    const seqlstm_status status = rh->backend->forward(rh->binding, &rh->queue, &args, &err);
    assert_string_equal(err.message, message);
    assert_int_equal(status, wanted);
}

/* Each slot that a dense layer reads is absent in turn; what it writes may be. */
static void absent_slots_are_numbered(void **state)
{
    (void)state;
    const union seqlstm_any_desc d = {.dense = {.head = rh_head(SEQLSTM_OP_DENSE, SEQLSTM_MODE_TRAINING),
                                                .input = 3,
                                                .output = 2,
                                                .options = SEQLSTM_BIT_DENSE_USE_BIAS}};
    static const struct {
        int32_t slot;
        const char *message;
    } rows[] = {{SEQLSTM_SLOT_DENSE_X, "slot 0 is NULL, but needed"},
                {SEQLSTM_SLOT_DENSE_W, "slot 2 is NULL, but needed"},
                {SEQLSTM_SLOT_DENSE_BIAS, "slot 3 is NULL, but needed"}};
    struct rh rh;
    rh_open_rows(&rh, &d, 4, 4, 1);
    for (int k = 0; k < 3; k++) {
        void *was = rh.values[rows[k].slot];
        rh.values[rows[k].slot] = NULL;
        expect(&rh, SEQLSTM_INVALID_ARGUMENT, rows[k].message);
        rh.values[rows[k].slot] = was;
    }
    for (int32_t more = -1; more <= 1; more += 2) {
        rh.count += more;
        expect(&rh, SEQLSTM_INVALID_ARGUMENT,
               more < 0 ? "3 slots were given, expected 4" : "5 slots were given, expected 4");
        rh.count -= more;
    }
    expect(&rh, SEQLSTM_OK, "");
    rh_close(&rh);
}

static void indices_beyond_the_end_are_placed(void **state)
{
    (void)state;
    union seqlstm_any_desc d = {
        .embedding = {.head = rh_head(SEQLSTM_OP_EMBEDDING, SEQLSTM_MODE_TRAINING), .vocabulary = 7, .features = 3}};
    struct rh rh;
    rh_open_rows(&rh, &d, 5, 5, 1);
    memcpy(rh.values[SEQLSTM_SLOT_EMBEDDING_IDS], (const int32_t[5]){6, -1, 0, 8, 9}, 5 * sizeof(int32_t));
    expect(&rh, SEQLSTM_INVALID_ARGUMENT, "id 8 of row 3, but the table has 7 rows");
    rh_close(&rh);

    for (int k = 0; k < 2; k++) {
        d = (union seqlstm_any_desc){
            .gather = {.head = rh_head(k ? SEQLSTM_OP_SCATTER : SEQLSTM_OP_GATHER, SEQLSTM_MODE_TRAINING),
                       .features = 2}};
        rh_open_rows(&rh, &d, 6, 5, 1);
        memcpy(rh.values[SEQLSTM_SLOT_GATHER_INDEX], (const int32_t[5]){4, -1, 3, 9, 10}, 5 * sizeof(int32_t));
        expect(&rh, SEQLSTM_INVALID_ARGUMENT,
               k ? "index 9 at 3, but there are 6 rows" : "index 9 at 3, but there are 5 rows");
        rh_close(&rh);
    }

    d = (union seqlstm_any_desc){.loss = {.head = rh_head(SEQLSTM_OP_LOSS, SEQLSTM_MODE_TRAINING),
                                          .features = 4,
                                          .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY}};
    rh_open_rows(&rh, &d, 5, 5, 1);
    memcpy(rh.values[SEQLSTM_SLOT_LOSS_TARGET], (const int32_t[5]){3, -1, 6, 7, 0}, 5 * sizeof(int32_t));
    expect(&rh, SEQLSTM_INVALID_ARGUMENT, "target 6 of row 2, but there are 4 classes");
    rh_close(&rh);

    d = (union seqlstm_any_desc){
        .top_k = {.head = rh_head(SEQLSTM_OP_TOP_K, SEQLSTM_MODE_INFERENCE), .features = 4, .k = 2}};
    rh_open_rows(&rh, &d, 5, 5, 1);
    float *x = rh.values[SEQLSTM_SLOT_TOP_K_X]; /* as forward reads it */
    for (int i = 0; i < 5 * 4; i++)
        x[i] = i == 3 * 4 + 1 ? NAN : 0.0f;
    expect(&rh, SEQLSTM_NUMERIC, "row 3 of top_k holds NaN");
    x[3 * 4 + 1] = 0;
    x[5 * 4 - 1] = NAN;
    expect(&rh, SEQLSTM_NUMERIC, "row 4 of top_k holds NaN");
    rh_close(&rh);
}

static void memories_beyond_the_rows_are_placed(void **state)
{
    (void)state;
    union seqlstm_any_desc d = {.attention = {.head = rh_head(SEQLSTM_OP_ATTENTION, SEQLSTM_MODE_TRAINING),
                                              .key = 2,
                                              .value = 2,
                                              .kind = SEQLSTM_KIND_ATTENTION_DOT,
                                              .scale = 1.0f}};
    d.head.max_sequences = 3;
    d.head.max_steps = 4;
    static const struct {
        int32_t memory_of[5], offsets[4];
        const char *message;
    } rows[] = {
        {{0, 2, -1, 1, 0}, {0, 3, 5, 6}, ""},
        {{0, 2, -1, 4, 5}, {0, 3, 5, 6}, "query 3 uses memory 4, but there are 3"},
        {{0, 2, -1, 1, 0}, {0, 3, 4, 8}, "memory 2 has 4 rows from row 4 on, but there are 6"},
        {{0, 2, -1, 1, 0}, {1, 3, 4, 9}, "memory 2 has 5 rows from row 4 on, but there are 6"},
        {{0, 1, -1, 1, 0}, {0, 3, 1, 6}, "memory 1 has -2 rows from row 3 on, but there are 6"},
        {{1, 0, -1, 1, 0}, {-2, 1, 4, 6}, "memory 0 has 3 rows from row -2 on, but there are 6"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct rh rh;
        rh_open_rows(&rh, &d, 5, 6, 1);
        memcpy(rh.values[SEQLSTM_SLOT_ATTENTION_MEMORY_OF], rows[k].memory_of, sizeof rows[k].memory_of);
        memcpy(rh.values[SEQLSTM_SLOT_ATTENTION_OFFSETS], rows[k].offsets, sizeof rows[k].offsets);
        expect(&rh, rows[k].message[0] == 0 ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT, rows[k].message);
        rh_close(&rh);
    }
}

static void expect_no_backward(const union seqlstm_any_desc *d, const char *message)
{
    struct rh rh;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    rh_open_rows(&rh, d, 5, 5, 1);
    const struct seqlstm_backward args = {.struct_size = sizeof args,
                                          .slot_count = (uint32_t)rh.count,
                                          .slots = rh.values,
                                          .grads = (void *const *)rh.grads,
                                          .parts = RH_ALL,
                                          .workspace = rh.workspace,
                                          .reserve = rh.reserve,
                                          .step = &rh.step};
    assert_int_equal(rh.backend->backward(rh.binding, &rh.queue, &args, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, message);
    rh_close(&rh);
}

static void operations_without_backward_say_so(void **state)
{
    (void)state;
    const union seqlstm_any_desc dense = {
        .dense = {.head = rh_head(SEQLSTM_OP_DENSE, SEQLSTM_MODE_INFERENCE), .input = 3, .output = 2}};
    const union seqlstm_any_desc vector = {
        .vector = {.head = rh_head(SEQLSTM_OP_VECTOR, SEQLSTM_MODE_TRAINING), .kind = SEQLSTM_KIND_VECTOR_COPY}};
    char message[64];
    expect_no_backward(&dense, "an operation in inference mode has no backward");
    snprintf(message, sizeof message, "operation %d has no backward", SEQLSTM_OP_VECTOR);
    expect_no_backward(&vector, message);
}

/* A layer whose weight gradients come in a later call: of their own, for the whole axis. */
static void stepwise_layers_say_what_they_need(void **state)
{
    (void)state;
    static const int32_t lengths[2] = {4, 2};
    static const char own[] = "stepwise: weight gradients need a call of their own";
    static const char whole[] = "stepwise: weight gradients need a binding of the whole axis";
    enum { WEIGHTS = SEQLSTM_BIT_BACKWARD_WEIGHTS, INPUTS = SEQLSTM_BIT_BACKWARD_INPUTS };
    enum { STATES = SEQLSTM_BIT_BACKWARD_STATES };
    static const struct {
        uint32_t parts;
        bool is_whole, has_reserve;
        const char *message;
    } rows[] = {{INPUTS | STATES, false, true, ""},
                {INPUTS | STATES, true, false, "backward of a recurrent layer needs the reserve of its forward"},
                {WEIGHTS | INPUTS, true, true, own},
                {WEIGHTS | STATES, true, true, own},
                {WEIGHTS | INPUTS, false, true, own},
                {WEIGHTS, false, true, whole},
                {WEIGHTS, true, true, ""}};
    union seqlstm_any_desc any;
    memset(&any, 0, sizeof any);
    any.recurrent.head = rh_head(SEQLSTM_OP_RECURRENT, SEQLSTM_MODE_TRAINING);
    any.recurrent.cell = SEQLSTM_CELL_GRU;
    any.recurrent.options = SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_STEPWISE;
    any.recurrent.layers = 1;
    any.recurrent.input = 2;
    any.recurrent.hidden = 3;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct rh rh;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        rh_open(&rh, &any, lengths, 2, 0, rows[k].is_whole ? 4 : 3, 1);
        const struct seqlstm_backward args = {.struct_size = sizeof args,
                                              .slot_count = (uint32_t)rh.count,
                                              .slots = rh.values,
                                              .grads = (void *const *)rh.grads,
                                              .parts = rows[k].parts,
                                              .workspace = rh.workspace,
                                              .reserve = rows[k].has_reserve ? rh.reserve : NULL,
                                              .step = &rh.step};
        const seqlstm_status status = rh.backend->backward(rh.binding, &rh.queue, &args, &err);
        assert_string_equal(err.message, rows[k].message);
        assert_int_equal(status, rows[k].message[0] == 0 ? SEQLSTM_OK : SEQLSTM_INVALID_ARGUMENT);
        rh_close(&rh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_slots_are_numbered),           cmocka_unit_test(indices_beyond_the_end_are_placed),
        cmocka_unit_test(memories_beyond_the_rows_are_placed), cmocka_unit_test(operations_without_backward_say_so),
        cmocka_unit_test(stepwise_layers_say_what_they_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
