/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of one candidate, and the time that follows from them. For core/dispatch and core/session.
 *
 * Other programs on the machine can only make a round longer. So the lower quartile of the rounds counts; if most
 * rounds were disturbed, the fastest round counts, and more rounds are needed.
 */
#ifndef SL_DISPATCH_COST_ROUNDS_H
#define SL_DISPATCH_COST_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_ROUNDS_MOST = 31, SL_ROUNDS_DISTURBED = 12 };

struct sl_rounds {
    int32_t count;
    int32_t disturbed; /* rounds in which the system interrupted this process */
    double forward_ns[SL_ROUNDS_MOST], backward_ns[SL_ROUNDS_MOST];
};

/* At most SL_ROUNDS_MOST times. */
void sl_rounds_add(struct sl_rounds *rounds, double forward_ns, double backward_ns, bool disturbed);

/* Are there enough rounds: `least`, or SL_ROUNDS_DISTURBED if most were disturbed? */
bool sl_rounds_suffice(const struct sl_rounds *rounds, int32_t least);

/* The quantile `share` of forward and backward together. count > 0. */
double sl_rounds_find(const struct sl_rounds *rounds, double share);

/* The resulting times. count > 0. */
void sl_rounds_get(const struct sl_rounds *rounds, double *out_forward_ns, double *out_backward_ns);

/* How often the system has taken a processor from a thread of this process so far. */
int64_t sl_rounds_count_preemptions(void);

#endif
