/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the C library share. */
#ifndef SL_SESSION_API_H
#define SL_SESSION_API_H

struct seqlstm_session;
struct sl_session;

/* The session that the C library's one holds. */
struct sl_session *sl_api_get_session(const struct seqlstm_session *session);

#endif
