/* SPDX-License-Identifier: Apache-2.0 */
/* Which columns of a table are meant and which rows, in which order. */
#include "data/table/table_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/no_memory.h"
#include "data/read/load_text.h"
#include "data/table/moment.h"

static char *name_of(const struct sl_table *table, int64_t column)
{
    char number[SL_TEXT_NUMBER_BYTES];
    if (table->names)
        return strndup(table->names[column].text, table->names[column].bytes);
    sl_text_snprintf(number, sizeof number, "%lld", (long long)column + 1);
    return strdup(number);
}

static seqlstm_status keep_names(const struct sl_table *table, const int64_t *columns, int64_t count, char ***out,
                                 struct seqlstm_error *err)
{
    char **names = calloc((size_t)count + 1, sizeof *names);
    bool ok = names != NULL;
    for (int64_t i = 0; ok && i < count; i++)
        ok = (names[i] = name_of(table, columns[i])) != NULL;
    *out = names; /* freed with the raw, complete or not */
    return ok ? SEQLSTM_OK : SL_DATA_NO_MEMORY(err);
}

static seqlstm_status find_list(const struct sl_table *table, struct sl_string_list names, const char *key,
                                int64_t *out, struct seqlstm_error *err)
{
    for (size_t i = 0; i < names.count; i++)
        SEQLSTM_TRY(sl_table_find_column(table, names.items[i], key, &out[i], err));
    return SEQLSTM_OK;
}

static seqlstm_status find_one(const struct sl_table *table, const char *name, const char *key, bool needed,
                               int64_t *out, struct seqlstm_error *err)
{
    *out = -1;
    if (!name)
        return SEQLSTM_OK;
    seqlstm_status status = sl_table_find_column(table, name, key, out, err);
    return status == SEQLSTM_INVALID_CONFIG && !needed ? SEQLSTM_OK : status;
}

/* Every column that has no other use; targets only in front of a window, where they are history. */
static seqlstm_status default_inputs(struct sl_table_read *t, struct seqlstm_error *err)
{
    bool *used = calloc((size_t)t->table.columns + 1, sizeof *used);
    if (!used)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t k = 0; k < t->target_count && t->source->window.length == 0; k++)
        used[t->targets[k]] = true;
    for (int64_t c = 0; c < t->table.columns; c++)
        if (!used[c] && c != t->label && c != t->group && c != t->time && c != t->text)
            t->inputs[t->input_count++] = c;
    free(used);
    return SEQLSTM_OK;
}

seqlstm_status sl_table_find_columns(struct sl_table_read *t, struct seqlstm_error *err)
{
    const struct sl_source *source = t->source;
    bool predicting = t->read->input != NULL;
    size_t room = (size_t)t->table.columns + source->inputs.count + source->targets.count + 1;
    if (t->read->inputs)
        room += t->read->inputs->count;
    t->inputs = calloc(room, sizeof *t->inputs);
    t->targets = calloc(room, sizeof *t->targets);
    if (!t->inputs || !t->targets)
        return SL_DATA_NO_MEMORY(err);
    SEQLSTM_TRY(find_one(&t->table, source->label.column, "label.column", !predicting, &t->label, err));
    SEQLSTM_TRY(find_one(&t->table, source->group, "group", true, &t->group, err));
    SEQLSTM_TRY(find_one(&t->table, source->time.column, "time.column", true, &t->time, err));
    SEQLSTM_TRY(find_one(&t->table, source->text, "text", true, &t->text, err));
    SEQLSTM_TRY(find_one(&t->table, source->source_column, "source", true, &t->pair_source, err));
    SEQLSTM_TRY(find_one(&t->table, source->target_column, "target", !predicting, &t->pair_target, err));
    if (!predicting && source->targets.count > 0) {
        SEQLSTM_TRY(find_list(&t->table, source->targets, "targets", t->targets, err));
        t->target_count = (int64_t)source->targets.count;
    }
    if (!predicting && t->label >= 0 && source->label.type == SL_LABEL_VALUE && t->target_count == 0)
        t->targets[t->target_count++] = t->label;
    if (t->text >= 0 || t->pair_source >= 0)
        return SEQLSTM_OK;
    const struct sl_string_list names = t->read->inputs ? *t->read->inputs : source->inputs;
    if (names.count > 0) {
        SEQLSTM_TRY(find_list(&t->table, names, "inputs", t->inputs, err));
        t->input_count = (int64_t)names.count;
    } else {
        SEQLSTM_TRY(default_inputs(t, err));
    }
    if (t->input_count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: no input column is left, say `inputs`", t->table.file);
    t->raw->input_features = t->input_count;
    SEQLSTM_TRY(keep_names(&t->table, t->inputs, t->input_count, &t->raw->input_names, err));
    bool values = t->target_count > 0 && (t->label < 0 || source->label.type == SL_LABEL_VALUE);
    t->raw->target_features = values ? t->target_count : 1;
    if (values)
        return keep_names(&t->table, t->targets, t->target_count, &t->raw->target_names, err);
    return SEQLSTM_OK;
}

static bool is_number(const char *text, size_t bytes)
{
    double value;
    sl_trim(&text, &bytes);
    return sl_text_parse_float64(text, bytes, &value);
}

/* A time column that holds bare numbers, so that a bare number in `rows` is one of its moments. */
static bool has_number_moments(const struct sl_table_read *t)
{
    if (t->time < 0 || t->table.rows == 0 || t->source->time.format)
        return false;
    const struct sl_cell *cell = sl_table_cell(&t->table, 0, t->time);
    return is_number(cell->text, cell->bytes);
}

/* One end of `rows`: a row number, or a moment of the time column. */
static seqlstm_status parse_end(const struct sl_table_read *t, const char *text, bool *out_is_moment, double *out,
                                struct seqlstm_error *err)
{
    const char *format = t->source->time.format;
    size_t bytes = strlen(text);
    int64_t number;
    bool whole = sl_text_parse_int64(text, bytes, &number);
    if (whole && number >= 1 && !has_number_moments(t)) {
        *out_is_moment = false;
        *out = (double)number;
        return SEQLSTM_OK;
    }
    if (t->time >= 0 &&
        ((format && sl_moment_parse(text, bytes, format, out)) || sl_moment_parse(text, bytes, NULL, out))) {
        *out_is_moment = true;
        return SEQLSTM_OK;
    }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: `rows` has the end \"%s\", expected a row number from 1%s",
                 t->table.file, text, t->time >= 0 ? " or a moment of the time column" : "");
}

static seqlstm_status moment_of(const struct sl_table_read *t, int64_t row, double *out, struct seqlstm_error *err)
{
    const struct sl_cell *cell = sl_table_cell(&t->table, row, t->time);
    const char *text = cell->text;
    size_t bytes = cell->bytes;
    sl_trim(&text, &bytes);
    if (!sl_moment_parse(text, bytes, t->source->time.format, out))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` holds \"%.*s\", expected %s%s", t->table.file,
                     (long long)t->table.lines[row], t->source->time.column, (int)(bytes > 80 ? 80 : bytes), text,
                     t->source->time.format
                         ? "the format "
                         : "an ISO 8601 date or a number (`format:` describes others, as in `%d/%m/%Y`)",
                     t->source->time.format ? t->source->time.format : "");
    if (!t->source->time.format && is_number(text, bytes) != t->number_moments)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` holds \"%.*s\", expected %s, as in the first row",
                     t->table.file, (long long)t->table.lines[row], t->source->time.column,
                     (int)(bytes > 80 ? 80 : bytes), text, t->number_moments ? "a number" : "a date");
    return SEQLSTM_OK;
}

/* To which group a row belongs; blanks around the value are no part of it, as those around numbers and labels. */
static const char *get_group(const struct sl_table_read *t, int64_t i, size_t *out_bytes)
{
    const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], t->group);
    const char *text = cell->text;
    *out_bytes = cell->bytes;
    sl_trim(&text, out_bytes);
    return text;
}

/* Each row says to which group it belongs. */
static seqlstm_status check_groups(const struct sl_table_read *t, struct seqlstm_error *err)
{
    size_t bytes;
    for (int64_t i = 0; i < t->kept; i++) {
        get_group(t, i, &bytes);
        if (bytes == 0)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "%s:%lld: column `%s` is empty, and does not say to which group the row belongs",
                         SL_TABLE_LINE(t, i), t->source->group);
    }
    return SEQLSTM_OK;
}

/* Stable order by group: count, then place. */
static seqlstm_status gather_groups(struct sl_table_read *t, struct seqlstm_error *err)
{
    struct sl_intern names;
    seqlstm_status status = SEQLSTM_OK;
    size_t n = (size_t)t->kept;
    int32_t *group = calloc(n + 1, sizeof *group);
    int64_t *order = calloc(n + 1, sizeof *order), *place = NULL;
    double *moments = t->moments ? calloc(n + 1, sizeof *moments) : NULL;
    t->groups = calloc(n + 1, sizeof *t->groups);
    sl_intern_init(&names);
    for (int64_t i = 0; group && i < t->kept; i++) {
        size_t bytes;
        const char *name = get_group(t, i, &bytes);
        group[i] = sl_intern_add(&names, name, bytes);
    }
    place = calloc((size_t)names.count + 1, sizeof *place);
    if (!group || !order || !place || !t->groups || names.failed || (t->moments && !moments)) {
        status = SL_DATA_NO_MEMORY(err);
        goto out;
    }
    for (int64_t i = 0; i < t->kept; i++)
        place[group[i] + 1]++;
    for (int32_t g = 1; g <= names.count; g++)
        place[g] += place[g - 1];
    for (int64_t i = 0; i < t->kept; i++) {
        int64_t at = place[group[i]]++;
        order[at] = t->order[i];
        t->groups[at] = group[i];
        if (moments)
            moments[at] = t->moments[i];
    }
    memcpy(t->order, order, n * sizeof *order);
    if (moments)
        memcpy(t->moments, moments, n * sizeof *moments);
out:
    sl_intern_deinit(&names);
    free(group);
    free(order);
    free(place);
    free(moments);
    return status;
}

seqlstm_status sl_table_choose_rows(struct sl_table_read *t, struct seqlstm_error *err)
{
    const struct sl_rows *rows = &t->source->rows;
    const char *texts[2] = {t->read->input ? NULL : rows->first, t->read->input ? NULL : rows->last};
    bool is_moment[2] = {false, false};
    double end[2] = {0, 0};
    t->order = calloc((size_t)t->table.rows + 1, sizeof *t->order);
    t->moments = t->time >= 0 ? calloc((size_t)t->table.rows + 1, sizeof *t->moments) : NULL;
    if (!t->order || (t->time >= 0 && !t->moments))
        return SL_DATA_NO_MEMORY(err);
    t->number_moments = has_number_moments(t);
    for (int i = 0; i < 2; i++)
        if (texts[i])
            SEQLSTM_TRY(parse_end(t, texts[i], &is_moment[i], &end[i], err));
    for (int64_t r = 0; r < t->table.rows; r++) {
        double moment = 0;
        if (t->time >= 0)
            SEQLSTM_TRY(moment_of(t, r, &moment, err));
        if (texts[0] && (is_moment[0] ? moment : (double)(r + 1)) < end[0])
            continue;
        if (texts[1] && (is_moment[1] ? moment : (double)(r + 1)) > end[1])
            continue;
        if (t->moments)
            t->moments[t->kept] = moment;
        t->order[t->kept++] = r;
    }
    if (t->table.rows == 0 && !t->read->input)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the table has no rows but its header", t->table.file);
    if (t->kept == 0 && !t->read->input)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: `rows` [%s, %s] selects none of %lld row%s", t->table.file,
                     texts[0] ? texts[0] : "~", texts[1] ? texts[1] : "~", (long long)t->table.rows,
                     t->table.rows == 1 ? "" : "s");
    if (t->group < 0)
        return SEQLSTM_OK;
    SEQLSTM_TRY(check_groups(t, err));
    return gather_groups(t, err);
}
