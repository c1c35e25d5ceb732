/* SPDX-License-Identifier: Apache-2.0 */
/* Where the two cheapest routes through a graph are close, whole steps of both are timed and decide. Private to
 * core/dispatch.
 *
 * A sum of operations leaves out what they do to each other: caches, threads that are woken, copies that overlap. The
 * two times are kept in the cache of costs under a key of both plans, whichever of them is the cheaper by its
 * operations, so that a later run neither times them again nor decides otherwise.
 */
#ifndef SL_DISPATCH_ROUTE_WHOLE_STEPS_H
#define SL_DISPATCH_ROUTE_WHOLE_STEPS_H

#include "dispatch/plan/request.h"
#include "dispatch/cost/tune.h"
#include "dispatch/route/candidate_routes.h"

struct sl_whole_steps_setup {
    const struct sl_candidate_routes *routes;
    struct sl_tuner *tuner;
    const struct sl_plan *frame; /* what both plans have: graph, threads and the operations of the update */
    int32_t optimizer_states;
};

/* `path`, the cheapest, becomes the faster. Nothing happens unless the costs of both are measured, the totals are
 * close and the two differ in more than trifles. What keeps whole steps from being timed is logged and stops nobody.
 * Texts of the result live in the frame's arena. Errors: NO_MEMORY, CANCELLED. */
seqlstm_status sl_whole_steps_compare(const struct sl_whole_steps_setup *request, struct sl_route *route,
                                      struct sl_whole_steps *out_steps, struct seqlstm_error *err);

/* A plan that follows the stored choices keeps the stored comparison; where pins, `--backend` or another graph lead
 * elsewhere, it has none. Errors: NO_MEMORY. */
seqlstm_status sl_whole_steps_replay(const struct sl_plan_request *request, struct sl_plan *plan,
                                     struct seqlstm_error *err);

#endif
