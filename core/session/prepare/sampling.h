/* SPDX-License-Identifier: Apache-2.0 */
/* Scheduled sampling: the model predicts some of the tokens that it is trained on. */
#ifndef SL_SESSION_PREPARE_SAMPLING_H
#define SL_SESSION_PREPARE_SAMPLING_H

#include <seqlstm/status.h>

#include "session/record/stages.h"

struct sl_session;

/* Plans it for the batches of training; does nothing where the model's teacher forcing never samples. */
seqlstm_status sl_sampling_plan(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err);
seqlstm_status sl_sampling_open(struct sl_session *session, struct sl_sampling *sampling, struct seqlstm_error *err);
void sl_sampling_deinit(struct sl_sampling *sampling);

#endif
