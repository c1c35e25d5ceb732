/* SPDX-License-Identifier: Apache-2.0 */
/* Asks backends how much memory their operations really take (extension footprint/1), and checks the answers. */
#ifndef SL_DISPATCH_MEMORY_FOOTPRINT_QUERY_H
#define SL_DISPATCH_MEMORY_FOOTPRINT_QUERY_H

#include <seqlstm/backend.h>
#include <seqlstm/ext/footprint.h>

#include "dispatch/plan/call.h"

enum { SL_IDLE_ROOM = 1024 }; /* ranges of a buffer that a backend is asked for; 64 members with some layers each */

/* An operation of an opened backend, and what its op_sizes answered. All borrowed. */
struct sl_footprint {
    const struct seqlstm_backend *table;
    struct seqlstm_instance *instance;
    const struct seqlstm_op *op;
    const struct seqlstm_sizes *sizes;
};

static inline struct sl_footprint sl_footprint_of_call(const struct sl_call *call)
{
    return (struct sl_footprint){.table = sl_backend_get_table(call->backend),
                                 .instance = sl_backend_get_instance(call->backend),
                                 .op = call->op,
                                 .sizes = &call->sizes};
}

/* Allocates room for idle ranges; NO_MEMORY. sl_idle_deinit also takes a zeroed struct. */
seqlstm_status sl_idle_init(struct seqlstm_idle *idle, struct seqlstm_error *err);
void sl_idle_deinit(struct seqlstm_idle *idle);

/* Which bytes of workspace and reserve calls on `axis` (NULL: on the largest batch) leave untouched: none, if the
 * backend does not say. Replaces what `idle` held. Errors: the backend's; INTERNAL: ranges out of order, beyond their
 * buffer, or more than there is room for. */
seqlstm_status sl_footprint_ask_idle(const struct sl_footprint *footprint, const struct seqlstm_axis *axis,
                                     struct seqlstm_idle *idle, struct seqlstm_error *err);

/* Bytes that the backend takes outside the host's buffers for these batches: 0, if it does not say. Errors: the
 * backend's. */
seqlstm_status sl_footprint_ask_own(const struct sl_footprint *footprint, const struct seqlstm_axis *const *batches,
                                    uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                                    struct seqlstm_error *err);

#endif
