/* SPDX-License-Identifier: Apache-2.0 */
/* The packed weights of a plan, made once for several executors that only predict. */
#ifndef SL_EXEC_PACKED_H
#define SL_EXEC_PACKED_H

#include "base/system/pool.h"
#include "dispatch/plan/plan.h"
#include "exec/params/params.h"

/* Immutable. */
struct sl_packed {
    struct sl_memory *memory;
    char *buffer;     /* as the packed buffer of an executor of the plan; NULL: nothing is packed on the host */
    uint64_t version; /* of the parameters that were packed */
};

/* Packs the weights of all calls that run on the host, on the threads of `pool`; executors with as many threads may use
 * them. `memory` may be NULL. Errors: NO_MEMORY; errors of backends. A zeroed struct may be deinited. */
seqlstm_status sl_packed_init(struct sl_packed *packed, const struct sl_plan *plan, const struct sl_params *params,
                              struct sl_pool *pool, struct sl_memory *memory, struct seqlstm_error *err);
void sl_packed_deinit(struct sl_packed *packed);

/* Does it hold the weights of the call? */
bool sl_packed_has(const struct sl_packed *packed, const struct sl_call *call);

#endif
