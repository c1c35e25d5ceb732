/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the C library share. */
#ifndef SL_SESSION_API_H
#define SL_SESSION_API_H

#include <seqlstm/status.h>

struct seqlstm_session;
struct sl_session;

/* Ends a function of the C library: makes the text of an error fit for a terminal. Returns `status`. [any] */
seqlstm_status sl_api_end(seqlstm_status status, struct seqlstm_error *err);

/* The session that the C library's one holds. */
struct sl_session *sl_api_get_session(const struct seqlstm_session *session);

#endif
