/* SPDX-License-Identifier: Apache-2.0 */
/* A batch as the tensors of a graph see it: the rows of each axis of both sides, and the index tensors that follow
 * from these axes, as the executor makes them. */
#ifndef SL_MEASURE_BATCH_ROWS_H
#define SL_MEASURE_BATCH_ROWS_H

#include "base/batch/batch.h"
#include "graph/graph.h"

/* The steps axis of the source or the target, whichever `axis` belongs to. */
const struct seqlstm_axis *sl_batch_get_axis(const struct sl_batch *batch, enum sl_axis axis);

/* The rows of the axis; 0 for SL_AXIS_FREE. */
int64_t sl_batch_count_rows(const struct sl_batch *batch, enum sl_axis axis);

/* The rows that a node works on, and the rows that it reads if these are others (GATHER, ATTENTION). */
int64_t sl_batch_count_node_rows(const struct sl_batch *batch, const struct sl_graph *graph,
                                 const struct sl_node *node);
int64_t sl_batch_count_rows_in(const struct sl_batch *batch, const struct sl_graph *graph, const struct sl_node *node);

/* Fills an index tensor, or the fields of the batch's source. Returns false for any other role. */
bool sl_batch_load_index(const struct sl_batch *batch, const struct sl_tensor *tensor, double *out);

/* The rows that a model works on: the steps of both sides, or the sequences if the data have no steps. */
int64_t sl_batch_get_rows(const struct sl_batch *batch);

#endif
