/* SPDX-License-Identifier: Apache-2.0 */
/* A training run over the small world of train_fake.h, with everything on that has a memory. The including file has
 * `root`, the folder of the runs. */
#ifndef SL_TESTS_TRAIN_WORLD_H
#define SL_TESTS_TRAIN_WORLD_H

#include <stdatomic.h>
#include <stdio.h>

#include "base/system/file.h"
#include "train/trainer/trainer.h"
#include "train_fake.h"

struct world {
    struct sl_model model;
    struct fake_params params;
    struct sl_exec exec, evaluate;
    struct sl_batcher train, valid;
    struct sl_interrupt interrupt;
    struct sl_trainer_request request;
    int64_t stop_at; /* update after which the interrupt is set; 0: never */
    int64_t steps;   /* on_step calls */
    int validations, epochs, reports, checkpoints;
    char folder[128];
};

/* The executor starts steps before it gives the results of others, where the trainer lets it: no metric of outputs, no
 * averages. */
static bool goes_ahead;

static inline int go_ahead(void **state)
{
    (void)state;
    goes_ahead = true;
    return 0;
}

static inline int stay(void **state)
{
    (void)state;
    goes_ahead = false;
    return 0;
}

#define unit_test_ahead(test) cmocka_unit_test_setup_teardown(test, go_ahead, stay)

static const enum sl_metric METRICS[] = {SL_METRIC_LOSS, SL_METRIC_MAE};

static inline void on_step(void *context, const struct sl_train_report *report)
{
    struct world *world = context;
    world->steps++;
    if (world->stop_at && report->progress.updates == world->stop_at)
        atomic_store(&world->interrupt.stop, 15);
}

static inline void on_validation(void *context, const struct sl_train_report *report)
{
    assert_true(report->values->count >= (goes_ahead ? 1 : 2));
    ((struct world *)context)->validations++;
}

static inline void on_epoch(void *context, const struct sl_train_report *report)
{
    assert_non_null(report->values);
    ((struct world *)context)->epochs++;
}

static inline void on_report(void *context, const struct sl_train_report *report)
{
    assert_non_null(report->values);
    ((struct world *)context)->reports++;
}

static inline void on_checkpoint(void *context, const struct sl_train_report *report)
{
    assert_true(sl_file_exists(report->path));
    ((struct world *)context)->checkpoints++;
}

/* Everything that has a memory is on: Adam, EMA, plateau, restore_best, keep_best, accumulation, a stream. */
static inline struct world *world_create(const char *name)
{
    struct world *world = calloc(1, sizeof *world);
    fake_params_init(&world->params);
    world->exec = (struct sl_exec){.params = &world->params.params, .training = true};
    world->exec.ahead.possible = goes_ahead;
    world->evaluate = (struct sl_exec){.params = &world->params.params};
    world->train = (struct sl_batcher){.batches = 7, .stream = true, .ignored = 0.1};
    world->valid = (struct sl_batcher){.batches = 3, .stream = true, .evaluate = true};
    world->model.data.batching.unit = SL_UNIT_STREAM;
    world->model.data.batching.bptt = 3;
    world->model.log.every = (struct sl_period){SL_PERIOD_UPDATES, 3};
    world->model.log.jsonl = true;
    struct sl_train_config *train = &world->model.train;
    train->loss.kind = SL_LOSS_MSE;
    train->optimizer = (struct sl_optimizer){.kind = SL_OPTIMIZER_ADAM, .learning_rate = 0.05};
    train->schedule = (struct sl_schedule){
        .kind = SL_SCHEDULE_PLATEAU, .factor = 0.5, .patience = 1, .min_delta = 0.2, .monitor = "valid.loss"};
    train->epochs = 5;
    train->accumulate = 2;
    train->clip_norm = 1;
    train->metrics = train->validate.metrics = (struct sl_metric_list){METRICS, goes_ahead ? 1 : 2};
    train->validate.every = (struct sl_period){SL_PERIOD_UPDATES, 3};
    train->checkpoint = (struct sl_checkpoint){
        .every = {SL_PERIOD_UPDATES, 2}, .keep_last = 2, .keep_best = 2, .monitor = "valid.loss", .mode = SL_MODE_MIN};
    train->early_stopping = (struct sl_early_stopping){
        .enabled = true, .monitor = "valid.loss", .patience = 50, .min_delta = 0.01, .restore_best = true};
    train->ema = (struct sl_ema){.enabled = !goes_ahead, .decay = 0.8, .start = {SL_PERIOD_UPDATES, 5}};
    snprintf(world->folder, sizeof world->folder, "%s/%s%s", root, goes_ahead ? "ahead-" : "", name);
    static const struct sl_safetensors_text texts[] = {{"plan", "{\"a\": 1}"}};
    world->request = (struct sl_trainer_request){
        .model = &world->model,
        .exec = &world->exec,
        .evaluate = &world->evaluate,
        .params = &world->params.params,
        .train = &world->train,
        .valid = &world->valid,
        .folder = world->folder,
        .texts = texts,
        .text_count = 1,
        .observer = {world, on_step, on_report, on_epoch, on_validation, on_checkpoint},
        .interrupt = &world->interrupt,
    };
    return world;
}

#endif
