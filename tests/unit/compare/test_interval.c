/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of `ab` on synthetic times: coverage, power, interruptions, correlated rounds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <seqlstm/philox.h>

#include "base/value/median.h"
#include "measure/interval.h"
#include "oom.h"

enum { ROUNDS_MOST = 200, RUNS = 100 };

struct noise {
    double spread;      /* of one round's logarithm */
    double interrupted; /* share of rounds that take half as long again on one side */
    double correlation; /* of neighbours */
    double shift;       /* ln of the true ratio */
};

static double uniform(uint64_t key, uint64_t n)
{
    return ((double)seqlstm_uniform(key, n, 0, 0) * 16777216.0 + 0.5) / 16777216.0;
}

static double normal(uint64_t key, uint64_t n)
{
    return sqrt(-2 * log(uniform(key, 2 * n))) * cos(6.283185307179586 * uniform(key, 2 * n + 1));
}

static void make(const struct noise *noise, uint64_t run, int64_t count, double *out)
{
    uint64_t key = seqlstm_mix64(run, 17, (uint64_t)count);
    double kept = normal(key, 0);
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)i + 1;
        kept = noise->correlation * kept + sqrt(1 - noise->correlation * noise->correlation) * normal(key, at);
        out[i] = noise->shift + noise->spread * kept;
        if (uniform(key + 1, at) < noise->interrupted)
            out[i] += (uniform(key + 2, at) < 0.5 ? -0.5 : 0.5) * log(1.5);
    }
}

/* How many of RUNS intervals at `confidence` hold the true ratio; *out_excludes: how many leave 1 out. */
static int cover(const struct noise *noise, int64_t count, double confidence, int *out_excludes)
{
    double logs[ROUNDS_MOST];
    int hits = 0;
    *out_excludes = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        struct sl_interval interval;
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        make(noise, run, count, logs);
        assert_int_equal(sl_interval_compute(logs, count, confidence, run, &interval, &err), SEQLSTM_OK);
        assert_true(interval.low <= interval.ratio && interval.ratio <= interval.high);
        hits += interval.low <= exp(noise->shift) && exp(noise->shift) <= interval.high;
        *out_excludes += interval.low > 1 || interval.high < 1;
    }
    return hits;
}

static void test_coverage(void **state)
{
    static const int64_t counts[] = {8, 20, 60};
    static const struct noise noises[] = {
        {.spread = 0.02}, {.spread = 0.02, .interrupted = 0.1}, {.spread = 0.02, .shift = 0.3}};
    (void)state;
    for (size_t n = 0; n < sizeof noises / sizeof *noises; n++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int excludes, hits = cover(&noises[n], counts[c], 0.99, &excludes);
            if (hits < 95)
                fail_msg("noise %zu, %d rounds: %d of 100 intervals at 99 %% hold the truth", n, (int)counts[c], hits);
            hits = cover(&noises[n], counts[c], 0.80, &excludes);
            if (hits < 68 || hits > 97) /* an interval that always holds is no interval */
                fail_msg("noise %zu, %d rounds: %d of 100 intervals at 80 %% hold the truth", n, (int)counts[c], hits);
        }
}

static void test_correlated(void **state)
{
    (void)state;
    struct noise noise = {.spread = 0.02, .correlation = 0.6};
    int excludes, hits = cover(&noise, 80, 0.99, &excludes);
    if (hits < 92)
        fail_msg("%d of 100 intervals hold the truth where rounds depend on each other", hits);
    double logs[ROUNDS_MOST];
    struct sl_interval interval;
    make(&noise, 3, 80, logs);
    assert_int_equal(sl_interval_compute(logs, 80, 0.99, 3, &interval, NULL), SEQLSTM_OK);
    assert_true(interval.block > 1);
}

static void test_slowdown_is_found(void **state)
{
    (void)state;
    struct noise noise = {.spread = 0.02, .interrupted = 0.05, .shift = log(1.03)};
    int excludes, hits = cover(&noise, 60, 0.99, &excludes);
    assert_true(hits >= 95);
    assert_true(excludes >= 95);
}

static void test_few_rounds(void **state)
{
    (void)state;
    double logs[] = {0.1, 0.1, 0.1, 0.1, 0.1};
    struct sl_interval interval;
    assert_int_equal(sl_interval_compute(logs, 5, 0.95, 1, &interval, NULL), SEQLSTM_OK);
    assert_true(interval.low == 0 && isinf(interval.high) && fabs(interval.ratio - exp(0.1)) < 1e-12);
    assert_int_equal(sl_interval_compute(NULL, 0, 0.95, 1, &interval, NULL), SEQLSTM_OK);
    assert_true(isnan(interval.ratio) && interval.rounds == 0);
}

static void test_seed_decides(void **state)
{
    (void)state;
    double logs[40];
    struct noise noise = {.spread = 0.05};
    struct sl_interval first, again, other;
    make(&noise, 5, 40, logs);
    assert_int_equal(sl_interval_compute(logs, 40, 0.95, 1, &first, NULL), SEQLSTM_OK);
    assert_int_equal(sl_interval_compute(logs, 40, 0.95, 1, &again, NULL), SEQLSTM_OK);
    assert_int_equal(sl_interval_compute(logs, 40, 0.95, 2, &other, NULL), SEQLSTM_OK);
    assert_true(first.low == again.low && first.high == again.high);
    assert_true(first.low != other.low && first.ratio == other.ratio);
}

/* Whichever side is called the first, and whatever the unit, the interval is the same. */
static void test_sides_and_units_do_not_matter(void **state)
{
    (void)state;
    static const int64_t counts[] = {8, 20, 80};
    const struct noise noise = {.spread = 0.02, .interrupted = 0.2, .correlation = 0.6};
    for (uint64_t run = 0; run < RUNS; run++) {
        const int64_t count = counts[run % 3];
        double logs[ROUNDS_MOST], turned[ROUNDS_MOST], moved[ROUNDS_MOST];
        struct sl_interval own, other, shifted;
        make(&noise, run, count, logs);
        for (int64_t i = 0; i < count; i++) {
            turned[i] = -logs[i];
            moved[i] = logs[i] + 0.5;
        }
        assert_int_equal(sl_interval_compute(logs, count, 0.95, run, &own, NULL), SEQLSTM_OK);
        assert_int_equal(sl_interval_compute(turned, count, 0.95, run, &other, NULL), SEQLSTM_OK);
        assert_int_equal(sl_interval_compute(moved, count, 0.95, run, &shifted, NULL), SEQLSTM_OK);
        assert_int_equal(own.block, other.block);
        assert_true(fabs(own.ratio * other.ratio - 1) < 1e-9);
        assert_true(fabs(own.low * other.high - 1) < 1e-9 && fabs(own.high * other.low - 1) < 1e-9);
        assert_true(fabs(shifted.ratio - own.ratio * exp(0.5)) < 1e-9);
    }
}

/* The ratio is that of the middle three fifths, whatever the others are, in any order. */
static void test_middle(void **state)
{
    (void)state;
    static const struct {
        double logs[11];
        int64_t count;
        double mean;
    } cases[] = {{{0.5}, 1, 0.5},
                 {{0.1, 0.4}, 2, 0.25},
                 {{0.3, 0.1, 0.2, 0.6}, 4, 0.3},
                 {{9, 0.1, -9, 0.3, 0.2}, 5, 0.2},
                 {{0.04, 0.01, 7, 0.02, 0.05, -7, 0.03, 0.06, 8, -8}, 10, 0.035},
                 {{0.04, 0.01, 7, 0.02, 0.05, -7, 0.03, 0.06, 8, -8, 0.07}, 11, 0.04},
                 {{0.2, 0.2, 0.2, 5, 0.2, 0.1}, 6, 0.2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sl_interval interval;
        assert_int_equal(sl_interval_compute(cases[i].logs, cases[i].count, 0.95, 1, &interval, NULL), SEQLSTM_OK);
        if (!(fabs(interval.ratio - exp(cases[i].mean)) <= 1e-12))
            fail_msg("case %d: %g, expected %g", (int)i, interval.ratio, exp(cases[i].mean));
        assert_int_equal(interval.rounds, cases[i].count);
        assert_true(interval.low <= interval.ratio && interval.ratio <= interval.high);
        assert_true((interval.low == 0 && isinf(interval.high)) == (cases[i].count < SL_INTERVAL_ROUNDS_LEAST));
    }
}

/* The length of blocks from its definition: the correlation of neighbours, where the lowest and the highest tenth count
 * as the values at their edges. */
static int64_t define_block(const double *logs, int64_t count)
{
    double sorted[ROUNDS_MOST], kept[ROUNDS_MOST], mean = 0, squares = 0, products = 0;
    memcpy(sorted, logs, (size_t)count * sizeof *logs);
    qsort(sorted, (size_t)count, sizeof *sorted, sl_float64_compare);
    for (int64_t i = 0; i < count; i++) {
        kept[i] = fmin(fmax(logs[i], sorted[count / 10]), sorted[count - 1 - count / 10]);
        mean += kept[i] / (double)count;
    }
    for (int64_t i = 0; i < count; i++)
        squares += (kept[i] - mean) * (kept[i] - mean);
    for (int64_t i = 1; i < count; i++)
        products += (kept[i] - mean) * (kept[i - 1] - mean);
    const double r = fmin(squares > 0 ? products / squares : 0, 0.95);
    if (r <= 2 / sqrt((double)count))
        return 1;
    const int64_t length = (int64_t)ceil(pow(2 * r / (1 - r * r), 2.0 / 3) * cbrt((double)count));
    return length < count / 3 ? length : count / 3;
}

static void test_blocks(void **state)
{
    (void)state;
    int long_ones = 0, short_ones = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        static const int64_t counts[] = {6, 20, 33, 80};
        const struct noise noise = {.spread = 0.02, .correlation = 0.1 * (double)(run % 10)};
        const int64_t count = counts[run / 10 % 4];
        double logs[ROUNDS_MOST];
        struct sl_interval interval;
        make(&noise, run, count, logs);
        logs[count - 1] += 0.3; /* the last one counts, too */
        assert_int_equal(sl_interval_compute(logs, count, 0.95, run, &interval, NULL), SEQLSTM_OK);
        assert_int_equal(interval.block, define_block(logs, count));
        long_ones += interval.block > 1;
        short_ones += interval.block == 1;
    }
    assert_true(long_ones > 10 && short_ones > 10);
    static const double level[12] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    struct sl_interval interval;
    assert_int_equal(sl_interval_compute(level, 12, 0.95, 1, &interval, NULL), SEQLSTM_OK);
    assert_int_equal(interval.block, 1);
    assert_true(interval.low == interval.high && fabs(interval.ratio - exp(0.5)) <= 1e-12);
}

static void test_no_memory(void **state)
{
    (void)state;
    const struct noise noise = {.spread = 0.02};
    double logs[40];
    make(&noise, 1, 40, logs);
    for (int n = 1;; n++) {
        struct sl_interval interval = {.rounds = -7};
        struct seqlstm_error err = SEQLSTM_ERROR_INIT;
        oom_fail_at(n);
        const seqlstm_status status = sl_interval_compute(logs, 40, 0.95, 1, &interval, &err);
        if (!oom_disarm())
            break;
        assert_int_equal(status, SEQLSTM_NO_MEMORY);
        assert_string_equal(err.message, "no memory for the interval of 40 rounds");
        assert_int_equal(interval.rounds, -7);
    }
}

/* How wide intervals are, for few rounds and more, over all confidences: each moves where the quantile, which is that
 * of Student's distribution, leaves other resamples out. */
static void test_widths(void **state)
{
    (void)state;
    static const struct {
        int64_t count;
        double low, high; /* mean logarithms */
    } cases[] = {{6, -0.014560083, 0.004372903},
                 {7, -0.017426122, 0.018438015},
                 {9, -0.014783892, 0.014200592},
                 {14, -0.007332074, 0.015487023},
                 {24, -0.010462936, -0.000870568}};
    const struct noise noise = {.spread = 0.02};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double logs[ROUNDS_MOST], low = 0, high = 0;
        make(&noise, 7, cases[k].count, logs);
        for (int c = 0; c < 100; c++) {
            struct sl_interval interval;
            assert_int_equal(sl_interval_compute(logs, cases[k].count, 0.6 + 0.00395 * c, 1, &interval, NULL),
                             SEQLSTM_OK);
            assert_int_equal(interval.block, 1);
            low += log(interval.low) / 100;
            high += log(interval.high) / 100;
        }
        if (!(fabs(low - cases[k].low) <= 1e-8 && fabs(high - cases[k].high) <= 1e-8))
            fail_msg("%d rounds: {%.9f, %.9f}, expected {%.9f, %.9f}", (int)cases[k].count, low, high, cases[k].low,
                     cases[k].high);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_middle),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_correlated),
        cmocka_unit_test(test_slowdown_is_found),
        cmocka_unit_test(test_few_rounds),
        cmocka_unit_test(test_seed_decides),
        cmocka_unit_test(test_sides_and_units_do_not_matter),
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
