/* SPDX-License-Identifier: Apache-2.0 */
#include "train/metrics/text_score.h"

#include <math.h>
#include <string.h>

#include "train/metrics/ngram.h"

static bool has_equal_words(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t a_at = 0, b_at = 0, a_begin, b_begin, a_word, b_word;
    for (;;) {
        const bool more = sl_word_next(a, a_bytes, &a_at, &a_begin, &a_word);
        if (more != sl_word_next(b, b_bytes, &b_at, &b_begin, &b_word))
            return false;
        if (!more)
            return true;
        if (a_word != b_word || memcmp(a + a_begin, b + b_begin, a_word) != 0)
            return false;
    }
}

seqlstm_status sl_text_sums_add(struct sl_text_sums *sums, enum sl_bleu_tokenizer tokenizer, const char *hypothesis,
                                size_t hypothesis_bytes, const char *reference, size_t reference_bytes,
                                struct seqlstm_error *err)
{
    SEQLSTM_TRY(sl_bleu_add(&sums->bleu, tokenizer, hypothesis, hypothesis_bytes, reference, reference_bytes, err));
    SEQLSTM_TRY(sl_chrf_add(&sums->chrf, hypothesis, hypothesis_bytes, reference, reference_bytes, err));
    sums->equal += has_equal_words(hypothesis, hypothesis_bytes, reference, reference_bytes);
    sums->segments++;
    return SEQLSTM_OK;
}

void sl_text_sums_merge(struct sl_text_sums *sums, const struct sl_text_sums *other)
{
    for (int n = 0; n < SL_BLEU_ORDER; n++) {
        sums->bleu.matches[n] += other->bleu.matches[n];
        sums->bleu.totals[n] += other->bleu.totals[n];
    }
    sums->bleu.hypothesis_words += other->bleu.hypothesis_words;
    sums->bleu.reference_words += other->bleu.reference_words;
    for (int n = 0; n < SL_CHRF_ORDER; n++) {
        sums->chrf.hypothesis[n] += other->chrf.hypothesis[n];
        sums->chrf.reference[n] += other->chrf.reference[n];
        sums->chrf.matches[n] += other->chrf.matches[n];
    }
    sums->equal += other->equal;
    sums->segments += other->segments;
}

double sl_text_sums_get_exact_match(const struct sl_text_sums *sums)
{
    return sums->segments > 0 ? sums->equal / sums->segments : NAN;
}
