/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep as one page: a plot of throughput over the size of the batch on logarithmic axes, and the same numbers as
 * a table. No scripts, no network. Lines differ in colour, dash and marker, and have their names at their ends. */
#include <math.h>

#include "base/value/html.h"
#include "compare/sweep/sweep_report.h"

enum { WIDTH = 820, HEIGHT = 460, LEFT = 74, RIGHT = 200, TOP = 16, BOTTOM = 52, LABEL = 16, LINES = 8 };

struct plot {
    const struct sl_sweep_report *report;
    double x_low, x_high, y_low, y_high; /* logarithms */
};

static const char style[] =
    ":root{--c0:#0072b2;--c1:#c2410c;--c2:#007a5a;--c3:#a5388c;--c4:#8a6100;--c5:#4338ca;--c6:#b3262a;--c7:#3d5a00}\n"
    "@media(prefers-color-scheme:dark){:root{--c0:#58b4ff;--c1:#ff9e64;--c2:#4fd6a8;--c3:#f0a0d8;--c4:#f2cc60;"
    "--c5:#a5a0ff;--c6:#ff8f8f;--c7:#b5d86a}}\n"
    "body{max-width:56rem}p{color:var(--ink);margin:1rem 0}svg{min-width:640px}\n"
    "text{font-size:13px;fill:var(--ink)}text.dim{fill:var(--dim)}.line{fill:none;stroke-width:2.2}"
    ".cross{stroke:var(--dim);stroke-dasharray:2 4}\n"
    "table{margin-top:1.5rem}caption{text-align:left;color:var(--dim);padding-bottom:.4rem}"
    "th,td{padding:.25rem .75rem;border-bottom:1px solid var(--grid)}th:first-child{text-align:right}"
    "td b{font-weight:700}\n";

static const char *const dashes[LINES] = {"", "7 4", "2 3", "9 3 2 3", "", "7 4", "2 3", "9 3 2 3"};

static void put_candidate(struct sl_buf *out, const struct sl_sweep_candidate *candidate)
{
    struct sl_buf text = {0};
    sl_sweep_print_candidate(candidate, &text);
    sl_html_append_text(out, sl_buf_text(&text));
    out->failed = out->failed || text.failed;
    sl_buf_deinit(&text);
}

static void put_sentence(struct sl_buf *out, const struct sl_sweep_report *report)
{
    struct sl_buf text = {0};
    sl_sweep_print_sentence(report, &text);
    sl_html_append_text(out, sl_buf_text(&text));
    out->failed = out->failed || text.failed;
    sl_buf_deinit(&text);
}

/* Rows per second; 0 if not timed. */
static double rate_of(const struct sl_sweep_report *report, int32_t b, int32_t c)
{
    const struct sl_sweep_batch *batch = &report->batches[b];
    return batch->cells[c].rounds > 0 ? (double)batch->rows / (1e-9 * batch->cells[c].step_ns) : 0;
}

static void put_rate(struct sl_buf *out, double rate)
{
    double scaled = rate >= 1e6 ? rate / 1e6 : rate >= 1e3 ? rate / 1e3 : rate;
    sl_buf_printf(out, "%.*f%s",
                  scaled < 9.995   ? 2
                  : scaled < 99.95 ? 1
                                   : 0,
                  scaled,
                  rate >= 1e6   ? " M"
                  : rate >= 1e3 ? " k"
                                : "");
}

/* ---- axes --------------------------------------------------------------------------------------------------- */

static double x_of(const struct plot *p, double batch)
{
    double width = p->x_high - p->x_low;
    return LEFT + (WIDTH - LEFT - RIGHT) * (width > 0 ? (log(batch) - p->x_low) / width : 0.5);
}

static double y_of(const struct plot *p, double rate)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log(rate) - p->y_low) / (p->y_high - p->y_low);
}

static void measure(struct plot *p)
{
    const struct sl_sweep_report *r = p->report;
    double low = (double)INFINITY, high = 0;
    for (int32_t b = 0; b < r->batch_count; b++)
        for (int32_t c = 0; c < r->candidate_count; c++) {
            double rate = rate_of(r, b, c);
            if (rate > 0) {
                low = fmin(low, rate);
                high = fmax(high, rate);
            }
        }
    p->x_low = log((double)r->batches[0].batch);
    p->x_high = log((double)r->batches[r->batch_count - 1].batch);
    p->y_low = log(low / 1.25);
    p->y_high = log(high * 1.25);
}

static void put_axes(const struct plot *p, struct sl_buf *out)
{
    const struct sl_sweep_report *r = p->report;
    static const double steps[] = {1, 2, 5};
    int64_t decades = (int64_t)((p->y_high - p->y_low) / log(10.0));
    for (int power = 0; power < 13; power++)
        for (int s = 0; s < 3; s++) {
            double rate = steps[s] * pow(10, power), y;
            if (log(rate) < p->y_low || log(rate) > p->y_high || (decades >= 3 && s > 0))
                continue;
            y = y_of(p, rate);
            sl_buf_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                          WIDTH - RIGHT, y, y);
            sl_buf_printf(out, "<text class=\"dim\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + 4);
            double scaled = rate >= 1e6 ? rate / 1e6 : rate >= 1e3 ? rate / 1e3 : rate;
            sl_buf_printf(out, "%.0f%s</text>\n", scaled, rate >= 1e6 ? " M" : rate >= 1e3 ? " k" : "");
        }
    for (int32_t b = 0; b < r->batch_count; b++) {
        double x = x_of(p, (double)r->batches[b].batch);
        sl_buf_printf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, HEIGHT - BOTTOM,
                      HEIGHT - BOTTOM + 5);
        sl_buf_printf(out, "<text class=\"dim\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%lld</text>\n", x,
                      HEIGHT - BOTTOM + 20, (long long)r->batches[b].batch);
    }
    sl_buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">sequences in a batch</text>\n",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10);
    sl_buf_printf(out,
                  "<text transform=\"translate(16 %d) rotate(-90)\" text-anchor=\"middle\">steps per second</text>\n",
                  (TOP + HEIGHT - BOTTOM) / 2);
    if (r->crossover > 0) {
        double x = x_of(p, (double)r->crossover);
        sl_buf_printf(out, "<line class=\"cross\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP,
                      HEIGHT - BOTTOM);
        sl_buf_printf(out, "<text class=\"dim\" x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">crossover: %lld</text>\n",
                      x > (LEFT + WIDTH - RIGHT) / 2.0 ? x - 6 : x + 6, HEIGHT - BOTTOM - 8,
                      x > (LEFT + WIDTH - RIGHT) / 2.0 ? "end" : "start", (long long)r->crossover);
    }
}

/* ---- lines -------------------------------------------------------------------------------------------------- */

static void put_marker(struct sl_buf *out, int shape, double x, double y)
{
    switch (shape % 4) {
    case 0:
        sl_buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"", x, y);
        break;
    case 1:
        sl_buf_printf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\"", x - 4, y - 4);
        break;
    case 2:
        sl_buf_printf(out, "<path d=\"M%.1f %.1fl5 9h-10z\"", x, y - 5);
        break;
    default:
        sl_buf_printf(out, "<path d=\"M%.1f %.1fl5.5 5.5l-5.5 5.5l-5.5-5.5z\"", x, y - 5.5);
    }
}

static void put_line(const struct plot *p, int32_t c, struct sl_buf *out)
{
    const struct sl_sweep_report *r = p->report;
    const struct sl_sweep_candidate *candidate = &r->candidates[c];
    int look = c % LINES;
    const char *mark = "M";
    sl_buf_printf(out, "<path class=\"line\" stroke=\"var(--c%d)\" stroke-dasharray=\"%s\" d=\"", look, dashes[look]);
    for (int32_t b = 0; b < r->batch_count; b++)
        if (rate_of(r, b, c) > 0) {
            sl_buf_printf(out, "%s%.1f %.1f", mark, x_of(p, (double)r->batches[b].batch), y_of(p, rate_of(r, b, c)));
            mark = "L";
        }
    sl_buf_append_text(out, "\"/>\n");
    for (int32_t b = 0; b < r->batch_count; b++) {
        if (rate_of(r, b, c) <= 0)
            continue;
        put_marker(out, look, x_of(p, (double)r->batches[b].batch), y_of(p, rate_of(r, b, c)));
        sl_buf_printf(out, " fill=\"var(--c%d)\"><title>", look);
        put_candidate(out, candidate);
        sl_buf_printf(out, ", batch %lld: ", (long long)r->batches[b].batch);
        put_rate(out, rate_of(r, b, c));
        sl_buf_printf(out, " steps per second, %.3f ms</title></%s>\n", 1e-6 * r->batches[b].cells[c].step_ns,
                      look % 4 == 0   ? "circle"
                      : look % 4 == 1 ? "rect"
                                      : "path");
    }
}

/* The names at the right ends of the lines, from top to bottom, without overlaps. */
static void put_names(const struct plot *p, struct sl_buf *out)
{
    const struct sl_sweep_report *r = p->report;
    double below = TOP - LABEL;
    bool done[64] = {false};
    for (int32_t n = 0; n < r->candidate_count && n < 64; n++) {
        int32_t top = -1, last[64];
        for (int32_t c = 0; c < r->candidate_count && c < 64; c++) {
            last[c] = r->batch_count - 1;
            while (last[c] >= 0 && rate_of(r, last[c], c) <= 0)
                last[c]--;
            if (!done[c] && last[c] >= 0 && (top < 0 || rate_of(r, last[c], c) > rate_of(r, last[top], top)))
                top = c;
        }
        if (top < 0)
            return;
        done[top] = true;
        double x = x_of(p, (double)r->batches[last[top]].batch), y = y_of(p, rate_of(r, last[top], top));
        double at = fmax(y, below + LABEL);
        below = at;
        sl_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\" style=\"fill:var(--c%d)\">", x + 12, at + 4, top % LINES);
        put_candidate(out, &r->candidates[top]);
        sl_buf_append_text(out, "</text>\n");
    }
}

static void put_plot(const struct sl_sweep_report *report, struct sl_buf *out)
{
    struct plot plot = {.report = report};
    measure(&plot);
    sl_buf_printf(out,
                  "<div class=\"scroll\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"t d\">"
                  "<title id=\"t\">Throughput over batch size</title><desc id=\"d\">",
                  WIDTH, HEIGHT);
    put_sentence(out, report);
    sl_buf_append_text(out, " The table below has the numbers.</desc>\n");
    put_axes(&plot, out);
    for (int32_t c = 0; c < report->candidate_count; c++)
        if (!report->candidates[c].excluded)
            put_line(&plot, c, out);
    put_names(&plot, out);
    sl_buf_append_text(out, "</svg></div>\n");
}

/* ---- the page ----------------------------------------------------------------------------------------------- */

static void put_table(const struct sl_sweep_report *report, struct sl_buf *out)
{
    sl_buf_append_text(out,
                       "<div class=\"scroll\"><table><caption>Steps of sequences per second (time of a whole batch, "
                       "ms); the fastest of a row is bold, within 3 % the first</caption>\n"
                       "<thead><tr><th scope=\"col\">batch</th>");
    for (int32_t c = 0; c < report->candidate_count; c++)
        if (!report->candidates[c].excluded) {
            sl_buf_append_text(out, "<th scope=\"col\">");
            put_candidate(out, &report->candidates[c]);
            sl_buf_append_text(out, "</th>");
        }
    sl_buf_append_text(out, "</tr></thead>\n<tbody>\n");
    for (int32_t b = 0; b < report->batch_count; b++) {
        const struct sl_sweep_batch *batch = &report->batches[b];
        sl_buf_printf(out, "<tr><th scope=\"row\">%lld</th>", (long long)batch->batch);
        for (int32_t c = 0; c < report->candidate_count; c++) {
            bool wins = c == batch->winner;
            if (report->candidates[c].excluded)
                continue;
            sl_buf_append_text(out, wins ? "<td><b>" : "<td>");
            if (rate_of(report, b, c) > 0) {
                put_rate(out, rate_of(report, b, c));
                sl_buf_printf(out, " (%.3f)", 1e-6 * batch->cells[c].step_ns);
            } else {
                sl_buf_append_text(out, "–");
            }
            sl_buf_append_text(out, wins ? "</b></td>" : "</td>");
        }
        sl_buf_append_text(out, "</tr>\n");
    }
    sl_buf_append_text(out, "</tbody></table></div>\n");
}

static void put_loan(const struct sl_sweep_candidate *candidate, int32_t l, struct sl_buf *out)
{
    struct sl_buf text = {0};
    sl_sweep_print_loan(candidate, l, &text);
    sl_buf_append_text(out, "<p>");
    sl_html_append_text(out, sl_buf_text(&text));
    sl_buf_append_text(out, "</p>\n");
    out->failed = out->failed || text.failed;
    sl_buf_deinit(&text);
}

static void put_notes(const struct sl_sweep_report *report, struct sl_buf *out)
{
    for (int32_t c = 0; c < report->candidate_count; c++)
        for (int32_t l = 0; l < sl_sweep_count_loans(report, c); l++)
            put_loan(&report->candidates[c], l, out);
    for (int32_t c = 0; c < report->candidate_count; c++) {
        if (!report->candidates[c].excluded)
            continue;
        sl_buf_append_text(out, "<p>Not timed: ");
        put_candidate(out, &report->candidates[c]);
        sl_buf_append_text(out, report->candidates[c].failed ? ", whose numbers are wrong: " : ": ");
        sl_html_append_text(out, report->candidates[c].excluded);
        sl_buf_append_text(out, "</p>\n");
    }
    if (report->skipped_from > 0)
        sl_buf_printf(out, "<p>Not timed: batch %lld and above, for lack of time.</p>\n",
                      (long long)report->skipped_from);
}

void sl_sweep_print_html(const struct sl_sweep_report *report, struct sl_buf *out)
{
    const char *phase = report->phase == SL_PHASE_TRAIN ? "Training" : "Inference";
    sl_html_begin_page(out, style, "%s of %s", phase, report->model->name);
    sl_buf_printf(out, "<h1>%s of ", phase);
    sl_html_append_text(out, report->model->name);
    sl_buf_append_text(out, ": throughput over batch size</h1>\n<p>");
    put_sentence(out, report);
    sl_buf_append_text(out, "</p>\n");
    if (report->batch_count > 0 && report->batches[0].winner >= 0) {
        put_plot(report, out);
        put_table(report, out);
    }
    put_notes(report, out);
    sl_html_end_page(out);
}
