/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of tables: a text column with its label, or columns of numbers as series. */
#include "data/read/raw_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/value/text.h"
#include "data/read/load_text.h"
#include "data/read/raw_builder.h"
#include "data/read/raw_pairs.h"

/* Words that mean "no value" in R, pandas and the UCI archive. */
static bool is_missing(const char *text, size_t bytes)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "-nan", ".nan", "null", "none", "?"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == bytes && strncasecmp(words[i], text, bytes) == 0)
            return true;
    return false;
}

static seqlstm_status parse_cell(const struct sl_table_read *t, int64_t i, int64_t column, const char *name,
                                 double *out, struct seqlstm_error *err)
{
    const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], column);
    const char *text = cell->text;
    size_t bytes = cell->bytes;
    sl_trim(&text, &bytes);
    if (is_missing(text, bytes)) {
        if (t->source->missing.type == SL_MISSING_ERROR)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` has no value (`missing:` chooses what to do)",
                         SL_TABLE_LINE(t, i), name);
        *out = NAN;
        return sl_raw_note_missing(t->raw, i, t->kept, err);
    }
    if (!sl_text_parse_float64(text, bytes, out) || !isfinite(*out))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` holds \"%.*s\", expected a number",
                     SL_TABLE_LINE(t, i), name, (int)(bytes > 80 ? 80 : bytes), text);
    return SEQLSTM_OK;
}

static bool has_nan(const double *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++)
        if (isnan(values[k]))
            return true;
    return false;
}

/* Fills row `i` of `values` from the rows before it in its group. `runs` counts filled rows per column. */
static seqlstm_status fill_forward(const struct sl_table_read *t, int64_t i, double *row, const double *before,
                                   int64_t *runs, int64_t count, char **names, struct seqlstm_error *err)
{
    int64_t limit = t->source->missing.limit;
    for (int64_t k = 0; k < count; k++) {
        if (!isnan(row[k])) {
            runs[k] = 0;
            continue;
        }
        if (!before || isnan(before[k]))
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "%s:%lld: column `%s` has no value, and none before it to fill from", SL_TABLE_LINE(t, i),
                         names[k]);
        if (limit > 0 && ++runs[k] > limit)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` has no value for more than %lld rows",
                         SL_TABLE_LINE(t, i), names[k], (long long)limit);
        row[k] = before[k];
    }
    return SEQLSTM_OK;
}

/* The rows' numbers, missing ones filled or their rows dropped; out_keep[i] false: `missing: drop`. */
static seqlstm_status parse_numbers(struct sl_table_read *t, const int64_t *columns, int64_t count, char **names,
                                    double *out, bool *out_keep, struct seqlstm_error *err)
{
    enum sl_missing_type missing = t->source->missing.type;
    seqlstm_status status = SEQLSTM_OK;
    int64_t *runs = calloc((size_t)count + 1, sizeof *runs);
    if (!runs)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; status == SEQLSTM_OK && i < t->kept; i++) {
        double *row = out + i * count;
        bool first = i == 0 || (t->groups && t->groups[i] != t->groups[i - 1]);
        for (int64_t k = 0; status == SEQLSTM_OK && k < count; k++)
            status = parse_cell(t, i, columns[k], names[k], &row[k], err);
        if (status != SEQLSTM_OK)
            break;
        if (missing == SL_MISSING_FORWARD_FILL)
            status = fill_forward(t, i, row, first ? NULL : row - count, runs, count, names, err);
        else if (missing == SL_MISSING_DROP && has_nan(row, count))
            out_keep[i] = false;
        for (int64_t k = 0; missing == SL_MISSING_ZERO && k < count; k++)
            row[k] = isnan(row[k]) ? 0 : row[k];
    }
    free(runs);
    return status;
}

static seqlstm_status parse_classes(struct sl_table_read *t, int32_t *out, bool *keep, struct seqlstm_error *err)
{
    for (int64_t i = 0; i < t->kept; i++) {
        const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], t->label);
        const char *text = cell->text;
        size_t bytes = cell->bytes;
        sl_trim(&text, &bytes);
        if (bytes == 0 && t->source->missing.type == SL_MISSING_DROP) {
            keep[i] = false;
            SEQLSTM_TRY(sl_raw_note_missing(t->raw, i, t->kept, err));
            continue;
        }
        if (bytes == 0)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` has no label", SL_TABLE_LINE(t, i),
                         t->source->label.column);
        if ((out[i] = sl_intern_add(&t->raw->labels, text, bytes)) < 0)
            return SL_DATA_NO_MEMORY(err);
    }
    return SEQLSTM_OK;
}

/* Moves the kept rows together. */
static void drop_rows(struct sl_table_read *t, const bool *keep, bool *breaks)
{
    struct sl_raw *raw = t->raw;
    int64_t to = 0, I = raw->input_features, O = raw->target_features;
    int32_t missing = 0;
    bool pending = false;
    for (int64_t i = 0; i < t->kept; i++) {
        pending = pending || breaks[i];
        missing += raw->missing ? raw->missing[i] : 0;
        if (!keep[i])
            continue;
        memmove(raw->values + to * I, raw->values + i * I, (size_t)I * sizeof *raw->values);
        if (raw->target_values)
            memmove(raw->target_values + to * O, raw->target_values + i * O, (size_t)O * sizeof *raw->values);
        if (raw->target_ids)
            raw->target_ids[to] = raw->target_ids[i];
        t->order[to] = t->order[i];
        if (t->groups)
            t->groups[to] = t->groups[i];
        breaks[to] = pending;
        pending = false;
        if (raw->missing)
            raw->missing[to] = missing;
        missing = 0;
        to++;
    }
    if (raw->missing && to > 0)
        raw->missing[to - 1] += missing;
    t->kept = to;
}

/* Series: rows without steps; else runs of one group, cut at gaps. */
static seqlstm_status make_series(struct sl_table_read *t, const bool *breaks, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    size_t n = (size_t)t->kept + 1;
    raw->start = calloc(n, sizeof *raw->start);
    raw->length = calloc(n, sizeof *raw->length);
    raw->line = calloc(n, sizeof *raw->line);
    raw->row_line = calloc(n, sizeof *raw->row_line);
    if (!raw->start || !raw->length || !raw->line || !raw->row_line)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < t->kept; i++) {
        raw->row_line[i] = t->table.lines[t->order[i]];
        bool begins = i == 0 || breaks[i] || !raw->has_steps || (t->groups && t->groups[i] != t->groups[i - 1]);
        if (begins) {
            raw->start[raw->series] = i;
            raw->line[raw->series++] = raw->row_line[i];
        }
        raw->length[raw->series - 1]++;
    }
    return SEQLSTM_OK;
}

/* A whole sequence has one class: its rows must agree. */
static seqlstm_status check_classes(const struct sl_table_read *t, struct seqlstm_error *err)
{
    const struct sl_raw *raw = t->raw;
    bool per_series = raw->target_ids && raw->has_steps && t->source->window.length == 0 &&
                      !sl_model_wants_step_targets(t->read->model);
    for (int64_t s = 0; per_series && s < raw->series; s++)
        for (int64_t i = raw->start[s] + 1; i < raw->start[s] + raw->length[s]; i++)
            if (raw->target_ids[i] != raw->target_ids[i - 1])
                SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                             "%s:%lld: the label changes from \"%s\" to \"%s\" inside one sequence (column `%s`)",
                             SL_TABLE_LINE(t, i), sl_intern_get(&raw->labels, raw->target_ids[i - 1], NULL),
                             sl_intern_get(&raw->labels, raw->target_ids[i], NULL), t->source->label.column);
    return SEQLSTM_OK;
}

static seqlstm_status read_numbers(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    const struct sl_source *source = t->source;
    const struct sl_model *model = t->read->model;
    size_t n = (size_t)t->kept + 1;
    bool classes = !t->read->input && t->label >= 0 && source->label.type == SL_LABEL_CLASS;
    bool values = !t->read->input && !classes && t->target_count > 0;
    raw->input_kind = SL_FIELD_VALUES;
    raw->has_steps = t->group >= 0 || source->window.length > 0 || sl_model_wants_steps(model) ||
                     model->data.batching.unit == SL_UNIT_STREAM;
    raw->target_kind = classes ? SL_FIELD_IDS : values ? SL_FIELD_VALUES : SL_FIELD_NONE;
    raw->target_per_row = true;
    raw->ahead = values && source->window.length > 0 ? source->window.horizon : 0;
    if (!t->read->input && raw->target_kind == SL_FIELD_NONE)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: nothing to learn: say `targets` or `label`", t->table.file);
    raw->values = calloc(n * (size_t)raw->input_features, sizeof *raw->values);
    if (classes)
        raw->target_ids = calloc(n, sizeof *raw->target_ids);
    if (values)
        raw->target_values = calloc(n * (size_t)raw->target_features, sizeof *raw->target_values);
    bool *keep = malloc(n), *breaks = calloc(n, sizeof *breaks);
    seqlstm_status status = SEQLSTM_OK;
    if (!raw->values || (classes && !raw->target_ids) || (values && !raw->target_values) || !keep || !breaks)
        status = SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; keep && i < t->kept; i++)
        keep[i] = true;
    if (status == SEQLSTM_OK)
        status = sl_table_check_time(t, breaks, err);
    if (status == SEQLSTM_OK)
        status = parse_numbers(t, t->inputs, t->input_count, raw->input_names, raw->values, keep, err);
    if (status == SEQLSTM_OK && values)
        status = parse_numbers(t, t->targets, t->target_count, raw->target_names, raw->target_values, keep, err);
    if (status == SEQLSTM_OK && classes)
        status = parse_classes(t, raw->target_ids, keep, err);
    if (status == SEQLSTM_OK) {
        if (source->missing.type == SL_MISSING_DROP)
            drop_rows(t, keep, breaks);
        raw->rows = t->kept;
        status = make_series(t, breaks, err);
    }
    if (status == SEQLSTM_OK)
        status = check_classes(t, err);
    free(keep);
    free(breaks);
    return status;
}

static seqlstm_status read_texts(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    const struct sl_source *source = t->source;
    struct sl_raw_builder builder;
    seqlstm_status status = SEQLSTM_OK;
    bool labelled = !t->read->input && t->label >= 0 && t->read->model->train.task != SL_TASK_LANGUAGE_MODEL;
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->target_features = 1;
    raw->has_steps = true;
    if (labelled)
        raw->target_kind = source->label.type == SL_LABEL_CLASS ? SL_FIELD_IDS : SL_FIELD_VALUES;
    sl_raw_builder_init(&builder, raw, &t->read->model->data.tokenizer);
    for (int64_t i = 0; status == SEQLSTM_OK && i < t->kept; i++) {
        const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], t->text);
        int64_t line = t->table.lines[t->order[i]];
        if (labelled) {
            const struct sl_cell *label = sl_table_cell(&t->table, t->order[i], t->label);
            status = sl_raw_builder_add_label(&builder, source->label.type, label->text, label->bytes, line,
                                              source->label.column, err);
        }
        sl_raw_builder_begin(&builder, line, cell->text - raw->text, (int64_t)cell->bytes);
        sl_raw_builder_add_special(&builder, SL_SPECIAL_BOS);
        sl_raw_builder_add_text(&builder, cell->text, cell->bytes);
        sl_raw_builder_add_special(&builder, SL_SPECIAL_EOS);
        sl_raw_builder_end(&builder);
    }
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&builder, err);
    sl_raw_builder_deinit(&builder);
    return status;
}

/* Two texts of a row; `text` alone is both. */
static seqlstm_status read_pairs(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_raw *raw = t->raw;
    struct sl_pair_builder b;
    int64_t from = t->pair_source >= 0 ? t->pair_source : t->text, to = t->pair_target >= 0 ? t->pair_target : t->text;
    SEQLSTM_TRY(sl_pair_builder_init(&b, t->read, raw, err));
    raw->pair->text = raw->text; /* for the offsets of its cells; transferred below */
    for (int64_t i = 0; i < t->kept; i++) {
        const struct sl_cell *source = sl_table_cell(&t->table, t->order[i], from);
        const struct sl_cell *target = to < 0 ? source : sl_table_cell(&t->table, t->order[i], to);
        int64_t line = t->table.lines[t->order[i]];
        sl_pair_builder_add(&b, source->text, source->bytes, line, target->text, target->bytes, line);
    }
    raw->pair->text = NULL;
    seqlstm_status status = SEQLSTM_OK;
    raw->pair->name = strdup(raw->name);
    raw->pair->text = malloc(t->text_bytes + 1);
    if (raw->pair->name && raw->pair->text)
        memcpy(raw->pair->text, raw->text, t->text_bytes + 1);
    else
        status = SL_DATA_NO_MEMORY(err);
    return sl_pair_builder_finish(&b, status, err);
}

/* An input that lacks a column is wrong; the model, which names it, was right for the training data. */
static seqlstm_status find_columns(struct sl_table_read *t, struct seqlstm_error *err)
{
    seqlstm_status status = sl_table_find_columns(t, err);
    if (status != SEQLSTM_INVALID_CONFIG || !t->read->input)
        return status;
    if (err)
        err->code = SEQLSTM_CORRUPT_DATA;
    return SEQLSTM_CORRUPT_DATA;
}

seqlstm_status sl_raw_read_table(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    struct sl_table_read t = {
        .read = read, .source = source, .raw = raw, .label = -1, .group = -1, .time = -1, .text = -1};
    t.pair_source = t.pair_target = -1;
    bool csv = source->type == SL_SOURCE_CSV;
    size_t bytes;
    SEQLSTM_TRY(sl_load_text(read, &raw->text, &bytes, &raw->name, err));
    seqlstm_status status = sl_table_parse(raw->name, raw->text, bytes,
                                           source->delimiter ? source->delimiter
                                           : csv             ? ","
                                                             : "\t",
                                           csv, source->header, source->columns, &t.table, err);
    if (status == SEQLSTM_OK)
        status = find_columns(&t, err);
    if (status == SEQLSTM_OK)
        status = sl_table_choose_rows(&t, err);
    t.text_bytes = bytes;
    if (status == SEQLSTM_OK)
        status = read->model->data.pairs ? read_pairs(&t, err)
                 : t.text >= 0           ? read_texts(&t, err)
                                         : read_numbers(&t, err);
    sl_table_deinit(&t.table);
    free(t.inputs);
    free(t.targets);
    free(t.order);
    free(t.groups);
    free(t.moments);
    return status;
}
