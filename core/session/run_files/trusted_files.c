/* SPDX-License-Identifier: Apache-2.0 */
/* See trusted_files.h. */
#include "session/run_files/trusted_files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "base/value/error_place.h"
#include "base/value/path.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "train/checkpoint/checkpoint.h"

static const char *const names[] = {"config.yaml",   "data.json",    "plan.json",         "sources.json",
                                    "metrics.jsonl", "summary.json", "final.safetensors", "quantization.json",
                                    "report.html",   "flags.json",   "checksums.json",    "lock"};

/* `text` takes the name of the file. */
static seqlstm_status refuse(struct sl_session *session, const char *path, const char *text, struct seqlstm_error *err)
{
    const struct sl_place place = {.file = path};
    char message[sizeof((struct seqlstm_error *)0)->message];
    snprintf(message, sizeof message, "%.200s %s", sl_path_name(path), text);
    seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "%s", message);
    if (session->diagnostics && err)
        sl_session_add_finding_at(session, "E0703", place, err->message);
    return SEQLSTM_INVALID_CONFIG;
}

/* With `--trust` links are followed. Where they lead, as in the folder itself, is a file or folder: a pipe would be
 * waited for. */
static seqlstm_status check(struct sl_session *session, const char *path, bool folder, struct seqlstm_error *err)
{
    struct stat info;
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    const bool follow = session->options.trust;
    if ((follow ? stat : lstat)(path, &info) != 0) /* what is missing is made, or reported where it is needed */
        return SEQLSTM_OK;
    if (S_ISLNK(info.st_mode))
        return refuse(session, path,
                      "is a link, and what it leads to is not in the run folder; use `--trust` if you made it yourself",
                      err);
    if (folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode))
        return SEQLSTM_OK;
    if (folder)
        return refuse(session, path, "is no folder; use another name for it, so that the run can make its folder", err);
    return refuse(session, path,
                  S_ISDIR(info.st_mode) ? "is a folder, and a run has a file of this name; use another name for it"
                                        : "is a pipe, a device or another special file, and a run has a file of this "
                                          "name; use another name for it",
                  err);
}

struct checking {
    struct sl_session *session;
    struct seqlstm_error *err;
    seqlstm_status status;
};

static void check_checkpoint(void *context, const char *path)
{
    struct checking *c = context;
    if (c->status == SEQLSTM_OK)
        c->status = check(c->session, path, false, c->err);
}

seqlstm_status sl_trusted_files_check(struct sl_session *session, const char *folder, struct seqlstm_error *err)
{
    struct checking c = {session, err, SEQLSTM_OK};
    for (size_t n = 0; c.status == SEQLSTM_OK && n < sizeof names / sizeof *names; n++) {
        char *path = sl_path_join(folder, names[n]);
        c.status = check(session, path, false, err);
        free(path);
    }
    char *checkpoints = sl_path_join(folder, "checkpoints");
    if (c.status == SEQLSTM_OK)
        c.status = check(session, checkpoints, true, err);
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    const seqlstm_status status = c.status == SEQLSTM_OK && checkpoints
                                      ? sl_checkpoint_folder_visit(checkpoints, check_checkpoint, &c, &why)
                                      : SEQLSTM_OK;
    free(checkpoints);
    if (status == SEQLSTM_NO_MEMORY && err) /* what cannot be read is not read later */
        *err = why;
    return status == SEQLSTM_NO_MEMORY ? status : c.status;
}

/* `key`: of the configuration, for its place. */
static seqlstm_status check_named(struct sl_session *session, const char *key, struct sl_place place, const char *path,
                                  struct seqlstm_error *err)
{
    const bool saved = place.file && strcmp(place.file, session->model->path) == 0;
    if (path == NULL || !saved || !sl_file_exists(path) || sl_file_is_regular(path) || sl_file_is_folder(path))
        return SEQLSTM_OK;
    seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                      "`%s` of the saved run names %.500s, which is a pipe, a device or another special file; use "
                      "`--trust` if you made it yourself",
                      key, path);
    if (session->diagnostics && err)
        sl_session_add_finding_at(session, "E0703", place, err->message);
    return SEQLSTM_INVALID_CONFIG;
}

static seqlstm_status check_key(struct sl_session *session, const char *key, const char *path,
                                struct seqlstm_error *err)
{
    return check_named(session, key, sl_session_find_value(session, key), path, err);
}

seqlstm_status sl_trusted_files_check_paths(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_model *model = session->model;
    if (session->options.trust)
        return SEQLSTM_OK;
    for (int split = 0; split < SL_SPLIT_COUNT; split++) {
        struct sl_data_file files[SL_DATA_FILE_COUNT];
        const int count = sl_source_list_files(&model->data.splits[split], files);
        for (int f = 0; f < count; f++) {
            char key[64];
            snprintf(key, sizeof key, "data.%s.%s", sl_split_get_name((enum sl_split)split), files[f].key);
            SEQLSTM_TRY(check_key(session, key, files[f].path, err));
        }
    }
    SEQLSTM_TRY(check_key(session, "data.tokenizer.vocab", model->data.tokenizer.vocab, err));
    SEQLSTM_TRY(check_key(session, "data.tokenizer.model", model->data.tokenizer.model, err));
    SEQLSTM_TRY(check_key(session, "data.source_tokenizer.vocab", model->data.source_tokenizer.vocab, err));
    SEQLSTM_TRY(check_key(session, "data.source_tokenizer.model", model->data.source_tokenizer.model, err));
    SEQLSTM_TRY(check_key(session, "train.init_from", model->train.init_from, err));
    for (size_t l = 0; l < model->layer_count; l++)
        if (model->layers[l].kind == SL_LAYER_EMBEDDING)
            SEQLSTM_TRY(check_named(session, "weights", sl_layer_find_option_place(&model->layers[l], "weights"),
                                    model->layers[l].embedding.weights, err));
    return SEQLSTM_OK;
}

seqlstm_status sl_trusted_files_check_plugins(struct sl_session *session, struct seqlstm_error *err)
{
    const struct sl_model *model = session->model;
    if (!session->is_run || session->options.trust)
        return SEQLSTM_OK;
    for (size_t b = 0; b < model->backend_count; b++) {
        const struct sl_backend_entry *entry = &model->backends[b];
        if (entry->file == NULL || entry->place.file == NULL || strcmp(entry->place.file, model->path) != 0)
            continue;
        seqlstm_error_set(
            err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__,
            "the saved run names the plugin %.600s, whose code is not loaded because a run folder says so; "
            "use `--trust` if you trust this run, or its id and `--backend-path`",
            entry->file);
        sl_error_place_set(err, entry->place.file, entry->place.line, entry->place.column);
        return sl_session_add_finding(session, "E0704", "backends", SEQLSTM_UNAVAILABLE, err);
    }
    return SEQLSTM_OK;
}
