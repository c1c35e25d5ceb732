/* SPDX-License-Identifier: Apache-2.0 */
/* How often values occurred, by their size: quantiles of any number of float32 in a fixed room.
 *
 * A bucket holds the values that share sign, exponent and the first 7 bits of the mantissa, so its edges differ by less
 * than one percent. */
#ifndef SL_SESSION_EVALUATE_VALUE_HISTOGRAM_H
#define SL_SESSION_EVALUATE_VALUE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_VALUE_BUCKETS = 1 << 16 };

/* Zeroed: empty. */
struct sl_value_histogram {
    int64_t counts[SL_VALUE_BUCKETS]; /* in ascending order of the values */
    int64_t total;
    int64_t strange; /* values that are not finite; in no bucket */
    float low, high; /* of the finite values */
};

void sl_value_histogram_add(struct sl_value_histogram *histogram, const float *values, int64_t count);

/* The narrowest range of bucket edges, within low .. high, that leaves out at most `share` of the values at either end;
 * 0: all of them are inside. False when the histogram is empty. */
bool sl_value_histogram_find_range(const struct sl_value_histogram *histogram, double share, double *out_low,
                                   double *out_high);

#endif
