/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sample/phase_graph.h"

seqlstm_status sl_phase_graph_create(const struct sl_session *session, enum sl_phase phase,
                                     const struct sl_envelope *envelope, struct sl_graph **out_graph,
                                     struct seqlstm_error *err)
{
    struct sl_data_facts facts = *sl_data_state_get_facts(sl_session_find_data_state(session));
    facts.envelope = *envelope;
    facts.has_weight = facts.has_weight && phase != SL_PHASE_PREDICT;
    struct sl_graph_request request = {.model = sl_session_get_model(session),
                                       .facts = &facts,
                                       .phase = phase,
                                       .need_output = phase == SL_PHASE_PREDICT};
    return sl_graph_create(&request, out_graph, err);
}
