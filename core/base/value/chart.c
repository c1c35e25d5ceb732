/* SPDX-License-Identifier: Apache-2.0 */
/* See chart.h. */
#include "base/value/chart.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/value/html.h"

enum {
    LEFT = 58,
    TOP = 30,
    WIDTH = 348,
    HEIGHT = 170,
    FULL_WIDTH = LEFT + WIDTH + 14,
    FULL_HEIGHT = TOP + HEIGHT + 42,
    INTERVALS = 5,      /* between marks, at most */
    DECADES = 6,        /* between marks of a logarithmic axis, at most */
    POINTS_DRAWN = 500, /* of one line */
    NAME_WIDTH = 80,    /* of what an axis counts */
    DOTS_DRAWN = 100    /* each shows its number under the pointer */
};

const char sl_chart_style[] = "path.line{fill:none;stroke-width:2;stroke-linejoin:round}.chart text{font-size:14px}\n"
                              ".chart circle{stroke:var(--page);stroke-width:1}"
                              ".mark{stroke:var(--dim);stroke-dasharray:4 4}\n";

bool sl_chart_line_add(struct sl_chart_line *line, double x, double y)
{
    if ((line->count & (line->count - 1)) == 0) { /* full at every power of two */
        struct sl_chart_point *grown = realloc(line->points, (line->count ? 2 * line->count : 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        line->points = grown;
    }
    line->points[line->count++] = (struct sl_chart_point){x, y};
    return true;
}

void sl_chart_deinit(struct sl_chart *chart)
{
    for (int k = 0; k < SL_CHART_LINES; k++)
        free(chart->lines[k].points);
}

/* ---- marks -------------------------------------------------------------------------------------------------- */

/* The least of 1, 2 and 5 times a power of ten that is at least x > 0. */
static double round_up(double x)
{
    double power = pow(10, floor(log10(x)));
    while (power < x / 10)
        power *= 10;
    const double steps[] = {1, 2, 5, 10};
    for (int k = 0; k < 4; k++)
        if (steps[k] * power >= x * (1 - 1e-9))
            return steps[k] * power;
    return 10 * power;
}

static int find_linear_marks(double low, double high, double out_marks[SL_CHART_MARKS])
{
    if (!(high > low)) { /* one value: the axis shows how far from zero it is */
        low = fmin(low, 0);
        high = high == 0 ? 1 : fmax(high, 0);
    }
    const double step = round_up(fmax((high - low) / INTERVALS, fmax(fabs(low), fabs(high)) * 4 * DBL_EPSILON));
    const double first = floor(low / step + 1e-9);
    int count = 0;
    do
        out_marks[count] = (first + count) * step;
    while (out_marks[count++] < high - 1e-9 * step && count < SL_CHART_MARKS);
    return count;
}

static int find_logarithmic_marks(double low, double high, double out_marks[SL_CHART_MARKS])
{
    const double decades = log10(high) - log10(low), steps[] = {1, 2, 5};
    const int each = decades > 2 ? 3 : 1, stride = (int)ceil(decades / DECADES);
    int power = (int)floor(log10(low)), count = 0;
    for (int k = 0; count < SL_CHART_MARKS; k += each) {
        const double mark = steps[k % 3] * pow(10, power + k / 3 * (each == 3 ? stride : 1));
        if (mark <= low * (1 + 1e-9))
            count = 0;
        out_marks[count++] = mark;
        if (mark >= high * (1 - 1e-9))
            break;
    }
    return count;
}

int sl_chart_find_marks(double low, double high, bool logarithmic, double out_marks[SL_CHART_MARKS])
{
    return logarithmic ? find_logarithmic_marks(low, high, out_marks) : find_linear_marks(low, high, out_marks);
}

/* ---- drawing ------------------------------------------------------------------------------------------------ */

struct frame {
    double marks[SL_CHART_MARKS], low, high, last; /* of y; the largest x */
    int count;
    bool logarithmic;
};

static struct frame make_frame(const struct sl_chart *chart)
{
    struct frame f = {.low = INFINITY, .high = -INFINITY};
    for (int k = 0; k < SL_CHART_LINES; k++)
        for (size_t i = 0; i < chart->lines[k].count; i++) {
            f.low = fmin(f.low, chart->lines[k].points[i].y);
            f.high = fmax(f.high, chart->lines[k].points[i].y);
            f.last = fmax(f.last, chart->lines[k].points[i].x);
        }
    f.logarithmic = f.low > 0 && f.high > 20 * f.low;
    f.count = sl_chart_find_marks(f.low, f.high, f.logarithmic, f.marks);
    f.low = f.marks[0];
    f.high = f.marks[f.count - 1];
    return f;
}

static double get_x(const struct frame *f, double x)
{
    return LEFT + (f->last > 0 ? x / f->last : 0) * WIDTH;
}

static double get_y(const struct frame *f, double y)
{
    double share =
        f->logarithmic ? (log(y) - log(f->low)) / (log(f->high) - log(f->low)) : (y - f->low) / (f->high - f->low);
    return TOP + (1 - share) * HEIGHT;
}

/* Round numbers of `unit` x along the line y, and what they count at its end, in place of the last ones. */
static void write_x_axis(struct sl_buf *out, const struct frame *f, double unit, int y, const char *what)
{
    double marks[SL_CHART_MARKS];
    const int count = sl_chart_find_marks(0, f->last / unit, false, marks);
    for (int k = 0; k < count; k++) {
        const double x = get_x(f, marks[k] * unit);
        if (x > LEFT + WIDTH - NAME_WIDTH || marks[k] != floor(marks[k]))
            continue;
        sl_html_append_number(out, "<text text-anchor=\"middle\" x=\"%.1f\"", x);
        sl_buf_printf(out, " y=\"%d\">", y);
        sl_html_append_number(out, "%.0f</text>\n", marks[k]);
    }
    sl_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", LEFT + WIDTH, y, what);
}

static void write_axes(struct sl_buf *out, const struct frame *f)
{
    for (int k = 0; k < f->count; k++) {
        const double y = get_y(f, f->marks[k]);
        sl_buf_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\"", LEFT, LEFT + WIDTH);
        sl_html_append_number(out, " y1=\"%.1f\"", y);
        sl_html_append_number(out, " y2=\"%.1f\"/>", y);
        sl_buf_printf(out, "<text class=\"y\" x=\"%d\" dy=\"4\" text-anchor=\"end\"", LEFT - 7);
        sl_html_append_number(out, " y=\"%.1f\">", y);
        sl_html_append_number(out, "%.6g</text>\n", f->marks[k]);
    }
    write_x_axis(out, f, 1, TOP + HEIGHT + 19, "updates");
}

static void write_line(struct sl_buf *out, const struct frame *f, const struct sl_chart *chart, int k)
{
    const struct sl_chart_line *line = &chart->lines[k];
    const size_t step = line->count / POINTS_DRAWN + 1;
    sl_buf_printf(out, "<path class=\"line %s\" d=\"", chart->classes[k]);
    for (size_t i = 0; i < line->count; i++) {
        if (i % step != 0 && i + 1 != line->count)
            continue;
        sl_buf_append_char(out, i ? 'L' : 'M');
        sl_html_append_number(out, "%.1f ", get_x(f, line->points[i].x));
        sl_html_append_number(out, "%.1f", get_y(f, line->points[i].y));
    }
    sl_buf_append_text(out, "\"/>\n");
    for (size_t i = 0; i < line->count && line->count <= DOTS_DRAWN; i++) {
        sl_buf_printf(out, "<circle class=\"%s\" r=\"3\" cx=\"", chart->classes[k]);
        sl_html_append_number(out, "%.1f", get_x(f, line->points[i].x));
        sl_html_append_number(out, "\" cy=\"%.1f\"><title>", get_y(f, line->points[i].y));
        sl_html_append_text(out, chart->names[k]);
        sl_html_append_number(out, ", update %.0f: ", line->points[i].x);
        sl_html_append_number(out, "%.6g</title></circle>\n", line->points[i].y);
    }
}

/* The word is on the side of the line that has more room. */
static void write_mark(struct sl_buf *out, const struct frame *f, const struct sl_chart *chart)
{
    const double x = get_x(f, chart->marked_x);
    const bool left = x > LEFT + WIDTH / 2;
    sl_buf_printf(out, "<line class=\"mark\" y1=\"%d\" y2=\"%d\"", TOP, TOP + HEIGHT);
    sl_html_append_number(out, " x1=\"%.1f\"", x);
    sl_html_append_number(out, " x2=\"%.1f\"/>", x);
    sl_html_append_number(out, "<text x=\"%.1f\"", left ? x - 5 : x + 5);
    sl_buf_printf(out, " y=\"%d\" text-anchor=\"%s\">", TOP + 12, left ? "end" : "start");
    sl_html_append_text(out, chart->mark);
    sl_buf_append_text(out, "</text>\n");
}

static void write_legend(struct sl_buf *out, const struct sl_chart *chart, int k, int x)
{
    sl_buf_printf(out, "<rect class=\"%s\" x=\"%d\" y=\"9\" width=\"14\" height=\"3\"/>", chart->classes[k], x);
    sl_buf_printf(out, "<text x=\"%d\" y=\"15\">", x + 20);
    sl_html_append_text(out, chart->names[k]);
    sl_buf_append_text(out, "</text>\n");
}

void sl_chart_write(const struct sl_chart *chart, struct sl_buf *out)
{
    size_t points = 0;
    for (int k = 0; k < SL_CHART_LINES; k++)
        points += chart->lines[k].count;
    if (points < 2)
        return;
    const struct frame f = make_frame(chart);
    sl_buf_append_text(out, "<section class=\"chart\"><h2>");
    sl_html_append_text(out, chart->title);
    sl_buf_printf(out, "</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", FULL_WIDTH, FULL_HEIGHT);
    sl_html_append_text(out, chart->title);
    sl_buf_append_text(out, " over the updates\">\n");
    write_axes(out, &f);
    if (chart->epoch_updates > 0)
        write_x_axis(out, &f, chart->epoch_updates, TOP + HEIGHT + 37, "epochs");
    if (chart->mark && isfinite(chart->marked_x) && chart->marked_x <= f.last)
        write_mark(out, &f, chart);
    for (int k = 0, x = LEFT; k < SL_CHART_LINES; k++) {
        if (chart->lines[k].count == 0)
            continue;
        write_line(out, &f, chart, k);
        if (!chart->has_outer_legend)
            write_legend(out, chart, k, x);
        x += 78;
    }
    if (f.logarithmic)
        sl_buf_printf(out, "<text x=\"%d\" y=\"15\" text-anchor=\"end\">logarithmic</text>\n", LEFT + WIDTH);
    sl_buf_append_text(out, "</svg></section>\n");
}
