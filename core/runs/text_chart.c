/* SPDX-License-Identifier: Apache-2.0 */
/* See text_chart.h. */
#include "runs/text_chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL = 10, COLUMNS_LEAST = 30, COLUMNS_MOST = 400, ROWS_LEAST = 3, ROWS_MOST = 100, BOTH = '*' };

struct canvas {
    int width, height;
    double low, high, last;
    bool logarithmic;
    char *cells;          /* [height, width], of letters or blanks */
    unsigned char *lines; /* [height, width], 1 + the line that was drawn there */
};

static void find_range(const struct sl_chart *chart, struct canvas *canvas)
{
    double marks[SL_CHART_MARKS];
    canvas->low = INFINITY;
    canvas->high = -INFINITY;
    for (int k = 0; k < SL_CHART_LINES; k++)
        for (size_t i = 0; i < chart->lines[k].count; i++) {
            canvas->low = fmin(canvas->low, chart->lines[k].points[i].y);
            canvas->high = fmax(canvas->high, chart->lines[k].points[i].y);
            canvas->last = fmax(canvas->last, chart->lines[k].points[i].x);
        }
    if (canvas->low > canvas->high)
        return;
    canvas->logarithmic = canvas->low > 0 && canvas->high > 20 * canvas->low;
    const int count = sl_chart_find_marks(canvas->low, canvas->high, canvas->logarithmic, marks);
    canvas->low = marks[0];
    canvas->high = marks[count - 1];
}

static int find_column(const struct canvas *canvas, double x)
{
    return canvas->last > 0 ? (int)lround(x / canvas->last * (canvas->width - 1)) : 0;
}

static int find_row(const struct canvas *canvas, double y)
{
    const double share = canvas->logarithmic ? log(y / canvas->low) / log(canvas->high / canvas->low)
                                             : (y - canvas->low) / (canvas->high - canvas->low);
    return canvas->height - 1 - (int)lround(share * (canvas->height - 1));
}

static void set(struct canvas *canvas, int column, int row, int line, char letter)
{
    if (column < 0 || column >= canvas->width || row < 0 || row >= canvas->height)
        return;
    const int at = row * canvas->width + column;
    canvas->cells[at] = canvas->lines[at] != 0 && canvas->lines[at] != line + 1 ? BOTH : letter;
    canvas->lines[at] = (unsigned char)(line + 1);
}

/* Every column between two points gets a cell. */
static void draw_line(struct canvas *canvas, const struct sl_chart_line *line, int k, char letter)
{
    int column = 0, row = 0;
    for (size_t i = 0; i < line->count; i++) {
        const int to = find_column(canvas, line->points[i].x), to_row = find_row(canvas, line->points[i].y);
        for (int c = i == 0 ? to : column + 1; c < to; c++)
            set(canvas, c, row + (int)lround((double)(to_row - row) * (c - column) / (to - column)), k, letter);
        set(canvas, to, to_row, k, letter);
        column = to;
        row = to_row;
    }
}

static void append_row(const struct canvas *canvas, int row, bool color, struct sl_buf *out)
{
    static const int colors[] = {34, 33, 32, 35, 36, 31};
    const bool top = row == 0, bottom = row == canvas->height - 1;
    if (top || bottom)
        sl_buf_printf(out, "%*.5g |", LABEL - 2, top ? canvas->high : canvas->low);
    else
        sl_buf_printf(out, "%*s |", LABEL - 2, "");
    int end = canvas->width;
    while (end > 0 && canvas->cells[row * canvas->width + end - 1] == ' ')
        end--;
    for (int c = 0; c < end; c++) {
        const int at = row * canvas->width + c;
        if (color && canvas->lines[at] != 0)
            sl_buf_printf(out, "\033[%dm%c\033[0m", colors[(canvas->lines[at] - 1) % 6], canvas->cells[at]);
        else
            sl_buf_append_char(out, canvas->cells[at]);
    }
    sl_buf_append_char(out, '\n');
}

static void append_canvas(const struct sl_chart *chart, const struct canvas *canvas, bool color, struct sl_buf *out)
{
    sl_buf_printf(out, "%*s  %s:", LABEL - 2, "", chart->title);
    for (int k = 0; k < SL_CHART_LINES; k++)
        if (chart->lines[k].count > 0)
            sl_buf_printf(out, " %c %s", chart->names[k][0], chart->names[k]);
    sl_buf_append_text(out, canvas->logarithmic ? " (logarithmic)\n" : "\n");
    for (int row = 0; row < canvas->height; row++)
        append_row(canvas, row, color, out);
    sl_buf_printf(out, "%*s +", LABEL - 2, "");
    sl_buf_fill(out, '-', (size_t)canvas->width);
    sl_buf_printf(out, "\n%*s  0%*.0f\n", LABEL - 2, "", canvas->width - 1, canvas->last);
}

void sl_text_chart_append(const struct sl_chart *chart, int columns, int rows, bool color, struct sl_buf *out)
{
    struct canvas canvas = {.width = (columns < COLUMNS_MOST ? columns : COLUMNS_MOST) - LABEL,
                            .height = rows < ROWS_MOST ? rows : ROWS_MOST};
    find_range(chart, &canvas);
    if (columns < COLUMNS_LEAST || rows < ROWS_LEAST || canvas.low > canvas.high)
        return;
    const size_t cells = (size_t)canvas.width * (size_t)canvas.height;
    canvas.cells = malloc(cells);
    canvas.lines = calloc(cells, 1);
    if (canvas.cells && canvas.lines) {
        memset(canvas.cells, ' ', cells);
        for (int k = 0; k < SL_CHART_LINES; k++)
            if (chart->lines[k].count > 0)
                draw_line(&canvas, &chart->lines[k], k, chart->names[k][0]);
        append_canvas(chart, &canvas, color, out);
    } else
        out->failed = true;
    free(canvas.lines);
    free(canvas.cells);
}
