/* SPDX-License-Identifier: Apache-2.0 */
/* A line chart over the updates of a run, as inline SVG for a page (html.h). Its text is readable down to a width of
 * 340 pixels.
 *
 * Axes end at round numbers, 1, 2 or 5 times a power of ten, which are never farther out than needed. So a share stays
 * within 0 and 1. If the largest value is more than 20 times the smallest, which is positive, the axis is logarithmic.
 */
#ifndef SL_BASE_VALUE_CHART_H
#define SL_BASE_VALUE_CHART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/value/buf.h"

struct sl_chart_line {
    struct sl_chart_point {
        double x, y;
    } * points;
    size_t count;
};

enum { SL_CHART_LINES = 12 };

/* Lines without points are left out. */
struct sl_chart {
    const char *title;
    const char *names[SL_CHART_LINES];   /* of the lines, as text */
    const char *classes[SL_CHART_LINES]; /* in which they are drawn */
    bool has_outer_legend;               /* the page says which line is which, so that the chart does not */
    const char *mark;                    /* a vertical line at marked_x, with this word; NULL: none */
    double marked_x;                     /* NaN: none */
    double epoch_updates;                /* updates in an epoch: a second axis counts epochs; 0: none */
    struct sl_chart_line lines[SL_CHART_LINES];
};

/* Rules for a page with charts. The page sets the colours of the lines' classes as `stroke`. */
extern const char sl_chart_style[];

/* Appends a point with finite numbers. False: no memory. */
bool sl_chart_line_add(struct sl_chart_line *line, double x, double y);

/* Writes the chart, unless it has fewer than two points. */
void sl_chart_write(const struct sl_chart *chart, struct sl_buf *out);
void sl_chart_deinit(struct sl_chart *chart);

/* The marks of an axis from low to high: *out_marks is an array of at most SL_CHART_MARKS numbers in ascending order,
 * of which the first is at most low and the last at least high. Returns their count. */
enum { SL_CHART_MARKS = 12 };
int sl_chart_find_marks(double low, double high, bool logarithmic, double out_marks[SL_CHART_MARKS]);

#endif
