/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps columns of a table that are passed on. */
#include "data/table/table_passed.h"

#include <stdlib.h>
#include <string.h>

#include "data/no_memory.h"
#include "data/table/table.h"

static seqlstm_status find_columns(const struct sl_table *table, const struct sl_string_list *names, int64_t *columns,
                                   struct seqlstm_error *err)
{
    for (size_t c = 0; c < names->count; c++)
        SEQLSTM_TRY(sl_table_find_column(table, names->items[c], "--columns", &columns[c], err));
    return SEQLSTM_OK;
}

static seqlstm_status copy_cells(const struct sl_table *table, const int64_t *columns, struct sl_passed *passed,
                                 struct seqlstm_error *err)
{
    const size_t cells = (size_t)passed->rows * passed->columns;
    int64_t bytes = 0, n = 0;
    for (int64_t r = 0; r < passed->rows; r++)
        for (size_t c = 0; c < passed->columns; c++)
            bytes += (int64_t)sl_table_cell(table, r, columns[c])->bytes;
    passed->lines = malloc(((size_t)passed->rows + 1) * sizeof *passed->lines);
    passed->offsets = malloc((cells + 1) * sizeof *passed->offsets);
    passed->text = malloc((size_t)bytes + 1);
    if (!passed->lines || !passed->offsets || !passed->text)
        return SL_DATA_NO_MEMORY(err);
    passed->offsets[0] = 0;
    for (int64_t r = 0; r < passed->rows; r++) {
        passed->lines[r] = table->lines[r];
        for (size_t c = 0; c < passed->columns; c++, n++) {
            const struct sl_cell *cell = sl_table_cell(table, r, columns[c]);
            memcpy(passed->text + passed->offsets[n], cell->text, cell->bytes);
            passed->offsets[n + 1] = passed->offsets[n] + (int64_t)cell->bytes;
        }
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_table_keep_passed(const struct sl_table *table, const struct sl_string_list *names,
                                    struct sl_passed *out_passed, struct seqlstm_error *err)
{
    *out_passed = (struct sl_passed){.rows = table->rows, .columns = names->count};
    int64_t *columns = calloc(names->count + 1, sizeof *columns);
    if (!columns)
        return SL_DATA_NO_MEMORY(err);
    seqlstm_status status = find_columns(table, names, columns, err);
    if (status == SEQLSTM_OK)
        status = copy_cells(table, columns, out_passed, err);
    free(columns);
    if (status != SEQLSTM_OK)
        sl_passed_deinit(out_passed);
    return status;
}
