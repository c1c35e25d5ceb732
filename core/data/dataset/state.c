/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a state: its parts, predictions back in the file's units, text to ids and back. */
#include "data/dataset/state_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/value/text.h"
#include "data/text/tokenizer.h"

static void free_names(char **names, int64_t count)
{
    for (int64_t i = 0; names && i < count; i++)
        free(names[i]);
    free(names);
}

void sl_data_state_destroy(struct sl_data_state *state)
{
    if (!state)
        return;
    sl_pieces_close(state->pieces);
    sl_pieces_close(state->source_pieces);
    sl_vocabulary_destroy(state->tokens);
    sl_vocabulary_destroy(state->classes);
    sl_vocabulary_destroy(state->source_tokens);
    free(state->ignore_label);
    free(state->input_offset);
    free(state->input_factor);
    free(state->target_offset);
    free(state->target_factor);
    free(state->input_fill);
    free(state->target_fill);
    free(state->target_naive);
    free_names(state->input_names, state->input_columns);
    free_names(state->target_names, state->target_columns);
    free(state);
}

void sl_data_state_set_views(struct sl_data_state *state)
{
    state->input_scaling = (struct sl_scaling){state->input_columns, state->input_offset, state->input_factor};
    state->target_scaling = (struct sl_scaling){state->target_columns, state->target_offset, state->target_factor};
}

const struct sl_data_facts *sl_data_state_get_facts(const struct sl_data_state *state)
{
    return &state->facts;
}

const struct sl_vocabulary *sl_data_state_find_vocabulary(const struct sl_data_state *state)
{
    return state->tokens;
}

const struct sl_vocabulary *sl_data_state_find_source_vocabulary(const struct sl_data_state *state)
{
    if (state->facts.source.kind == SL_FIELD_NONE)
        return NULL;
    return state->source_tokens ? state->source_tokens : state->tokens;
}

const struct sl_pieces *sl_data_state_find_source_pieces(const struct sl_data_state *state)
{
    bool shared = state->facts.source.kind != SL_FIELD_NONE && state->source_tokens == NULL;
    return shared ? state->pieces : state->source_pieces;
}

const struct sl_vocabulary *sl_data_state_find_classes(const struct sl_data_state *state)
{
    return state->classes_are_tokens ? state->tokens : state->classes;
}

const struct sl_scaling *sl_data_state_find_input_scaling(const struct sl_data_state *state)
{
    return state->input_offset ? &state->input_scaling : NULL;
}

const struct sl_scaling *sl_data_state_find_target_scaling(const struct sl_data_state *state)
{
    return state->target_offset ? &state->target_scaling : NULL;
}

const double *sl_data_state_find_naive_error(const struct sl_data_state *state, int64_t *out_columns)
{
    *out_columns = state->target_columns;
    return state->target_naive;
}

struct sl_string_list sl_data_state_get_target_names(const struct sl_data_state *state)
{
    struct sl_string_list list = {(const char *const *)state->target_names, 0};
    list.count = state->target_names ? (size_t)state->target_columns : 0;
    return list;
}

struct sl_string_list sl_data_state_get_input_names(const struct sl_data_state *state)
{
    struct sl_string_list list = {(const char *const *)state->input_names, 0};
    list.count = state->input_names ? (size_t)state->input_columns : 0;
    return list;
}

void sl_data_state_undo_targets(const struct sl_data_state *state, float *values, int64_t rows)
{
    int64_t features = state->facts.target.features, columns = state->target_columns;
    if (!state->target_offset || state->facts.target.kind != SL_FIELD_VALUES)
        return;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t f = 0; f < features; f++) {
            float *value = &values[r * features + f];
            *value = (float)((double)*value * state->target_factor[f % columns] + state->target_offset[f % columns]);
        }
    }
}

/* Appends the id of one token, or says that it is unknown. */
static seqlstm_status add_id(const struct sl_data_state *state, const char *token, size_t bytes, struct sl_buf *scratch,
                             struct sl_buf *ids, struct seqlstm_error *err)
{
    sl_buf_truncate(scratch, 0);
    sl_buf_append(scratch, token, bytes);
    if (state->lowercase && !scratch->failed)
        sl_text_lower(scratch->data, bytes);
    int32_t id = sl_vocabulary_find(state->tokens, sl_buf_text(scratch), bytes);
    if (id < 0)
        id = sl_vocabulary_get_special(state->tokens, SL_SPECIAL_UNK);
    if (id < 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "the token \"%.*s\" is not in the vocabulary (`specials: [unk]` would stand for it)",
                     (int)(bytes > 80 ? 80 : bytes), token);
    sl_buf_append(ids, &id, sizeof id);
    return SEQLSTM_OK;
}

struct encoding {
    const struct sl_data_state *state;
    struct sl_buf ids, scratch;
    seqlstm_status status;
    struct seqlstm_error *err;
};

static void add_piece(void *context, const char *piece, uint64_t bytes)
{
    struct encoding *e = context;
    if (e->status == SEQLSTM_OK)
        e->status = add_id(e->state, piece, (size_t)bytes, &e->scratch, &e->ids, e->err);
}

static seqlstm_status add_text(struct encoding *e, const char *text, size_t bytes)
{
    struct sl_token_cursor cursor;
    const char *token;
    size_t token_bytes;
    if (e->state->pieces) {
        SEQLSTM_TRY(sl_pieces_cut(e->state->pieces, text, bytes, add_piece, e, e->err));
        return e->status;
    }
    sl_token_cursor_init(&cursor, e->state->tokenizer, text, bytes);
    while (e->status == SEQLSTM_OK && sl_token_cursor_next(&cursor, &token, &token_bytes))
        e->status = add_id(e->state, token, token_bytes, &e->scratch, &e->ids, e->err);
    return e->status;
}

static void add_special(const struct sl_data_state *state, enum sl_special special, struct sl_buf *ids)
{
    int32_t id = sl_vocabulary_get_special(state->tokens, special);
    if (id >= 0)
        sl_buf_append(ids, &id, sizeof id);
}

seqlstm_status sl_data_state_encode(const struct sl_data_state *state, const char *text, size_t bytes, bool whole,
                                    int32_t **out_ids, int64_t *out_count, struct seqlstm_error *err)
{
    struct encoding e = {.state = state, .err = err};
    size_t bad;
    if (!state->tokens)
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has no vocabulary, its input is no text");
    if (!sl_text_is_utf8(text, bytes, &bad))
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA, "byte %zu of the text is not valid UTF-8", bad);
    add_special(state, SL_SPECIAL_BOS, &e.ids);
    seqlstm_status status = add_text(&e, text, bytes);
    if (whole)
        add_special(state, SL_SPECIAL_EOS, &e.ids);
    size_t count = e.ids.length_bytes / sizeof(int32_t);
    sl_buf_append(&e.ids, "\0\0\0", 4);
    if (status == SEQLSTM_OK && (e.ids.failed || e.scratch.failed))
        status = SL_DATA_NO_MEMORY(err);
    if (status == SEQLSTM_OK) {
        *out_ids = (int32_t *)(void *)sl_buf_take(&e.ids, NULL);
        *out_count = (int64_t)count;
    }
    sl_buf_deinit(&e.ids);
    sl_buf_deinit(&e.scratch);
    return status;
}

void sl_data_state_decode(const struct sl_data_state *state, const int32_t *ids, int64_t count, struct sl_buf *out)
{
    struct sl_tokenizer config = {.type = state->tokenizer};
    if (state->tokens) {
        sl_tokens_join(&config, state->tokens, ids, count, out);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        sl_buf_printf(out, "%s%d", i ? " " : "", (int)ids[i]);
}
