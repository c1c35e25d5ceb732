/* SPDX-License-Identifier: Apache-2.0 */
/* BLEU of a corpus, one reference for each hypothesis (Papineni et al. 2002), as sacreBLEU 2 computes it: order 4,
 * mixed case, exponential smoothing (Post 2018; NIST's mteval-v13a).
 *
 * Sums are plain and linear: those of two sets of segments are added member by member.
 */
#ifndef SL_TRAIN_METRICS_BLEU_H
#define SL_TRAIN_METRICS_BLEU_H

#include <stddef.h>
#include <stdint.h>

#include <seqlstm/status.h>

struct sl_buf;

enum { SL_BLEU_ORDER = 4 };

enum sl_bleu_tokenizer {
    SL_BLEU_13A, /* mteval-v13a: separates punctuation, except in numbers */
    SL_BLEU_NONE /* words between white space */
};

struct sl_bleu_sums {
    double matches[SL_BLEU_ORDER], totals[SL_BLEU_ORDER]; /* n-grams of the hypotheses */
    double hypothesis_words, reference_words;
};

/* Adds a segment. Both texts are valid UTF-8, as they would be printed, not tokenized. Errors: NO_MEMORY; the sums are
 * then unchanged. [any thread] */
seqlstm_status sl_bleu_add(struct sl_bleu_sums *sums, enum sl_bleu_tokenizer tokenizer, const char *hypothesis,
                           size_t hypothesis_bytes, const char *reference, size_t reference_bytes,
                           struct seqlstm_error *err);

/* 0 to 100. [any thread] */
double sl_bleu_compute(const struct sl_bleu_sums *sums);

/* "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp": sacreBLEU's signature without its version. Static. */
const char *sl_bleu_get_signature(enum sl_bleu_tokenizer tokenizer);

/* Appends the words of a text with one space between them. For tests. */
void sl_bleu_tokenize(enum sl_bleu_tokenizer tokenizer, const char *text, size_t bytes, struct sl_buf *out);

#endif
