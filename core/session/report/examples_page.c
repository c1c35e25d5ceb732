/* SPDX-License-Identifier: Apache-2.0 */
/* See examples_page.h. */
#include "session/report/examples_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/value/chart.h"
#include "base/value/html.h"

enum {
    MATRIX_CLASSES = 20, /* more have a list of confused pairs */
    PAIRS_SHOWN = 15,
    LEFT = 70,
    TOP = 14,
    SIDE = 280,     /* of the plot */
    SHADE_MOST = 50 /* per cent of a colour behind text; check_contrast.py reads it */
};

const char sl_examples_style[] =
    ".matrix td{text-align:center;min-width:2.4em;padding:.2rem .5rem}.matrix td:first-child{text-align:left}"
    ".matrix td.right{outline:1px solid var(--dim);outline-offset:-1px}\n"
    ".scatter{max-width:400px}.scatter circle{fill:var(--train);fill-opacity:.75}.scatter text{font-size:13px}"
    ".scatter .ideal{stroke:var(--dim);stroke-dasharray:4 4}\n"
    "td.example{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:14em}\n";

static const char *get_name(const struct sl_examples *examples, int32_t k)
{
    return k < examples->classes ? sl_vocabulary_get_text(examples->names, k, NULL) : "(not in training)";
}

static void write_cell_text(struct sl_buf *out, const char *tag, const char *text)
{
    sl_buf_printf(out, "<%s>", tag);
    sl_html_append_text(out, text);
    sl_buf_printf(out, "</%.2s>", tag);
}

/* ---- classes ----------------------------------------------------------------------------------------------- */

static int64_t count_row(const struct sl_examples *examples, int32_t target)
{
    int64_t sum = 0;
    for (int32_t c = 0; c < examples->classes; c++)
        sum += examples->counts[target][c];
    return sum;
}

/* The shade of a cell is its share of the row. */
static void write_matrix(const struct sl_examples *examples, struct sl_buf *out)
{
    sl_buf_append_text(out, "<p>A row for each class, a column for each answer.</p>\n<div class=\"scroll\"><table "
                            "class=\"matrix\"><tr><th></th>");
    for (int32_t c = 0; c < examples->classes; c++)
        write_cell_text(out, "th", get_name(examples, c));
    sl_buf_append_text(out, "</tr>\n");
    for (int32_t t = 0; t <= examples->classes; t++) {
        const int64_t sum = count_row(examples, t);
        if (sum == 0 && t == examples->classes)
            continue;
        sl_buf_append_text(out, "<tr>");
        write_cell_text(out, "td", get_name(examples, t));
        for (int32_t c = 0; c < examples->classes; c++) {
            const int64_t count = examples->counts[t][c];
            sl_buf_printf(out, "<td%s style=\"background:color-mix(in srgb,%s ", t == c ? " class=\"right\"" : "",
                          t == c ? "var(--train)" : "var(--valid)");
            sl_html_append_number(out, "%.0f%%,transparent)\">",
                                  sum > 0 ? SHADE_MOST * (double)count / (double)sum : 0);
            sl_buf_printf(out, count > 0 ? "%lld</td>" : "</td>", (long long)count);
        }
        sl_buf_append_text(out, "</tr>\n");
    }
    sl_buf_append_text(out, "</table></div>\n");
}

struct pair {
    int64_t count;
    int32_t target, answer;
};

static int compare_pairs(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return a->target != b->target ? a->target - b->target : a->answer - b->answer;
}

static void write_pairs(const struct sl_examples *examples, struct sl_buf *out)
{
    const size_t most = (size_t)(examples->classes + 1) * (size_t)examples->classes;
    struct pair *pairs = malloc(most * sizeof *pairs);
    size_t count = 0;
    for (int32_t t = 0; pairs && t <= examples->classes; t++)
        for (int32_t c = 0; c < examples->classes; c++)
            if (t != c && examples->counts[t][c] > 0)
                pairs[count++] = (struct pair){examples->counts[t][c], t, c};
    if (pairs == NULL)
        out->failed = true;
    if (count > 0) {
        qsort(pairs, count, sizeof *pairs, compare_pairs);
        sl_buf_append_text(out, "<p>The classes that are confused most.</p>\n<div class=\"scroll\"><table><tr>"
                                "<th>class</th><th>answer</th><th>rows</th><th>of the class</th></tr>\n");
    }
    for (size_t k = 0; k < count && k < PAIRS_SHOWN; k++) {
        sl_buf_append_text(out, "<tr>");
        write_cell_text(out, "td", get_name(examples, pairs[k].target));
        write_cell_text(out, "td", get_name(examples, pairs[k].answer));
        sl_buf_printf(out, "<td>%lld</td>", (long long)pairs[k].count);
        sl_html_append_number(out, "<td>%.1f %%</td></tr>\n",
                              100 * (double)pairs[k].count / (double)count_row(examples, pairs[k].target));
    }
    sl_buf_append_text(out, count > 0 ? "</table></div>\n" : "<p>No class was confused with another.</p>\n");
    free(pairs);
}

/* ---- values ------------------------------------------------------------------------------------------------ */

struct plot {
    double marks[SL_CHART_MARKS], low, high;
    int count;
};

/* Both axes have one range, so that the line of right answers is the diagonal. */
static struct plot make_plot(const struct sl_examples *examples)
{
    struct plot plot = {.low = INFINITY, .high = -INFINITY};
    for (int32_t k = 0; k < examples->point_count; k++)
        for (int side = 0; side < 2; side++)
            if (isfinite(examples->points[k][side])) {
                plot.low = fmin(plot.low, examples->points[k][side]);
                plot.high = fmax(plot.high, examples->points[k][side]);
            }
    if (plot.low > plot.high)
        return (struct plot){.count = 0};
    plot.count = sl_chart_find_marks(plot.low, plot.high, false, plot.marks);
    plot.low = plot.marks[0];
    plot.high = plot.marks[plot.count - 1];
    return plot;
}

static double scale(const struct plot *plot, double value)
{
    return (value - plot->low) / (plot->high - plot->low) * SIDE;
}

static void write_axes(const struct plot *plot, struct sl_buf *out)
{
    for (int k = 0; k < plot->count; k++) {
        const double at = scale(plot, plot->marks[k]), y = TOP + SIDE - at;
        sl_buf_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\"", LEFT, LEFT + SIDE);
        sl_html_append_number(out, " y1=\"%.1f\"", y);
        sl_html_append_number(out, " y2=\"%.1f\"/>", y);
        sl_buf_printf(out, "<text x=\"%d\" dy=\"4\" text-anchor=\"end\"", LEFT - 7);
        sl_html_append_number(out, " y=\"%.1f\">", y);
        sl_html_append_number(out, "%.6g</text>", plot->marks[k]);
        if (k % 2 == 0) {
            sl_html_append_number(out, "<text text-anchor=\"middle\" x=\"%.1f\"", LEFT + at);
            sl_buf_printf(out, " y=\"%d\">", TOP + SIDE + 19);
            sl_html_append_number(out, "%.6g</text>\n", plot->marks[k]);
        }
    }
}

static void write_plot(const struct sl_examples *examples, struct sl_buf *out)
{
    const struct plot plot = make_plot(examples);
    if (plot.count < 2)
        return;
    sl_buf_printf(out,
                  "<p>Predicted (upwards) against actual values: %d of %lld. On the dashed line they are equal.</p>\n"
                  "<svg class=\"scatter\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"predicted against actual "
                  "values\">\n",
                  (int)examples->point_count, (long long)examples->values, LEFT + SIDE + 14, TOP + SIDE + 26);
    write_axes(&plot, out);
    sl_buf_printf(out, "<line class=\"ideal\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, TOP + SIDE,
                  LEFT + SIDE, TOP);
    for (int32_t k = 0; k < examples->point_count; k++) {
        const float *point = examples->points[k];
        if (!isfinite(point[0]) || !isfinite(point[1]))
            continue;
        sl_html_append_number(out, "<circle r=\"2.5\" cx=\"%.1f\"", LEFT + scale(&plot, point[0]));
        sl_html_append_number(out, " cy=\"%.1f\"/>\n", TOP + SIDE - scale(&plot, point[1]));
    }
    sl_buf_append_text(out, "</svg>\n");
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

static bool has_steps(const struct sl_examples *examples)
{
    for (int32_t k = 0; k < examples->worst_count; k++)
        if (examples->worst[k].step > 0)
            return true;
    return false;
}

static bool has_texts(const struct sl_examples *examples)
{
    for (int32_t k = 0; k < examples->worst_count; k++)
        if (examples->worst[k].text[0] != '\0')
            return true;
    return false;
}

static void write_worst(const struct sl_examples *examples, struct sl_buf *out)
{
    const bool classes = examples->kind == SL_EXAMPLES_CLASSES, steps = has_steps(examples),
               texts = has_texts(examples);
    if (examples->worst_count == 0)
        return;
    sl_buf_printf(
        out,
        "<p>The rows where it was most wrong.</p>\n<div class=\"scroll\"><table><tr><th>record</th>%s<th>%s</th>"
        "<th>%s</th><th>%s</th>%s</tr>\n",
        steps ? "<th>step</th>" : "", classes ? "class" : "actual", classes ? "answer" : "predicted",
        classes ? "probability" : "error", texts ? "<th>input</th>" : "");
    for (int32_t k = 0; k < examples->worst_count; k++) {
        const struct sl_example *e = &examples->worst[k];
        sl_buf_printf(out, "<tr><td>%lld</td>", (long long)e->record);
        if (steps)
            sl_buf_printf(out, "<td>%lld</td>", (long long)e->step);
        if (classes) {
            write_cell_text(out, "td", get_name(examples, e->target));
            write_cell_text(out, "td", get_name(examples, e->answer));
            sl_html_append_number(out, "<td>%.3f</td>", e->predicted);
        } else {
            sl_html_append_number(out, "<td>%.6g</td>", e->actual);
            sl_html_append_number(out, "<td>%.6g</td>", e->predicted);
            sl_html_append_number(out, "<td>%.4g</td>", e->error);
        }
        if (texts) {
            sl_buf_append_text(out, "<td class=\"example\">");
            sl_html_append_text(out, e->text);
            sl_buf_append_text(out, "</td>");
        }
        sl_buf_append_text(out, "</tr>\n");
    }
    sl_buf_append_text(out, "</table></div>\n");
}

void sl_examples_write(const struct sl_examples *examples, struct sl_buf *out)
{
    if (examples->rows == 0)
        return;
    sl_buf_printf(out, "<h2>Answers on the %s split</h2>\n", sl_split_get_name(examples->split));
    if (examples->kind == SL_EXAMPLES_VALUES)
        write_plot(examples, out);
    else if (examples->classes <= MATRIX_CLASSES)
        write_matrix(examples, out);
    else
        write_pairs(examples, out);
    write_worst(examples, out);
}
