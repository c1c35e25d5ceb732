/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a whole text file, and its lines. Private to core/data. */
#ifndef SL_DATA_READ_LOAD_TEXT_H
#define SL_DATA_READ_LOAD_TEXT_H

#include "data/read/raw.h"

/* The source's file or the input as UTF-8 without a byte order mark, with every line end as \n (tables keep them as
 * they are), NUL-terminated, free()d by the caller; *out_name (free() too) is what messages call it. CORRUPT_DATA for
 * bytes that are not UTF-8, for NULs, and for an empty file unless it is an input. */
seqlstm_status sl_load_text(const struct sl_read *read, char **out_text, size_t *out_bytes, char **out_name,
                            struct seqlstm_error *err);

/* "UTF-16" or "UTF-32" where the bytes begin with the mark of one of them; NULL: they do not. [any thread] */
const char *sl_text_find_other_mark(const char *bytes, size_t count);

/* Makes each \r\n, and each \r alone, a \n, in place; returns how many bytes are left. [any thread] */
size_t sl_text_unify_lines(char *text, size_t bytes);

/* A cursor over lines; \n and \r\n end them. */
struct sl_line_cursor {
    const char *next;
    const char *end;
    int64_t number; /* of the line that next gave, from 1 */
};
bool sl_line_next(struct sl_line_cursor *cursor, const char **out_line, size_t *out_bytes);

/* Cuts blanks, tabs and carriage returns off both ends. */
void sl_trim(const char **text, size_t *bytes);

#endif
