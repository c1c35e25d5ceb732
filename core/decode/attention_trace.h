/* SPDX-License-Identifier: Apache-2.0 */
/* Attention weights of a search: those of every attention layer, step by step, row by row.
 *
 * A hypothesis changes its row from step to step; sl_hypothesis.rows has the row of each step.
 */
#ifndef SL_DECODE_ATTENTION_TRACE_H
#define SL_DECODE_ATTENTION_TRACE_H

#include "exec/exec.h"

struct sl_attention_trace;

/* Watches the runs of an executor whose graph reports weights. The executor must outlive the trace. NO_MEMORY. */
seqlstm_status sl_attention_trace_create(struct sl_exec *exec, struct sl_attention_trace **out_trace,
                                         struct seqlstm_error *err);
void sl_attention_trace_destroy(struct sl_attention_trace *trace);

/* Starts again, empty; from now on the first `sources` weights of a row are kept: the steps of the longest source. */
void sl_attention_trace_begin(struct sl_attention_trace *trace, int64_t sources);

/* The attention layers of the model, in its order: how many, and their indices in model->layers. */
int32_t sl_attention_trace_get_layers(const struct sl_attention_trace *trace, const int32_t **out_layers);

/* [sources] weights of the k-th attention layer at a step, for a row that the step had; borrowed. */
const float *sl_attention_trace_get(const struct sl_attention_trace *trace, int32_t k, int64_t step, int32_t row);

#endif
