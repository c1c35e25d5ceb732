/* SPDX-License-Identifier: Apache-2.0 */
/* What a step of training costs. */
#ifndef SL_SESSION_PREPARE_STEP_COST_H
#define SL_SESSION_PREPARE_STEP_COST_H

#include <seqlstm/status.h>

struct sl_envelope;
struct sl_session;
struct sl_step_cost;

/* Runs the training plan on made batches within the envelope. Changes only parameters that are drawn again afterwards.
 * No points for data without steps. */
seqlstm_status sl_session_measure_steps(struct sl_session *session, const struct sl_envelope *envelope,
                                        struct sl_step_cost *out, struct seqlstm_error *err);

#endif
