/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm runs */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/file_writer.h"
#include "base/value/json_tree.h"
#include "base/value/printable.h"
#include "base/value/text.h"
#include "cli/commands/runs/selection.h"
#include "runs/page.h"

enum { COLUMNS_MOST = 24, NAME_BYTES = 80, CELL_BYTES = 48 };

struct columns {
    const char *keys[COLUMNS_MOST];
    size_t count;
};

/* ---- sorting ----------------------------------------------------------------------------------------------- */

struct sorted {
    struct sl_run_value value;
    size_t place; /* before sorting: equal values stay in their order */
};

static int compare(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    const int order = sl_run_value_compare(&a->value, &b->value);
    return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

/* Runs without a value stay at the end, in either direction. */
static int compare_down(const void *left, const void *right)
{
    const struct sorted *a = left, *b = right;
    const bool none = a->value.kind == SL_RUN_VALUE_NONE || b->value.kind == SL_RUN_VALUE_NONE;
    const int order = sl_run_value_compare(&a->value, &b->value);
    return order == 0 || none ? compare(left, right) : -order;
}

static int sort_runs(struct cli_context *cli, struct cli_selection *selection)
{
    const char *key = cli_get(cli, "sort");
    const bool down = key && key[0] == '-';
    if (key == NULL)
        return CLI_OK;
    key += down;
    int code = cli_selection_check_key(cli, selection, key);
    struct sorted *sorted = SL_ARENA_ARRAY(&selection->arena, struct sorted, selection->count);
    struct cli_selection before = *selection;
    before.runs = SL_ARENA_ARRAY(&selection->arena, const struct sl_run_facts *, selection->count);
    before.configs = SL_ARENA_ARRAY(&selection->arena, struct sl_config_entries, selection->count);
    if (code == CLI_OK && (sorted == NULL || before.runs == NULL || before.configs == NULL))
        code = cli_fail_memory(cli, "the runs");
    for (size_t r = 0; r < selection->count && code == CLI_OK; r++) {
        sorted[r].place = r;
        if (!cli_selection_get(cli, selection, r, key, &sorted[r].value))
            code = CLI_NO_MEMORY;
        before.runs[r] = selection->runs[r];
        before.configs[r] = selection->configs[r];
    }
    if (code != CLI_OK || selection->count == 0)
        return code;
    qsort(sorted, selection->count, sizeof *sorted, down ? compare_down : compare);
    for (size_t r = 0; r < selection->count; r++) {
        selection->runs[r] = before.runs[sorted[r].place];
        selection->configs[r] = before.configs[sorted[r].place];
    }
    return CLI_OK;
}

/* ---- columns ----------------------------------------------------------------------------------------------- */

/* The loss of each split that any run has. */
static void choose_columns(const struct cli_selection *selection, struct columns *columns)
{
    static const char *const splits[] = {"train", "valid", "test"}, *const keys[] = {"train.loss", "valid.loss",
                                                                                     "test.loss"};
    for (int s = 0; s < 3; s++)
        for (size_t r = 0; r < selection->count; r++)
            if (isfinite(sl_run_facts_find_metric(selection->runs[r], splits[s], "loss"))) {
                columns->keys[columns->count++] = keys[s];
                break;
            }
}

static int find_columns(struct cli_context *cli, struct cli_selection *selection, struct columns *columns)
{
    char *list = cli_get(cli, "columns") ? sl_arena_strdup(&selection->arena, cli_get(cli, "columns")) : NULL,
         *rest = NULL;
    int code = CLI_OK;
    if (cli_get(cli, "columns") == NULL)
        choose_columns(selection, columns);
    for (char *key = list ? strtok_r(list, ", ", &rest) : NULL; key && code == CLI_OK;
         key = strtok_r(NULL, ", ", &rest)) {
        if (columns->count == COLUMNS_MOST)
            return cli_usage_error(cli, "--columns: at most %d keys", COLUMNS_MOST);
        code = cli_selection_check_key(cli, selection, key);
        columns->keys[columns->count++] = key;
    }
    return code;
}

/* ---- output ------------------------------------------------------------------------------------------------ */

static void format_state(const struct sl_run_facts *run, char out[CELL_BYTES])
{
    char end[CELL_BYTES];
    sl_printable_copy(end, sizeof end, run->end, strlen(run->end), "");
    sl_text_snprintf(out, CELL_BYTES, end[0] ? "%s (%s)" : "%s", sl_run_state_get_name(run->state), end);
}

static int find_name_width(const struct cli_selection *selection)
{
    int width = (int)strlen("run");
    char name[NAME_BYTES];
    for (size_t r = 0; r < selection->count; r++) {
        const char *text = selection->runs[r]->name;
        int bytes = (int)sl_printable_copy(name, sizeof name, text, strlen(text), "");
        width = bytes > width ? bytes : width;
    }
    return width;
}

static int find_width(const struct cli_selection *selection, const char *key, struct sl_run_value *const *values,
                      size_t c)
{
    size_t width = strlen(key);
    for (size_t r = 0; r < selection->count; r++) {
        const size_t bytes = strlen(values[r][c].text);
        width = bytes > width ? bytes : width;
    }
    return width < CELL_BYTES ? (int)width : CELL_BYTES - 1;
}

static void write_table(const struct cli_selection *selection, const struct columns *columns,
                        struct sl_run_value *const *values, struct sl_buf *out)
{
    const int name_width = find_name_width(selection);
    sl_buf_printf(out, "%-*s  %-25s  %-16s", name_width, "run", "state", "started");
    for (size_t c = 0; c < columns->count; c++)
        sl_buf_printf(out, "  %*s", find_width(selection, columns->keys[c], values, c), columns->keys[c]);
    sl_buf_append_char(out, '\n');
    for (size_t r = 0; r < selection->count; r++) {
        const struct sl_run_facts *run = selection->runs[r];
        char name[NAME_BYTES], state[CELL_BYTES], cell[CELL_BYTES];
        sl_printable_copy(name, sizeof name, run->name, strlen(run->name), "");
        format_state(run, state);
        sl_buf_printf(out, "%-*s  %-25s  %-16s", name_width, name, state, values[r][columns->count].text);
        for (size_t c = 0; c < columns->count; c++) {
            const char *text = values[r][c].text;
            sl_printable_copy(cell, sizeof cell, text, strlen(text), "");
            sl_buf_printf(out, "  %*s", find_width(selection, columns->keys[c], values, c), cell);
        }
        sl_buf_append_char(out, '\n');
    }
}

static json_t *pack_run(const struct sl_run_facts *run, const struct columns *columns,
                        const struct sl_run_value *values)
{
    json_t *metrics = json_object(), *shown = json_object();
    for (size_t m = 0; m < run->metric_count; m++) {
        const struct sl_run_metric *metric = &run->metrics[m];
        json_t *split = json_incref(json_object_get(metrics, metric->split));
        split = sl_json_put(split ? split : json_object(), metric->name, json_real(metric->value));
        metrics = sl_json_put(metrics, metric->split, split);
    }
    for (size_t c = 0; c < columns->count; c++)
        shown = sl_json_put(shown, columns->keys[c], cli_selection_pack(&values[c]));
    char started[32] = "";
    time_t when = (time_t)run->started;
    struct tm parts;
    if (gmtime_r(&when, &parts))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &parts);
    json_t *root = json_pack("{s:o,s:o,s:s}", "name", sl_json_text(run->name), "folder", sl_json_text(run->folder),
                             "state", sl_run_state_get_name(run->state));
    if (run->end[0])
        root = sl_json_put(root, "end", json_string(run->end));
    root = sl_json_put(root, "started", json_string(started));
    root = sl_json_put(root, "updates", run->updates < 0 ? json_null() : json_integer((json_int_t)run->updates));
    root = sl_json_put(root, "epochs", isfinite(run->epochs) ? json_real(run->epochs) : json_null());
    root = sl_json_put(root, "seconds", isfinite(run->seconds) ? json_real(run->seconds) : json_null());
    root = sl_json_put(root, "metrics", metrics);
    return sl_json_put(root, "columns", shown);
}

static int write_json(struct cli_context *cli, const struct cli_selection *selection, const struct columns *columns,
                      struct sl_run_value *const *values)
{
    json_t *list = json_array();
    for (size_t r = 0; r < selection->count; r++)
        list = sl_json_add(list, pack_run(selection->runs[r], columns, values[r]));
    return cli_write_json(cli, json_pack("{s:s,s:o}", "schema", "seqlstm.runs/1", "runs", list));
}

static int write_page(struct cli_context *cli, struct cli_selection *selection, const char *path)
{
    struct sl_run_comparison comparison;
    struct sl_buf page = {0};
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = SEQLSTM_NO_MEMORY;
    if (selection->count == 0)
        return cli_usage_error(cli, "--html: no run is selected");
    if (selection->count > SL_COMPARED_MOST)
        return cli_usage_error(cli,
                               "--html shows at most %d runs, and %zu are selected\n  = help: name runs, or narrow "
                               "them with --where",
                               SL_COMPARED_MOST, selection->count);
    if (sl_run_comparison_make(&selection->arena, selection->runs, selection->count, &comparison)) {
        sl_runs_page_write(&page, selection->runs, &comparison);
        status = page.failed ? SEQLSTM_NO_MEMORY : sl_file_write(path, page.data, page.length_bytes, &err);
    }
    if (status == SEQLSTM_NO_MEMORY)
        seqlstm_error_set(&err, status, __FILE__, __LINE__, "no memory for the page");
    sl_buf_deinit(&page);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    cli_note(cli, "wrote %s", path);
    return CLI_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------- */

/* One row per run; its last value is the time of its start. NULL: an error was printed. */
static struct sl_run_value **find_values(struct cli_context *cli, struct cli_selection *selection,
                                         const struct columns *columns)
{
    struct sl_run_value **values = SL_ARENA_ARRAY(&selection->arena, struct sl_run_value *, selection->count);
    for (size_t r = 0; values && r < selection->count; r++)
        if ((values[r] = SL_ARENA_ARRAY(&selection->arena, struct sl_run_value, columns->count + 1)) == NULL)
            values = NULL;
    if (values == NULL)
        cli_fail_memory(cli, "the columns");
    for (size_t r = 0; values && r < selection->count; r++)
        for (size_t c = 0; c <= columns->count; c++)
            if (!cli_selection_get(cli, selection, r, c < columns->count ? columns->keys[c] : "started", &values[r][c]))
                return NULL;
    return values;
}

static int write_list(struct cli_context *cli, struct cli_selection *selection)
{
    struct columns columns = {0};
    struct sl_buf table = {0};
    int code = find_columns(cli, selection, &columns);
    struct sl_run_value **values = code == CLI_OK ? find_values(cli, selection, &columns) : NULL;
    if (values == NULL)
        return code == CLI_OK ? CLI_NO_MEMORY : code;
    if (cli->json)
        return write_json(cli, selection, &columns, values);
    if (selection->count == 0) {
        cli_note(cli, "no run is there that fits");
        return CLI_OK;
    }
    write_table(selection, &columns, values, &table);
    code = cli_write_out(cli, &table);
    sl_buf_deinit(&table);
    return code;
}

static int runs(struct cli_context *cli)
{
    struct cli_selection selection;
    int code = cli_selection_find(cli, &selection);
    if (code == CLI_OK)
        code = sort_runs(cli, &selection);
    if (code == CLI_OK)
        code = cli_get(cli, "html") ? write_page(cli, &selection, cli_get(cli, "html")) : write_list(cli, &selection);
    cli_selection_release(&selection);
    return code;
}

static const struct cli_flag flags[] = {
    CLI_FLAGS_SELECTION,
    {.name = "sort", .argument = "KEY", .help = "sort by a key; -KEY: the largest first (default: by name)"},
    {.name = "columns", .argument = "KEYS", .help = "show these keys, separated by commas (default: the losses)"},
    {.name = "html",
     .argument = "FILE",
     .writes = true,
     .help = "write a page with the curves of the runs (at most 12) instead"},
    {0},
};

const struct cli_command cli_command_runs = {
    .name = "runs",
    .summary = "list, sort and filter runs",
    .usage = "[RUN...] [flags]",
    .examples = "  seqlstm runs\n"
                "  seqlstm runs --where 'test.loss<0.1' --sort test.loss\n"
                "  seqlstm runs quickstart --columns valid.accuracy,train.optimizer.learning_rate\n"
                "  seqlstm runs quickstart --html curves.html\n",
    .text = CLI_SELECTION_TEXT,
    .flags = flags,
    .operands_max = 64,
    .run = runs,
};
