/* SPDX-License-Identifier: Apache-2.0 */
/* From raw rows to a dataset: tokens and labels become ids of the state, numbers are filled and scaled. */
#include "data/dataset/assemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"
#include "data/dataset/dataset_private.h"
#include "data/dataset/records.h"
#include "data/dataset/split_pairs.h"

static const char *name_of(const struct sl_raw *raw)
{
    return raw->name ? raw->name : "data";
}

/* table[provisional id] = id of the vocabulary, or -1. */
static seqlstm_status map_texts(const struct sl_intern *texts, const struct sl_vocabulary *vocabulary, int32_t **out,
                                struct seqlstm_error *err)
{
    int32_t *table = malloc(((size_t)texts->count + 1) * sizeof *table);
    if (!table)
        return SL_DATA_NO_MEMORY(err);
    for (int32_t id = 0; id < texts->count; id++) {
        size_t bytes;
        const char *text = sl_intern_get(texts, id, &bytes);
        table[id] = sl_vocabulary_find(vocabulary, text, bytes);
    }
    *out = table;
    return SEQLSTM_OK;
}

static seqlstm_status fail_token(const struct sl_raw *raw, int64_t series, int64_t row, int32_t number,
                                 struct seqlstm_error *err)
{
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                 "%s:%lld: the token \"%s\" is not in the vocabulary of the training split "
                 "(`specials: [unk]` would replace it)",
                 name_of(raw), (long long)sl_raw_find_line(raw, series, row),
                 sl_intern_get(&raw->tokens, number, NULL));
}

/* Of tokens that stay in their file: the first one that the vocabulary does not have. */
static seqlstm_status fail_first_unknown(const struct sl_raw *raw, const int32_t *table, struct seqlstm_error *err)
{
    for (int64_t s = 0; s < raw->series; s++)
        for (int64_t i = raw->start[s]; i < raw->start[s] + raw->length[s]; i++) {
            int32_t number;
            SEQLSTM_TRY(sl_token_file_read(raw->token_file, i, 1, &number, err));
            if (table[number] < 0)
                return fail_token(raw, s, i, number, err);
        }
    return SEQLSTM_OK;
}

/* Tokens that stay in their file are mapped when they are read: the table is kept. */
static seqlstm_status keep_map(struct sl_dataset *d, struct sl_raw *raw, struct seqlstm_error *err)
{
    int32_t unknown = sl_vocabulary_get_special(d->state->tokens, SL_SPECIAL_UNK);
    int64_t *counts = NULL;
    SEQLSTM_TRY(map_texts(&raw->tokens, d->state->tokens, &d->id_map, err));
    SEQLSTM_TRY(sl_raw_count_ids(raw, &counts, err));
    for (int32_t t = 0; t < raw->tokens.count; t++)
        raw->counts.unknown_tokens += d->id_map[t] < 0 ? counts[t] : 0;
    free(counts);
    if (raw->counts.unknown_tokens > 0 && unknown < 0)
        return fail_first_unknown(raw, d->id_map, err);
    for (int32_t t = 0; t < raw->tokens.count; t++)
        d->id_map[t] = d->id_map[t] < 0 ? (unknown < 0 ? 0 : unknown) : d->id_map[t];
    d->token_file = raw->token_file;
    raw->token_file = NULL;
    return SEQLSTM_OK;
}

static seqlstm_status map_tokens(const struct sl_vocabulary *tokens, struct sl_raw *raw, struct seqlstm_error *err)
{
    int32_t *table = NULL, unknown = sl_vocabulary_get_special(tokens, SL_SPECIAL_UNK);
    SEQLSTM_TRY(map_texts(&raw->tokens, tokens, &table, err));
    seqlstm_status status = SEQLSTM_OK;
    for (int64_t s = 0; status == SEQLSTM_OK && s < raw->series; s++) {
        for (int64_t i = raw->start[s]; i < raw->start[s] + raw->length[s]; i++) {
            int32_t id = table[raw->ids[i]];
            if (id < 0 && unknown < 0) {
                status = fail_token(raw, s, i, raw->ids[i], err);
                break;
            }
            raw->counts.unknown_tokens += id < 0;
        }
    }
    for (int64_t i = 0; status == SEQLSTM_OK && i < raw->rows; i++) {
        int32_t id = table[raw->ids[i]];
        raw->ids[i] = id < 0 ? (unknown < 0 ? 0 : unknown) : id;
    }
    free(table);
    return status;
}

static seqlstm_status check_ids(const struct sl_raw *raw, int64_t classes, struct seqlstm_error *err)
{
    for (int64_t s = 0; raw->known_ids > classes && s < raw->series; s++)
        for (int64_t i = raw->start[s]; i < raw->start[s] + raw->length[s]; i++)
            if (raw->ids[i] >= classes)
                SEQLSTM_FAIL(
                    err, SEQLSTM_CORRUPT_DATA,
                    "%s:%lld: the token id %d is too large: the largest of the training split is %lld (one row "
                    "with a larger id there makes room)",
                    name_of(raw), (long long)sl_raw_find_line(raw, s, i), (int)raw->ids[i], (long long)classes - 1);
    return SEQLSTM_OK;
}

/* The text of class `id` of a raw. */
static const char *label_of(const struct sl_raw *raw, int32_t id, char number[32])
{
    snprintf(number, 32, "%d", (int)id);
    return raw->known_classes == 0 ? sl_intern_get(&raw->labels, id, NULL) : number;
}

/* An error that names a label which the training split does not have. */
static seqlstm_status fail_label(const struct sl_raw *raw, int64_t series, int64_t row, int32_t id,
                                 struct seqlstm_error *err)
{
    char number[32];
    const char *label = label_of(raw, id, number);
    if (!raw->line)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: sequence %lld has the label \"%s\", which the training split lacks", name_of(raw),
                     (long long)series, label);
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s:%lld: the label \"%s\" does not occur in the training split",
                 name_of(raw), (long long)sl_raw_find_line(raw, series, row), label);
}

/* A label that the training split lacks gets a number of its own, below all classes. */
static seqlstm_status add_unknown(struct sl_dataset *d, struct sl_raw *raw, int64_t series, int64_t row, int32_t id,
                                  int32_t *out, struct seqlstm_error *err)
{
    char number[32];
    const char *label = label_of(raw, id, number);
    if (d->unknown_labels.count == 0)
        d->first_unknown_line = sl_raw_find_line(raw, series, row);
    int32_t k = sl_intern_add(&d->unknown_labels, label, strlen(label));
    if (k < 0)
        return SL_DATA_NO_MEMORY(err);
    raw->counts.unknown_labels++;
    *out = SL_CLASS_UNKNOWN - k;
    return SEQLSTM_OK;
}

static seqlstm_status map_label(struct sl_dataset *d, struct sl_raw *raw, const int32_t *table, int64_t series,
                                int64_t row, int64_t place, struct seqlstm_error *err)
{
    const struct sl_data_state *state = d->state;
    int32_t id = raw->target_ids[place];
    int32_t mapped = id < 0 ? -1 : table ? table[id] : id >= sl_vocabulary_get_size(state->classes) ? -1 : id;
    if (id < 0 ||
        (state->ignore_label && table && strcmp(sl_intern_get(&raw->labels, id, NULL), state->ignore_label) == 0))
        mapped = -1;
    else if (mapped < 0 && (d->learns || state->binary_values))
        return fail_label(raw, series, row, id, err);
    else if (mapped < 0)
        return add_unknown(d, raw, series, row, id, &raw->target_ids[place], err);
    if (mapped >= 0 && mapped == state->ignore_id)
        mapped = -1;
    raw->target_ids[place] = mapped;
    return SEQLSTM_OK;
}

static seqlstm_status map_labels(struct sl_dataset *d, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_data_state *state = d->state;
    int32_t *table = NULL;
    seqlstm_status status = SEQLSTM_OK;
    if (raw->known_classes == 0)
        SEQLSTM_TRY(map_texts(&raw->labels, state->classes, &table, err));
    for (int64_t s = 0; status == SEQLSTM_OK && s < raw->series; s++) {
        if (!raw->target_per_row) {
            status = map_label(d, raw, table, s, raw->start[s], raw->first_target + s, err);
            continue;
        }
        for (int64_t i = raw->start[s]; status == SEQLSTM_OK && i < raw->start[s] + raw->length[s]; i++)
            status = map_label(d, raw, table, s, i, i, err);
    }
    free(table);
    return status;
}

/* Does the split have the targets, at the places, that the state describes? */
static bool has_form(const struct sl_raw *raw, const struct sl_data_state *state)
{
    if (raw->target_kind == SL_FIELD_NONE || raw->ahead != (state->form == SL_TARGET_AHEAD ? state->ahead : 0))
        return false;
    return state->form == SL_TARGET_AHEAD || raw->target_per_row == (state->form != SL_TARGET_RECORD);
}

/* Where a value stands: its line where the source has lines (`per_row`: rows are the input's, else series), its column
 * where columns have names. */
static void describe_place(const struct sl_raw *raw, int64_t row, int64_t column, char *const *names, bool per_row,
                           char place[32], char which[96])
{
    int64_t series = per_row ? 0 : row - raw->first_target;
    while (per_row && series < raw->series && row >= raw->start[series] + raw->length[series])
        series++;
    place[0] = '\0';
    if (per_row && raw->row_line)
        snprintf(place, 32, ":%lld", (long long)raw->row_line[row]);
    else if (raw->line && series >= 0 && series < raw->series && (!per_row || row >= raw->start[series]))
        snprintf(place, 32, ":%lld", (long long)(per_row ? sl_raw_find_line(raw, series, row) : raw->line[series]));
    if (names && names[column])
        snprintf(which, 96, "column `%.80s`", names[column]);
    else
        snprintf(which, 96, "row %lld, column %lld", (long long)row + 1, (long long)column + 1);
}

static seqlstm_status fail_value(const struct sl_raw *raw, double value, int64_t row, int64_t column,
                                 char *const *names, bool per_row, struct seqlstm_error *err)
{
    char place[32], which[96];
    describe_place(raw, row, column, names, per_row, place, which);
    if (isnan(value))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s%s: there is no value (%s), and the training has kept no mean for it (`missing: zero` needs "
                     "none)",
                     name_of(raw), place, which);
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s%s: the value %g (%s) does not fit into float32", name_of(raw), place,
                 value, which);
}

/* Numbers as float32: missing ones filled, then scaled. `values` may be NULL. `may_miss`: missing ones may stay. */
static seqlstm_status finish_values(const struct sl_raw *raw, const double *values, int64_t rows, int64_t columns,
                                    char *const *names, bool per_row, bool may_miss, const double *fill,
                                    const double *offset, const double *factor, float **out, struct seqlstm_error *err)
{
    if (!values)
        return SEQLSTM_OK;
    float *floats = malloc(((size_t)(rows * columns) + 1) * sizeof *floats);
    if (!floats)
        return SL_DATA_NO_MEMORY(err);
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t c = i % columns;
        double x = isnan(values[i]) && fill ? fill[c] : values[i];
        floats[i] = (float)(offset ? (x - offset[c]) / factor[c] : x);
        if (!isfinite(floats[i]) && !(isnan(x) && may_miss)) {
            free(floats);
            return fail_value(raw, x, i / columns, c, names, per_row, err);
        }
    }
    *out = floats;
    return SEQLSTM_OK;
}

static seqlstm_status finish_input(struct sl_dataset *d, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_data_state *state = d->state;
    if (raw->input_kind != state->facts.input.kind || raw->input_features != state->facts.input.features ||
        raw->has_steps != state->facts.has_steps)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "%s: the input has %lld values per %s, the training split had %lld per %s", name_of(raw),
                     (long long)raw->input_features, raw->has_steps ? "step" : "record",
                     (long long)state->facts.input.features, state->facts.has_steps ? "step" : "record");
    if (raw->token_file)
        return keep_map(d, raw, err);
    if (raw->input_kind == SL_FIELD_IDS) {
        if (raw->known_ids == 0)
            SEQLSTM_TRY(map_tokens(state->tokens, raw, err));
        else
            SEQLSTM_TRY(check_ids(raw, state->facts.input.classes, err));
        d->input_ids = d->own_input_ids = raw->ids;
        raw->ids = NULL;
        return SEQLSTM_OK;
    }
    if (raw->mapped) {
        d->input_values = raw->mapped;
        d->map = raw->map;
        memset(&raw->map, 0, sizeof raw->map);
    } else if (raw->values32) {
        d->input_values = d->own_input_values = raw->values32;
        raw->values32 = NULL;
    } else {
        SEQLSTM_TRY(finish_values(raw, raw->values, raw->rows, raw->input_features, raw->input_names, true, false,
                                  state->input_fill, state->input_offset, state->input_factor, &d->own_input_values,
                                  err));
        d->input_values = d->own_input_values;
    }
    return SEQLSTM_OK;
}

/* The encoder's ids; counts of both sides are kept in one place. */
static seqlstm_status finish_source(struct sl_dataset *d, struct sl_raw *raw, struct seqlstm_error *err)
{
    struct sl_raw *pair = raw->pair;
    if (!pair)
        return SEQLSTM_OK;
    SEQLSTM_TRY(map_tokens(sl_data_state_find_source_vocabulary(d->state), pair, err));
    for (int64_t s = 0; s < pair->series; s++)
        raw->counts.tokens += pair->length[s];
    raw->counts.unknown_tokens += pair->counts.unknown_tokens;
    d->source.present = true;
    d->source.ids = pair->ids;
    pair->ids = NULL;
    return SEQLSTM_OK;
}

/* Not all targets may be missing: there would be nothing to learn or to measure. */
static seqlstm_status check_targets(const struct sl_raw *raw, const float *values, int64_t count,
                                    struct seqlstm_error *err)
{
    for (int64_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            return SEQLSTM_OK;
    SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: every target is missing", name_of(raw));
}

/* Cross-entropy of a sigmoid has no least value where a target is not from 0 to 1. Scaled values of other splits may
 * lie a little beyond those of training. */
static seqlstm_status check_outcomes(const struct sl_dataset *d, const struct sl_raw *raw, int64_t rows,
                                     struct seqlstm_error *err)
{
    const int64_t columns = raw->target_features;
    char place[32], which[96];
    if (d->model->train.loss.kind != SL_LOSS_BINARY_CROSS_ENTROPY || (d->state->target_offset && !d->learns))
        return SEQLSTM_OK;
    for (int64_t i = 0; i < rows * columns; i++) {
        if (!(d->target_values[i] < 0 || d->target_values[i] > 1))
            continue;
        describe_place(raw, i / columns, i % columns, NULL, raw->target_per_row, place, which);
        SEQLSTM_FAIL(
            err, SEQLSTM_CORRUPT_DATA,
            "%s%s: the target %g (%s) is not from 0 to 1, as the loss binary_cross_entropy needs it (a `label` "
            "with two classes becomes 0 and 1)",
            name_of(raw), place, (double)d->target_values[i], which);
    }
    return SEQLSTM_OK;
}

/* Columns whose values, as far as there are any, are all the same. */
static int64_t count_constant(const float *values, int64_t rows, int64_t columns)
{
    int64_t constant = 0;
    for (int64_t c = 0; c < columns; c++) {
        float one = NAN;
        bool same = true;
        for (int64_t i = 0; same && i < rows; i++) {
            const float value = values[i * columns + c];
            same = isnan(value) || isnan(one) || value == one;
            one = isnan(value) ? one : value;
        }
        constant += same && rows > 1;
    }
    return constant;
}

static seqlstm_status finish_target(struct sl_dataset *d, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_data_state *state = d->state;
    int64_t rows = raw->target_per_row ? raw->rows : raw->first_target + raw->series;
    if (d->form == SL_TARGET_NONE || d->form == SL_TARGET_NEXT)
        return SEQLSTM_OK;
    bool ids = state->facts.target.kind == SL_FIELD_IDS || state->binary_values;
    bool ignored = raw->source->missing.targets == SL_MISSING_TARGETS_IGNORE;
    if (!has_form(raw, state))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the targets do not stand where those of the training split stood",
                     name_of(raw));
    if ((raw->target_kind == SL_FIELD_IDS) != ids || raw->target_features != state->target_columns)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "%s: the targets are %lld %s, those of the training split were %lld %s",
                     name_of(raw), (long long)raw->target_features,
                     raw->target_kind == SL_FIELD_IDS ? "classes" : "values", (long long)state->target_columns,
                     ids ? "classes" : "values");
    d->target_columns = raw->target_features;
    if (!ids) {
        SEQLSTM_TRY(finish_values(raw, raw->target_values, rows, raw->target_features, NULL, raw->target_per_row,
                                  ignored, state->target_fill, state->target_offset, state->target_factor,
                                  &d->own_target_values, err));
        d->target_values = d->own_target_values;
        SEQLSTM_TRY(check_outcomes(d, raw, rows, err));
        if (d->learns)
            raw->counts.constant_targets = count_constant(d->target_values, rows, raw->target_features);
        return ignored ? check_targets(raw, d->target_values, rows * raw->target_features, err) : SEQLSTM_OK;
    }
    SEQLSTM_TRY(map_labels(d, raw, err));
    if (state->binary_values) {
        d->own_target_values = malloc(((size_t)rows + 1) * sizeof(float));
        if (!d->own_target_values)
            return SL_DATA_NO_MEMORY(err);
        for (int64_t i = 0; i < rows; i++)
            d->own_target_values[i] = raw->target_ids[i] < 0 ? NAN : (float)raw->target_ids[i];
        d->target_values = d->own_target_values;
        return check_targets(raw, d->target_values, rows, err);
    }
    d->target_ids = d->own_target_ids = raw->target_ids;
    raw->target_ids = NULL;
    return SEQLSTM_OK;
}

seqlstm_status sl_dataset_assemble(struct sl_dataset *d, struct sl_raw *raw, struct seqlstm_error *err)
{
    const struct sl_data_config *config = &d->model->data;
    if (raw->pair && d->form != SL_TARGET_NONE && config->batching.on_overflow == SL_OVERFLOW_SPLIT)
        SEQLSTM_TRY(sl_raw_split_pairs(raw, config, sl_batching_find_longest(&config->batching), err));
    for (int64_t s = 0; s < raw->series && raw->input_kind == SL_FIELD_IDS; s++)
        raw->counts.tokens += raw->length[s];
    SEQLSTM_TRY(finish_input(d, raw, err));
    SEQLSTM_TRY(finish_source(d, raw, err));
    SEQLSTM_TRY(finish_target(d, raw, err));
    SEQLSTM_TRY(sl_dataset_cut_records(d, raw, err));
    d->counts = raw->counts;
    d->cache_problem = raw->cache_problem;
    raw->cache_problem = NULL;
    if (d->text_offset) {
        struct sl_raw *from = raw->pair ? raw->pair : raw;
        d->text = from->text;
        from->text = NULL;
    }
    if (d->target_text_offset) {
        d->target_text = raw->text;
        raw->text = NULL;
    }
    return SEQLSTM_OK;
}
