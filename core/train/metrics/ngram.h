/* SPDX-License-Identifier: Apache-2.0 */
/* What the scores of texts have in common: words between Unicode white space, and n-grams that occur in two
 * sequences. */
#ifndef SL_TRAIN_METRICS_NGRAM_H
#define SL_TRAIN_METRICS_NGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

/* Bytes of the white space character at `text`, 0 when it is none: the characters at which Python's str.split splits.
 * [any thread] */
size_t sl_blank_find(const char *text, size_t bytes);

/* The next word of [*at, bytes), and moves *at past it; false at the end. [any thread] */
bool sl_word_next(const char *text, size_t bytes, size_t *at, size_t *out_begin, size_t *out_bytes);

/* N-grams of one order: how many each side has, and how many of the hypothesis occur in the reference, each counted at
 * most as often as it occurs there. */
struct sl_ngram_counts {
    int64_t hypothesis, reference, matches;
};

/* Sequences are numbers of words or code points. `scratch` holds as many elements as both sides together.
 * [any thread] */
void sl_ngram_count(const int32_t *hypothesis, int64_t hypothesis_count, const int32_t *reference,
                    int64_t reference_count, int64_t order, const int32_t **scratch, struct sl_ngram_counts *out);

#endif
