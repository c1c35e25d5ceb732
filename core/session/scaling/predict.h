/* SPDX-License-Identifier: Apache-2.0 */
/* The time of an update on several hosts, from what one of them has measured. No input, no output: arithmetic. */
#ifndef SL_SESSION_SCALING_PREDICT_H
#define SL_SESSION_SCALING_PREDICT_H

#include "session/scaling/costs.h"

struct sl_scaling_place {
    int32_t ranks, hosts;
    int32_t local; /* ranks of a host, where there are several */
    struct sl_scaling_link link, inner;
    bool central;          /* reduce: central */
    int32_t element_bytes; /* 2 with bfloat16 */
};

/* Fills times, memory and idle ranks of the row. */
void sl_scaling_predict(const struct sl_scaling_costs *costs, const struct sl_scaling_place *place,
                        struct sl_scaling_row *row);

/* Seconds of an all_reduce of so many bytes between hosts, of which each has the sum of its ranks: halves are added and
 * gathered again, in 2 log2(hosts) exchanges. */
double sl_scaling_all_reduce_s(const struct sl_scaling_link *link, int32_t hosts, double bytes);

#endif
