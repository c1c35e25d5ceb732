/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point operations of the products in one call: what GFLOP/s are counted by. A multiplication with its
 * addition is two; functions, masks and normalisation are not counted. */
#ifndef SL_MEASURE_FLOPS_H
#define SL_MEASURE_FLOPS_H

#include "graph/graph.h"

/* `rows`: rows of the call (steps, or sequences). Backward adds the gradient of what flows in (where `input_grad`)
 * and of the weights. 0 for operations without products. [any thread] */
double sl_flops_count(const struct sl_node *node, int64_t rows, bool backward, bool input_grad);

#endif
