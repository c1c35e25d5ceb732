/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a session; data and backends on demand. */
#include <stdlib.h>
#include <string.h>

#include "base/value/buf.h"
#include "base/system/file.h"
#include "dispatch/cost/cost_cache.h"
#include "session/session_private.h"

const struct seqlstm_backend *seqlstm_reference_query_v0(uint32_t host_minor);

enum { DATA_STATE_LIMIT = 1 << 30 };

static seqlstm_status create(const struct sl_session_options *options, struct sl_diagnostics *diagnostics,
                             struct sl_session **out_session, struct seqlstm_error *err)
{
    struct sl_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the session");
    session->options = *options;
    session->diagnostics = diagnostics;
    sl_memory_init(&session->memory);
    sl_arena_init(&session->stored.arena);
    sl_arena_init(&session->quantization.arena);
    *out_session = session;
    return SEQLSTM_OK;
}

seqlstm_status sl_session_open_model(const struct sl_session_options *options, struct sl_diagnostics *diagnostics,
                                     struct sl_session **out_session, struct seqlstm_error *err)
{
    struct sl_session *session = NULL;
    SEQLSTM_TRY(create(options, diagnostics, &session, err));
    seqlstm_status status = sl_model_load(options->model, diagnostics, &session->model, err);
    if (status == SEQLSTM_OK && options->plan_path)
        status = sl_stored_plan_read(options->plan_path, &session->stored, err);
    session->replay = options->plan_path != NULL;
    if (status != SEQLSTM_OK) {
        sl_session_close(session);
        return status;
    }
    *out_session = session;
    return SEQLSTM_OK;
}

static seqlstm_status read_state(struct sl_session *session, struct seqlstm_error *err)
{
    char *path = sl_path_join(session->folder, "data.json"), *text = NULL;
    size_t bytes;
    if (path == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    seqlstm_status status = SEQLSTM_OK;
    if (sl_file_exists(path)) {
        status = sl_file_read(path, DATA_STATE_LIMIT, &text, &bytes, err);
        if (status == SEQLSTM_OK)
            status = sl_data_state_read(path, text, bytes, &session->state, err);
    }
    free(text);
    free(path);
    return status;
}

/* Says what overrides and overlays change in the run. */
static seqlstm_status note_changes(struct sl_session *session, const char *config, struct seqlstm_error *err)
{
    const struct sl_model_request *said = session->options.model;
    if (said == NULL || said->override_count + said->overlay_count == 0)
        return SEQLSTM_OK;
    struct sl_model_request request = {.path = config};
    struct sl_model *before = NULL;
    struct sl_diagnostics *ignored = NULL;
    SEQLSTM_TRY(sl_diagnostics_create(&ignored, err));
    if (sl_model_load(&request, ignored, &before, NULL) == SEQLSTM_OK)
        session->changed = sl_session_log_changes(session, before) > 0;
    sl_model_destroy(before);
    sl_diagnostics_destroy(ignored);
    return SEQLSTM_OK;
}

static seqlstm_status read_run(struct sl_session *session, const char *run, struct seqlstm_error *err)
{
    session->is_run = true;
    SEQLSTM_TRY(sl_run_folder_find(run, session->options.log, &session->folder, err));
    char *config = sl_path_join(session->folder, "config.yaml");
    if (config == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    struct sl_model_request request = session->options.model ? *session->options.model : (struct sl_model_request){0};
    request.path = config;
    seqlstm_status status = sl_model_load(&request, session->diagnostics, &session->model, err);
    if (status == SEQLSTM_OK)
        status = note_changes(session, config, err);
    free(config);
    SEQLSTM_TRY(status);
    SEQLSTM_TRY(read_state(session, err));
    SEQLSTM_TRY(sl_stored_quantization_read(session, err));
    session->replay = session->options.plan_path != NULL;
    char *plan =
        session->options.plan_path ? strdup(session->options.plan_path) : sl_path_join(session->folder, "plan.json");
    if (plan == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    if (sl_file_exists(plan) && session->options.forced_backend == NULL)
        status = sl_stored_plan_read(plan, &session->stored, err);
    free(plan);
    return status;
}

seqlstm_status sl_session_open_run(const char *run, const struct sl_session_options *options,
                                   struct sl_diagnostics *diagnostics, struct sl_session **out_session,
                                   struct seqlstm_error *err)
{
    struct sl_session *session = NULL;
    SEQLSTM_TRY(create(options, diagnostics, &session, err));
    seqlstm_status status = read_run(session, run, err);
    if (status != SEQLSTM_OK) {
        sl_session_close(session);
        return status;
    }
    *out_session = session;
    return SEQLSTM_OK;
}

void sl_session_close(struct sl_session *session)
{
    if (session == NULL)
        return;
    sl_decoding_deinit(&session->decoding);
    sl_decoding_deinit(&session->test_decoding);
    sl_stage_deinit(&session->test);
    sl_sampling_deinit(&session->sampling);
    sl_stage_deinit(&session->predict);
    sl_stage_deinit(&session->evaluate);
    sl_stage_deinit(&session->train);
    sl_params_destroy(session->params);
    free(session->class_weights);
    sl_batcher_close(session->valid_batcher);
    sl_batcher_close(session->train_batcher);
    sl_dataset_close(session->valid_data);
    sl_dataset_close(session->train_data);
    sl_data_state_destroy(session->state);
    sl_registry_destroy(session->registry);
    sl_cost_cache_close(session->costs);
    sl_pool_destroy(session->pool);
    sl_model_destroy(session->model);
    sl_arena_deinit(&session->stored.arena);
    sl_arena_deinit(&session->quantization.arena);
    free(session->folder);
    free(session);
}

const struct sl_model *sl_session_get_model(const struct sl_session *session)
{
    return session->model;
}

const char *sl_session_get_folder(const struct sl_session *session)
{
    return session->folder;
}

const struct sl_data_state *sl_session_find_data_state(const struct sl_session *session)
{
    return session->state;
}

const struct sl_dataset *sl_session_find_train_data(const struct sl_session *session)
{
    return session->train_data;
}

const struct sl_plan *sl_session_find_plan(const struct sl_session *session, enum sl_phase phase)
{
    return phase == SL_PHASE_TRAIN      ? session->train.plan
           : phase == SL_PHASE_EVALUATE ? session->evaluate.plan
                                        : session->predict.plan;
}

const struct sl_registry *sl_session_find_registry(const struct sl_session *session)
{
    return session->registry;
}

seqlstm_status sl_session_read_data(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->train_data)
        return SEQLSTM_OK;
    seqlstm_status status =
        session->state ? sl_dataset_open(session->model, SL_SPLIT_TRAIN, session->state, &session->train_data, err)
                       : sl_dataset_open_train(session->model, &session->train_data, &session->state, err);
    if (status == SEQLSTM_OK) {
        sl_sources_check(session, SL_SPLIT_TRAIN);
        sl_session_note_split(session, SL_SPLIT_TRAIN, session->train_data);
    }
    status = sl_session_blame_data(status, err);
    return status == SEQLSTM_OK ? SEQLSTM_OK : sl_session_find_data_error(session, SL_SPLIT_TRAIN, status, err);
}

/* A data file that is not there is an error of the data, as one that is broken. */
seqlstm_status sl_session_blame_data(seqlstm_status status, struct seqlstm_error *err)
{
    if (status != SEQLSTM_NOT_FOUND && status != SEQLSTM_IO)
        return status;
    if (err)
        err->code = SEQLSTM_CORRUPT_DATA;
    return SEQLSTM_CORRUPT_DATA;
}

/* `first`, then (with `listed`) the model's backends as the registry wants them, then (with `oracle`) the reference;
 * each name once. */
static seqlstm_status list_entries(const struct sl_model *model, const struct sl_registry_entry *first, uint32_t count,
                                   bool listed, bool oracle, struct sl_arena *arena,
                                   struct sl_registry_entry **out_entries, uint32_t *out_count,
                                   struct seqlstm_error *err)
{
    size_t said = listed ? model->backend_count : 0;
    struct sl_registry_entry *entries = SL_ARENA_ARRAY(arena, struct sl_registry_entry, count + said + 1);
    if (entries == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of backends");
    for (uint32_t e = 0; e < count; e++)
        entries[e] = first[e];
    for (size_t b = 0; b < said + oracle; b++) {
        static const struct sl_backend_entry reference = {.id = "reference"};
        const struct sl_backend_entry *entry = b < said ? &model->backends[b] : &reference;
        const char *name = entry->file ? entry->file : entry->id;
        bool known = false;
        for (uint32_t e = 0; e < count; e++)
            known = known || strcmp(entries[e].name, name) == 0;
        if (known)
            continue;
        struct seqlstm_setting *settings = SL_ARENA_ARRAY(arena, struct seqlstm_setting, entry->option_count + 1);
        if (settings == NULL)
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the list of backends");
        for (size_t o = 0; o < entry->option_count; o++)
            settings[o] = (struct seqlstm_setting){entry->options[o].key, entry->options[o].value};
        entries[count++] = (struct sl_registry_entry){
            .name = name,
            .origin = entry->place.line > 0 ? sl_arena_printf(arena, "%s:%d:%d", entry->place.file, entry->place.line,
                                                              entry->place.column)
                                            : NULL,
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
                                    uint32_t count, bool listed, bool oracle, struct sl_registry **out_registry,
                                    struct seqlstm_error *err)
{
    static const struct sl_backend_builtin builtins[] = {{"reference", seqlstm_reference_query_v0}};
    struct sl_arena arena;
    sl_arena_init(&arena);
    struct sl_registry_entry *entries = NULL;
    seqlstm_status status = list_entries(session->model, first, count, listed, oracle, &arena, &entries, &count, err);
    struct sl_registry_request request = {
        .entries = entries,
        .entry_count = count,
        .all_backends = listed && session->model->all_backends,
        .trust = session->options.trust,
        .cpu_only = session->model->device == SL_DEVICE_CPU,
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
    return open_registry(session, first, first_count, listed, true, out_registry, err);
}

seqlstm_status sl_session_load_backends(struct sl_session *session, struct seqlstm_error *err)
{
    if (session->registry)
        return SEQLSTM_OK;
    SEQLSTM_TRY(open_registry(session, NULL, 0, true, false, &session->registry, err));
    SEQLSTM_TRY(sl_session_find_missing_backends(session, err));
    if (session->pool == NULL)
        SEQLSTM_TRY(sl_pool_create(sl_stored_plan_choose_threads(session), &session->pool, err));
    sl_stored_plan_compare_devices(session);
    return SEQLSTM_OK;
}
