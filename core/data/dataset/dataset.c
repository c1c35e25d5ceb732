/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a split: read, slice, learn or apply, assemble. */
#include "data/dataset/dataset_private.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/envelope.h"

static const struct sl_source *source_of(const struct sl_model *model, enum sl_split split)
{
    const struct sl_source *source = &model->data.splits[split];
    return source->origin == SL_SOURCE_FROM_TRAIN ? &model->data.splits[SL_SPLIT_TRAIN] : source;
}

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

/* The shares of train's records that a split is: train, then valid, then test. */
static void find_shares(const struct sl_model *model, enum sl_split split, double *out_from, double *out_to)
{
    const struct sl_source *splits = model->data.splits;
    double valid = splits[SL_SPLIT_VALID].origin == SL_SOURCE_FROM_TRAIN ? splits[SL_SPLIT_VALID].split : 0;
    double test = splits[SL_SPLIT_TEST].origin == SL_SOURCE_FROM_TRAIN ? splits[SL_SPLIT_TEST].split : 0;
    double train_end = test > 0 ? 1 - valid - test : 1 - valid, valid_end = 1 - test;
    *out_from = split == SL_SPLIT_TRAIN ? 0 : split == SL_SPLIT_VALID ? train_end : valid_end;
    *out_to = split == SL_SPLIT_TRAIN ? train_end : split == SL_SPLIT_VALID ? valid_end : 1;
}

static void set_pieces(struct sl_read *read, const struct sl_data_state *state)
{
    read->pieces = state->pieces;
    read->source_pieces = sl_data_state_find_source_pieces(state);
}

/* The split of `what`, whose source is found here. */
static seqlstm_status read_split(const struct sl_read *what, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_model *model = what->model;
    enum sl_split split = what->split;
    struct sl_read read = *what;
    read.source = source_of(model, split);
    double from, to;
    bool is_cut = split == SL_SPLIT_TRAIN || model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN;
    if (!sl_dataset_has_split(model, split))
        SEQLSTM_FAIL(err, SEQLSTM_NOT_FOUND, "the model has no split `%s`", sl_split_get_name(split));
    if (model->data.splits[split].origin == SL_SOURCE_FROM_TRAIN)
        read.split = SL_SPLIT_TRAIN; /* generators: the same numbers as train's */
    SEQLSTM_TRY(sl_raw_read(&read, raw, err));
    find_shares(model, split, &from, &to);
    if (!is_cut || (from <= 0 && to >= 1))
        return SEQLSTM_OK;
    bool by_rows = raw->has_steps && (model->data.batching.unit == SL_UNIT_STREAM ||
                                      (raw->series == 1 && raw->target_per_row && !raw->ahead_in_series));
    seqlstm_status status = sl_raw_slice(raw, from, to, by_rows, err);
    if (status != SEQLSTM_OK)
        sl_raw_deinit(raw);
    return status;
}

/* The files of a source, absolute as in the model. */
static seqlstm_status keep_files(struct sl_dataset *d, const struct sl_source *source, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &d->model->data;
    struct sl_data_file files[SL_DATA_FILE_COUNT + 4];
    int count = sl_source_list_files(source, files);
    if (count > 0 && config->tokenizer.vocab)
        files[count++].path = config->tokenizer.vocab;
    if (count > 0 && config->source_tokenizer.vocab && config->source_tokenizer.vocab != config->tokenizer.vocab)
        files[count++].path = config->source_tokenizer.vocab;
    if (count > 0 && config->tokenizer.model)
        files[count++].path = config->tokenizer.model;
    if (count > 0 && config->source_tokenizer.model && config->source_tokenizer.model != config->tokenizer.model)
        files[count++].path = config->source_tokenizer.model;
    d->files = calloc(sizeof files / sizeof *files, sizeof *d->files);
    if (!d->files)
        return SL_DATA_NO_MEMORY(err);
    for (int i = 0; i < count; i++) {
        if (!(d->files[d->file_count] = strdup(files[i].path)))
            return SL_DATA_NO_MEMORY(err);
        d->file_count++;
    }
    return SEQLSTM_OK;
}

/* Pieces of both sides. Where there are no pairs, and where one tokenizer serves both, `source` is NULL. */
struct pieces {
    struct sl_pieces *target, *source;
};

static void close_pieces(struct pieces *pieces)
{
    sl_pieces_close(pieces->target);
    sl_pieces_close(pieces->source);
    *pieces = (struct pieces){NULL, NULL};
}

/* One tokenizer's pieces: a file's, or learned from the lines of `raw` and `other`. */
static seqlstm_status make_pieces(const struct sl_tokenizer *tokenizer, const struct sl_raw *raw,
                                  const struct sl_raw *other, struct sl_pieces **out, struct seqlstm_error *err)
{
    struct sl_raw_lines lines = {.raw = raw, .then = other};
    if (tokenizer->type != SL_TOKENIZER_SENTENCEPIECE)
        return SEQLSTM_OK;
    if (tokenizer->model)
        return sl_pieces_load(tokenizer->model, out, err);
    seqlstm_status status = sl_pieces_train(tokenizer, raw->name, sl_raw_lines_next, &lines, out, err);
    if (status == SEQLSTM_OK && lines.text.failed)
        status = SL_DATA_NO_MEMORY(err);
    sl_buf_deinit(&lines.text);
    return status;
}

static bool learns_pieces(const struct sl_tokenizer *tokenizer)
{
    return tokenizer->type == SL_TOKENIZER_SENTENCEPIECE && !tokenizer->model;
}

/* The pieces of the tokenizers, if they have any. Lines to learn from come from reading the training split with another
 * tokenizer: words between blanks are what the model sees whatever the source. */
static seqlstm_status find_pieces(const struct sl_model *model, struct pieces *out, struct seqlstm_error *err)
{
    static const char *const specials[] = {"eos"};
    const struct sl_data_config *config = &model->data;
    bool two = config->pairs && !config->tokenizer.shared;
    struct sl_model words = *model;
    struct sl_read read = {.model = &words, .split = SL_SPLIT_TRAIN, .whole = true};
    struct sl_raw raw = {0};
    words.data.tokenizer = words.data.source_tokenizer =
        (struct sl_tokenizer){.type = SL_TOKENIZER_WHITESPACE, .min_count = 1, .specials = {specials, 1}};
    if (learns_pieces(&config->tokenizer) || (two && learns_pieces(&config->source_tokenizer)))
        SEQLSTM_TRY(read_split(&read, &raw, err));
    seqlstm_status status = make_pieces(&config->tokenizer, &raw, two ? NULL : raw.pair, &out->target, err);
    if (status == SEQLSTM_OK && two)
        status = make_pieces(&config->source_tokenizer, raw.pair, NULL, &out->source, err);
    if (status != SEQLSTM_OK)
        close_pieces(out);
    sl_raw_deinit(&raw);
    return status;
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

static seqlstm_status finish(const struct sl_model *model, const struct sl_source *source,
                             const struct sl_data_state *state, struct sl_raw *raw, bool predicting,
                             struct sl_dataset **out_dataset, struct seqlstm_error *err)
{
    struct sl_dataset *d = NULL;
    seqlstm_status status = sl_dataset_assemble(model, state, raw, predicting, &d, err);
    if (status == SEQLSTM_OK && !predicting)
        status = keep_files(d, source, err);
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
    struct pieces pieces = {NULL, NULL};
    const struct sl_raw *others[SL_SPLIT_COUNT];
    int other_count = 0;
    struct sl_data_state *state = NULL;
    struct sl_dataset *dataset = NULL;
    const struct sl_source *source = source_of(model, SL_SPLIT_TRAIN);
    SEQLSTM_TRY(find_pieces(model, &pieces, err));
    struct sl_read read = {.model = model,
                           .split = SL_SPLIT_TRAIN,
                           .pieces = pieces.target,
                           .source_pieces = model->data.tokenizer.shared ? pieces.target : pieces.source};
    seqlstm_status status = read_split(&read, &raws[SL_SPLIT_TRAIN], err);
    bool fit_all = source->scale.type != SL_SCALE_NONE && source->scale.fit == SL_SCALE_FIT_ALL;
    for (int split = SL_SPLIT_VALID; status == SEQLSTM_OK && fit_all && split < SL_SPLIT_COUNT; split++) {
        if (!sl_dataset_has_split(model, (enum sl_split)split))
            continue;
        read.split = (enum sl_split)split;
        status = read_split(&read, &raws[split], err);
        if (status == SEQLSTM_OK)
            others[other_count++] = &raws[split];
    }
    if (status == SEQLSTM_OK)
        status = sl_data_state_fit(model, &raws[SL_SPLIT_TRAIN], others, other_count, &state, err);
    if (status == SEQLSTM_OK) {
        state->pieces = pieces.target;
        state->source_pieces = pieces.source;
    } else {
        close_pieces(&pieces);
    }
    if (status == SEQLSTM_OK)
        status = finish(model, source, state, &raws[SL_SPLIT_TRAIN], false, &dataset, err);
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
    SEQLSTM_TRY(read_split(&read, &raw, err));
    seqlstm_status status = finish(model, source_of(model, split), state, &raw, false, out_dataset, err);
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
                           .source = source_of(model, SL_SPLIT_TRAIN),
                           .split = SL_SPLIT_TRAIN,
                           .inputs = &inputs,
                           .input = request};
    set_pieces(&read, state);
    SEQLSTM_TRY(sl_raw_read(&read, &raw, err));
    seqlstm_status status = finish(model, read.source, state, &raw, true, out_dataset, err);
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
    free(dataset->own_input_ids);
    sl_token_file_close(dataset->token_file);
    free(dataset->id_map);
    free(dataset->own_target_ids);
    free(dataset->own_input_values);
    free(dataset->own_target_values);
    sl_file_map_close(&dataset->map);
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

const struct sl_data_counts *sl_dataset_get_counts(const struct sl_dataset *dataset)
{
    return &dataset->counts;
}

struct sl_string_list sl_dataset_get_files(const struct sl_dataset *dataset)
{
    return (struct sl_string_list){(const char *const *)dataset->files, dataset->file_count};
}
