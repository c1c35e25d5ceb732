/* SPDX-License-Identifier: Apache-2.0 */
/* trace.json: the activities as trace events (Trace Event Format: complete events "X", counters "C", names "M"; times
 * in microseconds).
 *
 * A recording is a process of the format, a track is a thread of it. Events of one thread must nest, which kernels of
 * several streams do not: they are put on threads of their own, each on the first one that is free. */
#include "timeline/print.h"

#include "base/value/json_write.h"
#include "base/value/text.h"

enum { STREAMS = 32 }; /* threads for the kernels of a device */

struct process {
    struct sl_buf *out;
    int64_t origin_ns;
    int number;
};

static void begin_event(const struct process *process, const char *phase, const char *name)
{
    sl_buf_printf(process->out, ",\n{\"ph\": \"%s\", \"pid\": %d, \"name\": ", phase, process->number);
    sl_json_append_string(process->out, name);
}

static void append_us(const struct process *process, const char *key, int64_t ns)
{
    sl_buf_printf(process->out, ", \"%s\": %.3f", key, (double)ns * 1e-3);
}

static void print_name(const struct process *process, const char *what, int32_t thread, const char *name)
{
    begin_event(process, "M", what);
    sl_buf_printf(process->out, ", \"tid\": %d, \"args\": {\"name\": ", thread);
    sl_json_append_string(process->out, name);
    sl_buf_append_text(process->out, "}}");
}

static void print_activity(const struct process *process, int32_t thread, const struct sl_activity *activity)
{
    const bool has_bytes = activity->kind == SL_ACTIVITY_COPY || activity->kind == SL_ACTIVITY_EXCHANGE ||
                           activity->kind == SL_ACTIVITY_DEVICE;
    char name[128];
    const struct sl_timeline_part part = {.kind = activity->kind, .name = activity->name};
    sl_timeline_part_format(&part, name, sizeof name);
    begin_event(process, "X", name);
    sl_buf_printf(process->out, ", \"cat\": \"%s\", \"tid\": %d", sl_activity_kind_get_name(activity->kind), thread);
    append_us(process, "ts", activity->begin_ns - process->origin_ns);
    append_us(process, "dur", activity->end_ns - activity->begin_ns);
    sl_buf_append_text(process->out, ", \"args\": {");
    if (activity->detail) {
        sl_buf_append_text(process->out, "\"backend\": ");
        sl_json_append_string(process->out, activity->detail);
    }
    if (activity->amount > 0)
        sl_buf_printf(process->out, "%s\"%s\": %lld", activity->detail ? ", " : "", has_bytes ? "bytes" : "rows",
                      (long long)activity->amount);
    sl_buf_append_text(process->out, "}}");
}

/* The kernels of the sorted activities, on threads after `threads`; returns how many there are with these. */
static int32_t print_kernels(const struct process *process, int32_t threads, const struct sl_trace_track *track)
{
    int64_t ends[STREAMS];
    int32_t count = 0;
    for (int64_t a = 0; a < track->count; a++) {
        const struct sl_activity *activity = &track->activities[a];
        int32_t k = 0;
        if (activity->kind != SL_ACTIVITY_DEVICE)
            continue;
        while (k < count && k < STREAMS - 1 && ends[k] > activity->begin_ns)
            k++;
        if (k == count) {
            char name[64];
            sl_text_snprintf(name, sizeof name, "%s, kernels %d", track->name, (int)++count);
            print_name(process, "thread_name", threads + count, name);
        }
        ends[k] = activity->end_ns;
        print_activity(process, threads + k + 1, activity);
    }
    return threads + count;
}

static void print_tracks(const struct process *process, const struct sl_trace *trace)
{
    int32_t threads = trace->track_count;
    for (int32_t t = 0; t < trace->track_count; t++) {
        const struct sl_trace_track *track = &trace->tracks[t];
        print_name(process, "thread_name", t + 1, track->name);
        for (int64_t a = 0; a < track->count; a++)
            if (track->activities[a].kind != SL_ACTIVITY_DEVICE)
                print_activity(process, t + 1, &track->activities[a]);
        threads = print_kernels(process, threads, track);
    }
}

static void print_counter(const struct process *process, const char *name, const char *unit, int64_t ns, double value)
{
    begin_event(process, "C", name);
    append_us(process, "ts", ns - process->origin_ns);
    sl_buf_printf(process->out, ", \"args\": {\"%s\": ", unit);
    sl_json_append_number(process->out, value);
    sl_buf_append_text(process->out, "}}");
}

static void print_recording(const struct process *process, const struct sl_trace *trace)
{
    print_tracks(process, trace);
    for (int64_t m = 0; m < trace->memory_count; m++)
        print_counter(process, "memory", "bytes", trace->memory[m].time_ns, (double)trace->memory[m].value);
    for (int64_t c = 0; c < trace->count_count; c++)
        print_counter(process, trace->counts[c].name, "value", trace->counts[c].time_ns, trace->counts[c].value);
}

void sl_timeline_print_trace(const struct sl_timeline *timeline, struct sl_buf *out)
{
    const struct sl_trace *trace = timeline->request.trace;
    const struct process calls = {.out = out, .origin_ns = trace->begin_ns, .number = 1};
    const struct process captured = {.out = out, .origin_ns = trace->begin_ns, .number = 2};
    sl_buf_append_text(out, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1, "
                            "\"name\": \"process_name\", \"tid\": 1, \"args\": {\"name\": \"seqlstm\"}}");
    print_recording(&calls, trace);
    if (timeline->captured) {
        print_name(&captured, "process_name", 1, "seqlstm, in captures");
        print_recording(&captured, timeline->captured->request.trace);
    }
    sl_buf_append_text(out, "\n]}\n");
}
