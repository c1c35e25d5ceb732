/* SPDX-License-Identifier: Apache-2.0 */
/* How large the buffers of an operation are, and what its backend takes besides. Private to core/dispatch. */
#ifndef SL_DISPATCH_SIZES_H
#define SL_DISPATCH_SIZES_H

#include "dispatch/plan.h"

/* Asks the backend for calls on at most `threads` (0: any number). Errors: its own. */
seqlstm_status sl_sizes_ask(const struct sl_backend *backend, const struct seqlstm_op *op, int32_t threads,
                            struct seqlstm_sizes *out_sizes, struct seqlstm_error *err);

/* Asks again for calls on steps, with batches of the data: what the backends take for themselves in an epoch. Without
 * profiles nothing changes. Errors: NO_MEMORY, those of sl_sizes_ask. */
seqlstm_status sl_sizes_profile(const struct sl_graph *graph, const struct sl_profiles *profiles, struct sl_call *calls,
                                int32_t count, struct seqlstm_error *err);

#endif
