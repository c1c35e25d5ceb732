/* SPDX-License-Identifier: Apache-2.0 */
/* A testbed: buffers and batches on which the candidates for an operation are timed in turn.
 *
 * All candidates of one descriptor and one memory domain share the buffers, which hold small random numbers: only one
 * runs at a time, and the next one overwrites its results. For core/dispatch and core/conformance. [one thread at
 * a time]
 */
#ifndef SL_DISPATCH_COST_TESTBED_H
#define SL_DISPATCH_COST_TESTBED_H

#include "base/system/pool.h"
#include "base/batch/profile.h"
#include "registry/registry.h"

struct sl_testbed;

struct sl_testbed_request {
    const union seqlstm_any_desc *desc;
    bool on_steps;   /* rows are steps, not sequences */
    bool backward;   /* backward is run too, for the gradients of */
    bool input_grad; /*   the inputs, and */
    bool param_grad; /*   the parameters */
    bool replays;    /* calls that a device can capture are timed as captures run them (replay.h) */
    const struct sl_profiles *profiles;
    int32_t profile_first, profile_count; /* which of them */
    int64_t steps_most;                   /* longer sequences are cut */
    const struct seqlstm_sizes *sizes;    /* the largest of all candidates */
    const struct sl_backend *backend;     /* the buffers lie in the memory domain of this backend, */
    uint32_t device;                      /*   on this device */
    struct sl_pool *pool;                 /* for the host's domain; NULL: one thread */
};

/* Errors: NO_MEMORY, INVALID_ARGUMENT (the operation cannot be timed). */
seqlstm_status sl_testbed_create(const struct sl_testbed_request *request, struct sl_testbed **out_testbed,
                                 struct seqlstm_error *err);
void sl_testbed_destroy(struct sl_testbed *testbed);

/* Rows of the p-th profile, after cutting. */
int64_t sl_testbed_get_rows(const struct sl_testbed *testbed, int32_t profile);

/* A binding of the op at the p-th profile; destroyed by the caller. Errors: the plugin's. */
seqlstm_status sl_testbed_bind(struct sl_testbed *testbed, const struct sl_backend *backend,
                               const struct seqlstm_op *op, int32_t profile, struct seqlstm_binding **out_binding,
                               struct seqlstm_error *err);

/* Runs one step: pack, forward and backward, or only forward. In training, where weights change with every step,
 * packing counts as part of forward; otherwise it is not timed. With `replays` the times are those of the device alone.
 * Errors: the plugin's. */
seqlstm_status sl_testbed_run(struct sl_testbed *testbed, const struct sl_backend *backend, const struct seqlstm_op *op,
                              const struct seqlstm_sizes *sizes, struct seqlstm_binding *binding,
                              double *out_forward_ns, double *out_backward_ns, struct seqlstm_error *err);

#endif
