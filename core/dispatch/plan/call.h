/* SPDX-License-Identifier: Apache-2.0 */
/* One prepared call of a plan: which backend runs which nodes of the graph, and why that one. */
#ifndef SL_DISPATCH_PLAN_CALL_H
#define SL_DISPATCH_PLAN_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/backend.h>

#include "dispatch/plan/cost.h"
#include "dispatch/plan/refusal.h"
#include "graph/graph.h"
#include "registry/registry.h"

/* Another backend or variant that accepted the operation. */
struct sl_rival {
    const char *backend, *variant;
    struct sl_cost cost;
};

/* The number of batch shapes for which an executor keeps bindings. With data of mixed lengths nearly every batch has a
 * new shape; streams have one. */
enum { SL_SHAPES_BOUND = 8 };

/* One prepared call. */
struct sl_call {
    const struct sl_node *node;     /* of graph->nodes or of an alternative */
    int32_t node_first, node_count; /* the nodes that it runs */
    struct sl_backend *backend;
    uint32_t device;
    const char *variant;
    struct seqlstm_op *op;
    struct seqlstm_sizes sizes;
    uint64_t own_bytes;     /* what the backend takes outside the buffers of the host: a prediction */
    int64_t reserve_offset; /* bytes into the reserve buffer; -1: none */
    int64_t packed_offset;  /* bytes into the packed buffer; -1: none */
    const struct sl_refusal *refusals;
    int32_t refusal_count;
    const struct sl_rival *rivals;
    int32_t rival_count;
    struct sl_cost cost;
    bool fallback; /* a backend that stands earlier in the list refused it */
};

/* A flat-vector operation of training. */
struct sl_vector_call {
    const union seqlstm_any_desc *desc;
    struct sl_backend *backend;
    uint32_t device;
    struct seqlstm_op *op;
    struct seqlstm_sizes sizes;
};

/* Do the nodes of the call run step by step? */
static inline bool sl_call_is_in_loop(const struct sl_graph *graph, const struct sl_call *call)
{
    return call->node_first >= graph->loop.first && call->node_first < graph->loop.first + graph->loop.count;
}

/* Do they run piece by piece? */
static inline bool sl_call_is_pieced(const struct sl_graph *graph, const struct sl_call *call)
{
    return graph->pieces > 0 && sl_graph_find_barrier(graph, call->node) == SL_BARRIER_NONE;
}

/* The memory domain in which the call works: "host", "cuda:<uuid>". Borrowed. */
const char *sl_call_get_domain(const struct sl_call *call);
/* Does it compute float32 products on the tiles of the processor? Variants that do are called "tiles". */
bool sl_call_uses_tiles(const struct sl_call *call);

#endif
