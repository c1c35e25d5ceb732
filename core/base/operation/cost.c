/* SPDX-License-Identifier: Apache-2.0 */
/* Lines between measured points. Lowering no point keeps both properties of smooth: a wide point raised to its narrow
 * neighbour still costs less per sequence. */
#include "base/operation/cost.h"

#include <stddef.h>

static double find(const struct sl_step_cost_point *points, int32_t count, double width)
{
    if (count < 1)
        return width < 1 ? width : 1;
    if (count == 1 || width <= (double)points[0].width)
        return points[0].step_ns * width / (double)points[0].width;
    int32_t right = 1;
    while (right < count - 1 && (double)points[right].width < width)
        right++;
    const struct sl_step_cost_point *a = &points[right - 1], *b = &points[right];
    return a->step_ns + (b->step_ns - a->step_ns) / (double)(b->width - a->width) * (width - (double)a->width);
}

double sl_step_cost_at(const struct sl_step_cost *cost, double width)
{
    return find(cost ? cost->points : NULL, cost ? cost->count : 0, width);
}

double sl_step_cost_source_at(const struct sl_step_cost *cost, double width)
{
    return find(cost ? cost->source_points : NULL, cost ? cost->source_count : 0, width);
}

static void smooth(struct sl_step_cost_point *points, int32_t count)
{
    for (int32_t p = count - 2; p >= 0; p--) {
        struct sl_step_cost_point *narrow = &points[p], *wide = &points[p + 1];
        double share = wide->step_ns * (double)narrow->width / (double)wide->width;
        if (narrow->step_ns < share)
            narrow->step_ns = share;
    }
    for (int32_t p = 1; p < count; p++)
        if (points[p].step_ns < points[p - 1].step_ns)
            points[p].step_ns = points[p - 1].step_ns;
}

void sl_step_cost_smooth(struct sl_step_cost *cost)
{
    smooth(cost->points, cost->count);
    smooth(cost->source_points, cost->source_count);
}
