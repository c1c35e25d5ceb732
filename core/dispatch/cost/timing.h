/* SPDX-License-Identifier: Apache-2.0 */
/* Times several ops for one descriptor in turn. Private to core/dispatch. See tune.h. */
#ifndef SL_DISPATCH_COST_TIMING_H
#define SL_DISPATCH_COST_TIMING_H

#include "base/system/interrupt.h"
#include "dispatch/cost/testbed.h"

struct sl_timed_op {
    const struct sl_backend *backend;
    uint32_t device;
    const struct seqlstm_op *op;
    const struct seqlstm_sizes *sizes;
    /* the result, of a mean batch */
    double forward_ns, backward_ns;
    bool failed; /* its calls returned an error */
    char failure[200];
};

struct sl_timing_request {
    const union seqlstm_any_desc *desc;
    bool on_steps, backward, input_grad, param_grad; /* as for sl_testbed_create */
    const struct sl_profiles *profiles;
    struct sl_pool *pool;
    const struct sl_interrupt *interrupt;
    int64_t budget_ns; /* a target: one probe of each op is always run */
};

/* Fills the results of all timed_ops. Errors: NO_MEMORY, CANCELLED, INVALID_ARGUMENT (see sl_testbed_create). */
seqlstm_status sl_timing_run(const struct sl_timing_request *request, struct sl_timed_op *timed_ops, int32_t count,
                             struct seqlstm_error *err);

#endif
