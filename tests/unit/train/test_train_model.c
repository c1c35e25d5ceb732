/* SPDX-License-Identifier: Apache-2.0 */
/* The loop against a plain one with random options: accumulation, limits, schedules, averages, periods, early stopping.
 * Both run the same small executor; weights, losses, numbers of events and ends must be the same.
 */
#include "oom.h"
#include "train_plain.h"

enum { CASES = 250 };

static uint64_t seed, draws;

static double draw(void)
{
    return fake_uniform(seed, draws++, 77);
}

static int64_t draw_int(int64_t least, int64_t most)
{
    return least + (int64_t)(draw() * (double)(most - least + 1));
}

/* ---- the options ------------------------------------------------------------------------------------ */

static void draw_schedule(struct sl_schedule *schedule)
{
    static const enum sl_schedule_kind kinds[] = {SL_SCHEDULE_CONSTANT, SL_SCHEDULE_STEP,   SL_SCHEDULE_EXPONENTIAL,
                                                  SL_SCHEDULE_PLATEAU,  SL_SCHEDULE_COSINE, SL_SCHEDULE_ONE_CYCLE};
    *schedule = (struct sl_schedule){.kind = kinds[draw_int(0, 5)],
                                     .factor = 0.6,
                                     .every = {SL_PERIOD_UPDATES, (double)draw_int(1, 4)},
                                     .max = 0.2,
                                     .rise = 0.3,
                                     .divide_start = 10,
                                     .divide_end = 100,
                                     .monitor = "valid.loss",
                                     .patience = draw_int(0, 2),
                                     .cooldown = draw_int(0, 2),
                                     .min_delta = 0.02,
                                     .min_learning_rate = 0.004};
    if (draw() < 0.4)
        schedule->warmup = (struct sl_period){SL_PERIOD_UPDATES, (double)draw_int(1, 5)};
    if (draw() < 0.4)
        schedule->over = (struct sl_period){SL_PERIOD_UPDATES, (double)draw_int(5, 20)};
}

static void draw_options(struct world *world)
{
    struct sl_train_config *train = &world->model.train;
    world->train.batches = draw_int(3, 8);
    world->train.ignored = draw() < 0.5 ? 0.3 : 0;
    train->optimizer.learning_rate = 0.02 + 0.4 * draw();
    train->epochs = draw() < 0.9 ? draw_int(1, 4) : 0;
    train->updates = train->epochs == 0 || draw() < 0.4 ? draw_int(2, 18) : 0;
    train->accumulate = draw_int(1, 3);
    train->loss.reduction = draw() < 0.7 ? SL_REDUCTION_MEAN : SL_REDUCTION_SEQUENCE_MEAN;
    train->validate.every = draw() < 0.5 ? (struct sl_period){SL_PERIOD_EPOCHS, 1}
                                         : (struct sl_period){SL_PERIOD_UPDATES, (double)draw_int(1, 4)};
    world->model.log.every = draw() < 0.5 ? (struct sl_period){SL_PERIOD_NONE, 0}
                                          : (struct sl_period){SL_PERIOD_UPDATES, (double)draw_int(1, 4)};
    train->ema = (struct sl_ema){
        .enabled = !goes_ahead && draw() < 0.5, .decay = 0.7, .start = {SL_PERIOD_UPDATES, (double)draw_int(0, 6)}};
    train->early_stopping = (struct sl_early_stopping){.enabled = draw() < 0.5,
                                                       .monitor = "valid.loss",
                                                       .patience = draw_int(0, 3),
                                                       .min_delta = draw() < 0.5 ? 0 : 0.05,
                                                       .restore_best = draw() < 0.5};
    if (draw() < 0.3)
        train->early_stopping.start = (struct sl_period){SL_PERIOD_UPDATES, (double)draw_int(1, 6)};
    draw_schedule(&train->schedule);
    if (draw() < 0.3)
        train->early_stopping.monitor = "train.loss";
    if (draw() < 0.3)
        train->early_stopping.mode = SL_MODE_MAX;
    if (draw() < 0.3)
        train->schedule.monitor = "train.loss";
}

/* ---- the plain loop --------------------------------------------------------------------------------- */

struct plain {
    const struct sl_train_config *config;
    struct fake_params params;
    struct sl_exec exec, evaluate;
    struct sl_batcher train, valid;
    int64_t updates, epoch, batch; /* done, running, done of it */
    int64_t tokens;
    bool averaging, has_best, stopped;
    float average[FAKE_ELEMS], best[FAKE_ELEMS];
    double best_loss, valid_loss, restored_loss;
    int64_t best_update, waited;
    bool plateau_has;
    double plateau_best, sums[2], epoch_sums[2]; /* of the running epoch, and of the last whole one: loss and weight */
    int64_t plateau_waited, cooldown, reductions;
    int validations, reports, epochs;
};

static double find_share(const struct plain *p)
{
    const struct sl_train_config *c = p->config;
    double epochs = (double)p->epoch + (double)p->batch / (double)p->train.batches, share = 0;
    if (c->schedule.over.count > 0)
        return fmin(1, (double)p->updates / c->schedule.over.count);
    if (c->updates > 0)
        share = (double)p->updates / (double)c->updates;
    return fmin(1, c->epochs > 0 ? fmax(share, epochs / (double)c->epochs) : share);
}

static double find_rate(const struct plain *p)
{
    const struct sl_schedule *s = &p->config->schedule;
    const double base = p->config->optimizer.learning_rate, pi = acos(-1), x = find_share(p);
    double rate = base, n = (double)p->updates;
    if (s->kind == SL_SCHEDULE_STEP)
        rate = base * pow(s->factor, floor(n / s->every.count));
    if (s->kind == SL_SCHEDULE_EXPONENTIAL)
        rate = base * pow(s->factor, n / s->every.count);
    if (s->kind == SL_SCHEDULE_PLATEAU)
        rate = fmin(base, fmax(base * pow(s->factor, (double)p->reductions), s->min_learning_rate));
    if (s->kind == SL_SCHEDULE_COSINE)
        rate = s->min_learning_rate + (base - s->min_learning_rate) * (1 + cos(pi * x)) / 2;
    if (s->kind == SL_SCHEDULE_ONE_CYCLE)
        rate = x < s->rise ? s->max / s->divide_start + (s->max - s->max / s->divide_start) * x / s->rise
                           : s->max / s->divide_end +
                                 (s->max - s->max / s->divide_end) * (1 + cos(pi * (x - s->rise) / (1 - s->rise))) / 2;
    return s->warmup.count > 0 ? rate * fmin(1, (n + 1) / s->warmup.count) : rate;
}

static void follow_average(struct plain *p)
{
    const float *values = p->params.params.values;
    if (!p->config->ema.enabled)
        return;
    if (!p->averaging && (double)p->updates >= p->config->ema.start.count) {
        memcpy(p->average, values, sizeof p->average);
        p->averaging = true;
    } else if (p->averaging) {
        for (int i = 0; i < p->params.params.trainable_elems; i++)
            p->average[i] += (float)(1 - p->config->ema.decay) * (values[i] - p->average[i]);
    }
}

/* One update; returns whether it was the last of its epoch. */
static bool update(struct plain *p)
{
    struct sl_batch *group[3], *next = NULL;
    double weight = 0, sequences = 0, rate = find_rate(p);
    int count = 0;
    while (count < p->config->accumulate && p->batch < p->train.batches) {
        assert_int_equal(sl_batcher_next(&p->train, &group[count], NULL), SEQLSTM_OK);
        weight += sl_exec_weigh(&p->exec, group[count]);
        sequences += (double)group[count++]->sequences;
        p->batch++;
    }
    for (int i = 0; i < count; i++) {
        const struct sl_exec_update made = {.count = (uint64_t)p->updates + 1, .learning_rate = rate};
        const struct sl_exec_step step = {.normaliser =
                                              1 / (p->config->loss.reduction == SL_REDUCTION_MEAN ? weight : sequences),
                                          .accumulate = i > 0,
                                          .update = i + 1 == count ? &made : NULL};
        struct sl_exec_result result;
        assert_int_equal(sl_exec_run(&p->exec, group[i], &step, &result, NULL), SEQLSTM_OK);
        p->tokens += (int64_t)result.rows;
        p->sums[0] += result.loss_sum;
        p->sums[1] += result.weight_sum;
        sl_batch_destroy(group[i]);
    }
    p->updates++;
    follow_average(p);
    if (p->batch < p->train.batches)
        return false;
    assert_int_equal(sl_batcher_next(&p->train, &next, NULL), SEQLSTM_OK);
    assert_null(next);
    p->epoch++;
    p->epochs++;
    p->batch = 0;
    memcpy(p->epoch_sums, p->sums, sizeof p->sums);
    memset(p->sums, 0, sizeof p->sums);
    return true;
}

/* Of the running epoch, or of the last one if none has begun; or of the validation. */
static double find_watched(const struct plain *p, const char *monitor)
{
    const double *sums = p->batch > 0 ? p->sums : p->epoch_sums;
    return strcmp(monitor, "train.loss") == 0 ? sums[0] / sums[1] : p->valid_loss;
}

static void measure(struct plain *p)
{
    float kept[FAKE_ELEMS], *values = p->params.params.values;
    double loss = 0, weight = 0;
    struct sl_batch *batch;
    memcpy(kept, values, sizeof kept);
    if (p->averaging)
        memcpy(values, p->average, (size_t)p->params.params.trainable_elems * sizeof *values);
    p->valid.epoch = p->valid.ordinal = 0;
    while (sl_batcher_next(&p->valid, &batch, NULL) == SEQLSTM_OK && batch) {
        struct sl_exec_result result;
        const struct sl_exec_step step = {0};
        assert_int_equal(sl_exec_run(&p->evaluate, batch, &step, &result, NULL), SEQLSTM_OK);
        loss += result.loss_sum;
        weight += result.weight_sum;
        sl_batch_destroy(batch);
    }
    p->valid_loss = loss / weight;
    const struct sl_early_stopping *stopping = &p->config->early_stopping;
    const double watched = find_watched(p, stopping->monitor), sign = stopping->mode == SL_MODE_MAX ? -1 : 1;
    if (stopping->enabled && (double)p->updates >= stopping->start.count) {
        if (!p->has_best || sign * watched < sign * p->best_loss - stopping->min_delta) {
            p->has_best = true;
            p->best_loss = watched;
            p->restored_loss = p->valid_loss;
            p->best_update = p->updates;
            p->waited = 0;
            memcpy(p->best, values, sizeof p->best);
        } else
            p->waited++;
        p->stopped = p->waited >= (stopping->patience > 1 ? stopping->patience : 1);
    }
    memcpy(values, kept, sizeof kept);
    p->validations++;
}

static void observe_plateau(struct plain *p)
{
    const struct sl_schedule *s = &p->config->schedule;
    const double watched = find_watched(p, s->monitor);
    const bool cooling = p->cooldown > 0;
    const bool improved = !p->plateau_has || watched < p->plateau_best - s->min_delta;
    p->cooldown -= cooling;
    if (improved)
        p->plateau_best = watched;
    p->plateau_has = true;
    p->plateau_waited = improved || cooling ? 0 : p->plateau_waited + 1;
    if (improved || p->plateau_waited < (s->patience > 1 ? s->patience : 1))
        return;
    p->reductions++;
    p->plateau_waited = 0;
    p->cooldown = s->cooldown;
}

static bool is_due(const struct plain *p, const struct sl_period *period, bool epoch_ended)
{
    if (period->unit == SL_PERIOD_EPOCHS)
        return epoch_ended;
    return period->unit == SL_PERIOD_UPDATES && p->updates % (int64_t)period->count == 0;
}

static enum sl_train_end run_plain(struct plain *p, const struct sl_period *log)
{
    const struct sl_train_config *c = p->config;
    for (;;) {
        const bool epoch_ended = update(p);
        const bool all_epochs = c->epochs > 0 && p->epoch >= c->epochs;
        const bool complete = all_epochs || (c->updates > 0 && p->updates >= c->updates);
        p->reports += is_due(p, log, epoch_ended);
        if (is_due(p, &c->validate.every, epoch_ended) || complete) {
            measure(p);
            if (c->schedule.kind == SL_SCHEDULE_PLATEAU)
                observe_plateau(p);
        }
        if (p->stopped || complete)
            return p->stopped ? SL_END_EARLY_STOPPING : all_epochs ? SL_END_EPOCHS : SL_END_UPDATES;
    }
}

/* ---- the comparison --------------------------------------------------------------------------------- */

static void check_result(const struct world *world, const struct plain *p, const struct sl_train_result *result,
                         enum sl_train_end end)
{
    const bool restores = p->config->early_stopping.restore_best && p->has_best;
    const float *want = restores ? p->best : p->averaging ? p->average : p->params.values;
    const double *sums = p->epoch > 0 ? p->epoch_sums : p->sums;
    assert_int_equal(result->end, end);
    assert_int_equal(result->progress.updates, p->updates);
    assert_int_equal(result->progress.tokens, p->tokens);
    assert_int_equal(result->restored, restores);
    assert_int_equal(result->averaged, !restores && p->averaging);
    assert_true(!restores || result->best_update == p->best_update);
    assert_int_equal(world->validations, p->validations);
    assert_int_equal(world->epochs, p->epochs);
    assert_int_equal(world->reports, p->reports);
    for (int i = 0; i < p->params.params.trainable_elems; i++)
        ASSERT_NEAR((double)world->params.values[i], (double)want[i], 1e-5 * (1 + fabs((double)want[i])));
    const double loss = restores ? p->restored_loss : p->valid_loss;
    ASSERT_NEAR(sl_metric_values_get(&result->valid, SL_METRIC_LOSS), loss, 1e-5 * (1 + loss));
    ASSERT_NEAR(sl_metric_values_get(&result->train, SL_METRIC_LOSS), sums[0] / sums[1], 1e-5 * (1 + loss));
}

static void the_loop_is_the_plain_one(void **state)
{
    (void)state;
    int stopped = 0, restored = 0, averaged = 0;
    for (seed = 1; seed <= CASES; seed++) {
        draws = 0;
        struct world *world = make_plain();
        draw_options(world);
        struct plain p = {.config = &world->model.train, .train = world->train, .valid = world->valid};
        fake_params_init(&p.params);
        p.exec = (struct sl_exec){.params = &p.params.params, .training = true};
        p.evaluate = (struct sl_exec){.params = &p.params.params};
        enum sl_train_end end = run_plain(&p, &world->model.log.every);
        struct sl_train_result result = run(world);
        check_result(world, &p, &result, end);
        stopped += end == SL_END_EARLY_STOPPING;
        restored += result.restored;
        averaged += result.averaged;
        free(world);
    }
    assert_true(stopped > 10 && restored > 10 && (goes_ahead || averaged > 10)); /* all of it was tried */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loop_is_the_plain_one),
        unit_test_ahead(the_loop_is_the_plain_one),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
