/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a call, and where it comes from. */
#ifndef SL_DISPATCH_PLAN_COST_H
#define SL_DISPATCH_PLAN_COST_H

enum sl_cost_source {
    SL_COST_NONE = 0,
    SL_COST_GUESS,    /* by the amount of work: the same for every backend */
    SL_COST_BOUND,    /* a lower bound: it was not timed */
    SL_COST_ESTIMATE, /* the backend's own */
    SL_COST_CACHED,   /* measured by an earlier run */
    SL_COST_STORED,   /* measured when the replayed plan was made */
    SL_COST_MEASURED
};

/* Times of one operation for a mean batch. */
struct sl_cost {
    enum sl_cost_source source;
    double forward_ns, backward_ns;
};

static inline double sl_cost_get_ns(const struct sl_cost *cost)
{
    return cost->forward_ns + cost->backward_ns;
}

#endif
