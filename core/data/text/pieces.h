/* SPDX-License-Identifier: Apache-2.0 */
/* The pieces of words that the tokenizer `sentencepiece` cuts text into. The module of that name loads or learns the
 * model. The model's bytes are kept, so that a run can be used without the file that they came from.
 *
 * Invariants: immutable once made; any number of threads may cut text with it. */
#ifndef SL_DATA_TEXT_PIECES_H
#define SL_DATA_TEXT_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

#include "model/data_config.h"

struct sl_pieces;
struct sl_buf;

/* Errors: UNAVAILABLE (the module is absent: the message names the package to install), CORRUPT_DATA, NO_MEMORY. */
seqlstm_status sl_pieces_open(const void *model, size_t bytes, struct sl_pieces **out, struct seqlstm_error *err);
/* The same of a file. */
seqlstm_status sl_pieces_load(const char *path, struct sl_pieces **out, struct seqlstm_error *err);

/* Learns as many pieces as `vocab_size` allows beside the specials. `next` returns the lines, each borrowed until its
 * next call, then NULL. `name` is what messages call the text. */
seqlstm_status sl_pieces_train(const struct sl_tokenizer *tokenizer, const char *name,
                               const char *(*next)(void *context, uint64_t *out_bytes), void *context,
                               struct sl_pieces **out, struct seqlstm_error *err);
void sl_pieces_close(struct sl_pieces *pieces);

/* The file's bytes. Borrowed. */
const void *sl_pieces_get_model(const struct sl_pieces *pieces, size_t *out_bytes);

int64_t sl_pieces_get_count(const struct sl_pieces *pieces);
/* Text of a piece; *out_bytes is 0 for a piece without text. */
const char *sl_pieces_get(const struct sl_pieces *pieces, int64_t id, size_t *out_bytes);

/* Calls `emit` for each piece of the text, valid UTF-8. NO_MEMORY. */
seqlstm_status sl_pieces_cut(const struct sl_pieces *pieces, const char *text, size_t bytes,
                             void (*emit)(void *context, const char *piece, uint64_t bytes), void *context,
                             struct seqlstm_error *err);

/* Appends a piece as text: U+2581 is a blank, except at the beginning of a line; <0xNN> is a byte. */
void sl_pieces_join(const char *piece, size_t bytes, int begins, struct sl_buf *out);

#endif
