/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates of a graph as the steps of its routes: the input of route.h. Private to core/dispatch. */
#ifndef SL_DISPATCH_ROUTE_CANDIDATE_ROUTES_H
#define SL_DISPATCH_ROUTE_CANDIDATE_ROUTES_H

#include "dispatch/candidate/candidate.h"
#include "dispatch/route/route.h"

struct sl_candidate_routes {
    struct sl_route_problem problem;
    struct sl_route_step *steps; /* [problem.step_count], and for each step: */
    struct sl_subgraph **subgraphs;
    struct sl_candidate **candidates;
    struct sl_route_read *reads;
    char (*domains)[64];
};

/* Takes the candidates that are not excluded, with their costs. Errors: NO_MEMORY. */
seqlstm_status sl_candidate_routes_init(struct sl_candidate_routes *routes, const struct sl_subgraphs *subgraphs,
                                        struct seqlstm_error *err);
void sl_candidate_routes_deinit(
    struct sl_candidate_routes *routes); /* leaves a zeroed struct; one is also fine as input */

/* Creates the ops of a route. *out_open false: one of them refused, so these routes are no longer valid. */
seqlstm_status sl_candidate_routes_open(const struct sl_candidate_routes *routes, const struct sl_subgraphs *subgraphs,
                                        const struct sl_route *route, bool *out_open, struct seqlstm_error *err);

#endif
