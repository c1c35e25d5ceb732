/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest way through a graph, when stretches of its nodes may run as one step, on one of several domains.
 *
 * Pure: it knows numbers only. Private to core/dispatch. [any thread]
 */
#ifndef SL_DISPATCH_ROUTE_ROUTE_H
#define SL_DISPATCH_ROUTE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* Costs that differ by less count as equal: the order of the list decides. Estimates tell no finer; a tie
 * of measured costs gives away as much as it is wide, so it is as narrow as the measurement is sure. */
#define SL_ROUTE_TIE          0.03
#define SL_ROUTE_TIE_MEASURED 0.01

/* One way to run nodes [first, first + count). */
struct sl_route_step {
    int32_t first, count;
    int32_t domain;   /* memory that it works in, 0 .. domain_count - 1; 0 is the host's */
    uint32_t rank;    /* place of its backend in the list */
    uint32_t variant; /* place among the backend's variants */
    double cost_ns;
};

/* Node `reader` reads what node `writer` (-1: the batch, on the host) wrote; copied where they live apart. */
struct sl_route_read {
    int32_t reader, writer;
    double copy_ns;
};

struct sl_route_problem {
    int32_t node_count, domain_count;
    const struct sl_route_step *steps;
    int32_t step_count;
    const struct sl_route_read *reads;
    int32_t read_count;
    double tie; /* SL_ROUTE_TIE or SL_ROUTE_TIE_MEASURED */
};

struct sl_route {
    int32_t *steps; /* [count] indices into the problem's, in order; freed with free() */
    int32_t count;
    double cost_ns; /* steps and copies */
    int32_t stuck;  /* UNSUPPORTED: the first node that no step gets past */
};

/* Dynamic programming over (node, domain) in topological order. Exact where each node reads what the one before it
 * wrote; where branches meet, the copies of a path are those of the cheapest way to each state. Ways within the tie
 * of the cheapest, counted from where they part, are ranked by: the last in the list of the backends that they use;
 * the number of steps; variants. Errors: NO_MEMORY; UNSUPPORTED when no way leads to the end. */
seqlstm_status sl_route_find_cheapest(const struct sl_route_problem *problem, struct sl_route *out_route,
                                      struct seqlstm_error *err);

/* The cheapest of all ways that leave out one step of `first`, the cheapest way, and differ from it in steps that
 * take at least `share` of its cost. out_route->count is 0 where there is none. Errors: NO_MEMORY. */
seqlstm_status sl_route_find_second(const struct sl_route_problem *problem, const struct sl_route *first, double share,
                                    struct sl_route *out_route, struct seqlstm_error *err);

/* Is the step of the problem one of the path's? */
bool sl_route_has_step(const struct sl_route *route, int32_t step);

/* By the order of the list alone: at each node the longest step whose backend stands at least as early in the list as
 * the best of any step within it; among equals the first variant. Where that leads nowhere, the cheapest way. Errors:
 * as above. */
seqlstm_status sl_route_find_first(const struct sl_route_problem *problem, struct sl_route *out_route,
                                   struct seqlstm_error *err);

#endif
