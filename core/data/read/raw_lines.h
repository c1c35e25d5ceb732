/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a raw, for a tokenizer that learns from them. Private to core/data. */
#ifndef SL_DATA_READ_RAW_LINES_H
#define SL_DATA_READ_RAW_LINES_H

#include "base/value/buf.h"
#include "data/read/raw.h"

/* The lines of a raw that was read as words between blanks: a series, or the part of one before <eos>, with one blank
 * between words. `text` holds the last; when it has failed the lines are not all. */
struct sl_raw_lines {
    const struct sl_raw *raw;
    const struct sl_raw *then; /* goes on with this one; may be NULL */
    int64_t series, at;
    struct sl_buf text;
};
/* For sl_pieces_train; `lines` is a struct sl_raw_lines. */
const char *sl_raw_lines_next(void *lines, uint64_t *out_bytes);

#endif
