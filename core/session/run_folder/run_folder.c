/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of runs:
 *
 *   runs/NAME/001/  config.yaml  data.json  plan.json  metrics.jsonl  summary.json  final.safetensors
 *                   report.html
 *                   flags.json  checksums.json  lock (while a process writes into it)
 *                   checkpoints/update-000000001234.safetensors
 */
#include "session/run_folder/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/system/file_writer.h"
#include "base/system/file_lock.h"
#include "base/value/buf.h"
#include "base/value/hash.h"
#include "base/value/path.h"
#include "model/model.h"
#include "session/run_folder/run_name.h"
#include "train/checkpoint/checksums.h"

/* What a run that was killed at its very beginning leaves beside its lock: it has no configuration yet. */
static bool is_leftover(const char *name)
{
    static const char *const names[] = {"flags.json", "plan.json", "checksums.json"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (strcmp(name, names[n]) == 0)
            return true;
    return sl_file_is_temporary(name);
}

static bool is_empty_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return false;
    bool empty = true, locked = false, left = false;
    for (struct dirent *entry; empty && (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        const bool is_lock = strcmp(name, "lock") == 0;
        empty = is_lock || is_leftover(name);
        locked = locked || is_lock;
        left = left || !is_lock;
    }
    closedir(folder);
    return empty && (locked || !left); /* without a lock they are files of the user */
}

/* `pattern` with {name} and {run} replaced. NULL: no memory. */
static char *fill_pattern(const char *pattern, const char *name, int run)
{
    struct sl_buf buf = {0};
    for (const char *p = pattern; *p;) {
        if (strncmp(p, "{name}", 6) == 0) {
            sl_buf_append_text(&buf, name);
            p += 6;
        } else if (strncmp(p, "{run}", 5) == 0) {
            sl_buf_printf(&buf, "%03d", run);
            p += 5;
        } else {
            sl_buf_append_char(&buf, *p++);
        }
    }
    return sl_buf_take(&buf, NULL);
}

/* Does another process write into the folder? A lock that nothing holds is removed. */
static seqlstm_status check_lock(const char *path, struct seqlstm_error *err)
{
    char *name = sl_path_join(path, "lock");
    struct sl_file_lock *lock = NULL;
    seqlstm_status status = SEQLSTM_OK;
    if (name == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    if (sl_file_is_regular(name))
        status = sl_file_lock_take(name, &lock, err);
    sl_file_lock_release(lock);
    free(name);
    return status;
}

static seqlstm_status refuse_folder(const char *path, struct seqlstm_error *err)
{
    const char *what = "the run folder is not empty, and holds no run; name another one (--out)";
    SEQLSTM_TRY(check_lock(path, err));
    if (sl_run_folder_holds_weights(path))
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: the run folder is not empty; `seqlstm resume %s` continues it",
                     path, path);
    if (sl_run_folder_is_run(path))
        what = "a run without weights is there, which failed or has only begun; remove it, or name another (--out)";
    SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "%s: %s", path, what);
}

/* The first folder of the path that does not exist yet; "" if all of them do. NULL: no memory. */
static char *find_first_missing(const char *path)
{
    char *first = strdup(""), *at = strdup(path);
    while (first && at && !sl_file_exists(at)) {
        free(first);
        first = at;
        at = sl_path_folder(first);
    }
    free(at);
    return first;
}

/* Ends the message about a folder that cannot be made with what to do. */
static seqlstm_status advise_folder(seqlstm_status status, struct seqlstm_error *err)
{
    const size_t used = err ? strlen(err->message) : 0;
    if (err && (status == SEQLSTM_IO || status == SEQLSTM_NOT_FOUND))
        snprintf(err->message + used, sizeof err->message - used, "; use another folder: `--out DIR`, or `output.dir`");
    return status;
}

/* Takes a folder of exactly this name, which must not exist, or be empty if the user named it. */
static seqlstm_status take_folder(const char *path, bool said, bool *out_taken, struct seqlstm_error *err)
{
    *out_taken = false;
    char *parent = sl_path_folder(path);
    if (parent == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = sl_file_make_folders(parent, err);
    free(parent);
    if (status != SEQLSTM_OK)
        return advise_folder(status, err);
    int code = mkdir(path, 0777) == 0 ? 0 : errno;
    if (code == 0 || (said && code == EEXIST && is_empty_folder(path))) {
        *out_taken = true;
        return SEQLSTM_OK;
    }
    if (code == EEXIST)
        return SEQLSTM_OK;
    seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "%s: cannot make the run folder: %s", path, strerror(code));
    if (err)
        err->native_code = code;
    return advise_folder(SEQLSTM_IO, err);
}

seqlstm_status sl_run_folder_make(const struct sl_model *model, const char *out_dir, char **out_made, char **out_folder,
                                  struct seqlstm_error *err)
{
    bool taken, numbered = out_dir == NULL && strstr(model->output.dir, "{run}") != NULL;
    for (int run = 1; run < 1000000; run++) {
        char *path = out_dir ? strdup(out_dir) : fill_pattern(model->output.dir, model->name, run);
        char *made = path ? find_first_missing(path) : NULL;
        if (made == NULL) {
            free(path);
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
        }
        seqlstm_status status = take_folder(path, !numbered, &taken, err);
        if (status == SEQLSTM_OK && taken) {
            *out_made = made;
            *out_folder = path;
            return SEQLSTM_OK;
        }
        free(made);
        if (status == SEQLSTM_OK && !numbered)
            status = refuse_folder(path, err);
        free(path);
        if (status != SEQLSTM_OK)
            return status;
    }
    SEQLSTM_FAIL(err, SEQLSTM_IO, "%s: there are a million runs already", model->output.dir);
}

seqlstm_status sl_run_folder_write(const char *folder, const char *name, const void *data, size_t bytes,
                                   struct seqlstm_error *err)
{
    char *path = sl_path_join(folder, name);
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    char checksum[SL_HASH_TEXT_BYTES];
    sl_hash_write(sl_crc64(0, data, bytes), checksum);
    seqlstm_status status = sl_checksums_forget(folder, name, checksum, err);
    if (status == SEQLSTM_OK)
        status = sl_file_write(path, data, bytes, err);
    if (status == SEQLSTM_OK)
        status = sl_checksums_note(folder, name, checksum, err);
    free(path);
    return status;
}

seqlstm_status sl_run_folder_write_buf(const char *folder, const char *name, const struct sl_buf *buf,
                                       seqlstm_status status, struct seqlstm_error *err)
{
    if (status == SEQLSTM_OK && buf->failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", name);
    return status == SEQLSTM_OK ? sl_run_folder_write(folder, name, buf->data, buf->length_bytes, err) : status;
}
