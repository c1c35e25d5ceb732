/* SPDX-License-Identifier: Apache-2.0 */
/* See page.h. */
#include "runs/page.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/value/html.h"
#include "runs/metric_rows.h"

/* The colours of the lines: hues that differ in lightness, too, by the Okabe-Ito palette and darker or lighter ones. */
static const char style[] =
    ":root{--r0:#0072b2;--r1:#d55e00;--r2:#00805e;--r3:#b5438a;--r4:#8a6d00;--r5:#2f8fc9;--r6:#7a3e00;--r7:#5b4bb5;"
    "--r8:#707070;--r9:#a61e1e;--r10:#3f7f1f;--r11:#00777f}\n"
    "@media(prefers-color-scheme:dark){:root{--r0:#56b4e9;--r1:#f0935e;--r2:#2fc39a;--r3:#e08fc0;--r4:#e6c84a;"
    "--r5:#8fd0f5;--r6:#c98a4b;--r7:#a79bf0;--r8:#b0b0b0;--r9:#f07a7a;--r10:#93cf6b;--r11:#5cc8cf}}\n"
    "body{max-width:1100px}td,th{white-space:nowrap}td i,th "
    "i{display:inline-block;width:.9em;height:.9em;margin-right:.5em}"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));column-gap:2rem}\n"
    "td.run{text-align:left}td.text{text-align:left;max-width:22em;overflow-wrap:break-word;white-space:normal}\n";

_Static_assert((int)SL_COMPARED_MOST <= (int)SL_CHART_LINES, "a line for each run");
static const char *const classes[SL_CHART_LINES] = {"r0", "r1", "r2", "r3", "r4",  "r5",
                                                    "r6", "r7", "r8", "r9", "r10", "r11"};

static void write_style(struct sl_buf *out)
{
    sl_buf_printf(out, "%s%s", sl_chart_style, style);
    for (int k = 0; k < SL_CHART_LINES; k++)
        sl_buf_printf(out, ".r%d{stroke:var(--r%d)}circle.r%d{fill:var(--r%d)}i.r%d{background:var(--r%d)}\n", k, k, k,
                      k, k, k);
}

static void write_cell(struct sl_buf *out, const struct sl_run_value *value)
{
    sl_buf_append_text(out, value->kind == SL_RUN_VALUE_TEXT ? "<td class=\"text\">" : "<td>");
    sl_html_append_text(out, value->text);
    sl_buf_append_text(out, "</td>");
}

/* One line per run, with its colour and its metrics. */
static void write_runs(struct sl_buf *out, const struct sl_run_facts *const *runs, const struct sl_run_comparison *c)
{
    sl_buf_append_text(out, "<div class=\"scroll\"><table><tr><th>run</th><th>state</th><th>updates</th>");
    for (size_t m = 0; m < c->metric_count; m++) {
        sl_buf_append_text(out, "<th>");
        sl_html_append_text(out, c->metrics[m].key);
        sl_buf_append_text(out, "</th>");
    }
    for (size_t r = 0; r < c->run_count; r++) {
        sl_buf_printf(out, "</tr>\n<tr><td class=\"run\"><i class=\"%s\"></i>", classes[r]);
        sl_html_append_text(out, runs[r]->name);
        sl_buf_printf(out, "</td><td>%s</td><td>", sl_run_state_get_name(runs[r]->state));
        if (runs[r]->updates >= 0)
            sl_buf_printf(out, "%lld", (long long)runs[r]->updates);
        sl_buf_append_text(out, "</td>");
        for (size_t m = 0; m < c->metric_count; m++)
            write_cell(out, &c->metrics[m].values[r]);
    }
    sl_buf_append_text(out, "</tr>\n</table></div>\n");
}

/* The points of one metric of one run: means of epochs and validations, not the reports between. */
static bool read_line(json_t *rows, const char *key, struct sl_chart_line *line)
{
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *split = sl_metric_row_get_text(row, "split"), *span = sl_metric_row_get_text(row, "span");
        const size_t bytes = strlen(split);
        if (bytes == 0 || strcmp(span, "report") == 0 || strncmp(key, split, bytes) != 0 || key[bytes] != '.')
            continue;
        const double x = sl_metric_row_find_number(row, "update"), y = sl_metric_row_find_metric(row, key + bytes + 1);
        if (isfinite(x) && isfinite(y) && !sl_chart_line_add(line, x, y))
            return false;
    }
    return true;
}

static void write_charts(struct sl_buf *out, const struct sl_run_facts *const *runs, const struct sl_run_comparison *c)
{
    json_t *rows[SL_CHART_LINES];
    for (size_t r = 0; r < c->run_count; r++) {
        rows[r] = sl_metric_rows_read(runs[r]->folder);
        out->failed = out->failed || rows[r] == NULL;
    }
    sl_buf_append_text(out, "<div class=\"charts\">\n");
    for (size_t m = 0; m < c->metric_count; m++) {
        struct sl_chart chart = {.title = c->metrics[m].key, .has_outer_legend = true};
        for (size_t r = 0; r < c->run_count; r++) {
            chart.names[r] = runs[r]->name;
            chart.classes[r] = classes[r];
            out->failed = out->failed || !read_line(rows[r], chart.title, &chart.lines[r]);
        }
        sl_chart_write(&chart, out);
        sl_chart_deinit(&chart);
    }
    sl_buf_append_text(out, "</div>\n");
    for (size_t r = 0; r < c->run_count; r++)
        json_decref(rows[r]);
}

static void write_differences(struct sl_buf *out, const struct sl_run_facts *const *runs,
                              const struct sl_run_comparison *c)
{
    if (c->config_count == 0 || c->run_count < 2)
        return;
    sl_buf_append_text(out, "<h2>What differs</h2>\n<div class=\"scroll\"><table><tr><th>key</th>");
    for (size_t r = 0; r < c->run_count; r++) {
        sl_buf_printf(out, "<th><i class=\"%s\"></i>", classes[r]);
        sl_html_append_text(out, runs[r]->name);
        sl_buf_append_text(out, "</th>");
    }
    for (size_t k = 0; k < c->config_count; k++) {
        sl_buf_append_text(out, "</tr>\n<tr><td class=\"text\"><code>");
        sl_html_append_text(out, c->config[k].key);
        sl_buf_append_text(out, "</code></td>");
        for (size_t r = 0; r < c->run_count; r++)
            write_cell(out, &c->config[k].values[r]);
    }
    sl_buf_append_text(out, "</tr>\n</table></div>\n");
}

void sl_runs_page_write(struct sl_buf *out, const struct sl_run_facts *const *runs, const struct sl_run_comparison *c)
{
    struct sl_buf styles = {0};
    write_style(&styles);
    sl_html_begin_page(out, sl_buf_text(&styles), "%zu run%s", c->run_count, c->run_count == 1 ? "" : "s");
    out->failed = out->failed || styles.failed;
    sl_buf_deinit(&styles);
    sl_buf_printf(out, "<h1>%zu run%s</h1>\n", c->run_count, c->run_count == 1 ? "" : "s");
    write_runs(out, runs, c);
    write_charts(out, runs, c);
    write_differences(out, runs, c);
    sl_html_end_page(out);
}
