/* SPDX-License-Identifier: Apache-2.0 */
/* See device_recorder.h. */
#include "registry/device_recorder.h"

#include <math.h>

#include "base/system/trace.h"
#include "base/value/text.h"
#include "registry/device_call.h"
#include "registry/watch/plugin_text.h"

enum { REPORTS_APART_NS = 50000000 };

static bool has_extension(const struct seqlstm_recorder *extension)
{
    return extension && SEQLSTM_HAS(extension, stop) && extension->start && extension->report && extension->stop;
}

/* A name of the plugin, as the trace keeps it. */
static const char *keep_name(const char *name)
{
    char text[SL_TRACE_NAME_BYTES];
    sl_text_snprintf(text, sizeof text, "%s", name && name[0] ? name : "?");
    sl_plugin_text_clean(text, sizeof text);
    return sl_trace_keep_name(text);
}

static void take_activity(void *context, const struct seqlstm_activity *activity)
{
    const struct sl_device_recorder *recorder = context;
    if (!SEQLSTM_HAS(activity, end_ns) || activity->begin_ns < 0 || activity->end_ns < activity->begin_ns)
        return;
    const struct sl_activity taken = {.begin_ns = recorder->zero_ns + activity->begin_ns,
                                      .end_ns = recorder->zero_ns + activity->end_ns,
                                      .name = keep_name(activity->name),
                                      .detail = recorder->table->id,
                                      .amount = SEQLSTM_HAS(activity, bytes) ? (int64_t)activity->bytes : 0,
                                      .kind = SL_ACTIVITY_DEVICE};
    sl_trace_add(recorder->track, &taken);
}

static void take_counter(void *context, const struct seqlstm_counter *counter)
{
    (void)context;
    if (SEQLSTM_HAS(counter, value) && isfinite(counter->value))
        sl_trace_add_count(keep_name(counter->name), sl_clock_ns(), counter->value);
}

void sl_device_recorder_start(struct sl_device_recorder *recorder, const struct seqlstm_backend *table,
                              struct seqlstm_instance *instance, uint32_t device, int32_t track)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    seqlstm_status status;
    *recorder = (struct sl_device_recorder){.table = table, .instance = instance, .device = device, .track = track};
    recorder->extension = sl_plugin_get_extension(table, instance, SEQLSTM_RECORDER_EXTENSION);
    if (!has_extension(recorder->extension)) {
        recorder->extension = NULL;
        sl_trace_note("the backend does not report them");
        return;
    }
    SL_DEVICE_RUN(table, SL_FUNCTION_RECORDER, status = recorder->extension->start(instance, device, &err));
    recorder->zero_ns = recorder->reported_ns = sl_clock_ns();
    status = sl_plugin_check_status(table, SL_FUNCTION_RECORDER, status, &err);
    if (status != SEQLSTM_OK)
        sl_trace_note(err.message);
}

static void take(struct sl_device_recorder *recorder)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    const struct seqlstm_report report = {
        .struct_size = sizeof report, .context = recorder, .activity = take_activity, .counter = take_counter};
    seqlstm_status status;
    SL_DEVICE_RUN(recorder->table, SL_FUNCTION_RECORDER,
                  status = recorder->extension->report(recorder->instance, recorder->device, &report, &err));
    if (sl_plugin_check_status(recorder->table, SL_FUNCTION_RECORDER, status, &err) != SEQLSTM_OK)
        sl_trace_note(err.message);
    recorder->reported_ns = sl_clock_ns();
}

void sl_device_recorder_report(struct sl_device_recorder *recorder)
{
    if (recorder->extension && sl_clock_ns() >= recorder->reported_ns + REPORTS_APART_NS)
        take(recorder);
}

void sl_device_recorder_stop(struct sl_device_recorder *recorder)
{
    if (!recorder->extension)
        return;
    take(recorder);
    SL_DEVICE_RUN(recorder->table, SL_FUNCTION_RECORDER,
                  recorder->extension->stop(recorder->instance, recorder->device));
    *recorder = (struct sl_device_recorder){.extension = NULL};
}
