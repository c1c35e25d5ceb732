/* SPDX-License-Identifier: Apache-2.0 */
/* How far a result may be from the reference: one error model for every backend.
 *
 *   tolerance of element i = c · eps · sqrt(K) · growth(T) · (|r_i| + scale + floor)  [+ 4 · movement_i]
 *
 *   eps       half a unit in the last place of the coarsest dtype of the element or its products
 *   K         the length of the sums that an element goes through
 *   T         the steps that it passes
 *   r_i       the reference's element
 *   scale     the size of the tensor that contains it (root mean square)
 *   floor     the size of the parts of an element, whose error may be larger than the element itself, since factors in
 *             [0, 1] can make it much smaller than its parts
 *   c         from the table in tolerance.c, one line for each operation and direction, with its reason
 *   movement  see condition.h; used only where an element is beyond the rest of the formula
 *
 * There are no exceptions for single backends. */
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
    double worst;  /* largest error / tolerance; NaN or infinity if one of the two is not finite */
    int64_t index; /* index of the worst element */
    double got, expected, tolerance;
    bool failed; /* there is an element with !(error <= tolerance) */
};

/* Compares `elems` elements. Equal infinities are equal, and so are two NaN. `movement` may be NULL. */
void sl_compare(const double *got, const double *expected, const double *movement, int64_t elems,
                struct sl_tolerance tolerance, struct sl_comparison *out_comparison);

#endif
