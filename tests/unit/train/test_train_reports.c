/* SPDX-License-Identifier: Apache-2.0 */
/* When the loop reports, validates and ends an epoch, and what it says then. */
#include "oom.h"
#include "train_plain.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_in_seconds_count_validations),
        cmocka_unit_test(speeds_are_of_their_interval),
        cmocka_unit_test(reports_begin_anew),
        cmocka_unit_test(epochs_end_with_their_last_batch),
        unit_test_ahead(reports_begin_anew),
        unit_test_ahead(epochs_end_with_their_last_batch),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
