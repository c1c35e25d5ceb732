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
#ifndef SL_DISPATCH_PLAN_H
#define SL_DISPATCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "base/system/interrupt.h"
#include "base/system/log.h"
#include "base/system/pool.h"
#include "base/batch/profile.h"
#include "dispatch/cost_cache.h"
#include "registry/registry.h"
#include "graph/graph.h"

enum sl_cost_source {
    SL_COST_NONE = 0,
    SL_COST_GUESS,    /* of the host, by the amount of work: the same for every backend */
    SL_COST_BOUND,    /* it was not timed, because it takes at least so long */
    SL_COST_ESTIMATE, /* the backend's own */
    SL_COST_CACHED,   /* measured by an earlier run */
    SL_COST_STORED,   /* measured when the plan was made that is replayed */
    SL_COST_MEASURED
};

/* Of one operation in a mean batch. */
struct sl_cost {
    enum sl_cost_source source;
    double forward_ns, backward_ns;
};

/* A backend that was asked and said no. */
struct sl_refusal {
    const char *backend;
    uint32_t rank;      /* place of the backend in the list */
    uint32_t code;      /* SEQLSTM_REFUSED_… */
    uint32_t option_id; /* SEQLSTM_OPTION_… */
    const char *option; /* the key in the model file: "recurrent_dropout"; "" for the whole operation */
    const char *value;
    const char *reason;
    const char *hint;
    struct sl_place place;
    const char *without; /* keys of all options without which it would accept; NULL: it would not, or was not asked */
    double speedup;      /* how many times faster than the chosen backend it is without them; 0: not known */
};

/* A backend, or another variant, that would have run the operation. */
struct sl_rival {
    const char *backend, *variant;
    struct sl_cost cost;
};

/* Shapes of batches whose bindings an executor keeps. Ragged data bring a new one with nearly every batch; streams
 * reuse one. */
enum { SL_SHAPES_BOUND = 8 };

/* One prepared call. */
struct sl_call {
    const struct sl_node *node;     /* of graph->nodes or of an alternative */
    int32_t node_first, node_count; /* the nodes it stands for */
    struct sl_backend *backend;
    uint32_t device;
    const char *variant;
    struct seqlstm_op *op;
    struct seqlstm_sizes sizes;
    int64_t reserve_offset; /* bytes into the reserve buffer; -1: none */
    int64_t packed_offset;  /* bytes into the packed buffer; -1: none */
    const struct sl_refusal *refusals;
    int32_t refusal_count;
    const struct sl_rival *rivals;
    int32_t rival_count;
    struct sl_cost cost;
    bool fallback; /* an earlier-listed backend refused it */
};

/* A flat-vector operation of training. */
struct sl_vector_call {
    const union seqlstm_any_desc *desc;
    struct sl_backend *backend;
    uint32_t device;
    struct seqlstm_op *op;
    struct seqlstm_sizes sizes;
};

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
struct sl_runoff {
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
    struct sl_runoff runoff;
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

/* Do its nodes run step by step? */
static inline bool sl_call_is_in_loop(const struct sl_graph *graph, const struct sl_call *call)
{
    return call->node_first >= graph->loop.first && call->node_first < graph->loop.first + graph->loop.count;
}

/* Reserves that the call has from reserve_offset on, one behind the other, each rounded up to 64 bytes: one for each
 * step in a loop, unless its steps share one. */
int64_t sl_call_count_reserves(const struct sl_plan *plan, const struct sl_call *call);

struct sl_tuning;

/* Whole steps of two plans, to be timed against each other. */
struct sl_race_request {
    const struct sl_plan *plans[2];
    const struct sl_tuning *tuning;
    int32_t optimizer_states;
    double seconds; /* aimed at */
};

/* Nanoseconds of a mean batch; 0: there is no time for that. */
typedef seqlstm_status sl_race_fn(const struct sl_race_request *request, double out_ns[2], struct seqlstm_error *err);

/* What measured costs, and what is said of memory, need of the data. Borrowed. */
struct sl_tuning {
    const struct sl_profiles *profiles; /* of the real data; weights add up to 1 */
    struct sl_pool *pool;
    struct sl_cost_cache *cache;          /* NULL: nothing is measured */
    bool measure;                         /* false: only what the cache holds */
    double seconds;                       /* bound of all measurements of this plan */
    sl_race_fn *race;                     /* NULL: nobody can time whole steps */
    const struct sl_interrupt *interrupt; /* may be NULL */
    const struct sl_log *log;             /* may be NULL */
};

struct sl_plan_request {
    const struct sl_graph *graph;
    struct sl_registry *registry;
    const char *forced_backend;          /* `--backend ID`: takes everything that it accepts; NULL */
    const struct sl_tuning *tuning;      /* NULL: policy `measured` goes by estimates */
    const struct sl_plan_choice *stored; /* replay: choices by phase and node name; NULL */
    int32_t stored_count;
    const struct sl_runoff *stored_runoff; /* how the choices of this phase came about; NULL */
    int32_t optimizer_states;              /* for the memory table */
    int32_t threads; /* members of the pool that will run it (no more, nor time it); 0: any number */
};

/* A stored choice: "lstm_1" -> cpu-blas:packed. Where there are choices of the graph's phase they are binding; those of
 * another phase are followed where the backend accepts. */
struct sl_plan_choice {
    const char *node;
    const char *backend;
    const char *variant;
    enum sl_phase phase;
};

/* What the process holds besides the plan's buffers, and the most that it has held: for the memory table. */
void sl_plan_set_process(struct sl_plan *plan, int64_t resident_bytes, int64_t reached_bytes);

/* Makes the plan: pins, then stored choices, then (by policy) measured costs from the cache, timings made now,
 * estimates, the order of the list. Errors: CANCELLED; UNAVAILABLE (exit 3) when no listed backend accepts an
 * operation, with every refusal in the message, when a pin is refused, and with `fallback: error`. */
seqlstm_status sl_plan_create(const struct sl_plan_request *request, struct sl_plan **out_plan,
                              struct seqlstm_error *err);
void sl_plan_destroy(struct sl_plan *plan);

/* Name of the memory domain in which the call's operands stand: "host", "cuda:<uuid>". Borrowed. */
const char *sl_call_get_domain(const struct sl_call *call);

#endif
