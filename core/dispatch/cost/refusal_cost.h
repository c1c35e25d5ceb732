/* SPDX-License-Identifier: Apache-2.0 */
/* What a refusal costs: how fast the refusing backend would run the layer without the refused options. Private to
 * core/dispatch. */
#ifndef SL_DISPATCH_COST_REFUSAL_COST_H
#define SL_DISPATCH_COST_REFUSAL_COST_H

#include "dispatch/cost/tune.h"

/* Fills `without` and `speedup` of the refusals where they can be found. `chosen`: the cost of the chosen candidate.
 * Errors: NO_MEMORY, CANCELLED, INTERNAL if a backend fails to answer. */
seqlstm_status sl_subgraph_find_refusal_costs(struct sl_tuner *tuner, enum sl_dispatch_policy policy,
                                              struct sl_subgraph *subgraph, const struct sl_cost *chosen,
                                              struct seqlstm_error *err);

#endif
