/* SPDX-License-Identifier: Apache-2.0 */
/* Files that NumPy and pandas wrote (tests/fixtures/data, made by make.py there). */
#include <math.h>

#include "data_fixture.h"

static const char *fixture(const char *name)
{
    static char path[4][512];
    static int next;
    const char *source = getenv("SEQLSTM_SOURCE");
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/tests/fixtures/data/%s", source ? source : ".", name);
    return out;
}

static void test_arrays(void **state)
{
    (void)state;
    static const char *const names[] = {"x-float32.npy", "x-float64.npy", "x-int64.npy",
                                        "x-int8.npy",    "x-v2.npy",      "x-v3.npy"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char data[1200];
        snprintf(data, sizeof data, "type: npy, train: {x: %s, y: %s}, batch_size: 2", fixture(names[i]),
                 fixture("y-float32.npy"));
        struct data_open o = data_open_train(data, MODEL_REGRESS, "loss: mse");
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
        struct sl_batch *batch = data_next(batcher);
        for (int64_t k = 0; k < 2; k++)
            for (int64_t t = 0; t < 4; t++)
                for (int64_t f = 0; f < 3; f++)
                    assert_true(batch->input.values[sl_batch_row(batch, k, t) * 3 + f] == (float)(12 * k + 3 * t + f));
        assert_true(batch->target.values[0] == 1.5f && batch->target.values[1] == -2);
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

static void test_refused_arrays(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"x-fortran.npy", "numpy.ascontiguousarray"},
                                           {"x-big-endian.npy", "'>f4' is not read"},
                                           {"x-float16.npy", "x.astype('float32')"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char data[1200];
        snprintf(data, sizeof data, "type: npy, train: {x: %s, y: %s}", fixture(cases[i][0]), fixture("y-bool.npy"));
        data_expect_failure(data, MODEL_REGRESS, "loss: mse", SEQLSTM_CORRUPT_DATA, cases[i][1]);
    }
}

static void test_booleans_are_classes(void **state)
{
    (void)state;
    char data[1200];
    snprintf(data, sizeof data, "type: npy, train: {x: %s, y: %s}, batch_size: 2", fixture("x-float32.npy"),
             fixture("y-bool.npy"));
    struct data_open o = data_open_train(data, MODEL_CLASSIFY_VALUES, "task: classify");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    assert_true(batch->target.ids[0] == 1 && batch->target.ids[1] == 0);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_frame(void **state)
{
    (void)state;
    char data[1200];
    snprintf(data, sizeof data,
             "type: csv, train: {file: %s}, time: {column: date, step: 1d}, inputs: ['a \"quoted\", name'], targets: "
             "[load], "
             "window: {length: 4}, missing: zero, batch_size: 2",
             fixture("frame.csv"));
    struct data_open o = data_open_train(data, MODEL_REGRESS, "loss: mse");
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    static const float expected[] = {0.1f, 1e-7f, 0, 123456789.25f};
    assert_memory_equal(batch->input.values, expected, sizeof expected);
    assert_true(batch->target.values[0] == 5);
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_refused_arrays),
        cmocka_unit_test(test_booleans_are_classes),
        cmocka_unit_test(test_frame),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
