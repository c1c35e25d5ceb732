/* SPDX-License-Identifier: Apache-2.0 */
/* Lets two sides take turns for many rounds, and computes the interval of the ratio of their times. */
#ifndef SL_COMPARE_AB_AB_TIME_H
#define SL_COMPARE_AB_AB_TIME_H

#include "base/system/interrupt.h"
#include "measure/interval.h"
#include "compare/side/side.h"

enum { SL_AB_ROUNDS_MOST = 1000 };

struct sl_ab_time_request {
    struct sl_compare_side *sides[2]; /* planned, not started */
    int32_t calls;                    /* of the plan */
    int32_t batches;                  /* of the sample; rounds use them in turn */
    int64_t rounds;                   /* 0: as many as fit into `seconds` */
    double seconds;
    double confidence;
    /* > 0: continue until the interval of the whole step is narrower than this on both sides, at most 5 x seconds */
    double within;
    uint64_t seed; /* for the orders and for the bootstrap */
    const struct sl_interrupt *interrupt;
    void (*on_progress)(void *context, double seconds_gone); /* may be NULL */
    void *context;
};

/* The whole step, or one call. */
struct sl_ab_time {
    double a_ns, b_ns; /* medians over rounds */
    struct sl_interval interval;
};

/* out_times: [1 + calls], first the whole step. */
seqlstm_status sl_ab_time_run(const struct sl_ab_time_request *request, struct sl_ab_time *out_times,
                              struct seqlstm_error *err);

#endif
