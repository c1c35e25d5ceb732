/* SPDX-License-Identifier: Apache-2.0 */
/* A plan in words: the JSON that programs read and the table that people read. */
#ifndef SL_DISPATCH_EXPLAIN_H
#define SL_DISPATCH_EXPLAIN_H

#include "base/buf.h"
#include "dispatch/plan.h"

/* Appends one JSON object, "schema": "seqlstm.plan/1". Its "layers" replay the plan (sl_plan_request.stored);
 * "threads" and "devices" say what else its bits depend on. Errors: NO_MEMORY. [any thread] */
seqlstm_status sl_plan_write_json(const struct sl_plan *plan, struct sl_buf *out, struct seqlstm_error *err);

/* Appends the table: layer, output, parameters, backend, and why not an earlier one. `brief` leaves out memory,
 * update operations and hints. Failure is sticky in the buffer. */
void sl_plan_write_table(const struct sl_plan *plan, bool brief, struct sl_buf *out);

/* Parameters (elements) that the nodes of a call own. */
int64_t sl_call_param_elems(const struct sl_graph *graph, const struct sl_call *call);

#endif
