/* SPDX-License-Identifier: Apache-2.0 */
/* What a sequential step costs, by how many sequences run side by side: measured once on the backends that a run chose,
 * stored with the run, and replayed instead of measured, so that what follows from it stays the same.
 *
 * Invariant: widths ascend; a table without points means the cost 1 at every width (steps are counted).
 */
#ifndef SL_BASE_OPERATION_COST_H
#define SL_BASE_OPERATION_COST_H

#include <stdint.h>

enum { SL_STEP_COST_MOST = 16 };

struct sl_step_cost_point {
    int64_t width;  /* sequences side by side */
    double step_ns; /* of one step, forward and backward, all layers */
};

struct sl_step_cost {
    int32_t count;
    struct sl_step_cost_point points[SL_STEP_COST_MOST];
    int32_t source_count; /* pairs: of the encoder's steps; `points` are then the decoder's */
    struct sl_step_cost_point source_points[SL_STEP_COST_MOST];
    double batch_ns; /* of a batch apart from its steps: calls, the optimizer */
    double shape_ns; /* more for the first batch of a shape */
};

/* Cost of one step of `width` sequences: straight lines between the points and from 0 to the first, the last line is
 * extended. A width that is no whole number is a mean of several steps. NULL or no point: 1 a step, at most. [any
 * thread] */
double sl_step_cost_at(const struct sl_step_cost *cost, double width);
/* The same of a step of the encoder. */
double sl_step_cost_source_at(const struct sl_step_cost *cost, double width);

/* Removes effects of noise: afterwards a wider step never costs less, and never more per sequence. */
void sl_step_cost_smooth(struct sl_step_cost *cost);

#endif
