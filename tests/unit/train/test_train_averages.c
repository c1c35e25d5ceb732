/* SPDX-License-Identifier: Apache-2.0 */
/* Averages of the weights. */
#include "oom.h"
#include "train_plain.h"
#include "train/average.h"

static void averages(void **state)
{
    (void)state;
    struct fake_params fake;
    struct sl_exec exec = {.params = &fake.params, .training = true};
    struct sl_average average;
    fake_params_init(&fake);
    assert_int_equal(sl_average_init(&average, SL_AVERAGE_EMA, 0.75, &fake.params, NULL, NULL), SEQLSTM_OK);
    fake.values[0] = 8;
    assert_int_equal(sl_average_update(&average, &exec, NULL), SEQLSTM_OK); /* not active: nothing */
    sl_average_swap(&average);
    ASSERT_NEAR(fake.values[0], 8, 0);
    sl_average_start(&average);
    fake.values[0] = 4;
    assert_int_equal(sl_average_update(&average, &exec, NULL), SEQLSTM_OK);
    uint64_t version = fake.params.version;
    sl_average_swap(&average);
    ASSERT_NEAR(fake.values[0], 7, 1e-6);
    ASSERT_NEAR(fake.values[24], 3, 0); /* frozen ones are never swapped */
    assert_true(fake.params.version > version);
    sl_average_swap(&average);
    ASSERT_NEAR(fake.values[0], 4, 0);
    sl_average_deinit(&average);

    assert_int_equal(sl_average_init(&average, SL_AVERAGE_MEAN, 0, &fake.params, NULL, NULL), SEQLSTM_OK);
    sl_average_start(&average);
    for (int i = 0; i < 4; i++) {
        fake.values[0] = (float)i;
        assert_int_equal(sl_average_update(&average, &exec, NULL), SEQLSTM_OK);
    }
    ASSERT_NEAR(average.values[0], (4 + 0 + 1 + 2 + 3) / 5.0, 1e-6);
    sl_average_deinit(&average);
    struct sl_memory memory = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char expected[80];
    oom_fail_at(1);
    assert_int_equal(sl_average_init(&average, SL_AVERAGE_EMA, 0.5, &fake.params, &memory, &err), SEQLSTM_NO_MEMORY);
    assert_true(oom_disarm());
    snprintf(expected, sizeof expected, "no memory for %lld bytes of averaged weights",
             4 * (long long)fake.params.elems);
    assert_string_equal(err.message, expected);
    assert_int_equal(memory.live_bytes, 0);
}

/* Weights and averages are exchanged part by part. */
static void many_weights_are_exchanged(void **state)
{
    (void)state;
    enum { ELEMS = 2500, FROZEN = 10 };
    static float values[ELEMS + FROZEN];
    struct sl_params params = {.values = values, .elems = ELEMS + FROZEN, .trainable_elems = ELEMS};
    struct sl_average average;
    assert_int_equal(sl_average_init(&average, SL_AVERAGE_EMA, 0.5, &params, NULL, NULL), SEQLSTM_OK);
    for (int i = 0; i < ELEMS + FROZEN; i++)
        values[i] = (float)i;
    sl_average_start(&average);
    for (int i = 0; i < ELEMS + FROZEN; i++)
        values[i] = (float)-i;
    for (int swaps = 1; swaps <= 2; swaps++) {
        sl_average_swap(&average);
        for (int i = 0; i < ELEMS + FROZEN; i++)
            assert_true(values[i] == (float)(swaps == 1 && i < ELEMS ? i : -i));
    }
    sl_average_deinit(&average);
}

static void non_monotone_averaging_begins(void **state)
{
    (void)state;
    struct world *world = make_plain();
    struct sl_train_config *train = &world->model.train;
    train->optimizer = (struct sl_optimizer){.kind = SL_OPTIMIZER_NT_ASGD, .learning_rate = 0.9, .patience = 2};
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
    train->updates = 60;
    train->epochs = 0;
    run(world);
    float averaged = world->params.values[1];
    free(world);
    world = make_plain();
    world->model.train.optimizer.learning_rate = 0.9;
    world->model.train.updates = 60;
    world->model.train.epochs = 0;
    run(world);
    assert_true(averaged != world->params.values[1]);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages),
        cmocka_unit_test(many_weights_are_exchanged),
        cmocka_unit_test(non_monotone_averaging_begins),
        unit_test_ahead(non_monotone_averaging_begins),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
