/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: RFC 4180, columns, groups, windows, time, missing values, scaling, and tables that are broken. */
#include <math.h>

#include "data_fixture.h"

#include "data/table/table.h"

#define CSV(more) "type: csv, train: {file: train.csv}, batch_size: 8, " more
#define MSE       "loss: mse"

static void expect_table(const char *text, int64_t rows, int64_t columns, const char *joined)
{
    char copy[256], all[256] = "";
    struct sl_table table;
    const struct sl_table_form form = {.delimiter = ",", .quotes = true};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    strcpy(copy, text);
    if (sl_table_parse("t.csv", copy, strlen(copy), &form, &table, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    assert_int_equal(table.rows, rows);
    assert_int_equal(table.columns, columns);
    for (int64_t i = 0; i < rows * columns; i++) {
        strncat(all, table.cells[i].text, table.cells[i].bytes);
        strcat(all, "|");
    }
    assert_string_equal(all, joined);
    sl_table_deinit(&table);
}

static void expect_broken(const char *text, const char *part)
{
    char copy[256];
    struct sl_table table = {0};
    const struct sl_table_form form = {.delimiter = ",", .quotes = true};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    strcpy(copy, text);
    assert_int_equal(sl_table_parse("t.csv", copy, strlen(copy), &form, &table, &err), SEQLSTM_CORRUPT_DATA);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static void test_rfc_4180(void **state)
{
    (void)state;
    expect_table("a,b\n1,2\n", 2, 2, "a|b|1|2|");
    expect_table("a,b\r\n1,2", 2, 2, "a|b|1|2|");
    expect_table("\"a,\"\"x\"\"\",\"\"\n\"two\nlines\",2\n", 2, 2, "a,\"x\"||two\nlines|2|");
    expect_table("a,,\n\n,,c\n", 2, 3, "a|||||c|");
    expect_table("a b,c\"d\n", 1, 2, "a b|c\"d|");
    expect_broken("a,b\n1,2,3\n", "t.csv:2: the row has 3 fields, expected 2");
    expect_broken("\"x\n\ny\",b\n1\n", "t.csv:4: the row has 1 field,");
    expect_broken("a,b\n\"1,2\n", "t.csv:2: the quoted field");
    expect_broken("a,\"b\"c\n", "t.csv:1: text after");
    expect_broken("\n\n", "no rows");
}

/* Groups in the order of their first row, gathered though they alternate. */
static void test_groups(void **state)
{
    (void)state;
    data_write("train.csv", "id,kind,x,y\n7,b,1,10\n3,a,2,20\n7,b,3,30\n3,a,4,40\n3,a,5,50\n");
    struct data_open o =
        data_open_train(CSV("group: id, label: kind, inputs: [y, x]"), MODEL_CLASSIFY_VALUES, "task: classify");
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const float expected[] = {20, 2, 10, 1, 40, 4, 30, 3, 50, 5};
    assert_int_equal(batch->sample[0], 1); /* id 3 has three rows */
    assert_int_equal(batch->axis.rows, 5);
    assert_memory_equal(batch->input.values, expected, sizeof expected);
    assert_int_equal(batch->target.ids[0], 0);
    assert_int_equal(batch->target.ids[1], 1);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    data_write("train.csv",
               "id,kind,x\n10,a,1\n 10,a,2\n9,b,3\n10 , a,4\n 9 ,b,5\n\" 9\",b ,6\n"); /* blanks around a value */
    o = data_open_train(CSV("group: id, label: kind, inputs: [x]"), MODEL_CLASSIFY_VALUES, "task: classify");
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    assert_int_equal(sl_dataset_get_length(o.train, 0), 3);
    data_close(&o);
    data_write("train.csv", "id,kind,x\n1,a,1\n1,b,2\n");
    data_expect_failure(CSV("group: id, label: kind, inputs: [x]"), MODEL_CLASSIFY_VALUES, "task: classify",
                        SEQLSTM_CORRUPT_DATA, "train.csv:3: the label changes from \"a\" to \"b\"");
}

/* Values per step, and those of a whole sequence: its last row's. */
static void test_group_values(void **state)
{
    (void)state;
    data_write("train.csv", "id,x,y\n1,1,10\n1,2,20\n2,3,30\n");
    struct data_open o = data_open_train(CSV("group: id, targets: [y], inputs: [x]"), MODEL_REGRESS, MSE);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_true(batch->target.values[0] == 20 && batch->target.values[1] == 30 && !batch->target.on_steps);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    o = data_open_train(CSV("group: id, targets: [y], inputs: [x]"), MODEL_REGRESS_STEPS, MSE);
    batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    batch = data_next(batcher);
    assert_true(batch->target.on_steps && batch->target.values[0] == 10 && batch->target.values[1] == 30 &&
                batch->target.values[2] == 20);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_windows(void **state)
{
    (void)state;
    data_write("train.csv", "t,a,b\n1,1,10\n2,2,20\n3,3,30\n4,4,40\n5,5,50\n6,6,60\n7,7,70\n");
#define WINDOW CSV("time: t, inputs: [a], targets: [b], window: {length: 3, horizon: 2, stride: 2}")
    struct data_open o = data_open_train(WINDOW, MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    assert_int_equal(sl_data_state_get_facts(o.state)->target.features, 2);
    assert_true(sl_data_state_get_facts(o.state)->envelope.uniform);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const float inputs[] = {1, 3, 2, 4, 3, 5}, targets[] = {40, 50, 60, 70};
    assert_memory_equal(batch->input.values, inputs, sizeof inputs);
    assert_memory_equal(batch->target.values, targets, sizeof targets);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    /* The last window of an input has no horizon. */
    const char *text = "a\n1\n2\n3\n4\n5\n";
    data_close(&o);
    o = data_open_train(CSV("inputs: [a], targets: [b], window: {length: 3, horizon: 2, stride: 2}"), MODEL_REGRESS,
                        MSE);
    struct sl_input_request request = {.data = text, .data_bytes = strlen(text)};
    struct sl_dataset *input;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    assert_int_equal(sl_dataset_get_records(input), 2);
    sl_dataset_close(input);
    data_close(&o);
    data_write("train.csv", "t,a,b\n1,1,10\n2,2,20\n3,3,30\n");
    data_expect_failure(WINDOW, MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "no series is long enough");
}

/* split: the last rows of one series, before windows are cut; windows never reach over groups. */
static void test_window_split(void **state)
{
    (void)state;
    struct sl_buf text = {0};
    sl_buf_append_text(&text, "a\n");
    for (int i = 0; i < 20; i++)
        sl_buf_printf(&text, "%d\n", i);
    data_write("train.csv", sl_buf_text(&text));
    struct data_open o = data_open_train(
        CSV("valid: {split: 0.25}, test: {split: 0.25}, inputs: [a], targets: [a], window: {length: 3}"), MODEL_REGRESS,
        MSE);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID), *test = data_open_split(&o, SL_SPLIT_TEST);
    assert_int_equal(sl_dataset_get_records(o.train), 10 - 3);
    assert_int_equal(sl_dataset_get_records(valid), 5 - 3);
    struct sl_batcher *batcher = data_batcher(test, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_true(batch->input.values[0] == 15 && batch->target.values[1] == 19);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    sl_dataset_close(valid);
    sl_dataset_close(test);
    data_close(&o);
    data_write("train.csv", "g,a\n1,1\n1,2\n2,3\n1,4\n2,5\n2,6\n2,7\n");
    o = data_open_train(CSV("group: g, inputs: [a], targets: [a], window: {length: 3}"), MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_records(o.train), 1);
    assert_int_equal(sl_dataset_get_counts(o.train)->short_groups, 1);
    data_close(&o);
    sl_buf_deinit(&text);
}

static void test_scaling(void **state)
{
    (void)state;
    data_write("train.csv", "a,b\n1,10\n3,10\n5,40\n7,40\n100,100\n100,100\n");
#define SCALE(type) CSV("valid: {split: 0.34}, inputs: [a], targets: [b], scale: {type: " type "}")
    struct data_open o = data_open_train(SCALE("standard"), MODEL_DENSE, MSE);
    const struct sl_scaling *in = sl_data_state_find_input_scaling(o.state);
    const struct sl_scaling *out = sl_data_state_find_target_scaling(o.state);
    assert_true(fabs(in->offset[0] - 3) < 1e-12 && fabs(out->offset[0] - 20) < 1e-12);
    assert_true(fabs(out->factor[0] - sqrt(200)) < 1e-12);
    data_close(&o);
    o = data_open_train(SCALE("minmax"), MODEL_DENSE, MSE);
    assert_int_equal(sl_dataset_get_records(o.train), 3);
    in = sl_data_state_find_input_scaling(o.state);
    out = sl_data_state_find_target_scaling(o.state);
    assert_true(in->offset[0] == 1 && in->factor[0] == 4 && out->offset[0] == 10 && out->factor[0] == 30);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_false(batch->has_steps);
    assert_true(batch->input.values[1] == 0.5f && batch->target.values[2] == 1.0f);
    float values[] = {0, 0.5f, 2};
    sl_data_state_undo_targets(o.state, values, 3);
    assert_true(values[0] == 10 && values[1] == 25 && values[2] == 70);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    o = data_open_train(CSV("inputs: [a], targets: [b], scale: {type: standard, targets: false}"), MODEL_DENSE, MSE);
    assert_null(sl_data_state_find_target_scaling(o.state));
    in = sl_data_state_find_input_scaling(o.state);
    assert_true(fabs(in->offset[0] - 36) < 1e-12);
    double variance = ((35 * 35) + (33 * 33) + (31 * 31) + (29 * 29) + 2 * (64 * 64)) / 6.0;
    assert_true(fabs(in->factor[0] - sqrt(variance)) < 1e-12);
    data_close(&o);
    data_write("train.csv", "a,b\n5,2\n1e300,1\n");
    data_expect_failure(CSV("inputs: [a], targets: [b]"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:3: the value 1e+300 (column `a`) does not fit into float32");
    data_expect_failure(CSV("inputs: [a], targets: [b], scale: {type: standard}"), MODEL_DENSE, MSE,
                        SEQLSTM_CORRUPT_DATA, "column `a` are too large to be scaled");
    data_write("train.csv", "a,b,c\n5,2,1e300\n1,1,1\n");
    data_expect_failure(CSV("inputs: [a, c], targets: [b], scale: {type: standard}"), MODEL_DENSE, MSE,
                        SEQLSTM_CORRUPT_DATA, "column `c` are too large to be scaled");
    data_expect_failure(CSV("inputs: [a], targets: [b, c], scale: {type: standard}"), MODEL_DENSE, MSE,
                        SEQLSTM_CORRUPT_DATA, "column `c` are too large to be scaled");
    data_write("train.csv", "a,b\n5,1\n5,2\n"); /* a column without spread is only shifted */
    o = data_open_train(CSV("inputs: [a], targets: [b], scale: {type: standard}"), MODEL_DENSE, MSE);
    assert_true(sl_data_state_find_input_scaling(o.state)->factor[0] == 1);
    data_close(&o);
}

static void expect_filled(const char *missing, const float *expected, int64_t rows)
{
    char data[256];
    snprintf(data, sizeof data, CSV("inputs: [a], targets: [b], missing: %s"), missing);
    struct data_open o = data_open_train(data, MODEL_DENSE, MSE);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_int_equal(batch->sequences, rows);
    assert_int_equal(sl_dataset_get_counts(o.train)->missing_values, 2);
    assert_memory_equal(batch->input.values, expected, (size_t)rows * sizeof *expected);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_missing(void **state)
{
    (void)state;
    data_write("train.csv", "a,b\n2,1\n,2\nNA,3\n6,4\n");
    expect_filled("zero", (const float[]){2, 0, 0, 6}, 4);
    expect_filled("mean", (const float[]){2, 4, 4, 6}, 4);
    expect_filled("drop", (const float[]){2, 6}, 2);
    expect_filled("forward_fill", (const float[]){2, 2, 2, 6}, 4);
    data_expect_failure(CSV("inputs: [a], targets: [b]"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:3: column `a` has no value");
    data_expect_failure(CSV("inputs: [a], targets: [b], missing: {type: forward_fill, limit: 1}"), MODEL_DENSE, MSE,
                        SEQLSTM_CORRUPT_DATA, "train.csv:4: column `a` has no value for more than 1 row");
    data_write("train.csv", "a,b\n,1\n3,2\n");
    data_expect_failure(CSV("inputs: [a], targets: [b], missing: forward_fill"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:2: column `a` has no value, and none before it");
    data_write("train.csv", "a,b\n,1\n?,2\n");
    data_expect_failure(CSV("inputs: [a], targets: [b], missing: mean"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "column `a` has no value");
    data_write("train.csv", "a,b,c\n1,1,\n2,2,\n3,3,4\n4,4,4\n"); /* the last two rows are those of valid */
    data_expect_failure(CSV("valid: {split: 0.5}, inputs: [a, c], targets: [b], missing: mean"), MODEL_DENSE, MSE,
                        SEQLSTM_CORRUPT_DATA, "column `c` has no value in the training split");
    data_expect_failure(CSV("valid: {split: 0.5}, inputs: [a], targets: [b, c], missing: mean"), MODEL_DENSE, MSE,
                        SEQLSTM_CORRUPT_DATA, "column `c` has no value in the training split");
}

static void expect_shares(const char *more, const char *layers, const char *missing, const float *train,
                          int64_t train_rows, int64_t train_missing, const float *valid, int64_t valid_rows,
                          int64_t valid_missing)
{
    char data[256];
    snprintf(data, sizeof data, CSV("valid: {split: 0.5}, inputs: [a], targets: [b], missing: %s%s"), missing, more);
    struct data_open o = data_open_train(data, layers, MSE);
    struct sl_dataset *shares[2] = {o.train, data_open_split(&o, SL_SPLIT_VALID)};
    const float *const expected[2] = {train, valid};
    const int64_t rows[2] = {train_rows, valid_rows}, counts[2] = {train_missing, valid_missing};
    for (int k = 0; k < 2; k++) {
        struct sl_batcher *batcher = data_batcher(shares[k], SL_BATCHING_PREDICT, 1, 0, 0);
        struct sl_batch *batch = data_next(batcher);
        assert_int_equal(batch->has_steps ? batch->axis.rows : batch->sequences, rows[k]);
        assert_memory_equal(batch->input.values, expected[k], (size_t)rows[k] * sizeof **expected);
        assert_int_equal(sl_dataset_get_counts(shares[k])->missing_values, counts[k]);
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
    }
    sl_dataset_close(shares[1]);
    data_close(&o);
}

/* Means are those of the training share, and each share counts its own missing values. */
static void test_missing_and_split(void **state)
{
    (void)state;
    data_write("train.csv", "a,b\n2,1\n,2\n6,3\n50,4\n,5\nNA,6\n");
    expect_shares("", MODEL_DENSE, "mean", (const float[]){2, 4, 6}, 3, 1, (const float[]){50, 4, 4}, 3, 2);
    expect_shares("", MODEL_DENSE, "zero", (const float[]){2, 0, 6}, 3, 1, (const float[]){50, 0, 0}, 3, 2);
    expect_shares("", MODEL_DENSE, "forward_fill", (const float[]){2, 2, 6}, 3, 1, (const float[]){50, 50, 50}, 3, 2);
    data_write("train.csv", "a,b\n2,1\n,2\n6,3\n4,4\n50,4\n,5\nNA,6\n1,7\n"); /* rows of one series */
    expect_shares(", window: {length: 3}", MODEL_REGRESS, "mean", (const float[]){2, 4, 6}, 3, 1,
                  (const float[]){50, 4, 4}, 3, 2);
    /* what is left of the rows is shared; a dropped one counts with the next, at the end with the one before */
    data_write("train.csv", "a,b\n,0\n2,1\n,2\n6,3\n50,4\n8,\n7,5\n,6\n");
    expect_shares("", MODEL_DENSE, "drop", (const float[]){2, 6}, 2, 2, (const float[]){50, 7}, 2, 2);
}

static void test_time(void **state)
{
    (void)state;
#define TIMED(more) CSV("time: {column: t, step: 1h" more "}, inputs: [a], targets: [a], window: {length: 2}")
    data_write("train.csv", "t,a\n2020-01-01 00:00,1\n2020-01-01 01:00,2\n2020-01-01 02:00,3\n2020-01-01 05:00,4\n"
                            "2020-01-01 06:00,5\n2020-01-01 07:00,6\n");
    data_expect_failure(TIMED(""), MODEL_REGRESS, MSE, SEQLSTM_CORRUPT_DATA, "train.csv:5: a step of 10800");
    struct data_open o = data_open_train(TIMED(", gaps: keep"), MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_records(o.train), 4);
    data_close(&o);
    o = data_open_train(TIMED(", gaps: break"), MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    data_close(&o);
    o = data_open_train(
        "type: csv, train: {file: train.csv, rows: [\"2020-01-01 01:00\", \"2020-01-01 06:00\"]}, time: t, "
        "inputs: [a], targets: [a], window: {length: 2}",
        MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_records(o.train), 2);
    data_close(&o);
    data_write("train.csv", "t,a\n2020-01-02,1\n2020-01-01,2\n2020-01-03,2\n");
    data_expect_failure(CSV("time: t, inputs: [a], targets: [a], window: {length: 1}"), MODEL_REGRESS, MSE,
                        SEQLSTM_CORRUPT_DATA, "train.csv:3: column `t` goes back in time");
    data_write("train.csv", "t,a\n2020-01-02,1\nyesterday,2\n");
    data_expect_failure(CSV("time: t, inputs: [a], targets: [a], window: {length: 1}"), MODEL_REGRESS, MSE,
                        SEQLSTM_CORRUPT_DATA, "train.csv:3: column `t` holds \"yesterday\"");
}

static void test_columns(void **state)
{
    (void)state;
    data_write("train.csv", "speed;\"max, load\"\n1,5;x\n");
    data_expect_failure("type: csv, train: {file: train.csv}, delimiter: \";\", inputs: [sped], targets: [speed]",
                        MODEL_DENSE, MSE, SEQLSTM_INVALID_CONFIG, "no column `sped` (`inputs`), did you mean `speed`?");
    data_expect_failure("type: csv, train: {file: train.csv}, delimiter: \";\", inputs: [speed], targets: [speed]",
                        MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "train.csv:2: column `speed` holds \"1,5\", expected a number");
    data_write("train.csv", "1;2;3\n4;5;6\n");
    struct data_open o =
        data_open_train("type: csv, train: {file: train.csv}, delimiter: \";\", header: false, inputs: [\"3\", \"1\"], "
                        "targets: [\"2\"], batch_size: 2",
                        MODEL_DENSE, MSE);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_memory_equal(batch->input.values, ((const float[]){3, 1, 6, 4}), 16);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
    data_expect_failure("type: csv, train: {file: train.csv}, delimiter: \";\", header: false, inputs: [\"4\"], "
                        "targets: [\"2\"]",
                        MODEL_DENSE, MSE, SEQLSTM_INVALID_CONFIG, "a number from 1 to 3");
    o = data_open_train("type: csv, train: {file: train.csv}, delimiter: \";\", header: false, columns: [a, b, c], "
                        "inputs: [c], targets: [a]",
                        MODEL_DENSE, MSE);
    assert_string_equal(sl_data_state_get_input_names(o.state).items[0], "c");
    data_close(&o);
    data_expect_failure("type: csv, train: {file: train.csv}, delimiter: \";\", header: false, columns: [a, b], "
                        "inputs: [a], targets: [b]",
                        MODEL_DENSE, MSE, SEQLSTM_INVALID_CONFIG, "3 fields, but `columns` names 2");
    data_write("train.csv", "1\n2\n");
    data_expect_failure("type: csv, train: {file: train.csv}, delimiter: \";\", header: false, columns: [a, b], "
                        "inputs: [a], targets: [b]",
                        MODEL_DENSE, MSE, SEQLSTM_INVALID_CONFIG, "have 1 field, but `columns` names 2");
    data_write("train.csv", "a,a\n1,2\n");
    data_expect_failure(CSV("inputs: [a], targets: [a]"), MODEL_DENSE, MSE, SEQLSTM_CORRUPT_DATA,
                        "two columns are called `a`");
}

/* Names of any length: the message shows of each what it has room for, and nothing of the next one. */
static void test_long_names(void **state)
{
    (void)state;
    char longest[80], text[300], data[300], expected[400];
    memset(longest, 'n', sizeof longest);
    for (int bytes = 58; bytes <= 70; bytes++) {
        snprintf(text, sizeof text, "%.*s,second,%.*s\n1,2,3\n", bytes, longest, bytes + 1, longest);
        data_write("train.csv", text);
        snprintf(data, sizeof data, CSV("inputs: [first], targets: [second]"));
        snprintf(expected, sizeof expected,
                 "train.csv:1: there is no column `first` (`inputs`); the columns are %.*s, second, %.*s",
                 bytes < 63 ? bytes : 63, longest, bytes + 1 < 63 ? bytes + 1 : 63, longest);
        struct sl_model *model = data_model(data, MODEL_DENSE, MSE);
        struct sl_dataset *dataset = NULL;
        struct sl_data_state *none = NULL;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        assert_int_equal(sl_dataset_open_train(model, &dataset, &none, &err), SEQLSTM_INVALID_CONFIG);
        assert_string_equal(strstr(err.message, "train.csv"), expected);
        sl_model_destroy(model);
    }
}

static void test_text_column(void **state)
{
    (void)state;
    data_write("train.csv", "id,review,stars\n1,\"good, \"\"film\"\"\",5\n2,bad,1\n");
    struct data_open o = data_open_train(CSV("text: review, label: stars, tokenizer: {type: word, specials: [unk]}"),
                                         MODEL_CLASSIFY, "task: classify");
    assert_int_equal(sl_dataset_get_length(o.train, 0), 5);
    assert_int_equal(sl_data_state_get_facts(o.state)->target.classes, 2);
    struct sl_input_request request = {.data = "review\nbad film\n", .data_bytes = 16};
    struct sl_dataset *input;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, NULL), SEQLSTM_OK);
    size_t bytes;
    assert_memory_equal(sl_dataset_find_text(input, 0, &bytes), "bad film", 8);
    assert_int_equal(bytes, 8);
    sl_dataset_close(input);
    data_close(&o);
    data_write("train.csv", "id,review,stars\n1,good,5\n2,bad,\n");
    data_expect_failure(CSV("text: review, label: stars, tokenizer: {type: word}"), MODEL_CLASSIFY, "task: classify",
                        SEQLSTM_CORRUPT_DATA, "train.csv:3: the label (column `stars`) is empty");
}

/* A target column without any change is counted, but of one row nothing is said. */
static void test_constant_targets(void **state)
{
    (void)state;
    static const struct {
        const char *rows;
        int constant;
    } cases[] = {{"1,5,6\n", 0},
                 {"1,5,6\n2,5,7\n", 1},
                 {"1,5,6\n2,5,6\n", 2},
                 {"1,5,6\n2,7,8\n", 0},
                 {"1,5,6\n2,5,6\n3,5,7\n", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "a,b,c\n%s", cases[i].rows);
        data_write("train.csv", text);
        struct data_open o = data_open_train("type: csv, train: {file: train.csv}, inputs: [a], targets: [b, c]",
                                             MODEL_DENSE, "loss: mse");
        assert_int_equal(sl_dataset_get_counts(o.train)->constant_targets, cases[i].constant);
        data_close(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_targets),
        cmocka_unit_test(test_rfc_4180),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_group_values),
        cmocka_unit_test(test_window_split),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_missing_and_split),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_text_column),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
