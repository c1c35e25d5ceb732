/* SPDX-License-Identifier: Apache-2.0 */
/* Freeing a raw source, and what its readers share. */
#include "data/read/raw.h"

#include <stdlib.h>
#include <string.h>

static void free_names(char **names, int64_t count)
{
    if (!names)
        return;
    for (int64_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

void sl_raw_deinit(struct sl_raw *raw)
{
    if (raw->pair)
        sl_raw_deinit(raw->pair);
    free(raw->pair);
    free(raw->name);
    free(raw->ids);
    sl_token_file_close(raw->token_file);
    sl_intern_deinit(&raw->tokens);
    free(raw->values);
    free(raw->values32);
    sl_file_map_close(&raw->map);
    free(raw->target_ids);
    sl_intern_deinit(&raw->labels);
    free(raw->target_values);
    free(raw->start);
    free(raw->length);
    free(raw->line);
    free(raw->row_line);
    sl_passed_deinit(&raw->passed);
    free(raw->missing);
    free(raw->filled);
    free(raw->blank);
    free(raw->after_gap);
    free(raw->step);
    free(raw->steps);
    free(raw->text);
    free(raw->text_offset);
    free(raw->text_bytes);
    free(raw->cache_problem);
    free_names(raw->input_names, raw->input_features);
    free_names(raw->target_names, raw->target_features);
    memset(raw, 0, sizeof *raw);
}

seqlstm_status sl_raw_note_missing(struct sl_raw *raw, int64_t row, int64_t rows, bool target_filled,
                                   struct seqlstm_error *err)
{
    if (raw->missing == NULL)
        raw->missing = calloc((size_t)rows + 1, sizeof *raw->missing);
    if (raw->filled == NULL && target_filled)
        raw->filled = calloc((size_t)rows + 1, sizeof *raw->filled);
    if (raw->missing == NULL || (raw->filled == NULL && target_filled))
        return SL_DATA_NO_MEMORY(err);
    raw->missing[row]++;
    raw->counts.missing_values++;
    if (target_filled)
        raw->filled[row]++;
    raw->counts.filled_targets += target_filled;
    return SEQLSTM_OK;
}

bool sl_model_wants_steps(const struct sl_model *model)
{
    for (size_t i = 0; i < model->layer_count; i++) {
        enum sl_layer_kind kind = model->layers[i].kind;
        if (kind == SL_LAYER_LSTM || kind == SL_LAYER_GRU || kind == SL_LAYER_RNN || kind == SL_LAYER_POOL)
            return true;
    }
    return false;
}

bool sl_model_ignores_missing_targets(const struct sl_model *model)
{
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        if (model->data.splits[split].missing.targets == SL_MISSING_TARGETS_IGNORE)
            return true;
    return false;
}

bool sl_model_wants_step_targets(const struct sl_model *model)
{
    if (model->train.task == SL_TASK_LANGUAGE_MODEL || model->train.task == SL_TASK_TAG)
        return true;
    if (model->train.task == SL_TASK_CLASSIFY || model->layer_count == 0)
        return false;
    return model->layers[model->layer_count - 1].output_shape == SL_SHAPE_SEQUENCE;
}
