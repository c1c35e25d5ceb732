/* SPDX-License-Identifier: Apache-2.0 */
/* The planner: graph + registry -> plan. It decides which backend runs which operation, and records why.
 *
 * The folders of core/dispatch, lowest first:
 *   plan       the result, and what is asked for: calls, refusals, costs, devices
 *   candidate  what each backend answers about each operation
 *   cost       how long each candidate takes: cached, timed or estimated
 *   memory     where buffers lie, and how much memory a run will need
 *   explain    a plan as a table and as JSON
 *   route      the cheapest route through the graph
 */
#ifndef SL_DISPATCH_PLANNER_H
#define SL_DISPATCH_PLANNER_H

#include "dispatch/plan/plan.h"
#include "dispatch/plan/request.h"

/* Makes the plan. Pins come first, then stored choices, then the policy: measured costs (from the cache or timed now),
 * estimates, or the order of the list. Errors: CANCELLED; UNAVAILABLE (exit status 3) if no listed backend accepts an
 * operation, with every refusal in the message, if a pin is refused, or by `fallback: error`. */
seqlstm_status sl_plan_create(const struct sl_plan_request *request, struct sl_plan **out_plan,
                              struct seqlstm_error *err);

#endif
