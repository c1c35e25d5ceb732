/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a run before its last epoch: early stopping with the best weights, and time; and before its first. */
#include "oom.h"
#include "train_plain.h"

#include "train/trainer/clock.h"

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

/* The time of a run is that since it was started or resumed; updates count from its beginning. */
static void the_time_of_earlier_starts_does_not_count(void **state)
{
    (void)state;
    struct sl_train_config config = {.updates = 50, .max_time = {SL_PERIOD_SECONDS, 10}};
    const struct sl_trainer trainer = {.config = &config, .seconds_before = 100};
    static const struct {
        int64_t updates;
        double seconds;
        bool over, ends;
    } cases[] = {{1, 105, false, false},
                 {1, 110, true, true},
                 {1, 200, true, true},
                 {49, 105, false, false},
                 {50, 105, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct sl_progress now = {.updates = cases[i].updates, .seconds = cases[i].seconds};
        assert_int_equal(sl_trainer_is_time_over(&trainer, &now), cases[i].over);
        assert_int_equal(sl_trainer_ends(&trainer, &now), cases[i].ends);
    }
    config.max_time.unit = SL_PERIOD_NONE;
    const struct sl_progress now = {.updates = 1, .seconds = 1000};
    assert_false(sl_trainer_ends(&trainer, &now));
}

static void expect_refused(const struct world *world, seqlstm_status expected, const char *message)
{
    struct sl_trainer *trainer = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = sl_trainer_create(&world->request, &trainer, &err);
    if (status != (message ? expected : SEQLSTM_OK) || (message && strcmp(err.message, message) != 0))
        fail_msg("%d %s, expected `%s`", (int)status, err.message, message ? message : "none");
    assert_true((trainer == NULL) == (message != NULL));
    sl_trainer_destroy(trainer);
}

/* Something must end a run; one average at most; lists have room. */
static void impossible_trainings_are_refused(void **state)
{
    (void)state;
    for (int row = 0; row < 8; row++) {
        struct world *world = make_plain();
        world->model.train.epochs = row & 1 ? 2 : 0;
        world->model.train.updates = row & 2 ? 3 : 0;
        world->model.train.max_time = (struct sl_period){row & 4 ? SL_PERIOD_SECONDS : SL_PERIOD_NONE, 5};
        expect_refused(world, SEQLSTM_INVALID_CONFIG,
                       row ? NULL : "nothing ends the training: set `epochs`, `updates` or `max_time`");
        free(world);
    }
    for (int row = 0; row < 4; row++) {
        struct world *world = make_plain();
        world->model.train.ema = (struct sl_ema){.enabled = row & 1, .decay = 0.5};
        world->model.train.optimizer.kind = row & 2 ? SL_OPTIMIZER_NT_ASGD : SL_OPTIMIZER_ADAM;
        world->model.train.optimizer.patience = 5;
        expect_refused(world, SEQLSTM_INVALID_CONFIG,
                       row == 3 ? "`ema` and the optimizer `nt_asgd` both average the weights" : NULL);
        free(world);
    }
    static const int64_t patiences[] = {-1, 0, 1, 64, 65};
    for (int i = 0; i < 5; i++) {
        struct world *world = make_plain();
        char message[100];
        snprintf(message, sizeof message, "the patience of nt_asgd is %d, it must be 1 to 64", (int)patiences[i]);
        world->model.train.optimizer.patience = patiences[i];
        expect_refused(world, SEQLSTM_INVALID_CONFIG, NULL); /* of another optimizer it means nothing */
        world->model.train.optimizer.kind = SL_OPTIMIZER_NT_ASGD;
        expect_refused(world, SEQLSTM_INVALID_CONFIG, patiences[i] < 1 || patiences[i] > 64 ? message : NULL);
        free(world);
    }
    for (int64_t more = 0; more < 2; more++) {
        struct world *world = make_plain();
        char message[100];
        world->model.train.checkpoint.keep_best = SL_KEEP_BEST_MOST + more;
        snprintf(message, sizeof message, "keep_best is %d, at most %d are kept", SL_KEEP_BEST_MOST + 1,
                 SL_KEEP_BEST_MOST);
        expect_refused(world, SEQLSTM_INVALID_CONFIG, more ? message : NULL);
        free(world);
    }
    for (int row = 0; row < 4; row++) {
        struct world *world = make_plain();
        if (row & 1)
            world->request.valid = NULL;
        if (row & 2)
            world->request.evaluate = NULL;
        expect_refused(world, SEQLSTM_INVALID_ARGUMENT,
                       row == 1 || row == 2 ? "`valid` and `evaluate` go together" : NULL);
        free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_stopping_restores_the_best),          cmocka_unit_test(time_ends_a_run),
        cmocka_unit_test(the_time_of_earlier_starts_does_not_count), cmocka_unit_test(impossible_trainings_are_refused),
        unit_test_ahead(early_stopping_restores_the_best),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
