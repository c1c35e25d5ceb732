/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison of whole steps: if the two cheapest routes through a graph are close, whole steps of both are timed
 * and decide. Private to core/dispatch.
 *
 * The sum of the operations' times leaves out how they affect each other: through caches, wake-ups of threads, and
 * copies that overlap. The two times are kept in the cache of costs under one key of both plans, in whatever order; so
 * a later run makes the same decision without timing them again.
 */
#ifndef SL_DISPATCH_ROUTE_WHOLE_STEPS_H
#define SL_DISPATCH_ROUTE_WHOLE_STEPS_H

#include "dispatch/plan/request.h"
#include "dispatch/cost/tune.h"
#include "dispatch/route/candidate_routes.h"

struct sl_whole_steps_setup {
    const struct sl_candidate_routes *routes;
    struct sl_tuner *tuner;
    const struct sl_plan *frame; /* what both plans share: graph, threads and the operations of the update */
    int32_t optimizer_states;
};

/* `io_route`, the cheapest, is replaced by the second-best if that is faster. Nothing is compared unless all costs of
 * both are measured, their totals are close, and they differ in more than trifles. If whole steps cannot be timed, the
 * reason is logged, and the route stays. Texts of the result live in the frame's arena. Errors: NO_MEMORY, CANCELLED.
 */
seqlstm_status sl_whole_steps_compare(const struct sl_whole_steps_setup *request, struct sl_route *io_route,
                                      struct sl_whole_steps *out_steps, struct seqlstm_error *err);

/* A plan that follows all stored choices keeps the stored comparison. If pins, `--backend` or another graph change the
 * choices, it has none. Errors: NO_MEMORY. */
seqlstm_status sl_whole_steps_replay(const struct sl_plan_request *request, struct sl_plan *plan,
                                     struct seqlstm_error *err);

#endif
