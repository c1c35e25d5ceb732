/* SPDX-License-Identifier: Apache-2.0 */
/* The device's time of calls as a capture runs them: without the cost of starting each kernel from the host, which a
 * captured training step does not pay. Private to core/dispatch/cost.
 *
 * A capture holds the calls SL_REPLAYS times. It is launched twice, and the second launch is timed by events on the
 * device: the first one keeps it busy meanwhile, so that the clocks are up and the launch itself is not timed.
 */
#ifndef SL_DISPATCH_COST_REPLAY_H
#define SL_DISPATCH_COST_REPLAY_H

#include "registry/lane.h"

enum { SL_REPLAYS = 4 };

/* Starts the calls once. */
typedef seqlstm_status sl_replay_calls_fn(void *context, struct seqlstm_error *err);

/* Records the calls. Errors: those of the device, which may be unable to capture them; it then works as before. */
seqlstm_status sl_replay_record(struct sl_domain *domain, sl_replay_calls_fn *calls, void *context, void **out_capture,
                                struct seqlstm_error *err);
/* The time of the calls, nanoseconds. */
seqlstm_status sl_replay_time(struct sl_domain *domain, void *capture, double *out_ns, struct seqlstm_error *err);

#endif
