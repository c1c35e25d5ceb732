/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of one phase of a session's model. */
#ifndef SL_COMPARE_SAMPLE_PHASE_GRAPH_H
#define SL_COMPARE_SAMPLE_PHASE_GRAPH_H

#include "session/session.h"

/* Creates the graph for batches within `envelope`. PREDICT has no loss. The session must have read its data. */
seqlstm_status sl_phase_graph_create(const struct sl_session *session, enum sl_phase phase,
                                     const struct sl_envelope *envelope, struct sl_graph **out_graph,
                                     struct seqlstm_error *err);

#endif
