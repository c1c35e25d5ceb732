/* SPDX-License-Identifier: Apache-2.0 */
/* The backend cuda-generic: every operation of the contract in CUDA kernels of our own. Start here.
 *
 *   backend.c          the vtable: create and bind operations, pass each call to its family
 *   supports.c         what is accepted; needs no device
 *   bound_axis.c       the axis of a binding in device memory
 *   ops/, recurrent/   one family of operations per file: which kernels run, on which pointers
 *   cublaslt/          cuBLASLt, opened at run time if it is installed
 *   device/, gemm/, rows/, recurrent/kernels/, recurrent/cluster/, recurrent/resident/
 *                      kernels and their launch functions (.cu), with headers for both host and device code
 *
 * A call passes through backend.c, which renews the axis and looks up the struct cg_family of the operation. The
 * family's function in ops/ or recurrent/ computes the addresses and calls launch functions, such as cg_gemm_launch.
 * Host code never reads or writes device memory; it only passes addresses. All work is ordered on the queue's stream
 * and the host waits for none of it. Sums have a fixed order, so the same call gives the same bits. */
#ifndef CG_PLUGIN_H
#define CG_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <seqlstm/backend.h>
#include <seqlstm/philox.h>

#include "cuda-generic/blocks.h"
#include "cuda-generic/device/axis.h"
#include "common/cuda_domain.h"
#include "cuda-generic/recurrent/cluster/cluster.h"
#include "cuda-generic/recurrent/kernels/small.h"
#include "cuda-generic/recurrent/resident/resident.h"
#include "cuda-generic/device/live.h"

#define CG_ID "cuda-generic"

struct cg_lt_handles; /* cublaslt/handles.h */
struct cg_lt_layer;   /* ops/lt_product.h */

struct seqlstm_instance {
    struct gpu_domain domain;         /* first: common/cuda_domain.h */
    bool captures;                    /* the option `capture` */
    bool f16x3;                       /* the option `f16x3` */
    struct cg_lt_handles *lt_handles; /* NULL: no cuBLASLt */
    char lt_reason[768];              /* if NULL: why */
    struct cg_blocks *blocks;         /* blocks.h: device memory of bindings */
};

struct cg_family;

/* How a recurrent operation runs its steps, in the order of their names in supports.c. */
enum cg_variant { CG_STEP_GRAPH, CG_CLUSTER_4, CG_CLUSTER_8, CG_CLUSTER_16, CG_SMALL, CG_RESIDENT };

struct seqlstm_op {
    struct seqlstm_instance *instance;
    const struct cg_family *family;
    uint32_t device;
    int32_t ordinal;
    enum cg_variant variant;  /* RECURRENT */
    struct cg_small small[2]; /* CG_SMALL: forward, backward */
    struct cg_cluster cluster;
    struct cg_resident resident[2]; /* CG_RESIDENT: forward, backward */
    bool f16x3;                     /* three float16 products compute the float32 products of all rows */
    bool lt; /* cuBLASLt computes products: DENSE, DENSE_LOSS in the variant cublaslt; RECURRENT where it is present,
              * but not with f16x3 */
    uint64_t lt_offset; /* where its workspace begins */
    bool narrow;        /* DENSE, DENSE_LOSS: cuBLASLt gets operands in 16 bits */
    union seqlstm_any_desc desc;
};

/* The axis of a binding on the device, and the host memory in which its ids and positions are collected before each
 * call. */
struct cg_bound_axis {
    struct cg_axis device;
    unsigned char *block;   /* device memory of all arrays; NULL: the operation needs no axis */
    uint64_t bytes;         /* of it */
    unsigned char *staging; /* host memory: ids, then positions; NULL: the host copies them to the device itself */
};

struct cg_recurrent_binding;

/* Products of a binding. A dense layer: with a full chunk of rows, with the rest. A recurrent one: of the input of the
 * first layer, of the inputs of the others, of W_h's gradient, of the projection's gradient. */
enum { CG_LT_CHUNK, CG_LT_REST, CG_LT_INPUT = 0, CG_LT_BETWEEN, CG_LT_HIDDEN, CG_LT_PROJECTION, CG_LT_LAYERS };

struct seqlstm_binding {
    const struct seqlstm_op *op;
    struct seqlstm_bind bind;
    void *stream; /* of its queue */
    struct cg_bound_axis axis;
    struct cg_recurrent_binding *recurrent; /* RECURRENT only */
    /* With cuBLASLt, NULL where our own kernels compute: CG_LT_… */
    struct cg_lt_layer *lt[CG_LT_LAYERS];
    unsigned *counter; /* on the device, of the stream: the blocks of a launch that have ended */
};

/* One call, forward or backward. */
struct cg_call {
    const struct seqlstm_op *op;
    struct seqlstm_binding *binding;
    const union seqlstm_any_desc *desc;
    const struct cg_axis *axis;
    void *stream;
    int64_t rows;
    int64_t row0; /* RECURRENT with STEPWISE: first row of the segment in the reserve, which holds the axis; else 0 */
    void *const *slots;
    void *const *grads; /* backward only */
    uint32_t parts;
    bool add; /* backward: add to the gradients of the parameters */
    unsigned char *workspace, *reserve;
    unsigned char *lt_workspace;
    const float *packed;
    struct cg_live live;
};

/* The functions for one kind of operation. */
struct cg_family {
    void (*sizes)(const struct seqlstm_op *op, struct seqlstm_sizes *sizes); /* NULL: all 0 */
    seqlstm_status (*forward)(const struct cg_call *call, struct seqlstm_error *err);
    seqlstm_status (*backward)(const struct cg_call *call, struct seqlstm_error *err); /* NULL: forward only */
};

extern const struct cg_family cg_recurrent, cg_embedding, cg_dense, cg_activation, cg_dropout_family, cg_layer_norm,
    cg_pool, cg_merge_family, cg_gather_family, cg_scatter_family, cg_cast_family, cg_loss_family, cg_dense_loss,
    cg_top_k_family, cg_finite_check_family, cg_squared_norm_family, cg_optimizer_family, cg_vector_family,
    cg_attention_family;

/* Returns from the calling function if a launch fails. */
#define CG_START(call, what, launch) SEQLSTM_TRY(gpu_check_launch((call)->op->ordinal, (launch), (what), err))

static inline float *cg_slot(const struct cg_call *call, int32_t slot)
{
    return call->slots[slot];
}

/* The gradient at `slot` if it is wanted under `part` (0: always); NULL otherwise. */
static inline float *cg_grad(const struct cg_call *call, int32_t slot, uint32_t part)
{
    return part == 0 || (call->parts & part) ? call->grads[slot] : NULL;
}

static inline seqlstm_status cg_clear(const struct cg_call *call, void *to, int64_t elems, struct seqlstm_error *err)
{
    return gpu_fill(call->op->ordinal, call->stream, to, 0, (uint64_t)elems * sizeof(float), err);
}

static inline seqlstm_status cg_copy(const struct cg_call *call, void *to, const void *from, int64_t elems,
                                     struct seqlstm_error *err)
{
    return gpu_copy(call->op->ordinal, call->stream, SEQLSTM_COPY_WITHIN, to, from, (uint64_t)elems * sizeof(float),
                    err);
}

/* The blocks of a cluster in this variant; 0: it has no clusters. */
static inline int32_t cg_count_blocks(enum cg_variant variant)
{
    return variant == CG_CLUSTER_4 ? 4 : variant == CG_CLUSTER_8 ? 8 : variant == CG_CLUSTER_16 ? 16 : 0;
}

/* Do its kernels begin with the gradients of the final states, and end with those of the initial ones? */
static inline bool cg_begins_itself(enum cg_variant variant)
{
    return variant == CG_SMALL || cg_count_blocks(variant) > 0;
}

/* supports.c. Finds what a name means; *out_f16x3: with float32 products by three float16 products. */
bool cg_find_variant(const char *name, enum cg_variant *out_variant, bool *out_f16x3);
seqlstm_status cg_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                           struct seqlstm_error *err);

/* The step block of a call, as far as the host has filled it. */
static inline struct cg_live cg_live_make(const struct seqlstm_step *step)
{
    struct cg_live live = {0};
    memcpy(&live.step, step, step->struct_size < sizeof live.step ? step->struct_size : sizeof live.step);
    live.device = live.step.device;
    return live;
}

/* bound_axis.c. Errors: NO_MEMORY, DEVICE. */
seqlstm_status cg_axis_open(struct cg_bound_axis *axis, const struct seqlstm_op *op, const struct seqlstm_bind *bind,
                            void *stream, struct seqlstm_error *err);
void cg_axis_close(struct cg_bound_axis *axis, const struct seqlstm_op *op, void *stream);
/* Copies the ids and positions of this call to the device, unless the host does so. */
seqlstm_status cg_axis_renew(struct cg_bound_axis *axis, const struct seqlstm_op *op, const struct seqlstm_axis *host,
                             void *stream, struct seqlstm_error *err);

/* ops/dense.c, for operations with cuBLASLt: are its operands to have 16 bits; the sizes that differ with it, and their
 * products. */
bool cg_dense_is_narrow(const union seqlstm_any_desc *desc);
void cg_dense_lt_sizes(const struct seqlstm_op *op, struct seqlstm_sizes *sizes);
seqlstm_status cg_dense_lt_open(struct seqlstm_binding *binding, struct seqlstm_error *err);
/* ops/lt_product.c: destroys the products of any binding. */
void cg_lt_close(struct seqlstm_binding *binding);

/* recurrent/small_plain.c: is it an LSTM whose cells compute with sigmoid and tanh, and nothing else? */
bool cg_small_is_plain(const struct seqlstm_recurrent_desc *desc);
/* Asks the device how many blocks of the variant small it runs at the same time. UNSUPPORTED: none.
 */
seqlstm_status cg_small_open(struct seqlstm_op *op, int32_t multiprocessors, struct seqlstm_error *err);
/* recurrent/clusters.c: the same for clusters. */
seqlstm_status cg_cluster_open(struct seqlstm_op *op, const struct gpu_device *device, struct seqlstm_error *err);
/* recurrent/bind.c */
seqlstm_status cg_recurrent_open(struct seqlstm_binding *binding, struct seqlstm_error *err);
void cg_recurrent_close(struct seqlstm_binding *binding);
/* recurrent/products.c: its products by cuBLASLt, as far as it has algorithms for them. */
seqlstm_status cg_recurrent_lt_open(struct seqlstm_binding *binding, struct seqlstm_error *err);
seqlstm_status cg_recurrent_pack(const struct seqlstm_op *op, void *stream, void *const *slots, float *packed,
                                 const struct seqlstm_step *step, struct seqlstm_error *err);

#endif
