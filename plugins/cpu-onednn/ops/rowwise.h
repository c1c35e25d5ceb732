/* SPDX-License-Identifier: Apache-2.0 */
/* Operations with independent rows (dense, layer norm). A batch is cut into parts, ranges of consecutive rows, each
 * with its own primitives: one part per thread in the variant `sliced`, one part in `exclusive`. Gradients of
 * parameters are computed in the workspace part by part and added at the end, in the order of the parts.
 *
 * Workspace: for each part its scratch, then its gradients (align_bytes(grad_bytes)). */
#ifndef ODN_ROWWISE_H
#define ODN_ROWWISE_H

#include <pthread.h>

#include "cpu-onednn/plugin.h"

enum { ODN_ROWWISE_PRIMITIVES = 3 };

/* The primitives for a number of rows, with their arguments. One part has them, or they are idle. */
struct odn_row_calls {
    struct odn_row_calls *next; /* among the idle ones */
    int64_t rows;
    int32_t threads;
    uint64_t scratch_bytes;
    dnnl_primitive_t primitive[ODN_ROWWISE_PRIMITIVES];
    struct odn_call calls[ODN_ROWWISE_PRIMITIVES];
};

/* The idle ones of an operation, those that were used last first. */
struct odn_row_cache {
    pthread_mutex_t lock;
    struct odn_row_calls *idle;
};

struct odn_part {
    int64_t begin, end; /* rows */
    struct odn_row_calls *own;
    uint64_t scratch, grads; /* offsets in the workspace */
};

struct odn_rowwise {
    int32_t count, most; /* parts of this shape, and of any */
    int32_t threads;     /* threads of the library in each part */
    struct odn_part *parts;
};

struct odn_rowwise_call {
    struct seqlstm_binding *binding;
    struct seqlstm_queue *queue;
    void *const *slots;
    void *const *grads;
    uint32_t parts; /* SEQLSTM_BIT_BACKWARD_… */
    void *workspace, *reserve;
    bool no_gradient; /* no gradient arrives at the output, so those of parameters are zero */
    _Atomic int32_t failed;
    /* runs the primitives of one part */
    dnnl_status_t (*run)(struct odn_rowwise_call *call, struct odn_part *part);
};

/* How an operation differs from the others. */
struct odn_rowwise_rules {
    int32_t primitives; /* in training; inference uses only the first */
    /* Describes primitive `which` for `rows` rows. `forward`: the first one, for describing the others. */
    dnnl_status_t (*describe)(const struct seqlstm_op *op, int32_t which, int64_t rows,
                              const_dnnl_primitive_desc_t forward, dnnl_primitive_desc_t *out_pd);
    uint64_t (*grad_bytes)(const struct seqlstm_op *op); /* of one part, in training */
};

/* Makes the cache, and adds to op->sizes.workspace_bytes. UNSUPPORTED if the loaded library refuses. */
seqlstm_status odn_rowwise_create(struct seqlstm_op *op, const struct odn_rowwise_rules *rules,
                                  struct seqlstm_error *err);
void odn_rowwise_destroy(struct seqlstm_op *op);
seqlstm_status odn_rowwise_bind(struct seqlstm_binding *binding, struct seqlstm_queue *queue,
                                const struct odn_rowwise_rules *rules, struct seqlstm_error *err);
/* As in struct seqlstm_rebind. UNSUPPORTED: no idle primitives are for these rows. */
seqlstm_status odn_rowwise_rebind(struct seqlstm_binding *binding, const struct odn_rowwise_rules *rules,
                                  struct seqlstm_error *err);
void odn_rowwise_unbind(struct seqlstm_binding *binding);
/* Runs every part: each on one of the host's threads, or one after another on the library's threads. */
seqlstm_status odn_rowwise_run(struct odn_rowwise_call *call, struct seqlstm_error *err);

/* Zeroes the gradient of the input if it is wanted and no gradient arrives at the output. */
void odn_rowwise_clear(struct odn_rowwise_call *call, int slot, int64_t width);

/* Adds element i of `count`, at `place` within each part's gradients, to ours; NULL: not wanted. */
void odn_rowwise_reduce(struct odn_rowwise_call *call, uint64_t place, int64_t count, float *ours);

#endif
