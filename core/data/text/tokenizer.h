/* SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens and back.
 *
 * data/text: text without files. Cutting text into tokens (this file, word_edges, pieces), numbering words (intern,
 * word_table), the finished vocabulary, and word vectors from a file.
 *
 *   whitespace   runs of anything but space, tab, newline, carriage return, form feed, vertical tab
 *   word         the same, then every ASCII punctuation character is a token of its own, but an
 *                apostrophe or hyphen between letters or digits and a point or comma between digits
 *                stay inside: "don't stop, 3.5" is don't | stop | , | 3.5
 *   char         every Unicode character, blanks and newlines too
 *
 *   sentencepiece  pieces of words, cut by the model that the state holds (pieces.h), not here
 *
 * With `lowercase` the letters A-Z and those of Latin-1, Greek and Cyrillic that have one lower-case partner are
 * lowered before they are compared. Nothing else is normalised.
 */
#ifndef SL_DATA_TEXT_TOKENIZER_H
#define SL_DATA_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "data/text/vocabulary.h"
#include "model/data_config.h"

/* A cursor over a text of valid UTF-8. */
struct sl_token_cursor {
    enum sl_tokenizer_type type;
    const char *next;
    const char *end;
};

/* NONE is read as WHITESPACE. */
void sl_token_cursor_init(struct sl_token_cursor *cursor, enum sl_tokenizer_type type, const char *text, size_t bytes);
/* The next token, a part of the text; false at the end. Never empty. */
bool sl_token_cursor_next(struct sl_token_cursor *cursor, const char **out_token, size_t *out_bytes);

/* Lowers the letters of a valid UTF-8 text in place; the length never changes. */
void sl_text_lower(char *text, size_t bytes);

/* Tokens of the vocabulary as readable text, appended to `out`: with spaces between them for whitespace and word,
 * without for char, as the pieces ask for sentencepiece; <bos> and <pad> are left out, <eos> is a newline. */
struct sl_buf;
void sl_tokens_join(const struct sl_tokenizer *config, const struct sl_vocabulary *vocabulary, const int32_t *ids,
                    int64_t count, struct sl_buf *out);

#endif
