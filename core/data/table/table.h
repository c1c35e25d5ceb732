/* SPDX-License-Identifier: Apache-2.0 */
/* A delimited table as cells: RFC 4180 for csv (quotes, doubled quotes, newlines inside quotes), bare fields for tsv.
 * Lines end in \n, \r\n or \r; a last line without one counts; blank lines are skipped, except where they are rows (see
 * below). Private to core/data. */
#ifndef SL_DATA_TABLE_TABLE_H
#define SL_DATA_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "data/text/intern.h"
#include "model/data_config.h"

struct sl_table_form {
    const char *delimiter;
    bool quotes;                   /* RFC 4180 */
    bool header;                   /* the first row holds the names of the columns */
    struct sl_string_list columns; /* their names where there is no header; may be empty */
    bool blank_rows;               /* of a single column: a blank line between rows is a row, whose cell is empty */
};

struct sl_cell {
    const char *text; /* not NUL-terminated; quotes are resolved */
    size_t bytes;
};

struct sl_table {
    struct sl_cell *cells; /* [rows][columns], without the header */
    int64_t *lines;        /* [rows] line of the file where the row begins, from 1 */
    int64_t rows;
    int64_t columns;
    struct sl_cell *names;  /* [columns]; NULL: no header and no `columns` */
    bool has_header;        /* the names are those of the first row */
    const char *file;       /* borrowed */
    struct sl_intern index; /* the names; number k is that of column index_column[k] */
    int64_t *index_column;
};

/* Parses `text` in place: cells point into it. Errors: CORRUPT_DATA (a quote that never ends, text after a closing
 * quote, a row of another width, two columns of one name, with file:line), NO_MEMORY. */
seqlstm_status sl_table_parse(const char *file, char *text, size_t bytes, const struct sl_table_form *form,
                              struct sl_table *out, struct seqlstm_error *err);
void sl_table_deinit(struct sl_table *table);

/* The column of that name, or with that number (from 1) where there are no names. INVALID_CONFIG with a suggestion when
 * there is none; `key` is the option that messages name. */
seqlstm_status sl_table_find_column(const struct sl_table *table, const char *name, const char *key,
                                    int64_t *out_column, struct seqlstm_error *err);

static inline const struct sl_cell *sl_table_cell(const struct sl_table *table, int64_t row, int64_t column)
{
    return &table->cells[row * table->columns + column];
}

#endif
