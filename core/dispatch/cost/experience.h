/* SPDX-License-Identifier: Apache-2.0 */
/* What timings of a plan teach about operations that were not timed. Private to core/dispatch.
 *
 * Two rules, for one backend, variant and kind of operation: the time grows in proportion to the work (a prediction,
 * from the most similar amount of work), and more work takes no less time (a bound).
 */
#ifndef SL_DISPATCH_COST_EXPERIENCE_H
#define SL_DISPATCH_COST_EXPERIENCE_H

#include "dispatch/candidate/candidate.h"

struct sl_experience {
    struct sl_lesson *lessons;
    int32_t count, capacity;
};

/* `work_ns`: the host's guess, a measure of the work. Errors: NO_MEMORY. */
seqlstm_status sl_experience_add(struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op,
                                 double work_ns, const struct sl_cost *cost, struct seqlstm_error *err);

/* What a candidate will cost; false: nothing like it was timed. */
bool sl_experience_predict(const struct sl_experience *experience, const struct sl_candidate *candidate, uint32_t op,
                           double work_ns, struct sl_cost *out_cost);

/* What it will cost at least; 0: nothing is known. */
double sl_experience_get_bound(const struct sl_experience *experience, const struct sl_candidate *candidate,
                               uint32_t op, double work_ns);

void sl_experience_deinit(struct sl_experience *experience);

#endif
