/* SPDX-License-Identifier: Apache-2.0 */
/* Makes graph, plan and executor of one phase. */
#ifndef SL_SESSION_PREPARE_STAGE_H
#define SL_SESSION_PREPARE_STAGE_H

#include <seqlstm/status.h>

#include "session/record/stages.h"
#include "session/record/stored.h"

struct sl_session;

/* How many state buffers an optimizer keeps. */
int32_t sl_optimizer_states(const struct sl_optimizer *optimizer);

/* NO_MEMORY if what was planned for training does not fit into the memory that the container leaves this process. A
 * plan for a larger machine is fine, one for a larger container is not: there the program would be killed. */
seqlstm_status sl_session_check_container(const struct sl_session *session, struct seqlstm_error *err);

/* Makes graph and plan (and with `with_exec` parameters and executor) as the request asks. `profiles`: batches to use
 * in place of those that the session has of the phase; NULL. `choices`: in place of the stored plan's; NULL. */
seqlstm_status sl_session_prepare_stage(struct sl_session *session, const struct sl_graph_request *request,
                                        const struct sl_profiles *profiles, const struct sl_choices *choices,
                                        bool with_exec, struct sl_stage *stage, struct seqlstm_error *err);
/* The same for a phase of the model and an envelope. */
seqlstm_status sl_session_prepare(struct sl_session *session, enum sl_phase phase, const struct sl_envelope *envelope,
                                  bool need_output, bool with_exec, const struct sl_quantization *quantization,
                                  struct sl_stage *stage, struct seqlstm_error *err);

/* Makes the parameters, if there are none yet. */
seqlstm_status sl_session_open_params(struct sl_session *session, const struct sl_graph *graph,
                                      struct seqlstm_error *err);
/* Makes the executor of a stage that is planned, and the parameters if there are none yet. */
seqlstm_status sl_session_open_exec(struct sl_session *session, struct sl_stage *stage, struct seqlstm_error *err);
void sl_stage_deinit(struct sl_stage *stage);

#endif
