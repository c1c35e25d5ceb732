/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's arithmetic and its ends: normalisers, limits, averages, divergence, early stopping, time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"
#include "train/average.h"

static char root[] = "/nonexistent";

#include "train_world.h"

#define ASSERT_NEAR(got, want, tolerance)                                                                              \
    do {                                                                                                               \
        double got_ = (got), want_ = (want);                                                                           \
        if (!(fabs(got_ - want_) <= (tolerance)))                                                                      \
            fail_msg("line %d: %.17g, expected %.17g", __LINE__, got_, want_);                                         \
    } while (0)

/* A plain run without files: ten epochs of seven batches, no extras. */
static struct world *make_plain(void)
{
    struct world *world = world_create("x");
    struct sl_train_config *train = &world->model.train;
    world->request.folder = NULL;
    world->train.ignored = 0;
    world->model.data.batching = (struct sl_batching){.unit = SL_UNIT_SEQUENCE};
    world->train.stream = world->valid.stream = false;
    world->model.log.every.unit = SL_PERIOD_NONE;
    train->schedule = (struct sl_schedule){.kind = SL_SCHEDULE_CONSTANT};
    train->accumulate = 1;
    train->clip_norm = 0;
    train->early_stopping.enabled = false;
    train->ema.enabled = false;
    train->checkpoint.keep_best = 0;
    for (int i = 0; i < 2; i++)
        world->params.views[i].regularizer = (struct sl_regularizer){0, 0};
    return world;
}

static struct sl_train_result run(struct world *world)
{
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_trainer_create(&world->request, &trainer, &err) != SEQLSTM_OK ||
        sl_trainer_run(trainer, &result, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    sl_trainer_destroy(trainer);
    return result;
}

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
            sl_ranks_init(&ranks, NULL, &config, NULL);
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
    free(world);
}

static void an_update_without_weight_changes_nothing(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->train.ignored = 2;
    float before[FAKE_ELEMS];
    memcpy(before, world->params.values, sizeof before);
    world->model.train.updates = 5;
    struct sl_train_result result = run(world);
    assert_int_equal(result.end, SL_END_DIVERGED);
    assert_string_equal(result.reason, "the loss of the last epoch is not a number: no row counts, because all have "
                                       "weight 0 or no target");
    assert_int_equal(result.progress.updates, 5);
    assert_memory_equal(before, world->params.values, sizeof before);
    assert_int_equal(world->exec.last_update, 0);
    assert_true(isnan(sl_metric_values_get(&result.train, SL_METRIC_LOSS)));
    free(world);
}

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
    oom_fail_at(1);
    assert_int_equal(sl_average_init(&average, SL_AVERAGE_EMA, 0.5, &fake.params, &memory, NULL), SEQLSTM_NO_MEMORY);
    assert_true(oom_disarm());
    assert_int_equal(memory.live_bytes, 0);
}

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

/* An update takes a second and a validation nine: what is due every ten seconds is due at every second update or
 * so, also if those ten seconds ended during a validation. */
static int64_t count_work(void *context)
{
    const struct world *world = context;
    return INT64_C(1000000000) * (world->exec.runs + 3 * world->evaluate.runs);
}

static void periods_in_seconds_count_validations(void **state)
{
    (void)state;
    struct world *world = make_plain();
    struct sl_train_config *train = &world->model.train;
    world->request.clock_ns = count_work;
    world->request.clock_context = world;
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
    world->model.log.every = (struct sl_period){SL_PERIOD_SECONDS, 10};
    train->epochs = 4;
    struct sl_train_result result = run(world);
    assert_int_equal(world->validations, 4 * 7);
    ASSERT_NEAR(result.progress.seconds, 4 * 7 * 10, 0);
    assert_in_range(world->reports, 4 * 7 - 1, 4 * 7);
    free(world);
}

static void check_speed(void *context, const struct sl_train_report *report)
{
    ASSERT_NEAR(report->rows_per_second, 11, 1e-9);
    ((struct world *)context)->reports++;
}

/* Rows per second are those of the interval of a report, without the time of validations. */
static void speeds_are_of_their_interval(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->request.clock_ns = count_work;
    world->request.clock_context = world;
    world->request.observer.on_report = world->request.observer.on_step = check_speed;
    world->model.train.validate.every = (struct sl_period){SL_PERIOD_UPDATES, 5};
    world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, 2};
    world->model.train.epochs = 2;
    run(world);
    assert_int_equal(world->reports, 14 + 7);
    free(world);
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

static void check_report(void *context, const struct sl_train_report *report)
{
    ASSERT_NEAR(sl_metric_values_get(report->values, SL_METRIC_LOSS), report->loss, 1e-12);
    ((struct world *)context)->reports++;
}

/* A report is about what came after the one before. */
static void reports_begin_anew(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, 1};
    world->request.observer.on_report = check_report;
    run(world);
    assert_int_equal(world->reports, 5 * 7);
    free(world);
}

static void check_epochs(void *context, const struct sl_train_report *report)
{
    const struct world *world = context;
    const double epochs = report->progress.epochs;
    const bool at_end = report->progress.updates % world->train.batches == 0;
    assert_true(at_end ? epochs == floor(epochs) : epochs < (double)(report->progress.updates / 7 + 1));
    assert_true(at_end || floor(epochs) == (double)(report->progress.updates / 7));
    ((struct world *)context)->steps++;
}

/* The batches of an epoch are an estimate: that there are more of them does not make an epoch end. */
static void epochs_end_with_their_last_batch(void **state)
{
    (void)state;
    struct world *world = make_plain();
    world->train.estimate = 4;
    world->request.observer.on_step = check_epochs;
    world->model.train.epochs = 3;
    world->model.train.validate.every = (struct sl_period){SL_PERIOD_EPOCHS, 1};
    run(world);
    assert_int_equal(world->steps, 3 * 7);
    assert_int_equal(world->validations, 3);
    free(world);
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

static void wrong_requests_are_refused(void **state)
{
    (void)state;
    struct sl_trainer *trainer = NULL;
    struct world *world = make_plain();
    struct sl_train_config *train = &world->model.train;
    train->epochs = 0;
    assert_int_equal(sl_trainer_create(&world->request, &trainer, NULL), SEQLSTM_INVALID_CONFIG);
    train->epochs = 1;
    train->ema.enabled = true;
    train->optimizer.kind = SL_OPTIMIZER_NT_ASGD;
    train->optimizer.patience = 5;
    assert_int_equal(sl_trainer_create(&world->request, &trainer, NULL), SEQLSTM_INVALID_CONFIG);
    train->ema.enabled = false;
    train->optimizer.patience = 0;
    assert_int_equal(sl_trainer_create(&world->request, &trainer, NULL), SEQLSTM_INVALID_CONFIG);
    train->optimizer.kind = SL_OPTIMIZER_ADAM;
    train->checkpoint.keep_best = 17;
    assert_int_equal(sl_trainer_create(&world->request, &trainer, NULL), SEQLSTM_INVALID_CONFIG);
    free(world);
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
        cmocka_unit_test(averages),
        cmocka_unit_test(divergence_stops),
        cmocka_unit_test(divergence_skips),
        cmocka_unit_test(what_is_no_number_is_never_the_best),
        cmocka_unit_test(early_stopping_restores_the_best),
        cmocka_unit_test(time_ends_a_run),
        cmocka_unit_test(periods_in_seconds_count_validations),
        cmocka_unit_test(speeds_are_of_their_interval),
        cmocka_unit_test(skipped_updates_leave_no_state),
        cmocka_unit_test(epochs_end_with_their_last_batch),
        cmocka_unit_test(reports_begin_anew),
        cmocka_unit_test(non_monotone_averaging_begins),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(adagrad_begins_at_its_accumulator),
        cmocka_unit_test(allocations_fail),
        unit_test_ahead(it_learns),
        unit_test_ahead(normalisers),
        unit_test_ahead(an_update_without_weight_changes_nothing),
        unit_test_ahead(divergence_stops),
        unit_test_ahead(divergence_skips),
        unit_test_ahead(what_is_no_number_is_never_the_best),
        unit_test_ahead(early_stopping_restores_the_best),
        unit_test_ahead(skipped_updates_leave_no_state),
        unit_test_ahead(epochs_end_with_their_last_batch),
        unit_test_ahead(reports_begin_anew),
        unit_test_ahead(non_monotone_averaging_begins),
        unit_test_ahead(allocations_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
