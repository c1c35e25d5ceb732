/* SPDX-License-Identifier: Apache-2.0 */
/* report.html: a run in one file that needs no network: a table of the metrics, a curve of each metric over the updates
 * (chart.h, from metrics.jsonl), the time that each part took, the rows that each layer computed, and the plan. */
#include "session/report/report.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/value/chart.h"
#include "base/value/html.h"
#include "runs/metric_rows.h"
#include "session/record/session_record.h"
#include "session/report/curves.h"
#include "session/report/data_section.h"
#include "session/report/examples_page.h"
#include "timeline/print.h"
#include "session/run_folder/plan_json.h"
#include "session/run_folder/run_folder.h"
#include "session/run_folder/summary.h"

const char sl_report_style[] =
    ":root{--train:#2a6fc9;--valid:#d9662b}"
    "@media(prefers-color-scheme:dark){:root{--train:#6aa5f0;--valid:#f0935e}}\n"
    "body{max-width:1000px}pre{overflow-x:auto;font-size:13px;line-height:1.45}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));column-gap:2rem}\n"
    ".train{stroke:var(--train)}.valid{stroke:var(--valid)}circle.train,rect.train{fill:var(--train)}"
    "circle.valid,rect.valid{fill:var(--valid)}summary{color:var(--dim);cursor:pointer}\n"
    "td{white-space:nowrap}i{display:inline-block;height:.8em}i.train{background:var(--train)}i.valid{background:var(--"
    "valid)}"
    "i.wait{background:var(--ink)}i.rest{background:var(--dim)}td i{width:.8em;margin-right:.5em}\n"
    ".bar{display:flex;max-width:640px;margin:.2rem 0 .8rem}.bar i{height:1.4rem}\n";

/* ---- tables --------------------------------------------------------------------------------------- */

static void write_metrics_row(struct sl_buf *out, const char *split, const struct sl_metric_values *columns,
                              const struct sl_metric_values *values)
{
    sl_buf_printf(out, "<tr><td>%s</td>", split);
    for (int32_t c = 0; c < columns->count; c++) {
        sl_buf_append_text(out, "<td>");
        for (int32_t m = 0; m < values->count; m++)
            if (strcmp(values->items[m].name, columns->items[c].name) == 0)
                sl_html_append_number(out, "%.6g", values->items[m].value);
        sl_buf_append_text(out, "</td>");
    }
    sl_buf_append_text(out, "</tr>\n");
}

static void write_metrics(struct sl_buf *out, const struct sl_run_result *result)
{
    const struct sl_metric_values *columns = &result->train.train;
    if (result->train.has_valid && result->train.valid.count > columns->count)
        columns = &result->train.valid;
    sl_buf_append_text(out, "<h2>Metrics</h2>\n<div class=\"scroll\"><table><tr><th></th>");
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
    sl_buf_append_text(out, "</table></div>\n");
}

/* A bar that shows how the time of this call was spent, and a line for each part of it. */
static void write_time(struct sl_buf *out, const struct sl_run_result *result)
{
    const struct sl_train_result *train = &result->train;
    double wait = fmin(train->wait_seconds, train->spent_seconds);
    double rest = fmax(result->seconds - train->spent_seconds - train->validation_seconds, 0);
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
    sl_buf_append_text(out, "<h2>Time</h2>\n<div class=\"bar\" role=\"img\" aria-label=\"where the time went\">");
    for (int p = 0; p < PARTS; p++) {
        sl_buf_printf(out, "<i class=\"%s\" ", parts[p].color);
        sl_html_append_number(out, "style=\"width:%.2f%%\"></i>", 100 * parts[p].seconds / total);
    }
    sl_buf_append_text(out, "</div>\n<table>\n");
    for (int p = 0; p < PARTS; p++) {
        sl_buf_printf(out, "<tr><td><i class=\"%s\"></i>%s</td>", parts[p].color, parts[p].what);
        sl_html_append_number(out, parts[p].seconds < 10 ? "<td>%.3f s</td>" : "<td>%.1f s</td>", parts[p].seconds);
        sl_html_append_number(out, "<td>%.1f %%</td></tr>\n", 100 * parts[p].seconds / total);
    }
    sl_buf_append_text(out, "</table>\n");
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
    sl_buf_printf(out, "<h2>Padding</h2>\n<p>Training processed %lld real step%s. ", (long long)train->progress.tokens,
                  train->progress.tokens == 1 ? "" : "s");
    if (padded)
        sl_buf_printf(out, "<code>pad_to</code> made %lld rows of them, of which %lld are padding.</p>\n",
                      (long long)most, (long long)(most - train->progress.tokens));
    else
        sl_buf_append_text(out, "Batches are packed, so the layers computed no padding.</p>\n");
    sl_buf_append_text(out, "<table><tr><th>layer</th><th>rows</th></tr>\n");
    for (int32_t c = 0; c < count; c++) {
        sl_buf_append_text(out, "<tr><td>");
        sl_html_append_text(out, session->train.plan->calls[c].node->name);
        sl_buf_printf(out, "</td><td>%lld</td></tr>\n", (long long)timing[c].rows);
    }
    sl_buf_append_text(out, "</table>\n");
}

static void write_config(struct sl_buf *out, const struct sl_session *session)
{
    struct sl_buf config = {0};
    const seqlstm_status status = sl_model_write_config(session->model, SL_CONFIG_MINIMAL, &config, NULL);
    out->failed = out->failed || config.failed || status == SEQLSTM_NO_MEMORY;
    if (status == SEQLSTM_OK) {
        sl_buf_append_text(out,
                           "<h2>Model file</h2>\n<p>What was given; <code>config.yaml</code> has the defaults, too.</p>"
                           "\n<details><summary>show</summary><pre>");
        sl_html_append_text(out, sl_buf_text(&config));
        sl_buf_append_text(out, "</pre></details>\n");
    }
    sl_buf_deinit(&config);
}

void sl_report_write(const struct sl_session *session, const struct sl_run_result *result)
{
    const struct sl_progress *progress = &result->train.progress;
    struct sl_buf out = {0}, table = {0};
    json_t *rows = sl_metric_rows_read(session->folder);
    struct sl_buf styles = {0};
    sl_buf_printf(&styles, "%s%s%s%s%s", sl_chart_style, sl_report_style, sl_examples_style, sl_data_section_style,
                  session->timeline ? sl_timeline_style : "");
    sl_html_begin_page(&out, sl_buf_text(&styles), "%s", session->model->name);
    out.failed = out.failed || styles.failed || rows == NULL;
    sl_buf_deinit(&styles);
    sl_buf_append_text(&out, "<h1>");
    sl_html_append_text(&out, session->model->name);
    sl_buf_append_text(&out, "</h1>\n<p>");
    sl_html_append_text(&out, session->folder);
    sl_buf_printf(&out, ": %lld update%s, ", (long long)progress->updates, progress->updates == 1 ? "" : "s");
    sl_html_append_number(&out, progress->epochs == 1 ? "%.4g epoch, " : "%.4g epochs, ", progress->epochs);
    sl_html_append_number(&out, "%.3g seconds, ended by ", progress->seconds);
    sl_buf_printf(&out, "%s</p>\n", sl_train_end_get_name(result->train.end));
    write_metrics(&out, result);
    sl_report_write_curves(&out, rows, result->train.restored ? result->train.best_update : 0);
    if (result->examples)
        sl_examples_write(result->examples, &out);
    write_time(&out, result);
    if (session->timeline)
        sl_timeline_print_section(session->timeline, NULL, &out);
    sl_data_section_write(session, &out);
    write_rows(&out, session, result);
    sl_session_write_plan_table(session, session->train.plan, false, &table);
    sl_buf_append_text(&out, "<h2>Plan</h2>\n<pre>");
    sl_html_append_text(&out, sl_buf_text(&table));
    sl_buf_append_text(&out, "</pre>\n");
    write_config(&out, session);
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
