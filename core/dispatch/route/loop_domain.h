/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the memory domain of a loop. A loop runs in one domain, so that nothing is copied between its steps. Private
 * to core/dispatch. */
#ifndef SL_DISPATCH_ROUTE_LOOP_DOMAIN_H
#define SL_DISPATCH_ROUTE_LOOP_DOMAIN_H

#include "dispatch/candidate/candidate.h"

/* Puts out all candidates on the loop of the graph but those of the domain that runs it cheapest, the first of them
 * where costs are equal. Where no domain runs it all, nothing changes. Errors: NO_MEMORY. */
seqlstm_status sl_subgraphs_settle_loop(struct sl_subgraphs *subgraphs, struct seqlstm_error *err);

#endif
