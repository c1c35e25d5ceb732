/* SPDX-License-Identifier: Apache-2.0 */
/* Latency over load as one page: a plot with a logarithmic axis of latency, and the same numbers as a table. */
#include <math.h>

#include "base/value/html.h"
#include "serve/load/curve.h"

enum { WIDTH = 820, HEIGHT = 420, LEFT = 84, RIGHT = 70, TOP = 16, BOTTOM = 52 };

struct plot {
    const struct sl_curve *curve;
    double x_most, y_low, y_high; /* y: logarithms */
};

static const char style[] =
    ":root{--c0:#0072b2;--c1:#c2410c;--c2:#007a5a}\n"
    "@media(prefers-color-scheme:dark){:root{--c0:#58b4ff;--c1:#ff9e64;--c2:#4fd6a8}}\n"
    "body{max-width:56rem}svg{min-width:640px}text{font-size:13px;fill:var(--ink)}text.dim{fill:var(--dim)}"
    ".line{fill:none;stroke-width:2.2}table{margin-top:1.5rem}td,th{padding:.25rem .75rem;text-align:right;"
    "border-bottom:1px solid var(--grid)}\n";

static double pick(const struct sl_load_result *r, int line)
{
    return line == 0 ? r->p50 : line == 1 ? r->p99 : r->p999;
}

static double x_of(const struct plot *p, double load)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * load / p->x_most;
}

static double y_of(const struct plot *p, double seconds)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log(seconds) - p->y_low) / (p->y_high - p->y_low);
}

static void measure(struct plot *p)
{
    double low = (double)INFINITY, high = 0;
    for (int32_t k = 0; k < p->curve->count; k++)
        for (int line = 0; line < 3; line++) {
            const double value = pick(&p->curve->points[k], line);
            low = value > 0 ? fmin(low, value) : low;
            high = fmax(high, value);
        }
    p->x_most = 1.05 * fmax(p->curve->closed.reached, p->curve->points[p->curve->count - 1].wanted);
    p->y_low = log(high > 0 ? low / 1.3 : 1e-3);
    p->y_high = log(high > 0 ? high * 1.3 : 1);
}

static void put_axes(const struct plot *p, struct sl_buf *out)
{
    static const double steps[] = {1, 2, 5};
    for (int power = -6; power < 3; power++)
        for (int s = 0; s < 3; s++) {
            const double seconds = steps[s] * pow(10, power);
            if (log(seconds) < p->y_low || log(seconds) > p->y_high)
                continue;
            const double y = y_of(p, seconds);
            sl_buf_printf(out,
                          "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"dim\" "
                          "x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g ms</text>\n",
                          LEFT, WIDTH - RIGHT, y, y, LEFT - 8, y + 4, 1e3 * seconds);
        }
    for (int32_t k = 0; k < p->curve->count; k++)
        sl_buf_printf(out, "<text class=\"dim\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.0f</text>\n",
                      x_of(p, p->curve->points[k].wanted), HEIGHT - BOTTOM + 20, p->curve->points[k].wanted);
    const double most = x_of(p, p->curve->closed.reached);
    sl_buf_printf(out,
                  "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text class=\"dim\" x=\"%.1f\" "
                  "y=\"%d\" text-anchor=\"end\">closed loop</text>\n",
                  most, most, TOP, HEIGHT - BOTTOM, most - 6, TOP + 12);
    sl_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">requests per second</text>\n",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
}

static void put_line(const struct plot *p, int line, struct sl_buf *out)
{
    static const char *const names[] = {"p50", "p99", "p99.9"};
    const struct sl_load_result *last = &p->curve->points[p->curve->count - 1];
    const char *mark = "M";
    sl_buf_printf(out, "<path class=\"line\" stroke=\"var(--c%d)\" d=\"", line);
    for (int32_t k = 0; k < p->curve->count; k++) {
        const struct sl_load_result *r = &p->curve->points[k];
        if (pick(r, line) > 0) {
            sl_buf_printf(out, "%s%.1f %.1f", mark, x_of(p, r->wanted), y_of(p, pick(r, line)));
            mark = "L";
        }
    }
    sl_buf_append_text(out, "\"/>\n");
    if (pick(last, line) > 0)
        sl_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" style=\"fill:var(--c%d)\">%s</text>\n",
                      x_of(p, last->wanted) + 8, y_of(p, pick(last, line)) + 4, line, names[line]);
}

static void put_row(const struct sl_load_result *r, const char *name, struct sl_buf *out)
{
    const double all[] = {r->mean, r->p50, r->p90, r->p99, r->p999};
    if (r->wanted > 0)
        sl_buf_printf(out, "<tr><td>%.0f</td>", r->wanted);
    else
        sl_buf_printf(out, "<tr><td>%s</td>", name);
    sl_buf_printf(out, "<td>%.0f</td>", r->reached);
    for (int k = 0; k < 5; k++)
        sl_buf_printf(out, "<td>%.3f</td>", 1e3 * all[k]);
    sl_buf_printf(out, "<td>%lld</td></tr>\n", (long long)(r->failed + r->lost));
}

void sl_curve_print_html(const struct sl_curve *curve, struct sl_buf *out)
{
    struct plot plot = {.curve = curve};
    measure(&plot);
    sl_html_begin_page(out, style, "latency of %s", curve->name);
    sl_buf_append_text(out, "<h1>Latency over load: ");
    sl_html_append_text(out, curve->name);
    sl_buf_append_text(out, "</h1>\n<p>");
    sl_html_append_text(out, curve->server);
    sl_buf_printf(out,
                  ". Requests of one sequence, %.1f steps on average, arrive at random times (Poisson). Latency counts "
                  "from the time at which a request was to be sent.</p>\n",
                  (double)curve->steps / (double)curve->requests);
    sl_buf_printf(out,
                  "<div class=\"scroll\"><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>Latency over load</title>\n",
                  WIDTH, HEIGHT);
    put_axes(&plot, out);
    for (int line = 0; line < 3; line++)
        put_line(&plot, line, out);
    sl_buf_append_text(out,
                       "</svg></div>\n<div class=\"scroll\"><table><tr><th>load (1/s)</th><th>answers (1/s)</th>"
                       "<th>mean (ms)</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>refused</th></tr>\n");
    if (curve->offline > 0)
        sl_buf_printf(out, "<tr><td>no server</td><td>%.0f</td></tr>\n", curve->offline);
    put_row(&curve->alone, "one by one", out);
    put_row(&curve->closed, "closed loop", out);
    for (int32_t k = 0; k < curve->count; k++)
        put_row(&curve->points[k], "", out);
    sl_buf_append_text(out, "</table></div>\n");
    sl_html_end_page(out);
}
