/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's inside, shared by the files of core/exec. */
#ifndef SL_EXEC_PRIVATE_H
#define SL_EXEC_PRIVATE_H

#include "base/op_signature.h"
#include "dispatch/host.h"
#include "exec/exec.h"

/* Shapes whose bindings are kept. Ragged data bring a new one with nearly every batch; streams reuse one. */
enum { SL_EXEC_SHAPES = 8, SL_EXEC_VECTOR_BINDINGS = 8 };

/* One shape: its own copy of the axis (bindings point to it) and one binding per call. */
struct sl_exec_shape {
    bool used;
    uint64_t hash;
    int64_t last_use;
    int64_t sequences;               /* with zero-length ones */
    struct seqlstm_axis steps;       /* of the sequences that have steps */
    struct seqlstm_axis rows;        /* every sequence as one step: for masks on the sequences axis */
    int64_t capacity_bytes;
    void *storage;                   /* arrays of both axes */
    struct seqlstm_binding **bindings; /* [call_count] */
};

struct sl_exec_vector_binding {
    int64_t elems;
    struct seqlstm_binding *binding;
};

/* What never changes about a call. */
struct sl_exec_call {
    int32_t slot_count;
    enum sl_slot_role *roles;  /* [slot_count] */
    void **slots;              /* [slot_count] filled at every run */
    void **grads;
    enum sl_axis axis;         /* where its rows are */
    uint64_t packed_version;   /* of the parameters; 0: never packed */
    bool repacks;              /* weight masks change with every step */
};

struct sl_exec {
    const struct sl_plan *plan;
    const struct sl_graph *graph;
    struct sl_params *params;
    struct sl_memory *memory;
    struct sl_queue queue;
    struct seqlstm_step step;

    struct sl_exec_call *calls;
    struct sl_exec_timing *timing;
    struct sl_exec_shape shapes[SL_EXEC_SHAPES];
    struct sl_exec_vector_binding (*vectors)[SL_EXEC_VECTOR_BINDINGS]; /* [vector_count] */
    int64_t clock; /* counts runs, for the shapes' age */

    char *activations;
    char *reserve;
    char *packed;
    char *workspace;
    float *states;            /* all carried states */
    int64_t state_elems;
    int64_t *state_offsets;   /* [state_count] in elements */
    float *class_weights;
    double sums[2];
    bool *has_grad;           /* [tensor_count] of the running backward */
    bool *param_written;      /* [param_count] likewise */

    const struct sl_batch *batch; /* of the last run */
    struct sl_exec_shape *shape;
    int64_t output_rows;
};

/* Finds or makes the bindings of the batch's shape and copies its ids and positions. */
seqlstm_status sl_exec_bind(struct sl_exec *exec, const struct sl_batch *batch, struct seqlstm_error *err);
void sl_exec_unbind_all(struct sl_exec *exec);

/* Where tensor t is at this run; NULL when the batch has no such field. */
void *sl_exec_get_tensor(struct sl_exec *exec, int32_t t);
int64_t sl_exec_get_rows(const struct sl_exec *exec, enum sl_axis axis);

seqlstm_status sl_exec_forward(struct sl_exec *exec, struct seqlstm_error *err);
seqlstm_status sl_exec_backward(struct sl_exec *exec, bool accumulate, struct seqlstm_error *err);

/* Puts "lstm_1 on cpu-blas: " before the message. */
seqlstm_status sl_exec_blame(const struct sl_call *call, seqlstm_status status, struct seqlstm_error *err);

#endif
