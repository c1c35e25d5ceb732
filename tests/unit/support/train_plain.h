/* SPDX-License-Identifier: Apache-2.0 */
/* A training run over the small world of train_fake.h without files, and with nothing on that has a memory. */
#ifndef SL_TESTS_TRAIN_PLAIN_H
#define SL_TESTS_TRAIN_PLAIN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char root[] = "/nonexistent";

#include "train_world.h"

#define ASSERT_NEAR(got, want, tolerance)                                                                              \
    do {                                                                                                               \
        double got_ = (got), want_ = (want);                                                                           \
        if (!(fabs(got_ - want_) <= (tolerance)))                                                                      \
            fail_msg("line %d: %.17g, expected %.17g", __LINE__, got_, want_);                                         \
    } while (0)

/* A plain run without files: ten epochs of seven batches, no extras. */
static inline struct world *make_plain(void)
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

static inline struct sl_train_result run(struct world *world)
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

/* The clock of a world: an update takes a second, a batch of a validation three. */
static inline int64_t count_work(void *context)
{
    const struct world *world = context;
    return INT64_C(1000000000) * (world->exec.runs + 3 * world->evaluate.runs);
}

#endif
