/* SPDX-License-Identifier: Apache-2.0 */
/* A line chart of characters, for terminals. */
#ifndef SL_RUNS_TEXT_CHART_H
#define SL_RUNS_TEXT_CHART_H

#include <stdbool.h>

#include "base/value/buf.h"
#include "base/value/chart.h"

/* Appends the chart in lines of at most `columns` characters, `rows` of them for the curves and three more for title
 * and axis. Line k is drawn with the first letter of its name; `*` where two meet. With `color` each has its own. Its
 * axes are those of the chart in a page: round numbers, logarithmic if the values need it. Nothing if there are no
 * points, or if there is no room (fewer than 30 columns or 3 rows). */
void sl_text_chart_append(const struct sl_chart *chart, int columns, int rows, bool color, struct sl_buf *out);

#endif
