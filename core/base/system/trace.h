/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of the process do while a profile is taken: activities with their begin and end, in buffers that
 * each thread has for itself.
 *
 *   int64_t begin = sl_trace_begin(SL_ACTIVITY_FORWARD, name);
 *   ... the work ...
 *   sl_trace_end(begin, SL_ACTIVITY_FORWARD, name, backend, rows);
 *
 * While nothing is recorded, both cost a comparison. While something is, they read the clock and write one entry: no
 * lock, no allocation. Activities of one thread nest by their times. They end after errors, too; if the end of one is
 * not reached, nothing of it is recorded, and for a profiler that is attached it ends with the one around it.
 *
 * Names and details are borrowed until the activities have been read; sl_trace_keep_name copies those which may vanish.
 * The recording belongs to the process, as the threads do: one profile at a time.
 */
#ifndef SL_BASE_SYSTEM_TRACE_H
#define SL_BASE_SYSTEM_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "base/system/clock.h"
#include "base/system/probe.h"

/* What an activity is. `amount` counts rows, or bytes where it is said. */
enum sl_activity_kind {
    SL_ACTIVITY_UPDATE,  /* a whole update of the training; holds the others of its thread */
    SL_ACTIVITY_FETCH,   /* the training waits for its next batch */
    SL_ACTIVITY_BATCH,   /* a batch is built */
    SL_ACTIVITY_PREPARE, /* bindings and fields of a batch that is to run */
    SL_ACTIVITY_SAMPLE,  /* scheduled sampling */
    SL_ACTIVITY_FORWARD, /* calls of a backend */
    SL_ACTIVITY_BACKWARD,
    SL_ACTIVITY_PACK,
    SL_ACTIVITY_BIND,
    SL_ACTIVITY_OPTIMIZER, /* flat operations, of which the update consists */
    SL_ACTIVITY_LAUNCH,    /* of a captured step */
    SL_ACTIVITY_COPY,      /* between memories; bytes */
    SL_ACTIVITY_WAIT,      /* for a device */
    SL_ACTIVITY_EXCHANGE,  /* with other ranks; bytes */
    SL_ACTIVITY_METRIC,
    SL_ACTIVITY_REPORT, /* rows of metrics.jsonl, and what observers do */
    SL_ACTIVITY_VALIDATION,
    SL_ACTIVITY_CHECKPOINT,
    SL_ACTIVITY_WORK,    /* a thread of the pool works for a call */
    SL_ACTIVITY_BACKEND, /* what a backend names itself: trace_begin of its host */
    SL_ACTIVITY_STEP,    /* all calls of a step, with the program's own work between them */
    SL_ACTIVITY_DEVICE,  /* a kernel, copy or fill of which a backend reports the times; bytes */
    SL_ACTIVITY_KINDS
};

/* "forward"; "?" for a number that is none. */
const char *sl_activity_kind_get_name(enum sl_activity_kind kind);

struct sl_activity {
    int64_t begin_ns, end_ns; /* of sl_clock_ns */
    const char *name;         /* of a layer, an operation or a file; NULL: none */
    const char *detail;       /* id of a backend; NULL: none */
    int64_t amount;
    enum sl_activity_kind kind;
};

enum { SL_TRACE_APART = 64 }; /* bytes of a cache line */

/* Activities of one thread, or of one device, in the order of their ends. */
struct sl_trace_track {
    char name[32];
    bool is_device;
    struct sl_activity *activities;
    int64_t count, capacity, dropped; /* dropped: no room was left */
    char apart[SL_TRACE_APART];       /* unused: threads write counts into cache lines of their own */
};

/* One value at one time: bytes of memory. */
struct sl_trace_sample {
    int64_t time_ns, value;
};

enum {
    SL_TRACE_TRACKS = 160,
    SL_TRACE_NAMES = 1024,
    SL_TRACE_NAME_BYTES = 64,
    SL_TRACE_SAMPLES = 1 << 16,
    SL_TRACE_COUNTS = 1 << 12,
    SL_TRACE_NOTE_BYTES = 512,
    SL_TRACE_ENDS = 16,
    SL_TRACE_DEEPEST = 16, /* names of a backend */
    SL_TRACE_SHOWN = 64,   /* activities that a profiler is shown at once, of a thread */
    SL_TRACE_MARKERS = 2
};

/* A value of a device at one time. */
struct sl_trace_count {
    const char *name;
    int64_t time_ns;
    double value;
};

/* What was recorded. */
struct sl_trace {
    struct sl_trace_track tracks[SL_TRACE_TRACKS];
    int32_t track_count;
    struct sl_trace_sample *memory; /* resident bytes of the process */
    int64_t memory_count;
    struct sl_trace_count *counts; /* NULL: there are none */
    int64_t count_count;
    char note[SL_TRACE_NOTE_BYTES]; /* why a device's kernels have no times; "": they have, or there is no device */
    int64_t begin_ns, end_ns;
    int64_t cpu_ns; /* processor time of all threads in between */
};

/* What is seen of a device. */
enum sl_trace_detail {
    SL_TRACE_PHASES, /* a captured step as one activity: it is launched as ever */
    SL_TRACE_CALLS,  /* its calls, which are not captured, and its kernels */
    SL_TRACE_DETAILS
};

/* A profiler that is attached to the process, which shows the activities as they happen. Both are called by the
 * thread of the activity. [any] */
struct sl_trace_marker {
    void (*begin)(enum sl_activity_kind kind, const char *name);
    void (*end)(void);
};

/* ---- recording -------------------------------------------------------------------------------------------------- */

extern _Atomic uint32_t sl_trace_state; /* private: bit 0: activities are recorded; 1: there is a marker; 2: CALLS */
extern volatile uint16_t sl_trace_watchers; /* private: of the probes `seqlstm:begin` and `seqlstm:end` (probe.h) */

/* Is there anything to do where activities begin? */
static inline bool sl_trace_is_watched(void)
{
    return (atomic_load_explicit(&sl_trace_state, memory_order_relaxed) | sl_trace_watchers) != 0;
}

static inline bool sl_trace_is_on(void)
{
    return (atomic_load_explicit(&sl_trace_state, memory_order_relaxed) & 1) != 0;
}

/* Is each call of a device to be seen by itself? */
static inline bool sl_trace_wants_calls(void)
{
    return (atomic_load_explicit(&sl_trace_state, memory_order_relaxed) & 4) != 0;
}

int64_t sl_trace_begin_on(enum sl_activity_kind kind, const char *name);
void sl_trace_end_on(int64_t begin, enum sl_activity_kind kind, const char *name, const char *detail, int64_t amount);

/* A time that means something to sl_trace_end only; 0: nothing is recorded or shown. [any] */
static inline int64_t sl_trace_begin(enum sl_activity_kind kind, const char *name)
{
    return sl_trace_is_watched() ? sl_trace_begin_on(kind, name) : 0;
}

/* `begin`: what sl_trace_begin returned. [any] */
static inline void sl_trace_end(int64_t begin, enum sl_activity_kind kind, const char *name, const char *detail,
                                int64_t amount)
{
    if (begin)
        sl_trace_end_on(begin, kind, name, detail, amount);
}

/* When the recording began, in nanoseconds of sl_clock_ns; 0: nothing is recorded. [any] */
int64_t sl_trace_get_begin(void);
/* What a backend names itself, nested up to SL_TRACE_DEEPEST. The name is copied. [any] */
void sl_trace_push(const char *name);
void sl_trace_pop(const char *detail);
/* A copy of the name that lives as long as the trace; "…" when there are too many. [any] */
const char *sl_trace_keep_name(const char *name);
/* From now on the activities of this thread are those of `name`, which is static. */
void sl_trace_name_thread(const char *name);
/* The track of a device of this name; -1: nothing is recorded, or there are too many. [any] */
int32_t sl_trace_find_device(const char *name);
/* Adds an activity to the track of a device. By the thread that starts and stops. */
void sl_trace_add(int32_t track, const struct sl_activity *activity);
/* Adds a value of a device. By the thread that starts and stops. */
void sl_trace_add_count(const char *name, int64_t time_ns, double value);
/* Notes why a device's kernels have no times. The first note stays. By the thread that starts and stops. */
void sl_trace_note(const char *text);
/* `end` is called by sl_trace_stop, while activities are still taken: by the thread that starts and stops. At most
 * SL_TRACE_ENDS; sl_trace_forget_end with the same context takes it back. */
bool sl_trace_on_end(void (*end)(void *context), void *context);
void sl_trace_forget_end(const void *context);
/* Notes how much memory the process holds, unless it did so a moment ago. By the thread that starts and stops. */
void sl_trace_sample_memory(void);

/* ---- a profile -------------------------------------------------------------------------------------------------- */

/* Records from now on: at most so many activities for each thread. NO_MEMORY; INVALID_ARGUMENT: something is recorded
 * already. The memory is taken as it is used. */
seqlstm_status sl_trace_start(enum sl_trace_detail detail, int64_t per_thread, struct seqlstm_error *err);
/* Records no more. What was recorded is the caller's. */
void sl_trace_stop(struct sl_trace *out_trace);
void sl_trace_deinit(struct sl_trace *trace);

/* Shows activities from now on to a profiler, to at most SL_TRACE_MARKERS of them. Before activities begin. */
void sl_trace_add_marker(const struct sl_trace_marker *marker);
/* Shows them to none any more. */
void sl_trace_remove_markers(void);

#endif
