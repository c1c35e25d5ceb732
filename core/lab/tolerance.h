/* SPDX-License-Identifier: Apache-2.0 */
/* How far a result may be from the reference: one error model for every backend.
 *
 *   tolerance of element i = c · eps · sqrt(K) · growth(T) · (|r_i| + scale)
 *
 * eps is half a unit in the last place of the dtype the operation computes in, K the length of the sums that
 * an element goes through, T the steps that it passes, r_i the reference's element and scale the size
 * of the tensor that it stands in (root of the mean square). c is in the table of tolerance.c, one line per
 * operation and direction, each with its reason. There are no exceptions for single backends.
 */
#ifndef SL_LAB_TOLERANCE_H
#define SL_LAB_TOLERANCE_H

#include "lab/data.h"

/* Factor of (|r_i| + scale) for one slot of a case. */
double sl_tolerance(const struct sl_data *data, int32_t slot, bool gradient);

struct sl_comparison {
    double worst;       /* largest error / tolerance; NaN or infinity where one side is not finite */
    int64_t index;      /* of the worst element */
    double got, expected, tolerance;
    bool failed;        /* an element with !(error <= tolerance) */
};

/* Compares `elems` elements. Equal infinities and two NaN are equal. Adds to *comparison, which
 * starts zeroed; true when this slot holds the new worst. */
bool sl_compare(const double *got, const double *expected, int64_t elems, double factor,
                struct sl_comparison *comparison);

#endif
