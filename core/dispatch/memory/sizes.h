/* SPDX-License-Identifier: Apache-2.0 */
/* What backends allocate for themselves, besides the buffers of their operations. Private to core/dispatch. */
#ifndef SL_DISPATCH_MEMORY_SIZES_H
#define SL_DISPATCH_MEMORY_SIZES_H

#include "base/batch/profile.h"
#include "dispatch/plan/plan.h"

/* Sets own_bytes of the calls on steps: what the backends allocate for themselves in an epoch of the data. Changes
 * nothing without profiles. Errors: NO_MEMORY; the backends'. */
seqlstm_status sl_sizes_profile(const struct sl_graph *graph, const struct sl_profiles *profiles, struct sl_call *calls,
                                int32_t count, struct seqlstm_error *err);

#endif
