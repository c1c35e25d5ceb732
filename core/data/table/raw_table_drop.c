/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that `missing: drop` leaves out. To learn from, they are gone, and a series ends where they were if it must be
 * without gaps. To predict for, each row of the file keeps its place in the output. */
#include "data/table/table_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void move_values(struct sl_raw *raw, int64_t to, int64_t from)
{
    size_t inputs = (size_t)raw->input_features, targets = (size_t)raw->target_features;
    memmove(raw->values + (size_t)to * inputs, raw->values + (size_t)from * inputs, inputs * sizeof *raw->values);
    if (raw->target_values)
        memmove(raw->target_values + (size_t)to * targets, raw->target_values + (size_t)from * targets,
                targets * sizeof *raw->target_values);
    if (raw->target_ids)
        raw->target_ids[to] = raw->target_ids[from];
}

/* Moves the kept rows together. before[i]: the line of a row left out before row i, or 0; it counts where row i is not
 * the first of its group. */
static void move_rows(struct sl_table_read *t, int64_t *before)
{
    struct sl_raw *raw = t->raw;
    int64_t to = 0, line = 0;
    int32_t missing = 0;
    for (int64_t i = 0; i < t->kept; i++) {
        missing += raw->missing ? raw->missing[i] : 0;
        if (!t->keep[i]) {
            line = line > 0 ? line : t->table.lines[t->order[i]];
            continue;
        }
        move_values(raw, to, i);
        t->order[to] = t->order[i];
        if (t->groups)
            t->groups[to] = t->groups[i];
        if (t->moments)
            t->moments[to] = t->moments[i];
        if (raw->missing)
            raw->missing[to] = missing;
        before[to++] = line;
        missing = 0;
        line = 0;
    }
    if (raw->missing && to > 0)
        raw->missing[to - 1] += missing;
    raw->counts.dropped_table_rows += t->kept - to;
    t->kept = to;
}

seqlstm_status sl_table_drop_rows(struct sl_table_read *t, struct seqlstm_error *err)
{
    int64_t *before = calloc((size_t)t->kept + 1, sizeof *before);
    if (!before)
        return SL_DATA_NO_MEMORY(err);
    move_rows(t, before);
    seqlstm_status status = sl_table_check_gaps(t, before, err);
    free(before);
    return status;
}

seqlstm_status sl_table_thin_series(const struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    int64_t to = 0;
    raw->step = calloc((size_t)t->kept + 1, sizeof *raw->step);
    raw->steps = calloc((size_t)raw->series + 1, sizeof *raw->steps);
    if (!raw->step || !raw->steps)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t begin = raw->start[s], end = begin + raw->length[s];
        raw->start[s] = to;
        raw->steps[s] = (int32_t)(end - begin);
        for (int64_t i = begin; i < end; i++) {
            if (!t->keep[i])
                continue;
            move_values(raw, to, i);
            raw->row_line[to] = raw->row_line[i];
            raw->step[to++] = (int32_t)(i - begin);
        }
        raw->length[s] = to - raw->start[s];
    }
    raw->rows = to;
    return SEQLSTM_OK;
}

seqlstm_status sl_table_mark_rows(const struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    raw->blank = calloc((size_t)t->kept + 1, sizeof *raw->blank);
    if (!raw->blank)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < t->kept; i++) {
        raw->blank[i] = !t->keep[i];
        double *row = raw->values + i * raw->input_features;
        for (int64_t k = 0; raw->blank[i] && k < raw->input_features; k++)
            row[k] = isnan(row[k]) ? 0 : row[k];
    }
    return SEQLSTM_OK;
}
