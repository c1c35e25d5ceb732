/* SPDX-License-Identifier: Apache-2.0 */
/* See columns.h. */
#include "data/table/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/no_memory.h"
#include "data/read/load_text.h"
#include "data/table/columns_npy.h"
#include "data/table/table_read.h"

/* ---- the use of a column ---------------------------------------------------------------------------------------- */

static bool is_in(struct sl_string_list list, const char *name)
{
    for (size_t k = 0; k < list.count; k++)
        if (strcmp(list.items[k], name) == 0)
            return true;
    return false;
}

static const char *find_use(const struct sl_source *source, struct sl_string_list inputs, struct sl_string_list targets,
                            const char *name)
{
    const struct {
        const char *column, *use;
    } uses[] = {{source->label.column, "label"}, {source->text, "text"},          {source->group, "group"},
                {source->time.column, "time"},   {source->source_column, "text"}, {source->target_column, "text"}};
    for (size_t u = 0; u < sizeof uses / sizeof *uses; u++)
        if (uses[u].column && strcmp(uses[u].column, name) == 0)
            return uses[u].use;
    const bool is_input = is_in(inputs, name), is_target = is_in(targets, name);
    return is_input && is_target ? "input, target" : is_target ? "target" : is_input ? "input" : "";
}

/* ---- one column ------------------------------------------------------------------------------------------------- */

struct counter {
    struct sl_intern texts;
    int64_t *counts; /* [SL_COLUMN_CATEGORIES + 1] */
    int64_t numbers;
    double sum;
};

static void count_text(struct counter *counter, struct sl_column *column, const char *text, size_t bytes)
{
    if (column->categories > SL_COLUMN_CATEGORIES)
        return;
    const int32_t id = sl_intern_add(&counter->texts, text, bytes);
    column->categories = counter->texts.count;
    if (id >= 0 && id < SL_COLUMN_CATEGORIES)
        counter->counts[id]++;
}

static void count_cell(struct counter *counter, const struct sl_source *source, struct sl_column *column,
                       const struct sl_cell *cell)
{
    const char *text = cell->text;
    size_t bytes = cell->bytes;
    double value;
    sl_trim(&text, &bytes); /* as the readers of numbers and labels do */
    if (sl_table_is_missing(source, text, bytes)) {
        column->missing++;
        return;
    }
    count_text(counter, column, text, bytes);
    if (!sl_table_parse_number(text, bytes, source->decimal == SL_DECIMAL_COMMA, &value)) {
        column->is_number = false;
        return;
    }
    column->low = counter->numbers == 0 ? value : fmin(column->low, value);
    column->high = counter->numbers == 0 ? value : fmax(column->high, value);
    counter->sum += value;
    counter->numbers++;
}

static void list_common(const struct counter *counter, struct sl_column *column)
{
    for (int32_t id = 0; id < counter->texts.count && id < SL_COLUMN_CATEGORIES; id++) {
        int32_t at = column->common_count;
        while (at > 0 && column->common[at - 1].count < counter->counts[id])
            at--;
        if (at == SL_COLUMN_COMMON)
            continue;
        column->common_count += column->common_count < SL_COLUMN_COMMON;
        memmove(&column->common[at + 1], &column->common[at],
                (size_t)(column->common_count - 1 - at) * sizeof column->common[0]);
        sl_text_snprintf(column->common[at].text, sizeof column->common[at].text, "%s",
                         sl_intern_get(&counter->texts, id, NULL));
        column->common[at].count = counter->counts[id];
    }
}

static seqlstm_status count_column(const struct sl_table *table, const struct sl_source *source, int64_t c,
                                   struct sl_column *column, struct seqlstm_error *err)
{
    struct counter counter = {.counts = calloc(SL_COLUMN_CATEGORIES + 1, sizeof *counter.counts)};
    if (!counter.counts)
        return SL_DATA_NO_MEMORY(err);
    sl_intern_init(&counter.texts);
    column->is_number = true;
    for (int64_t r = 0; r < table->rows; r++)
        count_cell(&counter, source, column, sl_table_cell(table, r, c));
    column->is_number = column->is_number && counter.numbers > 0;
    column->mean = counter.numbers > 0 ? counter.sum / (double)counter.numbers : 0;
    list_common(&counter, column);
    const bool failed = counter.texts.failed;
    sl_intern_deinit(&counter.texts);
    free(counter.counts);
    return failed ? SL_DATA_NO_MEMORY(err) : SEQLSTM_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static seqlstm_status count_all(const struct sl_table *table, const struct sl_source *source,
                                struct sl_string_list inputs, struct sl_string_list targets, struct sl_columns *columns,
                                struct seqlstm_error *err)
{
    columns->rows = table->rows;
    columns->items = calloc((size_t)table->columns + 1, sizeof *columns->items);
    if (!columns->items)
        return SL_DATA_NO_MEMORY(err);
    columns->count = (int32_t)table->columns;
    for (int64_t c = 0; c < table->columns; c++) {
        struct sl_column *column = &columns->items[c];
        if (table->names)
            sl_text_snprintf(column->name, sizeof column->name, "%.*s", (int)table->names[c].bytes,
                             table->names[c].text);
        else
            sl_text_snprintf(column->name, sizeof column->name, "%lld", (long long)c + 1);
        column->use = find_use(source, inputs, targets, column->name);
        SEQLSTM_TRY(count_column(table, source, c, column, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_columns_read(const struct sl_model *model, struct sl_string_list inputs,
                               struct sl_string_list targets, struct sl_columns *out_columns, struct seqlstm_error *err)
{
    const struct sl_source *source = &model->data.splits[SL_SPLIT_TRAIN];
    const struct sl_read read = {.model = model, .source = source, .split = SL_SPLIT_TRAIN};
    *out_columns = (struct sl_columns){.rows = 0};
    if (source->type == SL_SOURCE_NPY)
        return sl_columns_read_npy(model, out_columns, err);
    if ((source->type != SL_SOURCE_CSV && source->type != SL_SOURCE_TSV) || !source->file)
        return SEQLSTM_OK;
    const bool texts = source->text || model->data.pairs; /* as in raw_table.c: else a blank line may be a row */
    const struct sl_table_form form = sl_table_make_form(source, !texts);
    struct sl_table table;
    char *text = NULL, *name = NULL;
    size_t bytes;
    SEQLSTM_TRY(sl_load_text(&read, &text, &bytes, &name, err));
    seqlstm_status status = sl_table_parse(name, text, bytes, &form, &table, err);
    if (status == SEQLSTM_OK) {
        status = count_all(&table, source, inputs, targets, out_columns, err);
        sl_table_deinit(&table);
    }
    free(text);
    free(name);
    if (status != SEQLSTM_OK)
        sl_columns_deinit(out_columns);
    return status;
}

void sl_columns_deinit(struct sl_columns *columns)
{
    free(columns->items);
    *columns = (struct sl_columns){.rows = 0};
}

void sl_column_print_values(const struct sl_column *column, struct sl_buf *out)
{
    char low[32], high[32], mean[32];
    if (column->is_number) {
        sl_text_snprintf(low, sizeof low, "%.6g", column->low);
        sl_text_snprintf(high, sizeof high, "%.6g", column->high);
        sl_text_snprintf(mean, sizeof mean, "%.6g", column->mean);
        sl_buf_printf(out, "%s to %s, mean %s", low, high, mean);
        return;
    }
    if (column->categories == 0) {
        sl_buf_append_text(out, "no values");
        return;
    }
    sl_buf_printf(out, column->categories > SL_COLUMN_CATEGORIES ? "more than %lld categories" : "%lld categor%s",
                  (long long)(column->categories > SL_COLUMN_CATEGORIES ? SL_COLUMN_CATEGORIES : column->categories),
                  column->categories == 1 ? "y" : "ies");
    for (int32_t k = 0; k < column->common_count; k++)
        sl_buf_printf(out, "%s%s %lld", k ? ", " : ": ", column->common[k].text, (long long)column->common[k].count);
    if (column->categories > column->common_count)
        sl_buf_append_text(out, ", …");
}
