/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of backends and the thread pool. */
#include "session/prepare/backends.h"

#include <string.h>

#include "base/memory/arena.h"
#include "base/value/error_place.h"
#include "session/finding/cuda_device.h"
#include "session/finding/missing.h"
#include "session/record/session_record.h"
#include "session/run_files/trusted_files.h"
#include "session/run_folder/stored_plan.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

/* `first`, then (with `listed`) the model's backends in the form that the registry needs, then `extra` (NULL: none);
 * each name once. What comes first without options has those of the model. */
static seqlstm_status list_entries(const struct sl_model *model, const struct sl_registry_entry *first, uint32_t count,
                                   bool listed, const char *extra, struct sl_arena *arena,
                                   struct sl_registry_entry **out_entries, uint32_t *out_count,
                                   struct seqlstm_error *err)
{
    size_t said = listed ? model->backend_count : 0;
    struct sl_registry_entry *entries = SL_ARENA_ARRAY(arena, struct sl_registry_entry, count + said + 1);
    if (entries == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of backends");
    for (uint32_t e = 0; e < count; e++)
        entries[e] = first[e];
    const struct sl_backend_entry last = {.id = extra};
    for (size_t b = 0; b < said + (extra != NULL); b++) {
        const struct sl_backend_entry *entry = b < said ? &model->backends[b] : &last;
        const char *name = entry->file ? entry->file : entry->id;
        uint32_t known = 0;
        while (known < count && strcmp(entries[known].name, name) != 0)
            known++;
        if (known < count && (entries[known].setting_count > 0 || entry->option_count == 0))
            continue;
        struct seqlstm_setting *settings = SL_ARENA_ARRAY(arena, struct seqlstm_setting, entry->option_count + 1);
        if (settings == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of backends");
        char where[sizeof err->where];
        sl_error_place_write(entry->place.file, entry->place.line, entry->place.column, where, sizeof where);
        for (size_t o = 0; o < entry->option_count; o++)
            settings[o] = (struct seqlstm_setting){entry->options[o].key, entry->options[o].value};
        if (known < count) {
            entries[known].settings = settings;
            entries[known].setting_count = (uint32_t)entry->option_count;
            continue;
        }
        const char *origin = entry->place.line > 0 ? sl_arena_strdup(arena, where) : NULL;
        if (origin == NULL && entry->place.line > 0)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of backends");
        entries[count++] = (struct sl_registry_entry){
            .name = name,
            .origin = origin,
            .require = entry->require,
            .settings = settings,
            .setting_count = (uint32_t)entry->option_count,
        };
    }
    *out_entries = entries;
    *out_count = count;
    return SEQLSTM_OK;
}

static seqlstm_status open_registry(const struct sl_session *session, const struct sl_registry_entry *first,
                                    uint32_t count, bool listed, const char *extra, struct sl_registry **out_registry,
                                    struct seqlstm_error *err)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    struct sl_arena arena;
    sl_arena_init(&arena);
    struct sl_registry_entry *entries = NULL;
    seqlstm_status status = list_entries(session->model, first, count, listed, extra, &arena, &entries, &count, err);
    struct sl_registry_request request = {
        .entries = entries,
        .entry_count = count,
        .all_backends = listed && session->model->all_backends,
        .trust = session->options.trust,
        .cpu_only = session->model->device == SL_DEVICE_CPU,
        .cuda = 1 + sl_session_find_cuda(session),
        .builtins = builtins,
        .builtin_count = 1,
        .folders = session->options.backend_folders,
        .folder_count = session->options.backend_folder_count,
        .log = session->options.log,
        .interrupt = session->options.interrupt,
    };
    if (status == SEQLSTM_OK)
        status = sl_registry_create(&request, out_registry, err);
    sl_arena_deinit(&arena);
    return status;
}

seqlstm_status sl_session_open_registry(const struct sl_session *session, const struct sl_registry_entry *first,
                                        uint32_t first_count, bool listed, struct sl_registry **out_registry,
                                        struct seqlstm_error *err)
{
    return open_registry(session, first, first_count, listed, "reference", out_registry, err);
}

/* The backend of `--backend`, now or when the run began, if the list of the model lacks it; NULL: it needs no entry.
 * What is found on the backend path is loaded anyway if the model lists nothing. */
static const char *find_extra(const struct sl_session *session)
{
    const struct sl_session_options *options = &session->options;
    const char *forced = options->forced_backend ? options->forced_backend : options->used_backend;
    if (forced == NULL || strchr(forced, '/') != NULL)
        return NULL;
    return !session->model->all_backends || strcmp(forced, "reference") == 0 ? forced : NULL;
}

seqlstm_status sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->registry)
        return SEQLSTM_OK;
    SEQLSTM_TRY(sl_trusted_files_check_plugins(session, err));
    SEQLSTM_TRY(open_registry(session, NULL, 0, true, find_extra(session), &session->registry, err));
    SEQLSTM_TRY(sl_session_find_missing_backends(session, session->registry, err));
    if (session->pool == NULL)
        SEQLSTM_TRY(sl_pool_create(sl_stored_plan_choose_threads(session), &session->pool, err));
    sl_stored_plan_compare_devices(session);
    return SEQLSTM_OK;
}

seqlstm_status sl_session_check_backends(struct sl_session *session, struct seqlstm_error *err)
{
    struct sl_registry *registry = NULL;
    if (session->model->backend_count == 0 && session->model->device < SL_DEVICE_CUDA)
        return SEQLSTM_OK; /* nothing that can be missing */
    SEQLSTM_TRY(sl_session_open_registry(session, NULL, 0, true, &registry, err));
    const seqlstm_status status = sl_session_find_missing_backends(session, registry, err);
    sl_registry_destroy(registry);
    return status;
}
