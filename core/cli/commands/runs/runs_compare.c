/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm runs compare */
#include <jansson.h>
#include <string.h>

#include "base/value/json_tree.h"
#include "base/value/printable.h"
#include "cli/commands/runs/selection.h"
#include "runs/comparison.h"

enum { CELL_BYTES = 64 };

static size_t copy(char out[CELL_BYTES], const char *text)
{
    return sl_printable_copy(out, CELL_BYTES, text, strlen(text), "");
}

static size_t find_widest(const struct sl_compared_row *rows, size_t count, int column)
{
    char cell[CELL_BYTES];
    size_t widest = 0;
    for (size_t k = 0; k < count; k++) {
        size_t bytes = copy(cell, column < 0 ? rows[k].key : rows[k].values[column].text);
        widest = bytes > widest ? bytes : widest;
    }
    return widest;
}

/* Column -1 holds the keys. */
static int find_width(const struct sl_run_comparison *c, const char *head, int column)
{
    char cell[CELL_BYTES];
    const size_t widths[] = {copy(cell, head), find_widest(c->config, c->config_count, column),
                             find_widest(c->metrics, c->metric_count, column)};
    size_t width = 0;
    for (int k = 0; k < 3; k++)
        width = widths[k] > width ? widths[k] : width;
    return (int)width;
}

static void write_rows(const struct sl_compared_row *rows, size_t count, const int *widths, size_t run_count,
                       struct sl_buf *out)
{
    char cell[CELL_BYTES];
    for (size_t k = 0; k < count; k++) {
        copy(cell, rows[k].key);
        sl_buf_printf(out, "%-*s", widths[0], cell);
        for (size_t r = 0; r < run_count; r++) {
            copy(cell, rows[k].values[r].text);
            sl_buf_printf(out, "  %*s", widths[r + 1], cell);
        }
        sl_buf_append_char(out, '\n');
    }
}

static void write_table(const struct cli_selection *selection, const struct sl_run_comparison *c, struct sl_buf *out)
{
    int widths[SL_COMPARED_MOST + 1] = {find_width(c, "", -1)};
    char cell[CELL_BYTES];
    sl_buf_printf(out, "%-*s", widths[0], "");
    for (size_t r = 0; r < selection->count; r++) {
        widths[r + 1] = find_width(c, selection->runs[r]->name, (int)r);
        copy(cell, selection->runs[r]->name);
        sl_buf_printf(out, "  %*s", widths[r + 1], cell);
    }
    sl_buf_append_char(out, '\n');
    write_rows(c->config, c->config_count, widths, selection->count, out);
    if (c->config_count > 0 && c->metric_count > 0)
        sl_buf_append_char(out, '\n');
    write_rows(c->metrics, c->metric_count, widths, selection->count, out);
}

static json_t *pack_rows(const struct sl_compared_row *rows, size_t count, size_t run_count)
{
    json_t *object = json_object();
    for (size_t k = 0; k < count; k++) {
        json_t *values = json_array();
        for (size_t r = 0; r < run_count; r++)
            values = sl_json_add(values, cli_selection_pack(&rows[k].values[r]));
        object = sl_json_put(object, rows[k].key, values);
    }
    return object;
}

static int write_json(struct cli_context *cli, const struct cli_selection *selection, const struct sl_run_comparison *c)
{
    json_t *names = json_array();
    for (size_t r = 0; r < selection->count; r++)
        names = sl_json_add(names, sl_json_text(selection->runs[r]->name));
    return cli_write_json(cli, json_pack("{s:s,s:o,s:o,s:o}", "schema", "seqlstm.runs_compare/1", "runs", names,
                                         "config", pack_rows(c->config, c->config_count, selection->count), "metrics",
                                         pack_rows(c->metrics, c->metric_count, selection->count)));
}

static int write_comparison(struct cli_context *cli, struct cli_selection *selection)
{
    struct sl_run_comparison comparison;
    struct sl_buf table = {0};
    if (selection->count < 2 || selection->count > SL_COMPARED_MOST)
        return cli_usage_error(cli, "2 to %d runs can be compared, and %zu %s selected", SL_COMPARED_MOST,
                               selection->count, selection->count == 1 ? "is" : "are");
    if (!sl_run_comparison_make(&selection->arena, selection->runs, selection->count, &comparison))
        return cli_fail_memory(cli, "the comparison");
    if (cli->json)
        return write_json(cli, selection, &comparison);
    if (comparison.config_count == 0)
        cli_note(cli, "the configurations are equal");
    write_table(selection, &comparison, &table);
    int code = cli_write_out(cli, &table);
    sl_buf_deinit(&table);
    return code;
}

static int runs_compare(struct cli_context *cli)
{
    struct cli_selection selection;
    int code = cli_selection_find(cli, &selection);
    if (code == CLI_OK)
        code = write_comparison(cli, &selection);
    cli_selection_release(&selection);
    return code;
}

static const struct cli_flag flags[] = {CLI_FLAGS_SELECTION, {0}};

const struct cli_command cli_command_runs_compare = {
    .name = "runs compare",
    .summary = "show what differs between runs: configuration and metrics",
    .usage = "RUN RUN... [flags]",
    .examples = "  seqlstm runs compare quickstart/001 quickstart/002\n"
                "  seqlstm runs compare quickstart --where 'test.loss<0.1' --json\n",
    .text = CLI_SELECTION_TEXT,
    .flags = flags,
    .operands_max = 64,
    .run = runs_compare,
};
