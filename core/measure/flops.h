/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point operations of the products in one call, from which GFLOP/s are computed. A multiplication and
 * its addition count as two. Functions, masks and normalisation are not counted. */
#ifndef SL_MEASURE_FLOPS_H
#define SL_MEASURE_FLOPS_H

#include "graph/graph.h"

/* `rows`: the rows of the call (steps, or sequences). Backward adds the gradients of the input (if `input_grad`) and
 * of the weights. 0 for operations without products. [any thread] */
double sl_flops_count(const struct sl_node *node, int64_t rows, bool backward, bool input_grad);

#endif
