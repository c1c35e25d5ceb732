/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a table as numbers and classes, and what becomes of those without a value. */
#include "data/table/table_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/value/text.h"
#include "data/read/load_text.h"

enum { NUMBER_LONGEST = 400 };

/* Words that mean "no value" in R, pandas and the UCI archive, and those of the model file. */
static bool is_missing(const struct sl_missing *missing, const char *text, size_t bytes)
{
    static const char *const words[] = {"", "na", "n/a", "nan", "-nan", ".nan", "null", "none", "?"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == bytes && strncasecmp(words[i], text, bytes) == 0)
            return true;
    for (size_t i = 0; i < missing->values.count; i++)
        if (strlen(missing->values.items[i]) == bytes && memcmp(missing->values.items[i], text, bytes) == 0)
            return true;
    return false;
}

/* A finite number, with the decimals behind a comma where `comma` says so. */
bool sl_table_parse_number(const char *text, size_t bytes, bool comma, double *out)
{
    char point[NUMBER_LONGEST];
    if (comma && (bytes >= sizeof point || memchr(text, '.', bytes)))
        return false;
    if (comma) {
        memcpy(point, text, bytes);
        char *mark = memchr(point, ',', bytes);
        if (mark)
            *mark = '.';
        text = point;
    }
    return sl_text_parse_float64(text, bytes, out) && isfinite(*out);
}

/* Where `missing: {values: [-999]}` means the number, -999.0 is missing too. */
static bool is_missing_number(const struct sl_missing *missing, bool comma, double value)
{
    double marker;
    for (size_t i = 0; i < missing->values.count; i++)
        if (sl_table_parse_number(missing->values.items[i], strlen(missing->values.items[i]), comma, &marker) &&
            marker == value)
            return true;
    return false;
}

bool sl_table_is_missing(const struct sl_source *source, const char *text, size_t bytes)
{
    const bool comma = source->decimal == SL_DECIMAL_COMMA;
    double value;
    return is_missing(&source->missing, text, bytes) ||
           (sl_table_parse_number(text, bytes, comma, &value) && is_missing_number(&source->missing, comma, value));
}

/* Does the text end in a mark and three digits, as 1,234 does? */
static bool may_group_digits(const char *text, size_t bytes)
{
    return bytes > 4 && (text[bytes - 4] == ',' || text[bytes - 4] == '.') &&
           strspn(text + bytes - 3, "0123456789") >= 3;
}

static seqlstm_status fail_number(const struct sl_table_read *t, int64_t i, const char *name, const char *text,
                                  size_t bytes, struct seqlstm_error *err)
{
    bool comma = t->source->decimal == SL_DECIMAL_COMMA;
    double value;
    int shown = (int)(bytes > 80 ? 80 : bytes);
    if (sl_table_parse_number(text, bytes, !comma, &value))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: column `%s` holds \"%.*s\", expected a number (`decimal: \"%s\"` reads it as %g%s)",
                     SL_TABLE_LINE(t, i), name, shown, text, comma ? "." : ",", value,
                     may_group_digits(text, bytes) ? "; thousands have no mark" : "");
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                 "%s:%lld: column `%s` holds \"%.*s\", expected a number (if it means that there is none: `missing: "
                 "{values: [\"%.*s\"]}`; a column of text is not for `inputs`: it is read with `text`, `label` or "
                 "`group`)",
                 SL_TABLE_LINE(t, i), name, shown, text, shown > 20 ? 20 : shown, text);
}

static seqlstm_status parse_cell(const struct sl_table_read *t, int64_t i, int64_t column, const char *name,
                                 bool target, double *out, struct seqlstm_error *err)
{
    const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], column);
    const struct sl_missing *missing = &t->source->missing;
    bool comma = t->source->decimal == SL_DECIMAL_COMMA;
    bool ignored = target && missing->targets == SL_MISSING_TARGETS_IGNORE;
    const char *text = cell->text;
    size_t bytes = cell->bytes;
    sl_trim(&text, &bytes);
    bool none = is_missing(missing, text, bytes);
    if (!none && !sl_table_parse_number(text, bytes, comma, out))
        return fail_number(t, i, name, text, bytes, err);
    if (!none && !is_missing_number(missing, comma, *out))
        return SEQLSTM_OK;
    if (missing->type == SL_MISSING_ERROR && !ignored)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` has no value (`missing:` chooses what to do)",
                     SL_TABLE_LINE(t, i), name);
    *out = NAN;
    return sl_raw_note_missing(t->raw, i, t->kept, target && !ignored && missing->type != SL_MISSING_DROP, err);
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
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: column `%s` has no value for more than %lld row%s",
                         SL_TABLE_LINE(t, i), names[k], (long long)limit, limit == 1 ? "" : "s");
        row[k] = before[k];
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_table_parse_numbers(struct sl_table_read *t, const int64_t *columns, int64_t count, char **names,
                                      bool targets, double *out, struct seqlstm_error *err)
{
    bool ignored = targets && t->source->missing.targets == SL_MISSING_TARGETS_IGNORE;
    enum sl_missing_type missing = t->source->missing.type;
    seqlstm_status status = SEQLSTM_OK;
    int64_t *runs = calloc((size_t)count + 1, sizeof *runs);
    if (!runs)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; status == SEQLSTM_OK && i < t->kept; i++) {
        double *row = out + i * count;
        bool first = i == 0 || (t->groups && t->groups[i] != t->groups[i - 1]);
        for (int64_t k = 0; status == SEQLSTM_OK && k < count; k++)
            status = parse_cell(t, i, columns[k], names[k], targets, &row[k], err);
        if (status != SEQLSTM_OK || ignored)
            continue;
        if (missing == SL_MISSING_FORWARD_FILL)
            status = fill_forward(t, i, row, first ? NULL : row - count, runs, count, names, err);
        else if (missing == SL_MISSING_DROP && has_nan(row, count))
            t->keep[i] = false;
        for (int64_t k = 0; missing == SL_MISSING_ZERO && k < count; k++)
            row[k] = isnan(row[k]) ? 0 : row[k];
    }
    free(runs);
    return status;
}

seqlstm_status sl_table_parse_classes(struct sl_table_read *t, int32_t *out, struct seqlstm_error *err)
{
    const struct sl_missing *missing = &t->source->missing;
    bool ignored = missing->targets == SL_MISSING_TARGETS_IGNORE;
    for (int64_t i = 0; i < t->kept; i++) {
        const struct sl_cell *cell = sl_table_cell(&t->table, t->order[i], t->label);
        const char *text = cell->text;
        size_t bytes = cell->bytes;
        sl_trim(&text, &bytes);
        bool none = bytes == 0;
        for (size_t k = 0; k < missing->values.count; k++)
            none = none ||
                   (strlen(missing->values.items[k]) == bytes && memcmp(missing->values.items[k], text, bytes) == 0);
        if (none && (ignored || missing->type == SL_MISSING_DROP)) {
            out[i] = -1;
            t->keep[i] = t->keep[i] && ignored;
            SEQLSTM_TRY(sl_raw_note_missing(t->raw, i, t->kept, false, err));
            continue;
        }
        if (none)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                         "%s:%lld: column `%s` has no label (`missing: drop` drops the row, `missing: {targets: "
                         "ignore}` reads it without a target)",
                         SL_TABLE_LINE(t, i), t->source->label.column);
        if ((out[i] = sl_intern_add(&t->raw->labels, text, bytes)) < 0)
            return SL_DATA_NO_MEMORY(err);
    }
    return SEQLSTM_OK;
}
