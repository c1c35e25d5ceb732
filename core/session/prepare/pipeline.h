/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline of a session: pieces of steps, and stages on several ranks. */
#ifndef SL_SESSION_PREPARE_PIPELINE_H
#define SL_SESSION_PREPARE_PIPELINE_H

#include "exec/exec.h"

struct sl_session;

/* Pieces of a training graph: those of the model or of the stored plan, or the most that may be chosen. 0: none. */
int32_t sl_session_count_pieces(const struct sl_session *session);

/* When training is planned: cuts the plan into stages, and chooses the number of pieces. Ranks follow rank 0. */
seqlstm_status sl_session_plan_pipeline(struct sl_session *session, struct seqlstm_error *err);

/* What the executor of training runs: this rank's stage. */
void sl_session_enter_pipeline(struct sl_session *session, struct sl_exec_request *request);

#endif
