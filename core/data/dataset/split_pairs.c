/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of one text that is both sides, as an autoencoder has them: a pair that is too long becomes several pairs.
 *
 *   longest 4, "a b c d e f g"     source a b c   target <bos> a b c <eos>    (three words and the end: four steps)
 *                                  source d e f   target <bos> d e f <eos>
 *                                  source g       target <bos> g <eos>
 *
 * The marks <bos> and <eos> are rows, so the arrays of both sides are written anew. This happens after `split:` and
 * after the vocabulary was learned from the unsplit text.
 */
#include "data/dataset/split_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "data/read/raw_builder.h"
#include "data/text/tokenizer.h"

/* One side of the pairs while they are built. */
struct side {
    struct sl_raw *raw; /* as it was read */
    struct sl_raw made; /* its arrays anew */
    struct sl_raw_builder builder;
    struct sl_buf text; /* of all parts */
    int64_t head, tail; /* marks before and behind the words */
};

static void init_side(struct side *side, struct sl_raw *raw, const struct sl_tokenizer *tokenizer)
{
    memset(side, 0, sizeof *side);
    side->raw = raw;
    side->head = sl_tokenizer_has(tokenizer, SL_SPECIAL_BOS);
    side->tail = sl_tokenizer_has(tokenizer, SL_SPECIAL_EOS);
    sl_raw_builder_init(&side->builder, &side->made, tokenizer);
}

static void deinit_side(struct side *side)
{
    sl_raw_builder_deinit(&side->builder);
    sl_buf_deinit(&side->text);
}

/* The words of a series. */
static const int32_t *find_words(const struct side *side, int64_t series, int64_t *out_count)
{
    *out_count = side->raw->length[series] - side->head - side->tail;
    return side->raw->ids + side->raw->start[series] + side->head;
}

/* The text of the next `count` words, as it is in the line. */
static void add_text(struct side *side, struct sl_token_cursor *cursor, int64_t count)
{
    const char *begin = NULL, *word = NULL;
    size_t bytes = 0;
    while (count-- > 0 && sl_token_cursor_next(cursor, &word, &bytes))
        begin = begin ? begin : word;
    if (begin)
        sl_buf_append(&side->text, begin, (size_t)(word + bytes - begin));
}

/* The pieces of a tokenizer do not stand in the line as they are: they are joined. */
static void join_words(struct side *side, const int32_t *words, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        size_t bytes;
        const char *word = sl_intern_get(&side->raw->tokens, words[k], &bytes);
        sl_pieces_join(word, bytes, k == 0, &side->text);
    }
}

static void add_mark(struct side *side, int64_t row, int64_t present)
{
    if (present > 0)
        sl_buf_append(&side->builder.ids, &side->raw->ids[row], sizeof *side->raw->ids);
    side->builder.row_count += present;
}

/* A series as parts of at most `room` words; returns how many. */
static int64_t add_series(struct side *side, int64_t series, int64_t room)
{
    const struct sl_raw *raw = side->raw;
    int64_t words, first = raw->start[series], last = first + raw->length[series] - 1, parts = 0, at = 0;
    const int32_t *word = find_words(side, series, &words);
    const char *line = raw->text + raw->text_offset[series];
    size_t bytes = (size_t)raw->text_bytes[series];
    struct sl_token_cursor cursor;
    sl_token_cursor_init(&cursor, side->builder.tokenizer->type, line, bytes);
    do {
        int64_t count = words - at < room ? words - at : room, offset = (int64_t)side->text.length_bytes;
        if (words <= room)
            sl_buf_append(&side->text, line, bytes);
        else if (side->builder.tokenizer->type == SL_TOKENIZER_SENTENCEPIECE)
            join_words(side, word + at, count);
        else
            add_text(side, &cursor, count);
        sl_raw_builder_begin(&side->builder, raw->line ? raw->line[series] : 0, offset,
                             (int64_t)side->text.length_bytes - offset);
        add_mark(side, first, side->head);
        sl_buf_append(&side->builder.ids, word + at, (size_t)count * sizeof *word);
        side->builder.row_count += count;
        add_mark(side, last, side->tail);
        sl_raw_builder_end(&side->builder);
        at += count;
        parts++;
    } while (at < words);
    return parts;
}

/* The new arrays take the place of those that were read. */
static seqlstm_status replace_arrays(struct side *side, struct seqlstm_error *err)
{
    struct sl_raw *raw = side->raw, *made = &side->made;
    seqlstm_status status = sl_raw_builder_finish(&side->builder, err);
    made->text = sl_buf_take(&side->text, NULL);
    if (status == SEQLSTM_OK && !made->text)
        status = SL_DATA_NO_MEMORY(err);
    if (status != SEQLSTM_OK) {
        sl_raw_deinit(made);
        return status;
    }
    free(raw->ids);
    free(raw->start);
    free(raw->length);
    free(raw->line);
    free(raw->text);
    free(raw->text_offset);
    free(raw->text_bytes);
    raw->rows = made->rows;
    raw->ids = made->ids;
    raw->series = made->series;
    raw->start = made->start;
    raw->length = made->length;
    raw->line = made->line;
    raw->text = made->text;
    raw->text_offset = made->text_offset;
    raw->text_bytes = made->text_bytes;
    raw->first_target = 0;
    return SEQLSTM_OK;
}

seqlstm_status sl_raw_split_pairs(struct sl_raw *raw, const struct sl_data_config *config, int64_t longest,
                                  struct seqlstm_error *err)
{
    struct side target, source;
    init_side(&target, raw, &config->tokenizer);
    init_side(&source, raw->pair, &config->source_tokenizer);
    int64_t room = longest - 1; /* the decoder says the end too */
    for (int64_t s = 0; s < raw->series; s++) {
        int64_t parts = add_series(&target, s, room);
        add_series(&source, s, room);
        raw->counts.split_records += parts > 1;
        raw->counts.parts += parts > 1 ? parts : 0;
    }
    seqlstm_status status = replace_arrays(&target, err);
    if (status == SEQLSTM_OK)
        status = replace_arrays(&source, err);
    deinit_side(&target);
    deinit_side(&source);
    return status;
}
