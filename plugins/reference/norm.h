/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisation of a vector: N(x) = (x - mean) / sqrt(variance + epsilon), biased variance. */
#ifndef REF_NORM_H
#define REF_NORM_H

#include <stdint.h>

/* y = N(x); y may be x. Returns 1 / sqrt(variance + epsilon). */
double ref_normalise(const double *x, double *y, int64_t n, double epsilon);

/* dx from dy, given y = N(x) and the value that ref_normalise returned. dx may be dy. */
void ref_normalise_backward(const double *y, double scale, const double *dy, double *dx, int64_t n);

#endif
