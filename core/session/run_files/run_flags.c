/* SPDX-License-Identifier: Apache-2.0 */
/* See run_flags.h.
 *
 *   {"schema": "seqlstm.flags/1", "threads": 2, "backend": "cpu-blas", "backend_path": ["/home/me/backends"]}
 */
#include "session/run_files/run_flags.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/system/file.h"
#include "base/value/backend_id.h"
#include "base/value/json_tree.h"
#include "base/value/json_write.h"
#include "base/value/path.h"
#include "session/record/session_record.h"
#include "session/run_folder/run_folder.h"

#define FLAGS  "flags.json"
#define SCHEMA "seqlstm.flags/1"

enum { FLAGS_LIMIT = 1 << 20, PLAN_LIMIT = 64 << 20, FOLDERS_MOST = 64 };

/* ---- writing ------------------------------------------------------------------------------------------- */

static seqlstm_status copy_plan(const struct sl_session *session, struct seqlstm_error *err)
{
    char *text = NULL;
    size_t bytes;
    SEQLSTM_TRY(sl_file_read(session->options.plan_path, PLAN_LIMIT, &text, &bytes, err));
    seqlstm_status status = sl_run_folder_write(session->folder, "plan.json", text, bytes, err);
    free(text);
    return status;
}

seqlstm_status sl_run_flags_write(const struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_session_options *options = &session->options;
    if (options->plan_path)
        SEQLSTM_TRY(copy_plan(session, err));
    if (options->threads == 0 && options->forced_backend == NULL && options->backend_folder_count == 0)
        return SEQLSTM_OK;
    json_t *root = json_pack("{s:s}", "schema", SCHEMA), *folders = json_array();
    if (options->threads > 0)
        root = sl_json_put(root, "threads", json_integer(options->threads));
    if (options->forced_backend)
        root = sl_json_put(root, "backend", json_string(options->forced_backend));
    for (uint32_t f = 0; f < options->backend_folder_count; f++)
        folders = sl_json_add(folders, json_string(options->backend_folders[f]));
    root = sl_json_put(root, "backend_path", folders);
    struct sl_buf buf = {0};
    if (!sl_json_append_tree(&buf, root, 0))
        buf.failed = true;
    seqlstm_status status = sl_run_folder_write_buf(session->folder, FLAGS, &buf, SEQLSTM_OK, err);
    sl_buf_deinit(&buf);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static seqlstm_status fail_key(const char *path, const char *key, struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the key \"%s\" does not hold what it must", path, key);
}

static seqlstm_status take_folders(struct sl_session *session, const char *path, const json_t *list,
                                   struct seqlstm_error *err)
{
    const size_t count = json_array_size(list);
    if (count > FOLDERS_MOST || (list && !json_is_array(list)))
        return fail_key(path, "backend_path", err);
    const char **folders = SL_ARENA_ARRAY(&session->stored.arena, const char *, count + 1);
    for (size_t f = 0; folders && f < count; f++) {
        const char *folder = json_string_value(json_array_get(list, f));
        if (folder == NULL || folder[0] != '/')
            return fail_key(path, "backend_path", err);
        folders[f] = sl_arena_strdup(&session->stored.arena, folder);
        if (folders[f] == NULL)
            folders = NULL;
    }
    if (folders == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
    if (count == 0 || session->options.backend_folder_count > 0)
        return SEQLSTM_OK;
    if (!session->options.trust) {
        sl_log_printf(
            session->options.log, SL_LOG_WARN,
            "the run was started with `--backend-path %s`; a saved run uses such a folder only with `--trust`, "
            "or if you give it again",
            folders[0]);
        return SEQLSTM_OK;
    }
    session->options.backend_folders = folders;
    session->options.backend_folder_count = (uint32_t)count;
    return SEQLSTM_OK;
}

static seqlstm_status take(struct sl_session *session, const char *path, const json_t *root, bool planned,
                           struct seqlstm_error *err)
{
    struct sl_session_options *options = &session->options;
    const char *schema = json_string_value(json_object_get(root, "schema"));
    const json_t *threads = json_object_get(root, "threads"), *backend = json_object_get(root, "backend");
    const json_int_t count = json_integer_value(threads);
    if (schema == NULL || strcmp(schema, SCHEMA) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: the schema is \"%s\", expected \"" SCHEMA "\"; use the version of seqlstm that wrote it",
                     path, schema ? schema : "");
    if (threads && (count < 1 || count > SL_POOL_MEMBERS_MOST))
        return fail_key(path, "threads", err);
    if (backend && (!json_is_string(backend) || !sl_backend_id_is_valid(json_string_value(backend))))
        return fail_key(path, "backend", err);
    if (!planned && threads && options->threads == 0) {
        options->threads = (int32_t)count;
        options->threads_given = true;
    }
    if (backend && options->forced_backend == NULL) {
        options->used_backend = sl_arena_strdup(&session->stored.arena, json_string_value(backend));
        if (options->used_backend == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for %s", path);
        options->forced_backend = planned ? NULL : options->used_backend;
    }
    return take_folders(session, path, json_object_get(root, "backend_path"), err);
}

seqlstm_status sl_run_flags_read(struct sl_session *session, struct seqlstm_error *err)
{
    char *path = sl_path_join(session->folder, FLAGS), *plan = sl_path_join(session->folder, "plan.json"), *text = NULL;
    size_t bytes;
    json_t *root = NULL;
    json_error_t why;
    bool no_memory = false;
    seqlstm_status status = SEQLSTM_OK;
    if (path == NULL || plan == NULL)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for a path");
    else if (sl_file_exists(path)) {
        status = sl_file_read(path, FLAGS_LIMIT, &text, &bytes, err);
        if (status == SEQLSTM_OK)
            root = sl_json_load(text, bytes, JSON_REJECT_DUPLICATES, &why, &no_memory);
        if (no_memory)
            status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory for %s", path);
        else if (status == SEQLSTM_OK && root == NULL)
            status = seqlstm_error_set(err, SEQLSTM_CORRUPT_DATA, __FILE__, __LINE__, "%s:%d:%d: %s", path, why.line,
                                       why.column, why.text);
        if (status == SEQLSTM_OK)
            status = take(session, path, root, sl_file_exists(plan), err);
    }
    json_decref(root);
    free(text);
    free(path);
    free(plan);
    return status;
}
