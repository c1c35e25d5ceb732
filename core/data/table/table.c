/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the text; a quoted cell is compacted in place, so cells never own memory. */
#include "data/table/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/text.h"
#include "data/read/load_text.h"

struct parser {
    const char *file;
    char *next, *end;
    const char *delimiter;
    size_t delimiter_bytes;
    bool quotes, blank_rows;
    int64_t line;           /* of `next` */
    int64_t blank, skipped; /* the first of `skipped` blank lines that may be rows */
    struct sl_buf cells;
    struct sl_buf lines;
};

static bool at_delimiter(const struct parser *p, const char *at)
{
    return (size_t)(p->end - at) >= p->delimiter_bytes && memcmp(at, p->delimiter, p->delimiter_bytes) == 0;
}

static bool at_line_end(const struct parser *p, const char *at)
{
    return at == p->end || *at == '\n' || *at == '\r';
}

/* A cell that begins with a quote; `next` stands on it. */
static seqlstm_status parse_quoted(struct parser *p, struct sl_cell *out, struct seqlstm_error *err)
{
    int64_t begin_line = p->line;
    char *write = ++p->next;
    out->text = write;
    for (;; p->next++) {
        if (p->next == p->end)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the quoted field that begins here never ends", p->file,
                         (long long)begin_line);
        if (*p->next == '"') {
            if (p->next + 1 == p->end || p->next[1] != '"')
                break;
            p->next++;
        }
        p->line += *p->next == '\n' || (*p->next == '\r' && p->next[1] != '\n');
        *write++ = *p->next;
    }
    p->next++;
    out->bytes = (size_t)(write - out->text);
    if (!at_delimiter(p, p->next) && !at_line_end(p, p->next))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s:%lld: text after the closing quote of a field, expected \"%s\" or the end of the line",
                     p->file, (long long)p->line, p->delimiter);
    return SEQLSTM_OK;
}

/* One row; its cells are appended. A blank line appends none. */
static seqlstm_status parse_row(struct parser *p, int64_t *out_cells, struct seqlstm_error *err)
{
    int64_t count = 0;
    if (at_line_end(p, p->next)) {
        *out_cells = 0;
    } else {
        for (;;) {
            struct sl_cell cell = {p->next, 0};
            if (p->quotes && p->next < p->end && *p->next == '"') {
                SEQLSTM_TRY(parse_quoted(p, &cell, err));
            } else {
                while (!at_line_end(p, p->next) && !at_delimiter(p, p->next))
                    p->next++;
                cell.bytes = (size_t)(p->next - cell.text);
            }
            sl_buf_append(&p->cells, &cell, sizeof cell);
            count++;
            if (at_line_end(p, p->next))
                break;
            p->next += p->delimiter_bytes;
        }
        *out_cells = count;
    }
    if (p->next + 1 < p->end && p->next[0] == '\r' && p->next[1] == '\n')
        p->next++;
    if (p->next < p->end)
        p->next++;
    p->line++;
    return SEQLSTM_OK;
}

/* Blank lines in front of a row of one cell are rows, too. Its own cell is the last one. */
static void add_blank_rows(struct parser *p)
{
    struct sl_cell own, empty;
    for (; p->skipped > 0 && !p->cells.failed; p->skipped--, p->blank++) {
        memcpy(&own, p->cells.data + p->cells.length_bytes - sizeof own, sizeof own);
        empty = (struct sl_cell){own.text, 0};
        sl_buf_truncate(&p->cells, p->cells.length_bytes - sizeof own);
        sl_buf_append(&p->cells, &empty, sizeof empty);
        sl_buf_append(&p->cells, &own, sizeof own);
        sl_buf_append(&p->lines, &p->blank, sizeof p->blank);
    }
}

static seqlstm_status parse_rows(struct parser *p, int64_t *columns, struct seqlstm_error *err)
{
    while (p->next < p->end) {
        int64_t line = p->line, count;
        SEQLSTM_TRY(parse_row(p, &count, err));
        if (count == 0) {
            p->blank = p->skipped > 0 ? p->blank : line;
            p->skipped++;
            continue;
        }
        if (p->blank_rows && *columns == 1)
            add_blank_rows(p);
        p->skipped = 0;
        if (*columns == 0)
            *columns = count;
        if (count != *columns)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the row has %lld field%s, expected %lld", p->file,
                         (long long)line, (long long)count, count == 1 ? "" : "s", (long long)*columns);
        sl_buf_append(&p->lines, &line, sizeof line);
    }
    return p->cells.failed || p->lines.failed
               ? seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the table %s", p->file)
               : SEQLSTM_OK;
}

/* Is this the first row of a table without a header? */
static bool are_numbers(const struct sl_table *table)
{
    double value;
    for (int64_t i = 0; i < table->columns; i++)
        if (!sl_text_parse_float64(table->names[i].text, table->names[i].bytes, &value))
            return false;
    return table->columns > 0;
}

static const char *suggest_header(const struct sl_table *table)
{
    return table->has_header && are_numbers(table) ? " (`header: false` reads the first row as numbers)" : "";
}

/* Two columns may both have no name, but not the same one. */
static seqlstm_status index_names(struct sl_table *table, struct seqlstm_error *err)
{
    table->index_column = calloc((size_t)table->columns + 1, sizeof *table->index_column);
    for (int64_t i = 0; table->index_column && i < table->columns; i++) {
        const struct sl_cell *name = &table->names[i];
        int32_t before = table->index.count, number = sl_intern_add(&table->index, name->text, name->bytes);
        if (number >= 0 && number < before && name->bytes > 0)
            SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:1: two columns are called `%.*s`%s", table->file,
                         (int)(name->bytes > 80 ? 80 : name->bytes), name->text, suggest_header(table));
        if (number == before)
            table->index_column[number] = i;
    }
    if (!table->index_column || table->index.failed)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the table %s", table->file);
    return SEQLSTM_OK;
}

/* The header's cells or `columns` as names. Takes the first row off the cells. */
static seqlstm_status make_names(struct sl_table *table, const struct sl_table_form *form, struct seqlstm_error *err)
{
    const struct sl_string_list given = form->columns;
    if (!form->header && given.count == 0)
        return SEQLSTM_OK;
    table->names = calloc((size_t)table->columns + 1, sizeof *table->names);
    if (!table->names)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the table %s", table->file);
    table->has_header = form->header;
    if (form->header) {
        memcpy(table->names, table->cells, (size_t)table->columns * sizeof *table->names);
        table->rows--;
        memmove(table->cells, table->cells + table->columns,
                (size_t)(table->rows * table->columns) * sizeof *table->cells);
        memmove(table->lines, table->lines + 1, (size_t)table->rows * sizeof *table->lines);
    } else {
        if ((int64_t)given.count != table->columns)
            SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: the rows have %lld field%s, but `columns` names %zu",
                         table->file, (long long)table->columns, table->columns == 1 ? "" : "s", given.count);
        for (size_t i = 0; i < given.count; i++)
            table->names[i] = (struct sl_cell){given.items[i], strlen(given.items[i])};
    }
    return index_names(table, err);
}

seqlstm_status sl_table_parse(const char *file, char *text, size_t bytes, const struct sl_table_form *form,
                              struct sl_table *out, struct seqlstm_error *err)
{
    struct parser p = {.file = file,
                       .next = text,
                       .end = text + bytes,
                       .delimiter = form->delimiter,
                       .delimiter_bytes = strlen(form->delimiter),
                       .quotes = form->quotes,
                       .blank_rows = form->blank_rows,
                       .line = 1};
    struct sl_table table = {.file = file};
    sl_intern_init(&table.index);
    size_t cell_bytes;
    seqlstm_status status = parse_rows(&p, &table.columns, err);
    if (status == SEQLSTM_OK && table.columns == 0)
        status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "%s: the table has no rows", file);
    if (status == SEQLSTM_OK) {
        table.rows = (int64_t)(p.lines.length_bytes / sizeof(int64_t));
        table.lines = (int64_t *)(void *)sl_buf_take(&p.lines, NULL);
        table.cells = (struct sl_cell *)(void *)sl_buf_take(&p.cells, &cell_bytes);
        if (!table.lines || !table.cells)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for the table %s", file);
    }
    if (status == SEQLSTM_OK)
        status = make_names(&table, form, err);
    sl_buf_deinit(&p.cells);
    sl_buf_deinit(&p.lines);
    if (status != SEQLSTM_OK) {
        sl_table_deinit(&table);
        return status;
    }
    *out = table;
    return SEQLSTM_OK;
}

void sl_table_deinit(struct sl_table *table)
{
    free(table->cells);
    free(table->lines);
    free(table->names);
    free(table->index_column);
    sl_intern_deinit(&table->index);
    memset(table, 0, sizeof *table);
}

/* A header that is one field, but holds what may separate fields. */
static const char *suggest_delimiter(const struct sl_table *table)
{
    static const struct {
        char sign;
        const char *text;
    } signs[] = {{';', " (`delimiter: \";\"` separates them)"},
                 {'\t', " (`type: tsv` separates them)"},
                 {'|', " (`delimiter: \"|\"` separates them)"},
                 {',', " (`delimiter: \",\"` separates them)"}};
    for (size_t i = 0; table->columns == 1 && i < sizeof signs / sizeof *signs; i++)
        if (memchr(table->names[0].text, signs[i].sign, table->names[0].bytes))
            return signs[i].text;
    return "";
}

/* The name that is the same but for blanks around it; NULL: there is none. */
static const char *find_with_blanks(const char *name, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const char *text = names[i];
        size_t bytes = strlen(text);
        sl_trim(&text, &bytes);
        if (bytes == strlen(name) && memcmp(text, name, bytes) == 0)
            return names[i];
    }
    return NULL;
}

static seqlstm_status fail_unknown(const struct sl_table *table, const char *name, const char *key,
                                   struct seqlstm_error *err)
{
    char list[400];
    size_t used = 0;
    list[0] = '\0';
    const char **names = calloc((size_t)table->columns, sizeof *names);
    char *copies = calloc((size_t)table->columns, 64);
    const char *near = NULL;
    for (int64_t i = 0; names && copies && i < table->columns; i++) {
        const struct sl_cell *cell = &table->names[i];
        char *copy = copies + i * 64;
        memcpy(copy, cell->text, cell->bytes > 63 ? 63 : cell->bytes);
        names[i] = copy;
        if (used + cell->bytes + 8 < sizeof list)
            used += (size_t)sl_text_snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", copy);
    }
    if (names && copies)
        near = find_with_blanks(name, names, table->columns);
    if (names && copies && !near)
        near = sl_text_closest(name, names, (size_t)table->columns);
    seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                      "%s:1: there is no column `%s` (`%s`)%s%s%s; the columns are %s%s%s", table->file, name, key,
                      near ? ", did you mean `" : "", near ? near : "", near ? "`?" : "", list,
                      suggest_delimiter(table), suggest_header(table));
    free(names);
    free(copies);
    return SEQLSTM_INVALID_CONFIG;
}

seqlstm_status sl_table_find_column(const struct sl_table *table, const char *name, const char *key,
                                    int64_t *out_column, struct seqlstm_error *err)
{
    size_t bytes = strlen(name);
    int64_t number;
    int32_t known = table->names ? sl_intern_find(&table->index, name, bytes) : -1;
    if (known >= 0) {
        *out_column = table->index_column[known];
        return SEQLSTM_OK;
    }
    if (table->names)
        return fail_unknown(table, name, key, err);
    if (sl_text_parse_int64(name, bytes, &number) && number >= 1 && number <= table->columns) {
        *out_column = number - 1;
        return SEQLSTM_OK;
    }
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG,
                 "%s: there is no column `%s` (`%s`): the table has no header, expected a number from 1 to %lld",
                 table->file, name, key, (long long)table->columns);
}
