/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's records in the cache: costs and refusals of candidates, which a plan takes from earlier runs and adds for
 * later ones. Only for tune.c. */
#ifndef SL_DISPATCH_COST_TUNE_RECORD_H
#define SL_DISPATCH_COST_TUNE_RECORD_H

#include "dispatch/cost/tune.h"

/* What a call has to compute, besides what its descriptor says. */
struct sl_call_parts {
    bool on_steps, backward, input_grad, param_grad;
};

struct sl_call_parts sl_tuner_get_parts(const struct sl_tuner *tuner, const struct sl_node *node);

/* The lengths of the sequences that the node computes: those of the target, or of the source. */
const struct sl_profiles *sl_tuner_get_profiles(const struct sl_tuner *tuner, const struct sl_node *node);

/* Is it excluded, or not worth timing? `best`: the least estimate. */
bool sl_tuner_skips(const struct sl_candidate *candidate, double best);

/* Takes the costs of a subgraph from the cache. True: none is missing. A candidate that was skipped must not win by an
 * estimate that is too good: its cost is at least three times the best. `best`: the least estimate. */
bool sl_tuner_recall(const struct sl_tuner *tuner, struct sl_subgraph *subgraph, const union seqlstm_any_desc *desc,
                     double best, enum sl_cost_source source);

/* Records what a candidate took, or (bound) takes at least, for this plan and for later runs. */
seqlstm_status sl_tuner_keep(struct sl_tuner *tuner, const struct sl_subgraph *subgraph,
                             const union seqlstm_any_desc *desc, const struct sl_candidate *candidate, bool bound,
                             double forward_ns, double backward_ns, struct seqlstm_error *err);

/* Creates the op of a candidate, or excludes the candidate if its backend refuses. Creating an op may take a trial run,
 * so refusals are cached: the backend is not asked again in a later run. */
seqlstm_status sl_tuner_open_candidate(struct sl_tuner *tuner, struct sl_subgraph *subgraph,
                                       const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                       struct seqlstm_error *err);

#endif
