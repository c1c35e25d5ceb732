/* SPDX-License-Identifier: Apache-2.0 */
/* Generated data: the rules of each generator, and that numbers depend on seed, split and record alone. */
#include <math.h>

#include "data_fixture.h"

#define GENERATED(what) "type: generator, train: {name: " what "}, batch_size: 400"
#define MSE             "loss: mse"

static void check_adding(const struct sl_batch *batch, int64_t low, int64_t high)
{
    for (int64_t k = 0; k < batch->sequences; k++) {
        int64_t length = batch->axis.lengths[k], marked = 0;
        double sum = 0;
        assert_in_range(length, low, high);
        for (int64_t t = 0; t < length; t++) {
            const float *row = batch->input.values + 2 * sl_batch_row(batch, k, t);
            assert_true(row[0] >= 0 && row[0] < 1);
            if (row[1] == 1) {
                marked++;
                sum += (double)row[0];
                assert_true(t < 10 || t < length / 2);
            } else {
                assert_true(row[1] == (t == 0 || t == length - 1 ? -1 : 0));
            }
        }
        assert_int_equal(marked, 2);
        assert_true(fabs(sum - (double)batch->target.values[k]) < 1e-6);
    }
}

static void test_adding_problem(void **state)
{
    (void)state;
    static const int64_t bounds[][2] = {{100, 110}, {3, 4}, {20, 20}};
    for (int i = 0; i < 3; i++) {
        char data[160];
        snprintf(data, sizeof data, GENERATED("adding_problem, size: 400, length: [%d, %d]"), (int)bounds[i][0],
                 (int)bounds[i][1]);
        struct data_open o = data_open_train(data, MODEL_REGRESS, MSE);
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
        struct sl_batch *batch = data_next(batcher);
        assert_int_equal(batch->sequences, 400);
        check_adding(batch, bounds[i][0], bounds[i][1]);
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
        data_close(&o);
    }
}

/* A record is the same in a larger set, another in another split or under another seed. */
static void test_determinism(void **state)
{
    (void)state;
    float first[4];
    const char *const variants[] = {
        "type: generator, train: {name: adding_problem, size: 5, length: 10}",
        "type: generator, train: {name: adding_problem, size: 50, length: 10}",
        "type: generator, train: {name: adding_problem, size: 5, length: 10, seed: 7}",
        "type: generator, train: {name: adding_problem, size: 5, length: 10, seed: 8}",
        ("type: generator, train: {name: adding_problem, size: 5, length: 10}, "
         "valid: {size: 5, name: adding_problem, length: 10}"),
        "type: generator, train: {name: adding_problem, size: 5, length: 10, seed: 4294967303}", /* 7 and 2^32 */
    };
    for (int i = 0; i < 6; i++) {
        struct data_open o = data_open_train(variants[i], MODEL_REGRESS, MSE);
        struct sl_dataset *d = i == 4 ? data_open_split(&o, SL_SPLIT_VALID) : o.train;
        struct sl_batcher *batcher = data_batcher(d, SL_BATCHING_PREDICT, 1, 4, 0);
        struct sl_batch *batch = data_next(batcher);
        if (i == 0)
            memcpy(first, batch->target.values, sizeof first);
        assert_int_equal(memcmp(first, batch->target.values, sizeof first) == 0, i < 3);
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
        if (i == 4)
            sl_dataset_close(d);
        data_close(&o);
    }
}

static void check_copy(bool reverse)
{
    char data[200];
    snprintf(data, sizeof data, GENERATED("%s, size: 20, length: [2, 5], symbols: 4%s"), reverse ? "reverse" : "copy",
             reverse ? "" : ", delay: 3");
    int64_t delay = reverse ? 0 : 3;
    struct data_open o = data_open_train(data, MODEL_TAG, "task: tag");
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_true(facts->target.classes == 6 && facts->input.classes == 6);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    for (int64_t k = 0; k < batch->sequences; k++) {
        int64_t n = (batch->axis.lengths[k] - delay) / 2;
        assert_in_range(n, 2, 5);
        for (int64_t t = 0; t < batch->axis.lengths[k]; t++) {
            int64_t row = sl_batch_row(batch, k, t), id = batch->input.ids[row];
            assert_true(t < n ? id >= 2 : id == (t == n + delay));
            if (t < n) {
                int64_t said = sl_batch_row(batch, k, n + delay + (reverse ? n - 1 - t : t));
                assert_int_equal(batch->target.ids[said], id);
            }
            if (t < n + delay)
                assert_int_equal(batch->target.ids[row], 0);
        }
    }
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    data_close(&o);
}

static void test_copy_and_reverse(void **state)
{
    (void)state;
    check_copy(false);
    check_copy(true);
}

/* Without noise s(t + p) of one period repeats: checked through the series' own recurrence
 * s(t+1) + s(t-1) = 2 cos(w) s(t), whose factor is the same at every step. */
static void test_sine(void **state)
{
    (void)state;
    struct data_open o =
        data_open_train(GENERATED("sine, size: 9, length: 12, features: 3, horizon: 2"), MODEL_REGRESS, MSE);
    const struct sl_data_facts *facts = sl_dataset_get_facts(o.train);
    assert_true(facts->input.features == 3 && facts->target.features == 6 && facts->longest == 12);
    struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
    struct sl_batch *batch = data_next(batcher);
    for (int64_t k = 0; k < 9; k++) {
        for (int64_t f = 0; f < 3; f++) {
            double s[14];
            for (int64_t t = 0; t < 14; t++)
                s[t] = t < 12 ? (double)batch->input.values[sl_batch_row(batch, k, t) * 3 + f]
                              : (double)batch->target.values[k * 6 + (t - 12) * 3 + f];
            double num = 0, den = 0;
            for (int t = 1; t < 13; t++) {
                num += (s[t + 1] + s[t - 1]) * s[t];
                den += s[t] * s[t];
            }
            for (int t = 1; t < 13; t++)
                assert_true(fabs(s[t + 1] + s[t - 1] - num / den * s[t]) < 1e-5);
            const double period = 6.283185307179586 / acos(num / den / 2);
            assert_true(period > 7.999 && period < 64.01);
        }
    }
    sl_batch_destroy(batch);
    sl_batcher_close(batcher);
    struct sl_input_request request = {.path = "-"};
    struct sl_dataset *input = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    assert_int_equal(sl_dataset_open_input(o.model, o.state, &request, &input, &err), SEQLSTM_INVALID_CONFIG);
    assert_null(input);
    data_close(&o);
}

/* What a generator makes if only its size is given, as docs/model-file.md says. */
static void test_defaults(void **state)
{
    (void)state;
    struct data_open o = data_open_train(GENERATED("copy, size: 200, length: 9"), MODEL_TAG, "task: tag");
    assert_int_equal(sl_dataset_get_facts(o.train)->target.classes,
                     8 + 2); /* symbols, the blank and the sign to begin */
    assert_int_equal(sl_dataset_get_length(o.train, 0), 2 * 9 + 10);
    data_close(&o);
    o = data_open_train(GENERATED("sine, size: 4, length: 9"), MODEL_REGRESS, MSE);
    assert_int_equal(sl_dataset_get_facts(o.train)->input.features, 1);
    assert_int_equal(sl_dataset_get_facts(o.train)->target.features, 1);
    data_close(&o);
}

/* Noise is normal, of the deviation that is wanted, and independent from step to step. */
static void test_noise(void **state)
{
    (void)state;
    enum { SERIES = 400, STEPS = 12, N = SERIES * STEPS };
    double noise[N], mean = 0, squares = 0, fourth = 0, neighbours = 0;
    float clean[N];
    for (int noisy = 0; noisy < 2; noisy++) {
        struct data_open o = data_open_train(noisy ? GENERATED("sine, size: 400, length: 12, noise: 0.5")
                                                   : GENERATED("sine, size: 400, length: 12"),
                                             MODEL_REGRESS, MSE);
        struct sl_batcher *batcher = data_batcher(o.train, SL_BATCHING_PREDICT, 1, 0, 0);
        struct sl_batch *batch = data_next(batcher);
        assert_int_equal(batch->sequences, SERIES);
        for (int64_t k = 0; k < SERIES; k++)
            for (int64_t t = 0; t < STEPS; t++) {
                const float value = batch->input.values[sl_batch_row(batch, k, t)];
                if (noisy)
                    noise[k * STEPS + t] = ((double)value - (double)clean[k * STEPS + t]) / 0.5;
                else
                    clean[k * STEPS + t] = value;
            }
        sl_batch_destroy(batch);
        sl_batcher_close(batcher);
        data_close(&o);
    }
    for (int i = 0; i < N; i++) {
        mean += noise[i] / N;
        squares += noise[i] * noise[i] / N;
        fourth += pow(noise[i], 4) / N;
        neighbours += noise[i] * noise[(i + 1) % N] / N;
    }
    /* five standard errors of each */
    assert_true(fabs(mean) < 5 / sqrt(N));
    assert_true(fabs(squares - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(fourth - 3) < 5 * sqrt(96.0 / N));
    assert_true(fabs(neighbours) < 5 / sqrt(N));
}

/* split: of a generated train, the records that train then lacks. */
static void test_split(void **state)
{
    (void)state;
    struct data_open o =
        data_open_train("type: generator, train: {name: adding_problem, size: 10, length: 10}, valid: {split: 0.3}",
                        MODEL_REGRESS, MSE);
    struct sl_dataset *valid = data_open_split(&o, SL_SPLIT_VALID);
    assert_int_equal(sl_dataset_get_records(o.train), 7);
    assert_int_equal(sl_dataset_get_records(valid), 3);
    struct data_open whole =
        data_open_train("type: generator, train: {name: adding_problem, size: 10, length: 10}", MODEL_REGRESS, MSE);
    struct sl_batcher *a = data_batcher(valid, SL_BATCHING_PREDICT, 1, 3, 0);
    struct sl_batcher *b = data_batcher(whole.train, SL_BATCHING_PREDICT, 1, 7, 0);
    sl_batch_destroy(data_next(b));
    struct sl_batch *x = data_next(a), *y = data_next(b);
    assert_memory_equal(x->target.values, y->target.values, 12);
    assert_memory_equal(x->input.values, y->input.values, (size_t)x->axis.rows * 8);
    sl_batch_destroy(x);
    sl_batch_destroy(y);
    sl_batcher_close(a);
    sl_batcher_close(b);
    sl_dataset_close(valid);
    data_close(&o);
    data_close(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adding_problem),
        cmocka_unit_test(test_determinism),
        cmocka_unit_test(test_copy_and_reverse),
        cmocka_unit_test(test_sine),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
