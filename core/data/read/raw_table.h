/* SPDX-License-Identifier: Apache-2.0 */
/* A table that becomes a raw source: its columns and its rows. Private to core/data. */
#ifndef SL_DATA_READ_RAW_TABLE_H
#define SL_DATA_READ_RAW_TABLE_H

#include "data/read/raw.h"
#include "data/read/table.h"

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
    int64_t kept;
};

/* Finds the columns that the source, or the state, names. */
seqlstm_status sl_table_find_columns(struct sl_table_read *t, struct seqlstm_error *err);

/* Fills order, groups and moments: `rows`, groups gathered in the order of their first row. */
seqlstm_status sl_table_choose_rows(struct sl_table_read *t, struct seqlstm_error *err);

/* Order of the rows in time and gaps; out_breaks[i] (zeroed, [kept]) is set where row i begins a new series after a
 * gap. */
seqlstm_status sl_table_check_time(const struct sl_table_read *t, bool *out_breaks, struct seqlstm_error *err);

/* "file:line" of chosen row i. */
#define SL_TABLE_LINE(t, i) (t)->table.file, (long long)(t)->table.lines[(t)->order[i]]

#endif
