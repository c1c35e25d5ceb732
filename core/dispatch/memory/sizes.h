/* SPDX-License-Identifier: Apache-2.0 */
/* What backends take for themselves besides the buffers of their operations. Private to core/dispatch. */
#ifndef SL_DISPATCH_MEMORY_SIZES_H
#define SL_DISPATCH_MEMORY_SIZES_H

#include "base/batch/profile.h"
#include "dispatch/plan/plan.h"

/* Asks the operations of calls on steps again, with batches of the data: what the backends take for themselves in an
 * epoch. Without profiles nothing changes. Errors: NO_MEMORY; those of op_sizes. */
seqlstm_status sl_sizes_profile(const struct sl_graph *graph, const struct sl_profiles *profiles, struct sl_call *calls,
                                int32_t count, struct seqlstm_error *err);

#endif
