/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a session. */
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/value/buf.h"
#include "base/value/path.h"
#include "dispatch/cost/cost_cache.h"
#include "session/predict/values.h"
#include "session/prepare/decoding.h"
#include "session/prepare/sampling.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"
#include "session/run/timeline.h"
#include "session/run_files/run_flags.h"
#include "session/run_files/run_lock.h"
#include "session/run_files/trusted_files.h"
#include "session/run_folder/changes.h"
#include "session/run_folder/run_name.h"
#include "session/run_folder/stored_plan.h"
#include "session/run_folder/stored_quantization.h"
#include "train/checkpoint/checksums.h"

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

/* What the options change in a model that is read. */
static void adapt(const struct sl_session_options *options, struct sl_model *model)
{
    if (options->parallel)
        model->parallel = *options->parallel;
    if (options->batch_factor > 1) {
        model->data.batch_size *= options->batch_factor;
        model->data.batching.max_tokens *= options->batch_factor;
    }
}

seqlstm_status sl_session_open_model(const struct sl_session_options *options, struct sl_diagnostics *diagnostics,
                                     struct sl_session **out_session, struct seqlstm_error *err)
{
    struct sl_session *session = NULL;
    SEQLSTM_TRY(create(options, diagnostics, &session, err));
    const struct sl_model_request *request = options->model;
    seqlstm_status status = request->text ? sl_model_load_text(request->path, request->text, request->text_bytes,
                                                               request, diagnostics, &session->model, err)
                                          : sl_model_load(request, diagnostics, &session->model, err);
    if (status == SEQLSTM_OK)
        adapt(options, session->model);
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
        if (status == SEQLSTM_OK)
            status = sl_data_state_check(session->state, session->model, path, err);
    }
    free(text);
    free(path);
    return status;
}

/* Logs what overrides and overlays change in the run, and refuses what would have no effect. */
static seqlstm_status note_changes(struct sl_session *session, const char *config, struct seqlstm_error *err)
{
    const struct sl_model_request *said = session->options.model;
    if (said == NULL || said->override_count + said->overlay_count == 0)
        return SEQLSTM_OK;
    struct sl_model_request request = {.path = config, .saved = true};
    struct sl_model *before = NULL;
    struct sl_diagnostics *ignored = NULL;
    SEQLSTM_TRY(sl_diagnostics_create(&ignored, err));
    seqlstm_status status = sl_model_load(&request, ignored, &before, NULL);
    size_t changes = 1; /* if the saved configuration cannot be read, it is written again */
    if (status == SEQLSTM_OK)
        status = sl_session_review_changes(session, before, &changes, err);
    else if (status == SEQLSTM_NO_MEMORY)
        seqlstm_error_set(err, status, __FILE__, __LINE__, "no memory for the configuration of the run");
    else
        status = SEQLSTM_OK;
    session->changed = changes > 0;
    sl_model_destroy(before);
    sl_diagnostics_destroy(ignored);
    return status;
}

/* Before anything of the folder is read: nothing in it is a link, no other process writes into it, and what was changed
 * since is said. */
static seqlstm_status check_folder(struct sl_session *session, struct seqlstm_error *err)
{
    static const char *const names[] = {"config.yaml",  "data.json",         "plan.json",
                                        "sources.json", "quantization.json", "summary.json",
                                        "flags.json",   "metrics.jsonl",     NULL};
    SEQLSTM_TRY(sl_trusted_files_check(session, session->folder, err));
    if (session->options.writes)
        SEQLSTM_TRY(sl_run_lock_take(session, err));
    sl_checksums_compare(session->folder, names, session->options.log);
    return SEQLSTM_OK;
}

static seqlstm_status read_run(struct sl_session *session, const char *run, struct seqlstm_error *err)
{
    session->is_run = true;
    SEQLSTM_TRY(sl_run_folder_find(run, session->options.log, &session->folder, err));
    SEQLSTM_TRY(check_folder(session, err));
    char *config = sl_path_join(session->folder, "config.yaml");
    if (config == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a path");
    struct sl_model_request request = session->options.model ? *session->options.model : (struct sl_model_request){0};
    request.path = config;
    request.saved = true;
    seqlstm_status status = sl_model_load(&request, session->diagnostics, &session->model, err);
    if (status == SEQLSTM_OK)
        status = note_changes(session, config, err);
    free(config);
    SEQLSTM_TRY(status);
    SEQLSTM_TRY(sl_trusted_files_check_paths(session, err));
    SEQLSTM_TRY(sl_run_flags_read(session, err));
    SEQLSTM_TRY(read_state(session, err));
    SEQLSTM_TRY(sl_stored_quantization_read(session, err));
    session->replay = session->options.plan_path != NULL;
    if (session->replay)
        return sl_stored_plan_read(session->options.plan_path, &session->stored, err);
    char *plan = sl_path_join(session->folder, "plan.json");
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
    sl_session_close_recorder(session);
    sl_decoding_deinit(&session->decoding);
    sl_decoding_deinit(&session->test_decoding);
    sl_stage_deinit(&session->test);
    sl_sampling_deinit(&session->sampling);
    sl_kept_predictor_deinit(&session->kept);
    sl_stage_deinit(&session->evaluate);
    sl_stage_deinit(&session->train);
    sl_owners_deinit(&session->owners);
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
    sl_file_lock_release(session->lock);
    free(session->made);
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
