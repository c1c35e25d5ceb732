/* SPDX-License-Identifier: Apache-2.0 */
/* Activities of calls (base/system/trace.h), with the times of the device where they run on one.
 *
 *   struct sl_call_time time = sl_call_time_begin(domain, SL_ACTIVITY_FORWARD, name);
 *   ... the call ...
 *   sl_call_time_end(&time, domain, SL_ACTIVITY_FORWARD, name, backend, rows);
 *
 * On a device the host's activity is the time that starting the call takes. The device's own is measured between two
 * events, and put on the track of the domain when the domain has finished: sl_domain_finish does that.
 */
#ifndef SL_REGISTRY_CALL_TIME_H
#define SL_REGISTRY_CALL_TIME_H

#include "base/system/trace.h"
#include "registry/domain.h"

struct sl_call_time {
    int64_t begin_ns; /* 0: nothing is recorded */
    int32_t pending;  /* on the device; -1: none */
};

struct sl_call_time sl_call_time_begin_on(struct sl_domain *domain, enum sl_activity_kind kind, const char *name);
void sl_call_time_end_on(const struct sl_call_time *time, struct sl_domain *domain, enum sl_activity_kind kind,
                         const char *name, const char *detail, int64_t amount);

static inline struct sl_call_time sl_call_time_begin(struct sl_domain *domain, enum sl_activity_kind kind,
                                                     const char *name)
{
    if (sl_trace_is_watched())
        return sl_call_time_begin_on(domain, kind, name);
    return (struct sl_call_time){.pending = -1};
}

static inline void sl_call_time_end(const struct sl_call_time *time, struct sl_domain *domain,
                                    enum sl_activity_kind kind, const char *name, const char *detail, int64_t amount)
{
    if (time->begin_ns)
        sl_call_time_end_on(time, domain, kind, name, detail, amount);
}

/* All work of the domain has finished: writes what the device did. Private to core/registry. */
void sl_call_time_settle(struct sl_domain *domain);
/* Releases the events of the domain. Private to core/registry. */
void sl_call_time_close(struct sl_domain *domain);

#endif
