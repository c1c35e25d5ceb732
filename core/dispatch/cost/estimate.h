/* SPDX-License-Identifier: Apache-2.0 */
/* Costs without measuring: estimates by the backends, and a guess by the amount of work. Private to core/dispatch. */
#ifndef SL_DISPATCH_COST_ESTIMATE_H
#define SL_DISPATCH_COST_ESTIMATE_H

#include "base/batch/profile.h"
#include "dispatch/candidate/candidate.h"

/* Are the rows of an operation steps, or else sequences? Its first input decides. */
bool sl_node_is_on_steps(const struct sl_graph *graph, const struct sl_node *node);

/* The guess for a mean batch, by numbers of products, bytes and calls: a measure of the work. Errors: NO_MEMORY. */
seqlstm_status sl_cost_guess(const struct sl_graph *graph, const struct sl_node *node,
                             const union seqlstm_any_desc *desc, const struct sl_profiles *profiles,
                             struct sl_cost *out_cost, struct seqlstm_error *err);

/* The cost of a mean batch: the backend's own estimate, or else the guess, which is the same for every backend. The
 * candidate's op exists. An estimate that fails or is not finite is not used. Errors: NO_MEMORY. */
seqlstm_status sl_cost_estimate(const struct sl_graph *graph, const struct sl_node *node,
                                const union seqlstm_any_desc *desc, const struct sl_candidate *candidate,
                                const struct sl_profiles *profiles, struct sl_cost *out_cost,
                                struct seqlstm_error *err);

#endif
