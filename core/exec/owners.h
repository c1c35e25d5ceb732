/* SPDX-License-Identifier: Apache-2.0 */
/* Which stage of a pipeline owns which parameter and state. */
#ifndef SL_EXEC_OWNERS_H
#define SL_EXEC_OWNERS_H

#include "dispatch/plan/plan.h"

struct sl_owners {
    int32_t *params; /* [param_count] the first stage that uses it: there its gradient is complete; 0: none uses it */
    bool *shared;    /* [param_count] other stages use it, too */
    int32_t *states; /* [state_count] the stage that writes the state that is carried on */
};

/* Of stages whose calls are [bounds[s], bounds[s + 1]). NO_MEMORY. A zeroed struct may be deinited. */
seqlstm_status sl_owners_init(struct sl_owners *owners, const struct sl_plan *plan, const int32_t *bounds,
                              int32_t stages, struct seqlstm_error *err);
void sl_owners_deinit(struct sl_owners *owners);

#endif
