/* SPDX-License-Identifier: Apache-2.0 */
/* See tree.h. Activities come in the order of their ends; sorted by their begins, each one's parent is the last one
 * before it that has not ended. */
#include "timeline/tree.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, PARTS_MOST = 4096 };

static int compare(const void *a, const void *b)
{
    const struct sl_activity *x = a, *y = b;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns > y->end_ns ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

void sl_timeline_sort(struct sl_activity *activities, int64_t count)
{
    qsort(activities, (size_t)count, sizeof *activities, compare);
}

/* The track on which updates were recorded; NULL: there is none. */
static const struct sl_trace_track *find_training(const struct sl_trace *trace)
{
    for (int32_t t = 0; t < trace->track_count; t++)
        for (int64_t a = 0; a < trace->tracks[t].count; a++)
            if (trace->tracks[t].activities[a].kind == SL_ACTIVITY_UPDATE)
                return &trace->tracks[t];
    return NULL;
}

/* What a step itself does. Its calls are parts of the update. */
static const char *const between_calls = "between calls";

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The part below `parent` that the activity belongs to; -1 where there are too many. */
static int32_t find_part(struct sl_timeline *timeline, int32_t parent, const struct sl_activity *activity)
{
    for (int32_t p = parent + 1; p < timeline->part_count; p++) {
        const struct sl_timeline_part *part = &timeline->parts[p];
        if (part->parent == parent && part->kind == activity->kind && is_same(part->name, activity->name) &&
            is_same(part->backend, activity->detail))
            return p;
    }
    if (timeline->part_count == PARTS_MOST)
        return -1;
    timeline->parts[timeline->part_count] = (struct sl_timeline_part){.kind = activity->kind,
                                                                      .name = activity->name,
                                                                      .backend = activity->detail,
                                                                      .parent = parent,
                                                                      .depth = timeline->parts[parent].depth + 1};
    return timeline->part_count++;
}

/* Does the update at [0] compute anything? On a device the first one that is recorded only waits for a step that was
 * started before. */
static bool computes(const struct sl_activity *activities, int64_t count)
{
    for (int64_t a = 1; a < count && activities[a].begin_ns < activities[0].end_ns; a++)
        if (activities[a].kind >= SL_ACTIVITY_SAMPLE && activities[a].kind <= SL_ACTIVITY_COPY)
            return true;
    return false;
}

/* The part of the activity, whose time is taken from the one around it: `above`. -1: there are too many parts, and the
 * time stays where it is. */
static int32_t add_below(struct sl_timeline *timeline, int32_t above, const struct sl_activity *activity)
{
    const double ns = (double)(activity->end_ns - activity->begin_ns);
    struct sl_timeline_part *around = &timeline->parts[above];
    struct sl_activity named = *activity;
    if (activity->kind == SL_ACTIVITY_STEP)
        named.name = between_calls;
    const int32_t part = find_part(timeline, around->kind == SL_ACTIVITY_STEP ? around->parent : above, &named);
    if (part < 0)
        return part;
    around->self_ns -= ns;
    if (around->kind == SL_ACTIVITY_STEP)
        around->ns -= ns;
    return part;
}

/* Puts the sorted activities into the tree. What lies outside of updates is left out. */
static void add_all(struct sl_timeline *timeline, const struct sl_activity *activities, int64_t count)
{
    int32_t open[DEEPEST];
    int64_t ends[DEEPEST];
    int depth = 0;
    for (int64_t a = 0; a < count; a++) {
        const struct sl_activity *activity = &activities[a];
        const double ns = (double)(activity->end_ns - activity->begin_ns);
        while (depth > 0 && activity->begin_ns >= ends[depth - 1])
            depth--;
        if ((depth == 0) != (activity->kind == SL_ACTIVITY_UPDATE) || depth == DEEPEST)
            continue;
        if ((depth == 0 && !computes(activity, count - a)) || activity->kind == SL_ACTIVITY_WORK)
            continue; /* work of this thread for a call is the call itself */
        const int32_t p = depth == 0 ? 0 : add_below(timeline, open[depth - 1], activity);
        if (p < 0)
            continue;
        struct sl_timeline_part *part = &timeline->parts[p];
        part->count++;
        part->amount += activity->amount;
        part->ns += ns;
        part->self_ns += ns;
        if (depth == 0 && timeline->begin_ns == 0)
            timeline->begin_ns = activity->begin_ns;
        if (depth == 0)
            timeline->end_ns = activity->end_ns;
        open[depth] = p;
        ends[depth++] = activity->end_ns;
    }
}

seqlstm_status sl_timeline_grow(struct sl_timeline *timeline, struct seqlstm_error *err)
{
    const struct sl_trace_track *track = find_training(timeline->request.trace);
    if (!track)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND, "no update was recorded");
    timeline->parts = SL_ARENA_ARRAY(&timeline->arena, struct sl_timeline_part, PARTS_MOST);
    if (!timeline->parts)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a profile");
    timeline->parts[0] = (struct sl_timeline_part){.kind = SL_ACTIVITY_UPDATE, .parent = -1};
    timeline->part_count = 1;
    sl_timeline_sort(track->activities, track->count);
    add_all(timeline, track->activities, track->count);
    if (timeline->parts[0].count == 0)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND, "no update was recorded");
    timeline->updates = timeline->parts[0].count;
    timeline->rows = timeline->parts[0].amount;
    timeline->ns = (double)(timeline->end_ns - timeline->begin_ns);
    timeline->unattributed_ns = timeline->ns - (timeline->parts[0].ns - timeline->parts[0].self_ns);
    return SEQLSTM_OK;
}
