/* SPDX-License-Identifier: Apache-2.0 */
/* The backend cuda-cudnn: recurrent layers on the RNN functions of cuDNN. Start here; README.md says what it can do.
 *
 *   backend.c      the vtable: checks arguments, runs calls
 *   supports.c     what is accepted and the variants; needs no device
 *   library.[ch]   cuDNN, opened at run time
 *   handles.[ch]   its handles
 *   kept.[ch]      what is slow to obtain: compiled networks, operations that have passed their trial
 *   network.[ch]   a descriptor's layers as networks of cuDNN: descriptors, sizes, positions of parameters
 *   op.c           creates an operation
 *   trial.[ch]     runs it once, since cuDNN refuses some operations only then
 *   pair.c         can one algorithm run backward after another has run forward?
 *   elements.[ch]  converts the host's elements to cuDNN's, which may have 16 bits
 *   weights.c      copies parameters to cuDNN's weight space, and gradients back
 *   places.[ch]    the layout of workspace and reserve
 *   edges.[ch]     gives cuDNN the host's buffers
 *   binding.c forward.c backward.c   one shape, and its calls
 *
 * A call passes from backend.c to cdn_forward or cdn_backward, which run the networks of the binding's plan. If
 * cuDNN refuses the shape, backend.c repeats the call under the next plan. Host code never reads or writes device
 * memory; it only passes addresses. All work is ordered on the queue's stream, and the host waits for none of it. */
#ifndef CDN_PLUGIN_H
#define CDN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "common/cuda_domain.h"
#include "handles.h"
#include "kept.h"
#include "library.h"
#include "network.h"
#include "places.h"

#define CDN_ID "cuda-cudnn"

struct seqlstm_instance {
    struct gpu_domain domain; /* first: common/cuda_domain.h */
    struct cdn_handles handles;
    struct cdn_kept kept;
    bool captures; /* the option `capture` */
};

/* Plans of an operation: the one that its variant names, and the standard algorithm for shapes that the first
 * refuses. */
enum { CDN_PLANS = 2 };

/* A variant's name, parsed: "small_h", "small_h+standard_layers". */
struct cdn_variant {
    cudnnRNNAlgo_t forward, backward;
    bool layers; /* one call per layer */
};

struct seqlstm_op {
    struct seqlstm_instance *instance;
    int32_t ordinal;
    struct seqlstm_recurrent_desc desc;
    struct cdn_shape shape; /* the largest batch */
    int32_t plan_count;
    struct cdn_plan plans[CDN_PLANS];
    bool mixed; /* after forward under the first plan, backward runs under the second (pair.c) */
    uint64_t workspace_bytes, reserve_bytes, packed_bytes;
};

/* The state of a binding under one plan. */
struct cdn_run {
    bool usable;                  /* false: cuDNN refused this shape */
    struct cdn_session *sessions; /* [plan.count] */
    struct cdn_places places;
};

struct seqlstm_binding {
    const struct seqlstm_op *op;
    struct cdn_handle *handle;
    struct cdn_shape shape;
    struct cdn_run runs[CDN_PLANS];
    int32_t active;      /* the plan in use; only grows */
    void *own_workspace; /* allocated if cuDNN needs more for a shape than for larger ones */
    uint64_t own_workspace_bytes;
};

/* The plan under which backward of the binding runs. */
static inline int32_t cdn_backward_plan(const struct seqlstm_binding *binding)
{
    return binding->op->mixed && binding->active == 0 ? 1 : binding->active;
}

/* One call, forward or backward. */
struct cdn_call {
    struct seqlstm_binding *binding;
    const struct seqlstm_op *op;
    const struct cdn_plan *plan;
    const struct cdn_run *run;
    void *stream;
    void *const *slots;
    void *const *grads; /* backward only */
    uint32_t parts;
    unsigned char *workspace, *reserve;
    const unsigned char *packed;
    bool again; /* forward is repeated within backward: the slots that it writes must not change */
};

static inline void cdn_call_set_plan(struct cdn_call *call, int32_t plan)
{
    call->plan = &call->op->plans[plan];
    call->run = &call->binding->runs[plan];
}

/* supports.c. `device_class` "cuda:sm_90". */
seqlstm_status cdn_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                            struct seqlstm_error *err);
bool cdn_variant_find(const char *name, struct cdn_variant *out_variant);
const char *cdn_algorithm_get_name(cudnnRNNAlgo_t algorithm);

/* op.c. Errors: UNSUPPORTED with cuDNN's reason, NO_MEMORY, DEVICE. [control] */
seqlstm_status cdn_op_create(struct seqlstm_instance *instance, uint32_t device, const struct seqlstm_desc *desc,
                             const char *variant, struct seqlstm_op **out_op, struct seqlstm_error *err);
void cdn_op_destroy(struct seqlstm_op *op); /* may be NULL */

/* trial.c: runs once what the variant says, for an operation whose sizes are known. UNSUPPORTED if cuDNN refuses, or if
 * a pair of algorithms is not compatible. [control] */
seqlstm_status cdn_trial_run(const struct seqlstm_op *op, struct seqlstm_error *err);

/* pair.c: does cuDNN need equally many bytes under both plans for this shape? Otherwise UNSUPPORTED, with the
 * numbers. */
seqlstm_status cdn_pair_check_sizes(const struct seqlstm_binding *binding, struct seqlstm_error *err);

/* weights.c: copies every parameter to the weight spaces of each plan. [queue] */
seqlstm_status cdn_weights_pack(const struct seqlstm_op *op, void *stream, void *const *slots, unsigned char *packed,
                                struct seqlstm_error *err);
/* Call before BackwardWeights: clears the gradients, or copies the earlier ones if they are added to. */
seqlstm_status cdn_gradients_begin(const struct cdn_call *call, struct seqlstm_error *err);
/* Call after it: adds the gradients to what is to be copied; if they are added to float32 ones, copies them itself. */
seqlstm_status cdn_gradients_end(const struct cdn_call *call, struct cdn_ranges *out, struct seqlstm_error *err);

/* binding.c. UNSUPPORTED if cuDNN refuses the shape under every plan. [queue] */
seqlstm_status cdn_binding_create(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                  const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                  struct seqlstm_error *err);
/* As in struct seqlstm_rebind. */
seqlstm_status cdn_binding_renew(struct seqlstm_binding *binding, const struct seqlstm_bind *bind,
                                 struct seqlstm_error *err);
void cdn_binding_destroy(struct seqlstm_binding *binding);

/* forward.c, backward.c: run under the plan of the call. UNSUPPORTED if cuDNN refuses; the outputs are then
 * undefined. */
seqlstm_status cdn_forward(const struct cdn_call *call, struct seqlstm_error *err);
seqlstm_status cdn_backward(const struct cdn_call *call, struct seqlstm_error *err);

#endif
