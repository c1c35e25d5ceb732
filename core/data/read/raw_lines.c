/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the words of a raw to lines again. */
#include "data/read/raw_lines.h"

#include <stdlib.h>
#include <string.h>

#include "data/text/vocabulary.h"

/* Puts one line into `text`, which may stay empty; false at the end. */
static bool take_line(struct sl_raw_lines *lines)
{
    if (lines->series == lines->raw->series && lines->then)
        *lines = (struct sl_raw_lines){.raw = lines->then, .text = lines->text};
    const struct sl_raw *raw = lines->raw;
    if (lines->series == raw->series)
        return false;
    int32_t eos = sl_intern_find(&raw->tokens, sl_special_get_token(SL_SPECIAL_EOS), 5);
    int64_t end = raw->length[lines->series];
    const int32_t *ids = raw->ids + raw->start[lines->series];
    for (; lines->at < end && ids[lines->at] != eos; lines->at++) {
        size_t bytes;
        const char *word = sl_intern_get(&raw->tokens, ids[lines->at], &bytes);
        if (lines->text.length_bytes > 0)
            sl_buf_append_char(&lines->text, ' ');
        sl_buf_append(&lines->text, word, bytes);
    }
    if (lines->at < end) {
        lines->at++; /* behind <eos> */
    } else {
        lines->series++;
        lines->at = 0;
    }
    return true;
}

const char *sl_raw_lines_next(void *context, uint64_t *out_bytes)
{
    struct sl_raw_lines *lines = context;
    sl_buf_truncate(&lines->text, 0);
    while (lines->text.length_bytes == 0 && take_line(lines)) {
    }
    *out_bytes = lines->text.length_bytes;
    return lines->text.length_bytes > 0 && !lines->text.failed ? lines->text.data : NULL;
}
