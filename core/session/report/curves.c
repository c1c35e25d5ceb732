/* SPDX-License-Identifier: Apache-2.0 */
/* See curves.h. */
#include "session/report/curves.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/value/chart.h"
#include "runs/metric_rows.h"

enum { TRAIN, VALID, REPORTS_LEAST = 10 };

static bool has_text(json_t *row, const char *key, const char *text)
{
    return strcmp(sl_metric_row_get_text(row, key), text) == 0;
}

/* What all charts of a run share. */
struct curves {
    struct sl_buf *out;
    json_t *rows;
    const char *train_rows; /* the curves of training are made of reports if there are enough, else of epochs */
    double best;            /* update; NaN: none */
    double epoch_updates;   /* in an epoch; 0: unknown */
};

static double find_best(json_t *rows)
{
    size_t i;
    json_t *row;
    double least = INFINITY, best = NAN;
    json_array_foreach(rows, i, row)
    {
        const double loss = has_text(row, "split", "valid") ? sl_metric_row_find_metric(row, "loss") : NAN;
        if (loss < least) {
            least = loss;
            best = sl_metric_row_find_number(row, "update");
        }
    }
    return best;
}

static void find_scale(struct curves *curves)
{
    size_t i, reports = 0;
    json_t *row;
    json_array_foreach(curves->rows, i, row)
    {
        const double epoch = sl_metric_row_find_number(row, "epoch"), update = sl_metric_row_find_number(row, "update");
        reports += has_text(row, "span", "report");
        if (epoch > 0 && update > 0)
            curves->epoch_updates = update / epoch;
    }
    curves->train_rows = reports >= REPORTS_LEAST ? "report" : "epoch";
}

static void add_point(struct curves *curves, struct sl_chart_line *line, json_t *row, double y)
{
    if (isfinite(y) && !sl_chart_line_add(line, sl_metric_row_find_number(row, "update"), y))
        curves->out->failed = true;
}

static void write_chart(struct curves *curves, struct sl_chart *chart)
{
    chart->marked_x = curves->best;
    chart->mark = "best";
    chart->epoch_updates = curves->epoch_updates;
    if (!curves->out->failed)
        sl_chart_write(chart, curves->out);
    sl_chart_deinit(chart);
}

static void write_metric(struct curves *curves, const char *metric)
{
    size_t i;
    json_t *row;
    struct sl_chart chart = {.title = metric,
                             .names = {[TRAIN] = "train", [VALID] = "valid"},
                             .classes = {[TRAIN] = "train", [VALID] = "valid"}};
    json_array_foreach(curves->rows, i, row)
    {
        const bool valid = has_text(row, "split", "valid");
        if (valid || has_text(row, "span", curves->train_rows))
            add_point(curves, &chart.lines[valid ? VALID : TRAIN], row, sl_metric_row_find_metric(row, metric));
    }
    write_chart(curves, &chart);
}

/* Of the rows that the training split is drawn from. */
static void write_value(struct curves *curves, const char *key, const char *title)
{
    size_t i;
    json_t *row;
    struct sl_chart chart = {.title = title, .names = {"train"}, .classes = {"train"}, .has_outer_legend = true};
    json_array_foreach(curves->rows, i, row) if (has_text(row, "span", curves->train_rows))
        add_point(curves, &chart.lines[0], row, sl_metric_row_find_number(row, key));
    write_chart(curves, &chart);
}

void sl_report_write_curves(struct sl_buf *out, json_t *rows, int64_t best_update)
{
    struct curves curves = {.out = out, .rows = rows, .best = best_update > 0 ? (double)best_update : find_best(rows)};
    size_t i;
    json_t *row, *names = json_object(), *value;
    const char *name;
    json_array_foreach(rows, i, row) json_object_foreach(json_object_get(row, "metrics"), name, value) out->failed =
        json_object_set_new(names, name, json_true()) != 0 || out->failed;
    find_scale(&curves);
    sl_buf_append_text(out, "<div class=\"charts\">\n");
    json_object_foreach(names, name, value) write_metric(&curves, name);
    write_value(&curves, "learning_rate", "learning rate");
    write_value(&curves, "gradient_norm", "gradient norm");
    write_value(&curves, "teacher_forcing", "teacher forcing");
    sl_buf_append_text(out, "</div>\n");
    json_decref(names);
}
