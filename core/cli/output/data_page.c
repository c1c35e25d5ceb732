/* SPDX-License-Identifier: Apache-2.0 */
/* One HTML file that needs no network: a histogram of lengths, lines at the bucket edges, the table of strategies. */
#include "cli/output/data_page.h"

#include "base/value/html.h"
#include "base/value/text.h"

enum {
    LEFT = 64,
    TOP = 24,
    WIDTH = 760,
    HEIGHT = 260,
    BARS_MOST = 160,
    TICKS = 5,
    CLASSES_MOST = 30,
    COLUMNS_MOST = 200
};

static const char style[] =
    ":root{--bar:#2a6fc9;--edge:#d9662b}@media(prefers-color-scheme:dark){:root{--bar:#6aa5f0;--edge:#f0935e}}\n"
    "td,th{padding:.15rem .9rem .15rem 0;white-space:nowrap;vertical-align:baseline}tr.chosen td{font-weight:600}\n"
    "@media(max-width:640px){.lengths text{font-size:22px}}.bar{fill:var(--bar)}.edge{stroke:var(--edge)}\n"
    "td.words,th.words{text-align:left;white-space:normal;min-width:12rem}\n"
    "td.share{width:min(24rem,40vw);text-align:left}td.share i{display:block;height:.8rem;background:var(--bar)}\n";

/* The strategy whose bucket edges are drawn, or NULL. */
static const struct sl_batching_cost *find_drawn(const struct sl_data_stats *stats)
{
    int count;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count), *drawn = NULL;
    for (int c = 0; c < count; c++)
        if (costs[c].edge_count > 0 && (drawn == NULL || (costs[c].chosen && !drawn->chosen)))
            drawn = &costs[c];
    return drawn;
}

/* 1, 2 or 5 times a power of ten, such that about TICKS ticks reach `most`. */
static int64_t round_tick(int64_t most)
{
    int64_t unit = 1;
    while (unit * 10 * TICKS <= most)
        unit *= 10;
    for (int64_t factor = 1; factor < 10; factor += factor == 2 ? 3 : factor)
        if (unit * factor * TICKS >= most)
            return unit * factor;
    return unit * 10;
}

static double place_of(int64_t length, int64_t high)
{
    return LEFT + WIDTH * (double)length / (double)(high + 1);
}

static void write_ticks(struct sl_buf *out, int64_t high, int64_t most)
{
    int64_t tick = round_tick(most);
    for (int64_t at = 0; at <= most; at += tick) {
        double y = TOP + HEIGHT * (1 - (double)at / (double)most);
        sl_html_append_number(out, "<line class=\"grid\" x1=\"64\" x2=\"824\" y1=\"%.1f\" ", y);
        sl_html_append_number(out, "y2=\"%.1f\"/>", y);
        sl_html_append_number(out, "<text text-anchor=\"end\" x=\"58\" y=\"%.1f\">", y + 4);
        sl_buf_printf(out, "%lld</text>\n", (long long)at);
    }
    tick = round_tick(high);
    for (int64_t at = 0; at <= high; at += tick) {
        double middle = place_of(at, high) + 0.5 * WIDTH / (double)(high + 1);
        sl_html_append_number(out, "<text text-anchor=\"middle\" x=\"%.1f\" ", middle);
        sl_buf_printf(out, "y=\"%d\">%lld</text>\n", TOP + HEIGHT + 18, (long long)at);
    }
}

/* With the bucket edges of `drawn`, which may be NULL. */
static void write_histogram(struct sl_buf *out, const char *title, const struct sl_lengths *lengths,
                            const struct sl_batching_cost *drawn)
{
    int64_t high = sl_lengths_get_longest(lengths), most = 1;
    int64_t width = high / BARS_MOST + 1;
    for (int64_t at = 0; at <= high; at += width) {
        int64_t held = sl_lengths_count(lengths, at, at + width - 1);
        most = held > most ? held : most;
    }
    sl_buf_printf(out,
                  "<h2>%s by length</h2>\n<svg class=\"lengths\" viewBox=\"0 0 %d %d\" role=\"img\" "
                  "aria-label=\"histogram of the lengths\">\n",
                  title, LEFT + WIDTH + 24, TOP + HEIGHT + 44);
    write_ticks(out, high, most);
    for (int64_t at = 0; at <= high; at += width) {
        int64_t held = sl_lengths_count(lengths, at, at + width - 1);
        double tall = HEIGHT * (double)held / (double)most, x = place_of(at, high);
        if (held == 0)
            continue;
        sl_html_append_number(out, "<rect class=\"bar\" x=\"%.2f\" ", x);
        sl_html_append_number(out, "width=\"%.2f\" ", 0.86 * WIDTH * (double)width / (double)(high + 1));
        sl_html_append_number(out, "y=\"%.2f\" ", TOP + HEIGHT - tall);
        sl_html_append_number(out, "height=\"%.2f\">", tall);
        sl_buf_printf(out, "<title>%lld", (long long)at);
        if (width > 1)
            sl_buf_printf(out, " to %lld", (long long)(at + width - 1));
        sl_buf_printf(out, " steps: %lld</title></rect>\n", (long long)held);
    }
    for (int64_t e = 0; drawn && e < drawn->edge_count; e++) {
        double x = place_of(drawn->edges[e] + 1, high) - 0.07 * WIDTH / (double)(high + 1);
        sl_html_append_number(out, "<line class=\"edge\" x1=\"%.2f\" ", x);
        sl_html_append_number(out, "x2=\"%.2f\" ", x);
        sl_buf_printf(out, "y1=\"%d\" y2=\"%d\"><title>a bucket ends at %lld</title></line>\n", TOP, TOP + HEIGHT,
                      (long long)drawn->edges[e]);
    }
    sl_buf_printf(out, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\">steps</text>\n</svg>\n", LEFT + WIDTH / 2,
                  TOP + HEIGHT + 42);
    if (drawn)
        sl_buf_printf(out, "<p>Lines: the edges of the %lld bucket%s of <b>%s</b>.</p>\n", (long long)drawn->edge_count,
                      drawn->edge_count == 1 ? "" : "s", drawn->name);
}

static void write_strategies(struct sl_buf *out, const struct sl_data_stats *stats, bool measured)
{
    int count;
    const struct sl_batching_cost *costs = sl_data_stats_get_costs(stats, &count);
    bool pairs = sl_data_stats_find_source_lengths(stats) != NULL;
    sl_buf_printf(out,
                  "<h2>One epoch, by strategy</h2>\n<div class=\"scroll\"><table><tr><th>batching</th><th>rows</th>"
                  "<th>steps</th><th>batches</th><th>shapes</th><th>above the bound</th>%s%s<th>rows lost</th>"
                  "<th class=\"words\">description</th></tr>\n",
                  pairs ? "<th>source rows</th><th>source steps</th>" : "", measured ? "<th>seconds</th>" : "");
    for (int c = 0; c < count; c++) {
        sl_buf_printf(out, "<tr%s><td>%s</td><td>%lld</td><td>%lld</td><td>%lld</td><td>%lld</td>",
                      costs[c].chosen ? " class=\"chosen\"" : "", costs[c].name, (long long)costs[c].rows_computed,
                      (long long)costs[c].steps, (long long)costs[c].batches, (long long)costs[c].shapes);
        sl_html_append_number(out, "<td>%.1f %%</td>", 100 * costs[c].above_bound);
        if (pairs)
            sl_buf_printf(out, "<td>%lld</td><td>%lld</td>", (long long)costs[c].source_rows,
                          (long long)costs[c].source_steps);
        if (measured)
            sl_html_append_number(out, "<td>%.1f</td>", costs[c].seconds);
        sl_buf_printf(out, "<td>%lld</td><td class=\"words\">%s</td></tr>\n", (long long)costs[c].rows_lost,
                      costs[c].description);
    }
    sl_buf_append_text(out, "</table></div>\n<p>Rows are what kernels compute; steps are what must run one after "
                            "the other. ");
    sl_buf_append_text(out, measured ? "The bound is the time that the same number of rows takes in the widest steps; "
                                       "seconds are predicted from the measured cost of a step.</p>\n"
                            : pairs  ? "Both sides are counted. The bound is the number of steps if each side is "
                                       "sorted by length on its own.</p>\n"
                                     : "The bound is the number of steps if all data are sorted by length.</p>\n");
}

static void write_points(struct sl_buf *out, const char *title, const struct sl_step_cost_point *points, int32_t count)
{
    sl_buf_printf(out,
                  "<h2>Cost of a step%s</h2>\n<table><tr><th>sequences in parallel</th><th>µs a step</th>"
                  "<th>µs a sequence</th></tr>\n",
                  title);
    for (int32_t p = 0; p < count; p++) {
        double us = points[p].step_ns * 1e-3;
        sl_buf_printf(out, "<tr><td>%lld</td>", (long long)points[p].width);
        sl_html_append_number(out, "<td>%.1f</td>", us);
        sl_html_append_number(out, "<td>%.2f</td></tr>\n", us / (double)points[p].width);
    }
    sl_buf_append_text(out, "</table>\n");
}

static void write_cost(struct sl_buf *out, const struct sl_step_cost *cost)
{
    if (cost->source_count > 0)
        write_points(out, " of the source", cost->source_points, cost->source_count);
    write_points(out, cost->source_count > 0 ? " of the target" : "", cost->points, cost->count);
    sl_html_append_number(out, "<p>Each batch costs another %.0f µs.</p>\n", cost->batch_ns * 1e-3);
}

static void write_side(struct sl_buf *out, const char *name, const struct sl_lengths *lengths, int64_t vocabulary)
{
    sl_buf_printf(out, "%s%lld real step%s, %lld to %lld long, ", name, (long long)lengths->rows,
                  lengths->rows == 1 ? "" : "s", (long long)sl_lengths_get_shortest(lengths),
                  (long long)sl_lengths_get_longest(lengths));
    sl_html_append_number(out, "mean %.1f", sl_lengths_get_mean(lengths));
    if (vocabulary > 0)
        sl_buf_printf(out, ", vocabulary %lld", (long long)vocabulary);
}

/* ---- classes and columns ---------------------------------------------------------------------------------------- */

static void write_classes(struct sl_buf *out, const struct cli_data_content *content)
{
    int64_t most = 1, all = 0;
    if (!content->counts)
        return;
    for (int64_t c = 0; c < content->classes; c++) {
        most = content->counts[c] > most ? content->counts[c] : most;
        all += content->counts[c];
    }
    sl_buf_append_text(out, "<h2>Classes</h2>\n<div class=\"scroll\"><table><tr><th>class</th><th>targets</th>"
                            "<th>share</th><th></th></tr>\n");
    for (int64_t c = 0; c < content->classes && c < CLASSES_MOST; c++) {
        const double count = (double)content->counts[c];
        sl_buf_append_text(out, "<tr><td>");
        sl_html_append_text(out, sl_vocabulary_get_text(content->names, (int32_t)c, NULL));
        sl_buf_printf(out, "</td><td>%lld</td>", (long long)content->counts[c]);
        sl_html_append_number(out, "<td>%.1f %%</td>", all > 0 ? 100 * count / (double)all : 0);
        sl_html_append_number(out, "<td class=\"share\"><i style=\"width:%.1f%%\"></i></td></tr>\n",
                              100 * count / (double)most);
    }
    sl_buf_append_text(out, "</table></div>\n");
    if (content->classes > CLASSES_MOST)
        sl_buf_printf(out, "<p>and %lld more class%s</p>\n", (long long)content->classes - CLASSES_MOST,
                      content->classes == CLASSES_MOST + 1 ? "" : "es");
}

static void write_column(struct sl_buf *out, const struct sl_column *column)
{
    struct sl_buf values = {0};
    sl_column_print_values(column, &values);
    sl_buf_append_text(out, "<tr><td>");
    sl_html_append_text(out, column->name);
    sl_buf_printf(out, "</td><td class=\"words\">%s</td><td>%lld</td><td class=\"words\">", column->use,
                  (long long)column->missing);
    sl_html_append_text(out, sl_buf_text(&values));
    sl_buf_append_text(out, "</td></tr>\n");
    out->failed = out->failed || values.failed;
    sl_buf_deinit(&values);
}

static void write_columns(struct sl_buf *out, const struct sl_columns *columns)
{
    if (columns->count == 0)
        return;
    sl_buf_printf(out,
                  "<h2>Columns of %lld row%s</h2>\n<div class=\"scroll\"><table><tr><th>column</th>"
                  "<th class=\"words\">use</th><th>missing</th><th class=\"words\">values</th></tr>\n",
                  (long long)columns->rows, columns->rows == 1 ? "" : "s");
    for (int32_t c = 0; c < columns->count && c < COLUMNS_MOST; c++)
        write_column(out, &columns->items[c]);
    sl_buf_append_text(out, "</table></div>\n");
    if (columns->count > COLUMNS_MOST)
        sl_buf_printf(out, "<p>and %d more column%s</p>\n", columns->count - COLUMNS_MOST,
                      columns->count == COLUMNS_MOST + 1 ? "" : "s");
}

void cli_write_data_page(struct sl_buf *out, const char *model, const struct sl_data_stats *stats,
                         const struct cli_data_content *content, const struct sl_step_cost *cost)
{
    sl_html_begin_page(out, style, "%s", model);
    sl_buf_append_text(out, "<h1>");
    sl_html_append_text(out, model);
    const struct sl_lengths *target = sl_data_stats_get_lengths(stats);
    const struct sl_lengths *source = sl_data_stats_find_source_lengths(stats);
    sl_buf_printf(out, "</h1>\n<p>%lld sequence%s", (long long)target->records, target->records == 1 ? "" : "s");
    if (source)
        write_side(out, "; source: ", source, sl_data_stats_get_source_vocabulary(stats));
    write_side(out, source ? "; target: " : ", ", target, sl_data_stats_get_vocabulary(stats));
    int64_t parts, split = sl_data_stats_get_split(stats, &parts);
    if (split > 0)
        sl_buf_printf(out, ". %lld longer sequence%s split into %lld parts, which count as sequences", (long long)split,
                      split == 1 ? " was" : "s were", (long long)parts);
    sl_buf_append_text(out, "</p>\n");
    if (source)
        write_histogram(out, "Sources", source, NULL);
    write_histogram(out, source ? "Targets" : "Sequences", target, find_drawn(stats));
    write_classes(out, content);
    write_columns(out, &content->columns);
    write_strategies(out, stats, cost != NULL);
    if (cost && cost->count > 0)
        write_cost(out, cost);
    sl_html_end_page(out);
}
