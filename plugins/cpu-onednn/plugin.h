/* SPDX-License-Identifier: Apache-2.0 */
/* The backend cpu-onednn: recurrent layers, dense layers and layer normalisation on the primitives of oneDNN. Start
 * here; README.md lists the files. This header declares instance, operation and binding, and the table of functions
 * that each kind of operation fills.
 *
 * A call passes from the vtable in backend.c to the functions of its odn_operation, in recurrent/op.c, ops/dense.c or
 * ops/norm.c. These set the addresses of an odn_call (call.h) and execute it; library.c has opened oneDNN before.
 *
 * Variants, offered for every operation:
 *   sliced     each thread of the host runs the library on its own rows, with one thread
 *   exclusive  the library's threads run all rows, while the host's threads are leased to it
 *
 * Invariants
 * 1. An operation does not change once created, except its cache of primitives and their calls, which has a lock.
 * 2. No call allocates; the library's scratch is in the host's workspace.
 * 3. Primitives are executed with the number of threads with which they were created. */
#ifndef ODN_PLUGIN_H
#define ODN_PLUGIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>
#include <seqlstm/ext/footprint.h>

#include "cpu-onednn/call.h"
#include "common/align.h"
#include "common/answer.h"
#include "common/host_memory.h"

#define ODN_ID "cpu-onednn"

struct seqlstm_instance {
    const struct seqlstm_host *host;
    dnnl_engine_t engine;
    dnnl_stream_t stream;       /* CPU streams have no state */
    dnnl_primitive_attr_t attr; /* the caller provides the scratchpad */
    int32_t members_max;        /* the most members that one call uses; bounds workspaces */
    int32_t level;              /* x86-64 psABI level of the processor */
    _Atomic int32_t inferences; /* recurrent operations of inference; they share a number of idle primitives */
};

struct odn_operation;
struct odn_recurrent;
struct odn_recurrent_binding;
struct odn_rowwise;
struct odn_row_cache;

struct seqlstm_op {
    struct seqlstm_instance *instance;
    const struct odn_operation *operation;
    union seqlstm_any_desc desc; /* zero beyond the bytes that the host knows */
    bool training;
    bool exclusive;
    struct odn_recurrent *recurrent;
    struct odn_row_cache *row_cache; /* of operations with independent rows */
    struct seqlstm_sizes sizes;      /* computed at creation */
};

struct seqlstm_binding {
    const struct seqlstm_op *op;
    struct seqlstm_bind bind;
    struct odn_recurrent_binding *recurrent;
    struct odn_rowwise *rowwise;
};

struct odn_operation {
    /* Rules beyond those which supports.c has checked: true if everything is supported. */
    bool (*supports)(const union seqlstm_any_desc *desc, struct seqlstm_answer *answer);
    /* Fills op->sizes; UNSUPPORTED if the loaded library refuses. */
    seqlstm_status (*create)(struct seqlstm_op *op, struct seqlstm_error *err);
    void (*destroy)(struct seqlstm_op *op);
    seqlstm_status (*bind)(struct seqlstm_binding *binding, struct seqlstm_queue *queue, struct seqlstm_error *err);
    /* As in struct seqlstm_rebind; binding->bind is the new shape. */
    seqlstm_status (*rebind)(struct seqlstm_binding *binding, struct seqlstm_error *err);
    void (*unbind)(struct seqlstm_binding *binding);
    seqlstm_status (*forward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                              const struct seqlstm_forward *args, struct seqlstm_error *err);
    seqlstm_status (*backward)(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                               const struct seqlstm_backward *args, struct seqlstm_error *err);
    /* NULL: canonical weights are used as they are */
    seqlstm_status (*pack)(const struct seqlstm_op *op, struct seqlstm_queue *queue, void *const *slots, void *packed,
                           struct seqlstm_error *err);
    /* As in struct seqlstm_footprint, for a batch (never NULL); NULL: calls touch all of their buffers. */
    seqlstm_status (*find_idle)(const struct seqlstm_op *op, const struct seqlstm_sizes *sizes,
                                const struct seqlstm_axis *axis, struct seqlstm_idle *idle, struct seqlstm_error *err);
    /* As own_bytes there; NULL: shapes take almost no memory. */
    seqlstm_status (*find_own)(const struct seqlstm_op *op, const struct seqlstm_axis *const *batches,
                               uint32_t batch_count, uint32_t bound_count, uint64_t *out_bytes,
                               struct seqlstm_error *err);
};

extern const struct odn_operation odn_recurrent_operation, odn_dense_operation, odn_norm_operation;

/* ---- answers (supports.c) ------------------------------------------------------------------------ */

/* Applies the rules for every operation, then those of the operation. Fills a full-size copy of the descriptor. */
void odn_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                  union seqlstm_any_desc *out_desc);
/* NULL for an operation that is not supported. */
const struct odn_operation *odn_operation_get(uint32_t op);

/* ---- layout ---------------------------------------------------------------------------------------- */

/* Reserves `bytes` in a growing layout and returns their offset. */
static inline uint64_t odn_take(uint64_t *end, uint64_t bytes)
{
    const uint64_t offset = *end;
    *end += align_bytes(bytes);
    return offset;
}

static inline void *odn_at(const void *base, uint64_t offset)
{
    return (void *)((uintptr_t)base + (uintptr_t)offset);
}

#endif
