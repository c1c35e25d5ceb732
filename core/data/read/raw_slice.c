/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a raw source that `split:` takes. */
#include <math.h>
#include <string.h>

#include "data/read/load_text.h"
#include "data/read/raw.h"

/* The next line of a text of CONLL that holds a row: comments and blank lines hold none. */
static bool next_row(const struct sl_raw *raw, struct sl_line_cursor *cursor, const char **out_line, size_t *out_bytes)
{
    const char *comment = raw->source->comment;
    const size_t comment_bytes = comment ? strlen(comment) : 0;
    while (sl_line_next(cursor, out_line, out_bytes))
        if (*out_bytes > 0 &&
            (comment_bytes == 0 || *out_bytes < comment_bytes || memcmp(*out_line, comment, comment_bytes) != 0))
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
            "%s: `split` takes whole groups of column `%s`, the last in the file, and %lld %s too few to "
            "split: a part of %g to %g is empty (`valid: {file: …, rows: [first, last]}` splits each group, by "
            "time)",
            raw->name, raw->source->group, (long long)total, total == 1 ? "is" : "are", from, to);
    if (first >= last)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: %lld %s%s too few to split: a part of %g to %g is empty",
                     raw->name ? raw->name : "data", (long long)total, by_rows ? "row" : "record",
                     total == 1 ? " is" : "s are", from, to);
    if (!by_rows) {
        narrow_series(raw, first, last);
        return SEQLSTM_OK;
    }
    int64_t begin = 0, first_series = raw->series, last_series = 0;
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t end = begin + raw->length[s];
        int64_t low = begin > first ? begin : first, high = end < last ? end : last;
        if (low < high) {
            if (raw->line)
                raw->line[s] = sl_raw_find_line(raw, s, raw->start[s] + low - begin);
            if (raw->source->type == SL_SOURCE_CONLL)
                sl_raw_cut_text(raw, low - begin, high - low, &raw->text_offset[s], &raw->text_bytes[s]);
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
