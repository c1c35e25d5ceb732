/* SPDX-License-Identifier: Apache-2.0 */
/* Class weights out of a model file and its data. */
#include <math.h>

#include "data_fixture.h"
#include "npy_fixture.h"
#include "oom.h"
#include "train/class_weight.h"

static const char DATA[] =
    "type: lines, delimiter: \"\\t\", label: {column: first, type: class}, train: {file: a.tsv}, "
    "tokenizer: whitespace, batch_size: 2";

/* Six of "one", three of "two", one of "three", some in each of several batches. */
static struct data_open open_data(const char *train)
{
    data_write("a.tsv", "one\ta\none\ta b\ntwo\tb\none\tc\nthree\ta\none\tb b b\ntwo\ta\none\tc\ntwo\tb\none\tb\n");
    return data_open_train(DATA, MODEL_CLASSIFY, train);
}

static double weight_of(const struct data_open *o, const float *weights, const char *label)
{
    int32_t id = sl_vocabulary_find(sl_data_state_find_classes(o->state), label, strlen(label));
    assert_in_range(id, 0, 2);
    return (double)weights[id];
}

static void given_by_label(void **state)
{
    (void)state;
    struct data_open o = open_data("class_weight: {three: 5, one: 0.5}");
    float *weights = NULL;
    int64_t count = 0;
    assert_true(sl_class_weights_are_on(o.model));
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, 3);
    assert_true(weight_of(&o, weights, "one") == 0.5);
    assert_true(weight_of(&o, weights, "two") == 1);
    assert_true(weight_of(&o, weights, "three") == 5);
    free(weights);
    data_close(&o);
}

/* Some classes may weigh nothing, but not all. */
static void one_class_must_count(void **state)
{
    (void)state;
    struct data_open o = open_data("class_weight: {three: 0, one: 0}");
    float *weights = NULL;
    int64_t count = 0;
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, NULL), SEQLSTM_OK);
    assert_true(weight_of(&o, weights, "two") == 1);
    free(weights);
    weights = NULL;
    data_close(&o);
    o = open_data("class_weight: {three: 0, one: 0.25, two: 3}");
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, NULL), SEQLSTM_OK);
    assert_true(weight_of(&o, weights, "three") == 0 && weight_of(&o, weights, "one") == 0.25);
    free(weights);
    weights = NULL;
    data_close(&o);
    o = open_data("class_weight: {three: 0, one: 0, two: 0}");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, &err), SEQLSTM_INVALID_CONFIG);
    assert_null(weights);
    assert_non_null(strstr(err.message, "every class the weight 0"));
    data_close(&o);
}

static void balanced_by_frequency(void **state)
{
    (void)state;
    struct data_open o = open_data("class_weight: balanced");
    struct sl_batcher *counting = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    for (int n = 1;; n++) {
        float *weights = NULL;
        int64_t count = 0;
        oom_fail_at(n);
        seqlstm_status status = sl_class_weights_create(o.model, o.state, counting, &weights, &count, NULL);
        if (oom_disarm()) {
            assert_int_equal(status, SEQLSTM_NO_MEMORY);
            assert_null(weights);
            continue;
        }
        assert_int_equal(status, SEQLSTM_OK);
        assert_true(fabs(weight_of(&o, weights, "one") - 10.0 / (3 * 6)) < 1e-6);
        assert_true(fabs(weight_of(&o, weights, "two") - 10.0 / (3 * 3)) < 1e-6);
        assert_true(fabs(weight_of(&o, weights, "three") - 10.0 / (3 * 1)) < 1e-6);
        free(weights);
        break;
    }
    sl_batcher_close(counting);
    data_close(&o);
}

/* Each step of a sequence has a class: all of them count, not one for each sequence. */
static void steps_are_counted(void **state)
{
    (void)state;
    data_write("a.tsv", "a\tX\nb\tY\nc\tX\nd\tX\ne\tX\n\nd\tY\n\na\tZ\nb\tX\n\n");
    const char *data = "type: conll, label: 2, tokenizer: {type: whitespace}, batch_size: 2, train: {file: a.tsv}";
    const char *layers = "[{type: embedding, dim: 2}, {type: lstm, units: 3, return_sequences: true}, "
                         "{type: output, activation: softmax}]";
    struct data_open o = data_open_train(data, layers, "task: tag, class_weight: balanced");
    struct sl_batcher *counting = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    float *weights = NULL;
    int64_t count = 0;
    assert_int_equal(sl_class_weights_create(o.model, o.state, counting, &weights, &count, NULL), SEQLSTM_OK);
    assert_int_equal(count, 3);
    assert_true(fabs(weight_of(&o, weights, "X") - 8.0 / (3 * 5)) < 1e-6);
    assert_true(fabs(weight_of(&o, weights, "Y") - 8.0 / (3 * 2)) < 1e-6);
    assert_true(fabs(weight_of(&o, weights, "Z") - 8.0 / (3 * 1)) < 1e-6);
    free(weights);
    sl_batcher_close(counting);
    data_close(&o);
}

/* Two classes as the values 0 and 1. */
static void values_have_classes(void **state)
{
    (void)state;
    data_write("a.tsv", "no\ta\nyes\ta b\nno\tb\nno\tc\n");
    const char *layers = "[{type: embedding, dim: 2}, {type: lstm, units: 3}, {type: output, activation: sigmoid}]";
    static const struct {
        const char *train;
        double no, yes;
    } cases[] = {{"loss: binary_cross_entropy, class_weight: {yes: 3}", 1, 3},
                 {"loss: binary_cross_entropy, class_weight: balanced", 4.0 / 6, 2}};
    for (size_t i = 0; i < 2; i++) {
        struct data_open o = data_open_train(DATA, layers, cases[i].train);
        struct sl_batcher *counting = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
        float *weights = NULL;
        int64_t count = 0;
        assert_int_equal(sl_class_weights_create(o.model, o.state, counting, &weights, &count, NULL), SEQLSTM_OK);
        assert_int_equal(count, 2);
        assert_true(fabs(weight_of(&o, weights, "no") - cases[i].no) < 1e-6);
        assert_true(fabs(weight_of(&o, weights, "yes") - cases[i].yes) < 1e-6);
        free(weights);
        sl_batcher_close(counting);
        data_close(&o);
    }
}

/* A label that is missing is of no class, whether classes are ids or values. */
static void missing_labels_are_not_counted(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"sigmoid", "binary_cross_entropy"}, {"softmax", "cross_entropy"}};
    data_write("a.csv", "a,y\n1,no\n2,yes\n3,\n4,no\n5,\n6,no\n");
    for (int k = 0; k < 2; k++) {
        char layers[100], train[80];
        float *weights = NULL;
        int64_t count = 0;
        snprintf(layers, sizeof layers, "[{type: dense, units: 3}, {type: output, activation: %s}]", rows[k][0]);
        snprintf(train, sizeof train, "loss: %s, class_weight: balanced", rows[k][1]);
        struct data_open o = data_open_train("type: csv, train: {file: a.csv}, inputs: [a], label: y, "
                                             "missing: {targets: ignore}, batch_size: 4",
                                             layers, train);
        struct sl_batcher *counting = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
        assert_int_equal(sl_class_weights_create(o.model, o.state, counting, &weights, &count, NULL), SEQLSTM_OK);
        assert_int_equal(count, 2);
        assert_true(fabs(weight_of(&o, weights, "no") - 4.0 / (2 * 3)) < 1e-6);
        assert_true(fabs(weight_of(&o, weights, "yes") - 4.0 / (2 * 1)) < 1e-6);
        free(weights);
        sl_batcher_close(counting);
        data_close(&o);
    }
}

/* Classes that are numbers without names: balanced by frequency, one that does not occur weighs 1; none can be named.
 */
static void numbers_have_classes(void **state)
{
    (void)state;
    enum { ROWS = 6 };
    static const float inputs[ROWS * 2];
    static const int32_t classes[ROWS] = {0, 3, 1, 0, 0, 1};
    char file[NPY_HEADER + sizeof inputs];
    npy_write_header(file, "<f4", "(6, 2, 1)");
    memcpy(file + NPY_HEADER, inputs, sizeof inputs);
    data_write_bytes("x.npy", file, sizeof file);
    npy_write_header(file, "<i4", "(6,)");
    memcpy(file + NPY_HEADER, classes, sizeof classes);
    data_write_bytes("y.npy", file, NPY_HEADER + sizeof classes);
    const char *data = "type: npy, train: {x: x.npy, y: y.npy}, batch_size: 4";
    struct data_open o = data_open_train(data, MODEL_CLASSIFY_VALUES, "task: classify, class_weight: balanced");
    struct sl_batcher *counting = data_batcher(o.train, SL_BATCHING_EVALUATE, 1, 0, 0);
    float *weights = NULL;
    int64_t count = 0;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_class_weights_create(o.model, o.state, counting, &weights, &count, &err), SEQLSTM_OK);
    static const double expected[] = {6.0 / (4 * 3), 6.0 / (4 * 2), 1, 6.0 / 4};
    assert_int_equal(count, 4);
    for (int c = 0; c < 4; c++)
        assert_true(fabs((double)weights[c] - expected[c]) < 1e-6);
    free(weights);
    sl_batcher_close(counting);
    data_close(&o);
    o = data_open_train(data, MODEL_CLASSIFY_VALUES, "task: classify, class_weight: {\"3\": 2}");
    assert_int_equal(sl_class_weights_check(o.model, o.state, &err), SEQLSTM_OK);
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, &err), SEQLSTM_OK);
    assert_int_equal(count, 4);
    for (int c = 0; c < 4; c++)
        assert_true(weights[c] == (c == 3 ? 2 : 1));
    free(weights);
    data_close(&o);
}

static void unknown_labels_are_told(void **state)
{
    (void)state;
    struct data_open o = open_data("class_weight: {thee: 5}");
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    float *weights = NULL;
    int64_t count = 0;
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, &err), SEQLSTM_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "`thee`"));
    assert_non_null(strstr(err.message, "did you mean `three`"));
    data_close(&o);
    o = open_data("loss: cross_entropy");
    weights = (float *)&err;
    assert_false(sl_class_weights_are_on(o.model));
    assert_int_equal(sl_class_weights_create(o.model, o.state, NULL, &weights, &count, &err), SEQLSTM_OK);
    assert_null(weights);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_by_label),
        cmocka_unit_test(one_class_must_count),
        cmocka_unit_test(balanced_by_frequency),
        cmocka_unit_test(values_have_classes),
        cmocka_unit_test(missing_labels_are_not_counted),
        cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(numbers_have_classes),
        cmocka_unit_test(unknown_labels_are_told),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
