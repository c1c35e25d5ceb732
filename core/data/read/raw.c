/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and freeing a raw source, and the slice that `split:` takes of it. */
#include "data/read/raw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void free_names(char **names, int64_t count)
{
    if (!names)
        return;
    for (int64_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

void sl_raw_deinit(struct sl_raw *raw)
{
    if (raw->pair)
        sl_raw_deinit(raw->pair);
    free(raw->pair);
    free(raw->name);
    free(raw->ids);
    sl_token_file_close(raw->token_file);
    sl_intern_deinit(&raw->tokens);
    free(raw->values);
    free(raw->values32);
    sl_file_map_close(&raw->map);
    free(raw->target_ids);
    sl_intern_deinit(&raw->labels);
    free(raw->target_values);
    free(raw->start);
    free(raw->length);
    free(raw->line);
    free(raw->row_line);
    free(raw->missing);
    free(raw->filled);
    free(raw->blank);
    free(raw->after_gap);
    free(raw->step);
    free(raw->steps);
    free(raw->text);
    free(raw->text_offset);
    free(raw->text_bytes);
    free(raw->cache_problem);
    free_names(raw->input_names, raw->input_features);
    free_names(raw->target_names, raw->target_features);
    memset(raw, 0, sizeof *raw);
}

static seqlstm_status read_by_type(const struct sl_read *read, struct sl_raw *out, struct seqlstm_error *err)
{
    bool pairs = read->model->data.pairs;
    switch (read->source->type) {
    case SL_SOURCE_TEXT:
    case SL_SOURCE_LINES:
        return pairs ? sl_raw_read_pairs(read, out, err) : sl_raw_read_text(read, out, err);
    case SL_SOURCE_TSV:
    case SL_SOURCE_CSV:
        return sl_raw_read_table(read, out, err);
    case SL_SOURCE_CONLL:
        return sl_raw_read_conll(read, out, err);
    case SL_SOURCE_NPY:
        return sl_raw_read_npy(read, out, err);
    case SL_SOURCE_TOKENS:
        return sl_raw_read_tokens(read, out, err);
    case SL_SOURCE_GENERATOR:
        return pairs ? sl_raw_read_pairs(read, out, err) : sl_raw_read_generator(read, out, err);
    }
    return SEQLSTM_INTERNAL;
}

seqlstm_status sl_raw_read(const struct sl_read *read, struct sl_raw *out, struct seqlstm_error *err)
{
    memset(out, 0, sizeof *out);
    out->source = read->source;
    out->pieces = read->pieces;
    seqlstm_status status = read_by_type(read, out, err);
    if (status == SEQLSTM_OK && out->series == 0 && !read->input)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__,
                                   "%s: no records, expected at least one", out->name ? out->name : "data");
    if (status != SEQLSTM_OK)
        sl_raw_deinit(out);
    return status;
}

seqlstm_status sl_raw_note_missing(struct sl_raw *raw, int64_t row, int64_t rows, bool target_filled,
                                   struct seqlstm_error *err)
{
    if (raw->missing == NULL)
        raw->missing = calloc((size_t)rows + 1, sizeof *raw->missing);
    if (raw->filled == NULL && target_filled)
        raw->filled = calloc((size_t)rows + 1, sizeof *raw->filled);
    if (raw->missing == NULL || (raw->filled == NULL && target_filled))
        return SL_DATA_NO_MEMORY(err);
    raw->missing[row]++;
    raw->counts.missing_values++;
    if (target_filled)
        raw->filled[row]++;
    raw->counts.filled_targets += target_filled;
    return SEQLSTM_OK;
}

/* Of the series that are left. A target without steps is in the first row. */
static void count_missing(struct sl_raw *raw)
{
    raw->counts.missing_values = raw->counts.filled_targets = 0;
    for (int64_t s = 0; s < raw->series; s++)
        for (int64_t i = 0; i == 0 || i < raw->length[s]; i++) {
            raw->counts.missing_values += raw->missing[raw->start[s] + i];
            raw->counts.filled_targets += raw->filled ? raw->filled[raw->start[s] + i] : 0;
        }
}

/* First index of a share; tolerates rounding as in 0.7 * 10 = 7.000000000000001. */
static int64_t cut(double share, int64_t count)
{
    int64_t at = (int64_t)floor(share * (double)count + 1e-6);
    return at < 0 ? 0 : at > count ? count : at;
}

static void narrow_series(struct sl_raw *raw, int64_t first, int64_t last)
{
    int64_t count = last - first;
    size_t bytes = (size_t)count * sizeof(int64_t);
    memmove(raw->start, raw->start + first, bytes);
    memmove(raw->length, raw->length + first, bytes);
    if (raw->line)
        memmove(raw->line, raw->line + first, bytes);
    if (raw->text_offset)
        memmove(raw->text_offset, raw->text_offset + first, bytes);
    if (raw->text_bytes)
        memmove(raw->text_bytes, raw->text_bytes + first, bytes);
    raw->first_target += first;
    raw->series = count;
    if (raw->missing)
        count_missing(raw);
    if (raw->pair)
        narrow_series(raw->pair, first, last);
}

seqlstm_status sl_raw_slice(struct sl_raw *raw, double from, double to, bool by_rows, struct seqlstm_error *err)
{
    int64_t total = raw->series, first, last;
    if (by_rows) {
        total = 0;
        for (int64_t s = 0; s < raw->series; s++)
            total += raw->length[s];
    }
    first = cut(from, total);
    last = cut(to, total);
    if (first >= last && !by_rows && raw->source->group)
        SEQLSTM_FAIL(
            err, SEQLSTM_CORRUPT_DATA,
            "%s: `split` takes whole groups of column `%s`, the last in the file, and %lld are too few to "
            "split: a part of %g to %g is empty (`valid: {file: …, rows: [first, last]}` splits each group, by "
            "time)",
            raw->name, raw->source->group, (long long)total, from, to);
    if (first >= last)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: %lld %s are too few to split: a part of %g to %g is empty",
                     raw->name ? raw->name : "data", (long long)total, by_rows ? "rows" : "records", from, to);
    if (!by_rows) {
        narrow_series(raw, first, last);
        return SEQLSTM_OK;
    }
    int64_t begin = 0, first_series = raw->series, last_series = 0;
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t end = begin + raw->length[s];
        int64_t low = begin > first ? begin : first, high = end < last ? end : last;
        if (low < high) {
            raw->start[s] += low - begin;
            raw->length[s] = high - low;
            first_series = s < first_series ? s : first_series;
            last_series = s + 1;
        }
        begin = end;
    }
    narrow_series(raw, first_series, last_series);
    return SEQLSTM_OK;
}

bool sl_model_wants_steps(const struct sl_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        enum sl_layer_kind kind = model->layers[i].kind;
        if (kind == SL_LAYER_LSTM || kind == SL_LAYER_GRU || kind == SL_LAYER_RNN || kind == SL_LAYER_POOL)
            return true;
    }
    return false;
}

bool sl_model_ignores_missing_targets(const struct sl_model *model)
{
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (model->data.splits[split].missing.targets == SL_MISSING_TARGETS_IGNORE)
            return true;
    return false;
}

bool sl_model_wants_step_targets(const struct sl_model *model)
{
    if (model->train.task == SL_TASK_LANGUAGE_MODEL || model->train.task == SL_TASK_TAG)
        return true;
    if (model->train.task == SL_TASK_CLASSIFY || model->layer_count == 0)
        return false;
    return model->layers[model->layer_count - 1].output_shape == SL_SHAPE_SEQUENCE;
}
