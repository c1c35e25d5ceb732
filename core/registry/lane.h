/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: a second stream of a memory domain. It copies from pinned memory on the host while the domain's queue
 * computes.
 *
 * Invariants:
 *  1. A lane and the queue are not ordered: the caller uses copies only after sl_lane_finish, and copies only to where
 * no running call reads.
 *  2. Pinned memory does not change between sl_lane_upload and sl_lane_finish. One thread at a time.
 */
#ifndef SL_REGISTRY_LANE_H
#define SL_REGISTRY_LANE_H

#include "registry/domain.h"

struct sl_lane {
    struct sl_domain *domain; /* not the host; NULL: closed */
    void *stream;
};

seqlstm_status sl_lane_open(struct sl_lane *lane, struct sl_domain *domain, struct seqlstm_error *err);
/* Waits for its copies. A zeroed struct is fine. */
void sl_lane_close(struct sl_lane *lane);

/* Starts a copy from pinned memory to the device, and returns. */
seqlstm_status sl_lane_upload(struct sl_lane *lane, void *to, const void *pinned, int64_t bytes,
                              struct seqlstm_error *err);
/* Returns when all copies have finished; failures appear here. A closed lane has none. */
seqlstm_status sl_lane_finish(struct sl_lane *lane, struct seqlstm_error *err);

/* ---- events: points in the work of a queue or a lane ---- */

/* Each needs the table's functions for events (sl_domain_has_captures). */
seqlstm_status sl_event_create(struct sl_domain *domain, void **out_event, struct seqlstm_error *err);
void sl_event_destroy(struct sl_domain *domain, void *event); /* NULL is fine */

/* The event happens when all work that was started before has finished: on the queue, or on the lane. */
seqlstm_status sl_event_record(struct sl_domain *domain, void *event, struct seqlstm_error *err);
seqlstm_status sl_event_record_lane(struct sl_lane *lane, void *event, struct seqlstm_error *err);
/* Work that is started on the queue from now on runs after the event. */
seqlstm_status sl_event_wait(struct sl_domain *domain, void *event, struct seqlstm_error *err);
/* Returns when the event has happened. Failures of the work before it are reported here. */
seqlstm_status sl_event_synchronize(struct sl_domain *domain, void *event, struct seqlstm_error *err);
/* Nanoseconds on the device between two events that have happened. */
seqlstm_status sl_event_elapsed(struct sl_domain *domain, void *begin, void *end, double *out_ns,
                                struct seqlstm_error *err);

#endif
