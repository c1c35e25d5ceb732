/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a run. */
#ifndef SL_SESSION_WEIGHTS_TRAINED_H
#define SL_SESSION_WEIGHTS_TRAINED_H

#include <seqlstm/status.h>

struct sl_session;

/* NOT_FOUND (of a run) or INVALID_ARGUMENT when nothing was learned from data yet: vocabulary, scaling and widths. */
seqlstm_status sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err);

/* Loads the final weights of the run, or those of its newest checkpoint when it has not finished. */
seqlstm_status sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err);

#endif
