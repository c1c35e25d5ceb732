/* SPDX-License-Identifier: Apache-2.0 */
/* See new_folder.h. */
#include "session/run_files/new_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/absolute_path.h"
#include "base/system/file_writer.h"
#include "base/system/file_lock.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "base/value/text.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "session/run_files/run_flags.h"
#include "session/run_files/run_lock.h"
#include "session/run_folder/run_folder.h"
#include "session/run_folder/run_name.h"
#include "session/run_folder/setup.h"

/* ---- paths ----------------------------------------------------------------------------------------------- */

static seqlstm_status check_text(struct sl_session *session, const char *what, const char *text, size_t bytes,
                                 struct seqlstm_error *err)
{
    size_t bad;
    if (sl_text_is_utf8(text, bytes, &bad))
        return SEQLSTM_OK;
    seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                      "%s is not UTF-8 (byte %zu is 0x%02x), and the files of a run are; use a path of UTF-8", what,
                      bad + 1, (unsigned)(unsigned char)text[bad]);
    if (session->diagnostics && err)
        sl_session_add_finding_at(session, "E0705", (struct sl_place){0}, err->message);
    return SEQLSTM_INVALID_CONFIG;
}

static seqlstm_status check_path(struct sl_session *session, const char *what, const char *path,
                                 struct seqlstm_error *err)
{
    char *absolute = NULL;
    if (path == NULL)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_path_absolute(path, &absolute, err));
    seqlstm_status status = check_text(session, what, absolute, strlen(absolute), err);
    free(absolute);
    return status;
}

/* Everything that the files of the run will hold: paths of data stand in the configuration. */
static seqlstm_status check_paths(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_session_options *options = &session->options;
    struct sl_buf config = {0};
    SEQLSTM_TRY(check_path(session, "the path of the model file", session->model->path, err));
    SEQLSTM_TRY(check_path(session, "the path of the run folder", options->out_dir ? options->out_dir : ".", err));
    for (size_t o = 0; options->model && o < options->model->overlay_count; o++)
        SEQLSTM_TRY(check_path(session, "the path of an overlay", options->model->overlays[o], err));
    for (uint32_t f = 0; f < options->backend_folder_count; f++)
        SEQLSTM_TRY(check_path(session, "the path of `--backend-path`", options->backend_folders[f], err));
    seqlstm_status status = sl_model_write_config(session->model, 0, &config, err);
    if (status == SEQLSTM_OK && config.data)
        status = check_text(session, "a path in the configuration", config.data, config.length_bytes, err);
    sl_buf_deinit(&config);
    return status;
}

/* ---- making and removing --------------------------------------------------------------------------------- */

/* What a run writes before its first step. */
static void remove_files(const char *folder)
{
    static const char *const names[] = {"config.yaml", "flags.json",   "data.json",
                                        "plan.json",   "sources.json", "checksums.json"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char *path = sl_path_join(folder, names[n]);
        if (path)
            unlink(path);
        free(path);
    }
}

/* The session has no run any more. */
static void leave_folder(struct sl_session *session)
{
    sl_file_lock_release(session->lock);
    free(session->made);
    free(session->folder);
    session->lock = NULL;
    session->made = session->folder = NULL;
}

/* The folder and those above it that were made for it, as long as they are empty. */
static void remove_folders(const char *folder, const char *first)
{
    char *path = strdup(folder);
    while (path && strlen(path) >= strlen(first) && rmdir(path) == 0) {
        char *above = sl_path_folder(path);
        free(path);
        path = above;
    }
    free(path);
}

seqlstm_status sl_new_folder_begin(struct sl_session *session, struct seqlstm_error *err)
{
    SEQLSTM_TRY(check_paths(session, err));
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    char *made, *folder;
    seqlstm_status status = sl_run_folder_make(session->model, session->options.out_dir, &made, &folder, &why);
    if (status == SEQLSTM_IO && why.native_code == EAGAIN)
        return sl_run_lock_refuse(session, session->options.out_dir, why.message, err);
    if (status != SEQLSTM_OK) {
        if (err)
            *err = why;
        return status;
    }
    leave_folder(session); /* of the run that it wrote before */
    session->made = made;
    session->folder = folder;
    status = sl_run_lock_take(session, err);
    if (status == SEQLSTM_OK && sl_run_folder_is_run(session->folder)) /* another process was faster, and is done */
        status = seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                                   "%s: another process has just made a run there; name another folder (--out)",
                                   session->folder);
    if (status != SEQLSTM_OK) {
        if (session->lock == NULL && session->made[0] != '\0')
            remove_folders(session->folder, session->made);
        leave_folder(session);
        return status;
    }
    remove_files(session->folder); /* of a run that was killed before it had a configuration */
    status = sl_run_flags_write(session, err);
    return status == SEQLSTM_OK ? sl_run_folder_write_config(session, err) : status;
}

void sl_new_folder_discard(struct sl_session *session)
{
    if (session->made == NULL || session->lock == NULL || !sl_file_lock_is_there(session->lock))
        return;
    sl_file_remove_temporaries(session->folder);
    remove_files(session->folder);
    sl_file_lock_release(session->lock);
    session->lock = NULL;
    if (session->made[0] != '\0')
        remove_folders(session->folder, session->made);
    leave_folder(session); /* another training begins anew */
}
