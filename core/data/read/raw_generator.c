/* SPDX-License-Identifier: Apache-2.0 */
/* Generated data: every number is a function of (seed, split, record, draw), so a record is the same whatever the size
 * of the set.
 *
 *   adding_problem  Hochreiter & Schmidhuber 1997, section 5.4, in the form in common use since: a step holds a value
 * in [0, 1) and a mark; two steps are marked 1, one among the first ten, one among the other steps of the first half;
 * the first and the last step are marked -1 unless they are among the two, all others 0. Target: the sum of the two
 * marked values. copy, reverse   n symbols, `delay` blanks, the signal to answer, n - 1 blanks: 2 n + delay steps. The
 *                   target is blank, and from the signal on the n symbols, forwards or backwards.
 *                   Ids: 0 blank, 1 signal, 2 .. symbols + 1. For pairs: raw_generator_pairs.c.
 *   sine            `features` series sin(2 pi (t / period + phase)), period from 8 to 64 steps, plus
 *                   noise; the target is the `horizon` values behind the last step.
 * Defaults: one feature, a horizon of one, 8 symbols, no delay, no noise.
 */
#include "data/read/raw.h"

#include <math.h>
#include <stdlib.h>

#include <seqlstm/philox.h>

struct generator {
    const struct sl_source *source;
    struct sl_raw *raw;
    int64_t features, horizon, symbols, delay; /* of the source, or their defaults */
    uint64_t key;
    int64_t total; /* rows */
};

/* Number `draw` of a record, uniform in [0, 1) with 53 bits. */
static double uniform(const struct generator *g, int64_t record, int64_t draw)
{
    uint32_t counter[4] = {(uint32_t)draw, (uint32_t)((uint64_t)draw >> 32), (uint32_t)record,
                           (uint32_t)((uint64_t)record >> 32)};
    uint32_t word[4];
    seqlstm_philox4x32(counter, g->key, word);
    return (double)(((uint64_t)word[0] << 32 | word[1]) >> 11) * 0x1p-53;
}

/* A whole number in [0, count). */
static int64_t below(const struct generator *g, int64_t record, int64_t draw, int64_t count)
{
    int64_t value = (int64_t)(uniform(g, record, draw) * (double)count);
    return value < count ? value : count - 1;
}

static int64_t length_of(const struct generator *g, int64_t record)
{
    int64_t low = g->source->length_min, high = g->source->length_max;
    low = low < 1 ? 1 : low;
    high = high < low ? low : high;
    return low + below(g, record, 0, high - low + 1);
}

/* Rows that a record takes. */
static int64_t rows_of(const struct generator *g, int64_t record)
{
    int64_t length = length_of(g, record);
    if (g->source->generator == SL_GENERATOR_SINE)
        return length + g->horizon;
    if (g->source->generator == SL_GENERATOR_COPY || g->source->generator == SL_GENERATOR_REVERSE)
        return 2 * length + g->delay;
    return length;
}

static void make_adding(struct generator *g, int64_t record, int64_t start, int64_t length)
{
    double *row = g->raw->values + start * 2;
    int64_t ten = length < 10 ? length : 10;
    int64_t half = length / 2 - 1 < 2 ? (length < 2 ? length : 2) : length / 2 - 1;
    int64_t first = below(g, record, 1, ten), second = -1;
    int64_t free_places = half - (first < half);
    for (int64_t t = 0; t < length; t++) {
        row[2 * t] = uniform(g, record, 16 + t);
        row[2 * t + 1] = 0;
    }
    if (free_places > 0) {
        second = below(g, record, 2, free_places);
        second += first < half && second >= first;
    }
    if (length > 2) {
        row[1] = -1;
        row[2 * (length - 1) + 1] = -1;
    }
    row[2 * first + 1] = 1;
    g->raw->target_values[record] = row[2 * first];
    if (second >= 0) {
        row[2 * second + 1] = 1;
        g->raw->target_values[record] += row[2 * second];
    }
}

static void make_copy(struct generator *g, int64_t record, int64_t start, int64_t n)
{
    int64_t delay = g->delay;
    bool reverse = g->source->generator == SL_GENERATOR_REVERSE;
    for (int64_t t = 0; t < 2 * n + delay; t++)
        if (t >= n)
            g->raw->ids[start + t] = t == n + delay ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t symbol = 2 + (int32_t)below(g, record, 16 + i, g->symbols);
        g->raw->ids[start + i] = symbol;
        g->raw->target_ids[start + n + delay + (reverse ? n - 1 - i : i)] = symbol;
    }
}

static void make_sine(struct generator *g, int64_t record, int64_t start, int64_t rows)
{
    const double tau = 6.283185307179586;
    int64_t F = g->features;
    for (int64_t f = 0; f < F; f++) {
        double period = 8 + 56 * uniform(g, record, 16 + 2 * f), phase = uniform(g, record, 17 + 2 * f);
        for (int64_t t = 0; t < rows; t++) {
            double noise = 0;
            if (g->source->noise > 0) {
                int64_t draw = 16 + 2 * F + 2 * (t * F + f);
                double u = 1 - uniform(g, record, draw), v = uniform(g, record, draw + 1);
                noise = g->source->noise * sqrt(-2 * log(u)) * cos(tau * v);
            }
            g->raw->values[(start + t) * F + f] = sin(tau * ((double)t / period + phase)) + noise;
            g->raw->target_values[(start + t) * F + f] = g->raw->values[(start + t) * F + f];
        }
    }
}

static seqlstm_status allocate(struct generator *g, struct seqlstm_error *err)
{
    struct sl_raw *raw = g->raw;
    size_t series = (size_t)g->source->size + 1, rows = (size_t)g->total + 1;
    size_t targets = raw->target_per_row ? rows : series;
    bool ok = true;
    raw->start = calloc(series, sizeof *raw->start);
    raw->length = calloc(series, sizeof *raw->length);
    if (raw->input_kind == SL_FIELD_IDS)
        ok = (raw->ids = calloc(rows, sizeof *raw->ids)) != NULL;
    else
        ok = (raw->values = calloc(rows * (size_t)raw->input_features, sizeof *raw->values)) != NULL;
    if (raw->target_kind == SL_FIELD_IDS)
        ok = ok && (raw->target_ids = calloc(targets, sizeof *raw->target_ids)) != NULL;
    else
        ok = ok && (raw->target_values = calloc(targets * (size_t)raw->target_features, sizeof(double))) != NULL;
    return ok && raw->start && raw->length ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
}

seqlstm_status sl_raw_read_generator(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    bool symbols = source->generator == SL_GENERATOR_COPY || source->generator == SL_GENERATOR_REVERSE;
    bool sine = source->generator == SL_GENERATOR_SINE;
    struct generator g = {.source = source, .raw = raw, .delay = source->delay};
    if (read->input)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "a model of generated data has no input format: `seqlstm eval` measures it on data of its own");
    g.features = source->features > 0 ? source->features : 1;
    g.horizon = source->horizon > 0 ? source->horizon : 1;
    g.symbols = source->symbols > 1 ? source->symbols : 8;
    uint64_t seed = source->has_seed ? source->seed : read->model->seed;
    g.key = seqlstm_mix64(seed, UINT64_C(0x67656e6572617465) + (uint64_t)source->generator, (uint64_t)read->split);
    for (int64_t r = 0; r < source->size; r++)
        g.total += rows_of(&g, r);
    raw->rows = g.total;
    raw->has_steps = true;
    raw->input_kind = symbols ? SL_FIELD_IDS : SL_FIELD_VALUES;
    raw->input_features = symbols ? 1 : sine ? g.features : 2;
    raw->known_ids = symbols ? g.symbols + 2 : 0;
    raw->target_kind = symbols ? SL_FIELD_IDS : SL_FIELD_VALUES;
    raw->known_classes = symbols ? g.symbols + 2 : 0;
    raw->target_per_row = symbols || sine;
    raw->target_features = sine ? g.features : 1;
    raw->ahead = sine ? g.horizon : 0;
    raw->ahead_in_series = sine;
    SEQLSTM_TRY(allocate(&g, err));
    for (int64_t r = 0, at = 0; r < source->size; r++) {
        int64_t length = length_of(&g, r), rows = rows_of(&g, r);
        raw->start[r] = at;
        raw->length[r] = rows;
        if (symbols)
            make_copy(&g, r, at, length);
        else if (sine)
            make_sine(&g, r, at, rows);
        else
            make_adding(&g, r, at, length);
        at += rows;
    }
    raw->series = source->size;
    return SEQLSTM_OK;
}
