/* SPDX-License-Identifier: Apache-2.0 */
/* Finds files and backends that a model names and that are not there. */
#include "session/finding/missing.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/near_file.h"
#include "base/value/text.h"
#include "session/finding/cuda_device.h"
#include "session/finding/finding.h"
#include "session/record/session_record.h"
#include "session/run_folder/run_name.h"

/* "there is no file `trian.csv`", with what may be meant. */
static void add_missing_file(struct sl_session *session, const char *code, struct sl_place place, const char *path)
{
    char message[1024], help[512];
    char *near = sl_near_file_find(path);
    sl_text_snprintf(message, sizeof message, "there is no file `%.900s`", path);
    if (strncmp(path, "memory:", 7) == 0)
        sl_text_snprintf(help, sizeof help,
                         "these data were in the memory of the program that trained the run: give them again");
    else if (near)
        sl_text_snprintf(help, sizeof help, "did you mean `%.400s`, which is there?", near);
    else
        sl_text_snprintf(help, sizeof help, "a path is relative to the file that it is written in");
    const struct sl_diagnostic finding = {.code = code, .place = place, .message = message, .help = help};
    sl_diagnostics_add(session->diagnostics, &finding);
    free(near);
}

size_t sl_session_find_missing_files(struct sl_session *session)
{
    size_t missing = 0;
    for (int split = 0; split < SL_SPLIT_COUNT; split++) {
        const struct sl_source *source = &session->model->data.splits[split];
        struct sl_data_file files[SL_DATA_FILE_COUNT];
        int count = sl_source_list_files(source, files);
        for (int f = 0; f < count; f++) {
            if (sl_file_exists(files[f].path))
                continue;
            char key[64];
            snprintf(key, sizeof key, "data.%s.%s", sl_split_get_name((enum sl_split)split), files[f].key);
            add_missing_file(session, "E0501", sl_session_find_value(session, key), files[f].path);
            missing++;
        }
    }
    return missing;
}

/* Settings that a backend does not know or accept are an error, wherever the backend is in the list. */
static seqlstm_status find_wrong_settings(struct sl_session *session, const struct sl_registry *registry,
                                          struct seqlstm_error *err)
{
    seqlstm_status status = SEQLSTM_OK;
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        if (!record->misconfigured || record->entry < 0)
            continue;
        const struct sl_backend_entry *entry = &session->model->backends[record->entry];
        struct sl_place place = entry->place;
        if (record->wrong_setting >= 0) {
            const struct sl_backend_option *option = &entry->options[record->wrong_setting];
            bool known = false;
            for (uint32_t o = 0; o < record->option_count; o++)
                known = known || strcmp(record->options[o].key, option->key) == 0;
            place = known ? option->value_place : option->place;
        }
        status = seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "%.900s", record->reason);
        sl_session_add_finding_at(session, "E0506", place, record->reason);
    }
    return status;
}

/* `device: cuda:1` needs a backend that has this device. */
static seqlstm_status find_missing_device(struct sl_session *session, const struct sl_registry *registry,
                                          struct seqlstm_error *err)
{
    char why[512] = "no backend for CUDA devices is listed or found";
    const int number = session->model->device < SL_DEVICE_CUDA ? -1 : (int)sl_session_find_cuda(session);
    for (uint32_t r = 0; number >= 0 && r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        const bool there = record->status == SL_BACKEND_OK;
        if (there && strncmp(record->devices[0].device_class, "cuda", 4) == 0)
            return SEQLSTM_OK;
        if (!there && record->status != SL_BACKEND_SHADOWED && strncmp(record->id, "cuda", 4) == 0)
            sl_text_snprintf(why, sizeof why, "%s: %.400s", record->id,
                             record->reason ? record->reason : "unavailable");
    }
    if (number < 0)
        return SEQLSTM_OK;
    const seqlstm_status status =
        seqlstm_error_set(err, SEQLSTM_UNAVAILABLE, __FILE__, __LINE__, "there is no CUDA device %d: %s", number, why);
    sl_session_add_finding(session, "E0504", "device", status, err);
    return status;
}

seqlstm_status sl_session_find_missing_backends(struct sl_session *session, const struct sl_registry *registry,
                                                struct seqlstm_error *err)
{
    static const char *const words[] = {[SL_BACKEND_OK] = "loaded",
                                        [SL_BACKEND_UNAVAILABLE] = "does not work on this machine",
                                        [SL_BACKEND_REFUSED] = "was refused",
                                        [SL_BACKEND_NOT_FOUND] = "was not found",
                                        [SL_BACKEND_SHADOWED] = "is hidden by another"};
    SEQLSTM_TRY(find_wrong_settings(session, registry, err));
    SEQLSTM_TRY(find_missing_device(session, registry, err));
    seqlstm_status status = SEQLSTM_OK;
    for (uint32_t r = 0; r < sl_registry_get_record_count(registry); r++) {
        const struct sl_backend_record *record = sl_registry_get_record(registry, r);
        if (record->status == SL_BACKEND_OK || record->status == SL_BACKEND_SHADOWED)
            continue;
        const char *name = record->id[0] ? record->id : record->file;
        const char *reason = record->reason ? record->reason : "no reason was given";
        if (!record->required) { /* a backend that the model names: a note; one found in a folder: only for debugging */
            sl_log_printf(session->options.log, record->origin ? SL_LOG_INFO : SL_LOG_DEBUG,
                          "note: the backend `%s` %s: %s", name, words[record->status], reason);
            continue;
        }
        status = SEQLSTM_UNAVAILABLE;
        seqlstm_error_set(err, status, __FILE__, __LINE__, "the required backend `%s` %s: %.600s", name,
                          words[record->status], reason);
        if (err && record->origin)
            snprintf(err->where, sizeof err->where, "%s", record->origin);
        sl_session_add_finding(session, "E0504", "backends", status, err);
    }
    return status;
}

/* ---- files beside the data -------------------------------------------------------------------------------- */

static size_t find_missing(struct sl_session *session, const char *code, struct sl_place place, const char *path)
{
    if (path == NULL || sl_file_exists(path))
        return 0;
    add_missing_file(session, code, place, path);
    return 1;
}

static size_t find_missing_plugins(struct sl_session *session)
{
    size_t missing = 0;
    for (size_t b = 0; b < session->model->backend_count; b++)
        if (session->model->backends[b].require)
            missing +=
                find_missing(session, "E0504", session->model->backends[b].place, session->model->backends[b].file);
    return missing;
}

static size_t find_missing_weights(struct sl_session *session)
{
    const struct sl_model *model = session->model;
    size_t missing = 0;
    for (size_t l = 0; l < model->layer_count; l++)
        if (model->layers[l].kind == SL_LAYER_EMBEDDING)
            missing += find_missing(session, "E0505", sl_layer_find_option_place(&model->layers[l], "weights"),
                                    model->layers[l].embedding.weights);
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    char *folder = NULL;
    const char *from = model->train.init_from;
    if (from && !sl_file_exists(from) && sl_run_folder_find(from, NULL, &folder, &err) == SEQLSTM_NOT_FOUND) {
        sl_session_add_finding_at(session, "E0505", sl_session_find_value(session, "train.init_from"), err.message);
        missing++;
    }
    free(folder);
    return missing;
}

seqlstm_status sl_session_find_missing_parts(struct sl_session *session, struct seqlstm_error *err)
{
    const size_t plugins = find_missing_plugins(session), weights = find_missing_weights(session);
    if (plugins > 0)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "the file of a required backend is missing");
    if (weights > 0)
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND, "initial weights are missing");
    return SEQLSTM_OK;
}
