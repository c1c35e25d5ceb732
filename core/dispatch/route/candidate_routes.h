/* SPDX-License-Identifier: Apache-2.0 */
/* The ways through a graph: its candidates as the steps of a path. Private to core/dispatch. */
#ifndef SL_DISPATCH_ROUTE_CANDIDATE_ROUTES_H
#define SL_DISPATCH_ROUTE_CANDIDATE_ROUTES_H

#include "dispatch/candidate/candidate.h"
#include "dispatch/route/route.h"

struct sl_candidate_routes {
    struct sl_route_problem problem;
    struct sl_route_step *steps; /* [problem.step_count], and of each: */
    struct sl_span **spans;
    struct sl_candidate **candidates;
    struct sl_route_read *reads;
    char (*domains)[64];
};

/* Of the candidates that are not out, by the costs that they have. Errors: NO_MEMORY. */
seqlstm_status sl_candidate_routes_init(struct sl_candidate_routes *routes, const struct sl_spans *spans,
                                        struct seqlstm_error *err);
void sl_candidate_routes_deinit(struct sl_candidate_routes *routes); /* a zeroed struct is fine, and so it is left */

/* Opens the ops along a route; *out_open false: one of them refused, and the ways are others now. */
seqlstm_status sl_candidate_routes_open(const struct sl_candidate_routes *routes, const struct sl_spans *spans,
                                        const struct sl_route *route, bool *out_open, struct seqlstm_error *err);

#endif
