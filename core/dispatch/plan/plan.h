/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: which backend runs which operation, with which variant, in which buffers, and why.
 *
 * Each node of the graph, or an alternative to several nodes, becomes one prepared call. For each call the plan keeps
 * the refusals of other backends, with the option's key and its place in the model file, and the costs of those that
 * accepted. planner.h makes plans; core/exec runs them.
 *
 * Invariants:
 *  1. A plan is immutable and lives in its own arena; graph and registry must outlive it.
 *  2. calls are in execution order. Every op was created successfully: from here on only memory or a device can fail.
 *  3. Offsets index one buffer of `activation_bytes`; tensors that live at the same time do not overlap.
 */
#ifndef SL_DISPATCH_PLAN_PLAN_H
#define SL_DISPATCH_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "dispatch/plan/call.h"
#include "dispatch/plan/choice.h"
#include "graph/graph.h"

/* Where a backend of the plan computes. Class and name tell which instruction set and library its kernels use; the bits
 * of its results depend on these. */
struct sl_plan_device {
    const char *backend;
    const char *device_class; /* "cpu:x86-64-v4" */
    const char *name;         /* as the backend reports it */
};

struct sl_plan_memory {
    int64_t weights_bytes;
    int64_t gradients_bytes;
    int64_t optimizer_bytes;
    int64_t activations_bytes; /* activations, their gradients, reserves, states, memories of attention */
    int64_t workspace_bytes;   /* scratch and packed weights */
    int64_t backends_bytes;    /* what backends allocate for themselves: code, arguments by shape of batch */
    int64_t batches_bytes;     /* fields of the batch on devices with memory of their own; in training two more
                                * sets for the next ones there, and one in pinned memory */
    int64_t decoding_bytes;    /* decoders that run step by step, for texts of metrics and for sampled tokens; 0 in a
                                * plan, filled in the sum (explain.h) */
    int64_t checkpoint_bytes;  /* a copy of weights and optimizer: each checkpoint is read back after writing */
    int64_t test_bytes;        /* evaluation of the test split, after the last checkpoint; 0 in a plan, likewise */
    int64_t process_bytes;     /* the rest of the process: program, plugins and their libraries, data */
    int64_t reached_bytes;     /* the most that the process has held so far, while reading data and timing backends; in
                                * the sum of an evaluation, at least what reading the weights takes */
    int64_t peak_bytes;        /* the sum of the others without reached_bytes; of checkpoint and test only the larger */
};

/* The times of whole steps (forward, in training also backward and update) of the two best plans. */
struct sl_whole_steps {
    enum sl_cost_source source;         /* SL_COST_NONE: they were not compared */
    double chosen_ns, other_ns;         /* of a mean batch */
    const struct sl_plan_choice *other; /* what the other plan does differently */
    int32_t other_count;
    bool overturned; /* the other is cheaper by the sum of its operations */
};

struct sl_plan {
    struct sl_arena *arena;
    enum sl_dispatch_policy policy;
    bool replayed; /* by stored choices of this phase */
    int32_t timed; /* candidates that were timed for this plan */
    double timed_seconds;
    struct sl_whole_steps whole_steps;
    const struct sl_graph *graph;
    const struct sl_call *calls;
    int32_t call_count;
    const struct sl_vector_call *vectors; /* in the order of graph->vector_ops */
    int32_t vector_count;
    const int64_t *tensor_offsets; /* [tensor_count] bytes into the activation buffer; -1: elsewhere or fused away */
    const int64_t *grad_offsets;   /* [tensor_count] likewise for gradients; -1: none */
    int64_t activation_bytes;
    int64_t scratch_grad_offset; /* scratch for gradients of tensors with several readers; -1: none */
    int64_t scratch_grad_bytes;
    int64_t reserve_bytes;
    int64_t packed_bytes;
    int64_t workspace_bytes;
    struct sl_plan_memory memory;
    int32_t threads;                      /* of the CPU pool that the plan is made for */
    const struct sl_plan_device *devices; /* in the order of first use */
    int32_t device_count;
};

/* The number of reserves of a call: one; in a loop one for each step, and for a call that runs in pieces one for each
 * piece, unless they share one. They follow each other from reserve_offset on, each rounded up to 64 bytes. */
int64_t sl_call_count_reserves(const struct sl_plan *plan, const struct sl_call *call);

/* Calls [first, end) that run as one: all of them for each step of a loop, or for each piece, before the next step or
 * piece begins; or a single call that runs on all steps at once. */
struct sl_unit {
    int32_t first, end;
    bool pieced;
};

/* The unit of call c of a plan with these calls. A call that begins with what another one has at its end is in a later
 * unit. */
struct sl_unit sl_plan_find_unit(const struct sl_graph *graph, const struct sl_call *calls, int32_t count, int32_t c);

/* Floats of one state h (cell false) or c of a call that runs in pieces and is recurrent; 0: it has none. */
int64_t sl_call_count_piece_state(const struct sl_graph *graph, const struct sl_call *call, bool cell);
/* Of all its states: one before each piece, one at the end, and the gradients of two. */
int64_t sl_call_count_piece_states(const struct sl_graph *graph, const struct sl_call *call);

/* Fills the devices of a plan whose calls are chosen. Errors: NO_MEMORY. */
seqlstm_status sl_plan_list_devices(struct sl_plan *plan, struct seqlstm_error *err);

/* Also destroys its operations. NULL is fine. */
void sl_plan_destroy(struct sl_plan *plan);

/* Bytes of the largest value or gradient of a tensor, a multiple of the alignment. In the activation buffer
 * SL_FENCE_BYTES (registry/watch/fence.h) that belong to nothing else follow it. [any] */
int64_t sl_plan_get_tensor_bytes(const struct sl_plan *plan, int32_t tensor);

#endif
