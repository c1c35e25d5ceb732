/* SPDX-License-Identifier: Apache-2.0 */
/* Where the words of a text begin and end: the whitespace tokenizer's cuts, 64 bytes at a time.
 *
 * Blanks are the six that tokenizer.h names. A block of text becomes a mask with a bit for each byte that is no blank;
 * a bit that differs from the one before is an edge. So there is one branch per block, not one per byte. [one thread at
 * a time] */
#ifndef SL_DATA_TEXT_WORD_EDGES_H
#define SL_DATA_TEXT_WORD_EDGES_H

#include <stddef.h>
#include <stdint.h>

enum {
    SL_WORD_EDGES_WORDS = 128, /* that one call gives at most */
    SL_WORD_EDGES_BEHIND = 64  /* bytes after the text that may be read, whatever they hold */
};

struct sl_word_edges {
    const char *text;
    size_t bytes, next;
    size_t open;                            /* beginning of the word that continues from the last block */
    uint64_t inside;                        /* 1: there is one */
    size_t at[2 * SL_WORD_EDGES_WORDS + 2]; /* begin and end of each word, in bytes from `text` */
};

void sl_word_edges_init(struct sl_word_edges *edges, const char *text, size_t bytes);
/* Fills `at` with the next words and returns how many; 0 at the end of the text. */
int sl_word_edges_next(struct sl_word_edges *edges);

#endif
