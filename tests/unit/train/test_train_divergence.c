/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and gradients that are not finite: when a run stops, and what it skips. */
#include "oom.h"
#include "train_plain.h"
#include "train/trainer/state.h"

static void divergence_stops(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->exec.poison_at = 5;
    world->exec.poison_count = 1;
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_DIVERGED);
    assert_string_equal(result.reason, "the loss is not a number at update 5");
    assert_int_equal(result.progress.updates, 4);
    assert_int_equal(world->exec.last_update, 4);
    free(world);
    world = make_plain();
    world->exec.poison_grad_at = 3;
    world->exec.poison_count = 1;
    result = run(world);
    assert_int_equal(result.end, SL_END_DIVERGED);
    assert_string_equal(result.reason, "the norm of the gradient is infinite at update 3");
    for (int i = 0; i < FAKE_ELEMS; i++)
        assert_true(isfinite(world->params.values[i]));
    free(world);
}

static void divergence_skips(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
    world->exec.poison_at = 5;
    world->exec.poison_count = 3;
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_EPOCHS);
    assert_int_equal(result.skipped, 3);
    assert_int_equal(result.progress.updates, 35);
    assert_int_equal(world->exec.last_update, 32);
    assert_true(isfinite(sl_metric_values_get(&result.train, SL_METRIC_LOSS)));
    free(world);
    world = make_plain();
    world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
    world->model.train.epochs = 1000;
    world->exec.poison_grad_at = 5;
    world->exec.poison_count = 100000;
    result = run(world);
    assert_int_equal(result.end, SL_END_DIVERGED);
    assert_int_equal(result.skipped, 100);
    free(world);
    /* a hundred in all, but not in a row */
    world = make_plain();
    world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
    world->model.train.epochs = 30;
    world->exec.poison_at = 5;
    world->exec.poison_grad_at = 80;
    world->exec.poison_count = 60;
    result = run(world);
    assert_int_equal(result.end, SL_END_EPOCHS);
    assert_int_equal(result.skipped, 120);
    free(world);
    /* every update of the last epochs is skipped, but fewer than a hundred */
    world = make_plain();
    world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
    world->model.train.epochs = 5;
    world->exec.poison_at = 2;
    world->exec.poison_count = 100000;
    result = run(world);
    assert_int_equal(result.end, SL_END_DIVERGED);
    assert_string_equal(result.reason, "the loss of the last epoch is not a number; 34 of 35 updates were skipped");
    free(world);
}

/* `poison` is added to the loss of validations `from` (counted from 1) to `to`; the best weights are restored. */
static struct sl_train_result run_with_bad_validations(int from, int to, double poison)
{
    struct world *world = make_plain();
    struct sl_train_config *train = &world->model.train;
    train->epochs = 5;
    train->early_stopping = (struct sl_early_stopping){
        .enabled = true, .monitor = "valid.loss", .patience = 50, .min_delta = 0, .restore_best = true};
    train->validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
    train->checkpoint = (struct sl_checkpoint){.keep_best = 3, .monitor = "valid.loss", .mode = SL_MODE_MIN};
    const int batches = (int)world->valid.batches;
    world->evaluate.poison_at = 1 + (from - 1) * batches;
    world->evaluate.poison_count = (to - from + 1) * batches;
    world->evaluate.poison = poison;
    struct sl_train_result result = run(world);
    free(world);
    return result;
}

/* A validation that gives no number is never the best, not even the first; the run ends well only with a finite one. */
static void what_is_no_number_is_never_the_best(void **state)
{
    (void)state;
    const double poisons[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        struct sl_train_result result = run_with_bad_validations(1, 3, poisons[i]);
        assert_int_equal(result.end, SL_END_EPOCHS);
        assert_string_equal(result.reason, "");
        assert_true(result.restored);
        assert_in_range(result.best_update, 4 * 7, 5 * 7);
        assert_true(result.best_epochs == (double)(result.best_update / 7));
        assert_true(isfinite(sl_metric_values_get(&result.valid, SL_METRIC_LOSS)));
        result = run_with_bad_validations(3, 5, poisons[i]);
        assert_int_equal(result.end, SL_END_EPOCHS);
        assert_in_range(result.best_update, 7, 2 * 7);
        result = run_with_bad_validations(1, 5, poisons[i]);
        assert_int_equal(result.end, SL_END_DIVERGED);
        assert_false(result.restored);
        assert_string_equal(result.reason, isnan(poisons[i]) ? "the loss of the last validation is not a number"
                                                             : "the loss of the last validation is infinite");
    }
}

/* A last epoch of which every update is skipped is a bad end, but not of a run whose best weights came before it. */
static void the_best_weights_outlive_a_bad_epoch(void **state)
{
    (void)state;
    for (int restores = 0; restores < 2; restores++) {
        struct world *world = make_plain();
        struct sl_train_config *train = &world->model.train;
        train->epochs = 5;
        train->on_divergence = SL_DIVERGENCE_SKIP;
        train->validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
        train->early_stopping = (struct sl_early_stopping){
            .enabled = true, .monitor = "valid.loss", .patience = 50, .restore_best = restores};
        world->exec.poison_at = 4 * 7 + 1;
        world->exec.poison_count = 7;
        const struct sl_train_result result = run(world);
        assert_int_equal(result.skipped, 7);
        assert_int_equal(result.end, restores ? SL_END_EPOCHS : SL_END_DIVERGED);
        if (!restores)
            assert_string_equal(result.reason,
                                "the loss of the last epoch is not a number; 7 of 35 updates were skipped");
        assert_int_equal(result.restored, restores);
        assert_true(isfinite(sl_metric_values_get(&result.valid, SL_METRIC_LOSS)));
        free(world);
    }
}

/* Updates that were skipped are told where they are few and long ago, too. */
static void skipped_updates_are_told(void **state)
{
    (void)state;
    char expected[100];
    for (int skipped = 1; skipped <= 2; skipped++) {
        struct world *world = make_plain();
        struct sl_train_config *train = &world->model.train;
        const int batches = (int)world->valid.batches;
        train->epochs = 5;
        train->on_divergence = SL_DIVERGENCE_SKIP;
        train->validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
        world->exec.poison_at = 4;
        world->exec.poison_count = skipped;
        world->evaluate.poison_at = 1 + 4 * batches;
        world->evaluate.poison_count = batches;
        world->evaluate.poison = NAN;
        struct sl_train_result result = run(world);
        assert_int_equal(result.end, SL_END_DIVERGED);
        snprintf(expected, sizeof expected,
                 "the loss of the last validation is not a number; %d of 35 updates were skipped", skipped);
        assert_string_equal(result.reason, expected);
        free(world);
    }
}

/* A skipped update is one that was made: a validation behind it is of the last update, however many were applied. */
static void skipped_updates_are_made(void **state)
{
    (void)state;
    struct world *world = make_plain();
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result;
    world->model.train.epochs = 2;
    world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
    world->model.train.validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
    world->exec.poison_at = 4;
    world->exec.poison_count = 2;
    assert_int_equal(sl_trainer_create(&world->request, &trainer, NULL), SEQLSTM_OK);
    assert_int_equal(sl_trainer_run(trainer, &result, NULL), SEQLSTM_OK);
    assert_int_equal(trainer->state.updates, 14);
    assert_int_equal(trainer->state.applied, 12);
    assert_int_equal(trainer->state.validations, 2);
    assert_int_equal(trainer->state.validated_at, 14);
    sl_trainer_destroy(trainer);
    free(world);
}

/* A batch without a number spoils the whole update that it is a part of, whichever of its batches it is. */
static void one_bad_batch_spoils_its_update(void **state)
{
    (void)state;
    for (int bad = 1; bad <= 3; bad++) {
        struct world *world = make_plain();
        const struct fake_params before = world->params;
        world->model.train.accumulate = 3;
        world->model.train.updates = 1;
        world->model.train.epochs = 0;
        world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
        world->exec.poison_at = bad;
        world->exec.poison_count = 1;
        const struct sl_train_result result = run(world);
        assert_int_equal(result.skipped, 1);
        assert_int_equal(world->exec.last_update, 0);
        assert_memory_equal(world->params.values, before.values, sizeof before.values);
        assert_memory_equal(world->params.m, before.m, sizeof before.m);
        free(world);
    }
}

/* In a stream states are carried: what a skipped update leaves there must not spoil the next ones. */
static void skipped_updates_leave_no_state(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->model.data.batching.unit = SL_UNIT_STREAM;
    world->train.stream = true;
    world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
    world->exec.poison_at = 3; /* of an epoch of seven segments */
    world->exec.poison_count = 1;
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_EPOCHS);
    assert_int_equal(result.skipped, 1);
    free(world);
}

/* The state is cleared once, whether the next step has been started before the skip was known or not. */
static void skipped_updates_clear_the_state_once(void **state)
{
    (void)state;
    struct fake_params made[2];
    for (int ahead = 0; ahead < 2; ahead++) {
        goes_ahead = ahead == 1;
        struct world *world = make_plain();
        world->model.data.batching.unit = SL_UNIT_STREAM;
        world->train.stream = true;
        world->model.train.on_divergence = SL_DIVERGENCE_SKIP;
        world->model.train.epochs = 1;
        world->exec.poison_at = 5; /* nothing is due behind it */
        world->exec.poison_count = 1;
        const struct sl_train_result result = run(world);
        assert_int_equal(result.skipped, 1);
        assert_int_equal(world->exec.ahead.most > 0, ahead);
        made[ahead] = world->params;
        free(world);
    }
    goes_ahead = false;
    assert_memory_equal(made[0].values, made[1].values, sizeof made[0].values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divergence_stops),
        cmocka_unit_test(divergence_skips),
        cmocka_unit_test(what_is_no_number_is_never_the_best),
        cmocka_unit_test(the_best_weights_outlive_a_bad_epoch),
        cmocka_unit_test(skipped_updates_leave_no_state),
        cmocka_unit_test(skipped_updates_are_told),
        cmocka_unit_test(skipped_updates_are_made),
        cmocka_unit_test(one_bad_batch_spoils_its_update),
        cmocka_unit_test(skipped_updates_clear_the_state_once),
        unit_test_ahead(divergence_stops),
        unit_test_ahead(divergence_skips),
        unit_test_ahead(what_is_no_number_is_never_the_best),
        unit_test_ahead(skipped_updates_leave_no_state),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
