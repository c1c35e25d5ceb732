/* SPDX-License-Identifier: Apache-2.0 */
/* Weights whose shapes are not those of the configuration. */
#ifndef SL_SESSION_FINDING_MISMATCH_H
#define SL_SESSION_FINDING_MISMATCH_H

#include <seqlstm/status.h>

struct sl_session;

/* Weights at `path` of the run were not loaded because the configuration asks for other shapes (`status` is
 * INVALID_CONFIG): adds a finding at the option that was changed. Does nothing for other codes. Returns `status`. */
seqlstm_status sl_session_add_mismatch(struct sl_session *session, const char *path, seqlstm_status status,
                                       struct seqlstm_error *err);

#endif
