/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint files: writes, verifies and reads them. checkpoint_folder.c finds and removes them. */
#include "train/checkpoint/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/value/buf.h"
#include "base/system/file_error.h"
#include "base/value/text.h"
#include "train/checkpoint/tensors.h"

static const char *const STATES[3] = {"optimizer.1.", "optimizer.2.", "optimizer.3."};

/* ---- writing ------------------------------------------------------------------------------------------ */

static seqlstm_status list_tensors(const struct sl_checkpoint_content *content, struct sl_tensor_list *list,
                                   struct seqlstm_error *err)
{
    const struct sl_params *params = content->params;
    SEQLSTM_TRY(sl_tensor_list_add(list, params, "", params->values, err));
    for (int i = 0; i < 3; i++)
        if (params->states[i])
            SEQLSTM_TRY(sl_tensor_list_add(list, params, STATES[i], params->states[i], err));
    if (content->average)
        SEQLSTM_TRY(sl_tensor_list_add(list, params, SL_CHECKPOINT_AVERAGE, content->average, err));
    if (content->best)
        SEQLSTM_TRY(sl_tensor_list_add(list, params, SL_CHECKPOINT_BEST, content->best, err));
    if (content->errors)
        SEQLSTM_TRY(sl_tensor_list_add(list, params, SL_CHECKPOINT_ERRORS, content->errors, err));
    if (content->carried && content->carried_elems > 0)
        SEQLSTM_TRY(sl_tensor_list_add_vector(list, "carried", content->carried, content->carried_elems, err));
    return SEQLSTM_OK;
}

static seqlstm_status write_file(const char *path, const struct sl_checkpoint_content *content, const char *state,
                                 struct seqlstm_error *err)
{
    struct sl_tensor_list list = {0};
    int32_t text_count = 0;
    struct sl_safetensors_text *texts = malloc(((size_t)content->text_count + 4) * sizeof *texts);
    if (!texts)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to write `%s`", path);
    texts[text_count++] = (struct sl_safetensors_text){"format", SL_CHECKPOINT_FORMAT};
    texts[text_count++] = (struct sl_safetensors_text){"version", SL_CHECKPOINT_VERSION};
    texts[text_count++] = (struct sl_safetensors_text){"state", state};
    if (content->average)
        texts[text_count++] = (struct sl_safetensors_text){"averaged", "1"};
    for (int32_t i = 0; i < content->text_count; i++)
        texts[text_count++] = content->texts[i];
    seqlstm_status status = list_tensors(content, &list, err);
    if (status == SEQLSTM_OK) {
        struct sl_safetensors_content file = {list.entries, list.count, texts, text_count, true};
        status = sl_safetensors_write(path, &file, err);
    }
    sl_tensor_list_deinit(&list);
    free(texts);
    return status;
}

/* Reads the file back, since a disk may fail silently. */
static seqlstm_status prove(const char *path, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    SEQLSTM_TRY(sl_checkpoint_open(path, &file, err));
    sl_safetensors_close(file);
    return SEQLSTM_OK;
}

/* Only this one: if the run folder above it is gone, it is not made again. */
static seqlstm_status make_folder(const char *folder, struct seqlstm_error *err)
{
    const int reason = mkdir(folder, 0777) != 0 ? errno : 0;
    return reason == 0 || reason == EEXIST ? SEQLSTM_OK : sl_file_fail(err, reason, "cannot make the folder", folder);
}

seqlstm_status sl_checkpoint_write(const char *folder, const struct sl_checkpoint_content *content, char **out_path,
                                   struct seqlstm_error *err)
{
    struct sl_buf path = {0}, state = {0};
    sl_buf_printf(&path, "%s/update-%012" PRId64 ".safetensors", folder, content->state->updates);
    sl_train_state_write(content->state, &state);
    seqlstm_status status = SEQLSTM_OK;
    if (path.failed || state.failed)
        status = seqlstm_error_set(err, SEQLSTM_NO_MEMORY, __FILE__, __LINE__, "no memory to write a checkpoint");
    if (status == SEQLSTM_OK)
        status = make_folder(folder, err);
    if (status == SEQLSTM_OK)
        status = write_file(path.data, content, state.data, err);
    if (status == SEQLSTM_OK)
        status = prove(path.data, err);
    if (status == SEQLSTM_OK && out_path) {
        *out_path = sl_buf_take(&path, NULL);
    }
    sl_buf_deinit(&path);
    sl_buf_deinit(&state);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------ */

static seqlstm_status check_format(const struct sl_safetensors *file, const char *path, struct seqlstm_error *err)
{
    const char *format = sl_safetensors_find_text(file, "format");
    const char *version = sl_safetensors_find_text(file, "version");
    if (!format || strcmp(format, SL_CHECKPOINT_FORMAT) != 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "`%s` is no checkpoint of seqlstm", path);
    if (!version || strcmp(version, SL_CHECKPOINT_VERSION) != 0)
        SEQLSTM_FAIL(
            err, SEQLSTM_CORRUPT_DATA,
            "`%s` is a checkpoint of version %.16s, this program reads version %s; use the version of seqlstm that "
            "wrote it",
            path, version ? version : "?", SL_CHECKPOINT_VERSION);
    return sl_safetensors_verify(file, err);
}

seqlstm_status sl_checkpoint_open(const char *path, struct sl_safetensors **out_file, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    SEQLSTM_TRY(sl_safetensors_open(path, &file, err));
    seqlstm_status status = check_format(file, path, err);
    if (status != SEQLSTM_OK) {
        sl_safetensors_close(file);
        return status;
    }
    *out_file = file;
    return SEQLSTM_OK;
}

/* Does any tensor of the file begin with the prefix? */
static bool has_prefix(const struct sl_safetensors *file, const char *prefix)
{
    for (int32_t i = 0; i < sl_safetensors_get_count(file); i++)
        if (strncmp(sl_safetensors_get_entry(file, i)->name, prefix, strlen(prefix)) == 0)
            return true;
    return false;
}

/* An optional group of tensors: absent, or complete and expected. */
static seqlstm_status check_group(const struct sl_safetensors *file, const char *prefix, const struct sl_params *params,
                                  const float *flat, struct seqlstm_error *err)
{
    if (!has_prefix(file, prefix))
        return SEQLSTM_OK;
    if (!flat) {
        seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                          "the checkpoint holds tensors `%s…`, which this configuration does not use", prefix);
        return sl_tensor_blame(prefix, err);
    }
    return sl_tensors_check(file, prefix, params, err);
}

static seqlstm_status check_carried(const struct sl_safetensors *file, const struct sl_checkpoint_target *target,
                                    const struct sl_safetensors_entry **out_entry, struct seqlstm_error *err)
{
    const struct sl_safetensors_entry *entry = sl_safetensors_find(file, "carried");
    int64_t elems = entry ? sl_safetensors_count_elems(entry) : 0;
    if (entry && (entry->dtype != SL_SAFETENSORS_F32 || !target->carried || elems != target->carried_elems)) {
        seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                          "the checkpoint carries states of %" PRId64 " elements, the model has %" PRId64, elems,
                          target->carried ? target->carried_elems : 0);
        return sl_tensor_blame(entry->name, err);
    }
    *out_entry = entry;
    return SEQLSTM_OK;
}

/* The state says which groups of tensors there are: zeros in place of one would be other weights. */
static seqlstm_status check_complete(const struct sl_safetensors *file, const struct sl_checkpoint_target *target,
                                     const struct sl_train_state *state, bool carries, struct seqlstm_error *err)
{
    const char *missing = NULL;
    if (target->average && state->averaging != has_prefix(file, SL_CHECKPOINT_AVERAGE))
        missing = SL_CHECKPOINT_AVERAGE;
    else if (target->best && state->stopping.has_best != has_prefix(file, SL_CHECKPOINT_BEST))
        missing = SL_CHECKPOINT_BEST;
    else if (target->carried && target->carried_elems > 0 && !carries)
        missing = "carried";
    if (missing)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the checkpoint's state and its tensors `%s…` contradict each other",
                     missing);
    return SEQLSTM_OK;
}

seqlstm_status sl_checkpoint_load(const struct sl_safetensors *file, const struct sl_checkpoint_target *target,
                                  struct seqlstm_error *err)
{
    struct sl_params *params = target->params;
    struct sl_train_state state;
    const struct sl_safetensors_entry *carried = NULL;
    const char *text = sl_safetensors_find_text(file, "state");
    if (!text)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "the checkpoint holds no state of a run");
    SEQLSTM_TRY(sl_train_state_read(text, strlen(text), &state, err));
    SEQLSTM_TRY(sl_tensors_check(file, "", params, err));
    for (int i = 0; i < 3; i++) {
        if (params->states[i])
            SEQLSTM_TRY(sl_tensors_check(file, STATES[i], params, err));
        else
            SEQLSTM_TRY(check_group(file, STATES[i], params, NULL, err));
    }
    SEQLSTM_TRY(check_group(file, SL_CHECKPOINT_AVERAGE, params, target->average, err));
    SEQLSTM_TRY(check_group(file, SL_CHECKPOINT_BEST, params, target->best, err));
    if (target->errors && has_prefix(file, SL_CHECKPOINT_ERRORS))
        SEQLSTM_TRY(sl_tensors_check(file, SL_CHECKPOINT_ERRORS, params, err));
    SEQLSTM_TRY(check_carried(file, target, &carried, err));
    SEQLSTM_TRY(check_complete(file, target, &state, carried != NULL, err));

    SEQLSTM_TRY(sl_tensors_read(file, "", params, params->values, err));
    for (int i = 0; i < 3; i++)
        if (params->states[i])
            SEQLSTM_TRY(sl_tensors_read(file, STATES[i], params, params->states[i], err));
    if (target->average && state.averaging)
        SEQLSTM_TRY(sl_tensors_read(file, SL_CHECKPOINT_AVERAGE, params, target->average, err));
    if (target->best && state.stopping.has_best)
        SEQLSTM_TRY(sl_tensors_read(file, SL_CHECKPOINT_BEST, params, target->best, err));
    if (target->errors)
        SEQLSTM_TRY(sl_tensors_read(file, SL_CHECKPOINT_ERRORS, params, target->errors, err));
    if (carried)
        SEQLSTM_TRY(sl_safetensors_read_float32(carried, target->carried, target->carried_elems, err));
    *target->state = state;
    sl_params_touch(params);
    sl_params_touch_states(params);
    return SEQLSTM_OK;
}
