/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of the conformance kit for collectives. */
#ifndef SL_CONFORMANCE_COLLECTIVES_CASES_H
#define SL_CONFORMANCE_COLLECTIVES_CASES_H

#include "conformance/collectives/trial.h"

/* How a case ends, apart from a failed check. */
enum sl_trial_kind {
    SL_TRIAL_USUAL,
    SL_TRIAL_LAST_DIES, /* the last rank kills itself */
    SL_TRIAL_LARGE,     /* only with --full */
    SL_TRIAL_TIMES      /* only with --bench */
};

struct sl_trial_case {
    const char *name;
    enum sl_trial_kind kind;
    void (*run)(struct sl_trial *trial);
};

/* All cases; the last entry has no name. */
extern const struct sl_trial_case sl_trial_cases[];

/* times.c */
void sl_trial_time(struct sl_trial *trial);
/* numbers.c */
void sl_trial_all_reduce(struct sl_trial *trial);
void sl_trial_reduce_scatter(struct sl_trial *trial);
void sl_trial_shared(struct sl_trial *trial);
void sl_trial_rounding(struct sl_trial *trial);
void sl_trial_ordered_sum(struct sl_trial *trial);
void sl_trial_large(struct sl_trial *trial);
/* moves.c */
void sl_trial_all_gather(struct sl_trial *trial);
void sl_trial_broadcast(struct sl_trial *trial);
void sl_trial_send_receive(struct sl_trial *trial);
void sl_trial_barrier(struct sl_trial *trial);
void sl_trial_groups(struct sl_trial *trial);
void sl_trial_many(struct sl_trial *trial);
/* failures.c */
void sl_trial_time_out(struct sl_trial *trial);
void sl_trial_late_peer(struct sl_trial *trial);
void sl_trial_death(struct sl_trial *trial);
void sl_trial_leaving(struct sl_trial *trial);
void sl_trial_abort(struct sl_trial *trial);

#endif
