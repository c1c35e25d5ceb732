/* SPDX-License-Identifier: Apache-2.0 */
#include "base/value/median.h"

#include <math.h>
#include <stdlib.h>

int sl_float64_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sl_median(double *values, int64_t count)
{
    if (count <= 0)
        return (double)NAN;
    qsort(values, (size_t)count, sizeof *values, sl_float64_compare);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}
