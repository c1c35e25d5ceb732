/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct words numbered in the order of their first appearance, with their counts: like sl_intern, but for the inner
 * loop that cuts large texts. The time goes into cache misses. Therefore a word of up to 16 bytes is its own key, a
 * slot holds its count, slots are prefetched (a rare word costs one miss, which overlaps with others), and a large
 * table asks for large pages.
 *
 * Words hold no NUL. Failure is sticky as in base/buf.h. [one thread at a time] */
#ifndef SL_DATA_TEXT_WORD_TABLE_H
#define SL_DATA_TEXT_WORD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/value/buf.h"

/* Words hold no NUL, so first and last 8 bytes, filled up with zeros, tell all words of up to 16 bytes apart. */
struct sl_word_slot {
    uint64_t head;  /* the first 8 bytes; of a longer word a hash */
    uint64_t tail;  /* the bytes after them, if any; of a longer word LONG (word_table.c) */
    int32_t number; /* -1: free */
    uint32_t count; /* modulo 2^32 */
};

struct sl_word_table {
    struct sl_word_slot *slots;
    int shift; /* 64 - log2 of the number of slots */
    int32_t count;
    struct sl_buf text;   /* the words, one behind the other */
    struct sl_buf begins; /* int64 per word: where its text begins */
    struct sl_buf wraps;  /* int32 number of a word for each 2^32 of its count */
    bool failed;
};

void sl_word_table_init(struct sl_word_table *table);
void sl_word_table_deinit(struct sl_word_table *table);

/* The number of the word, new or known, whose count goes up; -1 when memory ran out. */
int32_t sl_word_table_add(struct sl_word_table *table, const char *word, size_t bytes);

/* The same for `count` words of a text, [at[2 k], at[2 k + 1]), at most SL_WORD_TABLE_MANY: their slots are fetched
 * together. 8 bytes can be read from the beginning of each on. Numbers into out[count]. False when memory ran out. */
enum { SL_WORD_TABLE_MANY = 128 };
bool sl_word_table_add_many(struct sl_word_table *table, const char *text, const size_t *at, int count, uint32_t *out);

/* Text of a word, not NUL-terminated, borrowed until the next add. */
const char *sl_word_table_get(const struct sl_word_table *table, int32_t number, size_t *out_bytes);
/* counts[number]: how often each word was added. */
void sl_word_table_read_counts(const struct sl_word_table *table, int64_t *counts);

#endif
