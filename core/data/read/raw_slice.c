/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a raw source that `split:` takes. */
#include <math.h>
#include <string.h>

#include "data/read/raw.h"

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
