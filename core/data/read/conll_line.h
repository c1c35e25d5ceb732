/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of column files (CONLL): one token with its tag each, or a comment.
 *
 * Columns are separated by the delimiter (a blank: by any run of blanks and tabs). The token is column `text` (the
 * first), the tag column `label`; they are numbers from 1, `first` or `last`. Thread class of all functions: any. */
#ifndef SL_DATA_READ_CONLL_LINE_H
#define SL_DATA_READ_CONLL_LINE_H

#include "model/model.h"

struct sl_conll_columns {
    const char *delimiter; /* borrowed from the source */
    bool by_blanks;
    int64_t text, label; /* from 0; -1: the last */
};

/* INVALID_CONFIG: a column is no number, `first` or `last`. */
seqlstm_status sl_conll_columns_init(struct sl_conll_columns *columns, const struct sl_source *source,
                                     struct seqlstm_error *err);

/* Part `wanted` of the line (-1: the last one); false when the line has fewer. */
bool sl_conll_find_part(const struct sl_conll_columns *columns, const char *line, size_t bytes, int64_t wanted,
                        const char **out, size_t *out_bytes);

/* Does the line begin with the `comment` of the source? False where it has none. */
bool sl_conll_is_comment(const struct sl_source *source, const char *line, size_t bytes);

#endif
