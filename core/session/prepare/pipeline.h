/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a training into the stages of a pipeline, one for each rank. */
#ifndef SL_SESSION_PREPARE_PIPELINE_H
#define SL_SESSION_PREPARE_PIPELINE_H

#include <seqlstm/status.h>

struct sl_session;

/* When training is planned: cuts the plan into stages, and chooses the number of pieces. Ranks follow rank 0. */
seqlstm_status sl_session_plan_pipeline(struct sl_session *session, struct seqlstm_error *err);

#endif
