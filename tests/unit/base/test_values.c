/* SPDX-License-Identifier: Apache-2.0 */
/* What core/base writes of values, compared as a whole: JSON, numbers, similar words, HTML, charts, slots of
 * operations.
 */
#include <float.h>
#include <math.h>

#include "golden.h"
#include "oom.h"

#include "base/operation/op_signature.h"
#include "base/value/chart.h"
#include "base/value/html.h"
#include "base/value/json_write.h"
#include "base/value/printable.h"
#include "base/value/text.h"

/* ---- texts and numbers -------------------------------------------------------------------------------------- */

static void add_texts(struct sl_buf *out)
{
    static const char *const texts[] = {"",
                                        "plain",
                                        "\"quoted\\\"",
                                        "\b\t\n\f\r",
                                        "\x01\x1f\x7f",
                                        "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
                                        "bad \xff\xc3( \xe2\x82 end",
                                        "<a href=\"x\">&'</a>"};
    sl_buf_append_text(out, "== texts\n");
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        sl_json_append_string(out, texts[k]);
        sl_buf_append_text(out, "  html ");
        sl_html_append_text(out, texts[k]);
        sl_buf_append_text(out, "  shown ");
        sl_printable_append(out, texts[k], strlen(texts[k]), "");
        sl_buf_append_char(out, '\n');
    }
    sl_json_append_string(out, NULL);
    sl_json_append_text(out, "cut\0here", 8);
    sl_buf_append_char(out, '\n');
}

static void add_number(struct sl_buf *out, double value)
{
    char text[SL_TEXT_NUMBER_BYTES];
    sl_json_append_number(out, value);
    sl_buf_append_char(out, ' ');
    sl_json_append_exact(out, value);
    sl_text_print_float64(text, value);
    sl_buf_printf(out, " %s", text);
    sl_text_print_float32(text, (float)value);
    sl_buf_printf(out, " %s", text);
    sl_html_append_number(out, " %.3f\n", value);
}

static void add_numbers(struct sl_buf *out)
{
    static const double numbers[] = {0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.1,
                                     1.0 / 3,
                                     100,
                                     1e15,
                                     1e16,
                                     1e17,
                                     1e-4,
                                     1e-5,
                                     1.5e-7,
                                     123456.789,
                                     1e22,
                                     1e23,
                                     1e100,
                                     1e300,
                                     DBL_MAX,
                                     DBL_MIN,
                                     5e-324,
                                     FLT_MAX,
                                     FLT_MIN,
                                     1e-45,
                                     16777217.0,
                                     0.1f,
                                     -2.5,
                                     999999.95,
                                     12345678,
                                     1e21,
                                     -1e-300,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN};
    sl_buf_append_text(out, "== numbers: JSON, exact, float64, float32, HTML\n");
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        add_number(out, numbers[k]);
}

static void add_words(struct sl_buf *out)
{
    static const char *const names[] = {"units",      "unit", "dropout",      "return_sequences",
                                        "activation", "lr",   "learning_rate"};
    static const char *const words[] = {"units",      "Unit",     "uints", "untis",       "droput", "return-sequences",
                                        "activtaion", "l",        "rl",    "learnin_rat", "x",      "",
                                        "dropuot",    "sequences"};
    sl_buf_append_text(out, "== similar words\n");
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        const char *near = sl_text_closest(words[k], names, sizeof names / sizeof *names);
        sl_buf_printf(out, "%s: %s;", words[k], near ? near : "none");
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            sl_buf_printf(out, " %zu", sl_text_distance(words[k], names[n]));
        sl_buf_append_char(out, '\n');
    }
}

static void test_texts(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    add_texts(&out);
    add_numbers(&out);
    add_words(&out);
    golden_expect("reports/values.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* ---- charts ------------------------------------------------------------------------------------------------- */

static void add_chart(struct sl_buf *out, const char *title, double first, double factor, int points, double marked,
                      double epoch)
{
    struct sl_chart chart = {.title = title,
                             .names = {"train <a>", "valid", "none"},
                             .classes = {"a", "b", "c"},
                             .mark = "best & last",
                             .marked_x = marked,
                             .epoch_updates = epoch};
    for (int k = 0; k < points; k++) {
        assert_true(sl_chart_line_add(&chart.lines[0], 10 * k, first * pow(factor, k)));
        if (k % 3 == 0)
            assert_true(sl_chart_line_add(&chart.lines[1], 10 * k, 1.5 * first * pow(factor, k)));
    }
    sl_buf_printf(out, "== %s\n", title);
    sl_chart_write(&chart, out);
    chart.has_outer_legend = true;
    sl_chart_write(&chart, out);
    sl_chart_deinit(&chart);
}

static void add_marks(struct sl_buf *out)
{
    static const double ranges[][2] = {{0, 1},   {0.93, 0.998}, {1e-7, 3e-7},  {-3, 8},   {12, 1234567}, {5, 5},
                                       {-2, -2}, {0, 0},        {0.5, 0.5001}, {1, 1000}, {0.003, 20},   {1e-9, 1e9}};
    sl_buf_append_text(out, "== marks\n");
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
        for (int logarithmic = 0; logarithmic < (ranges[k][0] > 0 ? 2 : 1); logarithmic++) {
            double marks[SL_CHART_MARKS];
            const int count = sl_chart_find_marks(ranges[k][0], ranges[k][1], logarithmic, marks);
            sl_buf_printf(out, "%g..%g%s:", ranges[k][0], ranges[k][1], logarithmic ? " logarithmic" : "");
            for (int m = 0; m < count; m++)
                sl_buf_printf(out, " %.10g", marks[m]);
            sl_buf_append_char(out, '\n');
        }
}

static void test_charts(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    add_chart(&out, "falling", 2, 0.9, 9, 20, 0);
    add_chart(&out, "over decades", 50, 0.5, 12, 100, 25);
    add_chart(&out, "level", 1, 1, 4, (double)NAN, 10);
    add_chart(&out, "two points", 3, 2, 2, 99, 1);
    add_chart(&out, "one point", 3, 2, 1, 0, 1);
    add_chart(&out, "many points", 1, 1.001, 1100, 5000, 400);
    add_marks(&out);
    golden_expect("reports/charts.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

/* ---- operations --------------------------------------------------------------------------------------------- */

static void add_slots(struct sl_buf *out, const char *title, union seqlstm_any_desc d, uint32_t op)
{
    static const char *const roles[] = {"absent", "input", "output", "param", "inout", "const"};
    static const char *const axes[] = {"rows", "rows_in", "states", "sequences", "free"};
    static struct sl_slot slots[SL_SLOTS_MAX];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    int32_t count;
    d.head.struct_size = sl_op_desc_bytes(op);
    d.head.op = op;
    d.head.mode = SEQLSTM_MODE_TRAINING;
    d.head.max_rows = 10;
    d.head.max_sequences = 4;
    d.head.max_steps = 5;
    sl_buf_printf(out, "== %s: %s, backward %d\n", title, sl_op_name(op), sl_op_has_backward(op));
    if (sl_op_signature(&d.head, slots, SL_SLOTS_MAX, &count, &err) != SEQLSTM_OK) {
        sl_buf_printf(out, "%s\n", err.message);
        return;
    }
    for (int32_t k = 0; k < count; k++)
        if (slots[k].role != SL_SLOT_ABSENT)
            sl_buf_printf(out, "%d %s %s %s %s%s %lldx%lld\n", k, slots[k].name, roles[slots[k].role],
                          axes[slots[k].axis], sl_dtype_name(slots[k].dtype), slots[k].optional ? " optional" : "",
                          (long long)slots[k].rows, (long long)slots[k].features);
}

static union seqlstm_any_desc make_recurrent(uint32_t cell, uint32_t options, int directions, int32_t projection)
{
    union seqlstm_any_desc d;
    memset(&d, 0, sizeof d);
    d.recurrent.cell = cell;
    d.recurrent.options = options;
    d.recurrent.direction = directions == 2 ? SEQLSTM_DIRECTION_BIDIRECTIONAL : SEQLSTM_DIRECTION_FORWARD;
    d.recurrent.layers = 2;
    d.recurrent.input = 3;
    d.recurrent.hidden = 4;
    d.recurrent.projection = projection;
    for (int k = 0; k < 2; k++) {
        d.recurrent.activations[SEQLSTM_PLACE_GATE][k].kind = SEQLSTM_ACT_SIGMOID;
        d.recurrent.activations[SEQLSTM_PLACE_CANDIDATE][k].kind = SEQLSTM_ACT_TANH;
        d.recurrent.activations[SEQLSTM_PLACE_OUTPUT][k].kind = SEQLSTM_ACT_TANH;
    }
    return d;
}

static void add_recurrent(struct sl_buf *out)
{
    add_slots(out, "lstm", make_recurrent(SEQLSTM_CELL_LSTM, SEQLSTM_BIT_RECURRENT_OUTPUT, 1, 0), SEQLSTM_OP_RECURRENT);
    add_slots(out, "lstm with states",
              make_recurrent(SEQLSTM_CELL_LSTM,
                             SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_FINAL_STATE |
                                 SEQLSTM_BIT_RECURRENT_INITIAL_STATE | SEQLSTM_BIT_RECURRENT_USE_BIAS,
                             2, 2),
              SEQLSTM_OP_RECURRENT);
    add_slots(out, "lstm with peepholes",
              make_recurrent(
                  SEQLSTM_CELL_LSTM,
                  SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_PEEPHOLE | SEQLSTM_BIT_RECURRENT_USE_BIAS, 1, 0),
              SEQLSTM_OP_RECURRENT);
    add_slots(out, "gru",
              make_recurrent(SEQLSTM_CELL_GRU, SEQLSTM_BIT_RECURRENT_OUTPUT | SEQLSTM_BIT_RECURRENT_USE_BIAS, 1, 0),
              SEQLSTM_OP_RECURRENT);
}

static void add_others(struct sl_buf *out)
{
    add_slots(out, "dense", (union seqlstm_any_desc){.dense = {.input = 3, .output = 2, .options = 0}},
              SEQLSTM_OP_DENSE);
    add_slots(out, "dense with bias",
              (union seqlstm_any_desc){.dense = {.input = 3, .output = 2, .options = SEQLSTM_BIT_DENSE_USE_BIAS}},
              SEQLSTM_OP_DENSE);
    add_slots(out, "embedding", (union seqlstm_any_desc){.embedding = {.vocabulary = 7, .features = 3}},
              SEQLSTM_OP_EMBEDDING);
    for (uint32_t options = 0; options < 4; options++)
        add_slots(out, "norm",
                  (union seqlstm_any_desc){.layer_norm = {.features = 3, .epsilon = 1e-3f, .options = options}},
                  SEQLSTM_OP_LAYER_NORM);
    for (uint32_t kind = 0; kind < 2; kind++)
        add_slots(
            out, "largest",
            (union seqlstm_any_desc){.top_k = {.features = 9, .k = 3, .kind = kind, .temperature = 1, .top_p = 1}},
            SEQLSTM_OP_TOP_K);
    add_slots(out, "gather", (union seqlstm_any_desc){.gather = {.features = 3}}, SEQLSTM_OP_GATHER);
    add_slots(out, "scatter", (union seqlstm_any_desc){.gather = {.features = 3}}, SEQLSTM_OP_SCATTER);
    add_slots(out, "pool", (union seqlstm_any_desc){.pool = {.features = 3}}, SEQLSTM_OP_POOL);
    add_slots(out, "merge", (union seqlstm_any_desc){.merge = {.inputs = 2, .widths = {1, 2}}}, SEQLSTM_OP_MERGE);
    for (uint32_t options = 0; options < 8; options++)
        add_slots(out, "loss",
                  (union seqlstm_any_desc){
                      .loss = {.features = 5, .kind = SEQLSTM_KIND_LOSS_CROSS_ENTROPY, .options = options}},
                  SEQLSTM_OP_LOSS);
    add_slots(out, "loss of values", (union seqlstm_any_desc){.loss = {.features = 5, .kind = SEQLSTM_KIND_LOSS_MSE}},
              SEQLSTM_OP_LOSS);
    add_slots(out, "check", (union seqlstm_any_desc){.head = {0}}, SEQLSTM_OP_FINITE_CHECK);
    add_slots(out, "norm of all", (union seqlstm_any_desc){.head = {0}}, SEQLSTM_OP_SQUARED_NORM);
}

static void test_slots(void **state)
{
    struct sl_buf out = {0};
    (void)state;
    add_recurrent(&out);
    add_others(&out);
    for (uint32_t k = 0; k < SEQLSTM_ACT_COUNT; k++)
        sl_buf_printf(&out, "%s%s", k ? " " : "== activations\n", sl_activation_name(k));
    for (uint32_t k = 0; k < 12; k++)
        sl_buf_printf(&out, "%s%s %lld", k ? ", " : "\n== types\n", sl_dtype_name(k), (long long)sl_dtype_bytes(k));
    golden_expect("reports/slots.txt", "== ", sl_buf_text(&out));
    sl_buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_charts),
        cmocka_unit_test(test_slots),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
