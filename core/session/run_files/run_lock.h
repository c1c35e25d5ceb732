/* SPDX-License-Identifier: Apache-2.0 */
/* One writer per run folder: a process that writes into it holds the lock of its file `lock`. */
#ifndef SL_SESSION_RUN_FILES_RUN_LOCK_H
#define SL_SESSION_RUN_FILES_RUN_LOCK_H

#include <seqlstm/status.h>

struct sl_session;

/* Locks the session's folder until sl_run_lock_release or the end of the session, and removes what killed writers have
 * left there. Does nothing if it is locked already. Warns once where the file system has no locks. IO with native_code
 * EAGAIN: another process writes into the folder; adds a finding. */
seqlstm_status sl_run_lock_take(struct sl_session *session, struct seqlstm_error *err);

/* Others may write into the folder from now on. Does nothing if it is not locked. */
void sl_run_lock_release(struct sl_session *session);

/* The finding and the error for a folder that another process holds, `holder`: IO with native_code EAGAIN. */
seqlstm_status sl_run_lock_refuse(struct sl_session *session, const char *folder, const char *holder,
                                  struct seqlstm_error *err);

/* IO if the folder was moved or removed since it was locked, or the lock was closed; adds a finding. */
seqlstm_status sl_run_lock_check(struct sl_session *session, struct seqlstm_error *err);

#endif
