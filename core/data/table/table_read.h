/* SPDX-License-Identifier: Apache-2.0 */
/* A table that becomes a raw source: its columns and its rows. Private to core/data.
 *
 * data/table: the reader of `csv` and `tsv`. Cells (table.h), the columns and rows that are meant (raw_table_rows.c),
 * their order in time (raw_table_time.c), their values (raw_table_values.c), rows that are left out (raw_table_drop.c),
 * and the series that become of them (raw_table.c). */
#ifndef SL_DATA_TABLE_TABLE_READ_H
#define SL_DATA_TABLE_TABLE_READ_H

#include "data/read/raw.h"
#include "data/table/table.h"

/* Columns by number, -1: none. Rows are table rows in the order that they will have. */
struct sl_table_read {
    const struct sl_read *read;
    const struct sl_source *source;
    struct sl_raw *raw;
    struct sl_table table;
    size_t text_bytes; /* of the raw's text, into which the cells point */
    int64_t *inputs;
    int64_t input_count;
    int64_t *targets;
    int64_t target_count;
    int64_t label, group, time, text;
    int64_t pair_source, pair_target; /* texts of pairs */
    int64_t *order;                   /* [kept] */
    int32_t *groups;                  /* [kept] number of the group, ascending; NULL: no groups */
    double *moments;                  /* [kept]; NULL: no time column */
    bool number_moments;              /* the time column holds bare numbers */
    int64_t kept;
    bool *keep;   /* [kept] false: `missing: drop` drops the row */
    bool *breaks; /* [kept] a new series begins with this row */
};

/* How the source writes tables. */
struct sl_table_form sl_table_make_form(const struct sl_source *source, bool blank_rows);

/* A finite number, with the decimals behind a comma where `comma` says so. */
bool sl_table_parse_number(const char *text, size_t bytes, bool comma, double *out);
/* Does the cell hold no value: a word that means so, or one of `missing.values`? */
bool sl_table_is_missing(const struct sl_source *source, const char *text, size_t bytes);

/* Finds the columns that the source, or the state, names. */
seqlstm_status sl_table_find_columns(struct sl_table_read *t, struct seqlstm_error *err);

/* Fills order, groups and moments: `rows`, groups gathered in the order of their first row. */
seqlstm_status sl_table_choose_rows(struct sl_table_read *t, struct seqlstm_error *err);

/* Each chosen row must be later than the one before it in its group. */
seqlstm_status sl_table_check_order(const struct sl_table_read *t, struct seqlstm_error *err);

/* Sets t->breaks where a row begins a new series after a gap in time, or refuses the gap. after_dropped[i]: the line of
 * a row that was left out before row i, 0: none; NULL: none was left out anywhere. */
seqlstm_status sl_table_check_gaps(struct sl_table_read *t, const int64_t *after_dropped, struct seqlstm_error *err);

/* The numbers of the columns, row by row, missing ones filled as `missing:` says; NAN: `mean` fills it later, or
 * nothing does. t->keep[i] becomes false where `drop` drops the row. `targets`: the columns are targets. */
seqlstm_status sl_table_parse_numbers(struct sl_table_read *t, const int64_t *columns, int64_t count, char **names,
                                      bool targets, double *out, struct seqlstm_error *err);

/* The labels as numbers of the raw's labels; -1: `missing: {targets: ignore}`. t->keep as above. */
seqlstm_status sl_table_parse_classes(struct sl_table_read *t, int32_t *out, struct seqlstm_error *err);

/* Rows to learn from: moves those that stay together, and finds out where the rest leaves gaps. */
seqlstm_status sl_table_drop_rows(struct sl_table_read *t, struct seqlstm_error *err);

/* Rows to predict for: the raw's series lose the rows that are dropped, but each that stays knows its step. */
seqlstm_status sl_table_thin_series(const struct sl_table_read *t, struct seqlstm_error *err);

/* Rows to predict for that stay, so that windows and records keep their numbers: marks those that would be dropped. */
seqlstm_status sl_table_mark_rows(const struct sl_table_read *t, struct seqlstm_error *err);

/* "file:line" of chosen row i. */
#define SL_TABLE_LINE(t, i) (t)->table.file, (long long)(t)->table.lines[(t)->order[i]]

#endif
