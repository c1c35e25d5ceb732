/* SPDX-License-Identifier: Apache-2.0 */
/* Costs that nobody measured. Private to core/dispatch. */
#ifndef SL_DISPATCH_COST_ESTIMATE_H
#define SL_DISPATCH_COST_ESTIMATE_H

#include "base/batch/profile.h"
#include "dispatch/candidate/candidate.h"

/* Are the rows of an operation steps (or sequences)? That of its first input. */
bool sl_node_is_on_steps(const struct sl_graph *graph, const struct sl_node *node);

/* The host's guess for a mean batch, by products, bytes and calls: a measure of the work. Errors: NO_MEMORY. */
seqlstm_status sl_cost_guess(const struct sl_graph *graph, const struct sl_node *node,
                             const union seqlstm_any_desc *desc, const struct sl_profiles *profiles,
                             struct sl_cost *out_cost, struct seqlstm_error *err);

/* What a mean batch costs: the backend's own estimate, or else the host's guess, which is the same for every backend.
 * `candidate->op` exists. An estimate that fails or is no number is not used. Errors: NO_MEMORY. */
seqlstm_status sl_cost_estimate(const struct sl_graph *graph, const struct sl_node *node,
                                const union seqlstm_any_desc *desc, const struct sl_candidate *candidate,
                                const struct sl_profiles *profiles, struct sl_cost *out_cost,
                                struct seqlstm_error *err);

#endif
