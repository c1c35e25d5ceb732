/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows stand in their file. */
#include "data/read/conll_line.h"
#include "data/read/load_text.h"
#include "data/read/raw.h"

/* The next line of a text of CONLL that holds a row: comments and blank lines hold none. */
static bool next_row(const struct sl_raw *raw, struct sl_line_cursor *cursor, const char **out_line, size_t *out_bytes)
{
    while (sl_line_next(cursor, out_line, out_bytes))
        if (*out_bytes > 0 && !sl_conll_is_comment(raw->source, *out_line, *out_bytes))
            return true;
    return false;
}

/* Of CONLL. The text of a series begins with the line of its first row. */
static int64_t find_line_of_token(const struct sl_raw *raw, int64_t series, int64_t row)
{
    const char *text = raw->text + raw->text_offset[series], *line;
    struct sl_line_cursor cursor = {text, text + raw->text_bytes[series], 0};
    size_t bytes;
    for (int64_t at = raw->start[series]; at <= row && next_row(raw, &cursor, &line, &bytes); at++) {
    }
    return raw->line[series] + cursor.number - 1;
}

int64_t sl_raw_find_line(const struct sl_raw *raw, int64_t series, int64_t row)
{
    if (raw->token_file)
        return sl_token_file_find_line(raw->token_file, row);
    if (raw->row_line)
        return raw->row_line[row];
    if (!raw->line)
        return 0;
    if (raw->source->type == SL_SOURCE_CONLL)
        return find_line_of_token(raw, series, row);
    int64_t line = raw->line[series];
    int32_t newline = raw->known_ids > 0 ? -1 : sl_intern_find(&raw->tokens, "\n", 1);
    for (int64_t i = raw->start[series]; newline >= 0 && i < row; i++)
        line += raw->ids[i] == newline;
    return line;
}

void sl_raw_cut_text(const struct sl_raw *raw, int64_t skip, int64_t rows, int64_t *offset, int64_t *bytes)
{
    const char *line, *first = raw->text + *offset, *end = first;
    struct sl_line_cursor cursor = {first, first + *bytes, 0};
    size_t line_bytes;
    for (int64_t row = 0; row < skip + rows && next_row(raw, &cursor, &line, &line_bytes); row++) {
        first = row == skip ? line : first;
        end = line + line_bytes;
    }
    *offset = first - raw->text;
    *bytes = end - first;
}
