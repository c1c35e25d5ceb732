/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how sensitive the results of one case are to rounding. The reference runs again with perturbations: every
 * input is moved by 16 units of rounding in random directions, the slopes of saturating functions by as much of their
 * largest slope, and normalised products by as much of 1. A backend that is exact for inputs so close to the real ones,
 * and that computes slopes from rounded values, is right.
 *
 * This is needed for the few cases that no formula bounds:
 * - normalisation of nearly equal numbers, repeated over many steps;
 * - functions with kinks and jumps;
 * - saturated recurrences: large weights multiply the error of a slope such as 1 - y^2, while the slopes themselves are
 *   so small that the result is small, too;
 * - layer norm of products with one input: its gradient is a sum that cancels except for epsilon, both for moved inputs
 *   and for rounded normalised products. */
#ifndef SL_JUDGE_CONDITION_H
#define SL_JUDGE_CONDITION_H

#include "judge/runner.h"

struct sl_condition {
    double **outputs; /* [slots] largest movement of each element; NULL if not an output */
    double **grads;   /* likewise for gradients */
};

/* The result lives in `arena`. Errors: those of the reference, NO_MEMORY. */
seqlstm_status sl_condition_create(struct sl_arena *arena, const struct sl_subject *reference,
                                   const struct sl_data *data, struct sl_condition **out_condition,
                                   struct seqlstm_error *err);

#endif
