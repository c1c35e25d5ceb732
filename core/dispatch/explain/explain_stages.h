/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a pipeline: its stages, how long a step takes, how long stages wait, and what holds all of them up. */
#ifndef SL_DISPATCH_EXPLAIN_EXPLAIN_STAGES_H
#define SL_DISPATCH_EXPLAIN_EXPLAIN_STAGES_H

#include <jansson.h>

#include "base/value/buf.h"
#include "dispatch/stages/pipeline.h"

/* Lines for the table of the plan. Failure is sticky in the buffer. */
void sl_pipeline_write_table(const struct sl_plan *plan, const struct sl_pipeline *pipeline, struct sl_buf *out);

/* {"pieces": 8, "stages": [{"first": "emb", "last": "lstm_1", "ns": 1200}], "step_ns": …, "alone_ns": …,
 * "barriers": [{"layer": "pool_1", "reason": "…", "ns": …}]}; NULL: no memory. */
json_t *sl_pipeline_write_json(const struct sl_plan *plan, const struct sl_pipeline *pipeline);

#endif
