/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a plan with what the session adds to it: the batching and the memory of other plans. */
#ifndef SL_SESSION_RUN_FOLDER_PLAN_JSON_H
#define SL_SESSION_RUN_FOLDER_PLAN_JSON_H

#include <stdbool.h>

#include <seqlstm/status.h>

struct sl_buf;
struct sl_plan;
struct sl_session;

/* The plan as JSON, with the measurements for batches under "batching". */
seqlstm_status sl_session_write_plan_json(const struct sl_session *session, const struct sl_plan *plan,
                                          struct sl_buf *out, struct seqlstm_error *err);
/* The plan as a table (dispatch/explain/explain.h). */
void sl_session_write_plan_table(const struct sl_session *session, const struct sl_plan *plan, bool brief,
                                 struct sl_buf *out);

/* The most memory of a training with this plan and the others of the session. */
int64_t sl_session_sum_memory(const struct sl_session *session, const struct sl_plan *plan);

/* For checkpoints: the part of the plan that decides about bits, which is all that sl_stored_plan_read reads. Places in
 * the model file, costs, the name of the processor and the like would make the bytes of a checkpoint depend on more
 * than that. */
void sl_session_write_choices(const struct sl_session *session, struct sl_buf *out);

#endif
