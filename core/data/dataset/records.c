/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts series into records: windows, one stream, tokens that have a next one; and treats what is too long. */
#include "data/dataset/records.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset_private.h"

/* The records made so far. */
struct cutter {
    struct sl_dataset *d;
    struct sl_raw *raw;
    struct sl_buf start, length, target_row, text_offset, text_bytes, no_prediction;
    struct sl_buf source_start, source_length, target_text_offset, target_text_bytes; /* pairs */
};

/* Steps of a record that is too long, where those are truncated; false: it is left out. */
static bool fit_length(struct cutter *c, int64_t longest, int64_t *length, int64_t *source_length)
{
    struct sl_data_counts *counts = &c->raw->counts;
    enum sl_overflow action = c->d->model->data.batching.on_overflow;
    if (longest <= 0 || (*length <= longest && *source_length <= longest) || action == SL_OVERFLOW_KEEP)
        return true;
    if (action == SL_OVERFLOW_DROP) {
        counts->dropped_records++;
        counts->dropped_rows += *length + *source_length;
        return false;
    }
    int64_t before = *length + *source_length;
    *length = *length > longest ? longest : *length;
    *source_length = *source_length > longest ? longest : *source_length;
    counts->truncated_records++;
    counts->truncated_rows += before - *length - *source_length;
    return true;
}

/* The encoder's part of a record. */
static void add_source(struct cutter *c, int64_t series, int64_t length)
{
    const struct sl_raw *raw = c->raw;
    int32_t steps = (int32_t)length;
    sl_buf_append(&c->source_start, &raw->pair->start[series], sizeof *raw->pair->start);
    sl_buf_append(&c->source_length, &steps, sizeof steps);
    sl_buf_append(&c->target_text_offset, &raw->text_offset[series], sizeof *raw->text_offset);
    sl_buf_append(&c->target_text_bytes, &raw->text_bytes[series], sizeof *raw->text_bytes);
}

/* Whether an input can be predicted for: none of its rows is without values, and no gap is between two of them. */
static void note_prediction(struct cutter *c, int64_t start, int64_t length)
{
    const struct sl_raw *raw = c->raw;
    bool none = false;
    if (!raw->blank && !raw->after_gap)
        return;
    for (int64_t i = start; i < start + length; i++)
        none = none || (raw->blank && raw->blank[i]) || (raw->after_gap && i > start && raw->after_gap[i]);
    c->raw->counts.no_predictions += none;
    sl_buf_append(&c->no_prediction, &none, sizeof none);
}

static seqlstm_status add_record(struct cutter *c, int64_t series, int64_t start, int64_t length,
                                 struct seqlstm_error *err)
{
    const struct sl_raw *raw = c->raw;
    const struct sl_raw *shown = raw->pair ? raw->pair : raw; /* whose text `predict` repeats */
    int64_t longest = sl_batching_find_longest(&c->d->model->data.batching), target = raw->first_target + series;
    int64_t source_length = raw->pair ? raw->pair->length[series] : 0, none = -1, nothing = 0;
    if (c->d->form != SL_TARGET_NONE && !c->d->stream && !fit_length(c, longest, &length, &source_length))
        return SEQLSTM_OK;
    if (length > INT32_MAX || source_length > INT32_MAX)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: a sequence of %lld steps is longer than %d", raw->name,
                     (long long)(length > source_length ? length : source_length), INT32_MAX);
    if (raw->pair)
        add_source(c, series, source_length);
    int32_t steps = (int32_t)length;
    sl_buf_append(&c->start, &start, sizeof start);
    sl_buf_append(&c->length, &steps, sizeof steps);
    if (c->d->form == SL_TARGET_RECORD)
        sl_buf_append(&c->target_row, &target, sizeof target);
    if (raw->text_offset) {
        sl_buf_append(&c->text_offset, shown->text_offset ? &shown->text_offset[series] : &none, sizeof none);
        sl_buf_append(&c->text_bytes, shown->text_bytes ? &shown->text_bytes[series] : &nothing, sizeof nothing);
    }
    if (c->d->form == SL_TARGET_NONE)
        note_prediction(c, start, length);
    c->d->records++;
    return SEQLSTM_OK;
}

/* One record, or several where those that are too long are split. Pairs have been split before: a part of theirs has
 * marks of its own. */
static seqlstm_status add(struct cutter *c, int64_t series, int64_t start, int64_t length, struct seqlstm_error *err)
{
    const struct sl_batching *batching = &c->d->model->data.batching;
    int64_t longest = sl_batching_find_longest(batching);
    bool whole = batching->on_overflow != SL_OVERFLOW_SPLIT || c->d->form == SL_TARGET_NONE || c->d->stream;
    if (whole || longest <= 0 || length <= longest || c->raw->pair)
        return add_record(c, series, start, length, err);
    c->raw->counts.split_records++;
    const bool has_lines = c->raw->source->type == SL_SOURCE_CONLL; /* a part has those of its rows */
    int64_t *offset = has_lines ? &c->raw->text_offset[series] : NULL,
            *bytes = has_lines ? &c->raw->text_bytes[series] : NULL;
    const int64_t end = has_lines ? *offset + *bytes : 0;
    for (int64_t at = 0; at < length; at += longest) {
        const int64_t part = length - at < longest ? length - at : longest;
        c->raw->counts.parts++;
        if (has_lines) {
            *bytes = end - *offset;
            sl_raw_cut_text(c->raw, 0, part, offset, bytes);
        }
        SEQLSTM_TRY(add_record(c, series, start + at, part, err));
        if (has_lines)
            *offset += *bytes;
    }
    return SEQLSTM_OK;
}

/* All rows of the raw are one record. */
static seqlstm_status cut_stream(struct cutter *c, struct seqlstm_error *err)
{
    const struct sl_raw *raw = c->raw;
    int64_t behind = c->d->form == SL_TARGET_NEXT;
    for (int64_t s = 1; s < raw->series; s++)
        if (raw->start[s] != raw->start[s - 1] + raw->length[s - 1])
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: `unit: stream` cannot join sequences of different `lengths`",
                         raw->name ? raw->name : "data");
    if (raw->series == 0)
        return SEQLSTM_OK;
    int64_t last = raw->series - 1, rows = raw->start[last] + raw->length[last] - raw->start[0];
    c->d->stream = true;
    return add(c, 0, raw->start[0], rows > behind ? rows - behind : 0, err);
}

/* Windows of one series. While predicting the rows behind a window need not exist. */
static seqlstm_status cut_windows(struct cutter *c, int64_t series, struct seqlstm_error *err)
{
    struct sl_raw *raw = c->raw;
    const struct sl_window *window = &raw->source->window;
    int64_t behind = c->d->form == SL_TARGET_NONE ? 0 : raw->ahead, stride = window->stride > 0 ? window->stride : 1;
    if (raw->length[series] < window->length + behind)
        raw->counts.short_groups++;
    for (int64_t at = 0; at + window->length + behind <= raw->length[series]; at += stride)
        SEQLSTM_TRY(add(c, series, raw->start[series] + at, window->length, err));
    return SEQLSTM_OK;
}

static seqlstm_status cut_all(struct cutter *c, struct seqlstm_error *err)
{
    const struct sl_raw *raw = c->raw;
    bool windows = raw->source->window.length > 0 && raw->source->type != SL_SOURCE_GENERATOR &&
                   raw->input_kind == SL_FIELD_VALUES && raw->has_steps;
    if (c->d->model->data.batching.unit == SL_UNIT_STREAM && raw->has_steps && c->d->form != SL_TARGET_NONE)
        return cut_stream(c, err);
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t length = raw->length[s];
        if (windows) {
            SEQLSTM_TRY(cut_windows(c, s, err));
            continue;
        }
        if (c->d->form == SL_TARGET_NEXT)
            length = length > 0 ? length - 1 : 0;
        else if (raw->ahead_in_series)
            length -= raw->ahead;
        if (c->d->form == SL_TARGET_LAST && length == 0)
            continue;
        SEQLSTM_TRY(add(c, s, raw->start[s], length, err));
    }
    if (windows && c->d->records == 0 && c->d->form == SL_TARGET_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: %lld row%s too few to predict from: a window has %lld rows%s",
                     raw->name, (long long)raw->rows, raw->rows == 1 ? " is" : "s are",
                     (long long)raw->source->window.length,
                     raw->series > 1 ? ", and each group must have as many" : "");
    int64_t longest = 0;
    for (int64_t s = 0; s < raw->series; s++)
        longest = raw->length[s] > longest ? raw->length[s] : longest;
    if (windows && c->d->records == 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: no series is long enough: a window of %lld row%s and a horizon of %lld need %lld rows, and "
                     "the longest of %lld series has %lld",
                     raw->name ? raw->name : "data", (long long)raw->source->window.length,
                     raw->source->window.length == 1 ? "" : "s", (long long)raw->ahead,
                     (long long)(raw->source->window.length + raw->ahead), (long long)raw->series, (long long)longest);
    return SEQLSTM_OK;
}

static void *take(struct sl_buf *buf, bool *ok)
{
    void *array = buf->failed ? NULL : buf->data ? (void *)sl_buf_take(buf, NULL) : calloc(1, sizeof(int64_t));
    *ok = *ok && array;
    return array;
}

static void set_facts(struct sl_dataset *d)
{
    d->facts.records = d->records;
    d->facts.rows = 0;
    d->facts.longest = d->facts.source_rows = d->facts.source_longest = 0;
    for (int64_t r = 0; r < d->records; r++) {
        int64_t source = d->source.present ? d->source.length[r] : 0;
        d->facts.source_rows += source;
        d->facts.source_longest = source > d->facts.source_longest ? source : d->facts.source_longest;
        d->facts.rows += d->length[r];
        if (d->facts.has_steps && d->length[r] > d->facts.longest)
            d->facts.longest = d->length[r];
    }
}

seqlstm_status sl_dataset_cut_records(struct sl_dataset *dataset, struct sl_raw *raw, struct seqlstm_error *err)
{
    struct cutter c = {.d = dataset, .raw = raw};
    bool ok = true;
    seqlstm_status status = cut_all(&c, err);
    if (status == SEQLSTM_OK) {
        dataset->start = take(&c.start, &ok);
        dataset->length = take(&c.length, &ok);
        if (dataset->form == SL_TARGET_RECORD)
            dataset->target_row = take(&c.target_row, &ok);
        if (raw->text_offset && !dataset->stream) {
            dataset->text_offset = take(&c.text_offset, &ok);
            dataset->text_bytes = take(&c.text_bytes, &ok);
        }
        if (raw->blank || raw->after_gap)
            dataset->no_prediction = take(&c.no_prediction, &ok);
        dataset->step = raw->step;
        dataset->steps = raw->steps;
        raw->step = raw->steps = NULL;
        if (raw->pair) {
            dataset->source.start = take(&c.source_start, &ok);
            dataset->source.length = take(&c.source_length, &ok);
            dataset->target_text_offset = take(&c.target_text_offset, &ok);
            dataset->target_text_bytes = take(&c.target_text_bytes, &ok);
        }
        ok = ok && !c.text_offset.failed && !c.text_bytes.failed;
        if (!ok)
            status = SL_DATA_NO_MEMORY(err);
    }
    if (status == SEQLSTM_OK && dataset->records == 0 && dataset->form != SL_TARGET_NONE)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "%s: no records are left (%lld were longer than `max_length` and dropped)",
                                   raw->name ? raw->name : "data", (long long)raw->counts.dropped_records);
    if (status == SEQLSTM_OK)
        set_facts(dataset);
    if (status == SEQLSTM_OK && dataset->form != SL_TARGET_NONE && dataset->facts.has_steps &&
        dataset->facts.rows + dataset->facts.source_rows == 0)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "%s: every sequence is empty, expected at least one step",
                                   raw->name ? raw->name : "data");
    sl_buf_deinit(&c.start);
    sl_buf_deinit(&c.length);
    sl_buf_deinit(&c.target_row);
    sl_buf_deinit(&c.no_prediction);
    sl_buf_deinit(&c.text_offset);
    sl_buf_deinit(&c.text_bytes);
    sl_buf_deinit(&c.source_start);
    sl_buf_deinit(&c.source_length);
    sl_buf_deinit(&c.target_text_offset);
    sl_buf_deinit(&c.target_text_bytes);
    return status;
}
