/* SPDX-License-Identifier: Apache-2.0 */
/* See run_lock.h. */
#include "session/run_files/run_lock.h"

#include <errno.h>
#include <stdlib.h>

#include "base/system/file_writer.h"
#include "base/system/file_lock.h"
#include "base/value/path.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "train/trainer/events.h"

static void clean(const char *folder)
{
    char *checkpoints = sl_path_join(folder, "checkpoints");
    sl_file_remove_temporaries(folder);
    if (checkpoints)
        sl_file_remove_temporaries(checkpoints);
    free(checkpoints);
}

seqlstm_status sl_run_lock_refuse(struct sl_session *session, const char *folder, const char *holder,
                                  struct seqlstm_error *err)
{
    const struct sl_place place = {.file = folder};
    seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "another process writes into this run: %.500s", holder);
    if (err)
        err->native_code = EAGAIN;
    if (session->diagnostics && err)
        sl_session_add_finding_at(session, "E0701", place, err->message);
    return SEQLSTM_IO;
}

seqlstm_status sl_run_lock_take(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->lock)
        return SEQLSTM_OK;
    char *path = sl_path_join(session->folder, "lock");
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    seqlstm_status status = sl_file_lock_take(path, &session->lock, &why);
    free(path);
    if (status != SEQLSTM_OK && why.native_code == EAGAIN)
        return sl_run_lock_refuse(session, session->folder, why.message, err);
    if (status != SEQLSTM_OK) {
        if (err)
            *err = why;
        return status;
    }
    if (sl_file_lock_is_held(session->lock))
        clean(session->folder);
    else
        sl_log_printf(session->options.log, SL_LOG_WARN,
                      "%s is on a file system without locks: nothing keeps a second process from writing into it",
                      session->folder);
    return SEQLSTM_OK;
}

void sl_run_lock_release(struct sl_session *session)
{
    sl_file_lock_release(session->lock);
    session->lock = NULL;
}

seqlstm_status sl_run_lock_check(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->lock == NULL || sl_file_lock_is_there(session->lock))
        return SEQLSTM_OK;
    const struct sl_place place = {.file = session->folder};
    sl_trainer_fail_lock(session->folder, session->lock, err);
    if (session->diagnostics && err)
        sl_session_add_finding_at(session, "E0702", place, err->message);
    return SEQLSTM_IO;
}
