/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest route through a graph. A step runs one node or several neighbouring ones, in one memory domain; a route
 * is a list of steps which runs every node once. Copies between domains cost time, too.
 *
 * Works on numbers alone. Private to core/dispatch. [any thread]
 */
#ifndef SL_DISPATCH_ROUTE_ROUTE_H
#define SL_DISPATCH_ROUTE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* Costs that differ by less count as equal, and the order of the list decides. Estimates are not more precise than
 * that. A tie of measured costs can lose as much time as it is wide, so it is as narrow as the precision of timing
 * allows. */
#define SL_ROUTE_TIE          0.03
#define SL_ROUTE_TIE_MEASURED 0.01

/* One possibility to run nodes [first, first + count). */
struct sl_route_step {
    int32_t first, count;
    int32_t domain;   /* memory that it works in, 0 .. domain_count - 1; 0: the host's */
    uint32_t rank;    /* place of its backend in the list */
    uint32_t variant; /* place among the backend's variants */
    double cost_ns;
};

/* Node `reader` reads what node `holder`, the last one before it that wrote or read it, had in its domain (-1: the
 * batch, on the host). Copied if their domains differ. */
struct sl_route_read {
    int32_t reader, holder;
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
    int32_t stuck;  /* if UNSUPPORTED: the first node that no route gets past */
};

/* Dynamic programming over (node, domain) in topological order. Exact if each node reads only what the node before it
 * wrote; where branches meet, copies are counted along the cheapest route to each state. Routes that tie with the
 * cheapest, counted from where they part, are ranked by: the backend that stands last in the list among those that they
 * use; the number of steps; variants. Errors: NO_MEMORY; UNSUPPORTED if there is no route. */
seqlstm_status sl_route_find_cheapest(const struct sl_route_problem *problem, struct sl_route *out_route,
                                      struct seqlstm_error *err);

/* The second-best route: the cheapest one that avoids a step of `first`, the cheapest route, and differs from it in
 * steps that take at least `share` of its cost. out_route->count 0: there is none. Errors: NO_MEMORY. */
seqlstm_status sl_route_find_second(const struct sl_route_problem *problem, const struct sl_route *first, double share,
                                    struct sl_route *out_route, struct seqlstm_error *err);

/* Does the route contain this step of the problem? */
bool sl_route_has_step(const struct sl_route *route, int32_t step);

/* The route by the order of the list alone: at each node the longest step whose backend stands at least as early in the
 * list as that of any step within it, and its first variant. If that leads to a dead end, the cheapest route. Errors as
 * for sl_route_find_cheapest. */
seqlstm_status sl_route_find_first(const struct sl_route_problem *problem, struct sl_route *out_route,
                                   struct seqlstm_error *err);

#endif
