/* SPDX-License-Identifier: Apache-2.0 */
/* See timeline.h. */
#include "timeline/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timeline/limits.h"
#include "timeline/tree.h"

/* ---- threads and kernels ---------------------------------------------------------------------------------------- */

/* The time in which at least one of the sorted activities ran, inside the updates. Those of the thread that trains are
 * its parts; its waits do not count. */
static double count_busy(const struct sl_timeline *timeline, const struct sl_trace_track *track)
{
    int64_t reached = timeline->begin_ns, busy = 0;
    for (int64_t a = 0; a < track->count; a++) {
        const struct sl_activity *activity = &track->activities[a];
        const bool waits = activity->kind == SL_ACTIVITY_FETCH || activity->kind == SL_ACTIVITY_WAIT ||
                           activity->kind == SL_ACTIVITY_UPDATE || activity->kind == SL_ACTIVITY_STEP;
        const int64_t begin = activity->begin_ns > reached ? activity->begin_ns : reached;
        const int64_t end = activity->end_ns < timeline->end_ns ? activity->end_ns : timeline->end_ns;
        if (waits || end <= begin)
            continue;
        busy += end - begin;
        reached = end;
    }
    return (double)busy;
}

static seqlstm_status list_tracks(struct sl_timeline *timeline, struct seqlstm_error *err)
{
    const struct sl_trace *trace = timeline->request.trace;
    timeline->tracks = SL_ARENA_ARRAY(&timeline->arena, struct sl_timeline_track, (size_t)trace->track_count + 1);
    if (!timeline->tracks)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    for (int32_t t = 0; t < trace->track_count; t++) {
        const struct sl_trace_track *track = &trace->tracks[t];
        struct sl_timeline_track *out = &timeline->tracks[timeline->track_count++];
        *out = (struct sl_timeline_track){.name = track->name, .is_device = track->is_device};
        for (int64_t a = 0; a < track->count; a++)
            out->trains = out->trains || track->activities[a].kind == SL_ACTIVITY_UPDATE;
        sl_timeline_sort(track->activities, track->count);
        out->busy_ns = count_busy(timeline, track);
        timeline->dropped += track->dropped;
    }
    return SEQLSTM_OK;
}

static int compare_kernels(const void *a, const void *b)
{
    const struct sl_timeline_kernel *x = a, *y = b;
    return x->ns > y->ns ? -1 : x->ns < y->ns;
}

static void add_kernel(struct sl_timeline *timeline, int32_t most, const struct sl_activity *activity)
{
    int32_t k = 0;
    while (k < timeline->kernel_count && strcmp(timeline->kernels[k].name, activity->name) != 0)
        k++;
    if (k == most)
        return;
    if (k == timeline->kernel_count)
        timeline->kernels[timeline->kernel_count++] = (struct sl_timeline_kernel){.name = activity->name};
    timeline->kernels[k].count++;
    timeline->kernels[k].ns += (double)(activity->end_ns - activity->begin_ns);
}

static seqlstm_status list_kernels(struct sl_timeline *timeline, struct seqlstm_error *err)
{
    enum { MOST = 512 };
    const struct sl_trace *trace = timeline->request.trace;
    timeline->kernels = SL_ARENA_ARRAY(&timeline->arena, struct sl_timeline_kernel, MOST);
    if (!timeline->kernels)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    for (int32_t t = 0; t < trace->track_count; t++)
        for (int64_t a = 0; a < trace->tracks[t].count; a++) {
            const struct sl_activity *activity = &trace->tracks[t].activities[a];
            if (activity->kind == SL_ACTIVITY_DEVICE && activity->name && activity->begin_ns >= timeline->begin_ns &&
                activity->end_ns <= timeline->end_ns)
                add_kernel(timeline, MOST, activity);
        }
    qsort(timeline->kernels, (size_t)timeline->kernel_count, sizeof *timeline->kernels, compare_kernels);
    return SEQLSTM_OK;
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static seqlstm_status order_parts(struct sl_timeline *timeline, struct seqlstm_error *err)
{
    int32_t *order = SL_ARENA_ARRAY(&timeline->arena, int32_t, (size_t)timeline->part_count + 1);
    if (!order)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    for (int32_t p = 1; p < timeline->part_count; p++) {
        if (timeline->parts[p].depth != 1)
            continue;
        int32_t at = timeline->order_count++;
        for (; at > 0 && sl_timeline_part_get_cost(&timeline->parts[order[at - 1]]) <
                             sl_timeline_part_get_cost(&timeline->parts[p]);
             at--)
            order[at] = order[at - 1];
        order[at] = p;
    }
    timeline->order = order;
    return SEQLSTM_OK;
}

static void summarize(struct sl_timeline *timeline)
{
    const struct sl_timeline_request *request = &timeline->request;
    const struct sl_trace *trace = request->trace;
    const double recorded = (double)(trace->end_ns - trace->begin_ns);
    for (int64_t m = 0; m < trace->memory_count; m++)
        if (trace->memory[m].value > timeline->memory_bytes)
            timeline->memory_bytes = trace->memory[m].value;
    for (int32_t t = 0; t < timeline->track_count; t++)
        if (timeline->tracks[t].is_device && timeline->kernel_count == 0)
            timeline->kernels_missing = trace->note[0] ? trace->note : "the backend does not report them";
    timeline->cpu_share = recorded > 0 ? (double)trace->cpu_ns / recorded : 0;
}

static seqlstm_status fill(struct sl_timeline *timeline, struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_timeline_grow(timeline, err));
    SEQLSTM_TRY(list_tracks(timeline, err));
    SEQLSTM_TRY(list_kernels(timeline, err));
    sl_timeline_judge(timeline);
    SEQLSTM_TRY(order_parts(timeline, err));
    summarize(timeline);
    return SEQLSTM_OK;
}

static seqlstm_status create(const struct sl_timeline_request *request, struct sl_timeline **out_timeline,
                             struct seqlstm_error *err)
{
    struct sl_timeline *timeline = calloc(1, sizeof *timeline);
    if (!timeline)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    timeline->request = *request;
    const seqlstm_status status = fill(timeline, err);
    if (status != SEQLSTM_OK) {
        sl_timeline_destroy(timeline);
        return status;
    }
    *out_timeline = timeline;
    return SEQLSTM_OK;
}

seqlstm_status sl_timeline_create(const struct sl_timeline_request *request, struct sl_timeline **out_timeline,
                                  struct seqlstm_error *err)
{
    struct sl_timeline *timeline = NULL;
    SEQLSTM_TRY(create(request, &timeline, err));
    if (request->captured.trace) {
        struct sl_timeline_request captured = *request;
        captured.trace = request->captured.trace;
        captured.slowdown = request->captured.slowdown;
        const seqlstm_status status = create(&captured, &timeline->captured, err);
        if (status != SEQLSTM_OK && status != SEQLSTM_NOT_FOUND) {
            sl_timeline_destroy(timeline);
            return status;
        }
    }
    *out_timeline = timeline;
    return SEQLSTM_OK;
}

void sl_timeline_destroy(struct sl_timeline *timeline)
{
    if (!timeline)
        return;
    sl_timeline_destroy(timeline->captured);
    sl_arena_deinit(&timeline->arena);
    free(timeline);
}
