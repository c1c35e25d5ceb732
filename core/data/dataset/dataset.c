/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a split: reads it, learns the state or takes the one given, and assembles the dataset. */
#include "data/dataset/dataset.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/assemble.h"
#include "data/dataset/dataset_private.h"
#include "data/dataset/envelope.h"
#include "data/dataset/fit.h"
#include "data/dataset/side_pieces.h"
#include "data/dataset/split_read.h"
#include "data/no_memory.h"

bool sl_dataset_has_split(const struct sl_model *model, enum sl_split split)
{
    return model->data.splits[split].origin != SL_SOURCE_NONE;
}

enum sl_split sl_dataset_choose_split(const struct sl_model *model)
{
    return sl_dataset_has_split(model, SL_SPLIT_TEST)    ? SL_SPLIT_TEST
           : sl_dataset_has_split(model, SL_SPLIT_VALID) ? SL_SPLIT_VALID
                                                         : SL_SPLIT_TRAIN;
}

static void set_pieces(struct sl_read *read, const struct sl_data_state *state)
{
    read->pieces = state->pieces;
    read->source_pieces = sl_data_state_find_source_pieces(state);
}

/* Adds a file, unless there is none or it is listed already. */
static seqlstm_status add_file(struct sl_dataset *d, const char *path, struct seqlstm_error *err)
{
    for (size_t i = 0; i < d->file_count && path; i++)
        path = strcmp(d->files[i], path) == 0 ? NULL : path;
    if (path && !(d->files[d->file_count] = strdup(path)))
        return SL_DATA_NO_MEMORY(err);
    d->file_count += path != NULL;
    return SEQLSTM_OK;
}

/* The files of a source, and those of its tokenizers, absolute as in the model. */
static seqlstm_status keep_files(struct sl_dataset *d, const struct sl_source *source, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &d->model->data;
    const char *const others[] = {config->tokenizer.vocab, config->source_tokenizer.vocab, config->tokenizer.model,
                                  config->source_tokenizer.model};
    const size_t other_count = sizeof others / sizeof *others;
    struct sl_data_file own[SL_DATA_FILE_COUNT];
    const int own_count = sl_source_list_files(source, own);
    d->files = calloc(SL_DATA_FILE_COUNT + other_count, sizeof *d->files);
    if (!d->files)
        return SL_DATA_NO_MEMORY(err);
    for (int i = 0; i < own_count; i++)
        SEQLSTM_TRY(add_file(d, own[i].path, err));
    for (size_t i = 0; own_count > 0 && i < other_count; i++)
        SEQLSTM_TRY(add_file(d, others[i], err));
    return SEQLSTM_OK;
}

/* Of the batches that the model asks for. */
static seqlstm_status compute_envelope(const struct sl_dataset *d, struct sl_envelope *out, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &d->model->data;
    bool predicting = d->form == SL_TARGET_NONE;
    struct sl_envelope_rule rule = {.batch_size = config->batch_size,
                                    .max_tokens = d->stream ? 0 : config->batching.max_tokens,
                                    .bptt = predicting ? 0 : config->batching.bptt,
                                    .padding = predicting ? SL_PADDING_NONE : config->batching.padding};
    return sl_envelope_compute(d, &rule, out, err);
}

/* `split`: which one, or SL_SPLIT_COUNT for inputs of predict. */
static seqlstm_status finish(const struct sl_model *model, enum sl_split split, const struct sl_data_state *state,
                             struct sl_raw *raw, struct sl_dataset **out_dataset, struct seqlstm_error *err)
{
    const bool predicting = split == SL_SPLIT_COUNT;
    struct sl_dataset *d = calloc(1, sizeof *d);
    if (!d)
        return SL_DATA_NO_MEMORY(err);
    d->model = model;
    d->state = state;
    d->facts = state->facts;
    d->form = predicting ? SL_TARGET_NONE : state->form;
    d->learns = split == SL_SPLIT_TRAIN;
    sl_intern_init(&d->unknown_labels);
    seqlstm_status status = sl_dataset_assemble(d, raw, err);
    if (predicting && raw->passed.columns > 0) { /* messages about rows have named them by now */
        d->passed = raw->passed;
        d->row_line = raw->row_line;
        raw->passed = (struct sl_passed){.rows = 0};
        raw->row_line = NULL;
    }
    if (status == SEQLSTM_OK && !predicting)
        status = keep_files(d, sl_split_find_source(model, split), err);
    if (status == SEQLSTM_OK)
        status = compute_envelope(d, &d->facts.envelope, err);
    if (status != SEQLSTM_OK) {
        sl_dataset_close(d);
        return status;
    }
    *out_dataset = d;
    return SEQLSTM_OK;
}

seqlstm_status sl_dataset_open_train(const struct sl_model *model, struct sl_dataset **out_dataset,
                                     struct sl_data_state **out_state, struct seqlstm_error *err)
{
    struct sl_raw raws[SL_SPLIT_COUNT] = {{0}};
    struct sl_side_pieces pieces = {NULL, NULL};
    const struct sl_raw *others[SL_SPLIT_COUNT];
    int other_count = 0;
    struct sl_data_state *state = NULL;
    struct sl_dataset *dataset = NULL;
    const struct sl_source *source = sl_split_find_source(model, SL_SPLIT_TRAIN);
    SEQLSTM_TRY(sl_side_pieces_open(model, &pieces, err));
    struct sl_read read = {.model = model,
                           .split = SL_SPLIT_TRAIN,
                           .pieces = pieces.target,
                           .source_pieces = model->data.tokenizer.shared ? pieces.target : pieces.source};
    seqlstm_status status = sl_split_read(&read, &raws[SL_SPLIT_TRAIN], err);
    bool fit_all = source->scale.type != SL_SCALE_NONE && source->scale.fit == SL_SCALE_FIT_ALL;
    for (int split = SL_SPLIT_VALID; status == SEQLSTM_OK && fit_all && split < SL_SPLIT_COUNT; split++) {
        if (!sl_dataset_has_split(model, (enum sl_split)split))
            continue;
        read.split = (enum sl_split)split;
        status = sl_split_read(&read, &raws[split], err);
        if (status == SEQLSTM_OK)
            others[other_count++] = &raws[split];
    }
    if (status == SEQLSTM_OK)
        status = sl_data_state_fit(model, &raws[SL_SPLIT_TRAIN], others, other_count, &state, err);
    if (status == SEQLSTM_OK) {
        state->pieces = pieces.target;
        state->source_pieces = pieces.source;
    } else {
        sl_side_pieces_close(&pieces);
    }
    if (status == SEQLSTM_OK)
        status = finish(model, SL_SPLIT_TRAIN, state, &raws[SL_SPLIT_TRAIN], &dataset, err);
    for (int split = 0; split < SL_SPLIT_COUNT; split++)
        sl_raw_deinit(&raws[split]);
    if (status != SEQLSTM_OK) {
        sl_data_state_destroy(state);
        return status;
    }
    state->facts = dataset->facts;
    *out_dataset = dataset;
    *out_state = state;
    return SEQLSTM_OK;
}

seqlstm_status sl_dataset_open(const struct sl_model *model, enum sl_split split, const struct sl_data_state *state,
                               struct sl_dataset **out_dataset, struct seqlstm_error *err)
{
    const struct sl_string_list inputs = sl_data_state_get_input_names(state);
    struct sl_read read = {.model = model, .split = split, .inputs = &inputs};
    set_pieces(&read, state);
    struct sl_raw raw;
    SEQLSTM_TRY(sl_split_read(&read, &raw, err));
    seqlstm_status status = finish(model, split, state, &raw, out_dataset, err);
    sl_raw_deinit(&raw);
    return status;
}

seqlstm_status sl_dataset_open_input(const struct sl_model *model, const struct sl_data_state *state,
                                     const struct sl_input_request *request, struct sl_dataset **out_dataset,
                                     struct seqlstm_error *err)
{
    const struct sl_string_list inputs = sl_data_state_get_input_names(state);
    struct sl_raw raw;
    struct sl_read read = {.model = model,
                           .source = sl_split_find_source(model, SL_SPLIT_TRAIN),
                           .split = SL_SPLIT_TRAIN,
                           .inputs = &inputs,
                           .input = request};
    set_pieces(&read, state);
    SEQLSTM_TRY(sl_raw_read(&read, &raw, err));
    seqlstm_status status = finish(model, SL_SPLIT_COUNT, state, &raw, out_dataset, err);
    sl_raw_deinit(&raw);
    return status;
}

void sl_dataset_close(struct sl_dataset *dataset)
{
    if (!dataset)
        return;
    free(dataset->start);
    free(dataset->length);
    free(dataset->target_row);
    free(dataset->no_prediction);
    free(dataset->step);
    free(dataset->row_line);
    sl_passed_deinit(&dataset->passed);
    free(dataset->steps);
    free(dataset->own_input_ids);
    sl_token_file_close(dataset->token_file);
    free(dataset->id_map);
    free(dataset->own_target_ids);
    free(dataset->own_input_values);
    free(dataset->own_target_values);
    sl_file_map_close(&dataset->map);
    free(dataset->cache_problem);
    free(dataset->text);
    free(dataset->text_offset);
    free(dataset->text_bytes);
    free(dataset->source.start);
    free(dataset->source.length);
    free(dataset->source.ids);
    free(dataset->target_text);
    free(dataset->target_text_offset);
    free(dataset->target_text_bytes);
    for (size_t i = 0; i < dataset->file_count; i++)
        free(dataset->files[i]);
    free(dataset->files);
    sl_intern_deinit(&dataset->unknown_labels);
    free(dataset);
}

const struct sl_data_facts *sl_dataset_get_facts(const struct sl_dataset *dataset)
{
    return &dataset->facts;
}

const struct sl_data_state *sl_dataset_get_state(const struct sl_dataset *dataset)
{
    return dataset->state;
}

const struct sl_model *sl_dataset_get_model(const struct sl_dataset *dataset)
{
    return dataset->model;
}

int64_t sl_dataset_get_records(const struct sl_dataset *dataset)
{
    return dataset->records;
}

int64_t sl_dataset_get_length(const struct sl_dataset *dataset, int64_t record)
{
    return dataset->facts.has_steps ? dataset->length[record] : 0;
}

/* The step after the first <eos> from `step` on; the length of the record if there is none. */
static int64_t find_line_end(const int32_t *ids, int64_t length, int64_t step, int32_t eos)
{
    while (step < length && ids[step] != eos)
        step++;
    return step < length ? step + 1 : length;
}

int64_t sl_dataset_get_next_line(const struct sl_dataset *dataset, int64_t record, int64_t step)
{
    const struct sl_vocabulary *vocabulary = sl_data_state_find_vocabulary(dataset->state);
    const int32_t eos = vocabulary ? sl_vocabulary_get_special(vocabulary, SL_SPECIAL_EOS) : -1;
    if (dataset->input_ids == NULL || eos < 0)
        return 0;
    const int32_t *ids = dataset->input_ids + dataset->start[record];
    const int64_t length = dataset->length[record], end = find_line_end(ids, length, step, eos);
    const int64_t begin = end < length ? end : 0, next = find_line_end(ids, length, begin, eos);
    return begin > 0 || (next > 0 && ids[next - 1] == eos) ? next - begin : 0;
}

int64_t sl_dataset_get_file_steps(const struct sl_dataset *dataset, int64_t record)
{
    return dataset->steps ? dataset->steps[record] : sl_dataset_get_length(dataset, record);
}

int64_t sl_dataset_get_file_step(const struct sl_dataset *dataset, int64_t record, int64_t step)
{
    return dataset->step ? dataset->step[dataset->start[record] + step] : step;
}

bool sl_dataset_has_prediction(const struct sl_dataset *dataset, int64_t record)
{
    if (dataset->steps && dataset->steps[record] > 0 && dataset->length[record] == 0)
        return false;
    return !dataset->no_prediction || !dataset->no_prediction[record];
}

/* Which step of the record is step `step` of the file; -1: none is, since it was left out. */
static int64_t find_own_step(const struct sl_dataset *dataset, int64_t record, int64_t step)
{
    const int64_t length = dataset->length[record];
    int64_t own = 0;
    if (!dataset->step)
        return step < length ? step : -1;
    while (own < length && dataset->step[dataset->start[record] + own] != step)
        own++;
    return own < length ? own : -1;
}

const char *sl_dataset_find_cell(const struct sl_dataset *dataset, int64_t record, int64_t step, size_t column,
                                 size_t *out_bytes)
{
    if (!dataset->row_line) /* a record is a row */
        return sl_passed_find(&dataset->passed, record, column, out_bytes);
    const int64_t own = find_own_step(dataset, record, step);
    return own < 0
               ? NULL
               : sl_passed_find(&dataset->passed,
                                sl_passed_find_row(&dataset->passed, dataset->row_line[dataset->start[record] + own]),
                                column, out_bytes);
}

int64_t sl_dataset_get_source_length(const struct sl_dataset *dataset, int64_t record)
{
    return dataset->source.present ? dataset->source.length[record] : 0;
}

const char *sl_dataset_find_target_text(const struct sl_dataset *dataset, int64_t record, size_t *out_bytes)
{
    if (!dataset->target_text || !dataset->target_text_offset || dataset->target_text_offset[record] < 0)
        return NULL;
    *out_bytes = (size_t)dataset->target_text_bytes[record];
    return dataset->target_text + dataset->target_text_offset[record];
}

const char *sl_dataset_find_text(const struct sl_dataset *dataset, int64_t record, size_t *out_bytes)
{
    if (!dataset->text || !dataset->text_offset || dataset->text_offset[record] < 0)
        return NULL;
    *out_bytes = (size_t)dataset->text_bytes[record];
    return dataset->text + dataset->text_offset[record];
}

int32_t sl_dataset_count_unknown_labels(const struct sl_dataset *dataset)
{
    return dataset->unknown_labels.count;
}

const char *sl_dataset_get_unknown_label(const struct sl_dataset *dataset, int32_t k)
{
    return sl_intern_get(&dataset->unknown_labels, k, NULL);
}

int64_t sl_dataset_get_unknown_line(const struct sl_dataset *dataset)
{
    return dataset->first_unknown_line;
}

const struct sl_data_counts *sl_dataset_get_counts(const struct sl_dataset *dataset)
{
    return &dataset->counts;
}

const char *sl_dataset_find_cache_problem(const struct sl_dataset *dataset)
{
    return dataset->cache_problem;
}

struct sl_string_list sl_dataset_get_files(const struct sl_dataset *dataset)
{
    return (struct sl_string_list){(const char *const *)dataset->files, dataset->file_count};
}
