/* SPDX-License-Identifier: Apache-2.0 */
/* What an opened split says of itself: which one is measured, of which files it is, the line of a value; and what it
 * would cost. */
#include "data_fixture.h"

#include "data/batch/stats.h"
#include "data/dataset/census.h"

/* `test` before `valid` before `train`. */
static void the_last_split_that_there_is_is_measured(void **state)
{
    (void)state;
    static const struct {
        const char *splits;
        enum sl_split chosen;
    } cases[] = {
        {"train: {file: a.txt}", SL_SPLIT_TRAIN},
        {"train: {file: a.txt}, valid: {file: b.txt}", SL_SPLIT_VALID},
        {"train: {file: a.txt}, test: {file: c.txt}", SL_SPLIT_TEST},
        {"train: {file: a.txt}, valid: {file: b.txt}, test: {file: c.txt}", SL_SPLIT_TEST},
        {"train: {file: a.txt}, valid: {split: 0.1}, test: {split: 0.2}", SL_SPLIT_TEST},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char data[200];
        snprintf(data, sizeof data, "type: lines, label: first, tokenizer: whitespace, %s", cases[i].splits);
        struct sl_model *model = data_model(data, MODEL_CLASSIFY, "task: classify");
        assert_int_equal(sl_dataset_choose_split(model), cases[i].chosen);
        sl_model_destroy(model);
    }
}

/* Each file once: those of the split, then vocabularies of the target and of the source. */
static void a_split_names_each_of_its_files_once(void **state)
{
    (void)state;
    static const struct {
        const char *data, *files;
    } cases[] = {
        {"tokenizer: whitespace", "a.txt b.txt"},
        {"tokenizer: {type: whitespace, vocab: v.txt}, source_tokenizer: {type: whitespace, vocab: v.txt}",
         "a.txt b.txt v.txt"},
        {"tokenizer: {type: whitespace, vocab: a.txt}", "a.txt b.txt"},
        {"tokenizer: {type: whitespace, vocab: v.txt}", "a.txt b.txt v.txt"},
        {"tokenizer: {type: whitespace, vocab: v.txt}, source_tokenizer: {type: whitespace, vocab: w.txt}",
         "a.txt b.txt v.txt w.txt"},
        {"tokenizer: {type: whitespace, vocab: v.txt}, source_tokenizer: {type: char}", "a.txt b.txt v.txt"},
        {"tokenizer: whitespace, source_tokenizer: {type: whitespace, vocab: w.txt}", "a.txt b.txt w.txt"},
    };
    data_write("a.txt", "x y\ny\n");
    data_write("b.txt", "y x\nx\n");
    data_write("v.txt", "<bos>\n<eos>\nx\ny\n");
    data_write("w.txt", "y\nx\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char data[250];
        struct sl_buf names = {0};
        snprintf(data, sizeof data, "type: lines, train: {source: a.txt, target: b.txt}, batch_size: 2, %s",
                 cases[i].data);
        struct data_open o = data_open_train(data, MODEL_PAIRS, PAIRS);
        const struct sl_string_list files = sl_dataset_get_files(o.train);
        for (size_t f = 0; f < files.count; f++) {
            assert_memory_equal(files.items[f], data_folder, strlen(data_folder));
            sl_buf_printf(&names, "%s%s", f ? " " : "", files.items[f] + strlen(data_folder) + 1);
        }
        assert_string_equal(sl_buf_text(&names), cases[i].files);
        sl_buf_deinit(&names);
        data_close(&o);
    }
}

static const struct sl_batching_cost *find_chosen(const struct sl_data_stats *stats)
{
    int count;
    const struct sl_batching_cost *cost = sl_data_stats_get_costs(stats, &count);
    while (!cost->chosen)
        cost++;
    return cost;
}

/* The last batch of a stream is shorter where its steps are no multiple of bptt, and is then a shape of its own. */
static void a_stream_has_a_shape_for_its_rest(void **state)
{
    (void)state;
    static const struct {
        int bptt, batches, shapes;
    } cases[] = {{5, 2, 1}, {4, 3, 2}, {3, 4, 2}, {10, 1, 1}, {9, 2, 2}, {20, 1, 1}};
    data_write("train.txt", "abcdefghijklmnopqrstu"); /* twenty have a next one: ten in each of two streams */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char data[200];
        struct sl_data_stats *stats;
        snprintf(data, sizeof data,
                 "type: text, train: {file: train.txt}, tokenizer: {type: char, specials: []}, batch_size: 2, "
                 "batching: {unit: stream, bptt: %d}",
                 cases[i].bptt);
        struct data_open o = data_open_train(data, MODEL_LM, "task: language_model");
        assert_int_equal(sl_data_stats_create(o.train, NULL, &stats, NULL), SEQLSTM_OK);
        const struct sl_batching_cost *cost = find_chosen(stats);
        assert_int_equal(cost->steps, 10);
        assert_int_equal(cost->batches, cases[i].batches);
        assert_int_equal(cost->shapes, cases[i].shapes);
        sl_data_stats_destroy(stats);
        data_close(&o);
    }
}

/* The bound of the time takes the rows of each side at the price of that side's widest step. */
static void the_least_time_is_that_of_the_widest_steps_of_both_sides(void **state)
{
    (void)state;
    static const struct sl_step_cost cost = {.count = 2,
                                             .points = {{1, 100}, {4, 200}},
                                             .source_count = 3,
                                             .source_points = {{1, 10}, {2, 16}, {8, 32}},
                                             .batch_ns = 1000};
    struct sl_data_stats *stats;
    data_write("a.txt", "x y z\ny\nx x\nz\n");
    data_write("b.txt", "y x\nx\ny y y y\nx x\n");
    struct data_open o = data_open_train(
        "type: lines, train: {source: a.txt, target: b.txt}, tokenizer: whitespace, batch_size: 2", MODEL_PAIRS, PAIRS);
    assert_int_equal(sl_data_stats_create(o.train, &cost, &stats, NULL), SEQLSTM_OK);
    const double target = (double)sl_data_stats_get_lengths(stats)->rows;
    const double source = (double)sl_data_stats_find_source_lengths(stats)->rows;
    assert_true(target != source && target > 0 && source > 0);
    const double least = 1e-9 * (target * 200 / 4 + source * 32 / 8);
    const double seconds = sl_data_stats_get_least_seconds(stats);
    const double batches = (seconds - least) / 1e-6; /* of both sides */
    assert_true(batches > 1.999 && batches < 4.001);
    assert_true(batches - (double)(int)(batches + 0.5) < 1e-6 && (double)(int)(batches + 0.5) - batches < 1e-6);
    sl_data_stats_destroy(stats);
    data_close(&o);
}

/* A value that is none is told with the line of its own file, in each part of a file that is divided. */
static void a_value_is_told_with_its_line_in_every_split(void **state)
{
    (void)state;
    data_write("train.txt", "1 a\n2 b\n3 c\n1e300 d\n");
    struct data_open o =
        data_open_train("type: lines, train: {file: train.txt}, valid: {split: 0.25}, label: {column: "
                        "first, type: value}, tokenizer: whitespace, batch_size: 2, shuffle: false",
                        "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output}]", "loss: mse");
    struct sl_dataset *valid = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err), SEQLSTM_CORRUPT_DATA);
    if (!strstr(err.message, "train.txt:4: the value 1e+300"))
        fail_msg("%s", err.message);
    data_close(&o);
}

/* Targets that count, of each class: one of a record, that of its last step, or those of all steps. */
static void classes_are_counted_where_the_targets_stand(void **state)
{
    (void)state;
    static const struct {
        const char *data, *layers, *train;
        int64_t counts[3];
    } cases[] = {
        {"type: lines, label: first, tokenizer: whitespace, train: {file: lines.txt}, valid: {split: 0.4}",
         MODEL_CLASSIFY,
         "task: classify",
         {1, 1, 1}},
        {"type: csv, group: g, inputs: [a], label: k, train: {file: steps.csv}, missing: {targets: ignore}",
         MODEL_CLASSIFY_VALUES,
         "task: classify",
         {2, 1, 0}},
        {"type: csv, group: g, inputs: [a], label: k, train: {file: steps.csv}, missing: {targets: ignore}",
         "[{type: lstm, units: 3, return_sequences: true}, {type: output, activation: softmax}]",
         "task: tag",
         {4, 2, 0}},
        {"type: npy, train: {x: x.npy, y: y.npy}",
         MODEL_CLASSIFY_VALUES,
         "task: classify, loss: {type: cross_entropy, ignore: 1}",
         {1, 0, 1}},
    };
    static const float x[] = {1, 2, 3, 4};
    static const int64_t y[] = {2, 1, 0, 1};
    data_write("lines.txt", "b x y\nc y\na x\nc y y\na x\n");
    data_write("steps.csv", "g,a,k\n1,1,x\n1,2,x\n1,3,\n2,4,y\n2,5,y\n3,6,x\n3,7,x\n");
    data_write_npy("x.npy", "<f4", "(4, 1, 1)", x, sizeof x);
    data_write_npy("y.npy", "<i8", "(4,)", y, sizeof y);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct data_open o = data_open_train(cases[k].data, cases[k].layers, cases[k].train);
        int64_t *counts = NULL, classes = 0;
        assert_int_equal(sl_census_count_classes(o.train, &counts, &classes, NULL), SEQLSTM_OK);
        for (int64_t c = 0; c < classes; c++)
            assert_int_equal(counts[c], cases[k].counts[c]);
        assert_in_range(classes, 2, 3);
        free(counts);
        data_close(&o);
    }
    struct data_open o = data_open_train(cases[0].data, cases[0].layers, cases[0].train);
    struct sl_dataset *valid = NULL; /* its targets are not the first ones of the file */
    int64_t *counts = NULL, classes = 0;
    assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, NULL), SEQLSTM_OK);
    assert_int_equal(sl_census_count_classes(valid, &counts, &classes, NULL), SEQLSTM_OK);
    assert_true(classes == 3 && counts[0] == 1 && counts[1] == 0 && counts[2] == 1);
    free(counts);
    sl_dataset_close(valid);
    data_close(&o);
}

/* Scaled targets of several columns come back in the file's units, each with its own numbers. */
static void targets_of_each_column_get_their_own_units_back(void **state)
{
    (void)state;
    data_write("t.csv", "a,y,z\n1,10,-1\n2,30,-2\n3,50,-9\n");
    struct data_open o = data_open_train("type: csv, train: {file: t.csv}, inputs: [a], targets: [y, z], scale: minmax",
                                         MODEL_DENSE, "loss: mse");
    float values[] = {0, 0, 1, 1, 0.5f, 0.25f};
    static const float expected[] = {10, -9, 50, -1, 30, -7};
    sl_data_state_undo_targets(o.state, values, 3);
    for (int k = 0; k < 6; k++)
        assert_true(values[k] >= expected[k] - 1e-4f && values[k] <= expected[k] + 1e-4f);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_split_that_there_is_is_measured),
        cmocka_unit_test(a_split_names_each_of_its_files_once),
        cmocka_unit_test(a_stream_has_a_shape_for_its_rest),
        cmocka_unit_test(the_least_time_is_that_of_the_widest_steps_of_both_sides),
        cmocka_unit_test(a_value_is_told_with_its_line_in_every_split),
        cmocka_unit_test(classes_are_counted_where_the_targets_stand),
        cmocka_unit_test(targets_of_each_column_get_their_own_units_back),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
