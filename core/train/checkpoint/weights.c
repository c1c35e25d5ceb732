/* SPDX-License-Identifier: Apache-2.0 */
/* Weights to and from safetensors files. */
#include "train/checkpoint/weights.h"

#include <stdlib.h>
#include <string.h>

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/tensors.h"

seqlstm_status sl_weights_save(const struct sl_params *params, const char *path,
                               const struct sl_safetensors_text *texts, int32_t text_count, struct seqlstm_error *err)
{
    struct sl_tensor_list list = {0};
    struct sl_safetensors_text *all = malloc(((size_t)text_count + 2) * sizeof *all);
    if (!all)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to save `%s`", path);
    all[0] = (struct sl_safetensors_text){"format", "seqlstm.weights"};
    all[1] = (struct sl_safetensors_text){"version", "1"};
    for (int32_t i = 0; i < text_count; i++)
        all[2 + i] = texts[i];
    seqlstm_status status = sl_tensor_list_add(&list, params, "", params->values, err);
    if (status == SEQLSTM_OK) {
        struct sl_safetensors_content content = {list.entries, list.count, all, text_count + 2, true};
        status = sl_safetensors_write(path, &content, err);
    }
    sl_tensor_list_deinit(&list);
    free(all);
    return status;
}

/* Checkpoints hold more than weights; if averaging was active, the averaged weights are read. */
static bool is_checkpoint(const struct sl_safetensors *file)
{
    const char *format = sl_safetensors_find_text(file, "format");
    return format && strcmp(format, SL_CHECKPOINT_FORMAT) == 0;
}

static const char *choose_prefix(const struct sl_safetensors *file)
{
    bool averaged = is_checkpoint(file) && sl_safetensors_find_text(file, "averaged");
    return averaged ? SL_CHECKPOINT_AVERAGE : "";
}

static seqlstm_status check(const struct sl_safetensors *file, const struct sl_params *params, unsigned flags,
                            struct sl_weights_report *report, struct seqlstm_error *err)
{
    const char *prefix = choose_prefix(file);
    for (int32_t i = 0; i < params->view_count; i++) {
        const struct sl_safetensors_entry *entry = NULL;
        SEQLSTM_TRY(sl_tensor_find(file, prefix, &params->views[i], &entry, err));
        if (!entry && !(flags & SL_WEIGHTS_ALLOW_MISSING)) {
            seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__, "the file holds no `%s`",
                              params->views[i].name);
            return sl_tensor_blame(params->views[i].name, err);
        }
        *(entry ? &report->loaded : &report->missing) += 1;
    }
    for (int32_t i = 0; i < sl_safetensors_get_count(file) && !is_checkpoint(file); i++) {
        const char *name = sl_safetensors_get_entry(file, i)->name;
        if (sl_params_find(params, name))
            continue;
        if (!(flags & SL_WEIGHTS_ALLOW_EXTRA)) {
            seqlstm_error_set(err, SEQLSTM_INVALID_CONFIG, __FILE__, __LINE__,
                              "the file holds `%s`, which the model does not have", name);
            return sl_tensor_blame(name, err);
        }
        report->extra++;
    }
    return SEQLSTM_OK;
}

static seqlstm_status load(const struct sl_safetensors *file, struct sl_params *params, unsigned flags,
                           struct sl_weights_report *report, struct seqlstm_error *err)
{
    if (sl_safetensors_find_text(file, "checksum"))
        SEQLSTM_TRY(sl_safetensors_verify(file, err));
    SEQLSTM_TRY(check(file, params, flags, report, err));
    SEQLSTM_TRY(sl_tensors_read(file, choose_prefix(file), params, params->values, err));
    sl_params_touch(params);
    return SEQLSTM_OK;
}

seqlstm_status sl_weights_load(struct sl_params *params, const char *path, unsigned flags,
                               struct sl_weights_report *out_report, struct seqlstm_error *err)
{
    struct sl_safetensors *file = NULL;
    struct sl_weights_report report = {0, 0, 0};
    SEQLSTM_TRY(sl_safetensors_open(path, &file, err));
    seqlstm_status status = load(file, params, flags, &report, err);
    sl_safetensors_close(file);
    if (status == SEQLSTM_OK && out_report)
        *out_report = report;
    return status;
}
