/* SPDX-License-Identifier: Apache-2.0 */
/* See recorder_check.h. */
#include "conformance/recorder_check.h"

#include <math.h>

#include <seqlstm/ext/recorder.h>

#include "base/system/clock.h"
#include "base/value/text.h"
#include "registry/plugin.h"

/* Times of a device may run ahead of the host's by so much. */
enum { AHEAD_NS = 10000000 };

struct watcher {
    const struct seqlstm_recorder *recorder;
    struct seqlstm_instance *instance;
    char *text;
    size_t capacity_bytes;
    bool failed;
    int64_t begin_ns; /* when `start` was called */
    int64_t activities;
};

static void fail(struct watcher *watcher, const char *text)
{
    if (!watcher->failed)
        sl_text_snprintf(watcher->text, watcher->capacity_bytes, "recorder: %s", text);
    watcher->failed = true;
}

static bool is_named(const char *name)
{
    for (const char *at = name; at && *at; at++)
        if ((unsigned char)*at < 0x20)
            return false;
    return name && name[0];
}

static void take_activity(void *context, const struct seqlstm_activity *activity)
{
    struct watcher *watcher = context;
    watcher->activities++;
    if (!SEQLSTM_HAS(activity, end_ns))
        fail(watcher, "an activity whose struct_size leaves out its times");
    else if (!is_named(activity->name))
        fail(watcher, "an activity without a name, or with control characters in it");
    else if (activity->kind < SEQLSTM_ACTIVITY_KERNEL || activity->kind > SEQLSTM_ACTIVITY_FILL)
        fail(watcher, "an activity of a kind that does not exist");
    else if (activity->begin_ns < 0 || activity->end_ns < activity->begin_ns)
        fail(watcher, "an activity that begins before the recording, or ends before it begins");
    else if (activity->end_ns > sl_clock_ns() - watcher->begin_ns + AHEAD_NS)
        fail(watcher, "an activity that ends in the future");
}

static void take_counter(void *context, const struct seqlstm_counter *counter)
{
    struct watcher *watcher = context;
    if (!SEQLSTM_HAS(counter, value) || !is_named(counter->name) || !isfinite(counter->value))
        fail(watcher, "a counter without a name or a finite value");
}

/* Activities of one report. */
static int64_t report(struct watcher *watcher)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_report to = {
        .struct_size = sizeof to, .context = watcher, .activity = take_activity, .counter = take_counter};
    watcher->activities = 0;
    const seqlstm_status status = watcher->recorder->report(watcher->instance, 0, &to, &err);
    if (status != SEQLSTM_OK)
        fail(watcher, err.message[0] ? err.message : "report failed without a reason");
    return watcher->activities;
}

/* Nothing is reported twice, and nothing is left of an earlier recording. */
static void record(struct watcher *watcher, void (*run)(void *context), void *context)
{
    run(context);
    report(watcher);
    if (report(watcher) > 0)
        fail(watcher, "a second report repeats activities");
    run(context);
    watcher->recorder->stop(watcher->instance, 0);
    run(context);
}

bool sl_recorder_check(struct sl_workbench *w, void (*run)(void *context), void *context, char *out_text,
                       size_t capacity_bytes)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct watcher watcher = {.recorder = sl_plugin_get_extension(&w->table, w->instance, SEQLSTM_RECORDER_EXTENSION),
                              .instance = w->instance,
                              .text = out_text,
                              .capacity_bytes = capacity_bytes};
    if (!watcher.recorder)
        return true;
    if (!SEQLSTM_HAS(watcher.recorder, stop) || !watcher.recorder->start || !watcher.recorder->report ||
        !watcher.recorder->stop) {
        fail(&watcher, "a table without start, report or stop");
        return false;
    }
    for (int round = 0; round < 2 && !watcher.failed; round++) {
        watcher.begin_ns = sl_clock_ns();
        const seqlstm_status status = watcher.recorder->start(w->instance, 0, &err);
        if (status == SEQLSTM_OK) {
            record(&watcher, run, context);
            continue;
        }
        if (status != SEQLSTM_UNAVAILABLE)
            fail(&watcher, "start failed with another status than UNAVAILABLE");
        else if (!err.message[0])
            fail(&watcher, "start is UNAVAILABLE without a reason");
        if (report(&watcher) > 0)
            fail(&watcher, "activities although start failed");
    }
    return !watcher.failed;
}
