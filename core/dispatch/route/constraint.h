/* SPDX-License-Identifier: Apache-2.0 */
/* Choices that do not depend on costs: pins, stored choices, a forced backend. Private to core/dispatch. */
#ifndef SL_DISPATCH_ROUTE_CONSTRAINT_H
#define SL_DISPATCH_ROUTE_CONSTRAINT_H

#include "dispatch/plan/request.h"
#include "dispatch/candidate/candidate.h"

/* Puts the candidates out that pins, stored choices and --backend exclude, in this order of strength. Errors:
 * UNAVAILABLE (with a place) when a pin or a binding stored choice names a backend that is not loaded. */
seqlstm_status sl_subgraphs_constrain(struct sl_subgraphs *subgraphs, const struct sl_plan_request *request,
                                      struct seqlstm_error *err);

/* Are there stored choices of the graph's own phase? */
bool sl_plan_request_is_replay(const struct sl_plan_request *request);

#endif
