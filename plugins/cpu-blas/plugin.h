/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the cpu-blas backend: instance, operation, binding, and the table that each operation's file defines.
 * backend.c holds the vtable of the ABI and calls these.
 *
 * Folders, lowest first (tools/layers.txt)
 *   isa                 instruction sets and their vectors
 *   rowmath             arithmetic on rows
 *   gemm                OpenBLAS
 *   tiles               products in int8, and on the tiles of AMX
 *   recurrent/kernels   recurrent cells and their products
 *   recurrent           recurrent layers, which run on these kernels
 *   .                   this folder
 *   ops                 all other operations
 * All of the kernels (isa, rowmath, tiles, recurrent/kernels) are compiled once for each instruction set.
 *
 * Invariants
 * 1. An operation and a binding do not change once created; everything that changes is in the arguments of a call.
 * 2. No call allocates. Only share.h divides work, so that the bits of a result depend on shapes and on the number of
 *    members of the queue, never on timing. */
#ifndef BLAS_PLUGIN_H
#define BLAS_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "common/align.h"
#include "common/answer.h"
#include "common/host_memory.h"
#include "cpu-blas/isa/isa.h"
#include "cpu-blas/tiles/tiles_gemm.h"
#include "cpu-blas/recurrent/recurrent.h"
#include "cpu-blas/rowmath/rowmath.h"

#define BLAS_ID "cpu-blas"

struct seqlstm_instance {
    const struct seqlstm_host *host;
    enum blas_isa isa;
    bool tiles; /* the processor has tiles, and `instructions` allows them; also in the class of the device */
    const struct blas_rowmath *math;
    int32_t members_max; /* the most members that one call uses: limits the size of workspaces */
};

struct blas_operation;

struct seqlstm_op {
    const struct seqlstm_instance *instance;
    const struct blas_operation *operation;
    const struct blas_rowmath *math;
    union seqlstm_any_desc desc; /* zero where the host's descriptor is shorter */
    bool training;
    uint32_t variant;                             /* index into the answer's variants */
    bool on_tiles;                                /* whether the variant uses tiles */
    struct blas_tiled tiled;                      /* how its products are computed (multiply.h) */
    const struct blas_recurrent_kernels *kernels; /* for products on packed weights */
    struct blas_recurrent *recurrent;
};

struct seqlstm_binding {
    const struct seqlstm_op *op;
    struct seqlstm_bind bind;
    struct blas_recurrent_binding *recurrent;
};

/* One call of forward or backward, as the operations see it. */
struct blas_call {
    const struct seqlstm_op *op;
    const struct blas_rowmath *math;
    const struct seqlstm_bind *bind;
    struct seqlstm_queue *queue;
    int32_t members; /* members of the queue, at most members_max */
    void *const *slots;
    void *const *grads; /* NULL in forward */
    uint32_t parts;     /* SEQLSTM_BIT_BACKWARD_…, 0 in forward */
    void *tiles;        /* blas_multiply_bytes, in front of the workspace */
    const void *packed; /* what the operation's `pack` has written */
    void *workspace;
    void *reserve;
    const struct seqlstm_step *step;
};

struct blas_operation {
    uint32_t slots;
    /* Rules beyond those of the head, which supports.c has checked. Answers through common/answer.h. */
    void (*supports)(const union seqlstm_any_desc *desc, bool tiles, struct seqlstm_answer *answer);
    void (*sizes)(const struct seqlstm_op *op, struct seqlstm_sizes *sizes); /* NULL: needs no memory */
    seqlstm_status (*forward)(const struct blas_call *call, struct seqlstm_error *err);
    seqlstm_status (*backward)(const struct blas_call *call, struct seqlstm_error *err); /* NULL: none */
    /* NULL: it needs no packed weights */
    void (*pack)(const struct seqlstm_op *op, void *const *slots, void *packed);
};

extern const struct blas_operation blas_embedding, blas_dense, blas_activation, blas_dropout, blas_layer_norm,
    blas_pool, blas_merge, blas_gather, blas_scatter, blas_cast, blas_loss, blas_dense_loss, blas_top_k,
    blas_finite_check, blas_squared_norm, blas_optimizer, blas_vector, blas_attention;

/* ---- answers (supports.c) ------------------------------------------------------------------- */

/* The suffix of the device class of a processor with tiles. */
#define BLAS_CLASS_TILES "+amx"
/* Checks the head and the operation, on a device of this class. [any] */
void blas_supports(const char *device_class, const struct seqlstm_desc *desc, struct seqlstm_answer *answer);
/* The same for a processor with or without tiles. Fills a full-size copy of the descriptor if the answer is yes. */
void blas_answer(bool tiles, const struct seqlstm_desc *desc, struct seqlstm_answer *answer,
                 union seqlstm_any_desc *out_desc);
/* NULL for RECURRENT and for operations that are not offered. */
const struct blas_operation *blas_operation_get(uint32_t op);
/* By SEQLSTM_OP_…: the bytes of the descriptor that are read. */
extern const uint32_t blas_desc_bytes[SEQLSTM_OP_COUNT];

/* ---- helpers ---------------------------------------------------------------------------------- */

static inline bool blas_wants(const struct blas_call *call, uint32_t part, int slot)
{
    return (call->parts & part) != 0 && call->grads[slot] != NULL;
}

#endif
