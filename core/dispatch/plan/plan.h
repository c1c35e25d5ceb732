/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: which backend runs which operation, with which variant, in which buffers, and why.
 *
 * graph + registry -> plan. Each node of the graph (or an alternative that stands for several) becomes one
 * prepared call: the cheapest way through the graph, by the policy of the model. For every backend that refused a call
 * the refusal is kept, with the option's key and place in the model file; for every other that accepted, its cost.
 *
 * Invariants:
 *  1. A plan is immutable and lives in its own arena; graph and registry must outlive it.
 *  2. calls are in execution order. Every op in it was created successfully: from here on only memory or the
 *     device may fail.
 *  3. Offsets index one buffer of `activation_bytes`; tensors with overlapping life never overlap.
 */
#ifndef SL_DISPATCH_PLAN_PLAN_H
#define SL_DISPATCH_PLAN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory/arena.h"
#include "dispatch/plan/call.h"
#include "dispatch/plan/choice.h"
#include "graph/graph.h"

/* Where a backend of the plan computes. Class and name say which instruction set and library its kernels use, so
 * that they stand for the bits of its results. */
struct sl_plan_device {
    const char *backend;
    const char *device_class; /* "cpu:x86-64-v4" */
    const char *name;         /* as the backend says it */
};

struct sl_plan_memory {
    int64_t weights_bytes;
    int64_t gradients_bytes;
    int64_t optimizer_bytes;
    int64_t activations_bytes; /* activations, their gradients, reserves, states, memories of attention */
    int64_t workspace_bytes;   /* scratch and packed weights */
    int64_t backends_bytes;    /* that backends take for themselves as batches come: code, arguments by shape */
    int64_t batches_bytes;     /* fields of the batch on devices with memory of their own; in training two more
                                * sets for the next ones there, and one in pinned memory */
    int64_t decoding_bytes;    /* of what runs the model step by step besides: texts for metrics, tokens for training;
                                * 0 in a plan, the sum has it (explain.h) */
    int64_t checkpoint_bytes;  /* weights and optimizer once more: a checkpoint is read back when it was written */
    int64_t test_bytes;        /* of the test's evaluation, after the last checkpoint was read; 0 in a plan, likewise */
    int64_t process_bytes;     /* what the process holds besides: program, plugins and their libraries, data */
    int64_t reached_bytes;     /* the most that the process has held so far: reading data, timing backends; in the sum
                                * of an evaluation at least what reading the weights takes */
    int64_t peak_bytes;        /* the sum of all before but that; of checkpoint and test the larger counts */
};

/* The two cheapest plans as whole steps: forward, and in training backward and update. */
struct sl_whole_steps {
    enum sl_cost_source source;         /* SL_COST_NONE: there was none */
    double chosen_ns, other_ns;         /* of a mean batch */
    const struct sl_plan_choice *other; /* what the other plan does differently */
    int32_t other_count;
    bool overturned; /* the other is the cheaper by its operations */
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
    int64_t scratch_grad_offset; /* room for second gradients of a call's inputs with several readers; -1 */
    int64_t scratch_grad_bytes;
    int64_t reserve_bytes;
    int64_t packed_bytes;
    int64_t workspace_bytes;
    struct sl_plan_memory memory;
    int32_t threads;                      /* of the CPU pool that it was made for */
    const struct sl_plan_device *devices; /* in the order of first use */
    int32_t device_count;
};

/* Reserves that the call has from reserve_offset on, one behind the other, each rounded up to 64 bytes: one for each
 * step in a loop, unless its steps share one. */
int64_t sl_call_count_reserves(const struct sl_plan *plan, const struct sl_call *call);

/* Fills the devices of a plan whose calls are chosen. Errors: NO_MEMORY. */
seqlstm_status sl_plan_list_devices(struct sl_plan *plan, struct seqlstm_error *err);

/* Destroys its operations, too. NULL is fine. */
void sl_plan_destroy(struct sl_plan *plan);

#endif
