/* SPDX-License-Identifier: Apache-2.0 */
/* Scaling, fill values and the naive forecast, from the columns of the training split. */
#include "data/dataset/fit_scaling.h"

#include <math.h>
#include <stdlib.h>

#include "data/dataset/state_private.h"

/* Running figures of one column. */
struct column_sums {
    int64_t n;
    double mean, m2, low, high;
};

/* Adds columns of the rows that belong to a series (or of per-series targets). */
static void add_rows(struct column_sums *sums, const double *values, int64_t columns, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        for (int64_t c = 0; c < columns; c++) {
            double x = values[i * columns + c];
            struct column_sums *s = &sums[c];
            if (isnan(x))
                continue;
            s->low = s->n == 0 || x < s->low ? x : s->low;
            s->high = s->n == 0 || x > s->high ? x : s->high;
            s->n++;
            double d = x - s->mean;
            s->mean += d / (double)s->n;
            s->m2 += d * (x - s->mean);
        }
    }
}

static void add_raw(struct column_sums *sums, const struct sl_raw *raw, bool targets)
{
    const double *values = targets ? raw->target_values : raw->values;
    int64_t columns = targets ? raw->target_features : raw->input_features;
    if (!values)
        return;
    if (targets && !raw->target_per_row) {
        add_rows(sums, values, columns, raw->first_target, raw->first_target + raw->series);
        return;
    }
    for (int64_t s = 0; s < raw->series; s++)
        add_rows(sums, values, columns, raw->start[s], raw->start[s] + raw->length[s]);
}

/* offset, factor and fill of the inputs or targets; each may be NULL. */
static seqlstm_status fit_columns(enum sl_scale_type type, int64_t columns, const struct sl_raw *raw,
                                  const struct sl_raw *const *others, int other_count, bool targets, double *offset,
                                  double *factor, double *fill, struct seqlstm_error *err)
{
    char **names = targets ? raw->target_names : raw->input_names;
    seqlstm_status status = SEQLSTM_OK;
    struct column_sums *sums = calloc((size_t)columns + 1, sizeof *sums);
    if (!sums)
        return SL_DATA_NO_MEMORY(err);
    add_raw(sums, raw, targets);
    for (int64_t c = 0; status == SEQLSTM_OK && c < columns; c++) {
        if (sums[c].n == 0)
            status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                       "%s: column `%s` has no value in the training split",
                                       raw->name ? raw->name : "data", names ? names[c] : "?");
        if (fill)
            fill[c] = sums[c].mean;
    }
    for (int i = 0; i < other_count; i++)
        add_raw(sums, others[i], targets);
    for (int64_t c = 0; offset && c < columns; c++) {
        double spread = type == SL_SCALE_MINMAX ? sums[c].high - sums[c].low
                                                : sqrt(sums[c].m2 / (double)(sums[c].n ? sums[c].n : 1));
        offset[c] = type == SL_SCALE_MINMAX ? sums[c].low : sums[c].mean;
        factor[c] = spread > 0 ? spread : 1;
        if (status == SEQLSTM_OK && !(isfinite(offset[c]) && isfinite(factor[c])))
            status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                       "%s: the values of column `%s` are too large to be scaled",
                                       raw->name ? raw->name : "data", names ? names[c] : "?");
    }
    free(sums);
    return status;
}

seqlstm_status sl_fit_naive(struct sl_data_state *state, const struct sl_raw *raw, struct seqlstm_error *err)
{
    const int64_t columns = raw->target_features;
    if (!raw->target_values || !raw->target_per_row || !raw->has_steps)
        return SEQLSTM_OK;
    state->target_naive = calloc((size_t)columns + 1, sizeof *state->target_naive);
    if (!state->target_naive)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t c = 0; c < columns; c++) {
        double sum = 0, count = 0;
        for (int64_t s = 0; s < raw->series; s++)
            for (int64_t i = raw->start[s] + 1; i < raw->start[s] + raw->length[s]; i++) {
                const double *value = raw->target_values + i * columns + c, change = fabs(*value - value[-columns]);
                sum += isnan(change) ? 0 : change;
                count += !isnan(change);
            }
        state->target_naive[c] = count > 0 ? sum / count : 0;
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_fit_scaling(struct sl_data_state *state, const struct sl_raw *raw, const struct sl_raw *const *others,
                              int other_count, struct seqlstm_error *err)
{
    const struct sl_scale *scale = &raw->source->scale;
    bool fill = raw->source->missing.type == SL_MISSING_MEAN;
    size_t inputs = (size_t)raw->input_features, targets = (size_t)raw->target_features;
    bool ok = true;
    if (scale->type != SL_SCALE_NONE && raw->values) {
        state->input_offset = calloc(inputs, sizeof(double));
        state->input_factor = calloc(inputs, sizeof(double));
        ok = ok && state->input_offset && state->input_factor;
    }
    if (scale->type != SL_SCALE_NONE && scale->targets && raw->target_values) {
        state->target_offset = calloc(targets, sizeof(double));
        state->target_factor = calloc(targets, sizeof(double));
        ok = ok && state->target_offset && state->target_factor;
    }
    if (fill && raw->values)
        ok = ok && (state->input_fill = calloc(inputs, sizeof(double))) != NULL;
    if (fill && raw->target_values && raw->source->missing.targets == SL_MISSING_TARGETS_FILL)
        ok = ok && (state->target_fill = calloc(targets, sizeof(double))) != NULL;
    if (!ok)
        return SL_DATA_NO_MEMORY(err);
    if (state->input_offset || state->input_fill)
        SEQLSTM_TRY(fit_columns(scale->type, raw->input_features, raw, others, other_count, false, state->input_offset,
                                state->input_factor, state->input_fill, err));
    if (state->target_offset || state->target_fill)
        SEQLSTM_TRY(fit_columns(scale->type, raw->target_features, raw, others, other_count, true, state->target_offset,
                                state->target_factor, state->target_fill, err));
    return SEQLSTM_OK;
}
