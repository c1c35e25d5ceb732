/* SPDX-License-Identifier: Apache-2.0 */
/* What the columns of the training table hold, or the features of its arrays: range, missing values, categories. */
#ifndef SL_DATA_TABLE_COLUMNS_H
#define SL_DATA_TABLE_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/value/buf.h"
#include "model/model.h"

enum { SL_COLUMN_COMMON = 5, SL_COLUMN_NAME_BYTES = 64, SL_COLUMN_CATEGORIES = 10000 };

struct sl_column {
    char name[SL_COLUMN_NAME_BYTES]; /* its number where the table has no header; of an array "x[2]" */
    const char *use;                 /* "input", "target", "group", "time", "label", "text"; "": none */
    int64_t missing;                 /* cells without a value */
    bool is_number;                  /* all others are numbers */
    double low, high, mean;          /* of numbers */
    int64_t categories; /* different values, at most SL_COLUMN_CATEGORIES; more: that + 1. Of arrays 0: not counted */
    int32_t common_count;
    struct {
        char text[40];
        int64_t count;
    } common[SL_COLUMN_COMMON]; /* the most frequent values, most frequent first */
};

struct sl_columns {
    int64_t rows;
    struct sl_column *items;
    int32_t count; /* 0: the training data are neither a table nor arrays */
};

/* `inputs`: the columns that the model reads as inputs. Errors: those of reading the file; NO_MEMORY. */
seqlstm_status sl_columns_read(const struct sl_model *model, struct sl_string_list inputs,
                               struct sl_string_list targets, struct sl_columns *out_columns,
                               struct seqlstm_error *err);
void sl_columns_deinit(struct sl_columns *columns);

/* "0.5 to 3, mean 2"; "2 categories: a 7, b 1". */
void sl_column_print_values(const struct sl_column *column, struct sl_buf *out);

#endif
