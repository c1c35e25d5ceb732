/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of each candidate of a graph: from the cache, by timing it now, or by an estimate. Private to core/dispatch.
 *
 * How timing works. The candidates of a subgraph run in turn, round after round, on profiles of the real data. The
 * lower quartile of a candidate's rounds counts, or the fastest round if most were disturbed (rounds.h). A short probe
 * comes first (timing.c): a candidate that is three times slower than the best in it is not timed further. A candidate
 * whose estimate is more than three times the best is not timed at all. If the time for a subgraph is short, long
 * sequences are cut and some profiles left out.
 *
 * Nothing is timed after the time limit. Costs of subgraphs that compete with each other (a stack and its layers) must
 * not mix measurements and estimates, so if one of them was not timed, all of them are estimated: by what similar
 * operations took (experience.h), or else by the backends' own estimates.
 */
#ifndef SL_DISPATCH_COST_TUNE_H
#define SL_DISPATCH_COST_TUNE_H

#include "dispatch/plan/request.h"
#include "dispatch/candidate/candidate.h"
#include "dispatch/cost/cost_cache.h"
#include "dispatch/cost/experience.h"

/* The share of the time for a plan that is reserved for whole steps of the two best routes (route/whole_steps.h). */
#define SL_TUNER_WHOLE_STEPS_SHARE (1.0 / 7)

/* What tuning keeps from subgraph to subgraph. */
struct sl_tuner {
    const struct sl_subgraphs *subgraphs;
    const struct sl_tuning *tuning; /* NULL: only estimates */
    struct sl_profiles usual;       /* replaces tuning->profiles if there are none */
    struct sl_profiles sides[2];    /* lengths of the target (or of a plain model) and of the source; borrowed */
    struct sl_cost_key process[2];  /* likewise */
    int64_t deadline_ns;
    struct sl_experience experience;
    int32_t timed; /* candidates that were timed so far */
};

/* Errors: NO_MEMORY. `subgraphs` and `tuning` (may be NULL) outlive it. */
seqlstm_status sl_tuner_init(struct sl_tuner *tuner, const struct sl_subgraphs *subgraphs,
                             const struct sl_tuning *tuning, struct seqlstm_error *err);
void sl_tuner_deinit(struct sl_tuner *tuner);

/* Fills the costs of all candidates that are not excluded, and creates their ops. Excludes those that refuse when they
 * are created, or fail while they are timed. Errors: NO_MEMORY, CANCELLED, the plugins' own from creating ops. */
seqlstm_status sl_tuner_price_all(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct seqlstm_error *err);

/* The cost of one op outside the graph, measured if there is time left. If only the host's guess is known, the source
 * of the cost becomes SL_COST_NONE. Errors: CANCELLED. */
seqlstm_status sl_tuner_price_one(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct sl_subgraph *subgraph,
                                  const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                  struct seqlstm_error *err);

/* The key in the cache for the cost of a candidate. */
struct sl_cost_key sl_tuner_get_key(const struct sl_tuner *tuner, const struct sl_node *node,
                                    const union seqlstm_any_desc *desc, const struct sl_candidate *candidate);

#endif
