/* SPDX-License-Identifier: Apache-2.0 */
/* What the candidates of a graph cost: from the cache, by timing them now, or by estimates. Private to core/dispatch.
 *
 * Timing. The candidates of a span run in turn, round after round, on profiles of the real data; the median of the
 * rounds counts. A short probe comes first: who is three times slower than the best in it is not timed further, and
 * who estimates three times more than the best is not timed at all. Long sequences are cut and profiles left out until
 * the share of time that a span has suffices. Nothing is timed once the time is up; spans that stand in each other's
 * place (a stack and its layers) are then all judged by estimates, never some by the one and some by the other. The
 * estimates are then those that the timings of like operations suggest (experience.h).
 */
#ifndef SL_DISPATCH_COST_TUNE_H
#define SL_DISPATCH_COST_TUNE_H

#include "dispatch/plan/request.h"
#include "dispatch/candidate/candidate.h"
#include "dispatch/cost/cost_cache.h"
#include "dispatch/cost/experience.h"
#include "dispatch/plan/request.h"

/* Of the time for a plan, what is left for whole steps of the best two (route/whole_steps.h). */
#define SL_TUNER_WHOLE_STEPS_SHARE (1.0 / 7)

/* What tuning keeps from span to span. */
struct sl_tuner {
    const struct sl_spans *spans;
    const struct sl_tuning *tuning; /* NULL: estimates alone */
    struct sl_profiles usual;       /* in place of tuning->profiles where there are none */
    struct sl_profiles sides[2];    /* as the decoder (or a plain model) and as the encoder sees them; borrowed */
    struct sl_cost_key process[2];  /* likewise */
    int64_t deadline_ns;
    struct sl_experience experience;
    int32_t timed; /* candidates so far */
};

/* Errors: NO_MEMORY. `spans` and `tuning` (may be NULL) outlive it. */
seqlstm_status sl_tuner_init(struct sl_tuner *tuner, const struct sl_spans *spans, const struct sl_tuning *tuning,
                             struct seqlstm_error *err);
void sl_tuner_deinit(struct sl_tuner *tuner);

/* Fills the cost of every candidate that is not out; creates their ops, and puts out those that refuse then or fail
 * while they are timed. Errors: NO_MEMORY, CANCELLED, the plugins' own from creating ops. */
seqlstm_status sl_tuner_price_all(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct seqlstm_error *err);

/* The cost of one op that is no candidate of the graph, measured if there is time left. `out_cost->source` is
 * SL_COST_NONE when there is nothing but the host's guess. Errors: CANCELLED. */
seqlstm_status sl_tuner_price_one(struct sl_tuner *tuner, enum sl_dispatch_policy policy, struct sl_span *span,
                                  const union seqlstm_any_desc *desc, struct sl_candidate *candidate,
                                  struct seqlstm_error *err);

/* Of what a candidate takes for the node, in the cache. */
struct sl_cost_key sl_tuner_get_key(const struct sl_tuner *tuner, const struct sl_node *node,
                                    const union seqlstm_any_desc *desc, const struct sl_candidate *candidate);

#endif
