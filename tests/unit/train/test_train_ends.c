/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a run before its last epoch: early stopping with the best weights, and time. */
#include "train_plain.h"

/* The rate is so large that the loss gets worse: the best weights are those of the first validations. `averaged`: the
 * validations, and so the best weights, are those of the moving average. */
static void check_restored(bool averaged)
{
    struct world *world = make_plain();
    struct sl_train_config *train = &world->model.train;
    const struct sl_ema ema = {.enabled = averaged, .decay = 0.5};
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
    train->early_stopping = (struct sl_early_stopping){
        .enabled = true, .monitor = "valid.loss", .patience = 4, .min_delta = 0, .restore_best = true};
    train->schedule =
        (struct sl_schedule){.kind = SL_SCHEDULE_EXPONENTIAL, .factor = 3, .every = {SL_PERIOD_UPDATES, 1}};
    train->epochs = 1000;
    train->ema = ema;
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_EARLY_STOPPING);
    assert_int_equal(world->validations, result.progress.updates);
    int64_t best = result.progress.updates - 4;
    double loss = sl_metric_values_get(&result.valid, SL_METRIC_LOSS);
    assert_true(result.restored && !result.averaged);
    assert_int_equal(result.best_update, best);
    ASSERT_NEAR(result.best_epochs, (double)best / 7, 1e-5);
    struct fake_params got = world->params;
    free(world);
    /* The same run, ended at the best update, has these weights and this loss. */
    world = make_plain();
    world->model.train.updates = best;
    world->model.train.schedule =
        (struct sl_schedule){.kind = SL_SCHEDULE_EXPONENTIAL, .factor = 3, .every = {SL_PERIOD_UPDATES, 1}};
    world->model.train.ema = ema;
    result = run(world);
    assert_true(result.averaged == averaged);
    assert_memory_equal(got.values, world->params.values, sizeof got.values);
    ASSERT_NEAR(sl_metric_values_get(&result.valid, SL_METRIC_LOSS), loss, 0);
    free(world);
}

static void early_stopping_restores_the_best(void **state)
{
    (void)state;
    check_restored(false);
    check_restored(true);
}

static int64_t tick(void *context)
{
    int64_t *now = context;
    return *now += 1000000000;
}

static void time_ends_a_run(void **state)
{
    (void)state;
    struct world *world = make_plain();
    int64_t now = 0;
    world->request.clock_ns = tick;
    world->request.clock_context = &now;
    world->request.valid = NULL;
    world->request.evaluate = NULL;
    world->model.train.max_time = (struct sl_period){SL_PERIOD_SECONDS, 4};
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_TIME);
    assert_int_equal(result.progress.updates, 3); /* the clock was read once before the loop */
    assert_false(result.has_valid);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_stopping_restores_the_best),
        cmocka_unit_test(time_ends_a_run),
        unit_test_ahead(early_stopping_restores_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
