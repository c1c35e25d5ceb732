/* SPDX-License-Identifier: Apache-2.0 */
/* What batches take is learnt from those that were computed; and of the many that wait, a batch takes a part. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oom.h"
#include "serve/compute/runner.h"

/* ---- what batches take ------------------------------------------------------------------------------------- */

static const double batch_ns = 80e3, step_ns = 3e3, row_ns = 25e3;

static double take_ns(int64_t steps, int64_t rows)
{
    return batch_ns + step_ns * (double)steps + row_ns * (double)rows;
}

static void expect_near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%g, expected %g", got, wanted);
}

/* Batches of 1 to `widest` sequences; each hundredth is disturbed for 5 ms. */
static void note_batches(struct sl_batch_costs *costs, int count, int64_t widest, bool disturbed)
{
    for (int k = 0; k < count; k++) {
        const int64_t width = 1 + (k * 7) % widest, steps = 5 + (k * 13) % 40, rows = steps + (width - 1) * (steps / 2);
        const double more = disturbed && k % 100 == 0 ? 5e6 : 0;
        sl_batch_costs_note(costs, steps, rows, take_ns(steps, rows) + more);
    }
}

static void costs_are_learnt_from_batches(void **state)
{
    (void)state;
    for (int disturbed = 0; disturbed < 2; disturbed++) {
        struct sl_batch_costs costs = {.ns = {0}};
        note_batches(&costs, 3000, 16, disturbed);
        const double tolerance = disturbed ? 0.1 : 1e-3;
        expect_near(costs.ns[SL_COST_OF_BATCH], batch_ns, tolerance * batch_ns);
        expect_near(costs.ns[SL_COST_OF_STEP], step_ns, 2 * tolerance * step_ns);
        expect_near(costs.ns[SL_COST_OF_ROW], row_ns, tolerance * row_ns);
    }
}

static void newer_batches_count_more(void **state)
{
    struct sl_batch_costs costs = {.ns = {0}};
    (void)state;
    for (int k = 0; k < 20000; k++) {
        const int64_t steps = 5 + (k * 13) % 40, rows = steps * (1 + (k * 7) % 16);
        sl_batch_costs_note(&costs, steps, rows, (k < 10000 ? 1 : 2) * take_ns(steps, rows));
    }
    expect_near(costs.ns[SL_COST_OF_ROW], 2 * row_ns, 0.02 * row_ns);
    expect_near(costs.ns[SL_COST_OF_BATCH], 2 * batch_ns, 0.02 * batch_ns);
}

/* ---- how many are computed --------------------------------------------------------------------------------- */

static void all_are_computed_until_rows_are_known(void **state)
{
    struct sl_batch_costs costs = {.ns = {0}};
    (void)state;
    assert_int_equal(sl_batch_costs_choose(&costs, 100, 30, 2000), 100);
    note_batches(&costs, 1000, 1, false); /* a sequence at a time: its steps may be dear or its rows */
    assert_int_equal(sl_batch_costs_choose(&costs, 100, 30, 2000), 100);
    note_batches(&costs, 100, 16, false);
    assert_in_range(sl_batch_costs_choose(&costs, 100, 30, 2000), 5, 40);
}

static void a_part_follows_the_costs(void **state)
{
    /* A = 100, B = 10 for 10 rows each: 2.5 sqrt(2 n 10) */
    const struct sl_batch_costs costs = {.ns = {60, 2, 1}}, steps_alone = {.ns = {0, 5, 1}},
                                rows_alone = {.ns = {0, 0, 1}}, rows_most = {.ns = {0.5, 0, 1}};
    (void)state;
    assert_int_equal(sl_batch_costs_choose(&costs, 1000, 20, 10000), 354);
    assert_int_equal(sl_batch_costs_choose(&steps_alone, 1000, 20, 10000), 354);
    assert_int_equal(sl_batch_costs_choose(&costs, 200, 20, 2000), 159);
    assert_int_equal(sl_batch_costs_choose(&costs, 200, 20, 8000), 80);
    assert_int_equal(sl_batch_costs_choose(&costs, 125, 20, 1250), 125);
    assert_int_equal(sl_batch_costs_choose(&costs, 100, 20, 1000), 100); /* 112 do not wait */
    for (int64_t count = 0; count <= 4; count++)                         /* a few are computed at once */
        assert_int_equal(sl_batch_costs_choose(&rows_alone, count, 20, 10 * count), count);
    assert_int_equal(sl_batch_costs_choose(&rows_alone, 5, 20, 50), 4);
    assert_int_equal(sl_batch_costs_choose(&rows_most, 6, 20, 60), 4); /* not the 2 of the formula */
    assert_int_equal(sl_batch_costs_choose(&costs, 9, 0, 0), 9);       /* sequences without steps */
}

/* ---- a worker ---------------------------------------------------------------------------------------------- */

enum { WAITING = 200, SEQUENCES = 180 };

/* With how many of the jobs that wait, of one sequence each, does a worker begin that has `running` sequences of 10
 * steps in progress? `goes_on`: one of them writes a text. */
static int64_t count_wanted(enum sl_serve_batching batching, int64_t running, int64_t job_rows, bool goes_on)
{
    struct sl_serving serving = {.batching = batching};
    const struct sl_served_model model = {.sequences = SEQUENCES, .streams = true};
    struct sl_job job = {.model = &model, .count = 1, .rows = job_rows}, last = job, begun = {.model = &model};
    struct sl_running sequences[SEQUENCES];
    struct sl_runner runner = {.serving = &serving, .model = &model, .running = sequences, .count = running};
    runner.costs = (struct sl_batch_costs){.ns = {100, 0, 1}};
    last.goes_on = goes_on;
    for (int64_t k = 0; k < running; k++)
        sequences[k] = (struct sl_running){.job = &begun, .left = 10};
    int64_t wanted = 0;
    for (int round = 0; round < 2; round++) { /* the second knows nothing of the first */
        for (int k = 0; k < WAITING; k++)
            sl_runner_look(&runner, k == WAITING - 1 ? &last : &job);
        sl_runner_choose(&runner);
        for (wanted = 0; sl_runner_wants(&runner, &job); wanted++)
            runner.promised = wanted + 1;
        runner.promised = 0;
    }
    return wanted;
}

static void a_worker_begins_with_a_part(void **state)
{
    (void)state;
    assert_int_equal(count_wanted(SL_BATCHING_STEPS, 0, 10, false), 159);  /* 2.5 sqrt(2 * 200 * 10) = 158.1 */
    assert_int_equal(count_wanted(SL_BATCHING_STEPS, 50, 10, false), 127); /* 250 run or wait: 176.8 in all */
    assert_int_equal(count_wanted(SL_BATCHING_STEPS, 180, 10, false), 0);
    assert_int_equal(count_wanted(SL_BATCHING_STEPS, 0, 0, false), SEQUENCES);
}

static void texts_and_padded_batches_take_all(void **state)
{
    (void)state;
    assert_int_equal(count_wanted(SL_BATCHING_STEPS, 0, 10, true), SEQUENCES);
    assert_int_equal(count_wanted(SL_BATCHING_STEPS, 30, 10, true), SEQUENCES - 30);
    assert_int_equal(count_wanted(SL_BATCHING_PADDED, 0, 10, false), SEQUENCES);
}

/* A request of no sequences is answered, too. */
static void an_empty_job_is_begun(void **state)
{
    struct sl_serving serving = {.batching = SL_BATCHING_STEPS};
    const struct sl_served_model model = {.sequences = SEQUENCES};
    const struct sl_job job = {.model = &model};
    struct sl_runner runner = {.serving = &serving, .model = &model};
    (void)state;
    sl_runner_look(&runner, &job);
    sl_runner_choose(&runner);
    assert_true(sl_runner_wants(&runner, &job));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_learnt_from_batches),
        cmocka_unit_test(newer_batches_count_more),
        cmocka_unit_test(all_are_computed_until_rows_are_known),
        cmocka_unit_test(a_part_follows_the_costs),
        cmocka_unit_test(a_worker_begins_with_a_part),
        cmocka_unit_test(texts_and_padded_batches_take_all),
        cmocka_unit_test(an_empty_job_is_begun),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
