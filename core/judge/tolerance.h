/* SPDX-License-Identifier: Apache-2.0 */
/* How far a result may be from the reference: one error model for every backend.
 *
 *   tolerance of element i = c · eps · sqrt(K) · growth(T) · (|r_i| + scale + floor)  [+ 4 · movement_i]
 *
 * eps is half a unit in the last place of the coarsest dtype that the element or its products have, K the length
 * of the sums that an element goes through, T the steps that it passes, r_i the reference's element and scale the
 * size of the tensor that it stands in (root of the mean square). floor is the size of what an element is made
 * from, where factors in [0, 1] can make the element itself much smaller than the error of its parts. c is in the
 * table of tolerance.c, one line per operation and direction, each with its reason. movement (condition.h) counts
 * only where an element is beyond the rest. There are no exceptions for single backends.
 */
#ifndef SL_JUDGE_TOLERANCE_H
#define SL_JUDGE_TOLERANCE_H

#include "judge/data.h"

/* Of one slot of a case. */
struct sl_tolerance {
    double factor; /* c · eps · sqrt(K) · growth(T) */
    double floor;
};
struct sl_tolerance sl_tolerance_get(const struct sl_data *data, int32_t slot, bool gradient);

struct sl_comparison {
    double worst;  /* largest error / tolerance; NaN or infinity where one side is not finite */
    int64_t index; /* of the worst element */
    double got, expected, tolerance;
    bool failed; /* an element with !(error <= tolerance) */
};

/* Compares `elems` elements. Equal infinities and two NaN are equal. `movement` may be NULL. */
void sl_compare(const double *got, const double *expected, const double *movement, int64_t elems,
                struct sl_tolerance tolerance, struct sl_comparison *out_comparison);

#endif
