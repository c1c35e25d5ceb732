/* SPDX-License-Identifier: Apache-2.0 */
/* See trace.h. A thread takes a track when its first activity of a recording ends, and keeps it until the recording
 * stops; `recording` counts recordings, so that a track of an earlier one is not used again. */
#include "base/system/trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/ticks.h"

_Atomic uint32_t sl_trace_state;

enum { SAMPLES_APART_NS = 5000000 };

SL_PROBE_SEMAPHORE(sl_trace_watchers);

static const struct sl_trace_marker *_Atomic markers[SL_TRACE_MARKERS];
static struct sl_trace current; /* of the recording; its tracks are in use up to `taken`, those of threads in ticks */
static struct sl_moment first;  /* of the recording */
static _Atomic int32_t taken;
static struct {
    _Atomic bool now; /* does the thread of the track append? */
    char apart[SL_TRACE_APART];
} busy[SL_TRACE_TRACKS];
static _Atomic uint32_t recording;
static int64_t capacity;
static int64_t cpu_begin;
static int statm = -1;                                   /* /proc/self/statm, while activities are recorded */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* names, and taking tracks */

static struct {
    void (*end)(void *context);
    void *context;
} ends[SL_TRACE_ENDS]; /* of the thread that starts and stops */

static char names[SL_TRACE_NAMES][SL_TRACE_NAME_BYTES];
static int32_t name_count;

static _Thread_local int32_t own = -1; /* track of this thread; -1: none */
static _Thread_local uint32_t own_recording;
static _Thread_local const char *own_name;
static _Thread_local int64_t last_begin;            /* of this thread: each is later than the one before */
static _Thread_local int64_t shown[SL_TRACE_SHOWN]; /* begins of what markers show */
static _Thread_local int32_t shown_count;
static _Thread_local int depth; /* of what a backend has named and not ended */
static _Thread_local struct {
    const char *name;
    int64_t begin;
} pushed[SL_TRACE_DEEPEST];

const char *sl_activity_kind_get_name(enum sl_activity_kind kind)
{
    static const char *const kinds[SL_ACTIVITY_KINDS] = {
        "update",     "wait for data", "build a batch", "prepare", "sample", "forward",  "backward", "pack",
        "bind",       "optimizer",     "launch",        "copy",    "wait",   "exchange", "metrics",  "report",
        "validation", "checkpoint",    "work",          "backend", "step",   "device"};
    return (unsigned)kind < SL_ACTIVITY_KINDS ? kinds[kind] : "?";
}

/* ---- activities ------------------------------------------------------------------------------------------------- */

/* A new track; -1: there are too many, or no memory is left. With the lock. */
static int32_t take_track(const char *name, bool is_device)
{
    const int32_t t = atomic_load(&taken);
    if (!sl_trace_is_on() || t == SL_TRACE_TRACKS)
        return -1;
    struct sl_trace_track *track = &current.tracks[t];
    *track = (struct sl_trace_track){.is_device = is_device, .capacity = capacity};
    snprintf(track->name, sizeof track->name, "%s", name);
    track->activities = calloc((size_t)capacity, sizeof *track->activities);
    if (!track->activities)
        return -1;
    atomic_store(&taken, t + 1);
    return t;
}

/* The track of this thread in the running recording. */
static int32_t find_own(void)
{
    const uint32_t now = atomic_load_explicit(&recording, memory_order_relaxed);
    if (own_recording == now)
        return own;
    char name[32] = "";
    if (own_name)
        snprintf(name, sizeof name, "%s", own_name);
    else
        pthread_getname_np(pthread_self(), name, sizeof name);
    pthread_mutex_lock(&lock);
    own = take_track(name, false);
    own_recording = now;
    pthread_mutex_unlock(&lock);
    return own;
}

static void append(struct sl_trace_track *track, const struct sl_activity *activity)
{
    if (track->count < track->capacity)
        track->activities[track->count++] = *activity;
    else
        track->dropped++;
}

static void show_begin(int64_t begin, enum sl_activity_kind kind, const char *name)
{
    if (shown_count == SL_TRACE_SHOWN)
        return;
    shown[shown_count++] = begin;
    for (int k = 0; k < SL_TRACE_MARKERS; k++) {
        const struct sl_trace_marker *marker = atomic_load_explicit(&markers[k], memory_order_acquire);
        if (marker)
            marker->begin(kind, name);
    }
}

/* With it ends what has begun since, and has not ended. */
static void show_end(int64_t begin)
{
    int32_t at = shown_count - 1;
    while (at >= 0 && shown[at] != begin)
        at--;
    for (; at >= 0 && shown_count > at; shown_count--)
        for (int k = 0; k < SL_TRACE_MARKERS; k++) {
            const struct sl_trace_marker *marker = atomic_load_explicit(&markers[k], memory_order_acquire);
            if (marker)
                marker->end();
        }
}

static bool is_shown(void)
{
    return (atomic_load_explicit(&sl_trace_state, memory_order_relaxed) & 2) != 0;
}

int64_t sl_trace_begin_on(enum sl_activity_kind kind, const char *name)
{
    SL_PROBE(begin, sl_trace_watchers, (int)kind, sl_activity_kind_get_name(kind), name);
    const int64_t now = sl_ticks_read();
    last_begin = now > last_begin ? now : last_begin + 1;
    if (is_shown())
        show_begin(last_begin, kind, name);
    return last_begin;
}

void sl_trace_end_on(int64_t begin, enum sl_activity_kind kind, const char *name, const char *detail, int64_t amount)
{
    const int64_t now = sl_ticks_read();
    const struct sl_activity activity = {.begin_ns = begin,
                                         .end_ns = now > begin ? now : begin,
                                         .name = name,
                                         .detail = detail,
                                         .amount = amount,
                                         .kind = kind};
    SL_PROBE(end, sl_trace_watchers, (int)kind, sl_activity_kind_get_name(kind), name);
    if (is_shown())
        show_end(begin);
    while (depth > 0 && (depth > SL_TRACE_DEEPEST || pushed[depth - 1].begin > begin))
        depth--; /* what a backend has not ended */
    const int32_t t = sl_trace_is_on() ? find_own() : -1;
    if (t < 0)
        return;
    atomic_store(&busy[t].now, true);
    if ((atomic_load(&sl_trace_state) & 1) != 0 && own_recording == atomic_load(&recording) && begin >= first.ticks)
        append(&current.tracks[t], &activity);
    atomic_store_explicit(&busy[t].now, false, memory_order_release);
}

int64_t sl_trace_get_begin(void)
{
    return sl_trace_is_on() ? current.begin_ns : 0;
}

const char *sl_trace_keep_name(const char *name)
{
    const char *kept = "…";
    char text[SL_TRACE_NAME_BYTES];
    snprintf(text, sizeof text, "%s", name);
    pthread_mutex_lock(&lock);
    int32_t n = 0;
    while (n < name_count && strcmp(names[n], text) != 0)
        n++;
    if (n == name_count && n < SL_TRACE_NAMES) {
        memcpy(names[n], text, sizeof text);
        name_count++;
    }
    if (n < name_count)
        kept = names[n];
    pthread_mutex_unlock(&lock);
    return kept;
}

void sl_trace_name_thread(const char *name)
{
    own_name = name;
}

int32_t sl_trace_find_device(const char *name)
{
    int32_t found = -1;
    pthread_mutex_lock(&lock);
    for (int32_t t = 0; t < atomic_load(&taken) && found < 0 && sl_trace_is_on(); t++)
        if (current.tracks[t].is_device &&
            strncmp(current.tracks[t].name, name, sizeof current.tracks[t].name - 1) == 0)
            found = t;
    if (found < 0)
        found = take_track(name, true);
    pthread_mutex_unlock(&lock);
    return found;
}

void sl_trace_add(int32_t track, const struct sl_activity *activity)
{
    if (sl_trace_is_on() && track >= 0)
        append(&current.tracks[track], activity);
}

void sl_trace_add_count(const char *name, int64_t time_ns, double value)
{
    if (!sl_trace_is_on())
        return;
    if (!current.counts)
        current.counts = calloc(SL_TRACE_COUNTS, sizeof *current.counts);
    if (current.counts && current.count_count < SL_TRACE_COUNTS)
        current.counts[current.count_count++] = (struct sl_trace_count){name, time_ns, value};
}

void sl_trace_note(const char *text)
{
    if (sl_trace_is_on() && !current.note[0])
        snprintf(current.note, sizeof current.note, "%s", text);
}

bool sl_trace_on_end(void (*end)(void *context), void *context)
{
    for (int k = 0; k < SL_TRACE_ENDS; k++)
        if (!ends[k].end) {
            ends[k].end = end;
            ends[k].context = context;
            return true;
        }
    return false;
}

void sl_trace_forget_end(const void *context)
{
    for (int k = 0; k < SL_TRACE_ENDS; k++)
        if (ends[k].context == context)
            ends[k].end = NULL;
}

/* The same for a name that this thread has often given at the same address: a literal, as a rule. */
static const char *keep_literal(const char *name)
{
    enum { REMEMBERED = 16 };
    static _Thread_local struct {
        const char *name, *kept;
    } remembered[REMEMBERED];
    const size_t at = ((uintptr_t)name >> 2) % REMEMBERED;
    if (remembered[at].name != name || strcmp(remembered[at].kept, name) != 0) {
        remembered[at].kept = sl_trace_keep_name(name);
        remembered[at].name = name;
    }
    return remembered[at].kept;
}

void sl_trace_push(const char *name)
{
    if (!sl_trace_is_watched())
        return;
    if (depth < SL_TRACE_DEEPEST) {
        pushed[depth].name = keep_literal(name);
        pushed[depth].begin = sl_trace_begin(SL_ACTIVITY_BACKEND, pushed[depth].name);
    }
    depth++;
}

void sl_trace_pop(const char *detail)
{
    if (depth == 0)
        return;
    depth--;
    if (depth < SL_TRACE_DEEPEST)
        sl_trace_end(pushed[depth].begin, SL_ACTIVITY_BACKEND, pushed[depth].name, detail, 0);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* 0: unknown. The file stays open while activities are recorded: opening it takes longer than reading it. */
static int64_t read_resident_bytes(void)
{
    char text[128];
    long long pages = 0, resident = 0;
    const ssize_t bytes = statm < 0 ? -1 : pread(statm, text, sizeof text - 1, 0);
    if (bytes <= 0)
        return 0;
    text[bytes] = 0;
    if (sscanf(text, "%lld %lld", &pages, &resident) != 2)
        resident = 0;
    return resident * sysconf(_SC_PAGESIZE);
}

void sl_trace_sample_memory(void)
{
    const int64_t now = sl_clock_ns(), count = current.memory_count;
    if (!sl_trace_is_on() || count == SL_TRACE_SAMPLES ||
        (count > 0 && now < current.memory[count - 1].time_ns + SAMPLES_APART_NS))
        return;
    current.memory[count] = (struct sl_trace_sample){.time_ns = now, .value = read_resident_bytes()};
    current.memory_count++;
}

/* ---- start and stop --------------------------------------------------------------------------------------------- */

seqlstm_status sl_trace_start(enum sl_trace_detail detail, int64_t per_thread, struct seqlstm_error *err)
{
    if (sl_trace_is_on())
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "a profile is being taken already");
    struct sl_trace_sample *memory = calloc(SL_TRACE_SAMPLES, sizeof *memory);
    if (!memory)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    first = sl_moment_read();
    current = (struct sl_trace){.memory = memory, .begin_ns = first.ns};
    capacity = per_thread;
    cpu_begin = sl_clock_process_cpu_ns();
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    atomic_store(&taken, 0);
    atomic_fetch_add(&recording, 1);
    atomic_fetch_or(&sl_trace_state, detail == SL_TRACE_CALLS ? 1 | 4 : 1);
    sl_trace_sample_memory();
    return SEQLSTM_OK;
}

static void set_times(struct sl_trace_track *track, const struct sl_moment *last)
{
    for (int64_t a = 0; a < track->count; a++) {
        struct sl_activity *activity = &track->activities[a];
        activity->begin_ns = sl_ticks_to_ns(activity->begin_ns, &first, last);
        activity->end_ns = sl_ticks_to_ns(activity->end_ns, &first, last);
    }
}

void sl_trace_stop(struct sl_trace *out_trace)
{
    *out_trace = (struct sl_trace){.track_count = 0};
    if (!sl_trace_is_on())
        return;
    for (int k = 0; k < SL_TRACE_ENDS; k++) {
        if (ends[k].end)
            ends[k].end(ends[k].context);
        ends[k].end = NULL;
    }
    pthread_mutex_lock(&lock);
    atomic_fetch_and(&sl_trace_state, ~(1u | 4u));
    pthread_mutex_unlock(&lock);
    const int32_t count = atomic_load(&taken);
    for (int32_t t = 0; t < count; t++)
        while (atomic_load(&busy[t].now))
            sched_yield();
    if (statm >= 0)
        close(statm);
    statm = -1;
    *out_trace = current;
    out_trace->track_count = count;
    const struct sl_moment last = sl_moment_read();
    out_trace->end_ns = last.ns;
    for (int32_t t = 0; t < count; t++)
        if (!out_trace->tracks[t].is_device)
            set_times(&out_trace->tracks[t], &last);
    out_trace->cpu_ns = sl_clock_process_cpu_ns() - cpu_begin;
    current = (struct sl_trace){.track_count = 0};
}

void sl_trace_deinit(struct sl_trace *trace)
{
    for (int32_t t = 0; t < trace->track_count; t++)
        free(trace->tracks[t].activities);
    free(trace->memory);
    free(trace->counts);
    memset(trace, 0, sizeof *trace);
}

void sl_trace_add_marker(const struct sl_trace_marker *marker)
{
    int k = 0;
    while (k < SL_TRACE_MARKERS && atomic_load(&markers[k]))
        k++;
    if (k == SL_TRACE_MARKERS)
        return;
    atomic_store(&markers[k], marker);
    atomic_fetch_or(&sl_trace_state, 2);
}

void sl_trace_remove_markers(void)
{
    atomic_fetch_and(&sl_trace_state, ~2u);
    for (int k = 0; k < SL_TRACE_MARKERS; k++)
        atomic_store(&markers[k], NULL);
}
