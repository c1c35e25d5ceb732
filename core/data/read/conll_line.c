/* SPDX-License-Identifier: Apache-2.0 */
/* See conll_line.h. */
#include "data/read/conll_line.h"

#include <string.h>

#include "base/value/text.h"

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

seqlstm_status sl_conll_columns_init(struct sl_conll_columns *columns, const struct sl_source *source,
                                     struct seqlstm_error *err)
{
    *columns = (struct sl_conll_columns){.delimiter = source->delimiter ? source->delimiter : "\t", .label = -1};
    columns->by_blanks = strcmp(columns->delimiter, " ") == 0;
    if (source->text)
        SEQLSTM_TRY(find_column(source, source->text, "text", &columns->text, err));
    if (source->label.column)
        SEQLSTM_TRY(find_column(source, source->label.column, "label.column", &columns->label, err));
    return SEQLSTM_OK;
}

bool sl_conll_find_part(const struct sl_conll_columns *columns, const char *line, size_t bytes, int64_t wanted,
                        const char **out, size_t *out_bytes)
{
    size_t width = strlen(columns->delimiter), at = 0;
    for (int64_t part = 0;; part++) {
        size_t begin = at;
        if (columns->by_blanks) {
            while (begin < bytes && (line[begin] == ' ' || line[begin] == '\t'))
                begin++;
            at = begin;
            while (at < bytes && line[at] != ' ' && line[at] != '\t')
                at++;
            if (begin == at)
                return wanted < 0 && part > 0;
        } else {
            while (at < bytes && (at + width > bytes || memcmp(line + at, columns->delimiter, width) != 0))
                at++;
        }
        *out = line + begin;
        *out_bytes = at - begin;
        if (part == wanted)
            return true;
        if (!columns->by_blanks) {
            if (at >= bytes)
                return wanted < 0;
            at += width;
        }
    }
}

bool sl_conll_is_comment(const struct sl_source *source, const char *line, size_t bytes)
{
    const size_t comment_bytes = source->comment ? strlen(source->comment) : 0;
    return comment_bytes > 0 && bytes >= comment_bytes && memcmp(line, source->comment, comment_bytes) == 0;
}
