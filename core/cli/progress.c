/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a training run on stderr: one redrawn line on a terminal, plain lines otherwise, and a table at the end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/value/text.h"
#include "cli/cli.h"
#include "dispatch/explain/explain.h"

enum {
    REDRAW_NS = 100 * 1000 * 1000,
    EPOCH_NS = 500 * 1000 * 1000, /* least time between the lines of two epochs, after … */
    EPOCHS_SHOWN = 20             /* … this many lines */
};
static const int64_t line_ns = INT64_C(10) * 1000 * 1000 * 1000;

struct cli_train_view {
    struct cli_context *cli;
    bool bar;        /* one line, redrawn */
    bool lines;      /* plain lines */
    int64_t last_ns; /* time of the last redraw or line */
    int64_t start_ns;
    double rows_per_second;
    int64_t epoch_lines, epoch_ns; /* number of epoch lines, and the time of the last one */
    size_t epoch_columns;          /* width of "epoch 3/10", by which the lines that belong to it are indented */
    int64_t shown_updates;         /* the update of the last epoch line: its validation is shown, too */
    double epoch_seconds;          /* that the last epoch took; 0: none has ended */
    double epoch_begin;            /* seconds of the run when this epoch began; NaN: before this start */
    double valid, best;            /* loss of the last validation, and the lowest; NaN: none */
    double best_epochs;            /* epochs done at the lowest */
};

struct cli_train_view *cli_train_view_create(struct cli_context *cli)
{
    struct cli_train_view *view = calloc(1, sizeof *view);
    if (view == NULL)
        return NULL;
    view->cli = cli;
    view->bar = cli_draws_line(cli);
    view->lines = !view->bar && cli->verbosity >= 0 && cli->progress != CLI_PROGRESS_NONE;
    view->best = view->epoch_begin = NAN;
    view->start_ns = view->last_ns = sl_clock_ns();
    view->epoch_columns = strlen("epoch 1/10");
    return view;
}

void cli_train_view_destroy(struct cli_train_view *view)
{
    free(view);
}

static void on_start(void *context, const struct sl_session *session, const struct sl_plan *plan, const char *folder)
{
    struct cli_train_view *view = context;
    cli_save_on_signals();
    cli_show_live(view->cli, folder);
    if (view->cli->verbosity < 0)
        return;
    const struct sl_data_facts *facts = sl_data_state_get_facts(sl_session_find_data_state(session));
    struct sl_buf buf = {0};
    sl_buf_printf(&buf, "run     %s\n", folder);
    if (facts->has_steps)
        sl_buf_printf(&buf, "data    %lld sequence%s, %lld step%s, longest %lld\n", (long long)facts->records,
                      facts->records == 1 ? "" : "s", (long long)facts->rows, facts->rows == 1 ? "" : "s",
                      (long long)facts->longest);
    else
        sl_buf_printf(&buf, "data    %lld record%s\n", (long long)facts->records, facts->records == 1 ? "" : "s");
    sl_session_write_plan_table(session, plan, view->cli->verbosity == 0, &buf);
    sl_buf_append_char(&buf, '\n');
    if (!buf.failed)
        cli_say(stderr, "%s", buf.data);
    sl_buf_deinit(&buf);
    view->start_ns = view->last_ns = sl_clock_ns();
}

static void format_rate(char out[24], double rate)
{
    if (!(rate > 0))
        snprintf(out, 24, "-");
    else if (rate < 1e4)
        sl_text_snprintf(out, 24, "%.0f", rate);
    else if (rate < 1e7)
        sl_text_snprintf(out, 24, "%.0fk", rate / 1e3);
    else
        sl_text_snprintf(out, 24, "%.1fM", rate / 1e6);
}

/* The share of the run that is done, by epochs or updates; NaN if unknown. */
static double get_share(const struct sl_train_report *report)
{
    double by_epochs = report->epochs > 0 ? report->progress.epochs / (double)report->epochs : 0;
    double by_updates = report->updates > 0 ? (double)report->progress.updates / (double)report->updates : 0;
    double share = by_epochs > by_updates ? by_epochs : by_updates;
    return share > 0 ? (share < 1 ? share : 1) : (double)NAN;
}

/* Parts of the live line, and which of them go first where there is no room. */
enum {
    PART_BATCH,
    PART_UPDATE,
    PART_LOSS,
    PART_VALID,
    PART_BEST,
    PART_BEST_EPOCH,
    PART_RATE,
    PART_EPOCH,
    PART_ETA,
    PART_SKIPPED,
    PARTS
};
static const int dropped_first[] = {PART_UPDATE, PART_BATCH, PART_RATE, PART_BEST_EPOCH,
                                    PART_EPOCH,  PART_BEST,  PART_VALID};
enum { PART_BYTES = 64, DROPPED = sizeof dropped_first / sizeof *dropped_first };

static void format_parts(const struct cli_train_view *view, const struct sl_train_report *report,
                         char parts[PARTS][PART_BYTES])
{
    char eta[24], rate[24], epoch[24];
    double share = get_share(report);
    sl_text_write_seconds(eta, share > 0 ? report->progress.seconds / share * (1 - share) : (double)NAN);
    sl_text_write_seconds(epoch, view->epoch_seconds);
    format_rate(rate, view->rows_per_second);
    memset(parts, 0, PARTS * sizeof *parts);
    snprintf(parts[PART_BATCH], PART_BYTES, "  batch %lld/%lld", (long long)report->batch,
             (long long)report->epoch_batches);
    snprintf(parts[PART_UPDATE], PART_BYTES, "  update %lld", (long long)report->progress.updates);
    sl_text_snprintf(parts[PART_LOSS], PART_BYTES, "  loss %.5g", report->loss);
    if (!isnan(view->best)) {
        sl_text_snprintf(parts[PART_VALID], PART_BYTES, "  valid %.5g", view->valid);
        sl_text_snprintf(parts[PART_BEST], PART_BYTES, "  best %.5g", view->best);
        sl_text_snprintf(parts[PART_BEST_EPOCH], PART_BYTES, " (epoch %.4g)", view->best_epochs);
    }
    snprintf(parts[PART_RATE], PART_BYTES, "  %s steps/s", rate);
    if (view->epoch_seconds > 0)
        snprintf(parts[PART_EPOCH], PART_BYTES, "  %s/epoch", epoch);
    snprintf(parts[PART_ETA], PART_BYTES, "  ETA %s", eta);
    if (report->skipped)
        snprintf(parts[PART_SKIPPED], PART_BYTES, "  skipped %lld", (long long)report->skipped);
}

/* The live line, in at most `width` columns if that is possible. */
static void write_status(const struct cli_train_view *view, const struct sl_train_report *report, size_t width,
                         struct sl_buf *out)
{
    char parts[PARTS][PART_BYTES];
    format_parts(view, report, parts);
    sl_buf_printf(out, "epoch %lld", (long long)report->epoch + 1);
    if (report->epochs > 0)
        sl_buf_printf(out, "/%lld", (long long)report->epochs);
    size_t columns = out->length_bytes;
    for (int p = 0; p < PARTS; p++)
        columns += strlen(parts[p]);
    for (int k = 0; k < DROPPED && columns > width; k++) {
        columns -= strlen(parts[dropped_first[k]]);
        parts[dropped_first[k]][0] = '\0';
    }
    for (int p = 0; p < PARTS; p++)
        sl_buf_append_text(out, parts[p]);
}

static void on_step(void *context, const struct sl_train_report *report)
{
    struct cli_train_view *view = context;
    if (isnan(view->epoch_begin) && report->batch <= 1)
        view->epoch_begin = report->progress.seconds;
    if (report->rows_per_second > 0)
        view->rows_per_second = report->rows_per_second;
    int64_t now = sl_clock_ns();
    if (!view->bar && !view->lines)
        return;
    if (now - view->last_ns < (view->bar ? REDRAW_NS : line_ns))
        return;
    double seconds = (double)(now - view->start_ns) * 1e-9;
    double elapsed = report->progress.seconds > 0 ? report->progress.seconds : seconds;
    if (!(report->rows_per_second > 0) && elapsed > 0)
        view->rows_per_second = (double)report->progress.tokens / elapsed;
    struct sl_buf buf = {0};
    size_t width = view->bar ? (size_t)cli_get_width() - 1 : 1000;
    write_status(view, report, width, &buf);
    if (view->bar) {
        sl_buf_truncate(&buf, width);
        fprintf(stderr, "\r\033[K%s", sl_buf_text(&buf));
        fflush(stderr);
        cli_set_line();
    } else {
        cli_say(stderr, "%s\n", sl_buf_text(&buf));
    }
    sl_buf_deinit(&buf);
    view->last_ns = now;
}

static void write_values(struct sl_buf *buf, const struct sl_metric_values *values)
{
    for (int32_t m = 0; values && m < values->count; m++) {
        char number[32];
        sl_text_snprintf(number, sizeof number, "%.5g", values->items[m].value);
        sl_buf_printf(buf, "  %s %s", values->items[m].name, number);
    }
}

/* Small models on small data run a thousand epochs per second: only some of them get a line. */
static bool is_epoch_shown(struct cli_train_view *view, const struct sl_train_report *report)
{
    int64_t now = sl_clock_ns();
    bool last = report->epochs > 0 && report->progress.epochs >= (double)report->epochs;
    if (view->epoch_lines >= EPOCHS_SHOWN && !last && now - view->epoch_ns < EPOCH_NS)
        return false;
    view->epoch_lines++;
    view->epoch_ns = now;
    view->shown_updates = report->progress.updates;
    return true;
}

static void on_epoch(void *context, const struct sl_train_report *report)
{
    struct cli_train_view *view = context;
    if (!isnan(view->epoch_begin))
        view->epoch_seconds = report->progress.seconds - view->epoch_begin;
    view->epoch_begin = report->progress.seconds;
    if (view->cli->verbosity < 0 || (!view->bar && !view->lines) || !is_epoch_shown(view, report))
        return;
    cli_clear_line();
    char seconds[24], learning_rate[32];
    sl_text_write_seconds(seconds, report->progress.seconds);
    sl_text_snprintf(learning_rate, sizeof learning_rate, "%.3g", report->learning_rate);
    struct sl_buf buf = {0};
    sl_buf_printf(&buf, "epoch %lld", (long long)report->epoch + 1);
    if (report->epochs > 0)
        sl_buf_printf(&buf, "/%lld", (long long)report->epochs);
    view->epoch_columns = buf.length_bytes;
    sl_buf_append_text(&buf, "  train");
    write_values(&buf, report->values);
    sl_buf_printf(&buf, "  lr %s  after %s", learning_rate, seconds);
    cli_say(stderr, "%s\n", sl_buf_text(&buf));
    sl_buf_deinit(&buf);
}

static void note_validation(struct cli_train_view *view, const struct sl_train_report *report)
{
    view->valid = sl_metric_values_get(report->values, SL_METRIC_LOSS);
    if (isnan(view->best) || view->valid < view->best) {
        view->best = view->valid;
        view->best_epochs = report->progress.epochs;
    }
}

static void on_validation(void *context, const struct sl_train_report *report)
{
    struct cli_train_view *view = context;
    note_validation(view, report);
    if (view->cli->verbosity < 0 || (!view->bar && !view->lines))
        return;
    if (view->shown_updates != report->progress.updates && !is_epoch_shown(view, report))
        return;
    cli_clear_line();
    struct sl_buf buf = {0};
    sl_buf_fill(&buf, ' ', view->epoch_columns);
    sl_buf_append_text(&buf, "  valid");
    write_values(&buf, report->values);
    if (report->improved)
        sl_buf_append_text(&buf, "  *");
    cli_say(stderr, "%s\n", sl_buf_text(&buf));
    sl_buf_deinit(&buf);
}

static void on_checkpoint(void *context, const struct sl_train_report *report)
{
    struct cli_train_view *view = context;
    if (view->cli->verbosity < 1)
        return;
    cli_clear_line();
    cli_say(stderr, "saved %s\n", report->path);
}

struct sl_run_observer cli_train_view_observer(struct cli_train_view *view)
{
    return (struct sl_run_observer){.train = {.context = view,
                                              .on_step = on_step,
                                              .on_epoch = on_epoch,
                                              .on_validation = on_validation,
                                              .on_checkpoint = on_checkpoint},
                                    .on_start = on_start};
}

static void write_row(struct sl_buf *buf, const char *split, const struct sl_metric_values *values,
                      const struct sl_metric_values *columns)
{
    sl_buf_printf(buf, "%-6s", split);
    for (int32_t c = 0; c < columns->count; c++) {
        char number[32] = "-";
        for (int32_t m = 0; m < values->count; m++)
            if (strcmp(values->items[m].name, columns->items[c].name) == 0)
                sl_text_snprintf(number, sizeof number, "%.5g", values->items[m].value);
        sl_buf_printf(buf, "  %*s", (int)(strlen(columns->items[c].name) > 9 ? strlen(columns->items[c].name) : 9),
                      number);
    }
    sl_buf_append_char(buf, '\n');
}

/* Adds the metrics of a split as columns, in the order of first appearance. */
static void join_columns(struct sl_metric_values *columns, const struct sl_metric_values *values)
{
    for (int32_t m = 0; m < values->count; m++) {
        int32_t c = 0;
        while (c < columns->count && strcmp(columns->items[c].name, values->items[m].name) != 0)
            c++;
        if (c == columns->count && c < SL_METRIC_VALUES)
            columns->items[columns->count++] = values->items[m];
    }
}

static void print_table(const struct sl_run_result *result)
{
    struct sl_metric_values columns = {0};
    join_columns(&columns, &result->train.train);
    if (result->train.has_valid)
        join_columns(&columns, &result->train.valid);
    if (result->has_test)
        join_columns(&columns, &result->test);
    struct sl_buf buf = {0};
    sl_buf_printf(&buf, "\n%-6s", "");
    for (int32_t c = 0; c < columns.count; c++)
        sl_buf_printf(&buf, "  %9s", columns.items[c].name);
    sl_buf_append_char(&buf, '\n');
    write_row(&buf, "train", &result->train.train, &columns);
    if (result->train.has_valid)
        write_row(&buf, "valid", &result->train.valid, &columns);
    if (result->has_test)
        write_row(&buf, "test", &result->test, &columns);
    cli_say(stderr, "%s", sl_buf_text(&buf));
    sl_buf_deinit(&buf);
}

static void print_divergence(const struct cli_context *cli, const char *reason)
{
    char text[512];
    sl_text_snprintf(text, sizeof text,
                     "training diverged: %s\n  = help: lower the learning rate, set train.clip_norm, "
                     "or look for extreme values in the data",
                     reason);
    cli_print_error(cli, "E0610", NULL, text);
}

/* Which weights the table is about, where they are not the last ones. */
static void print_weights(const struct sl_run_result *result)
{
    const struct sl_train_result *train = &result->train;
    char epochs[32];
    sl_text_snprintf(epochs, sizeof epochs, "%.4g", train->best_epochs);
    if (train->restored && train->best_update > 0)
        fprintf(stderr, "\nrestored the best weights, those after %s epoch%s (update %lld)", epochs,
                train->best_epochs == 1 ? "" : "s", (long long)train->best_update);
    else if (train->restored)
        fprintf(stderr, "\nrestored the best weights");
    else if (result->measured_again)
        fprintf(stderr, "\nkept the averaged weights");
    if (result->measured_again)
        fprintf(stderr, "; all splits were measured with them\n");
}

int cli_train_view_finish(struct cli_train_view *view, const struct sl_run_result *result)
{
    struct cli_context *cli = view->cli;
    cli_clear_line();
    char seconds[24];
    sl_text_write_seconds(seconds, result->seconds);
    const struct sl_train_result *train = &result->train;
    if (cli->verbosity >= 0 && train->train.count > 0)
        print_table(result), print_weights(result);
    char waiting[16];
    sl_text_snprintf(waiting, sizeof waiting, "%.2f", 100 * train->wait_share);
    if (cli->verbosity >= 0 && train->progress.updates > 0)
        fprintf(stderr, "\nwaiting for data took %s %% of the training time\n", waiting);
    switch (train->end) {
    case SL_END_DIVERGED:
        print_divergence(cli, train->reason);
        return CLI_DIVERGED;
    case SL_END_TIME:
        cli_note(cli, "time limit reached after %s; `seqlstm resume %s` continues", seconds, result->folder);
        return CLI_TIME;
    case SL_END_INTERRUPTED:
        cli_note(cli, "stopped and saved; `seqlstm resume %s` continues", result->folder);
        return 128 + train->signal;
    default:
        cli_note(cli, "done in %s (%lld update%s, ended by %s); saved in %s", seconds,
                 (long long)train->progress.updates, train->progress.updates == 1 ? "" : "s",
                 sl_train_end_get_name(train->end), result->folder);
        return CLI_OK;
    }
}
