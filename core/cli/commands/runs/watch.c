/* SPDX-License-Identifier: Apache-2.0 */
/* seqlstm watch: the curves of a run that another process trains. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory/arena.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "base/value/printable.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "runs/metric_rows.h"
#include "runs/run_facts.h"
#include "runs/text_chart.h"
#include "session/run_folder/run_name.h"

enum {
    TRAIN,
    VALID,

    LINES_DEFAULT = 24,
    CHART_ROWS_MOST = 16,
    FRAME_REST = 6,
    PAUSE_NS = 200000000
};

struct watch {
    struct cli_context *cli;
    const char *folder;
    bool redraw; /* on a terminal: one frame, redrawn */
    bool once;   /* one frame, and the end */
    int drawn;   /* lines of the last frame */
    size_t told; /* rows that were printed, where nothing is redrawn */
    off_t size;  /* of metrics.jsonl when it was last read; -1: not yet */
    json_t *rows;
};

/* ---- reading ----------------------------------------------------------------------------------------------- */

/* Reads the rows again if there are more. False: no memory. */
static bool read_rows(struct watch *watch, bool *out_more)
{
    struct stat info;
    char *path = sl_path_join(watch->folder, "metrics.jsonl");
    const off_t size = path && stat(path, &info) == 0 ? info.st_size : 0;
    if (path == NULL)
        return false;
    free(path);
    *out_more = size != watch->size;
    if (!*out_more)
        return true;
    watch->size = size;
    json_decref(watch->rows);
    watch->rows = sl_metric_rows_read(watch->folder);
    return watch->rows != NULL;
}

/* ---- a frame ----------------------------------------------------------------------------------------------- */

static void append_state(const struct watch *watch, const struct sl_run_facts *run, struct sl_buf *out)
{
    char name[128], end[64];
    sl_printable_copy(name, sizeof name, watch->folder, strlen(watch->folder), "");
    sl_printable_copy(end, sizeof end, run->end, strlen(run->end), "");
    sl_buf_printf(out, "%s  %s", name, sl_run_state_get_name(run->state));
    if (end[0])
        sl_buf_printf(out, " (%s)", end);
    if (!isnan(run->epochs))
        sl_buf_printf(out, "  epoch %.4g", run->epochs);
    if (run->updates >= 0)
        sl_buf_printf(out, "  update %lld", (long long)run->updates);
    if (!isnan(run->seconds))
        sl_buf_printf(out, "  %.4g s", run->seconds);
    sl_buf_append_char(out, '\n');
}

/* The newest values of a split. */
static void append_split(const struct sl_run_facts *run, const char *split, struct sl_buf *out)
{
    bool any = false;
    for (size_t m = 0; m < run->metric_count; m++) {
        char name[64];
        if (strcmp(run->metrics[m].split, split) != 0)
            continue;
        sl_printable_copy(name, sizeof name, run->metrics[m].name, strlen(run->metrics[m].name), "");
        if (!any)
            sl_buf_printf(out, "%-5s", split);
        sl_buf_printf(out, "  %s %.5g", name, run->metrics[m].value);
        any = true;
    }
    if (any)
        sl_buf_append_char(out, '\n');
}

static void append_best(const struct watch *watch, struct sl_buf *out)
{
    size_t i;
    json_t *row, *best = NULL;
    json_array_foreach(watch->rows, i, row)
    {
        const double loss = sl_metric_row_find_metric(row, "loss");
        if (strcmp(sl_metric_row_get_text(row, "split"), "valid") == 0 && !isnan(loss) &&
            (best == NULL || loss < sl_metric_row_find_metric(best, "loss")))
            best = row;
    }
    const double epochs = best ? sl_metric_row_find_number(best, "epoch") : 0;
    if (best)
        sl_buf_printf(out, "best   valid loss %.5g after %.4g epoch%s (update %.0f)\n",
                      sl_metric_row_find_metric(best, "loss"), epochs, epochs == 1 ? "" : "s",
                      sl_metric_row_find_number(best, "update"));
}

/* The loss, or the metric that the user names: reports and epochs of training, and validations. */
static void append_chart(const struct watch *watch, int columns, int lines, struct sl_buf *out)
{
    const char *metric = cli_get(watch->cli, "metric");
    struct sl_chart chart = {.title = metric ? metric : "loss", .names = {"train", "valid"}};
    size_t i;
    json_t *row;
    json_array_foreach(watch->rows, i, row)
    {
        const double value = sl_metric_row_find_metric(row, chart.title);
        const bool valid = strcmp(sl_metric_row_get_text(row, "split"), "valid") == 0;
        if (isfinite(value) && isfinite(sl_metric_row_find_number(row, "update")) &&
            !sl_chart_line_add(&chart.lines[valid ? VALID : TRAIN], sl_metric_row_find_number(row, "update"), value))
            out->failed = true;
    }
    sl_text_chart_append(&chart, columns, lines < CHART_ROWS_MOST ? lines : CHART_ROWS_MOST, watch->cli->color, out);
    sl_chart_deinit(&chart);
}

static int get_lines(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : LINES_DEFAULT;
}

static int count_lines(const struct sl_buf *buf)
{
    int lines = 0;
    for (size_t i = 0; i < buf->length_bytes; i++)
        lines += buf->data[i] == '\n';
    return lines;
}

static seqlstm_status no_memory(struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to show the run");
}

static seqlstm_status draw(struct watch *watch, const struct sl_run_facts *run, struct seqlstm_error *err)
{
    struct sl_buf frame = {0}, whole = {0};
    append_state(watch, run, &frame);
    append_split(run, "train", &frame);
    append_split(run, "valid", &frame);
    append_split(run, "test", &frame);
    append_best(watch, &frame);
    append_chart(watch, cli_get_width() - 1, get_lines() - count_lines(&frame) - FRAME_REST, &frame);
    if (watch->drawn > 0)
        sl_buf_printf(&whole, "\033[%dA\r\033[J", watch->drawn);
    watch->drawn = count_lines(&frame);
    sl_buf_append(&whole, frame.data, frame.length_bytes);
    const seqlstm_status status =
        frame.failed || whole.failed ? no_memory(err) : cli_put(whole.data, whole.length_bytes, true, err);
    sl_buf_deinit(&frame);
    sl_buf_deinit(&whole);
    return status;
}

/* ---- rows as they come --------------------------------------------------------------------------------------- */

static void append_row(json_t *row, struct sl_buf *out)
{
    const char *name, *split = sl_metric_row_get_text(row, "split");
    json_t *value;
    sl_buf_printf(out, "update %.0f  epoch %.4g  ", sl_metric_row_find_number(row, "update"),
                  sl_metric_row_find_number(row, "epoch"));
    sl_printable_append(out, split, strlen(split), "");
    json_object_foreach(json_object_get(row, "metrics"), name, value)
    {
        if (!json_is_number(value))
            continue;
        sl_buf_append_text(out, "  ");
        sl_printable_append(out, name, strlen(name), "");
        sl_buf_printf(out, " %.5g", json_number_value(value));
    }
    sl_buf_append_char(out, '\n');
}

static seqlstm_status tell(struct watch *watch, struct seqlstm_error *err)
{
    struct sl_buf out = {0};
    for (; watch->told < json_array_size(watch->rows); watch->told++) {
        json_t *row = json_array_get(watch->rows, watch->told);
        if (!watch->cli->json)
            append_row(row, &out);
        else if (!sl_json_append_line(&out, json_incref(row)))
            out.failed = true;
    }
    seqlstm_status status = out.failed ? no_memory(err) : SEQLSTM_OK;
    if (status == SEQLSTM_OK && out.length_bytes > 0)
        status = cli_put_text(out.data, out.length_bytes, true, err);
    sl_buf_deinit(&out);
    return status;
}

/* ---- the command ------------------------------------------------------------------------------------------- */

/* One look at the run. *out_over: there is no more to see, or it cannot be shown. */
static int look(struct watch *watch, bool *out_over)
{
    struct sl_arena arena = {0};
    struct sl_run_facts run;
    const bool known = sl_run_facts_read(&arena, watch->folder, watch->folder, &run);
    bool more = false;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = SEQLSTM_OK;
    if (!known || !read_rows(watch, &more)) {
        status = no_memory(&err);
    } else {
        *out_over = watch->once || run.state != SL_RUN_LIVE;
        if (!watch->redraw)
            status = tell(watch, &err);
        else if (more || *out_over)
            status = draw(watch, &run, &err);
    }
    sl_arena_deinit(&arena);
    if (status != SEQLSTM_OK)
        *out_over = true;
    return status == SEQLSTM_OK ? CLI_OK : cli_fail(watch->cli, status, &err);
}

static int follow(struct watch *watch)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    bool over = false;
    int code = look(watch, &over);
    while (code == CLI_OK && !over) {
        nanosleep(&pause, NULL);
        code = look(watch, &over);
    }
    return code;
}

static int watch_run(struct cli_context *cli)
{
    char *folder = NULL;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_run_folder_find_newest(cli->values.operands[0], &folder, &err);
    if (status != SEQLSTM_OK)
        return cli_fail(cli, status, &err);
    struct watch watch = {.cli = cli,
                          .folder = folder,
                          .once = cli_has(cli, "once"),
                          .redraw = !cli->json && (cli_has(cli, "once") || isatty(STDOUT_FILENO)),
                          .size = -1};
    int code = cli_begin_live(cli);
    if (code == CLI_OK) {
        cli_show_live(cli, folder);
        code = follow(&watch);
    }
    cli_end_live(cli);
    json_decref(watch.rows);
    free(folder);
    return code;
}

static const struct cli_flag flags[] = {
    {.name = "metric", .argument = "NAME", .help = "draw this metric (default loss)"},
    CLI_FLAG_WATCH_PORT,
    {.name = "once", .help = "show it once, and do not wait for more"},
    {0},
};

const struct cli_command cli_command_watch = {
    .name = "watch",
    .summary = "follow the curves of a run from another terminal",
    .usage = "RUN [flags]",
    .examples = "  seqlstm watch quickstart\n"
                "  seqlstm watch quickstart --metric accuracy\n"
                "  seqlstm watch quickstart --watch-port 0\n"
                "  seqlstm watch runs/quickstart/001 --json | jq .metrics.loss\n",
    .text = "Redraws the curves until the run ends; Ctrl-C ends only watching, and `seqlstm\n"
            "stop RUN` ends the run. Where stdout is no terminal, each new row of\n"
            "metrics.jsonl becomes a line; with --json, it is that row.\n",
    .flags = flags,
    .operands_min = 1,
    .operands_max = 1,
    .run = watch_run,
};
