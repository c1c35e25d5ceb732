/* SPDX-License-Identifier: Apache-2.0 */
/* What cpu-onednn refuses, in which mode and on which processors: each refusal as a whole. */
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

#include "onednn_fixture.h"

enum { INFERENCE = SEQLSTM_MODE_INFERENCE, TRAINING = SEQLSTM_MODE_TRAINING };
enum { LSTM = SEQLSTM_CELL_LSTM, GRU = SEQLSTM_CELL_GRU, RNN = SEQLSTM_CELL_RNN };
enum { GATE = SEQLSTM_PLACE_GATE, CANDIDATE = SEQLSTM_PLACE_CANDIDATE, OUTPUT = SEQLSTM_PLACE_OUTPUT };
enum { BOTH_WAYS = SEQLSTM_DIRECTION_BIDIRECTIONAL };

static const char modern[] = "cpu:x86-64-v4", older[] = "cpu:x86-64-v3";

static struct seqlstm_desc head_of(uint32_t op, size_t bytes, uint32_t mode)
{
    return (struct seqlstm_desc){
        .struct_size = (uint32_t)bytes, .op = op, .mode = mode, .max_rows = 12, .max_sequences = 4, .max_steps = 3};
}

static struct seqlstm_recurrent_desc layer(uint32_t cell, uint32_t mode)
{
    struct seqlstm_recurrent_desc d;
    memset(&d, 0, sizeof d);
    d.head = head_of(SEQLSTM_OP_RECURRENT, sizeof d, mode);
    d.cell = cell;
    d.options = SEQLSTM_BIT_RECURRENT_OUTPUT;
    d.layers = 1;
    d.input = 5;
    d.hidden = 7;
    for (int i = 0; i < 2; i++) {
        d.activations[GATE][i].kind = SEQLSTM_ACT_SIGMOID;
        d.activations[CANDIDATE][i].kind = d.activations[OUTPUT][i].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

static struct seqlstm_recurrent_desc narrow_layer(uint32_t cell, uint32_t dtype)
{
    struct seqlstm_recurrent_desc d = layer(cell, INFERENCE);
    d.head.dtype_compute = dtype;
    d.data_scale = dtype == SEQLSTM_DTYPE_INT8 ? 1.0f : 0.0f;
    return d;
}

static struct seqlstm_answer ask_class(const char *class, const struct seqlstm_desc *desc)
{
    struct seqlstm_answer answer = {.struct_size = sizeof answer};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(table->supports(class, desc, &answer, &err), SEQLSTM_OK);
    return answer;
}

static void expect_yes(const char *class, const struct seqlstm_desc *desc)
{
    const struct seqlstm_answer answer = ask_class(class, desc);
    if (!answer.accepted)
        fail_msg("%s (%s)", answer.reason, answer.value);
    assert_int_equal(answer.variant_count, 2);
    assert_string_equal(answer.variants[0], "sliced");
    assert_string_equal(answer.variants[1], "exclusive");
}

static void expect_no(const char *class, const struct seqlstm_desc *desc, uint32_t option, const char *value,
                      const char *reason, const char *hint)
{
    const struct seqlstm_answer answer = ask_class(class, desc);
    if (answer.accepted)
        fail_msg("accepted instead of: %s", reason);
    assert_string_equal(answer.reason, reason);
    assert_int_equal(answer.option, option);
    assert_string_equal(answer.value, value);
    assert_string_equal(answer.hint, hint);
}

static void activations_are_those_of_the_library(void **state)
{
    static const char simple[] = "oneDNN's simple RNN supports only tanh, relu and sigmoid.";
    static const char same[] = "cpu-onednn uses the same activation in both directions.";
    static const struct {
        uint32_t cell;
        int place;
        uint32_t kind, option;
        const char *value, *reason, *hint; /* NULL: it is accepted */
    } rows[] = {
        {LSTM, GATE, SEQLSTM_ACT_HARD_SIGMOID, SEQLSTM_OPTION_RECURRENT_ACTIVATION, "hard_sigmoid",
         "oneDNN's gates are always sigmoids.", "recurrent_activation: sigmoid"},
        {GRU, GATE, SEQLSTM_ACT_TANH, SEQLSTM_OPTION_RECURRENT_ACTIVATION, "tanh",
         "oneDNN's gates are always sigmoids.", "recurrent_activation: sigmoid"},
        {LSTM, CANDIDATE, SEQLSTM_ACT_RELU, SEQLSTM_OPTION_ACTIVATION, "relu", "oneDNN's candidate is always tanh.",
         "activation: tanh"},
        {GRU, CANDIDATE, SEQLSTM_ACT_SIGMOID, SEQLSTM_OPTION_ACTIVATION, "sigmoid",
         "oneDNN's candidate is always tanh.", "activation: tanh"},
        {LSTM, OUTPUT, SEQLSTM_ACT_SOFTSIGN, SEQLSTM_OPTION_OUTPUT_ACTIVATION, "softsign",
         "oneDNN's output activation is always tanh.", "output_activation: tanh"},
        {GRU, OUTPUT, SEQLSTM_ACT_SOFTSIGN, 0, NULL, NULL, NULL}, /* of no cell but the LSTM */
        {RNN, OUTPUT, SEQLSTM_ACT_SOFTSIGN, 0, NULL, NULL, NULL},
        {RNN, GATE, SEQLSTM_ACT_SOFTSIGN, 0, NULL, NULL, NULL},
        {RNN, CANDIDATE, SEQLSTM_ACT_SOFTSIGN, SEQLSTM_OPTION_ACTIVATION, "softsign", simple, "activation: tanh"},
        {RNN, CANDIDATE, SEQLSTM_ACT_RELU, 0, NULL, NULL, NULL},
        {RNN, CANDIDATE, SEQLSTM_ACT_SIGMOID, 0, NULL, NULL, NULL},
        {RNN, CANDIDATE, SEQLSTM_ACT_TANH, 0, NULL, NULL, NULL},
    };
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int which = 0; which < 3; which++) { /* both directions; the second of two; the second of one */
            struct seqlstm_recurrent_desc d = layer(rows[k].cell, k % 2 ? TRAINING : INFERENCE);
            d.direction = which < 2 ? BOTH_WAYS : 0;
            d.activations[rows[k].place][1].kind = rows[k].kind;
            if (which == 0)
                d.activations[rows[k].place][0].kind = rows[k].kind;
            const bool differs = which == 1 && rows[k].cell == RNN && rows[k].place == CANDIDATE &&
                                 rows[k].kind != SEQLSTM_ACT_TANH && rows[k].reason == NULL;
            if (differs)
                expect_no(older, &d.head, SEQLSTM_OPTION_ACTIVATION,
                          rows[k].kind == SEQLSTM_ACT_RELU ? "relu" : "sigmoid", same, "");
            else if (which == 2 || rows[k].reason == NULL)
                expect_yes(older, &d.head);
            else
                expect_no(older, &d.head, rows[k].option, rows[k].value, rows[k].reason, rows[k].hint);
        }
}

/* Masks are drawn in training alone; all else is refused in both modes. */
static void options_without_primitives_are_refused(void **state)
{
    static const char zoneout[] = "oneDNN has no zoneout.";
    (void)state;
    for (uint32_t mode = INFERENCE; mode <= TRAINING; mode++)
        for (int k = 0; k < 9; k++) {
            struct seqlstm_recurrent_desc d = layer(LSTM, mode);
            const struct {
                float *field;
                float value;
                uint32_t option;
                const char *text, *reason;
                bool mask;
            } rows[] = {
                {NULL, 0, SEQLSTM_OPTION_COUPLED_GATES, "true", "oneDNN has no coupled gates.", false},
                {NULL, 0, SEQLSTM_OPTION_LAYER_NORM, "true", "oneDNN's cells have no layer normalisation.", false},
                {&d.cell_clip, 0.25f, SEQLSTM_OPTION_CELL_CLIP, "0.25", "oneDNN does not clip the cell.", false},
                {&d.gate_clip, 1.5f, SEQLSTM_OPTION_GATE_CLIP, "1.5", "oneDNN does not clip the gates.", false},
                {&d.zoneout_cell, 0.125f, SEQLSTM_OPTION_ZONEOUT, "0.125", zoneout, false},
                {&d.zoneout_hidden, 0.375f, SEQLSTM_OPTION_ZONEOUT, "0.375", zoneout, false},
                {&d.dropout, 0.5f, SEQLSTM_OPTION_DROPOUT, "0.5",
                 "oneDNN has no masks on the input of a recurrent layer.", true},
                {&d.recurrent_dropout, 0.75f, SEQLSTM_OPTION_RECURRENT_DROPOUT, "0.75",
                 "oneDNN has no masks on the recurrent input.", true},
                {&d.weight_drop, 0.0625f, SEQLSTM_OPTION_WEIGHT_DROP, "0.0625",
                 "oneDNN has no masks on the recurrent weights.", true},
            };
            if (rows[k].field != NULL)
                *rows[k].field = rows[k].value;
            else
                d.options |= k == 0 ? SEQLSTM_BIT_RECURRENT_COUPLED_GATES : SEQLSTM_BIT_RECURRENT_LAYER_NORM;
            d.layer_norm_epsilon = k == 1 ? 1e-5f : 0.0f;
            if (rows[k].mask && mode == INFERENCE)
                expect_yes(older, &d.head);
            else
                expect_no(older, &d.head, rows[k].option, rows[k].text, rows[k].reason, "");
        }
    struct seqlstm_recurrent_desc stepwise = layer(LSTM, TRAINING);
    stepwise.options |= SEQLSTM_BIT_RECURRENT_STEPWISE;
    expect_no(older, &stepwise.head, SEQLSTM_OPTION_LENGTHS, "true",
              "oneDNN computes weight gradients together with those of the inputs, not in a later call.", "");
}

static void merges_and_projections(void **state)
{
    static const char *const names[] = {"concat", "sum", "mul", "ave"};
    (void)state;
    for (uint32_t merge = SEQLSTM_KIND_MERGE_CONCAT; merge <= SEQLSTM_KIND_MERGE_AVE; merge++)
        for (uint32_t dtype = SEQLSTM_DTYPE_FLOAT32; dtype <= SEQLSTM_DTYPE_INT8; dtype++) {
            if (dtype != SEQLSTM_DTYPE_FLOAT32 && dtype != SEQLSTM_DTYPE_BFLOAT16 && dtype != SEQLSTM_DTYPE_INT8)
                continue;
            struct seqlstm_recurrent_desc d = narrow_layer(LSTM, dtype);
            d.merge = merge;
            expect_yes(modern, &d.head); /* with one direction there is nothing to merge */
            d.direction = BOTH_WAYS;
            if (merge == SEQLSTM_KIND_MERGE_MUL)
                expect_no(modern, &d.head, SEQLSTM_OPTION_MERGE, "mul",
                          "cpu-onednn cannot merge directions by multiplication.", "merge: concat, sum or ave");
            else if (merge != SEQLSTM_KIND_MERGE_CONCAT && dtype == SEQLSTM_DTYPE_INT8)
                expect_no(modern, &d.head, SEQLSTM_OPTION_MERGE, merge == SEQLSTM_KIND_MERGE_SUM ? names[1] : names[3],
                          "cpu-onednn merges directions in int8 only by concat.", "merge: concat");
            else
                expect_yes(modern, &d.head);
        }
    for (uint32_t mode = INFERENCE; mode <= TRAINING; mode++) {
        struct seqlstm_recurrent_desc d = layer(LSTM, mode);
        d.projection = 3;
        if (mode == INFERENCE)
            expect_yes(older, &d.head);
        else
            expect_no(older, &d.head, SEQLSTM_OPTION_PROJECTION, "3", "cpu-onednn cannot train a projection.",
                      "a layer without projection");
    }
}

static void narrow_types_are_for_plain_lstms(void **state)
{
    static const char plain[] =
        "cpu-onednn supports bfloat16 and int8 only for LSTMs without peepholes and projection.";
    static const char hint[] = "precision: float32";
    static const struct {
        uint32_t dtype;
        const char *name;
    } types[] = {{SEQLSTM_DTYPE_BFLOAT16, "bfloat16"}, {SEQLSTM_DTYPE_INT8, "int8"}};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct seqlstm_recurrent_desc d = narrow_layer(LSTM, types[k].dtype);
        expect_yes(modern, &d.head);
        expect_no(older, &d.head, SEQLSTM_OPTION_DTYPE, types[k].name,
                  "cpu-onednn needs a processor with AVX-512 for bfloat16 and int8.", hint);
        d.options |= SEQLSTM_BIT_RECURRENT_PEEPHOLE;
        expect_no(modern, &d.head, SEQLSTM_OPTION_DTYPE, types[k].name, plain, hint);
        d = narrow_layer(LSTM, types[k].dtype);
        d.projection = 3;
        expect_no(modern, &d.head, SEQLSTM_OPTION_DTYPE, types[k].name, plain, hint);
        for (uint32_t cell = GRU; cell <= RNN; cell++) {
            d = narrow_layer(cell, types[k].dtype);
            expect_no(modern, &d.head, SEQLSTM_OPTION_DTYPE, types[k].name, plain, hint);
        }
    }
    const struct seqlstm_recurrent_desc tf32 = narrow_layer(LSTM, SEQLSTM_DTYPE_TF32);
    expect_no(modern, &tf32.head, SEQLSTM_OPTION_DTYPE, "tf32", "cpu-onednn computes in float32, bfloat16 or int8.",
              hint);
}

static void rowwise_operations_are_plain_and_in_float32(void **state)
{
    static const struct {
        uint32_t kind;
        const char *name;
    } kinds[] = {{SEQLSTM_ACT_TANH, "tanh"}, {SEQLSTM_ACT_RELU, "relu"}, {SEQLSTM_ACT_SOFTMAX, "softmax"}};
    (void)state;
    struct seqlstm_dense_desc dense = {
        .head = head_of(SEQLSTM_OP_DENSE, sizeof dense, INFERENCE), .input = 3, .output = 2};
    struct seqlstm_layer_norm_desc norm = {
        .head = head_of(SEQLSTM_OP_LAYER_NORM, sizeof norm, TRAINING), .features = 5, .epsilon = 1e-5f};
    const struct seqlstm_embedding_desc embedding = {
        .head = head_of(SEQLSTM_OP_EMBEDDING, sizeof embedding, INFERENCE), .vocabulary = 4, .features = 3};
    char number[16];
    expect_yes(older, &dense.head);
    expect_yes(older, &norm.head);
    for (int k = 0; k < 3; k++) {
        struct seqlstm_dense_desc d = dense;
        d.activation.kind = kinds[k].kind;
        expect_no(older, &d.head, SEQLSTM_OPTION_ACTIVATION, kinds[k].name,
                  "cpu-onednn computes only dense layers without activation.", "an `activation` layer after it");
    }
    dense.head.dtype_compute = norm.head.dtype_compute = SEQLSTM_DTYPE_BFLOAT16;
    expect_no(modern, &dense.head, SEQLSTM_OPTION_DTYPE, "bfloat16",
              "cpu-onednn computes dense layers only in float32.", "precision: float32");
    expect_no(modern, &norm.head, SEQLSTM_OPTION_DTYPE, "bfloat16",
              "cpu-onednn computes layer normalisation only in float32.", "precision: float32");
    snprintf(number, sizeof number, "%d", SEQLSTM_OP_EMBEDDING);
    expect_no(older, &embedding.head, SEQLSTM_OPTION_NONE, number, "cpu-onednn does not compute this operation.", "");
}

/* Inputs and outputs are float32 whatever computes, and rows are counted in 32 bits. */
static void edges_and_rows_are_bounded(void **state)
{
    (void)state;
    struct seqlstm_recurrent_desc d = layer(LSTM, TRAINING);
    struct seqlstm_answer answer;
    d.head.max_rows = (INT64_C(1) << 31) - 1;
    expect_yes(older, &d.head);
    d.head.max_rows = (INT64_C(1) << 31) + 5;
    answer = ask_class(older, &d.head);
    assert_false(answer.accepted);
    assert_int_equal(answer.option, SEQLSTM_OPTION_SHAPE);
    assert_string_equal(answer.value, "2147483653");
    d = layer(LSTM, TRAINING);
    d.head.dtype_activation = SEQLSTM_DTYPE_BFLOAT16;
    answer = ask_class(modern, &d.head);
    assert_false(answer.accepted);
    assert_int_equal(answer.option, SEQLSTM_OPTION_DTYPE);
    assert_string_equal(answer.value, "bfloat16");
}

static void unknown_options_are_named(void **state)
{
    const struct seqlstm_setting settings[] = {{"library", "auto"}, {"threads", "4"}};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_instance *none = NULL;
    (void)state;
    assert_int_equal(table->open(&host.services, settings, 2, &none, &err), SEQLSTM_INVALID_CONFIG);
    assert_string_equal(err.message, "cpu-onednn has no option `threads`");
    assert_null(none);
}

static int32_t said_level, said_count;
static char said[64];

static void hear(void *context, int32_t level, const char *message)
{
    (void)context;
    said_level = level;
    said_count++;
    snprintf(said, sizeof said, "%s", message);
}

/* Once, in the log of those who ask for more; the library is that which the device names. */
static void an_instance_says_which_library_it_runs(void **state)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_host services = host.services;
    struct seqlstm_instance *other = NULL;
    struct seqlstm_device_info info = {.struct_size = sizeof info};
    (void)state;
    services.log = hear;
    assert_int_equal(table->open(&services, NULL, 0, &other, &err), SEQLSTM_OK);
    assert_int_equal(table->device_info(other, 0, &info, &err), SEQLSTM_OK);
    assert_non_null(strstr(info.name, said));
    assert_int_equal(table->device_info(other, 1, &info, &err), SEQLSTM_INVALID_ARGUMENT);
    assert_string_equal(err.message, "device 1 does not exist: cpu-onednn has one");
    table->close(other);
    assert_int_equal(said_count, 1);
    assert_int_equal(said_level, SEQLSTM_LOG_DEBUG);
    assert_int_equal(strncmp(said, "oneDNN ", 7), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations_are_those_of_the_library),
        cmocka_unit_test(options_without_primitives_are_refused),
        cmocka_unit_test(merges_and_projections),
        cmocka_unit_test(narrow_types_are_for_plain_lstms),
        cmocka_unit_test(rowwise_operations_are_plain_and_in_float32),
        cmocka_unit_test(edges_and_rows_are_bounded),
        cmocka_unit_test(unknown_options_are_named),
        cmocka_unit_test(an_instance_says_which_library_it_runs),
    };
    if (!open_backend())
        return 0;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table->close(instance);
    return failed || host.memory.live_blocks != 0;
}
