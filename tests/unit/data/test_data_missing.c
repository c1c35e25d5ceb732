/* SPDX-License-Identifier: Apache-2.0 */
/* Tables with holes: rows that are dropped, targets that are not known, times that come twice or are months, marks for
 * "no value", and numbers with a decimal comma. */
#include <math.h>

#include "data_fixture.h"

#define CSV(more)     "type: csv, train: {file: train.csv}, batch_size: 16, " more
#define WINDOWS(more) CSV("inputs: [v], targets: [v], window: {length: 3}, missing: drop" more)
#define DAILY(gaps)   WINDOWS(", time: {column: t, step: 1d, gaps: " gaps "}")
#define MSE           "loss: mse"
#define DAYS_BEFORE   "t,v\n2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n"
#define DAYS_BEHIND   "2024-01-05,5\n2024-01-06,6\n2024-01-07,7\n2024-01-08,8\n2024-01-09,9\n"

static int64_t count_records(const char *data, const char *layers)
{
    struct data_open o = data_open_train(data, layers, MSE);
    int64_t records = sl_dataset_get_records(o.train);
    data_close(&o);
    return records;
}

/* A window never holds two rows that were not neighbours, unless `gaps: keep` says so. */
static void test_dropped_rows_end_windows(void **state)
{
    (void)state;
    data_write("train.csv", DAYS_BEFORE "2024-01-04,\n" DAYS_BEHIND);
    assert_int_equal(count_records(DAILY("break"), MODEL_REGRESS), 2);
    assert_int_equal(count_records(DAILY("keep"), MODEL_REGRESS), 5);
    assert_int_equal(count_records(WINDOWS(""), MODEL_REGRESS), 2);
    assert_int_equal(count_records(WINDOWS(", time: t"), MODEL_REGRESS), 2);
    data_expect_failure(
        DAILY("error"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
        "train.csv:6: a step of 172800 in column `t`, since `missing: drop` leaves out line 5, expected "
        "86400 (`gaps: break`");
    /* of several rows the first one that is left out is named */
    data_write("train.csv", DAYS_BEFORE "2024-01-04,\n" DAYS_BEHIND "2024-01-10,\n2024-01-11,\n2024-01-12,3\n");
    data_expect_failure(DAILY("error"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "leaves out line 5, expected");
    data_write("train.csv", DAYS_BEFORE "2024-01-04,4\n" DAYS_BEHIND "2024-01-10,\n2024-01-11,\n2024-01-12,3\n");
    data_expect_failure(DAILY("error"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:13: a step of 259200 in column `t`, since `missing: drop` leaves out line 11");
    data_write("train.csv", DAYS_BEFORE "2024-01-04,\n" DAYS_BEHIND);
    struct data_open o = data_open_train(DAILY("break"), MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_counts(o.train)->dropped_table_rows, 1);
    assert_int_equal(sl_dataset_get_counts(o.train)->short_groups, 1);
    data_close(&o);
    /* a hole at the border of two groups is no gap in either */
    data_write("train.csv", "g,v\na,1\na,2\na,3\na,4\na,\nb,\nb,6\nb,7\nb,8\nb,9\n");
    assert_int_equal(count_records(WINDOWS(", group: g"), MODEL_REGRESS), 2);
}

static struct sl_dataset *open_input(const struct data_open *o, const char *text)
{
    struct sl_input_request request = {.data = text, .data_bytes = strlen(text)};
    struct sl_dataset *input = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_dataset_open_input(o->model, o->state, &request, &input, &err) != SEQLSTM_OK)
        fail_msg("input: %s", err.message);
    return input;
}

/* Which records of the input have a prediction: one letter for each, x or -. */
static void expect_predictions(const char *data, const char *layers, const char *text, const char *expected)
{
    struct data_open o = data_open_train(data, layers, MSE);
    struct sl_dataset *input = open_input(&o, text);
    char found[64] = "";
    for (int64_t r = 0; r < sl_dataset_get_records(input) && r < 60; r++)
        strcat(found, sl_dataset_has_prediction(input, r) ? "x" : "-");
    assert_string_equal(found, expected);
    int64_t none = 0;
    for (const char *c = expected; *c; c++)
        none += *c == '-';
    assert_int_equal(sl_dataset_get_counts(input)->no_predictions, none);
    sl_dataset_close(input);
    data_close(&o);
}

static void test_inputs_keep_their_numbers(void **state)
{
    (void)state;
    data_write("train.csv", DAYS_BEFORE "2024-01-04,4\n" DAYS_BEHIND);
    expect_predictions(DAILY("break"), MODEL_REGRESS, DAYS_BEFORE "2024-01-04,\n" DAYS_BEHIND, "x---xxx");
    expect_predictions(DAILY("break"), MODEL_REGRESS, DAYS_BEFORE DAYS_BEHIND, "x--xxx"); /* a gap of the file */
    expect_predictions(DAILY("keep"), MODEL_REGRESS, DAYS_BEFORE DAYS_BEHIND, "xxxxxx");
    expect_predictions(WINDOWS(""), MODEL_REGRESS, "v\n1\n\n3\n4\n5\n\n\n", "--x"); /* a blank line is an empty cell */
    data_write("train.csv", "a,b\n1,1\n2,2\n3,3\n");
#define ROWS(missing) CSV("inputs: [a], targets: [b], missing: " missing)
    expect_predictions(ROWS("drop"), MODEL_DENSE, "a\n1\nNA\n3\n", "x-x");
    expect_predictions(ROWS("zero"), MODEL_DENSE, "a\n1\nNA\n3\n", "xxx");
}

/* Sequences lose the rows, and their outputs go where the others are in the file. */
static void test_inputs_keep_their_steps(void **state)
{
    (void)state;
    data_write("train.csv", "g,a,y\n1,1,1\n1,2,2\n2,3,3\n");
    struct data_open o =
        data_open_train(CSV("group: g, inputs: [a], targets: [y], missing: drop"), MODEL_REGRESS_STEPS, MSE);
    struct sl_dataset *input = open_input(&o, "g,a\n1,\n1,5\n2,\n1,?\n1,6\n");
    assert_int_equal(sl_dataset_get_records(input), 2);
    assert_int_equal(sl_dataset_get_length(input, 0), 2);
    assert_int_equal(sl_dataset_get_file_steps(input, 0), 4);
    assert_int_equal(sl_dataset_get_file_step(input, 0, 0), 1);
    assert_int_equal(sl_dataset_get_file_step(input, 0, 1), 3);
    assert_true(sl_dataset_has_prediction(input, 0));
    assert_int_equal(sl_dataset_get_length(input, 1), 0); /* nothing is left of it, but its place */
    assert_int_equal(sl_dataset_get_file_steps(input, 1), 1);
    assert_false(sl_dataset_has_prediction(input, 1));
    sl_dataset_close(input);
    data_close(&o);
}

static void test_too_few_rows(void **state)
{
    (void)state;
    data_write("train.csv", "v\n1\n2\n3\n4\n5\n");
    struct data_open o = data_open_train(WINDOWS(""), MODEL_REGRESS, MSE);
    static const char *const inputs[] = {"v\n1\n2\n", "v\n"}, *const rows[] = {"2 rows are too few",
                                                                               "0 rows are too few"};
    for (int i = 0; i < 2; i++) {
        struct sl_input_request request = {.data = inputs[i], .data_bytes = strlen(inputs[i])};
        struct sl_dataset *input = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, &err), SEQLSTM_CORRUPT_DATA);
        assert_non_null(strstr(err.message, rows[i]));
        assert_non_null(strstr(err.message, "a window has 3 rows"));
    }
    data_close(&o);
}

static void expect_weights(const char *data, const char *layers, const float *weights, const float *targets,
                           int64_t rows)
{
    struct data_open o = data_open_train(data, layers, MSE);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_int_equal(batch->weight.kind, SL_FIELD_VALUES);
    assert_int_equal(batch->target.on_steps ? batch->axis.rows : batch->sequences, rows);
    assert_memory_equal(batch->weight.values, weights, (size_t)rows * sizeof *weights);
    assert_memory_equal(batch->target.values, targets, (size_t)(rows * batch->target.features) * sizeof *targets);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* A target that is not known has no weight; its inputs stay. */
static void test_targets_are_ignored(void **state)
{
    (void)state;
#define IGNORE ", missing: {targets: ignore}"
    data_write("train.csv", "g,a,y\n1,1,10\n1,2,\n1,3,30\n");
    expect_weights(CSV("group: g, inputs: [a], targets: [y]" IGNORE), MODEL_REGRESS_STEPS, (const float[]){1, 0, 1},
                   (const float[]){10, 0, 30}, 3);
    data_write("train.csv", "a,y,z\n1,10,1\n2,,2\n3,30,\n");
    expect_weights(CSV("inputs: [a], targets: [y, z]" IGNORE), MODEL_DENSE, (const float[]){1, 0, 0},
                   (const float[]){10, 1, 0, 0, 0, 0}, 3);
    data_write("train.csv", "a,y\n1,1\n2,2\n3,3\n4,\n5,5\n");
    expect_weights(CSV("inputs: [a], targets: [y], window: {length: 2, horizon: 1}" IGNORE), MODEL_REGRESS,
                   (const float[]){1, 0, 1}, (const float[]){3, 0, 5}, 3);
    data_write("train.csv", "a,y,z\n1,,\n2,,\n3,,\n4,9,8\n"); /* one is enough, the last one too */
    expect_weights(CSV("inputs: [a], targets: [y, z]" IGNORE), MODEL_DENSE, (const float[]){0, 0, 0, 1},
                   (const float[]){0, 0, 0, 0, 0, 0, 9, 8}, 4);
    data_write("train.csv", "a,y\n1,1\n2,2\n3,3\n4,\n5,5\n");
    data_expect_failure(CSV("inputs: [y], targets: [a]" IGNORE), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:5: column `y` has no value"); /* that of an input is needed */
    data_write("train.csv", "a,y\n1,\n2,NA\n");
    data_expect_failure(CSV("inputs: [a], targets: [y]" IGNORE), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "every target is missing");
    data_write("train.csv", "a,kind\n1,x\n2,\n3,y\n");
    struct data_open o =
        data_open_train(CSV("inputs: [a], label: kind" IGNORE),
                        "[{type: dense, units: 3}, {type: output, activation: softmax}]", "task: classify");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_memory_equal(batch->target.ids, ((const int32_t[]){0, -1, 1}), 12);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

/* Filled targets are counted apart: scores are then about invented values. */
static void test_filled_targets_are_counted(void **state)
{
    (void)state;
    data_write("train.csv", "a,y\n1,1\n,2\n3,\n4,\n5,5\n6,6\n");
    struct data_open o =
        data_open_train(CSV("valid: {split: 0.5}, inputs: [a], targets: [y], missing: zero"), MODEL_DENSE, MSE);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_counts(o.train)->missing_values, 2);
    assert_int_equal(sl_dataset_get_counts(o.train)->filled_targets, 1);
    assert_int_equal(sl_dataset_get_counts(valid)->filled_targets, 1);
    assert_int_equal(sl_dataset_get_counts(o.train)->constant_targets, 0);
    sl_dataset_close(valid);
    data_close(&o);
    data_write("train.csv", "a,y,z\n1,7,1\n2,7,2\n");
    o = data_open_train(CSV("inputs: [a], targets: [y, z]"), MODEL_DENSE, MSE);
    assert_int_equal(sl_dataset_get_counts(o.train)->constant_targets, 1);
    data_close(&o);
    /* a value that is missing is not another one */
    data_write("train.csv", "a,w,x,y,z\n1,5,,5,5\n2,,5,,\n3,5,5,,6\n");
    o = data_open_train(CSV("inputs: [a], targets: [w, x, y, z]" IGNORE), MODEL_DENSE, MSE);
    assert_int_equal(sl_dataset_get_counts(o.train)->constant_targets, 3);
    data_close(&o);
}

/* The value that is too large is named by its own line and column, whichever it is. */
static void test_values_that_are_too_large(void **state)
{
    (void)state;
    static const char *const rows[] = {"%s good\n2 bad\n3 fair\n", "1 good\n%s bad\n3 fair\n",
                                       "1 good\n2 bad\n%s fair\n"};
    char text[200], part[200];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, rows[i], "1e39");
        data_write("train.txt", text);
        snprintf(part, sizeof part, "train.txt:%d: the value 1e+39 (row %d, column 1) does not fit into float32", i + 1,
                 i + 1);
        data_expect_failure("type: lines, train: {file: train.txt}, label: {column: first, type: value}, tokenizer: "
                            "{type: whitespace, specials: [unk]}, batch_size: 2",
                            "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output}]", MSE,
                            SEQLSTM_CORRUPT_DATA, part);
        snprintf(text, sizeof text, "y,a,b,c\n1,1,1,1\n1,%s,%s,%s\n1,1e39,1e39,1e39\n", i == 0 ? "-1e39" : "2",
                 i == 1 ? "-1e39" : "2", i == 2 ? "-1e39" : "2");
        data_write("train.csv", text);
        snprintf(part, sizeof part, "train.csv:3: the value -1e+39 (column `%c`) does not fit into float32", "abc"[i]);
        data_expect_failure(CSV("inputs: [a, b, c], targets: [y]"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA, part);
    }
}

static void expect_inputs(const char *data, const float *expected, int64_t rows)
{
    struct data_open o = data_open_train(data, MODEL_DENSE, MSE);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_int_equal(batch->sequences, rows);
    assert_memory_equal(batch->input.values, expected, (size_t)rows * sizeof *expected);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_numbers_of_other_programs(void **state)
{
    (void)state;
#define COMMA "type: csv, train: {file: train.csv}, delimiter: \";\", inputs: [v], targets: [w]"
    data_write("train.csv", "v;w\n0,5;1\n-1,25;2\n1e3;3\n");
    expect_inputs(COMMA ", decimal: \",\"", (const float[]){0.5f, -1.25f, 1000}, 3);
    data_expect_failure(COMMA, MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:2: column `v` holds \"0,5\", expected a number (`decimal: \",\"` reads it as 0.5)");
    data_write("train.csv", "v;w\n0.5;1\n");
    data_expect_failure(COMMA ", decimal: \",\"", MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "holds \"0.5\", expected a number (`decimal: \".\"` reads it as 0.5)");
#define MARKS(marks) CSV("inputs: [v], targets: [w], missing: {type: forward_fill, values: " marks "}")
    data_write("train.csv", "v,w\n1,1\n-999,2\n#N/A,3\n-999.0,4\n5,5\n");
    expect_inputs(MARKS("[-999, \"#N/A\"]"), (const float[]){1, 1, 1, 1, 5}, 5);
    data_expect_failure(MARKS("[-999]"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:4: column `v` holds \"#N/A\", expected a number (if it means that there is none: "
                        "`missing: {values: [\"#N/A\"]}`");
}

/* A run that learned no mean cannot fill with one later; other ways need none. */
static void test_means_that_nobody_kept(void **state)
{
    (void)state;
    static const struct {
        const char *missing, *message; /* NULL: read */
    } cases[] = {{"mean", "ask.csv:3: there is no value (column `a`), and the training has kept no mean for it"},
                 {"zero", NULL},
                 {"drop", NULL},
                 {"error", "ask.csv:3: column `a` has no value"}};
    char path[160], data[128];
    data_write("train.csv", "a,y\n1,2\n3,4\n");
    data_write("ask.csv", "a\n5\nNA\n");
    struct data_open o = data_open_train(CSV("inputs: [a], targets: [y]"), MODEL_DENSE, MSE);
    snprintf(path, sizeof path, "%s/ask.csv", data_folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(data, sizeof data, CSV("inputs: [a], targets: [y], missing: %s"), cases[i].missing);
        struct sl_model *later = data_model(data, MODEL_DENSE, MSE);
        struct sl_input_request request = {.path = path};
        struct sl_dataset *input = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        const seqlstm_status status = sl_dataset_open_input(later, o.state, &request, &input, &err);
        assert_int_equal(status, cases[i].message ? SEQLSTM_CORRUPT_DATA : SEQLSTM_OK);
        if (cases[i].message && !strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].missing, err.message);
        sl_dataset_close(input);
        sl_model_destroy(later);
    }
    data_close(&o);
}

#define STEP(step) CSV("inputs: [v], targets: [v], window: {length: 2}, time: {column: t, step: " step "}")

static void test_steps_of_the_calendar(void **state)
{
    (void)state;
    data_write("train.csv",
               "t,v\n2019-11-30,1\n2019-12-31,2\n2020-01-31,3\n2020-02-29,4\n2020-03-31,5\n2020-04-30,6\n");
    assert_int_equal(count_records(STEP("1mo"), MODEL_REGRESS), 4);
    data_write("train.csv", "t,v\n2020-01-30,1\n2020-02-29,2\n2020-03-29,3\n2020-04-29,4\n"); /* no 30th in between */
    assert_int_equal(count_records(STEP("1mo"), MODEL_REGRESS), 2);
    data_write("train.csv", "t,v\n2020-01-05T06:00,1\n2020-02-05T06:00,2\n2020-03-05T07:00,3\n2020-04-05T07:00,4\n"
                            "2020-05-05T07:00,5\n2020-06-06T07:00,6\n2020-07-06T07:00,7\n");
    data_expect_failure(STEP("1mo"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:4: column `t` goes from 2020-02-05T06:00 to 2020-03-05T07:00");
    data_write("train.csv", "t,v\n2020-01-05T06:00:00,1\n2020-02-05T06:00:01,2\n");
    data_expect_failure(STEP("1mo"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "train.csv:3: column `t` goes from");
    data_write("train.csv",
               "t,v\n2019-11-30,1\n2019-12-31,2\n2020-01-31,3\n2020-02-29,4\n2020-03-31,5\n2020-04-30,6\n");
    data_expect_failure(STEP("2mo"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:3: column `t` goes from 2019-11-30 to 2019-12-31, expected a step of months: 2");
    data_expect_failure(STEP("1"), MODEL_REGRESS, MSE, SEQLSTM_INVALID_CONFIG, "`step: 1` needs a unit");
    data_write("train.csv", "t,v\n1969-12-15,1\n1970-01-15,2\n1970-02-15,3\n1970-03-14,4\n");
    data_expect_failure(STEP("1mo"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "train.csv:5: column `t` goes from");
    data_write("train.csv", "t,v\n2020-02-29,1\n2021-02-28,2\n2022-02-28,3\n");
    assert_int_equal(count_records(STEP("1y"), MODEL_REGRESS), 1);
    data_write("train.csv", "t,v\n1990,0\n1991,1\n1992,2\n1994,3\n");
    data_expect_failure(STEP("1"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "train.csv:5: a step of 2");
    data_expect_failure(STEP("1y"), MODEL_REGRESS, MSE, SEQLSTM_INVALID_CONFIG, "`step` must be a number");
    data_write("train.csv", "t,v\n1990,0\n1990.5,1\n1991,2\n");
    assert_int_equal(count_records(STEP("0.5"), MODEL_REGRESS), 1);
    data_write("train.csv", "t,v\n1990,0\n1991-01,1\n"); /* as a number 1990 comes before any date */
    data_expect_failure(STEP("1"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:3: column `t` holds \"1991-01\", expected a number, as in the first row");
    data_write("train.csv", "t,v\n1990-01,0\n1991,1\n");
    data_expect_failure(STEP("1y"), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:3: column `t` holds \"1991\", expected a date, as in the first row");
}

/* A time that comes twice is no gap, and nothing allows it. */
static void test_times_come_once(void **state)
{
    (void)state;
    static const char *const times[] = {"", ", time: t", ", time: {column: t, step: 1h, gaps: keep}",
                                        ", time: {column: t, step: 1h, gaps: break}"};
    data_write("train.csv", "t,v\n2018-10-28 01:00,1\n2018-10-28 02:00,2\n2018-10-28 02:00,3\n2018-10-28 03:00,4\n");
    for (int i = 1; i < 4; i++) {
        char data[256];
        snprintf(data, sizeof data, CSV("inputs: [v], targets: [v], window: {length: 2}%s"), times[i]);
        data_expect_failure(data, MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA,
                            "train.csv:4: the time 2018-10-28 02:00 comes twice (column `t`, first in line 3)");
    }
    data_write("train.csv", "g,t,v\n1,1,1\n2,1,2\n1,2,3\n2,2,4\n1,3,5\n2,3,6\n"); /* once in each group */
    assert_int_equal(
        count_records(CSV("group: g, inputs: [v], targets: [v], window: {length: 2}, time: t"), MODEL_REGRESS), 2);
}

/* 20,000 columns in far less time than comparing each with each takes. */
static void test_very_many_columns(void **state)
{
    (void)state;
    enum { COLUMNS = 20000 };
    struct sl_buf text = {0}, yaml = {0};
    for (int c = 0; c < COLUMNS; c++)
        sl_buf_printf(&text, "%sc%d", c ? "," : "", c);
    for (int row = 0; row < 2; row++)
        for (int c = 0; c < COLUMNS; c++)
            sl_buf_printf(&text, "%s%d", c ? "," : "\n", c + row);
    data_write("train.csv", sl_buf_text(&text));
    sl_buf_append_text(&yaml, "type: csv, train: {file: train.csv}, targets: [c7], inputs: [");
    for (int c = COLUMNS - 1; c >= 0; c--)
        sl_buf_printf(&yaml, "%sc%d", c < COLUMNS - 1 ? "," : "", c);
    sl_buf_append_text(&yaml, "]");
    struct data_open o = data_open_train(sl_buf_text(&yaml), MODEL_DENSE, MSE);
    assert_int_equal(sl_data_state_get_facts(o.state)->input.features, COLUMNS);
    assert_string_equal(sl_data_state_get_input_names(o.state).items[1], "c19998");
    data_close(&o);
    sl_buf_deinit(&text);
    sl_buf_deinit(&yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropped_rows_end_windows),  cmocka_unit_test(test_inputs_keep_their_numbers),
        cmocka_unit_test(test_inputs_keep_their_steps),   cmocka_unit_test(test_too_few_rows),
        cmocka_unit_test(test_targets_are_ignored),       cmocka_unit_test(test_filled_targets_are_counted),
        cmocka_unit_test(test_values_that_are_too_large), cmocka_unit_test(test_means_that_nobody_kept),
        cmocka_unit_test(test_numbers_of_other_programs), cmocka_unit_test(test_steps_of_the_calendar),
        cmocka_unit_test(test_times_come_once),           cmocka_unit_test(test_very_many_columns),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
