/* SPDX-License-Identifier: Apache-2.0 */
/* Why a plan cannot be made, as an error: UNAVAILABLE, with the place in the model file where there is one. Private to
 * core/dispatch. */
#ifndef SL_DISPATCH_FAILURE_H
#define SL_DISPATCH_FAILURE_H

#include "dispatch/candidate/candidate.h"
#include "dispatch/plan/call.h"

/* No backend is loaded: what became of the first few, and how to use the reference. */
seqlstm_status sl_failure_no_backend(const struct sl_graph *graph, const struct sl_registry *registry,
                                     struct seqlstm_error *err);

/* A call is a fallback, which `dispatch.fallback: error` forbids. */
seqlstm_status sl_failure_fallback(const struct sl_graph *graph, const struct sl_call *call, struct seqlstm_error *err);

/* No backend in the list runs the subgraph, or not the one that it is pinned to: all refusals. */
seqlstm_status sl_failure_refused(const struct sl_graph *graph, const struct sl_registry *registry,
                                  const struct sl_subgraph *subgraph, struct seqlstm_error *err);

#endif
