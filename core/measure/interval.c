/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/value/median.h"

enum { RESAMPLES = 4000 };

/* The mean of the middle 60 % of `count` numbers, where sorted[k] occurs times[k] times. */
static double trimmed_mean(const double *sorted, const int32_t *times, int64_t count)
{
    int64_t cut = count / 5, from = cut, to = count - cut, at = 0;
    double sum = 0;
    for (int64_t k = 0; at < to; k++) {
        int64_t begin = at > from ? at : from, end = at + times[k] < to ? at + times[k] : to;
        if (end > begin)
            sum += sorted[k] * (double)(end - begin);
        at += times[k];
    }
    return sum / (double)(to - from);
}

/* The correlation of neighbours. Values outside the middle 80 % are moved to its ends, so that a single interruption
 * neither hides a trend nor looks like one. */
static double neighbour_correlation(const double *values, const double *sorted, int64_t count)
{
    double low = sorted[count / 10], high = sorted[count - 1 - count / 10], mean = 0, squares = 0, products = 0;
    for (int64_t i = 0; i < count; i++)
        mean += fmin(fmax(values[i], low), high) / (double)count;
    for (int64_t i = 0; i < count; i++) {
        double x = fmin(fmax(values[i], low), high) - mean;
        squares += x * x;
        if (i + 1 < count)
            products += x * (fmin(fmax(values[i + 1], low), high) - mean);
    }
    return squares > 0 ? products / squares : 0;
}

static int64_t block_length(const double *values, const double *sorted, int64_t count)
{
    double r = neighbour_correlation(values, sorted, count);
    if (r <= 2 / sqrt((double)count))
        return 1;
    r = fmin(r, 0.95);
    int64_t length = (int64_t)ceil(pow(2 * r / (1 - r * r), 2.0 / 3) * cbrt((double)count));
    return length < count / 3 ? length : count / 3;
}

/* z with P(Z <= z) = p, by bisection on erfc. */
static double normal_quantile(double p)
{
    double low = -10, high = 10;
    for (int i = 0; i < 80; i++) {
        double z = 0.5 * (low + high);
        if (0.5 * erfc(-z / sqrt(2.0)) < p)
            low = z;
        else
            high = z;
    }
    return low;
}

/* Student's t from the normal quantile (the series of Fisher and Cornish, to 1/nu³). */
static double student_quantile(double z, double nu)
{
    double z2 = z * z;
    double g1 = (z2 + 1) * z / 4;
    double g2 = ((5 * z2 + 16) * z2 + 3) * z / 96;
    double g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) * z / 384;
    return z + g1 / nu + g2 / (nu * nu) + g3 / (nu * nu * nu);
}

/* The share of resamples below the interval. */
static double tail_of(double confidence, int64_t count, int64_t block)
{
    double n = floor((double)count / (double)block);
    n = n < SL_INTERVAL_ROUNDS_LEAST ? SL_INTERVAL_ROUNDS_LEAST : n;
    double t = student_quantile(normal_quantile(1 - (1 - confidence) / 2), n - 1);
    return 0.5 * erfc(sqrt(n / (n - 1)) * t / sqrt(2.0));
}

/* Draws one resample: blocks that begin anywhere and wrap around. times[rank of a round]: how often it was drawn. */
static void draw(const int32_t *ranks, int64_t count, int64_t block, uint64_t key, uint64_t number, int32_t *times)
{
    int64_t done = 0;
    memset(times, 0, (size_t)count * sizeof *times);
    for (uint64_t b = 0; done < count; b++) {
        int64_t begin = (int64_t)(seqlstm_mix64_round(key ^ (number << 32 | b)) % (uint64_t)count);
        for (int64_t i = 0; i < block && done < count; i++, done++)
            times[ranks[(begin + i) % count]]++;
    }
}

struct work {
    double *sorted, *means; /* [count], [RESAMPLES] */
    int32_t *ranks, *times; /* [count] */
};

static bool work_init(struct work *w, const double *logs, int64_t count)
{
    size_t n = (size_t)count;
    w->sorted = malloc(n * sizeof *w->sorted);
    w->means = malloc(RESAMPLES * sizeof *w->means);
    w->ranks = malloc(n * sizeof *w->ranks);
    w->times = malloc(n * sizeof *w->times);
    if (!w->sorted || !w->means || !w->ranks || !w->times)
        return false;
    memcpy(w->sorted, logs, n * sizeof *logs);
    qsort(w->sorted, n, sizeof *w->sorted, sl_float64_compare);
    memset(w->times, 0, n * sizeof *w->times);
    for (int64_t i = 0; i < count; i++) { /* equal values get neighbouring ranks */
        const double *at = bsearch(&logs[i], w->sorted, n, sizeof *logs, sl_float64_compare);
        int64_t rank = at ? at - w->sorted : 0;
        while (rank > 0 && w->sorted[rank - 1] == logs[i])
            rank--;
        while (rank + 1 < count && w->times[rank])
            rank++;
        w->times[rank] = 1;
        w->ranks[i] = (int32_t)rank;
    }
    return true;
}

static void work_deinit(struct work *w)
{
    free(w->sorted);
    free(w->means);
    free(w->ranks);
    free(w->times);
}

seqlstm_status sl_interval_compute(const double *logs, int64_t count, double confidence, uint64_t seed,
                                   struct sl_interval *out_interval, struct seqlstm_error *err)
{
    struct sl_interval interval = {
        .ratio = (double)NAN, .low = 0, .high = (double)INFINITY, .rounds = count, .block = 1};
    if (count == 0) {
        *out_interval = interval;
        return SEQLSTM_OK;
    }
    struct work w = {0};
    if (!work_init(&w, logs, count)) {
        work_deinit(&w);
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the interval of %lld rounds", (long long)count);
    }
    interval.ratio = exp(trimmed_mean(w.sorted, w.times, count));
    if (count >= SL_INTERVAL_ROUNDS_LEAST) {
        uint64_t key = seqlstm_mix64(seed, 0xB007, (uint64_t)count);
        interval.block = block_length(logs, w.sorted, count);
        for (uint64_t r = 0; r < RESAMPLES; r++) {
            draw(w.ranks, count, interval.block, key, r, w.times);
            w.means[r] = trimmed_mean(w.sorted, w.times, count);
        }
        qsort(w.means, RESAMPLES, sizeof *w.means, sl_float64_compare);
        int64_t below = (int64_t)floor(tail_of(confidence, count, interval.block) * RESAMPLES);
        interval.low = exp(w.means[below]);
        interval.high = exp(w.means[RESAMPLES - 1 - below]);
    }
    work_deinit(&w);
    *out_interval = interval;
    return SEQLSTM_OK;
}
