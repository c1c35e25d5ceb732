/* SPDX-License-Identifier: Apache-2.0 */
/* report.html: a run in one file that needs no network: a table of the metrics, a curve of each metric over the updates
 * (inline SVG, from metrics.jsonl), the time that each part took, the rows that each layer computed, and the plan. */
#include "session/run_folder/report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/buf.h"
#include "base/value/html.h"
#include "base/value/text.h"
#include "session/record/session_record.h"
#include "session/run_folder/plan_json.h"
#include "session/run_folder/run_folder.h"
#include "session/run_folder/summary.h"

enum {
    METRICS_LIMIT = 256 << 20, /* bytes of metrics.jsonl */
    POINTS_DRAWN = 500,        /* of one line */
    DOTS_DRAWN = 100,          /* each shows its number under the pointer */
    LEFT = 64,
    TOP = 28,
    WIDTH = 640,
    HEIGHT = 220,
    FULL_WIDTH = LEFT + WIDTH + 24,
    FULL_HEIGHT = TOP + HEIGHT + 36,
    TICKS = 4,
    BAR_HEIGHT = 22,
    LINE_HEIGHT = 20
};

struct point {
    double x, y;
};

/* One line of a chart. */
struct series {
    struct point *points;
    size_t count;
};

/* One metric. */
struct chart {
    char name[64];
    struct series train, valid;
    double low, high, last; /* of y; of x */
    bool logarithmic;
};

static const char style[] =
    ":root{--train:#2a6fc9;--valid:#d9662b}"
    "@media(prefers-color-scheme:dark){:root{--train:#6aa5f0;--valid:#f0935e}}\n"
    "body{max-width:760px}pre{overflow-x:auto;font-size:13px;line-height:1.45}\n"
    ".train{stroke:var(--train)}.valid{stroke:var(--valid)}path{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    "circle{stroke:var(--page);stroke-width:1}circle.train,rect.train{fill:var(--train)}circle.valid,rect.valid"
    "{fill:var(--valid)}rect.wait{fill:var(--ink)}rect.rest{fill:var(--dim)}\n";

static void write_number(struct sl_buf *out, const char *format, double value)
{
    char text[64];
    sl_text_snprintf(text, sizeof text, format, value);
    sl_buf_append_text(out, text);
}

/* ---- reading -------------------------------------------------------------------------------------- */

static bool add_point(struct series *series, double x, double y)
{
    if ((series->count & (series->count - 1)) == 0) { /* full at every power of two */
        struct point *grown = realloc(series->points, (series->count ? 2 * series->count : 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        series->points = grown;
    }
    series->points[series->count++] = (struct point){x, y};
    return true;
}

/* The means of whole epochs go into the table; the curve is made of reports if there are any. */
static bool read_row(json_t *row, const char *metric, bool reports, struct chart *chart)
{
    const char *split = json_string_value(json_object_get(row, "split"));
    const char *span = json_string_value(json_object_get(row, "span"));
    json_t *value = json_object_get(json_object_get(row, "metrics"), metric);
    if (split == NULL || span == NULL || !json_is_number(value))
        return true;
    bool valid = strcmp(split, "valid") == 0;
    if (!valid && strcmp(span, reports ? "report" : "epoch") != 0)
        return true;
    double y = json_number_value(value);
    return !isfinite(y) ||
           add_point(valid ? &chart->valid : &chart->train, json_number_value(json_object_get(row, "update")), y);
}

static void find_range(struct chart *chart)
{
    const struct series *all[] = {&chart->train, &chart->valid};
    chart->low = INFINITY;
    chart->high = -INFINITY;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < all[s]->count; i++) {
            chart->low = fmin(chart->low, all[s]->points[i].y);
            chart->high = fmax(chart->high, all[s]->points[i].y);
            chart->last = fmax(chart->last, all[s]->points[i].x);
        }
    chart->logarithmic = chart->low > 0 && chart->high > 20 * chart->low;
    if (chart->logarithmic) {
        chart->low /= 1.1;
        chart->high *= 1.1;
    } else {
        double margin = chart->high > chart->low ? 0.05 * (chart->high - chart->low) : fabs(chart->high) * 0.1 + 1e-6;
        chart->low = chart->low >= 0 && chart->low < margin ? 0 : chart->low - margin;
        chart->high += margin;
    }
}

/* ---- drawing -------------------------------------------------------------------------------------- */

static double get_x(const struct chart *chart, double x)
{
    return LEFT + (chart->last > 0 ? x / chart->last : 0) * WIDTH;
}

static double get_y(const struct chart *chart, double y)
{
    double share = chart->logarithmic ? log(y / chart->low) / log(chart->high / chart->low)
                                      : (y - chart->low) / (chart->high - chart->low);
    return TOP + (1 - share) * HEIGHT;
}

static void write_axes(struct sl_buf *out, const struct chart *chart)
{
    for (int tick = 0; tick <= TICKS; tick++) {
        double share = (double)tick / TICKS, y = TOP + (1 - share) * HEIGHT;
        double value = chart->logarithmic ? chart->low * pow(chart->high / chart->low, share)
                                          : chart->low + share * (chart->high - chart->low);
        char at[32], text[32];
        sl_text_snprintf(at, sizeof at, "%.1f", y);
        sl_text_snprintf(text, sizeof text, "%.3g", value);
        sl_buf_printf(out,
                      "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%s\" y2=\"%s\"/>"
                      "<text x=\"%d\" y=\"%s\" dy=\"4\" text-anchor=\"end\">%s</text>\n",
                      LEFT, LEFT + WIDTH, at, at, LEFT - 8, at, text);
        sl_text_snprintf(text, sizeof text, "%.0f", share * chart->last);
        sl_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s%s</text>\n", (int)(LEFT + share * WIDTH),
                      TOP + HEIGHT + 20, text, tick == TICKS / 2 ? " updates" : "");
    }
}

static void write_series(struct sl_buf *out, const struct chart *chart, const struct series *series, const char *name)
{
    size_t step = series->count / POINTS_DRAWN + 1;
    if (series->count == 0)
        return;
    sl_buf_printf(out, "<path class=\"%s\" d=\"", name);
    for (size_t i = 0; i < series->count; i++) {
        if (i % step != 0 && i + 1 != series->count)
            continue;
        sl_buf_append_char(out, i ? 'L' : 'M');
        write_number(out, "%.1f ", get_x(chart, series->points[i].x));
        write_number(out, "%.1f", get_y(chart, series->points[i].y));
    }
    sl_buf_append_text(out, "\"/>\n");
    for (size_t i = 0; i < series->count && series->count <= DOTS_DRAWN; i++) {
        sl_buf_printf(out, "<circle class=\"%s\" r=\"3.5\" cx=\"", name);
        write_number(out, "%.1f", get_x(chart, series->points[i].x));
        write_number(out, "\" cy=\"%.1f\"><title>", get_y(chart, series->points[i].y));
        write_number(out, "update %.0f: ", series->points[i].x);
        write_number(out, "%.6g</title></circle>\n", series->points[i].y);
    }
}

static void write_chart(struct sl_buf *out, const struct chart *chart)
{
    sl_buf_append_text(out, "<h2>");
    sl_html_append_text(out, chart->name);
    sl_buf_printf(out, "</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", FULL_WIDTH, FULL_HEIGHT);
    sl_html_append_text(out, chart->name);
    sl_buf_append_text(out, " over the updates\">\n");
    write_axes(out, chart);
    int x = LEFT;
    const char *names[] = {"train", "valid"};
    const struct series *all[] = {&chart->train, &chart->valid};
    for (int s = 0; s < 2; s++) {
        write_series(out, chart, all[s], names[s]);
        if (all[s]->count == 0)
            continue;
        sl_buf_printf(out,
                      "<rect class=\"%s\" x=\"%d\" y=\"9\" width=\"14\" height=\"3\"/>"
                      "<text x=\"%d\" y=\"15\">%s</text>\n",
                      names[s], x, x + 20, names[s]);
        x += 70;
    }
    if (chart->logarithmic)
        sl_buf_printf(out, "<text x=\"%d\" y=\"15\" text-anchor=\"end\">logarithmic</text>\n", LEFT + WIDTH);
    sl_buf_append_text(out, "</svg>\n");
}

/* A chart of each metric in the rows. */
static void write_charts(struct sl_buf *out, json_t *rows)
{
    size_t i;
    json_t *row, *names = json_object(), *value;
    bool reports = false;
    const char *name;
    size_t report_rows = 0;
    json_array_foreach(rows, i, row)
    {
        const char *span = json_string_value(json_object_get(row, "span"));
        report_rows += span && strcmp(span, "report") == 0;
        json_object_foreach(json_object_get(row, "metrics"), name, value) json_object_set_new(names, name, json_true());
    }
    reports = report_rows >= 10;
    json_object_foreach(names, name, value)
    {
        struct chart chart = {0};
        snprintf(chart.name, sizeof chart.name, "%s", name);
        bool fine = true;
        json_array_foreach(rows, i, row) fine = fine && read_row(row, name, reports, &chart);
        if (!fine)
            out->failed = true;
        if (fine && chart.train.count + chart.valid.count > 1) {
            find_range(&chart);
            write_chart(out, &chart);
        }
        free(chart.train.points);
        free(chart.valid.points);
    }
    json_decref(names);
}

static json_t *read_rows(const char *folder)
{
    char *path = sl_path_join(folder, "metrics.jsonl"), *text = NULL, *rest = NULL;
    size_t bytes = 0;
    json_t *rows = json_array();
    if (path && sl_file_exists(path) && sl_file_read(path, METRICS_LIMIT, &text, &bytes, NULL) == SEQLSTM_OK)
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            json_t *row = json_loads(line, 0, NULL);
            if (row)
                json_array_append_new(rows, row);
        }
    free(text);
    free(path);
    return rows;
}

/* ---- tables --------------------------------------------------------------------------------------- */

static void write_metrics_row(struct sl_buf *out, const char *split, const struct sl_metric_values *columns,
                              const struct sl_metric_values *values)
{
    sl_buf_printf(out, "<tr><td>%s</td>", split);
    for (int32_t c = 0; c < columns->count; c++) {
        sl_buf_append_text(out, "<td>");
        for (int32_t m = 0; m < values->count; m++)
            if (strcmp(values->items[m].name, columns->items[c].name) == 0)
                write_number(out, "%.6g", values->items[m].value);
        sl_buf_append_text(out, "</td>");
    }
    sl_buf_append_text(out, "</tr>\n");
}

static void write_metrics(struct sl_buf *out, const struct sl_run_result *result)
{
    const struct sl_metric_values *columns = &result->train.train;
    if (result->train.has_valid && result->train.valid.count > columns->count)
        columns = &result->train.valid;
    sl_buf_append_text(out, "<h2>Metrics</h2>\n<table><tr><th></th>");
    for (int32_t c = 0; c < columns->count; c++) {
        sl_buf_append_text(out, "<th>");
        sl_html_append_text(out, columns->items[c].name);
        sl_buf_append_text(out, "</th>");
    }
    sl_buf_append_text(out, "</tr>\n");
    write_metrics_row(out, "train", columns, &result->train.train);
    if (result->train.has_valid)
        write_metrics_row(out, "valid", columns, &result->train.valid);
    if (result->has_test)
        write_metrics_row(out, "test", columns, &result->test);
    sl_buf_append_text(out, "</table>\n");
}

/* One bar that shows how the time of this call was spent, and a line for each part of it. */
static void write_time(struct sl_buf *out, const struct sl_run_result *result)
{
    const struct sl_train_result *train = &result->train;
    double wait = fmin(train->wait_seconds, train->spent_seconds);
    double rest = fmax(result->seconds - train->spent_seconds - train->validation_seconds, 0), x = 0;
    const struct {
        const char *color, *what;
        double seconds;
    } parts[] = {{"train", "training", train->spent_seconds - wait},
                 {"wait", "waiting for data", wait},
                 {"valid", "validation", train->validation_seconds},
                 {"rest", "plan, test and saving", rest}};
    enum { PARTS = sizeof parts / sizeof *parts };
    double total = train->spent_seconds + train->validation_seconds + rest;
    if (train->made == 0 || !(total > 0))
        return;
    sl_buf_printf(out, "<h2>Time</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"where the time went\">\n",
                  FULL_WIDTH, BAR_HEIGHT + PARTS * LINE_HEIGHT + 16);
    for (int p = 0; p < PARTS; p++) {
        double width = parts[p].seconds / total * FULL_WIDTH;
        int y = BAR_HEIGHT + 16 + p * LINE_HEIGHT;
        sl_buf_printf(out, "<rect class=\"%s\" y=\"0\" height=\"%d\" x=\"", parts[p].color, BAR_HEIGHT);
        write_number(out, "%.1f\" width=\"", x);
        write_number(out, "%.1f\"/>", width);
        sl_buf_printf(out,
                      "<rect class=\"%s\" x=\"0\" y=\"%d\" width=\"12\" height=\"12\"/>"
                      "<text x=\"20\" y=\"%d\">%s: ",
                      parts[p].color, y, y + 11, parts[p].what);
        write_number(out, "%.3g s, ", parts[p].seconds);
        write_number(out, "%.1f %%</text>\n", 100 * parts[p].seconds / total);
        x += width;
    }
    sl_buf_append_text(out, "</svg>\n");
}

/* The rows that each layer computed in training; all of them are real unless `pad_to` adds others. */
static void write_rows(struct sl_buf *out, const struct sl_session *session, const struct sl_run_result *result)
{
    int32_t count;
    const struct sl_exec_timing *timing = sl_exec_get_timing(session->train.exec, &count);
    const struct sl_train_result *train = &result->train;
    bool padded = session->model->data.batching.padding != SL_PADDING_NONE;
    int64_t most = 0;
    for (int32_t c = 0; c < count; c++)
        most = timing[c].rows > most ? timing[c].rows : most;
    if (train->made == 0 || (padded && train->made != train->progress.updates))
        return; /* steps before a resume are not in these rows */
    sl_buf_printf(out, "<h2>Padding</h2>\n<p>%lld real steps were trained on; ", (long long)train->progress.tokens);
    if (padded)
        sl_buf_printf(out, "<code>pad_to</code> made %lld rows of them: %lld are padding.</p>\n", (long long)most,
                      (long long)(most - train->progress.tokens));
    else
        sl_buf_append_text(out, "batches are packed, and no row of what the layers computed is padding.</p>\n");
    sl_buf_append_text(out, "<table><tr><th>layer</th><th>rows</th></tr>\n");
    for (int32_t c = 0; c < count; c++) {
        sl_buf_append_text(out, "<tr><td>");
        sl_html_append_text(out, session->train.plan->calls[c].node->name);
        sl_buf_printf(out, "</td><td>%lld</td></tr>\n", (long long)timing[c].rows);
    }
    sl_buf_append_text(out, "</table>\n");
}

void sl_report_write(const struct sl_session *session, const struct sl_run_result *result)
{
    struct sl_buf out = {0}, table = {0};
    json_t *rows = read_rows(session->folder);
    sl_html_begin_page(&out, style, "%s", session->model->name);
    sl_buf_append_text(&out, "<h1>");
    sl_html_append_text(&out, session->model->name);
    sl_buf_append_text(&out, "</h1>\n<p>");
    sl_html_append_text(&out, session->folder);
    sl_buf_printf(&out, ": %lld updates, ", (long long)result->train.progress.updates);
    write_number(&out, "%.4g epochs, ", result->train.progress.epochs);
    write_number(&out, "%.3g seconds, ended by ", result->train.progress.seconds);
    sl_buf_printf(&out, "%s</p>\n", sl_train_end_get_name(result->train.end));
    write_metrics(&out, result);
    write_charts(&out, rows);
    write_time(&out, result);
    write_rows(&out, session, result);
    sl_session_write_plan_table(session, session->train.plan, false, &table);
    sl_buf_append_text(&out, "<h2>Plan</h2>\n<pre>");
    sl_html_append_text(&out, sl_buf_text(&table));
    sl_buf_append_text(&out, "</pre>\n");
    sl_html_end_page(&out);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (out.failed || table.failed ||
        sl_run_folder_write(session->folder, "report.html", out.data, out.length_bytes, &err) != SEQLSTM_OK)
        sl_log_printf(session->options.log, SL_LOG_WARN, "no report.html: %s",
                      err.message[0] ? err.message : "no memory");
    json_decref(rows);
    sl_buf_deinit(&table);
    sl_buf_deinit(&out);
}
