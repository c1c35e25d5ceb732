/* SPDX-License-Identifier: Apache-2.0 */
/* Predicts the cost of operations that were not timed from those that were. Private to core/dispatch.
 *
 * Two rules, for the same backend, variant and kind of operation: time is proportional to work (a prediction, from the
 * most similar amount of work), and more work does not take less time (a lower bound).
 */
#ifndef SL_DISPATCH_COST_EXPERIENCE_H
#define SL_DISPATCH_COST_EXPERIENCE_H

#include "dispatch/candidate/candidate.h"

struct sl_experience {
    struct sl_observation *observations;
    int32_t count, capacity;
};

/* `work_ns`: the host's guess, a measure of the work. Errors: NO_MEMORY. */
seqlstm_status sl_experience_add(struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op,
                                 double work_ns, const struct sl_cost *cost, struct seqlstm_error *err);

/* The expected cost of a candidate; false: nothing similar was timed. */
bool sl_experience_predict(const struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op,
                           double work_ns, struct sl_cost *out_cost);

/* The least cost of a candidate; 0: unknown. */
double sl_experience_get_bound(const struct sl_experience *experience, const struct sl_candidate *candidate,
                               uint32_t op, double work_ns);

void sl_experience_deinit(struct sl_experience *experience);

#endif
