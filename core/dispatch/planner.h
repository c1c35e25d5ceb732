/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans: graph + registry -> plan.
 *
 * Each node of the graph, or an alternative which stands for several, becomes one prepared call: the cheapest route
 * through the graph, by the policy of the model. */
#ifndef SL_DISPATCH_PLANNER_H
#define SL_DISPATCH_PLANNER_H

#include "dispatch/plan/plan.h"
#include "dispatch/plan/request.h"

/* Makes the plan: pins, then stored choices, then (by policy) measured costs from the cache, timings made now,
 * estimates, the order of the list. Errors: CANCELLED; UNAVAILABLE (exit 3) when no listed backend accepts an
 * operation, with every refusal in the message, when a pin is refused, and with `fallback: error`. */
seqlstm_status sl_plan_create(const struct sl_plan_request *request, struct sl_plan **out_plan,
                              struct seqlstm_error *err);

#endif
