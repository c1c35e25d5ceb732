/* SPDX-License-Identifier: Apache-2.0 */
/* The SentencePiece models of a model file: loaded, or learned from the training split. */
#include "data/dataset/side_pieces.h"

#include "data/dataset/split_read.h"
#include "data/no_memory.h"
#include "data/read/raw_lines.h"

void sl_side_pieces_close(struct sl_side_pieces *pieces)
{
    sl_pieces_close(pieces->target);
    sl_pieces_close(pieces->source);
    *pieces = (struct sl_side_pieces){NULL, NULL};
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

/* The lines to learn from come from reading the training split with another tokenizer: whatever the source is, a
 * SentencePiece model sees the words between blanks. */
seqlstm_status sl_side_pieces_open(const struct sl_model *model, struct sl_side_pieces *out, struct seqlstm_error *err)
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
        SEQLSTM_TRY(sl_split_read(&read, &raw, err));
    seqlstm_status status = make_pieces(&config->tokenizer, &raw, two ? NULL : raw.pair, &out->target, err);
    if (status == SEQLSTM_OK && two)
        status = make_pieces(&config->source_tokenizer, raw.pair, NULL, &out->source, err);
    if (status != SEQLSTM_OK)
        sl_side_pieces_close(out);
    sl_raw_deinit(&raw);
    return status;
}
