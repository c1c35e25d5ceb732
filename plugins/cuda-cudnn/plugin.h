/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of cuda-cudnn: recurrent layers on cuDNN's RNN functions.
 *
 *   backend.c      the ABI: table, arguments, the way of a call
 *   supports.c     what is accepted, by rules alone; the variants
 *   library.[ch]   cuDNN, opened at run time
 *   handles.[ch]   its handles
 *   network.[ch]   a descriptor's layers as networks of cuDNN: descriptors, sizes, where parameters lie
 *   op.c           making of an operation
 *   trial.[ch]     a run of it, since some refusals come no earlier
 *   pair.c         may one algorithm run back what another has run forward?
 *   elements.[ch]  the host's elements as cuDNN's, which may have 16 bits
 *   weights.c      parameters into cuDNN's weight space, gradients out of it
 *   places.[ch]    what lies where in workspace and reserve
 *   edges.[ch]     the host's buffers as cuDNN takes them
 *   binding.c forward.c backward.c   one shape, and the work
 *
 * Host code never touches device memory: it hands addresses on. All work is ordered on the queue's stream; nothing
 * waits for it.
 */
#ifndef CDN_PLUGIN_H
#define CDN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "common/cuda_domain.h"
#include "handles.h"
#include "library.h"
#include "network.h"
#include "places.h"

#define CDN_ID "cuda-cudnn"

struct seqlstm_instance {
    struct gpu_domain domain; /* first: common/cuda_domain.h */
    struct cdn_handles handles;
    bool captures; /* the option `capture` */
};

/* Plans of an op: what the variant says, and the standard algorithm for shapes that the variant's refuses. */
enum { CDN_PLANS = 2 };

/* What the name of a variant says: "small_h", "small_h+standard_layers". */
struct cdn_variant {
    cudnnRNNAlgo_t forward, backward;
    bool layers; /* a call a layer */
};

struct seqlstm_op {
    struct seqlstm_instance *instance;
    int32_t ordinal;
    struct seqlstm_recurrent_desc desc;
    struct cdn_shape shape; /* the largest batch */
    int32_t plan_count;
    struct cdn_plan plans[CDN_PLANS];
    bool mixed; /* what ran forward under the first plan runs back under the second (pair.c) */
    uint64_t workspace_bytes, reserve_bytes, packed_bytes;
};

/* A binding under one plan. */
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
    int32_t active;      /* which of the plans; only grows */
    void *own_workspace; /* cuDNN wanted more for this shape than for larger ones */
};

/* Under which plan does backward of the binding run? */
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
    void *const *grads; /* backward */
    uint32_t parts;
    unsigned char *workspace, *reserve;
    const unsigned char *packed;
    bool again; /* forward repeated within backward: slots that it writes stay as they are */
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
void cdn_op_destroy(struct seqlstm_op *op); /* NULL is fine */

/* trial.c: what the variant says, once, of an op whose sizes are known. UNSUPPORTED: cuDNN refuses, or a pair of
 * algorithms does not go together. [control] */
seqlstm_status cdn_trial_run(const struct seqlstm_op *op, struct seqlstm_error *err);

/* pair.c: does cuDNN keep as much under both plans for this shape? UNSUPPORTED, with the numbers. */
seqlstm_status cdn_pair_check_sizes(const struct seqlstm_binding *binding, struct seqlstm_error *err);

/* weights.c: every parameter into the weight spaces of each plan. [queue] */
seqlstm_status cdn_weights_pack(const struct seqlstm_op *op, void *stream, void *const *slots, unsigned char *packed,
                                struct seqlstm_error *err);
/* Before BackwardWeights: zero, or the gradients so far where they are added to. */
seqlstm_status cdn_gradients_begin(const struct cdn_call *call, struct seqlstm_error *err);
seqlstm_status cdn_gradients_end(const struct cdn_call *call, struct seqlstm_error *err);

/* binding.c. UNSUPPORTED: cuDNN refuses the shape under every plan. [queue] */
seqlstm_status cdn_binding_create(const struct seqlstm_op *op, struct seqlstm_queue *queue,
                                  const struct seqlstm_bind *bind, struct seqlstm_binding **out_binding,
                                  struct seqlstm_error *err);
void cdn_binding_destroy(struct seqlstm_binding *binding);

/* forward.c, backward.c: under the plan of the call. UNSUPPORTED: cuDNN refuses, and outputs are not to be used. */
seqlstm_status cdn_forward(const struct cdn_call *call, struct seqlstm_error *err);
seqlstm_status cdn_backward(const struct cdn_call *call, struct seqlstm_error *err);

#endif
