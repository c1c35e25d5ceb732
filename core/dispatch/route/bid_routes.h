/* SPDX-License-Identifier: Apache-2.0 */
/* The ways through a graph: its bids as the steps of a path. Private to core/dispatch. */
#ifndef SL_DISPATCH_ROUTE_BID_ROUTES_H
#define SL_DISPATCH_ROUTE_BID_ROUTES_H

#include "dispatch/bid/bid.h"
#include "dispatch/route/route.h"

struct sl_bid_routes {
    struct sl_route_problem problem;
    struct sl_route_step *steps; /* [problem.step_count], and of each: */
    struct sl_span **spans;
    struct sl_bid **bids;
    struct sl_route_read *reads;
    char (*domains)[64];
};

/* Of the bids that are not out, by the costs that they have. Errors: NO_MEMORY. */
seqlstm_status sl_bid_routes_init(struct sl_bid_routes *ways, const struct sl_spans *spans, struct seqlstm_error *err);
void sl_bid_routes_deinit(struct sl_bid_routes *ways); /* a zeroed struct is fine, and so it is left */

/* Opens the ops along a path; *out_open false: one of them refused, and the ways are others now. */
seqlstm_status sl_bid_routes_open(const struct sl_bid_routes *ways, const struct sl_spans *spans,
                                  const struct sl_route *path, bool *out_open, struct seqlstm_error *err);

#endif
