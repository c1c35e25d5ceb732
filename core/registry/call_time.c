/* SPDX-License-Identifier: Apache-2.0 */
/* See call_time.h. The clock of a device is set against the host's once in each recording, when the device has nothing
 * to do. Events are made when they are first needed, and used again. A failure of an event only loses what would have
 * been shown: the work itself reports it, too. */
#include "registry/call_time.h"

#include <stdlib.h>

#include <seqlstm/ext/draft/memory.h>

#include "registry/device_call.h"
#include "registry/lane.h"
#include "registry/device_recorder.h"

enum { PENDING = 4096 };

struct pending {
    void *begin, *end; /* events; NULL: not made yet */
    struct sl_activity activity;
    bool has_ended;
};

struct sl_device_clock {
    void *base;       /* the event that happened at base_ns */
    int64_t base_ns;  /* on the host */
    int64_t trace_ns; /* begin of the recording that it was set for */
    int32_t track;
    struct sl_device_recorder recorder; /* of what the device does by itself */
    int32_t count;
    struct pending pending[PENDING];
};

static bool has_events(const struct sl_domain *domain)
{
    const struct seqlstm_streams *streams = domain->table->streams;
    return streams->event_create && streams->event_destroy && streams->event_record && streams->event_elapsed;
}

/* Waits for the domain's queue. sl_domain_finish, which settles times, calls this file. */
static bool finish_queue(struct sl_domain *domain)
{
    struct sl_lane queue = {.domain = domain, .stream = domain->queue.queue.native_stream};
    return sl_lane_finish(&queue, NULL) == SEQLSTM_OK;
}

/* The recording ends: takes what the device still has to say. */
static void end_recording(void *context)
{
    struct sl_domain *domain = context;
    if (finish_queue(domain))
        sl_call_time_settle(domain);
    sl_device_recorder_stop(&domain->clock->recorder);
}

/* Sets the clock, unless that has been done for this recording. */
static bool set_clock(struct sl_domain *domain)
{
    const int64_t trace_ns = sl_trace_get_begin();
    struct sl_device_clock *clock = domain->clock;
    if (!trace_ns || domain->is_capturing || !has_events(domain))
        return false;
    if (clock && clock->trace_ns == trace_ns)
        return true;
    if (!clock && (clock = domain->clock = calloc(1, sizeof *clock)) == NULL)
        return false;
    clock->count = 0;
    if (!clock->base && sl_event_create(domain, &clock->base, NULL) != SEQLSTM_OK)
        return false;
    if (!finish_queue(domain) || sl_event_record(domain, clock->base, NULL) != SEQLSTM_OK || !finish_queue(domain))
        return false;
    clock->base_ns = sl_clock_ns();
    clock->track = sl_trace_find_device(domain->name);
    clock->trace_ns = trace_ns;
    if (sl_trace_on_end(end_recording, domain) && sl_trace_wants_calls())
        sl_device_recorder_start(&clock->recorder, domain->table, domain->instance, domain->device, clock->track);
    return true;
}

static int32_t begin_pending(struct sl_domain *domain)
{
    if (!domain->table || !sl_trace_is_on() || !set_clock(domain))
        return -1;
    if (domain->clock->count == PENDING && finish_queue(domain))
        sl_call_time_settle(domain);
    if (domain->clock->count == PENDING)
        return -1;
    struct pending *pending = &domain->clock->pending[domain->clock->count];
    if (!pending->begin && (sl_event_create(domain, &pending->begin, NULL) != SEQLSTM_OK ||
                            sl_event_create(domain, &pending->end, NULL) != SEQLSTM_OK))
        return -1;
    if (!pending->end || sl_event_record(domain, pending->begin, NULL) != SEQLSTM_OK)
        return -1;
    pending->has_ended = false;
    return domain->clock->count++;
}

struct sl_call_time sl_call_time_begin_on(struct sl_domain *domain, enum sl_activity_kind kind, const char *name)
{
    const int32_t pending = begin_pending(domain); /* before the call's time begins */
    return (struct sl_call_time){.begin_ns = sl_trace_begin(kind, name), .pending = pending};
}

void sl_call_time_end_on(const struct sl_call_time *time, struct sl_domain *domain, enum sl_activity_kind kind,
                         const char *name, const char *detail, int64_t amount)
{
    sl_trace_end(time->begin_ns, kind, name, detail, amount);
    if (time->pending < 0)
        return;
    struct pending *pending = &domain->clock->pending[time->pending];
    pending->activity = (struct sl_activity){.name = name, .detail = detail, .amount = amount, .kind = kind};
    pending->has_ended = sl_event_record(domain, pending->end, NULL) == SEQLSTM_OK;
}

static void settle(struct sl_domain *domain, struct pending *pending)
{
    const struct sl_device_clock *clock = domain->clock;
    double begin, end;
    if (!pending->has_ended || sl_event_elapsed(domain, clock->base, pending->begin, &begin, NULL) != SEQLSTM_OK ||
        sl_event_elapsed(domain, clock->base, pending->end, &end, NULL) != SEQLSTM_OK)
        return;
    pending->activity.begin_ns = clock->base_ns + (int64_t)begin;
    pending->activity.end_ns = clock->base_ns + (int64_t)end;
    sl_trace_add(clock->track, &pending->activity);
}

void sl_call_time_settle(struct sl_domain *domain)
{
    struct sl_device_clock *clock = domain->clock;
    for (int32_t p = 0; p < clock->count; p++)
        settle(domain, &clock->pending[p]);
    clock->count = 0;
    sl_device_recorder_report(&clock->recorder);
}

void sl_call_time_close(struct sl_domain *domain)
{
    struct sl_device_clock *clock = domain->clock;
    if (!clock)
        return;
    sl_trace_forget_end(domain);
    sl_device_recorder_stop(&clock->recorder);
    sl_event_destroy(domain, clock->base);
    for (int32_t p = 0; p < PENDING; p++) {
        sl_event_destroy(domain, clock->pending[p].begin);
        sl_event_destroy(domain, clock->pending[p].end);
    }
    free(clock);
    domain->clock = NULL;
}
