/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of one candidate, and what they say of its time. For core/dispatch and core/session.
 *
 * What others do on the machine only ever makes a round longer. Where few rounds were disturbed their lower quartile
 * counts; where most were, the least, and it takes more of them to say anything.
 */
#ifndef SL_DISPATCH_COST_ROUNDS_H
#define SL_DISPATCH_COST_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_ROUNDS_MOST = 31, SL_ROUNDS_DISTURBED = 12 };

struct sl_rounds {
    int32_t count;
    int32_t disturbed; /* of them: others took a processor from this process */
    double forward_ns[SL_ROUNDS_MOST], backward_ns[SL_ROUNDS_MOST];
};

/* At most SL_ROUNDS_MOST times. */
void sl_rounds_add(struct sl_rounds *rounds, double forward_ns, double backward_ns, bool disturbed);

/* Enough to conclude from: `least`, or SL_ROUNDS_DISTURBED where most were disturbed. */
bool sl_rounds_suffice(const struct sl_rounds *rounds, int32_t least);

/* Forward and backward together; `share` of the rounds take less. count > 0. */
double sl_rounds_find(const struct sl_rounds *rounds, double share);

/* What counts. count > 0. */
void sl_rounds_get(const struct sl_rounds *rounds, double *out_forward_ns, double *out_backward_ns);

/* How often the system has taken a processor from a thread of this process so far. */
int64_t sl_rounds_count_preemptions(void);

#endif
