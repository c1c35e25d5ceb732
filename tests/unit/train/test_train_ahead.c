/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that are started while the one before is under way: what is due between two of them comes first, whatever it
 * is, and the weights are those of updates made one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "oom.h"
#include "temporary.h"

static char root[TEMPORARY_BYTES];

#include "train_world.h"

static int make_root(void **state)
{
    oom_group_begin(state);
    return mkdtemp(temporary_template(root, "ahead")) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return oom_group_end(state) == 0 && system(command) == 0 ? 0 : -1;
}

enum { UPDATES = 24, DUE_MOST = 64 };

/* The updates after which something happened. */
static struct {
    int64_t checkpoints[DUE_MOST], validations[DUE_MOST], reports[DUE_MOST];
    int checkpoint_count, validation_count, report_count;
} seen;

static void note_checkpoint(void *context, const struct sl_train_report *report)
{
    (void)context;
    seen.checkpoints[seen.checkpoint_count++] = report->progress.updates;
}

static void note_validation(void *context, const struct sl_train_report *report)
{
    (void)context;
    seen.validations[seen.validation_count++] = report->progress.updates;
}

static void note_report(void *context, const struct sl_train_report *report)
{
    (void)context;
    seen.reports[seen.report_count++] = report->progress.updates;
}

/* Epochs of eight updates; nothing is on that steps started ahead would wait for. */
static struct world *make_world(const char *name)
{
    struct world *world = world_create(name);
    struct sl_train_config *train = &world->model.train;
    world->train.batches = 8;
    train->accumulate = 1;
    train->epochs = 0;
    train->updates = UPDATES;
    train->schedule = (struct sl_schedule){.kind = SL_SCHEDULE_CONSTANT};
    train->early_stopping.enabled = train->ema.enabled = false;
    train->validate.every.unit = train->checkpoint.every.unit = world->model.log.every.unit = SL_PERIOD_NONE;
    train->checkpoint.keep_best = 0;
    world->request.observer.on_checkpoint = note_checkpoint;
    world->request.observer.on_validation = note_validation;
    world->request.observer.on_report = note_report;
    memset(&seen, 0, sizeof seen);
    return world;
}

static struct sl_train_result run_world(struct world *world)
{
    struct sl_trainer *trainer = NULL;
    struct sl_train_result result;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (sl_trainer_create(&world->request, &trainer, &err) != SEQLSTM_OK ||
        sl_trainer_run(trainer, &result, &err) != SEQLSTM_OK)
        fail_msg("%s", err.message);
    sl_trainer_destroy(trainer);
    assert_int_equal(result.end, SL_END_UPDATES);
    assert_int_equal(result.progress.updates, UPDATES);
    assert_int_equal(world->steps, UPDATES);
    return result;
}

/* After each `every` updates, and `last`: after the last one of the run in any case. */
static void expect_due(const char *what, int every, bool last, const int64_t *got, int count)
{
    int due = 0;
    for (int64_t update = 1; update <= UPDATES; update++) {
        if (update % every != 0 && !(last && update == UPDATES))
            continue;
        if (due >= count || got[due] != update)
            fail_msg("%s every %d updates, %sahead: not after update %lld", what, every, goes_ahead ? "" : "not ",
                     (long long)update);
        due++;
    }
    if (due != count)
        fail_msg("%s every %d updates: %d too many", what, every, count - due);
}

/* Of three things that fall due in periods of their own, each does after the right updates. */
static void what_is_due_is_done(void **state)
{
    static const int periods[][3] = {{3, 5, 2},  {5, 3, 7},   {1, 24, 4}, {24, 1, 5},
                                     {7, 24, 1}, {8, 25, 24}, {5, 25, 24}};
    (void)state;
    for (size_t k = 0; k < sizeof periods / sizeof *periods; k++) {
        char name[16];
        snprintf(name, sizeof name, "due-%d", (int)k);
        struct world *world = make_world(name);
        world->model.train.checkpoint.every = (struct sl_period){SL_PERIOD_UPDATES, periods[k][0]};
        world->model.train.validate.every = (struct sl_period){SL_PERIOD_UPDATES, periods[k][1]};
        world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, periods[k][2]};
        run_world(world);
        expect_due("checkpoints", periods[k][0], true, seen.checkpoints, seen.checkpoint_count);
        expect_due("validations", periods[k][1], true, seen.validations, seen.validation_count);
        expect_due("reports", periods[k][2], false, seen.reports, seen.report_count);
        assert_true(!goes_ahead || periods[k][0] < 5 || periods[k][1] < 5 || world->exec.ahead.most > 10);
        free(world);
    }
}

/* The averages of NT-ASGD take each update in turn. */
static void averages_take_each_update(void **state)
{
    struct fake_params params[2];
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct world *world = make_world(ahead ? "average-ahead" : "average");
        world->exec.ahead.possible = ahead;
        world->model.train.metrics.count = world->model.train.validate.metrics.count = 1;
        world->model.train.optimizer =
            (struct sl_optimizer){.kind = SL_OPTIMIZER_NT_ASGD, .learning_rate = 0.9, .patience = 1};
        world->model.train.validate.every = (struct sl_period){SL_PERIOD_UPDATES, 4};
        assert_true(run_world(world).averaged);
        assert_true(ahead == 0 || world->exec.ahead.most > 0);
        params[ahead] = world->params;
        free(world);
    }
    assert_memory_equal(params[0].values, params[1].values, sizeof params[0].values);
}

/* The masks of dropped weights stay for all segments of a batch, and change with the batch. */
static void segments_of_a_batch_share_their_masks(void **state)
{
    enum { SEGMENTS = 3, BATCHES = 9 };
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct world *world = make_world(ahead ? "masks-ahead" : "masks");
        world->exec.ahead.possible = ahead;
        world->model.train.metrics.count = world->model.train.validate.metrics.count = 1;
        world->model.data.batching = (struct sl_batching){.unit = SL_UNIT_SEQUENCE, .bptt = 3};
        world->train.stream = world->valid.stream = false;
        world->train.segments = SEGMENTS;
        world->train.batches = BATCHES;
        run_world(world);
        assert_int_equal(world->exec.runs, SEGMENTS * UPDATES);
        assert_true(ahead == 0 || world->exec.ahead.most > 0);
        for (int i = 0; i < SEGMENTS * UPDATES; i++)
            assert_int_equal(world->exec.mask_steps[i], i % BATCHES / SEGMENTS * SEGMENTS);
        free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_due_is_done),
        cmocka_unit_test(averages_take_each_update),
        cmocka_unit_test(segments_of_a_batch_share_their_masks),
        unit_test_ahead(what_is_due_is_done),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
