/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings that a test makes up, and their timelines. */
#ifndef TIMELINE_FIXTURE_H
#define TIMELINE_FIXTURE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "timeline/timeline.h"

enum { US = 1000 };

static struct sl_activity work[64], helper[8], device[8];
static struct sl_trace_sample memory[] = {{0, 1 << 20}, {500 * US, 3 << 20}};
static struct sl_plan plan = {.memory = {.peak_bytes = 4 << 20}};

static inline struct sl_trace make_trace(void)
{
    memset(work, 0, sizeof work);
    memset(helper, 0, sizeof helper);
    struct sl_trace trace = {.track_count = 3, .memory = memory, .memory_count = 2, .end_ns = 1000 * US};
    trace.tracks[0] = (struct sl_trace_track){.name = "seqlstm", .activities = work};
    trace.tracks[1] = (struct sl_trace_track){.name = "seqlstm-1", .activities = helper, .dropped = 2};
    trace.tracks[2] = (struct sl_trace_track){.name = "cuda:0", .is_device = true, .activities = device};
    return trace;
}

/* Times in microseconds. */
static inline void add(struct sl_trace_track *track, enum sl_activity_kind kind, const char *name, int64_t begin,
                       int64_t end, int64_t amount)
{
    track->activities[track->count++] =
        (struct sl_activity){.begin_ns = begin * US, .end_ns = end * US, .name = name, .amount = amount, .kind = kind};
}

/* Two updates of 100 us: 60 us in the forward pass of `a`, of which 20 us are a copy, 30 us in its backward pass, 6 us
 * waiting for data. 4 us belong to nothing. */
static inline void add_updates(struct sl_trace *trace)
{
    struct sl_trace_track *track = &trace->tracks[0];
    add(track, SL_ACTIVITY_REPORT, NULL, 1, 2, 0); /* before the first update: left out */
    add(track, SL_ACTIVITY_WAIT, NULL, 3, 8, 0);   /* for a step that was started before: so is this update */
    add(track, SL_ACTIVITY_UPDATE, NULL, 2, 9, 50);
    for (int64_t u = 0; u < 2; u++) {
        const int64_t at = 10 + 100 * u;
        add(track, SL_ACTIVITY_FETCH, NULL, at, at + 6, 0);
        add(track, SL_ACTIVITY_COPY, "to the host", at + 20, at + 40, 1000);
        add(track, SL_ACTIVITY_FORWARD, "a", at + 8, at + 68, 50);
        add(track, SL_ACTIVITY_BACKWARD, "a", at + 70, at + 100, 50);
        add(track, SL_ACTIVITY_UPDATE, NULL, at, at + 100, 50);
        add(&trace->tracks[1], SL_ACTIVITY_WORK, NULL, at + 10, at + 50, 0);
    }
    add(track, SL_ACTIVITY_FORWARD, "late", 230, 290, 0); /* of an update that is not complete */
}

static inline struct sl_timeline *make(struct sl_trace *trace, double slowdown)
{
    const struct sl_timeline_request request = {.trace = trace,
                                                .plan = &plan,
                                                .peaks = {.gflops = 100, .gbytes = 0.1},
                                                .slowdown = {.share = slowdown, .low = NAN, .high = NAN}};
    struct sl_timeline *timeline = NULL;
    assert_int_equal(sl_timeline_create(&request, &timeline, NULL), SEQLSTM_OK);
    return timeline;
}

static inline const struct sl_timeline_part *find(const struct sl_timeline *timeline, enum sl_activity_kind kind)
{
    for (int32_t p = 0; p < timeline->part_count; p++)
        if (timeline->parts[p].kind == kind)
            return &timeline->parts[p];
    return NULL;
}

#endif
