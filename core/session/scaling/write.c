/* SPDX-License-Identifier: Apache-2.0 */
/* The report of scaling.h, as a table, as JSON and as a page. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "base/value/html.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "session/scaling/scaling.h"

static double get_rate(const struct sl_scaling_row *row)
{
    return row->update_ns > 0 ? row->rows / row->update_ns : 0;
}

double sl_scaling_get_speedup(const struct sl_scaling_report *report, int32_t row)
{
    const double first = get_rate(&report->rows[0]);
    return first > 0 ? get_rate(&report->rows[row]) / first : 0;
}

static double get_share(const struct sl_scaling_row *row, double ns)
{
    return row->update_ns > 0 ? ns / row->update_ns : 0;
}

static void write_time(struct sl_buf *out, double ns)
{
    if (ns < 1e6)
        sl_buf_printf(out, "%.3g us", ns * 1e-3);
    else if (ns < 1e9)
        sl_buf_printf(out, "%.3g ms", ns * 1e-6);
    else
        sl_buf_printf(out, "%.3g s", ns * 1e-9);
}

static void write_rate(struct sl_buf *out, const struct sl_scaling_link *link)
{
    sl_buf_printf(out, "%.3g us and %.3g GB/s", link->latency_s * 1e6, link->bytes_per_s * 1e-9);
}

/* "2 stages, 8 pieces" of rows with a pipeline; "" */
static void write_stages(const struct sl_scaling_row *row, struct sl_buf *out)
{
    if (row->stages > 1)
        sl_buf_printf(out, "%d stages, %d pieces", row->stages, row->pieces);
}

enum { COLUMNS = 8 };
static const char *const titles[COLUMNS] = {"ranks",         "hosts",     "threads", "update",
                                            "times as fast", "exchanges", "waits",   "memory"};

static void fill_cell(const struct sl_scaling_report *report, int32_t r, int column, struct sl_buf *out)
{
    const struct sl_scaling_row *row = &report->rows[r];
    switch (column) {
    case 0:
        sl_buf_printf(out, "%d", row->ranks);
        break;
    case 1:
        sl_buf_printf(out, "%d", row->hosts);
        break;
    case 2:
        sl_buf_printf(out, "%d", row->threads);
        break;
    case 3:
        write_time(out, row->update_ns);
        break;
    case 4:
        sl_buf_printf(out, "%.2f", sl_scaling_get_speedup(report, r));
        break;
    case 5:
        sl_buf_printf(out, "%.0f %%", 100 * get_share(row, row->exchange_ns));
        break;
    case 6:
        sl_buf_printf(out, "%.0f %%", 100 * get_share(row, row->waiting_ns));
        break;
    default:
        sl_buf_printf(out, "%.3g MB", (double)row->memory_bytes * 1e-6);
    }
}

/* Which ranks have measured. */
static void write_measuring(const struct sl_scaling_report *report, struct sl_buf *out)
{
    if (report->measuring == report->local)
        sl_buf_printf(out, "Steps were timed on this machine by as many ranks at once as a host has (%d at most)",
                      report->local);
    else
        sl_buf_printf(out, "Steps were timed by the %d rank%s of this machine; a host has %d, as given",
                      report->measuring, report->measuring == 1 ? "" : "s", report->local);
    sl_buf_append_text(out, report->devices > 0 ? ", each on a GPU of its own." : ".");
}

/* Where the numbers come from. */
static void write_sources(const struct sl_scaling_report *report, const char *between, struct sl_buf *out)
{
    write_measuring(report, out);
    sl_buf_append_text(out, between);
    if (report->inner.bytes_per_s > 0) {
        sl_buf_append_text(out, "Within a host, as given: ");
        write_rate(out, &report->inner);
        sl_buf_printf(out, ".%s", between);
    } else if (report->measured.bytes_per_s > 0) {
        sl_buf_append_text(out, "An all_reduce within this host: ");
        write_rate(out, &report->measured);
        sl_buf_printf(out, ", measured.%s", between);
    }
    if (report->link.bytes_per_s > 0) {
        sl_buf_append_text(out, "Between hosts, as given: ");
        write_rate(out, &report->link);
        sl_buf_printf(out, ".%s", between);
    }
    sl_buf_append_text(out, report->grows ? "Batches grow with the ranks: each has one as large as the model's."
                                          : "All ranks share the batch of the model.");
    for (int32_t r = 0; r < report->count; r++)
        if (report->rows[r].idle > 0) {
            sl_buf_printf(out, "%sFrom %d rank%s on some have nothing to do, since batches have too few sequences.",
                          between, report->rows[r].ranks, report->rows[r].ranks == 1 ? "" : "s");
            break;
        }
}

void sl_scaling_write_table(const struct sl_scaling_report *report, struct sl_buf *out)
{
    char cells[SL_SCALING_ROWS + 1][COLUMNS][24];
    int widths[COLUMNS] = {0};
    for (int32_t r = -1; r < report->count; r++)
        for (int k = 0; k < COLUMNS; k++) {
            struct sl_buf cell = {0};
            if (r >= 0)
                fill_cell(report, r, k, &cell);
            snprintf(cells[r + 1][k], sizeof cells[0][0], "%s", r < 0 ? titles[k] : sl_buf_text(&cell));
            const int width = snprintf(NULL, 0, "%s", cells[r + 1][k]);
            widths[k] = width > widths[k] ? width : widths[k];
            out->failed = out->failed || cell.failed;
            sl_buf_deinit(&cell);
        }
    for (int32_t r = 0; r <= report->count; r++) {
        for (int k = 0; k < COLUMNS; k++)
            sl_buf_printf(out, "%s%*s", k ? "  " : "", widths[k], cells[r][k]);
        if (r > 0 && report->rows[r - 1].stages > 1)
            sl_buf_append_text(out, "  ");
        if (r > 0)
            write_stages(&report->rows[r - 1], out);
        sl_buf_append_char(out, '\n');
    }
    write_sources(report, "\n", out);
    sl_buf_append_char(out, '\n');
}

static json_t *write_link(const struct sl_scaling_link *link)
{
    return link->bytes_per_s > 0
               ? json_pack("{s:f,s:f}", "bytes_per_s", link->bytes_per_s, "latency_s", link->latency_s)
               : json_null();
}

void sl_scaling_write_json(const struct sl_scaling_report *report, struct sl_buf *out)
{
    json_t *rows = json_array();
    for (int32_t r = 0; r < report->count; r++) {
        const struct sl_scaling_row *row = &report->rows[r];
        rows = sl_json_add(rows, json_pack("{s:i,s:i,s:i,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:i}", "ranks", row->ranks,
                                           "hosts", row->hosts, "threads", row->threads, "stages", row->stages,
                                           "pieces", row->pieces, "rows", row->rows, "update_ns", row->update_ns,
                                           "compute_ns", row->compute_ns, "exchange_ns", row->exchange_ns, "waiting_ns",
                                           row->waiting_ns, "times_as_fast", sl_scaling_get_speedup(report, r),
                                           "memory_bytes", (json_int_t)row->memory_bytes, "idle_ranks", row->idle));
    }
    json_t *root = json_pack("{s:s,s:i,s:i,s:i,s:b,s:o,s:o,s:o,s:o}", "schema", "seqlstm.ranks/1", "ranks_of_a_host",
                             report->local, "ranks_measured", report->measuring, "gpus", report->devices,
                             "batches_grow", report->grows, "link", write_link(&report->link), "inner",
                             write_link(&report->inner), "measured", write_link(&report->measured), "rows", rows);
    if (!sl_json_append_tree(out, root, JSON_REAL_PRECISION(6)))
        out->failed = true;
}

/* ---- the page --------------------------------------------------------------------------------------------------- */

enum { WIDTH = 760, HEIGHT = 420, LEFT = 60, RIGHT = 24, TOP = 16, BOTTOM = 48 };

static const char style[] = ":root{--line:#0072b2}@media(prefers-color-scheme:dark){:root{--line:#58b4ff}}\n"
                            ".line{fill:none;stroke:var(--line);stroke-width:2.2}.dot{fill:var(--line)}\n"
                            ".ideal{stroke:var(--dim);stroke-dasharray:2 4;fill:none}\n"
                            "svg{min-width:560px;max-width:56rem}table{margin-top:1.5rem}\n";

struct plot {
    double x_low, x_high, y_low, y_high; /* powers of two */
};

static double get_x(const struct plot *p, double ranks)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (log2(ranks) - p->x_low) / (p->x_high - p->x_low);
}

static double get_y(const struct plot *p, double times)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log2(times) - p->y_low) / (p->y_high - p->y_low);
}

static struct plot find_plot(const struct sl_scaling_report *report)
{
    struct plot p = {log2(report->rows[0].ranks), log2(report->rows[report->count - 1].ranks), 0, 1};
    for (int32_t r = 0; r < report->count; r++) {
        const double times = sl_scaling_get_speedup(report, r);
        p.y_low = times > 0 ? fmin(p.y_low, floor(log2(times))) : p.y_low;
        p.y_high = times > 0 ? fmax(p.y_high, ceil(log2(times))) : p.y_high;
    }
    p.x_high = fmax(p.x_high, p.x_low + 1);
    return p;
}

static void write_axes(const struct sl_scaling_report *report, const struct plot *p, struct sl_buf *out)
{
    for (double power = p->y_low; power <= p->y_high; power++) {
        const double y = get_y(p, exp2(power));
        sl_buf_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, y,
                      y);
        sl_buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4, exp2(power));
    }
    for (int32_t r = 0; r < report->count; r++)
        sl_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                      get_x(p, report->rows[r].ranks), HEIGHT - BOTTOM + 20, report->rows[r].ranks);
    sl_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">ranks</text>\n", (LEFT + WIDTH - RIGHT) / 2,
                  HEIGHT - 8);
}

static void write_plot(const struct sl_scaling_report *report, struct sl_buf *out)
{
    const struct plot p = find_plot(report);
    const double first = report->rows[0].ranks, last = fmin(exp2(p.x_high), first * exp2(p.y_high));
    sl_buf_printf(out, "<div class=\"scroll\"><svg viewBox=\"0 0 %d %d\" role=\"img\">\n", WIDTH, HEIGHT);
    sl_buf_append_text(out, "<title>How many times as fast as the first row, over the number of ranks</title>\n");
    write_axes(report, &p, out);
    sl_buf_printf(out,
                  "<line class=\"ideal\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n<path class=\"line\" d=\"",
                  get_x(&p, first), get_y(&p, 1), get_x(&p, last), get_y(&p, last / first));
    for (int32_t r = 0; r < report->count; r++)
        sl_buf_printf(out, "%c%.1f %.1f", r ? 'L' : 'M', get_x(&p, report->rows[r].ranks),
                      get_y(&p, fmax(sl_scaling_get_speedup(report, r), exp2(p.y_low))));
    sl_buf_append_text(out, "\"/>\n");
    for (int32_t r = 0; r < report->count; r++)
        sl_buf_printf(out, "<circle class=\"dot\" r=\"3.5\" cx=\"%.1f\" cy=\"%.1f\"/>\n",
                      get_x(&p, report->rows[r].ranks),
                      get_y(&p, fmax(sl_scaling_get_speedup(report, r), exp2(p.y_low))));
    sl_buf_append_text(out, "</svg></div>\n");
}

void sl_scaling_write_page(const struct sl_scaling_report *report, struct sl_buf *out)
{
    struct sl_buf sources = {0};
    write_sources(report, " ", &sources);
    sl_html_begin_page(out, style, "Predicted scaling");
    sl_buf_append_text(out, "<h1>Predicted scaling</h1>\n<p>");
    sl_html_append_text(out, sl_buf_text(&sources));
    sl_buf_append_text(out, " The dotted line is ideal.</p>\n");
    write_plot(report, out);
    sl_buf_append_text(out, "<div class=\"scroll\"><table><tr>");
    for (int k = 0; k < COLUMNS; k++)
        sl_buf_printf(out, "<th>%s</th>", titles[k]);
    sl_buf_append_text(out, "</tr>\n");
    for (int32_t r = 0; r < report->count; r++) {
        sl_buf_append_text(out, "<tr>");
        for (int k = 0; k < COLUMNS; k++) {
            sl_buf_append_text(out, "<td>");
            fill_cell(report, r, k, out);
            sl_buf_append_text(out, "</td>");
        }
        sl_buf_append_text(out, "</tr>\n");
    }
    sl_buf_append_text(out, "</table></div>\n");
    sl_html_end_page(out);
    out->failed = out->failed || sources.failed;
    sl_buf_deinit(&sources);
}
