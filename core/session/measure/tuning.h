/* SPDX-License-Identifier: Apache-2.0 */
/* What measured dispatch needs of a session. */
#ifndef SL_SESSION_MEASURE_TUNING_H
#define SL_SESSION_MEASURE_TUNING_H

#include <seqlstm/status.h>

#include "dispatch/plan/request.h"

struct sl_plan;
struct sl_session;

/* What a plan of the phase may measure with. `profiles` is zeroed and becomes the caller's; without batches of the
 * phase they stay empty, and nothing is measured. */
seqlstm_status sl_session_open_tuning(struct sl_session *session, enum sl_phase phase, struct sl_profiles *profiles,
                                      struct sl_tuning *out_tuning, struct seqlstm_error *err);
/* Candidates of the plan are timed on the profiles of the request, whatever the stored plan says. */
seqlstm_status sl_session_measure_profiles(struct sl_session *session, struct sl_tuning *tuning,
                                           struct seqlstm_error *err);
/* Keeps what was measured for the plan. A failure is logged and is no error. */
void sl_session_save_costs(struct sl_session *session, const struct sl_plan *plan);
/* Tells the plan how much memory the process uses now, before buffers of the plan, and its peak; 0 where the system
 * does not say. */
void sl_session_measure_process(struct sl_plan *plan);

#endif
