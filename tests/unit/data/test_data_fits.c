/* SPDX-License-Identifier: Apache-2.0 */
/* Whether data and model fit together: each thing that does not, with the file and the reason; and labels of other
 * splits that training lacks, in sources with lines and without. */
#include "data_fixture.h"

#define LABELS(kind) "type: csv, train: {file: train.csv}, inputs: [a], label: {column: y, type: " kind "}"
#define VALUES       "type: csv, train: {file: train.csv}, inputs: [a], targets: [y]"
#define LINES        "type: lines, train: {file: train.txt}, label: first"
#define NPY          "type: npy, train: {x: x.npy, y: y.npy}"
#define SOFTMAX      "[{type: dense, units: 3}, {type: output, activation: softmax}]"
#define SIGMOID      "[{type: dense, units: 3}, {type: output, activation: sigmoid}]"

static const struct {
    const char *text; /* of train.csv and train.txt */
    const char *data, *layers, *train;
    seqlstm_status status;
    const char *message; /* behind the folder */
} cases[] = {
    {"a,y\n1,2\n3,4\n", LABELS("value"), SOFTMAX, "task: classify, loss: cross_entropy", SEQLSTM_INVALID_CONFIG,
     "train.csv: the loss cross_entropy needs classes, but the targets are values (`label: {type: class}`)"},
    {"a,y\n1,p\n3,q\n5,r\n", LABELS("class"), SIGMOID, "task: classify, loss: binary_cross_entropy",
     SEQLSTM_INVALID_CONFIG, "train.csv: the loss binary_cross_entropy needs two classes, but the label has 3"},
    {"a,y\n1,1\n3,2\n5,1\n", VALUES, SIGMOID, "task: classify, loss: binary_cross_entropy", SEQLSTM_CORRUPT_DATA,
     "train.csv:3: the target 2 (row 2, column 1) is not from 0 to 1, as the loss binary_cross_entropy needs it (a "
     "`label` with two classes becomes 0 and 1)"},
    {"a,y\n1,1\n3,0\n5,-0.5\n", VALUES, SIGMOID, "task: classify, loss: binary_cross_entropy", SEQLSTM_CORRUPT_DATA,
     "train.csv:4: the target -0.5 (row 3, column 1) is not from 0 to 1"},
    {"a,y,z\n1,1,0\n3,0,1\n5,1,2\n", "type: csv, train: {file: train.csv}, inputs: [a], targets: [y, z]", SIGMOID,
     "task: classify, loss: binary_cross_entropy", SEQLSTM_CORRUPT_DATA,
     "train.csv:4: the target 2 (row 3, column 2) is not from 0 to 1"},
    {"a,y\n1,1\n3,2\n5,3\n", VALUES ", scale: standard", SIGMOID, "task: classify, loss: binary_cross_entropy",
     SEQLSTM_CORRUPT_DATA, "train.csv:2: the target -1.22474 (row 1, column 1) is not from 0 to 1"},
    {"p good\nq bad\n", LINES, MODEL_TAG, "task: tag", SEQLSTM_INVALID_CONFIG,
     "train.txt: the data has one target per sequence, but the model has one output per step "
     "(`return_sequences: false` in the last recurrent layer)"},
    {"s good\ns bad\n", LINES, MODEL_CLASSIFY, "task: classify, loss: {type: cross_entropy, ignore: s}",
     SEQLSTM_CORRUPT_DATA, "train.txt: the training split has no label"},
    {"p good\nq bad\n", LINES, MODEL_CLASSIFY, "task: classify, loss: {type: cross_entropy, ignore: s}",
     SEQLSTM_INVALID_CONFIG, "train.txt: `ignore: s`: no target of the training split is `s`"},
};

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[600];
        data_write("train.csv", cases[i].text);
        data_write("train.txt", cases[i].text);
        snprintf(message, sizeof message, "%s/%s", data_folder, cases[i].message);
        data_expect_failure(cases[i].data, cases[i].layers, cases[i].train, cases[i].status, message);
    }
}

/* Of whole numbers by number, of others by bytes; of the same number, such as 7 and 07, by bytes, too. */
static int compare_labels(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    return atoi(x) != atoi(y) ? (atoi(x) > atoi(y)) - (atoi(x) < atoi(y)) : strcmp(x, y);
}

static void classes_have_their_order(void **state)
{
    (void)state;
    static const char *const labels[] = {"9", "-12", "100", "3",  "-3",   "07", "1000",
                                         "7", "12",  "0",   "99", "-100", "+5"};
    enum { COUNT = sizeof labels / sizeof *labels };
    for (int begin = 0; begin < COUNT; begin++)
        for (int count = 2; count <= COUNT; count++) {
            const char *sorted[COUNT];
            struct sl_buf text = {0};
            for (int k = 0; k < count; k++) {
                sorted[k] = labels[(begin + 5 * k) % COUNT];
                sl_buf_printf(&text, "%s a\n", sorted[k]);
            }
            data_write("train.txt", sl_buf_text(&text));
            sl_buf_deinit(&text);
            qsort(sorted, (size_t)count, sizeof *sorted, compare_labels);
            struct data_open o = data_open_train(LINES, MODEL_CLASSIFY, "task: classify");
            const struct sl_vocabulary *classes = sl_data_state_find_classes(o.state);
            assert_int_equal(sl_vocabulary_get_size(classes), count);
            for (int k = 0; k < count; k++)
                assert_string_equal(sl_vocabulary_get_text(classes, k, NULL), sorted[k]);
            data_close(&o);
        }
}

/* Outcomes may be anything from 0 to 1; scaled ones of another split also lie beyond. */
static void outcomes_that_fit(void **state)
{
    (void)state;
    data_write("train.csv", "a,y\n1,0\n3,0.25\n5,1\n");
    data_write("valid.csv", "a,y\n1,0\n3,3\n");
    for (int scaled = 0; scaled < 2; scaled++) {
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_dataset *valid = NULL;
        struct data_open o = data_open_train(scaled ? VALUES ", valid: {file: valid.csv}, scale: minmax"
                                                    : VALUES ", valid: {file: valid.csv}",
                                             SIGMOID, "task: classify, loss: binary_cross_entropy");
        assert_int_equal(sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err),
                         scaled ? SEQLSTM_OK : SEQLSTM_CORRUPT_DATA);
        if (!scaled)
            assert_non_null(strstr(err.message, "/valid.csv:3: the target 3 (row 2, column 1) is not from 0 to 1"));
        sl_dataset_close(valid);
        data_close(&o);
    }
}

/* A label that training lacks has no class and is counted, with lines and without. Where two labels are the values 0
 * and 1 it is an error, with its place. */
static void labels_that_training_lacks(void **state)
{
    (void)state;
    static const struct {
        const char *data, *loss, *where; /* NULL: it opens */
    } cases_of_valid[] = {
        {LABELS("class") ", valid: {file: valid.csv}", "cross_entropy", NULL},
        {NPY ", valid: {x: x.npy, y: valid.npy}", "cross_entropy", NULL},
        {LABELS("class") ", valid: {file: valid.csv}", "binary_cross_entropy",
         "valid.csv:3: the label \"2\" does not occur in the training split"},
    };
    data_write_npy("x.npy", "<f4", "(3, 1)", (float[]){1, 2, 3}, 12);
    data_write_npy("y.npy", "<i4", "(3,)", (int32_t[]){1, 0, 1}, 12);
    data_write_npy("valid.npy", "<i4", "(3,)", (int32_t[]){0, 2, 2}, 12);
    data_write("train.csv", "a,y\n1,1\n2,0\n3,1\n");
    data_write("valid.csv", "a,y\n1,0\n2,2\n3,2\n");
    for (size_t i = 0; i < sizeof cases_of_valid / sizeof *cases_of_valid; i++) {
        const char *where = cases_of_valid[i].where;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        struct sl_dataset *valid = NULL;
        char train[80];
        snprintf(train, sizeof train, "task: classify, loss: %s", cases_of_valid[i].loss);
        struct data_open o = data_open_train(cases_of_valid[i].data, where ? SIGMOID : SOFTMAX, train);
        const seqlstm_status status = sl_dataset_open(o.model, SL_SPLIT_VALID, o.state, &valid, &err);
        if (where) {
            assert_int_equal(status, SEQLSTM_CORRUPT_DATA);
            assert_memory_equal(err.message, data_folder, strlen(data_folder));
            assert_string_equal(err.message + strlen(data_folder) + 1, where);
            assert_null(valid);
        } else {
            assert_int_equal(status, SEQLSTM_OK);
            assert_int_equal(sl_dataset_get_counts(valid)->unknown_labels, 2);
        }
        sl_dataset_close(valid);
        data_close(&o);
    }
}

/* Values of an array are read from its file while it is trained on: the message names that file, not another. */
static void an_array_that_is_cut_short(void **state)
{
    (void)state;
    char path[160];
    float x[4096] = {1};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_batch *batch = NULL;
    data_write_npy("x.npy", "<f4", "(4096, 1)", x, sizeof x);
    data_write_npy("y.npy", "<f4", "(4096, 1)", x, sizeof x);
    struct data_open o = data_open_train(NPY ", batch_size: 4096", MODEL_DENSE, "loss: mse");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    snprintf(path, sizeof path, "%s/x.npy", data_folder);
    assert_int_equal(truncate(path, NPY_HEADER), 0);
    assert_int_equal(sl_batcher_next(batcher, &batch, &err), SEQLSTM_CORRUPT_DATA);
    assert_null(batch);
    assert_memory_equal(err.message, path, strlen(path));
    sl_batcher_close(batcher);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_told),  cmocka_unit_test(classes_have_their_order),
        cmocka_unit_test(outcomes_that_fit),          cmocka_unit_test(labels_that_training_lacks),
        cmocka_unit_test(an_array_that_is_cut_short),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
