/* SPDX-License-Identifier: Apache-2.0 */
/* Which backends can run which operation, with which variants, and why the others refuse.
 *
 * A subgraph is what one call can run: a node of the graph, or an alternative to several nodes. A candidate is one
 * backend, device and variant that accepts a subgraph. The planner chooses one candidate for each node. Private to
 * core/dispatch.
 *
 * Invariants:
 *  1. Subgraphs of single nodes come first, in the order of the graph; then the alternatives, in theirs.
 *  2. Candidates stand in the order of the list, variants of one backend in the order in which it names them.
 *  3. An excluded candidate is not chosen. Its op, if it has one, is destroyed with the subgraphs.
 */
#ifndef SL_DISPATCH_CANDIDATE_CANDIDATE_H
#define SL_DISPATCH_CANDIDATE_CANDIDATE_H

#include "base/memory/arena.h"
#include "dispatch/plan/plan.h"

struct sl_candidate {
    struct sl_backend *backend;
    uint32_t rank; /* place of the backend in the list */
    uint32_t device;
    const char *variant;
    uint32_t variant_index; /* place among the backend's variants */
    bool excluded;
    struct seqlstm_op *op;      /* NULL: not created yet, or taken over by a call */
    struct seqlstm_sizes sizes; /* of the op */
    struct sl_cost cost;
};

struct sl_subgraph {
    const struct sl_node *node; /* the graph's, or a copy of it in float32 */
    int32_t first, count;       /* nodes of the graph */
    struct sl_candidate *candidates;
    int32_t candidate_count;
    struct sl_refusal *refusals;
    int32_t refusal_count;
    const char *pin; /* the only backend allowed, by the model (ID or ID:VARIANT) or a stored plan; NULL: any */
    struct sl_place pin_place; /* in the model file; line 0: not from there */
};

struct sl_subgraphs {
    struct sl_arena *arena; /* of the plan */
    const struct sl_graph *graph;
    struct sl_backend *const *listed; /* in order */
    uint32_t listed_count;
    int32_t threads; /* the most that calls run on; 0: any number */
    struct sl_subgraph *items;
    int32_t count;
};

/* Asks every listed backend about every node and alternative of the graph. Errors: NO_MEMORY; INTERNAL when a
 * backend failed to answer. */
seqlstm_status sl_subgraphs_create(struct sl_arena *arena, const struct sl_graph *graph,
                                   struct sl_backend *const *listed, uint32_t listed_count,
                                   struct sl_subgraphs *out_subgraphs, struct seqlstm_error *err);

/* Destroys the ops that no call has taken over. */
void sl_subgraphs_destroy(struct sl_subgraphs *subgraphs);

/* Asks about one operation outside the graph's subgraphs. `node` NULL: an operation of the update. */
seqlstm_status sl_subgraph_ask(const struct sl_subgraphs *subgraphs, const struct sl_node *node,
                               const union seqlstm_any_desc *desc, struct sl_subgraph *out_subgraph,
                               struct seqlstm_error *err);

/* Creates the candidate's op unless it has one. If the backend refuses now, the refusal is noted and the candidate
 * excluded. Errors: the plugin's, other than UNSUPPORTED. */
seqlstm_status sl_subgraph_open_candidate(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                                          const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                          struct seqlstm_error *err);

/* Excludes a candidate and notes why. Errors: NO_MEMORY. */
seqlstm_status sl_subgraph_refuse_candidate(const struct sl_subgraphs *subgraphs, struct sl_subgraph *subgraph,
                                            struct sl_candidate *candidate, const char *reason,
                                            struct seqlstm_error *err);

/* Did a backend that stands earlier in the list refuse the subgraph? */
bool sl_candidate_is_fallback(const struct sl_subgraph *subgraph, const struct sl_candidate *candidate);

/* The call that the candidate would be. The candidate keeps its op. */
struct sl_call sl_candidate_make_call(const struct sl_subgraph *subgraph, const struct sl_candidate *candidate);

/* Candidates that are not excluded. */
int32_t sl_subgraph_count_candidates(const struct sl_subgraph *subgraph);

#endif
