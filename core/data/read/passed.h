/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of an input that are passed on to its predictions as they are. Private to core/data. */
#ifndef SL_DATA_READ_PASSED_H
#define SL_DATA_READ_PASSED_H

#include <stddef.h>
#include <stdint.h>

struct sl_passed {
    int64_t rows; /* of the table */
    size_t columns;
    int64_t *lines;   /* [rows] where each begins in the file, ascending */
    int64_t *offsets; /* [rows * columns + 1] of the cells in `text` */
    char *text;
};

void sl_passed_deinit(struct sl_passed *passed);

/* The cell of a row, not NUL-terminated; NULL: there is no such row. */
const char *sl_passed_find(const struct sl_passed *passed, int64_t row, size_t column, size_t *out_bytes);
/* The row that begins in this line; -1: none does. */
int64_t sl_passed_find_row(const struct sl_passed *passed, int64_t line);

#endif
