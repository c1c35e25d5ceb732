/* SPDX-License-Identifier: Apache-2.0 */
/* profile.json: a profile as numbers. */
#include "timeline/print.h"

#include <math.h>

#include "base/value/json_write.h"

static void append_key(struct sl_buf *out, const char *key)
{
    const char last = out->length_bytes > 0 ? out->data[out->length_bytes - 1] : '{';
    if (last != '{' && last != '[')
        sl_buf_append_text(out, ", ");
    sl_json_append_string(out, key);
    sl_buf_append_text(out, ": ");
}

static void append_number(struct sl_buf *out, const char *key, double value)
{
    append_key(out, key);
    sl_json_append_number(out, value);
}

static void append_count(struct sl_buf *out, const char *key, int64_t value)
{
    append_key(out, key);
    sl_buf_printf(out, "%lld", (long long)value);
}

static void append_string(struct sl_buf *out, const char *key, const char *value)
{
    append_key(out, key);
    sl_json_append_string(out, value);
}

static const char *get_limit(const struct sl_timeline_part *part)
{
    static const char *const limits[] = {NULL, "compute", "memory", "cache", "size", "neither"};
    return limits[part->limit];
}

static void print_part(const struct sl_timeline *timeline, int32_t p, struct sl_buf *out)
{
    const struct sl_timeline_part *part = &timeline->parts[p];
    const double updates = (double)timeline->updates;
    sl_buf_append_text(out, p == 0 ? "\n    {" : ",\n    {");
    append_string(out, "kind", sl_activity_kind_get_name(part->kind));
    append_string(out, "name", part->name);
    append_string(out, "backend", part->backend);
    append_string(out, "variant", part->variant);
    append_count(out, "parent", part->parent);
    append_count(out, "count", part->count);
    append_number(out, "ns", part->ns / updates);
    append_number(out, "self_ns", part->self_ns / updates);
    append_number(out, "device_ns", part->device_ns / updates);
    append_number(out, "share", timeline->ns > 0 ? sl_timeline_part_get_cost(part) / timeline->ns : 0);
    append_number(out, "gflops", part->gflops);
    append_number(out, "gbytes_per_s", part->gbytes);
    append_number(out, "of_peak", part->of_peak);
    append_string(out, "limit", get_limit(part));
    sl_buf_append_char(out, '}');
}

static void print_parts(const struct sl_timeline *timeline, struct sl_buf *out)
{
    append_key(out, "parts");
    sl_buf_append_char(out, '[');
    for (int32_t p = 0; p < timeline->part_count; p++)
        print_part(timeline, p, out);
    sl_buf_append_char(out, ']');
}

/* What was recorded, and how long it took. */
static void print_times(const struct sl_timeline *timeline, struct sl_buf *out)
{
    append_count(out, "updates", timeline->updates);
    append_count(out, "rows", timeline->rows);
    append_number(out, "update_ns", timeline->ns / (double)timeline->updates);
    append_number(out, "unattributed", timeline->ns > 0 ? timeline->unattributed_ns / timeline->ns : 0);
    append_number(out, "slowdown", timeline->request.slowdown.share);
    append_number(out, "slowdown_low", timeline->request.slowdown.low);
    append_number(out, "slowdown_high", timeline->request.slowdown.high);
    append_number(out, "cpus_used", timeline->cpu_share);
}

static void print_tracks(const struct sl_timeline *timeline, struct sl_buf *out)
{
    append_key(out, "threads");
    sl_buf_append_char(out, '[');
    for (int32_t t = 0; t < timeline->track_count; t++) {
        const struct sl_timeline_track *track = &timeline->tracks[t];
        sl_buf_append_text(out, t == 0 ? "{" : ", {");
        append_string(out, "name", track->name);
        append_key(out, "device");
        sl_buf_append_text(out, track->is_device ? "true" : "false");
        append_number(out, "busy", timeline->ns > 0 ? track->busy_ns / timeline->ns : 0);
        sl_buf_append_char(out, '}');
    }
    sl_buf_append_char(out, ']');
}

static void print_captured(const struct sl_timeline *timeline, struct sl_buf *out)
{
    append_key(out, "captured");
    sl_buf_append_char(out, '{');
    print_times(timeline, out);
    append_count(out, "dropped", timeline->dropped);
    print_tracks(timeline, out);
    print_parts(timeline, out);
    sl_buf_append_char(out, '}');
}

static void print_kernels(const struct sl_timeline *timeline, struct sl_buf *out)
{
    append_key(out, "kernels");
    sl_buf_append_char(out, '[');
    for (int32_t k = 0; k < timeline->kernel_count; k++) {
        sl_buf_append_text(out, k == 0 ? "{" : ", {");
        append_string(out, "name", timeline->kernels[k].name);
        append_count(out, "count", timeline->kernels[k].count);
        append_number(out, "ns", timeline->kernels[k].ns / (double)timeline->updates);
        sl_buf_append_char(out, '}');
    }
    sl_buf_append_char(out, ']');
}

static void print_advice(const struct sl_timeline_advice *advice, struct sl_buf *out)
{
    sl_buf_append_char(out, '{');
    append_string(out, "change", advice->change);
    append_string(out, "note", advice->note[0] ? advice->note : NULL);
    append_number(out, "speed", advice->speed);
    append_number(out, "low", advice->low);
    append_number(out, "high", advice->high);
    append_key(out, "helps");
    sl_buf_append_text(out, advice->helps ? "true}" : "false}");
}

void sl_timeline_print_json(const struct sl_timeline *timeline, const struct sl_timeline_advices *advices,
                            struct sl_buf *out)
{
    struct sl_buf sentence = {0};
    sl_timeline_print_sentence(timeline, advices, "seqlstm profile", &sentence);
    sl_buf_append_text(out, "{");
    append_string(out, "schema", "seqlstm.profile/1");
    append_key(out, "sentence");
    const size_t bytes = sl_buf_text_bytes(&sentence);
    sl_json_append_text(out, sl_buf_text(&sentence), bytes > 0 ? bytes - 1 : 0); /* without the line's end */
    print_times(timeline, out);
    append_number(out, "peak_gflops", timeline->request.peaks.gflops);
    append_number(out, "peak_tiles_gflops", timeline->request.peaks.tiles_gflops);
    append_number(out, "peak_gbytes_per_s", timeline->request.peaks.gbytes);
    append_count(out, "memory_bytes", timeline->memory_bytes);
    append_count(out, "predicted_bytes", timeline->request.plan->memory.peak_bytes);
    append_count(out, "dropped", timeline->dropped);
    print_tracks(timeline, out);
    print_kernels(timeline, out);
    append_string(out, "kernels_missing", timeline->kernels_missing);
    append_key(out, "advices");
    sl_buf_append_text(out, advices ? "[" : "null");
    for (int32_t a = 0; advices && a < advices->count; a++) {
        sl_buf_append_text(out, a == 0 ? "" : ", ");
        print_advice(&advices->items[a], out);
    }
    sl_buf_append_text(out, advices ? "]" : "");
    print_parts(timeline, out);
    if (timeline->captured)
        print_captured(timeline->captured, out);
    else
        append_string(out, "captured", NULL);
    sl_buf_append_text(out, "}\n");
    out->failed = out->failed || sentence.failed;
    sl_buf_deinit(&sentence);
}
