/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between measured points. */
#include "base/cost.h"

#include <stddef.h>

static double
slope_of(const struct sl_step_cost *cost, int32_t right)
{
    const struct sl_step_cost_point *a = &cost->points[right - 1], *b = &cost->points[right];
    double slope = b->width > a->width ? (b->step_ns - a->step_ns) / (double)(b->width - a->width) : 0;
    return slope > 0 ? slope : 0;
}

double
sl_step_cost_at(const struct sl_step_cost *cost, int64_t width)
{
    if (cost == NULL || cost->count < 1)
        return 1;
    if (cost->count == 1 || width <= cost->points[0].width)
        return cost->points[0].step_ns;
    int32_t right = 1;
    while (right < cost->count - 1 && cost->points[right].width < width)
        right++;
    const struct sl_step_cost_point *left = &cost->points[right - 1];
    double ns = left->step_ns + slope_of(cost, right) * (double)(width - left->width);
    return ns > cost->points[0].step_ns ? ns : cost->points[0].step_ns;
}

double
sl_step_cost_fixed(const struct sl_step_cost *cost, int64_t width)
{
    if (cost == NULL || cost->count < 1)
        return 1;
    double fixed = sl_step_cost_at(cost, width);
    if (cost->count > 1)
        fixed -= slope_of(cost, cost->count - 1) * (double)width;
    return fixed > 0 ? fixed : 0;
}
