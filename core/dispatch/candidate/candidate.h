/* SPDX-License-Identifier: Apache-2.0 */
/* Which backends would run which stretch of the graph, with which variant, and what the others said.
 *
 * A span is a node of the graph, or an alternative that stands for several; a candidate is one backend, device and
 * variant that accepts it. Private to core/dispatch.
 *
 * Invariants:
 *  1. Spans of single nodes come first, in the order of the graph; alternatives follow in theirs.
 *  2. Bids stand in the order of the list, variants of one backend as it named them.
 *  3. A candidate that is `out` is not chosen; its op, if it has one, is destroyed with the spans.
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
    struct seqlstm_op *op;      /* NULL: not created yet, or handed over */
    struct seqlstm_sizes sizes; /* of the op */
    struct sl_cost cost;
};

struct sl_span {
    const struct sl_node *node; /* the graph's, or a copy of it in float32 */
    int32_t first, count;       /* nodes of the graph */
    struct sl_candidate *candidates;
    int32_t candidate_count;
    struct sl_refusal *refusals;
    int32_t refusal_count;
    const char *pin; /* what it is held to, by the model (ID or ID:VARIANT) or a stored plan; NULL: nothing */
};

struct sl_spans {
    struct sl_arena *arena; /* of the plan */
    const struct sl_graph *graph;
    struct sl_backend *const *listed; /* in order */
    uint32_t listed_count;
    int32_t threads; /* most that calls run on; 0: any number */
    struct sl_span *items;
    int32_t count;
};

/* Asks every listed backend about every node and alternative of the graph. Errors: NO_MEMORY; INTERNAL when a
 * backend failed to answer. */
seqlstm_status sl_spans_create(struct sl_arena *arena, const struct sl_graph *graph, struct sl_backend *const *listed,
                               uint32_t listed_count, struct sl_spans *out_spans, struct seqlstm_error *err);

/* Destroys the ops that nobody took. */
void sl_spans_destroy(struct sl_spans *spans);

/* Asks about one operation that belongs to no span. `node` NULL: an operation of the update. */
seqlstm_status sl_span_ask(const struct sl_spans *spans, const struct sl_node *node, const union seqlstm_any_desc *desc,
                           struct sl_span *out_span, struct seqlstm_error *err);

/* Creates the candidate's op unless it has one; a refusal at this point puts the candidate out and is noted. Errors:
 * the plugin's other than UNSUPPORTED. */
seqlstm_status sl_span_open_candidate(const struct sl_spans *spans, struct sl_span *span,
                                      const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                      struct seqlstm_error *err);

/* Puts a candidate out and notes why. Errors: NO_MEMORY. */
seqlstm_status sl_span_refuse_candidate(const struct sl_spans *spans, struct sl_span *span,
                                        struct sl_candidate *candidate, const char *reason, struct seqlstm_error *err);

/* Did an earlier-listed backend refuse what the candidate takes? */
bool sl_candidate_is_fallback(const struct sl_span *span, const struct sl_candidate *candidate);

/* The call that the candidate would be. Its op stays the candidate's. */
struct sl_call sl_candidate_make_call(const struct sl_span *span, const struct sl_candidate *candidate);

/* Bids that are not out. */
int32_t sl_span_count_candidates(const struct sl_span *span);

#endif
