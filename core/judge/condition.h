/* SPDX-License-Identifier: Apache-2.0 */
/* How sensitive the results of one case are, measured: the reference runs again with every input moved by 16
 * units of rounding, in random directions, the slopes of saturating functions by as much of their largest, and
 * normalised products by as much of 1. A backend that is exact for inputs so near, and that makes slopes of rounded
 * values, is not to blame.
 *
 * Needed for the few cases that no formula bounds: normalisation of nearly equal numbers, repeated over many
 * steps; functions with kinks and jumps; saturated recurrences, where large weights multiply the error of a
 * slope such as 1 - y^2 while the slopes themselves let nothing through, so that the result is small; layer norm
 * of products with one input, whose gradient by it is a sum that cancels but for epsilon: for inputs that are
 * moved, too, but not for normalised products that are rounded.
 */
#ifndef SL_JUDGE_CONDITION_H
#define SL_JUDGE_CONDITION_H

#include "judge/runner.h"

struct sl_condition {
    double **outputs; /* [slots] largest movement of each element; NULL: not an output */
    double **grads;   /* the same for gradients */
};

/* Lives in `arena`. Errors: those of the reference, NO_MEMORY. */
seqlstm_status sl_condition_create(struct sl_arena *arena, const struct sl_subject *reference,
                                   const struct sl_data *data, struct sl_condition **out_condition,
                                   struct seqlstm_error *err);

#endif
