/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SL_BASE_VALUE_MEDIAN_H
#define SL_BASE_VALUE_MEDIAN_H

#include <stdint.h>

/* The order of float64 numbers, for qsort. */
int sl_float64_compare(const void *a, const void *b);

/* The median of `count` numbers; sorts them. NaN if there are none. */
double sl_median(double *values, int64_t count);

#endif
