/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of column files: one token per line with its tag, a blank line ends a sequence.
 *
 * Columns are separated by the delimiter (a blank: by any run of blanks and tabs). The token is column `text` (the
 * first), the tag column `label`; they are numbers from 1, `first` or `last`. */
#include "data/read/raw.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/read/load_text.h"
#include "data/read/raw_builder.h"

struct conll {
    const struct sl_read *read;
    struct sl_raw_builder builder;
    bool by_blanks;
    int64_t text_column;  /* from 0 */
    int64_t label_column; /* from 0; -1: the last */
    bool want_label;
};

static seqlstm_status find_column(const struct sl_source *source, const char *name, const char *key, int64_t *out,
                                  struct seqlstm_error *err)
{
    int64_t number;
    if (strcmp(name, "first") == 0) {
        *out = 0;
        return SEQLSTM_OK;
    }
    if (strcmp(name, "last") == 0) {
        *out = -1;
        return SEQLSTM_OK;
    }
    if (!sl_text_parse_int64(name, strlen(name), &number) || number < 1)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                     "%s: there is no column `%s` (`%s`): expected a number from 1, `first` or `last`",
                     source->file ? source->file : "input", name, key);
    *out = number - 1;
    return SEQLSTM_OK;
}

static const char *get_delimiter(const struct conll *conll)
{
    return conll->read->source->delimiter ? conll->read->source->delimiter : "\t";
}

/* Part `wanted` of the line (-1: the last one); false when the line has fewer. */
static bool get_part(const struct conll *conll, const char *line, size_t bytes, int64_t wanted, const char **out,
                     size_t *out_bytes)
{
    const char *delimiter = get_delimiter(conll);
    size_t width = strlen(delimiter), at = 0;
    for (int64_t part = 0;; part++) {
        size_t begin = at;
        if (conll->by_blanks) {
            while (begin < bytes && (line[begin] == ' ' || line[begin] == '\t'))
                begin++;
            at = begin;
            while (at < bytes && line[at] != ' ' && line[at] != '\t')
                at++;
            if (begin == at)
                return wanted < 0 && part > 0;
        } else {
            while (at < bytes && (at + width > bytes || memcmp(line + at, delimiter, width) != 0))
                at++;
        }
        *out = line + begin;
        *out_bytes = at - begin;
        if (part == wanted)
            return true;
        if (!conll->by_blanks) {
            if (at >= bytes)
                return wanted < 0;
            at += width;
        }
    }
}

static bool has_delimiter(const struct conll *conll, const char *line, size_t bytes)
{
    const char *delimiter = get_delimiter(conll);
    return memmem(line, bytes, delimiter, strlen(delimiter)) != NULL;
}

static seqlstm_status add_line(struct conll *conll, const char *line, size_t bytes, int64_t number,
                               struct seqlstm_error *err)
{
    const struct sl_source *source = conll->read->source;
    struct sl_raw *raw = conll->builder.raw;
    const char *part;
    size_t part_bytes;
    const char *hint = !conll->by_blanks && memchr(line, ' ', bytes) && !has_delimiter(conll, line, bytes)
                           ? " (`delimiter: \" \"` separates the columns by blanks)"
                           : "";
    if (!get_part(conll, line, bytes, conll->text_column, &part, &part_bytes) || part_bytes == 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line has no token in column %lld%s", raw->name,
                     (long long)number, (long long)conll->text_column + 1, hint);
    sl_raw_builder_add_token(&conll->builder, part, part_bytes);
    if (!conll->want_label)
        return SEQLSTM_OK;
    const char *token = part;
    const bool last = !source->label.column || strcmp(source->label.column, "last") == 0;
    if (!get_part(conll, line, bytes, conll->label_column, &part, &part_bytes) || part == token)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the line has no tag: expected %s%s after \"%.*s\"%s",
                     raw->name, (long long)number, last ? "another column" : "column ",
                     last ? "" : source->label.column, (int)(part_bytes > 80 ? 80 : part_bytes), part, hint);
    return sl_raw_builder_add_label(&conll->builder, source->label.type, part, part_bytes, number,
                                    source->label.column ? source->label.column : "last", err);
}

static seqlstm_status read_all(struct conll *conll, size_t bytes, struct seqlstm_error *err)
{
    struct sl_raw *raw = conll->builder.raw;
    size_t line_bytes;
    struct sl_line_cursor cursor = {raw->text, raw->text + bytes, 0};
    const char *line, *end_of_record = raw->text;
    bool open = false;
    int64_t begin_offset = 0;
    while (sl_line_next(&cursor, &line, &line_bytes)) {
        const char *trimmed = line;
        size_t trimmed_bytes = line_bytes;
        sl_trim(&trimmed, &trimmed_bytes);
        if (trimmed_bytes == 0) {
            if (open)
                sl_raw_builder_end(&conll->builder);
            open = false;
            continue;
        }
        if (sl_line_is_comment(conll->read->source, line, line_bytes))
            continue;
        if (!open) {
            begin_offset = line - raw->text;
            sl_raw_builder_begin(&conll->builder, cursor.number, begin_offset, 0);
        }
        open = true;
        SEQLSTM_TRY(add_line(conll, line, line_bytes, cursor.number, err));
        end_of_record = line + line_bytes;
        int64_t text_bytes = end_of_record - raw->text - begin_offset;
        if (!conll->builder.text_bytes.failed)
            memcpy(conll->builder.text_bytes.data + conll->builder.text_bytes.length_bytes - sizeof text_bytes,
                   &text_bytes, sizeof text_bytes);
    }
    if (open)
        sl_raw_builder_end(&conll->builder);
    return SEQLSTM_OK;
}

seqlstm_status sl_raw_read_conll(const struct sl_read *read, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_source *source = read->source;
    struct conll conll = {.read = read, .label_column = -1};
    size_t bytes;
    conll.by_blanks = source->delimiter && strcmp(source->delimiter, " ") == 0;
    if (source->text)
        SEQLSTM_TRY(find_column(source, source->text, "text", &conll.text_column, err));
    if (source->label.column)
        SEQLSTM_TRY(find_column(source, source->label.column, "label.column", &conll.label_column, err));
    SEQLSTM_TRY(sl_load_text(read, &raw->text, &bytes, &raw->name, err));
    raw->input_kind = SL_FIELD_IDS;
    raw->input_features = 1;
    raw->has_steps = true;
    conll.want_label = !read->input && read->model->train.task != SL_TASK_LANGUAGE_MODEL;
    if (conll.want_label) {
        raw->target_kind = source->label.type == SL_LABEL_CLASS ? SL_FIELD_IDS : SL_FIELD_VALUES;
        raw->target_features = 1;
        raw->target_per_row = true;
    }
    sl_raw_builder_init(&conll.builder, raw, &read->model->data.tokenizer);
    seqlstm_status status = read_all(&conll, bytes, err);
    if (status == SEQLSTM_OK)
        return sl_raw_builder_finish(&conll.builder, err);
    sl_raw_builder_deinit(&conll.builder);
    return status;
}
