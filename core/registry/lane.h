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

#endif
