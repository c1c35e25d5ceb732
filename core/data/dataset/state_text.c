/* SPDX-License-Identifier: Apache-2.0 */
/* Text to ids of a state, and back. */
#include "data/dataset/state_private.h"

#include <string.h>

#include "base/value/text.h"
#include "data/read/raw.h"
#include "data/text/tokenizer.h"

/* Appends the id of one token, or says that it is unknown. */
static seqlstm_status add_id(const struct sl_data_state *state, const char *token, size_t bytes, struct sl_buf *scratch,
                             struct sl_buf *ids, struct seqlstm_error *err)
{
    sl_buf_truncate(scratch, 0);
    sl_buf_append(scratch, token, bytes);
    if (scratch->failed)
        return SL_DATA_NO_MEMORY(err);
    if (state->lowercase)
        sl_text_lower(scratch->data, bytes);
    int32_t id = sl_vocabulary_find(state->tokens, sl_buf_text(scratch), bytes);
    if (id < 0)
        id = sl_vocabulary_get_special(state->tokens, SL_SPECIAL_UNK);
    if (id < 0)
        SEQLSTM_FAIL(err, SEQLSTM_CORRUPT_DATA,
                     "the token \"%.*s\" is not in the vocabulary (`specials: [unk]` would replace it)",
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
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_ARGUMENT, "the model has no vocabulary, its input is not text");
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
