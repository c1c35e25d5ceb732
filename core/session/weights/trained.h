/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of a run. */
#ifndef SL_SESSION_WEIGHTS_TRAINED_H
#define SL_SESSION_WEIGHTS_TRAINED_H

#include <stdint.h>

#include <seqlstm/status.h>

struct sl_session;

/* NOT_FOUND (of a run) or INVALID_ARGUMENT when nothing was learned from data yet: vocabulary, scaling and widths. */
seqlstm_status sl_session_require_trained(const struct sl_session *session, struct seqlstm_error *err);

/* A hash of which weights the next function would load, from their names and times; 0: there are none. It only reads
 * the folder of the run. [any thread] */
uint64_t sl_session_sign_weights(const struct sl_session *session);

/* Loads the final weights of the run, or those of its newest checkpoint when it has not finished. */
seqlstm_status sl_session_load_weights(struct sl_session *session, struct seqlstm_error *err);

#endif
