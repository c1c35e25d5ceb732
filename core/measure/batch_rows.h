/* SPDX-License-Identifier: Apache-2.0 */
/* A batch as the tensors of a graph see it: rows of each axis, both sides, and the index tensors that follow from its
 * axes, as the executor makes them. */
#ifndef SL_MEASURE_BATCH_ROWS_H
#define SL_MEASURE_BATCH_ROWS_H

#include "base/batch/batch.h"
#include "graph/graph.h"

/* The steps of the axis' side. */
const struct seqlstm_axis *sl_batch_get_axis(const struct sl_batch *batch, enum sl_axis axis);

/* Rows of the axis; of SL_AXIS_FREE 0. */
int64_t sl_batch_count_rows(const struct sl_batch *batch, enum sl_axis axis);

/* Rows that a node works on, and of what it reads where those are others (GATHER, ATTENTION). */
int64_t sl_batch_count_node_rows(const struct sl_batch *batch, const struct sl_graph *graph,
                                 const struct sl_node *node);
int64_t sl_batch_count_rows_in(const struct sl_batch *batch, const struct sl_graph *graph, const struct sl_node *node);

/* Fills an index tensor, or the fields of the batch's source; false: the role is another. */
bool sl_batch_load_index(const struct sl_batch *batch, const struct sl_tensor *tensor, double *out);

/* Rows that a model works on: steps, of both sides, or sequences for data without steps. */
int64_t sl_batch_get_rows(const struct sl_batch *batch);

#endif
