/* SPDX-License-Identifier: Apache-2.0 */
/* Pretrained word vectors in the text format of GloVe, word2vec and fastText: a line for each word, the word and its
 * numbers with blanks between them. A first line of two integers (words, width) is skipped. */
#ifndef SL_DATA_TEXT_WORD_VECTORS_H
#define SL_DATA_TEXT_WORD_VECTORS_H

#include <stdint.h>

#include <seqlstm/status.h>

#include "data/text/vocabulary.h"

/* Copies the vectors of the words that the vocabulary has into their rows of `table` [V, dim]; other rows keep their
 * values. `table` NULL: only checks the file. If a word occurs twice, the first line counts. `*out_found` rows were
 * written. Errors: NOT_FOUND, IO, NO_MEMORY; CORRUPT_DATA with file and line for a line of another width or without
 * numbers (rows before it are written by then). */
seqlstm_status sl_word_vectors_load(const char *path, const struct sl_vocabulary *vocabulary, int64_t dim, float *table,
                                    int64_t *out_found, struct seqlstm_error *err);

#endif
