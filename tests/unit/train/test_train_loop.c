/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the loop: normalisers, shards, weights. */
#include "oom.h"
#include "train_plain.h"

static void it_learns(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->model.train.validate.every.unit = world->model.train.checkpoint.every.unit = SL_PERIOD_NONE;
    world->model.train.epochs = 300;
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_EPOCHS);
    assert_int_equal(result.progress.tokens, 300 * 7 * 11);
    ASSERT_NEAR(world->params.values[1], 2, 0.1);
    ASSERT_NEAR(world->params.values[2], 3, 0.1);
    assert_true(sl_metric_values_get(&result.valid, SL_METRIC_LOSS) < 0.05); /* the states are noise to it */
    assert_true(result.loss_scale == 1);                                     /* it was not scaled */
    assert_int_equal(world->exec.last_update, 2100);
    assert_int_equal(world->exec.ahead.most, goes_ahead ? 300 * 6 : 0); /* an epoch's first update waits for the last */
    free(world);
}

/* One rank with 3 shards, and with more shards than sequences, of sequences and of streams with carried states: after
 * seven updates the weights are those without shards, but for rounding. */
static void shards_change_only_rounding(void **state)
{
    (void)state;
    const struct sl_data_facts facts = {.records = 20, .rows = 100};
    for (int stream = 0; stream < 2; stream++) {
        float whole[FAKE_ELEMS];
        for (int32_t shards = 0; shards <= 6; shards += 3) {
            struct world *world = make_plain();
            const struct sl_parallel_config config = {.data = 1, .shards = shards};
            struct sl_ranks ranks;
            world->model.train.epochs = 1;
            world->request.facts = &facts;
            if (stream)
                world->model.data.batching.unit = SL_UNIT_STREAM;
            world->train.stream = world->valid.stream = stream;
            assert_int_equal(sl_ranks_init(&ranks, NULL, &config, NULL, NULL), SEQLSTM_OK);
            world->request.ranks = shards > 0 ? &ranks : NULL;
            run(world);
            if (shards == 0)
                memcpy(whole, world->params.values, sizeof whole);
            for (int i = 0; i < FAKE_ELEMS; i++)
                ASSERT_NEAR(world->params.values[i], whole[i], 1e-5);
            free(world);
        }
        assert_true(whole[0] != 0);
    }
}

static void normalisers(void **state)
{
    (void)state;
    /* mean: one over the weights of all batches of the update */
    struct world *world = make_plain();
    world->model.train.accumulate = 3;
    world->model.train.updates = 1;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / 33, 0);
    assert_int_equal(world->exec.accumulated, 3);
    free(world);
    /* sequence_mean: one over the sequences of all batches */
    world = make_plain();
    world->model.train.accumulate = 3;
    world->model.train.updates = 1;
    world->model.train.loss.reduction = SL_REDUCTION_SEQUENCE_MEAN;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / 12, 0);
    free(world);
    /* step_mean: one over the steps of mean batches, whatever is in these */
    const struct sl_data_facts facts = {.records = 20, .rows = 100};
    world = make_plain();
    world->request.facts = &facts;
    world->model.train.accumulate = 3;
    world->model.train.updates = 1;
    world->model.train.loss.reduction = SL_REDUCTION_STEP_MEAN;
    world->model.data.batch_size = 4;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / (3 * 4 * 100 / 20), 0);
    /* with max_tokens the rows of an epoch of seven batches count */
    world->model.data.batching.max_tokens = 16;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1 / (3 * 100.0 / 7), 1e-17);
    free(world);
    /* a stream's segments are of the same sequences */
    world = make_plain();
    world->model.data.batching.unit = SL_UNIT_STREAM;
    world->train.stream = true;
    world->model.train.accumulate = 2;
    world->model.train.updates = 2;
    world->model.train.loss.reduction = SL_REDUCTION_SEQUENCE_MEAN;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / 4, 0);
    free(world);
    /* the segments of a batch are one update, and its sequences count once */
    world = make_plain();
    world->model.data.batching.bptt = 3;
    world->train.segments = 3;
    world->train.batches = 6;
    world->model.train.loss.reduction = SL_REDUCTION_SEQUENCE_MEAN;
    world->model.train.epochs = 2;
    struct sl_train_result result = run(world);
    assert_int_equal(result.progress.updates, 4);
    assert_int_equal(world->exec.accumulated, 3);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / 4, 0);
    world->model.train.accumulate = 2;
    result = run(world);
    assert_int_equal(result.progress.updates, 2);
    assert_int_equal(world->exec.accumulated, 6);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / 8, 0);
    /* step_mean counts batches by their sequences, or else segments by the rows of an epoch of six */
    world->request.facts = &facts;
    world->model.train.loss.reduction = SL_REDUCTION_STEP_MEAN;
    world->model.data.batch_size = 4;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1.0 / (2 * 4 * 100 / 20), 0);
    world->model.data.batching.max_tokens = 16;
    run(world);
    ASSERT_NEAR(world->exec.last_normaliser, 1 / (6 * 100.0 / 6), 1e-17);
    free(world);
}

static void an_update_without_weight_changes_nothing(void **state)
{
    (void)state;
    static const enum sl_loss_reduction reductions[] = {SL_REDUCTION_MEAN, SL_REDUCTION_SEQUENCE_MEAN};
    for (int r = 0; r < 2; r++) {
        struct world *world = make_plain();
        world->train.ignored = 2;
        world->model.train.loss.reduction = reductions[r];
        float before[FAKE_ELEMS];
        memcpy(before, world->params.values, sizeof before);
        world->model.train.updates = 5;
        struct sl_train_result result = run(world);
        assert_int_equal(result.end, SL_END_DIVERGED);
        assert_string_equal(result.reason, "the loss of the last epoch is not a number: no row counts, because all "
                                           "have weight 0 or no target");
        assert_int_equal(result.progress.updates, 5);
        assert_memory_equal(before, world->params.values, sizeof before);
        assert_int_equal(world->exec.last_update, 0);
        assert_true(world->exec.last_normaliser == 0);
        assert_true(isnan(sl_metric_values_get(&result.train, SL_METRIC_LOSS)));
        free(world);
    }
}

/* A sum at which Adagrad's squares begin. */
static void adagrad_begins_at_its_accumulator(void **state)
{
    (void)state;
    struct world *world = make_plain();
    struct sl_trainer *trainer = NULL;
    world->model.train.optimizer = (struct sl_optimizer){.kind = SL_OPTIMIZER_ADAGRAD, .initial_accumulator = 0.1};
    assert_int_equal(sl_trainer_create(&world->request, &trainer, NULL), SEQLSTM_OK);
    ASSERT_NEAR(world->params.m[0], 0.1, 1e-7);
    ASSERT_NEAR(world->params.m[16], 0.1, 1e-7);
    sl_trainer_destroy(trainer);
    free(world);
}

/* No memory at any call: an error, and nothing leaks (the sanitizers tell). */
static void allocations_fail(void **state)
{
    (void)state;
    for (int n = 1;; n++) {
        struct world *world = world_create("x");
        world->request.folder = NULL;
        world->model.train.epochs = 1;
        struct sl_trainer *trainer = NULL;
        struct sl_train_result result;
        oom_fail_at(n);
        seqlstm_status status = sl_trainer_create(&world->request, &trainer, NULL);
        if (status == SEQLSTM_OK)
            status = sl_trainer_run(trainer, &result, NULL);
        bool failed = oom_disarm();
        sl_trainer_destroy(trainer);
        free(world);
        if (!failed) {
            assert_int_equal(status, SEQLSTM_OK);
            break;
        }
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns),
        cmocka_unit_test(shards_change_only_rounding),
        cmocka_unit_test(normalisers),
        cmocka_unit_test(an_update_without_weight_changes_nothing),
        cmocka_unit_test(adagrad_begins_at_its_accumulator),
        cmocka_unit_test(allocations_fail),
        unit_test_ahead(it_learns),
        unit_test_ahead(normalisers),
        unit_test_ahead(an_update_without_weight_changes_nothing),
        unit_test_ahead(allocations_fail),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
