/* SPDX-License-Identifier: Apache-2.0 */
/* What a call costs, and how that is known. */
#ifndef SL_DISPATCH_PLAN_COST_H
#define SL_DISPATCH_PLAN_COST_H

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

static inline double sl_cost_get_ns(const struct sl_cost *cost)
{
    return cost->forward_ns + cost->backward_ns;
}

#endif
