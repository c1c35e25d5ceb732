/* SPDX-License-Identifier: Apache-2.0 */
/* The section of a page about a profile. The drawing is a picture of rectangles whose titles show on hover; a script,
 * where scripts run, zooms and moves it and writes the title of what the pointer is on above it. */
#include "timeline/print.h"

#include <math.h>

#include "base/value/html.h"

enum { WIDTH = 1000, LANE = 14, LANES = 4, SHOWN_UPDATES = 3, DEEPEST = 32 };

static const double narrowest = 0.35; /* of WIDTH units: narrower ones are drawn so wide, or left out beside another */

const char sl_timeline_style[] =
    ":root{--forward:#2a6fc9;--backward:#8250c4;--optimizer:#1f8a5b;--copy:#9a7400;--wait:#c2453d;--other:#6b7480}"
    "@media(prefers-color-scheme:dark){:root{--forward:#6aa5f0;--backward:#b48bf0;--optimizer:#54c391;--copy:#d8b13c;"
    "--wait:#f0857d;--other:#8d96a1}}\n"
    ".lanes rect{fill:var(--other)}.lanes .forward{fill:var(--forward)}.lanes .backward{fill:var(--backward)}"
    ".lanes .optimizer{fill:var(--optimizer)}.lanes .copy{fill:var(--copy)}.lanes .wait{fill:var(--wait)}"
    ".lanes rect:hover{opacity:.7}.lanes{height:auto;touch-action:pan-y}.lane{margin:.4rem 0}.lane p{margin:0}\n"
    ".keys{display:flex;flex-wrap:wrap;gap:.2rem 1rem;color:var(--dim)}.keys "
    "i{display:inline-block;width:.8em;height:.8em;"
    "margin-right:.4em;background:var(--other)}.keys .forward{background:var(--forward)}.keys .backward{background:var("
    "--backward)}.keys .optimizer{background:var(--optimizer)}.keys .copy{background:var(--copy)}.keys "
    ".wait{background:"
    "var(--wait)}\n"
    ".flame td,.flame th{padding-right:.6rem}.flame .limit{text-align:left}.flame "
    ".bar{display:inline-block;width:4rem;max-width:none;margin:0 "
    ".5rem 0 "
    "0;vertical-align:middle}.flame .bar i{display:block;height:.8rem;background:var(--forward)}"
    ".held{fill:none;stroke:var(--forward);stroke-width:2}.predicted{stroke:var(--dim);stroke-dasharray:6 4}"
    ".zoom button{font:inherit;color:var(--ink);background:none;border:1px solid "
    "var(--dim);border-radius:4px;margin-right:"
    ".4rem}\n";

static const char script[] =
    "<script>(function(){var all=document.querySelectorAll('svg.lanes'),box=document.getElementById('zoom'),"
    "note=document.getElementById('pointed');if(!all.length)return;box.hidden=false;var x=0,w=1000;"
    "function show(){x=Math.max(0,Math.min(x,1000-w));all.forEach(function(s){s.setAttribute('viewBox',x+' 0 '+w+' '+"
    "s.dataset.height)})}"
    "function zoom(f,at){var n=Math.min(1000,Math.max(1,w*f));x+=(w-n)*at;w=n;show()}"
    "box.addEventListener('click',function(e){var a=e.target.dataset.act;if(a=='in')zoom(.5,.5);if(a=='out')zoom(2,.5);"
    "if(a=='left'){x-=w/4;show()}if(a=='right'){x+=w/4;show()}if(a=='all'){x=0;w=1000;show()}});"
    "all.forEach(function(s){s.addEventListener('wheel',function(e){if(!e.ctrlKey&&!e.shiftKey)return;e.preventDefault("
    ");"
    "var r=s.getBoundingClientRect();zoom(e.deltaY>0?1.25:.8,(e.clientX-r.left)/r.width)},{passive:false});"
    "s.addEventListener('pointermove',function(e){var t=e.target.querySelector&&e.target.querySelector('title');"
    "if(e.target.tagName=='rect'&&t)note.textContent=t.textContent})})})()</script>\n";

/* ---- the drawing ------------------------------------------------------------------------------------------------ */

static const char *get_class(enum sl_activity_kind kind)
{
    switch (kind) {
    case SL_ACTIVITY_FORWARD:
        return "forward";
    case SL_ACTIVITY_BACKWARD:
        return "backward";
    case SL_ACTIVITY_OPTIMIZER:
    case SL_ACTIVITY_PACK:
        return "optimizer";
    case SL_ACTIVITY_COPY:
    case SL_ACTIVITY_EXCHANGE:
        return "copy";
    case SL_ACTIVITY_WAIT:
    case SL_ACTIVITY_FETCH:
        return "wait";
    default:
        return "other";
    }
}

/* The end of the updates that are drawn. */
static int64_t find_end(const struct sl_timeline *timeline)
{
    const struct sl_trace *trace = timeline->request.trace;
    int64_t updates = 0;
    for (int32_t t = 0; t < trace->track_count; t++)
        for (int64_t a = 0; a < trace->tracks[t].count; a++)
            if (trace->tracks[t].activities[a].kind == SL_ACTIVITY_UPDATE && ++updates == SHOWN_UPDATES)
                return trace->tracks[t].activities[a].end_ns;
    return timeline->end_ns;
}

static void draw(const struct sl_activity *activity, int depth, double scale, int64_t begin, struct sl_buf *out)
{
    char name[128], time[32];
    const struct sl_timeline_part part = {.kind = activity->kind, .name = activity->name};
    const double width = (double)(activity->end_ns - activity->begin_ns) * scale;
    sl_timeline_part_format(&part, name, sizeof name);
    sl_timeline_format_time((double)(activity->end_ns - activity->begin_ns), time, sizeof time);
    sl_buf_printf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>",
                  get_class(activity->kind), (double)(activity->begin_ns - begin) * scale, depth * LANE,
                  fmax(width, narrowest), LANE - 2);
    sl_html_append_text(out, name);
    if (activity->detail) {
        sl_buf_append_text(out, ", ");
        sl_html_append_text(out, activity->detail);
    }
    sl_buf_printf(out, ": %s</title></rect>\n", time);
}

/* The rectangles of one track; returns how many lanes they take. */
static int draw_track(const struct sl_trace_track *track, int64_t begin, int64_t end, struct sl_buf *out)
{
    int64_t ends[DEEPEST];
    double reached[DEEPEST] = {0};
    const double scale = WIDTH / (double)(end - begin);
    int depth = 0, lanes = 0;
    for (int64_t a = 0; a < track->count; a++) {
        const struct sl_activity *activity = &track->activities[a];
        if (activity->begin_ns < begin || activity->begin_ns >= end)
            continue;
        while (depth > 0 && activity->begin_ns >= ends[depth - 1])
            depth--;
        if (depth == DEEPEST)
            continue;
        const double right = (double)(activity->end_ns - begin) * scale;
        ends[depth] = activity->end_ns;
        if (depth < LANES && right >= reached[depth] + narrowest) {
            draw(activity, depth, scale, begin, out);
            reached[depth] = right;
            lanes = depth + 1 > lanes ? depth + 1 : lanes;
        }
        depth++;
    }
    return lanes;
}

/* What the colours mean, and the buttons. */
static void print_keys(struct sl_buf *out)
{
    static const char *const keys[][2] = {
        {"forward", "forward"},       {"backward", "backward"}, {"optimizer", "optimizer, packing"},
        {"copy", "copies, exchange"}, {"wait", "waiting"},      {"other", "other"}};
    sl_buf_append_text(out, "<p class=\"keys\">");
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        sl_buf_printf(out, "<span><i class=\"%s\"></i>%s</span>", keys[k][0], keys[k][1]);
    sl_buf_append_text(out, "</p>\n<p class=\"zoom\" id=\"zoom\" hidden><button data-act=\"in\">zoom in</button>"
                            "<button data-act=\"out\">zoom out</button><button data-act=\"left\">left</button>"
                            "<button data-act=\"right\">right</button><button data-act=\"all\">all</button> "
                            "or Ctrl and the wheel</p>\n<p id=\"pointed\">&nbsp;</p>\n");
}

static void print_drawing(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const struct sl_trace *trace = timeline->request.trace;
    const int64_t begin = timeline->begin_ns, end = find_end(timeline);
    for (int32_t t = 0; t < trace->track_count; t++) {
        struct sl_buf rects = {0};
        const int lanes = draw_track(&trace->tracks[t], begin, end, &rects);
        if (lanes > 0) {
            sl_buf_append_text(out, "<div class=\"lane\"><p>");
            sl_html_append_text(out, trace->tracks[t].name);
            sl_buf_printf(out,
                          "</p><svg class=\"lanes\" viewBox=\"0 0 %d %d\" data-height=\"%d\" style=\"height:%dpx\" "
                          "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"activities\">\n",
                          WIDTH, lanes * LANE, lanes * LANE, lanes * LANE);
            sl_buf_append(out, rects.data, rects.length_bytes);
            sl_buf_append_text(out, "</svg></div>\n");
        }
        out->failed = out->failed || rects.failed;
        sl_buf_deinit(&rects);
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void print_rate(double rate, struct sl_buf *out)
{
    sl_buf_append_text(out, "<td>");
    if (rate >= 0.05)
        sl_buf_printf(out, "%.1f", rate);
    sl_buf_append_text(out, "</td>");
}

static void print_part(const struct sl_timeline *timeline, const struct sl_timeline_part *part, struct sl_buf *out)
{
    char name[128], time[32], limit[128];
    const double share = 100 * sl_timeline_part_get_cost(part) / timeline->ns;
    sl_timeline_part_format(part, name, sizeof name);
    sl_timeline_format_time(sl_timeline_part_get_cost(part) / (double)timeline->updates, time, sizeof time);
    sl_timeline_part_format_limit(part, limit, sizeof limit);
    sl_buf_printf(out, "<tr><td style=\"padding-left:%.1frem\">", 1.2 * part->depth);
    sl_html_append_text(out, name);
    sl_buf_append_text(out, "</td><td>");
    if (part->backend)
        sl_html_append_text(out, part->backend);
    if (part->variant) {
        sl_buf_append_char(out, ':');
        sl_html_append_text(out, part->variant);
    }
    sl_buf_printf(out,
                  "</td><td>%s</td><td><span class=\"bar\"><i style=\"width:%.2f%%\"></i></span>%.1f %%</td>"
                  "<td class=\"limit\">%s</td>",
                  time, fmin(share, 100), share, limit);
    print_rate(part->gflops, out);
    print_rate(part->gbytes, out);
    sl_buf_append_text(out, "</tr>\n");
}

/* A part, and then those below it. */
static void print_branch(const struct sl_timeline *timeline, int32_t p, struct sl_buf *out)
{
    const struct sl_timeline_part *part = &timeline->parts[p];
    print_part(timeline, part, out);
    if (part->depth >= LANES)
        return;
    if (p == 0) {
        for (int32_t k = 0; k < timeline->order_count; k++)
            print_branch(timeline, timeline->order[k], out);
        return;
    }
    for (int32_t child = p + 1; child < timeline->part_count; child++)
        if (timeline->parts[child].parent == p)
            print_branch(timeline, child, out);
}

static void print_flame(const struct sl_timeline *timeline, struct sl_buf *out)
{
    sl_buf_append_text(out,
                       "<div class=\"scroll\"><table class=\"flame\"><tr><th>part</th><th>runs on</th><th>time</th>"
                       "<th>share</th><th class=\"limit\">limit</th><th>"
                       "GFLOP/s</th><th>GB/s</th></tr>\n");
    print_branch(timeline, 0, out);
    sl_buf_append_text(out, "</table></div>\n");
}

static void print_kernels(const struct sl_timeline *timeline, struct sl_buf *out)
{
    enum { SHOWN = 30 };
    if (timeline->kernels_missing) {
        sl_buf_append_text(out, "<p>Times of whole calls, not of single kernels: ");
        sl_html_append_text(out, timeline->kernels_missing);
        sl_buf_append_text(out, "</p>\n");
    }
    if (timeline->kernel_count == 0)
        return;
    sl_buf_append_text(out, "<div class=\"scroll\"><table class=\"flame\"><tr><th>kernel of the device</th>"
                            "<th>started</th><th>time</th><th>share</th></tr>\n");
    for (int32_t k = 0; k < timeline->kernel_count && k < SHOWN; k++) {
        const struct sl_timeline_kernel *kernel = &timeline->kernels[k];
        char time[32];
        sl_timeline_format_time(kernel->ns / (double)timeline->updates, time, sizeof time);
        sl_buf_append_text(out, "<tr><td>");
        sl_html_append_text(out, kernel->name);
        sl_buf_printf(out, "</td><td>%.1f</td><td>%s</td><td>%.1f %%</td></tr>\n",
                      (double)kernel->count / (double)timeline->updates, time, 100 * kernel->ns / timeline->ns);
    }
    sl_buf_append_text(out, "</table></div>\n");
}

/* ---- memory and threads ----------------------------------------------------------------------------------------- */

static void print_memory(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const struct sl_trace *trace = timeline->request.trace;
    const double predicted = (double)timeline->request.plan->memory.peak_bytes, mib = 1048576;
    const double most = fmax(predicted, (double)timeline->memory_bytes) * 1.1;
    const double whole_ns = (double)(trace->end_ns - trace->begin_ns);
    if (trace->memory_count < 2 || !(most > 0) || !(whole_ns > 0))
        return;
    sl_buf_printf(out, "<p>Memory: %.0f MiB held (line), %.0f MiB predicted for the whole run (dashed)</p>\n",
                  (double)timeline->memory_bytes / mib, predicted / mib);
    sl_buf_printf(out,
                  "<svg viewBox=\"0 0 %d 80\" preserveAspectRatio=\"none\" style=\"height:80px\" role=\"img\" "
                  "aria-label=\"memory over time\"><line class=\"predicted\" x1=\"0\" x2=\"%d\" y1=\"%.1f\" "
                  "y2=\"%.1f\"/><polyline class=\"held\" points=\"",
                  WIDTH, WIDTH, 80 - 80 * predicted / most, 80 - 80 * predicted / most);
    for (int64_t m = 0; m < trace->memory_count; m++)
        sl_buf_printf(out, "%.1f,%.1f ", WIDTH * (double)(trace->memory[m].time_ns - trace->begin_ns) / whole_ns,
                      80 - 80 * (double)trace->memory[m].value / most);
    sl_buf_append_text(out, "\"/></svg>\n");
}

static void print_threads(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const char *lead = "<p>Busy: ";
    for (int32_t t = 0; t < timeline->track_count; t++) {
        const struct sl_timeline_track *track = &timeline->tracks[t];
        sl_buf_append_text(out, lead);
        sl_html_append_text(out, track->trains ? "the thread that trains" : track->name);
        sl_buf_printf(out, " %.0f %%", 100 * track->busy_ns / timeline->ns);
        lead = ", ";
    }
    sl_buf_printf(out, ". Not attributed: %.1f %%.</p>\n", 100 * timeline->unattributed_ns / timeline->ns);
}

static void print_recording(const struct sl_timeline *timeline, const char *how, struct sl_buf *out)
{
    sl_buf_append_text(out, "<p>");
    sl_timeline_print_updates(timeline, how, out);
    sl_buf_append_text(out, "</p>\n");
    print_drawing(timeline, out);
    print_flame(timeline, out);
}

void sl_timeline_print_section(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                               struct sl_buf *out)
{
    struct sl_buf sentence = {0};
    sl_timeline_print_sentence(timeline, advices, "seqlstm profile", &sentence);
    sl_buf_append_text(out, "<h2>Profile</h2>\n<p>");
    sl_html_append_text(out, sl_buf_text(&sentence));
    sl_buf_append_text(out, "</p>\n");
    print_keys(out);
    if (timeline->captured)
        print_recording(timeline->captured, sl_timeline_in_captures, out);
    print_recording(timeline, timeline->captured ? sl_timeline_call_by_call : "", out);
    print_kernels(timeline, out);
    print_threads(timeline->captured ? timeline->captured : timeline, out);
    print_memory(timeline, out);
    sl_buf_append_text(out, script);
    out->failed = out->failed || sentence.failed;
    sl_buf_deinit(&sentence);
}
