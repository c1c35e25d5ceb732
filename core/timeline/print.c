/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence and the table of a profile. */
#include "timeline/print.h"

#include <math.h>
#include <string.h>

#include "base/value/text.h"

enum { ROWS = 10, TEXT = 128 };

static const double much = 0.15;   /* share of the time from which waiting is what limits */
static const double little = 0.05; /* share of a layer that is not worth a word */

void sl_timeline_format_time(double ns, char *out, size_t capacity_bytes)
{
    const char *unit = ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s";
    const double value = ns / (ns < 1e6 ? 1e3 : ns < 1e9 ? 1e6 : 1e9);
    sl_text_snprintf(out, capacity_bytes, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
}

static double get_share(const struct sl_timeline *timeline, double ns)
{
    return timeline->ns > 0 ? ns / timeline->ns : 0;
}

/* ---- the sentence ----------------------------------------------------------------------------------------------- */

/* Time of all calls of the layer. */
static double sum_layer(const struct sl_timeline *timeline, const char *name)
{
    double ns = 0;
    for (int32_t k = 0; k < timeline->order_count; k++) {
        const struct sl_timeline_part *part = &timeline->parts[timeline->order[k]];
        if (sl_timeline_part_is_call(part) && part->name && strcmp(part->name, name) == 0)
            ns += sl_timeline_part_get_cost(part);
    }
    return ns;
}

static double sum_kind(const struct sl_timeline *timeline, enum sl_activity_kind kind)
{
    double ns = 0;
    for (int32_t k = 0; k < timeline->order_count; k++)
        if (timeline->parts[timeline->order[k]].kind == kind)
            ns += timeline->parts[timeline->order[k]].ns;
    return ns;
}

/* The longest call of the layer that takes most of all. */
static const struct sl_timeline_part *find_heaviest(const struct sl_timeline *timeline, double *out_ns)
{
    const struct sl_timeline_part *heaviest = NULL;
    *out_ns = 0;
    for (int32_t k = 0; k < timeline->order_count; k++) {
        const struct sl_timeline_part *part = &timeline->parts[timeline->order[k]];
        const double ns = sl_timeline_part_is_call(part) && part->name ? sum_layer(timeline, part->name) : 0;
        if (ns > *out_ns) {
            heaviest = part;
            *out_ns = ns;
        }
    }
    return heaviest;
}

static void print_device(const struct sl_timeline *timeline, struct sl_buf *out)
{
    for (int32_t t = 0; t < timeline->track_count; t++)
        if (timeline->tracks[t].is_device && get_share(timeline, timeline->tracks[t].busy_ns) < 0.5)
            sl_buf_printf(out, "%s works for only %.0f %% of the time, since the host does not start its work faster. ",
                          timeline->tracks[t].name, 100 * get_share(timeline, timeline->tracks[t].busy_ns));
}

static void print_heaviest(const struct sl_timeline *timeline, struct sl_buf *out)
{
    double ns;
    char limit[TEXT];
    const struct sl_timeline_part *part = find_heaviest(timeline, &ns);
    if (!part || get_share(timeline, ns) < little)
        return;
    sl_timeline_part_format_limit(part, limit, sizeof limit);
    sl_buf_printf(out, "%s takes %.0f %% of the time", part->name, 100 * get_share(timeline, ns));
    if (limit[0])
        sl_buf_printf(out, "; its %s pass: %s", sl_activity_kind_get_name(part->kind), limit);
    sl_buf_append_text(out, ". ");
}

/* Kinds other than calls that may limit a training, with what to say of them. */
static const struct {
    enum sl_activity_kind kind;
    const char *text;
} waits[] = {{SL_ACTIVITY_FETCH, "updates wait for their batches, which are built more slowly than they are computed"},
             {SL_ACTIVITY_EXCHANGE, "ranks exchange gradients, or wait for each other"},
             {SL_ACTIVITY_COPY, "values are copied between memories"},
             {SL_ACTIVITY_BIND, "backends prepare themselves for new shapes of batches"},
             {SL_ACTIVITY_SAMPLE, "scheduled sampling computes the decoder's own tokens"},
             {SL_ACTIVITY_VALIDATION, "the validation split is evaluated"},
             {SL_ACTIVITY_CHECKPOINT, "checkpoints are written"}};

/* The share of the time for which the thread that builds batches works; 1 if none was built. */
static double find_building(const struct sl_timeline *timeline)
{
    const struct sl_trace *trace = timeline->request.trace;
    for (int32_t t = 0; t < timeline->track_count; t++)
        for (int64_t a = 0; a < trace->tracks[t].count; a++)
            if (trace->tracks[t].activities[a].kind == SL_ACTIVITY_BATCH)
                return get_share(timeline, timeline->tracks[t].busy_ns);
    return 1;
}

static void print_wait(const struct sl_timeline *timeline, enum sl_activity_kind kind, const char *text,
                       struct sl_buf *out)
{
    const double building = find_building(timeline);
    sl_buf_printf(out, "For %.0f %% of the time ", 100 * get_share(timeline, sum_kind(timeline, kind)));
    if (kind == SL_ACTIVITY_FETCH && building < 0.5)
        sl_buf_printf(out,
                      "updates wait for their batches, whose thread works for only %.0f %%: it waits for a processor. ",
                      100 * building);
    else
        sl_buf_printf(out, "%s. ", text);
}

/* What a training waits for is seen as it runs, what takes longest call by call. */
static void print_limit(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const struct sl_timeline *runs = timeline->captured ? timeline->captured : timeline;
    double heaviest;
    find_heaviest(timeline, &heaviest);
    for (size_t w = 0; w < sizeof waits / sizeof *waits; w++) {
        const double share = get_share(runs, sum_kind(runs, waits[w].kind));
        if (share >= much && share > get_share(timeline, heaviest) / 2)
            print_wait(runs, waits[w].kind, waits[w].text, out);
    }
    print_device(runs, out);
    print_heaviest(timeline, out);
}

void sl_timeline_print_sentence(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                                const char *command, struct sl_buf *out)
{
    print_limit(timeline, out);
    if (!advices) {
        sl_buf_printf(out, "`%s` tries out what would be faster.\n", command);
    } else if (advices->count == 0) {
        sl_buf_append_text(out, "There was nothing to try out.\n");
    } else if (!advices->items[0].helps) {
        sl_buf_append_text(out, "Nothing that was tried out is faster.\n");
    } else {
        const struct sl_timeline_advice *best = &advices->items[0];
        sl_buf_printf(out, "With `%s` the training is %.2f times as fast (measured: %.2f to %.2f)%s%s.\n", best->change,
                      best->speed, best->low, best->high, best->note[0] ? "; " : "", best->note);
    }
}

void sl_timeline_print_advices(const struct sl_timeline_advices *advices, struct sl_buf *out)
{
    if (advices->count == 0)
        return;
    sl_buf_append_text(out, "\ntried out                             steps per second\n");
    for (int32_t a = 0; a < advices->count; a++) {
        const struct sl_timeline_advice *advice = &advices->items[a];
        sl_buf_printf(out, "%-36s  %5.2f times as many (%.2f to %.2f)%s%s\n", advice->change, advice->speed,
                      advice->low, advice->high, advice->note[0] ? "; " : "", advice->note);
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void print_rate(struct sl_buf *out, double rate)
{
    if (rate >= 0.05)
        sl_buf_printf(out, "  %8.1f", rate);
    else
        sl_buf_printf(out, "  %8s", "");
}

static void print_row(const struct sl_timeline *timeline, const struct sl_timeline_part *part, struct sl_buf *out)
{
    char name[TEXT], time[32], limit[TEXT], backend[TEXT];
    const double ns = sl_timeline_part_get_cost(part);
    sl_timeline_part_format(part, name, sizeof name);
    sl_timeline_format_time(ns / (double)timeline->updates, time, sizeof time);
    sl_timeline_part_format_limit(part, limit, sizeof limit);
    sl_text_snprintf(backend, sizeof backend, "%s%s%s", part->backend ? part->backend : "", part->variant ? ":" : "",
                     part->variant ? part->variant : "");
    sl_buf_printf(out, "%-28s  %-22s  %8s  %5.1f %%", name, backend, time, 100 * get_share(timeline, ns));
    print_rate(out, part->gflops);
    print_rate(out, part->gbytes);
    sl_buf_printf(out, limit[0] ? "  %s\n" : "\n", limit);
}

static void print_peaks(const struct sl_timeline_peaks *peaks, struct sl_buf *out)
{
    sl_buf_printf(out, "peaks of this machine: %.0f GFLOP/s", peaks->gflops);
    if (peaks->tiles_gflops > 0)
        sl_buf_printf(out, " (on tiles: %.0f in bfloat16, %.0f in float32)", peaks->tiles_gflops,
                      peaks->tiles_gflops / SL_TIMELINE_FLOAT32_PRODUCTS);
    sl_buf_printf(out, ", %.1f GB/s\n", peaks->gbytes);
}

/* All threads and devices in one line. */
static void print_threads(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const char *lead = "busy: ";
    for (int32_t t = 0; t < timeline->track_count; t++) {
        const struct sl_timeline_track *track = &timeline->tracks[t];
        sl_buf_printf(out, "%s%s %.0f %%", lead, track->trains ? "the thread that trains" : track->name,
                      100 * get_share(timeline, track->busy_ns));
        lead = ", ";
    }
    sl_buf_append_char(out, '\n');
}

static void print_memory(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const double predicted = (double)timeline->request.plan->memory.peak_bytes;
    if (timeline->memory_bytes > 0)
        sl_buf_printf(out, "memory: %.0f MiB held", (double)timeline->memory_bytes / 1048576);
    if (timeline->memory_bytes > 0 && predicted > 0)
        sl_buf_printf(out, ", %.0f MiB predicted", predicted / 1048576);
    sl_buf_append_char(out, '\n');
}

static void print_kernels(const struct sl_timeline *timeline, struct sl_buf *out)
{
    if (timeline->kernels_missing)
        sl_buf_printf(out, "times of whole calls, not of single kernels: %s\n", timeline->kernels_missing);
    if (timeline->kernel_count > 0)
        sl_buf_printf(out, "\n%-44s  %7s  %8s  %7s\n", "kernel of the device", "started", "time", "share");
    for (int32_t k = 0; k < timeline->kernel_count && k < ROWS; k++) {
        char time[32];
        sl_timeline_format_time(timeline->kernels[k].ns / (double)timeline->updates, time, sizeof time);
        sl_buf_printf(out, "%-44s  %7.1f  %8s  %5.1f %%\n", timeline->kernels[k].name,
                      (double)timeline->kernels[k].count / (double)timeline->updates, time,
                      100 * get_share(timeline, timeline->kernels[k].ns));
    }
}

static void print_slowdown(const struct sl_timeline_slowdown *slowdown, struct sl_buf *out)
{
    if (isnan(slowdown->share))
        return;
    sl_buf_printf(out, "; recording makes them %.1f %% slower", 100 * fmax(slowdown->share, 0));
    if (!isnan(slowdown->low))
        sl_buf_printf(out, " (%.1f to %.1f %%)", 100 * slowdown->low, 100 * slowdown->high);
}

const char sl_timeline_in_captures[] = " in captures, as the training runs";
const char sl_timeline_call_by_call[] = " call by call";

void sl_timeline_print_updates(const struct sl_timeline *timeline, const char *how, struct sl_buf *out)
{
    char time[32];
    sl_timeline_format_time(timeline->ns / (double)timeline->updates, time, sizeof time);
    sl_buf_printf(out, "%lld update%s of %.0f real steps%s, %s each", (long long)timeline->updates,
                  timeline->updates == 1 ? "" : "s", (double)timeline->rows / (double)timeline->updates, how, time);
    print_slowdown(&timeline->request.slowdown, out);
}

static void print_parts(const struct sl_timeline *timeline, const char *how, struct sl_buf *out)
{
    char time[32];
    const int32_t shown = timeline->order_count < ROWS ? timeline->order_count : ROWS;
    double rest = 0;
    sl_timeline_print_updates(timeline, how, out);
    sl_buf_printf(out, "\n\n%-28s  %-22s  %8s  %7s  %8s  %8s\n", "part", "runs on", "time", "share", "GFLOP/s", "GB/s");
    for (int32_t k = 0; k < shown; k++)
        print_row(timeline, &timeline->parts[timeline->order[k]], out);
    for (int32_t k = shown; k < timeline->order_count; k++)
        rest += sl_timeline_part_get_cost(&timeline->parts[timeline->order[k]]);
    if (shown < timeline->order_count) {
        sl_timeline_format_time(rest / (double)timeline->updates, time, sizeof time);
        sl_buf_printf(out, "%-28s  %-22s  %8s  %5.1f %%\n", "others", "", time, 100 * get_share(timeline, rest));
    }
    sl_timeline_format_time(timeline->unattributed_ns / (double)timeline->updates, time, sizeof time);
    sl_buf_printf(out, "%-28s  %-22s  %8s  %5.1f %%\n\n", "not attributed", "", time,
                  100 * get_share(timeline, timeline->unattributed_ns));
}

void sl_timeline_print_table(const struct sl_timeline *timeline, struct sl_buf *out)
{
    if (timeline->captured) {
        print_parts(timeline->captured, sl_timeline_in_captures, out);
        print_threads(timeline->captured, out);
        sl_buf_append_char(out, '\n');
    }
    print_parts(timeline, timeline->captured ? sl_timeline_call_by_call : "", out);
    print_peaks(&timeline->request.peaks, out);
    print_threads(timeline, out);
    print_memory(timeline, out);
    print_kernels(timeline, out);
    if (timeline->dropped > 0)
        sl_buf_printf(out, "%lld activit%s did not fit into the recording: profile fewer updates\n",
                      (long long)timeline->dropped, timeline->dropped == 1 ? "y" : "ies");
}
