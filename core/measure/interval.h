/* SPDX-License-Identifier: Apache-2.0 */
/* Ratios of times that were measured in turn, and their confidence intervals.
 *
 * A round gives one number, d = ln(time of B / time of A), measured in the order A B B A or B A A B, so that drift and
 * the position in the order cancel. Over n rounds:
 *
 *   ratio      exp of the mean of the middle 60 % of d (20 % trimmed on each side): a step that the machine
 *              interrupted does not move it
 *   interval   percentiles of that mean over 4000 bootstrap resamples of the rounds. Where neighbouring rounds are
 *              correlated (lag-1 correlation r above 2 / sqrt n), blocks of (2 r / (1 - r²))^(2/3) n^(1/3)
 *              consecutive rounds are drawn (Künsch 1989, length after Carlstein 1986). The percentiles are
 *              taken further out, as Student's t requires with n - 1 degrees (Hesterberg 2015, section 3.3)
 *
 * Seeded: equal times give equal intervals. [any thread] */
#ifndef SL_MEASURE_INTERVAL_H
#define SL_MEASURE_INTERVAL_H

#include <stdint.h>

#include <seqlstm/status.h>

/* With fewer rounds nothing can be said: low is 0 and high infinite. */
enum { SL_INTERVAL_ROUNDS_LEAST = 6 };

struct sl_interval {
    double ratio;     /* B over A; NaN without rounds */
    double low, high; /* confidence interval */
    int64_t rounds;
    int64_t block; /* rounds that are drawn together; 1: independent */
};

/* `logs` [count]: d of each round. `confidence`: in (0, 1). NO_MEMORY. */
seqlstm_status sl_interval_compute(const double *logs, int64_t count, double confidence, uint64_t seed,
                                   struct sl_interval *out_interval, struct seqlstm_error *err);

#endif
