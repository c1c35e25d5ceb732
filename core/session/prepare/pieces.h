/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces into which the steps of a training batch are cut, and this rank's stage of the pipeline. */
#ifndef SL_SESSION_PREPARE_PIECES_H
#define SL_SESSION_PREPARE_PIECES_H

#include "exec/exec.h"

struct sl_session;

/* Those of the model or of the stored plan. 0: they are to be chosen. */
int32_t sl_session_get_given_pieces(const struct sl_session *session);

/* Pieces of a training graph: those that are given, or the most that may be chosen. 0: none. */
int32_t sl_session_count_pieces(const struct sl_session *session);

/* What the executor of training runs: this rank's stage. */
void sl_session_enter_pipeline(struct sl_session *session, struct sl_exec_request *request);

#endif
