/* SPDX-License-Identifier: Apache-2.0 */
/* Progress, monitors and schedules against their closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "train/schedule/loss_scale.h"
#include "train/schedule/schedule.h"
#include "train/schedule/teacher.h"
#include "oom.h"

#define ASSERT_NEAR(got, want)                                                                                         \
    do {                                                                                                               \
        double got_ = (got), want_ = (want);                                                                           \
        if (!(fabs(got_ - want_) <= 1e-12 * fmax(1, fabs(want_))))                                                     \
            fail_msg("line %d: %.17g, expected %.17g", __LINE__, got_, want_);                                         \
    } while (0)

static struct sl_period period(double count, enum sl_period_unit unit)
{
    return (struct sl_period){unit, count};
}

static double rate_at(const struct sl_train_config *config, int64_t updates, double epochs)
{
    struct sl_schedule_state state = {0};
    struct sl_progress progress = {updates, epochs, 0, 0};
    return sl_schedule_rate(config, &state, &progress);
}

static void periods_fall_due(void **state)
{
    (void)state;
    struct sl_progress a = {.updates = 9, .epochs = 0.9}, b = {.updates = 10, .epochs = 1};
    struct sl_period tenth = period(10, SL_PERIOD_UPDATES), none = {0}, two = period(2, SL_PERIOD_EPOCHS);
    assert_true(sl_period_is_due(&tenth, &a, &b));
    assert_false(sl_period_is_due(&tenth, &b, &b));
    assert_false(sl_period_is_due(&none, &a, &b));
    assert_false(sl_period_is_due(&two, &a, &b));
    assert_true(sl_period_is_over(&none, &a));
    assert_false(sl_period_is_over(&two, &b));
    /* Ten tenths of an epoch are ten times due, though 0.1 has no exact double. */
    struct sl_period share = period(0.1, SL_PERIOD_EPOCHS);
    int due = 0;
    for (int i = 0; i < 30; i++) {
        a.epochs = i / 30.0;
        b.epochs = (i + 1) / 30.0;
        bool is_due = sl_period_is_due(&share, &a, &b);
        assert_int_equal(is_due, i % 3 == 2);
        due += is_due;
    }
    assert_int_equal(due, 10);
    struct sl_period seconds = period(10, SL_PERIOD_SECONDS);
    a.seconds = 9.99;
    b.seconds = 31;
    assert_true(sl_period_is_due(&seconds, &a, &b));
}

/* Shares of an epoch are rounded: 1 - 0.9 is a little less than 0.1. */
static void periods_are_over_in_spite_of_rounding(void **state)
{
    (void)state;
    const struct sl_period tenth = period(0.1, SL_PERIOD_EPOCHS), none = {SL_PERIOD_NONE, 0};
    struct sl_progress now = {.epochs = 1 - 0.9};
    assert_true(now.epochs < 0.1);
    assert_true(sl_period_is_over(&tenth, &now));
    now.epochs = 0.0999;
    assert_false(sl_period_is_over(&tenth, &now));
    assert_true(sl_period_is_over(&none, &now));
}

static void constant_and_step(void **state)
{
    (void)state;
    struct sl_train_config config = {.optimizer.learning_rate = 1, .schedule.kind = SL_SCHEDULE_CONSTANT};
    ASSERT_NEAR(rate_at(&config, 1000, 10), 1);
    /* Zaremba et al. 2014, small: the rate is halved after each epoch from the fifth on. */
    config.schedule = (struct sl_schedule){.kind = SL_SCHEDULE_STEP,
                                           .factor = 0.5,
                                           .start = period(4, SL_PERIOD_EPOCHS),
                                           .every = period(1, SL_PERIOD_EPOCHS)};
    assert_int_equal(sl_schedule_check(&config, NULL), SEQLSTM_OK);
    ASSERT_NEAR(rate_at(&config, 0, 0), 1);
    ASSERT_NEAR(rate_at(&config, 0, 3.999), 1);
    ASSERT_NEAR(rate_at(&config, 0, 4), 0.5);
    ASSERT_NEAR(rate_at(&config, 0, 4.9999), 0.5);
    ASSERT_NEAR(rate_at(&config, 0, 5), 0.25);
    ASSERT_NEAR(rate_at(&config, 0, 12), pow(0.5, 9));
    config.schedule.start.unit = SL_PERIOD_NONE;
    ASSERT_NEAR(rate_at(&config, 0, 0.5), 1);
    ASSERT_NEAR(rate_at(&config, 0, 1), 0.5);
    config.schedule.every = period(0.1, SL_PERIOD_EPOCHS); /* three of them have passed, whatever 0.3 is rounded to */
    ASSERT_NEAR(rate_at(&config, 0, 0.3), 0.125);
    ASSERT_NEAR(rate_at(&config, 0, 0.1 + 0.1 + 0.1), 0.125);
    ASSERT_NEAR(rate_at(&config, 0, 0.299), 0.25);
}

static void exponential(void **state)
{
    (void)state;
    struct sl_train_config config = {.optimizer.learning_rate = 2};
    config.schedule =
        (struct sl_schedule){.kind = SL_SCHEDULE_EXPONENTIAL, .factor = 0.9, .every = period(100, SL_PERIOD_UPDATES)};
    ASSERT_NEAR(rate_at(&config, 0, 0), 2);
    ASSERT_NEAR(rate_at(&config, 50, 0), 2 * sqrt(0.9));
    ASSERT_NEAR(rate_at(&config, 300, 0), 2 * 0.729);
    config.schedule.start = period(100, SL_PERIOD_UPDATES);
    ASSERT_NEAR(rate_at(&config, 99, 0), 2);
    ASSERT_NEAR(rate_at(&config, 200, 0), 1.8);
}

static void cosine_and_one_cycle(void **state)
{
    (void)state;
    struct sl_train_config config = {.optimizer.learning_rate = 1, .epochs = 10};
    config.schedule = (struct sl_schedule){.kind = SL_SCHEDULE_COSINE, .min_learning_rate = 0.1};
    ASSERT_NEAR(rate_at(&config, 0, 0), 1);
    ASSERT_NEAR(rate_at(&config, 0, 5), 0.55);
    ASSERT_NEAR(rate_at(&config, 0, 2.5), 0.1 + 0.45 * (1 + sqrt(0.5)));
    ASSERT_NEAR(rate_at(&config, 0, 10), 0.1);
    ASSERT_NEAR(rate_at(&config, 0, 99), 0.1);
    config.updates = 100; /* whichever is nearer to its end */
    ASSERT_NEAR(rate_at(&config, 50, 1), 0.55);
    config.schedule.over = period(200, SL_PERIOD_UPDATES);
    ASSERT_NEAR(rate_at(&config, 100, 9), 0.55);

    config.schedule = (struct sl_schedule){.kind = SL_SCHEDULE_ONE_CYCLE,
                                           .max = 1,
                                           .rise = 0.25,
                                           .divide_start = 10,
                                           .divide_end = 1000,
                                           .over = period(100, SL_PERIOD_UPDATES)};
    ASSERT_NEAR(rate_at(&config, 0, 0), 0.1);
    ASSERT_NEAR(rate_at(&config, 10, 0), 0.1 + 0.9 * 0.4);
    ASSERT_NEAR(rate_at(&config, 25, 0), 1);
    ASSERT_NEAR(rate_at(&config, 50, 0), 0.001 + 0.999 * 0.75);
    ASSERT_NEAR(rate_at(&config, 100, 0), 0.001);
    ASSERT_NEAR(rate_at(&config, 5000, 0), 0.001);
    config.schedule.rise = 1; /* it only rises, and then falls at once */
    ASSERT_NEAR(rate_at(&config, 50, 0), 0.55);
    ASSERT_NEAR(rate_at(&config, 100, 0), 0.001);
}

static void warm_up_multiplies(void **state)
{
    (void)state;
    struct sl_train_config config = {.optimizer.learning_rate = 1, .schedule.kind = SL_SCHEDULE_CONSTANT};
    config.schedule.warmup = period(4, SL_PERIOD_UPDATES);
    ASSERT_NEAR(rate_at(&config, 0, 0), 0.25);
    ASSERT_NEAR(rate_at(&config, 3, 0), 1);
    ASSERT_NEAR(rate_at(&config, 4, 0), 1);
    config.schedule.warmup = period(2, SL_PERIOD_EPOCHS);
    ASSERT_NEAR(rate_at(&config, 0, 0.5), 0.25);
    config.schedule.kind = SL_SCHEDULE_EXPONENTIAL;
    config.schedule.factor = 0.25;
    config.schedule.every = period(1, SL_PERIOD_EPOCHS);
    ASSERT_NEAR(rate_at(&config, 0, 0.5), 0.5 * 0.25);
}

static void plateau_waits_reduces_and_cools(void **state)
{
    (void)state;
    struct sl_train_config config = {.optimizer.learning_rate = 1};
    struct sl_schedule_state s = {0};
    struct sl_progress progress = {0};
    config.schedule = (struct sl_schedule){.kind = SL_SCHEDULE_PLATEAU,
                                           .factor = 0.1,
                                           .patience = 2,
                                           .min_delta = 0.01,
                                           .cooldown = 1,
                                           .min_learning_rate = 0.005,
                                           .monitor = "valid.loss"};
    static const struct {
        double value;
        bool reduces;
    } course[] = {{1, false},   {0.995, false}, {0.9, false}, {0.9, false}, {0.895, true}, {0.9, false}, /* cooling */
                  {0.9, false}, {0.9, true},    {NAN, false}, {NAN, false}, {NAN, true}};
    for (size_t i = 0; i < sizeof course / sizeof *course; i++)
        assert_int_equal(sl_schedule_observe(&config, &s, course[i].value), course[i].reduces);
    assert_int_equal(s.reductions, 3);
    s.reductions = 2;
    ASSERT_NEAR(sl_schedule_rate(&config, &s, &progress), 0.01);
    s.reductions = 3;
    ASSERT_NEAR(sl_schedule_rate(&config, &s, &progress), 0.005);
    /* A floor above the rate raises nothing. */
    config.schedule.min_learning_rate = 7;
    ASSERT_NEAR(sl_schedule_rate(&config, &s, &progress), 1);
    config.schedule.kind = SL_SCHEDULE_CONSTANT;
    assert_false(sl_schedule_observe(&config, &s, 5));
}

static double uniform(uint64_t seed, uint64_t draw)
{
    return (double)seqlstm_uniform(seed, draw, 5, 0);
}

/* The rule in other words: a validation that is no better than the best so far counts, except while the schedule cools
 * down; `patience` of them in a row, at least one, reduce the rate. */
static void plateaus_follow_what_is_watched(void **state)
{
    (void)state;
    static const struct {
        const char *monitor;
        double sign; /* -1: more is better */
    } watched[] = {{NULL, 1},          {"valid.loss", 1},       {"valid.accuracy", -1}, {"train.f1_macro", -1},
                   {"valid.bleu", -1}, {"train.perplexity", 1}, {"valid.mae", 1},       {"valid.exact_match", -1}};
    int reduced[2] = {0, 0};
    for (uint64_t seed = 0; seed < 400; seed++) {
        const double sign = watched[seed % 8].sign;
        struct sl_schedule_state got = {0};
        struct sl_train_config config = {
            .optimizer.learning_rate = 0.5,
            .schedule = {.kind = SL_SCHEDULE_PLATEAU, .factor = 0.5, .monitor = watched[seed % 8].monitor}};
        config.schedule.patience = (int64_t)(uniform(seed, 0) * 4);
        config.schedule.cooldown = (int64_t)(uniform(seed, 1) * 3);
        config.schedule.min_delta = uniform(seed, 2) < 0.5 ? 0 : 0.25;
        const int64_t patience = config.schedule.patience > 1 ? config.schedule.patience : 1;
        double best = INFINITY;
        int64_t waited = 0, cooling = 0, reductions = 0;
        for (uint64_t k = 3; k < 23; k++) {
            const double value = floor(uniform(seed, k) * 8) / 4 - 1;
            const bool better = isinf(best) || sign * value < best - config.schedule.min_delta;
            best = better ? sign * value : best;
            waited = better || cooling > 0 ? 0 : waited + 1;
            cooling -= cooling > 0;
            const bool reduces = waited >= patience;
            if (reduces) {
                reductions++;
                waited = 0;
                cooling = config.schedule.cooldown;
            }
            assert_int_equal(sl_schedule_observe(&config, &got, value), reduces);
            assert_int_equal(got.reductions, reductions);
        }
        const struct sl_progress progress = {0};
        ASSERT_NEAR(sl_schedule_rate(&config, &got, &progress), 0.5 * pow(0.5, (double)reductions));
        reduced[sign < 0] += reductions > 0;
    }
    assert_true(reduced[0] > 100 && reduced[1] > 100);
}

static void impossible_schedules_are_refused(void **state)
{
    (void)state;
    struct sl_train_config config = {.schedule.kind = SL_SCHEDULE_COSINE};
    assert_int_equal(sl_schedule_check(&config, NULL), SEQLSTM_INVALID_CONFIG);
    config.updates = 5;
    assert_int_equal(sl_schedule_check(&config, NULL), SEQLSTM_OK);
    config.schedule.kind = SL_SCHEDULE_STEP;
    assert_int_equal(sl_schedule_check(&config, NULL), SEQLSTM_INVALID_CONFIG);
    config.schedule.every = period(1, SL_PERIOD_EPOCHS);
    config.schedule.start = period(1, SL_PERIOD_UPDATES);
    assert_int_equal(sl_schedule_check(&config, NULL), SEQLSTM_INVALID_CONFIG);
}

static void monitors_count_what_does_not_improve(void **state)
{
    (void)state;
    struct sl_monitor m = {0};
    struct sl_monitor_rule low = {SL_MODE_MIN, 0.1}, high = {SL_MODE_MAX, 0};
    assert_false(sl_monitor_update(&m, &low, NAN));
    assert_int_equal(m.waited, 1);
    assert_true(sl_monitor_update(&m, &low, 1));
    assert_int_equal(m.waited, 0);
    assert_false(sl_monitor_update(&m, &low, -INFINITY));
    assert_false(sl_monitor_update(&m, &low, 0.9)); /* by exactly min_delta is not by more */
    assert_true(sl_monitor_update(&m, &low, 0.8));
    assert_false(sl_monitor_update(&m, &low, NAN));
    ASSERT_NEAR(m.best, 0.8);
    m = (struct sl_monitor){0};
    assert_true(sl_monitor_update(&m, &high, -1));
    assert_true(sl_monitor_update(&m, &high, 0));
    assert_false(sl_monitor_update(&m, &high, 0));
    enum sl_split split;
    enum sl_metric metric;
    assert_true(sl_monitor_parse("valid.perplexity", &split, &metric));
    assert_true(split == SL_SPLIT_VALID && metric == SL_METRIC_PERPLEXITY);
    assert_true(sl_monitor_parse("train.loss", &split, &metric));
    assert_true(split == SL_SPLIT_TRAIN && metric == SL_METRIC_LOSS);
    assert_false(sl_monitor_parse("loss", &split, &metric));
    assert_false(sl_monitor_parse("validx.loss", &split, &metric));
    assert_false(sl_monitor_parse("valid.los", &split, &metric));
    assert_int_equal(sl_metric_get_mode(SL_METRIC_ACCURACY), SL_MODE_MAX);
    assert_int_equal(sl_metric_get_mode(SL_METRIC_BLEU), SL_MODE_MAX);
    assert_int_equal(sl_metric_get_mode(SL_METRIC_CHRF), SL_MODE_MAX);
    assert_int_equal(sl_metric_get_mode(SL_METRIC_LOSS), SL_MODE_MIN);
}

/* The rule as the paper's program has it: after validation k, if k > n and v_k > min(v_0 .. v_(k-n-1)). */
static void non_monotone_trigger(void **state)
{
    (void)state;
    static const double values[] = {5, 4, 3, 3.5, 3.4, 3.3, 3.2, 3.1, 3.6, 2.9, 9};
    for (int64_t n = 1; n <= 6; n++) {
        struct sl_non_monotone trigger = {0};
        int fired_at = -1;
        for (int k = 0; k < 11; k++)
            if (sl_non_monotone_update(&trigger, n, SL_MODE_MIN, values[k])) {
                assert_int_equal(fired_at, -1);
                fired_at = k;
            }
        int want = -1;
        for (int k = 0; k < 11 && want < 0; k++) {
            double best = INFINITY;
            for (int j = 0; j < k - n; j++)
                best = fmin(best, values[j]);
            if (k > n && values[k] > best)
                want = k;
        }
        assert_int_equal(fired_at, want);
        assert_int_equal(trigger.fired, want >= 0);
    }
}

/* The same rule where some validations have no number: they are neither worse nor the best. */
static void non_monotone_without_numbers(void **state)
{
    (void)state;
    static const double values[][7] = {
        {NAN, NAN, 3, 2, 4, 1, 5}, {5, NAN, 4, NAN, 4.5, 3, 6}, {1, 2, NAN, NAN, NAN, NAN, 3}, {2, 2, 2, 2, 2, 2, 2.1}};
    for (int sign = -1; sign <= 1; sign += 2)
        for (int n = 1; n <= 3; n++)
            for (int v = 0; v < 4; v++) {
                struct sl_non_monotone trigger = {0};
                int fired_at = -1, want = -1;
                for (int k = 0; k < 7; k++)
                    if (sl_non_monotone_update(&trigger, n, sign < 0 ? SL_MODE_MAX : SL_MODE_MIN, sign * values[v][k]))
                        fired_at = k;
                for (int k = n + 1; k < 7 && want < 0; k++) {
                    double best = NAN;
                    for (int j = 0; j < k - n; j++)
                        best = fmin(best, values[v][j]);
                    want = values[v][k] > best ? k : -1;
                }
                if (fired_at != want)
                    fail_msg("sign %d, %d left out, series %d: at %d, not %d", sign, n, v, fired_at, want);
            }
}

static double teacher_at(const struct sl_teacher_forcing *teacher, int64_t updates, double epochs)
{
    struct sl_train_config config = {.teacher_forcing = *teacher, .epochs = 10};
    struct sl_progress progress = {updates, epochs, 0, 0};
    return sl_teacher_probability(&config, &progress);
}

/* Bengio et al. 2015, section 2.4. */
static void teachers_fade(void **state)
{
    (void)state;
    struct sl_teacher_forcing always = {.kind = SL_TEACHER_ALWAYS};
    struct sl_teacher_forcing constant = {.kind = SL_TEACHER_CONSTANT, .probability = 0.3};
    struct sl_teacher_forcing linear = {.kind = SL_TEACHER_LINEAR, .from = 0.9, .to = 0.1};
    struct sl_teacher_forcing power = {
        .kind = SL_TEACHER_EXPONENTIAL, .k = 0.99, .every = period(2, SL_PERIOD_UPDATES)};
    struct sl_teacher_forcing sigmoid = {
        .kind = SL_TEACHER_INVERSE_SIGMOID, .k = 20, .every = period(1, SL_PERIOD_UPDATES)};
    ASSERT_NEAR(teacher_at(&always, 1000, 9), 1);
    ASSERT_NEAR(teacher_at(&constant, 1000, 9), 0.3);
    ASSERT_NEAR(teacher_at(&linear, 0, 0), 0.9);
    ASSERT_NEAR(teacher_at(&linear, 0, 5), 0.5);
    ASSERT_NEAR(teacher_at(&linear, 0, 12), 0.1);
    linear.over = period(100, SL_PERIOD_UPDATES);
    ASSERT_NEAR(teacher_at(&linear, 25, 9), 0.7);
    ASSERT_NEAR(teacher_at(&linear, 400, 9), 0.1);
    ASSERT_NEAR(teacher_at(&power, 0, 0), 1);
    ASSERT_NEAR(teacher_at(&power, 100, 0), pow(0.99, 50));
    ASSERT_NEAR(teacher_at(&sigmoid, 0, 0), 20.0 / 21);
    ASSERT_NEAR(teacher_at(&sigmoid, 60, 0), 20 / (20 + exp(3)));
    ASSERT_NEAR(teacher_at(&sigmoid, 1000000, 0), 0);
    /* A run that only its updates end. */
    struct sl_train_config config = {.updates = 80, .teacher_forcing = {SL_TEACHER_LINEAR, .from = 1, .to = 0.5}};
    struct sl_progress progress = {.updates = 20, .epochs = 7};
    ASSERT_NEAR(sl_teacher_probability(&config, &progress), 0.875);
    config.teacher_forcing.to = 0.2; /* 1 + (0.2 - 1) is less */
    progress.updates = 80;
    assert_true(sl_teacher_probability(&config, &progress) == 0.2);
    /* Of updates and epochs that both end a run, that which is nearer to its end. */
    config = (struct sl_train_config){
        .updates = 80, .epochs = 10, .teacher_forcing = {SL_TEACHER_LINEAR, .from = 1, .to = 0}};
    progress = (struct sl_progress){.updates = 60, .epochs = 2.5};
    ASSERT_NEAR(sl_teacher_probability(&config, &progress), 0.25);
    progress = (struct sl_progress){.updates = 20, .epochs = 7.5};
    ASSERT_NEAR(sl_teacher_probability(&config, &progress), 0.25);
}

/* From 65536 down to 1 with each overflow, up to 2^24 with every 2000 good updates in a row. */
static void loss_scale_halves_and_doubles(void **state)
{
    (void)state;
    struct sl_loss_scale scale = {0};
    ASSERT_NEAR(sl_loss_scale_get(&scale), 65536);
    for (int k = 1; k <= 16; k++) {
        assert_true(sl_loss_scale_settle(&scale, k % 2 ? INFINITY : NAN));
        ASSERT_NEAR(sl_loss_scale_get(&scale), ldexp(1, 16 - k));
    }
    assert_false(sl_loss_scale_settle(&scale, INFINITY)); /* what overflows at 1 has diverged */
    ASSERT_NEAR(sl_loss_scale_get(&scale), 1);
    assert_int_equal(scale.overflows, 16);
    scale = (struct sl_loss_scale){.scale = 256};
    for (int k = 0; k < 1999; k++)
        assert_false(sl_loss_scale_settle(&scale, 0.5));
    assert_true(sl_loss_scale_settle(&scale, INFINITY)); /* the good ones are counted anew */
    for (int k = 1; k <= 2000; k++) {
        ASSERT_NEAR(sl_loss_scale_get(&scale), 128);
        assert_false(sl_loss_scale_settle(&scale, 0));
    }
    ASSERT_NEAR(sl_loss_scale_get(&scale), 256);
    for (int k = 0; k < 20 * 2000; k++)
        assert_false(sl_loss_scale_settle(&scale, 1));
    ASSERT_NEAR(sl_loss_scale_get(&scale), 1 << 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_fall_due),
        cmocka_unit_test(periods_are_over_in_spite_of_rounding),
        cmocka_unit_test(constant_and_step),
        cmocka_unit_test(exponential),
        cmocka_unit_test(cosine_and_one_cycle),
        cmocka_unit_test(warm_up_multiplies),
        cmocka_unit_test(plateau_waits_reduces_and_cools),
        cmocka_unit_test(plateaus_follow_what_is_watched),
        cmocka_unit_test(impossible_schedules_are_refused),
        cmocka_unit_test(monitors_count_what_does_not_improve),
        cmocka_unit_test(non_monotone_trigger),
        cmocka_unit_test(non_monotone_without_numbers),
        cmocka_unit_test(teachers_fade),
        cmocka_unit_test(loss_scale_halves_and_doubles),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
